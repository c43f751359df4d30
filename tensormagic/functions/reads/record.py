"""Records of what a trace has read of Python's state, as checks that one generated function makes at each call.

A check compares the contents of a dictionary, a closure cell, a class, an object, a function or a container with its
contents before. Objects are compared by identity, numbers and texts by type and bits. It knows nothing of how the
reads were found.
"""

from __future__ import annotations

import builtins
import operator
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

from tensormagic.capture.foreign import side_effects

MISSING: Any = type("Missing", (), {"__repr__": lambda _: "missing"})()
_COMPARED = {int, str, bytes, bool}  # classes whose equal values are the same in every respect
ANYTHING: Any = type("Anything", (), {"__repr__": lambda _: "anything"})()  # stands for an input of the trace
_WRITTEN_OUT = 300  # checks in one generated function; more are made in a loop

# templates by kind of check; {k} is the number of the check
_TEXTS = {
    "entry": "a{k}(b{k}, M) is c{k}",
    "entry value": "((x := a{k}(b{k}, M)) is c{k} or same(x, c{k}))",
    "entries": "all(map(is_, map(a{k}.get, b{k}), c{k}))",
    "cell": "a{k}.cell_contents is c{k}",
    "cell value": "((x := a{k}.cell_contents) is c{k} or same(x, c{k}))",
    "type": "type(a{k}) is c{k}",
    "dict": "a{k}.__dict__ is c{k}",
    "bases": "a{k}.__mro__ is c{k}",
    "code": "a{k}.__code__ is c{k}",
    "defaults": "a{k}.__defaults__ is c{k}",
    "options": "a{k}.__kwdefaults__ is c{k}",
    "holds": "a{k}(b{k}) is c{k}",
    "holds value": "((x := a{k}(b{k})) is c{k} or same(x, c{k}))",
    "items": "(len(a{k}) == b{k} and all(map(is_, a{k}, c{k})) or same_items(a{k}, c{k}))",
    "names": "(len(a{k}) == b{k} and tuple(a{k}) == c{k})",
    "array": "same_array(a{k}, c{k})",
    "state": "a{k}.getstate() == c{k}",
    "memory": "bytes(a{k}) == c{k}",
    "cache": "tuple(a{k}.cache_info()) == c{k}",
    "table": "same_table(a{k}, c{k})",
    "buffer": "(a{k}.getvalue(), a{k}.tell()) == c{k}",
}


def bits(value: Any) -> Any:
    """Return the bits of a number of Python or NumPy, or None for anything else."""
    if type(value) is float:
        return struct.pack("d", value)
    if type(value) is complex:
        return struct.pack("dd", value.real, value.imag)
    if isinstance(value, np.generic):
        return value.dtype.str, value.tobytes()
    return None


def same(value: Any, before: Any) -> bool:
    """Return whether a value is unchanged: the same object, or a number or text of the same type and bits."""
    if value is before or before is ANYTHING:
        return True
    kind = type(value)
    if kind is not type(before):
        return False
    if kind in _COMPARED:
        return bool(value == before)
    if kind is tuple:
        return same_items(value, before)
    found = bits(value)
    return found is not None and found == bits(before)


def same_items(items: Any, before: Any) -> bool:
    """Return whether an iterable yields the same items."""
    return len(items) == len(before) and all(map(same, items, before))


def same_array(array: Any, before: tuple[Any, ...]) -> bool:
    """Return whether an array holds the bits that it held, of the same type, in the same form."""
    dtype, shape, strides, held = before
    return array.dtype == dtype and array.shape == shape and array.strides == strides and array.tobytes() == held


def same_table(table: Any, before: Any) -> bool:
    """Return whether a pandas table equals its copy, labels included."""
    names = [getattr(t, "name", None) for t in (table, before)], [t.index.names for t in (table, before)]
    return table.equals(before) and all(now == then for now, then in names)


@dataclass(frozen=True, eq=False)
class Check:
    """One thing that was read: the kind of check, its operands, the user's name, and its holder and key."""

    kind: str
    operands: tuple[Any, Any, Any]
    told: str
    place: tuple[Any, Any] | None = None

    def holds(self) -> bool:
        """Return whether the value is unchanged."""
        return _holding((self,))()


class Record:
    """What a trace has read, and whether it is unchanged.

    Parameters
    ----------
    checks
        What was read.
    why
        Something read that cannot be checked; empty if there is nothing. Otherwise the trace holds for one call only.
    lazy
        Which of that is a lazy value.
    typed
        Whether code run by Python itself (properties, operators) may ask for the types of what it reads.
    seen
        The objects examined.
    partial
        Whether it lacks what a trace is expected to turn into inputs: then it only says whether that trace has changed
        something.
    by_calls
        Whether only counted calls (``capture/foreign/side_effects.py``) can change what cannot be checked.
    """

    def __init__(
        self,
        checks: tuple[Check, ...],
        why: str = "",
        lazy: str = "",
        typed: Callable[[], bool] = bool,
        seen: Iterable[Any] = (),
        *,
        partial: bool = False,
        by_calls: bool = False,
    ) -> None:
        self.partial = partial
        self.rest: Record | None = None  # what can be looked into nevertheless, where something cannot be
        self._calls = side_effects.made() if by_calls else None
        self._seen = seen
        self.checks = checks
        self.typed = typed
        self.why = why
        self.lazy = lazy
        self._all = _holding(checks)
        self.holds: Callable[[], bool] = _never if why else self._all

    def there(self) -> dict[int, Any] | None:
        """Return the existing objects, by identity, or None if they are not known."""
        return None if self.why else {id(v): v for v in self._seen}

    def unseen(self) -> str:
        """Return what may have changed without a failing check; empty if nothing has."""
        return "" if self._calls is not None and self._calls == side_effects.made() else self.why

    def without(self, kind: str) -> Record:
        """Return the record without the checks of a kind."""
        if all(check.kind != kind for check in self.checks):
            return self
        return Record(
            tuple([c for c in self.checks if c.kind != kind]),
            self.why,
            self.lazy,
            self.typed,
            self._seen,
            partial=self.partial,
        )

    def changed(self) -> str:
        """Return the name of something that has changed; empty if nothing has."""
        return "" if self._all() else next((c.told for c in self.checks if not c.holds()), "")


def _never() -> bool:
    return False


def _holding(checks: tuple[Check, ...]) -> Callable[[], bool]:
    if len(checks) > _WRITTEN_OUT:
        parts = [_holding(checks[k : k + _WRITTEN_OUT]) for k in range(0, len(checks), _WRITTEN_OUT)]
        return lambda: all(part() for part in parts)
    space: dict[str, Any] = {
        "__builtins__": builtins, "M": MISSING, "same": same, "same_items": same_items, "same_array": same_array, "same_table": same_table,
        "is_": operator.is_, "type": type, "len": len, "all": all, "map": map,
    }  # fmt: skip
    for k, check in enumerate(checks):
        space[f"a{k}"], space[f"b{k}"], space[f"c{k}"] = check.operands
    exec(_code(tuple([c.kind for c in checks])), space)  # noqa: S102 (texts of this file)
    return space["holds"]


@lru_cache(maxsize=512)
def _code(kinds: tuple[str, ...]) -> CodeType:
    tests = " and ".join(_TEXTS[kind].format(k=k) for k, kind in enumerate(kinds)) or "True"
    text = f"def holds():\n    try:\n        return {tests}\n    except Exception:\n        return False\n"
    return compile(text, "<tensormagic check>", "exec")
