"""Plain cells that ask for values again and again go on with NumPy's arrays: each such value is a graph to be closed and rewritten."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import context, limits
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs.notebook_names import functions_of
from tensormagic.capture.python import usercode
from tensormagic.capture.python.bytecode import named
from tensormagic.capture.python.cell_text import parse
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.modules import package_of
from tensormagic.ir.node import Node
from tensormagic.notebook.cells.as_arrays import AsArrays

_OWN = __name__.partition(".")[0]
_SHELL = {
    "get_ipython",
    "globals",
    "locals",
    "vars",
    "eval",
    "exec",
}  # through which a cell has values otherwise than by name


class Asking:
    """The plain cell that is running, with the values that it has asked of lazy values.

    If the same place in the cell, or in a function that it calls, asks again, and computing takes long, the cell goes
    on with arrays, unless it uses what only lazy values have: ``loss.grad(w)``. Lazy values that it has not rebound are
    restored after it.

    Parameters
    ----------
    shell
        The shell.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._text: str | None = None  # of the cell, as long as it may go on with arrays
        self._arrays: AsArrays | None = None
        self._thread = 0
        self._places = set[tuple[CodeType, int]]()
        self._repeats, self._spent, self._depth = 0, 0.0, 0

    def begin(self, text: str) -> None:
        """Record the start of a cell that is not captured."""
        self._text, self._thread = text, threading.get_ident()
        self._places.clear()
        self._repeats, self._spent = 0, 0.0

    def end(self) -> None:
        """Record the end of a cell, and put lazy values back."""
        self._text = None
        if self._arrays is not None:
            self._arrays.put_back()
            self._arrays = None

    def counted(self, compute: Callable[[Sequence[Node]], list[Any]], nodes: Sequence[Node]) -> list[Any]:
        """Compute the nodes that were asked for, and count the request."""
        if self._text is None or self._depth or context.current() is not None or threading.get_ident() != self._thread:
            return compute(nodes)
        self._depth, before, begun = 1, limits.computed, time.thread_time()
        try:
            found = compute(nodes)
        finally:
            self._depth = 0
            self._spent += time.thread_time() - begun - (limits.computed - before)
        frame = usercode.user_frame()
        place = None if frame is None else (frame.f_code, frame.f_lineno)
        if place is not None:
            self._repeats += place in self._places
            self._places.add(place)
        if self._repeats >= limits.REPEATS and self._spent > limits.PATIENCE * limits.SOON:
            self._go_on()
        return found

    def _go_on(self) -> None:
        """Replace lazy values by arrays for the rest of the cell."""
        text, self._text = self._text, None
        body = text.partition("\n")[2] if text.startswith("%%") else text  # type: ignore[union-attr]
        source = self._shell.transform_cell(body)
        try:
            parsed, code = parse(source, "<cell>"), compile(source, "<cell>", "exec")
        except SyntaxError:  # of a magic's own text, or of a cell that waits
            return
        space: dict[str, Any] = self._shell.user_ns
        names = [*parsed.reads, *parsed.binds]
        if _values_do(code, names, space):
            self._arrays = AsArrays(names, parsed.binds, space)


def _values_do(code: CodeType, reads: Sequence[str], space: Mapping[str, Any]) -> bool:
    """Return whether code that reads these names does the same with arrays as with lazy values."""
    there = [space[n] for n in reads if n in space]
    codes = [code, *(f.__code__ for f in functions_of(there, space))]
    names = frozenset[str]().union(*(named(c, "LOAD_NAME", "LOAD_GLOBAL") for c in codes))
    attributes = frozenset[str]().union(*(named(c, "LOAD_ATTR", "LOAD_METHOD") for c in codes))
    read = [space[n] for n in names if n in space]
    alone = {
        n for n in _of_lazy_alone() & attributes if not any(isinstance(v, ModuleType) and hasattr(v, n) for v in read)
    }
    return not alone and _SHELL.isdisjoint(names) and not any(map(_is_own, read))


def _is_own(value: Any) -> bool:
    """Return whether a value is of this package, a lazy value apart."""
    owner = value if isinstance(value, type) else type(value)
    return not isinstance(value, Tensor) and _OWN in {
        package_of(owner),
        str(getattr(value, "__name__", "")).partition(".")[0],
    }


@cache
def _of_lazy_alone() -> frozenset[str]:
    """Return the names of what lazy values have, and arrays and numbers of NumPy's have not."""
    return frozenset({*dir(Tensor), *hooks.methods} - {*dir(np.ndarray)} - {*dir(np.float64)})
