"""User functions that a library calls back: during the call they run as plain Python, if they change nothing.

A solver calls the right side of an equation a thousand times. Each captured call would make, rewrite and run a graph
of a few numbers, which nobody sees: no derivative flows through the solver. So what such functions read is lent to
them once, together with what the library itself is lent, and what they compute is NumPy's to the last bit.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterable
from itertools import chain
from types import CodeType, FunctionType, MethodType
from typing import Any

from tensormagic.capture.foreign.lending import Loan
from tensormagic.capture.inputs.notebook_names import Reach, content
from tensormagic.capture.inputs.stand_ins import original_of
from tensormagic.capture.python.bytecode import named, within
from tensormagic.capture.staging.calls.each_element import LentReach

_STORES = ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL")


class CallbackScope:
    """Represents one call of a library, during which certain callbacks may run as written."""

    def __init__(self, loan: Loan) -> None:
        self._loan = loan
        self._lasts = False

    def __enter__(self) -> None:
        """Begin the call."""
        self._lasts = True

    def __exit__(self, *_: object) -> None:
        """End the call: callbacks that the library keeps are captured from now on, as what they read may change."""
        self._lasts = False

    def written(self, functions: Iterable[Any]) -> dict[int, Callable[..., Any]]:
        """Return functions as plain Python runs them, by the identity of the given ones; those that may do more are left out."""
        own = [f for f in functions if isinstance(f, FunctionType | MethodType)]
        lent = LentReach(self._loan)
        found = {id(f): made for f in own if (made := lent.written(original_of(f))) is not None}
        others = [original_of(f) for f in own if id(f) not in found]
        return found if all(_is_apart(f, lent) for f in others) else {}

    def chosen(self, quick: Callable[..., Any], captured: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls ``quick`` while the library's call lasts, and ``captured`` later."""

        @functools.wraps(captured)
        def call(*args: Any, **options: Any) -> Any:
            return quick(*args, **options) if self._lasts else captured(*args, **options)

        return call


def _is_apart(other: Any, lent: LentReach) -> bool:
    """Return whether a function that is called meanwhile leaves lent values alone: it only calls methods of objects nobody else reads."""
    function = other.__func__ if isinstance(other, MethodType) else other
    reach = Reach([function], function.__globals__)
    held = [content(cell) for cell in function.__closure__ or ()]
    held += [function.__globals__[n] for n in reach.reads if n in function.__globals__]
    changes = named(function.__code__, "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF") or stores(function.__code__)
    calls = any(isinstance(v, FunctionType) for v in held) or isinstance(other, MethodType)
    return not (changes or calls or reach.binds) and lent.lent.isdisjoint(map(id, held))


def stores(code: CodeType) -> bool:
    """Return whether code stores into anything but its own names."""
    steps = chain.from_iterable(map(dis.get_instructions, within(code)))
    return any(s.opname in _STORES or (s.opname == "BINARY_OP" and s.argrepr.endswith("=")) for s in steps)
