"""Runs loops that read numbers of arrays and only move them on the numbers themselves, in Python, as they are written.

A bubble sort of a list, counts in a dictionary, bins, a search. What an iteration reads of an array, or of a lazy
number, is a number that knows its origin; after the loop each of these is made lazy again, wherever it lies, so that
derivatives flow through it. Where a number computed from such numbers is left, or anything unknown occurs, all is
undone, and the loop is run as any other. Integers and booleans have no derivative: these are left as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.inputs.namespace import Module
from tensormagic.capture.python.bytecode import names_in
from tensormagic.capture.staging.branches.slots import UNBOUND
from tensormagic.capture.staging.loops.iterators import Enumerated, Reversed, Zipped
from tensormagic.capture.staging.loops.plain_loops import PlainLoop, is_of_numbers
from tensormagic.capture.staging.loops.ranges import After, Appended, Range, Rows
from tensormagic.capture.staging.trials.trial import trial
from tensormagic.capture.staging.trials.world import World
from tensormagic.capture.values.list_elements import Element
from tensormagic.capture.values.value import Tensor, extent

_ASKING = {"branch", "chosen", "both", "either", "compared", "contained", "repeat", "int", "indexed"}
_ROUNDING = {np.floor, np.ceil, np.trunc, np.rint, np.sign, np.isnan, np.isfinite, np.isinf, np.inf}
_EXACT = {int, bool, str, type(None), np.bool_, *(np.dtype(c).type for c in "bhilqBHILQ")}
_LAZY = {Tensor, Element}
_FIXED = (range, FunctionType, BuiltinFunctionType, type, ModuleType, Module)


class _NotOnlyMovedError(Exception):
    """Raised where a loop does more than move numbers."""


class _Double(np.float64):
    """Represents a float64 that knows the array element it comes from."""

    __slots__ = ("origin",)
    origin: Any


class _Single(np.float32):
    """Represents a float32 that knows the array element it comes from."""

    __slots__ = ("origin",)
    origin: Any


class _Pythons(float):
    """Represents a Python float that knows the lazy number it comes from."""

    __slots__ = ("origin",)
    origin: Any


_CLASSES: dict[type, Any] = {np.float64: _Double, np.float32: _Single, float: _Pythons}
_KNOWING = set(_CLASSES.values())


def _knowing(value: Any, origin: Any) -> Any:
    if type(value) in _EXACT:
        return value
    made = _CLASSES.get(type(value))
    if made is None:
        raise _NotOnlyMovedError
    found = made(value)
    found.origin = origin
    return found


class Elements:
    """Represents an array whose elements are read one by one."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: Tensor) -> None:
        self.array = array
        self.values: Any = None

    def __getitem__(self, index: Any) -> Any:
        if self.values is None:
            self.values = self.array.numpy()
        whole = index if type(index) is tuple else (index,)
        if len(whole) != self.values.ndim or not all(
            type(k) in _EXACT and isinstance(k, int | np.integer) for k in whole
        ):
            raise _NotOnlyMovedError
        return _knowing(self.values[index], (self.array, index))

    def __len__(self) -> int:
        return len(self.array)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __bool__(self) -> bool:
        raise _NotOnlyMovedError

    def __eq__(self, other: object) -> bool:
        raise _NotOnlyMovedError


class Moved(PlainLoop):
    """Represents a loop that Python runs on numbers.

    Parameters
    ----------
    items
        What is gone over.
    otherwise
        Runs the loop as any other.
    """

    def __init__(self, items: Any, otherwise: Callable[[], object]) -> None:
        super().__init__(items)
        self.otherwise = otherwise
        self.loses = False  # whether it calls functions that make Python floats of the numbers of arrays
        self.taken: dict[int, tuple[Any, Any]] = {}  # tensors and tuples by the ids of their stand-ins, with these
        self.given: dict[
            int, tuple[Any, Any, Any]
        ] = {}  # containers: what they held before, and what is put there instead
        self.known: set[int] = {id(np.inf)}  # floats that existed before the loop
        self.lazy: dict[int, tuple[Any, Any]] = {}  # the lazy values made for values that are left

    def begin(self, parts: Sequence[Callable[..., Any]]) -> None:
        """Find what the loop reaches, and replace lazy values by numbers that know their origin."""
        self.world = World(parts)
        if self.world.has_arrays or self.world.iterators or not self.world.is_whole:
            raise _NotOnlyMovedError
        self.before = {slot: slot.get() for slot in self.world.variables.values()}
        self.instead = {slot: self._taken(value) for slot, value in self.before.items() if not slot.internal}
        self.items = self._over(self.items)

    def _is_plain(self, value: Any, attribute: str) -> bool:
        asked = self._asked(value, attribute, np) if attribute else value if is_of_numbers(value) else None
        if asked is not None:
            return isinstance(asked, float | np.ufunc) and asked in _ROUNDING
        self.loses |= bool(attribute) or value is float or value is complex or getattr(value, "__self__", None) is math
        chooses = value is min or value is max  # with a derivative of its own
        return not chooses and super()._is_plain(value, attribute)

    # numbers in place of lazy values ---------------------------------------------------------------------------------------

    def _taken(self, value: Any) -> Any:
        kind = type(value)
        if kind in _EXACT or value is UNBOUND or isinstance(value, _FIXED):
            return value
        if kind in (float, complex, np.float64, np.float32, np.complex128):
            self.known.add(id(value))
            return value
        if id(value) in self.taken:
            return self.taken[id(value)][1]
        if id(value) in self.given:
            return value
        if kind in _LAZY:
            made = Elements(value) if value.ndim else _knowing(value.numpy(), value)
            self.loses |= type(made) is _Pythons
        elif kind is tuple:
            made = tuple(map(self._taken, value))
            if all(a is b for a, b in zip(made, value, strict=True)):
                return value
        elif kind in (list, dict, set):
            self._container(value)
            return value
        else:
            raise _NotOnlyMovedError
        self.taken[id(value)] = value, made
        self.lazy[id(made)] = made, value
        return made

    def _container(self, value: Any) -> None:
        self.given[id(value)] = value, value, value
        if type(value) is set:
            if not all(type(v) in _EXACT or type(v) in (float, tuple) for v in value):
                raise _NotOnlyMovedError
            held = given = value
        elif type(value) is list:
            held, given = value[:], [self._taken(v) for v in value]
        else:
            if not all(type(k) in _EXACT or type(k) is float for k in value):
                raise _NotOnlyMovedError
            held, given = dict(value), {k: self._taken(v) for k, v in value.items()}
        self.given[id(value)] = value, held, given

    def _over(self, items: Any) -> Iterable[Any]:
        """Return the iterable of numbers that Python iterates over in place of ``items``."""
        if isinstance(items, Range):
            bounds = items.start, items.stop, items.step
            if not all(type(b) is int for b in bounds):
                raise _NotOnlyMovedError
            return range(*bounds)
        if isinstance(items, Rows) and items.array.ndim == 1 and not items.pythons:
            return Elements(items.array)
        if isinstance(items, Enumerated) and type(items.start) is int:
            return enumerate(self._over(items.items), items.start)
        if isinstance(items, Zipped) and not items.strict:
            return zip(*map(self._over, items.parts), strict=False)
        if isinstance(items, After):
            return islice(iter(self._over(items.items)), items.taken, None)
        if isinstance(items, Reversed) and isinstance(found := self._over(items.items), range | Elements):
            return reversed(list(found))
        if isinstance(items, Appended):
            return [_knowing(v.numpy(), v) for v in map(items.at, range(int(extent(items.count()))))]
        raise _NotOnlyMovedError

    def __enter__(self) -> Any:
        self._put({slot: value for slot, value in self.instead.items() if value is not self.before[slot]}, 2)
        self.alarm = np.errstate(all="raise")  # what NumPy would warn of is reported where the loop is run as any other
        self.alarm.__enter__()
        return super().__enter__()

    def _put(self, slots: dict[Any, Any], which: int) -> None:
        for slot, value in slots.items():
            slot.set(value)
        for container, held, given in self.given.values():
            if held is not given:
                _fill(container, (held, given)[which - 1])

    # what is left ---------------------------------------------------------------------------------------------------

    def __exit__(self, *met: object) -> bool:
        super().__exit__()
        self.alarm.__exit__(None, None, None)
        error = met[1]
        try:
            if error is None:
                self._leave()
                return True
        except _NotOnlyMovedError:
            pass
        self.world.restore()
        if error is not None and not isinstance(error, Exception):
            return False
        try:
            self.otherwise()
        except BaseException as again:
            again.__context__ = None  # nothing refers to what was tried before
            raise
        return True

    def _leave(self) -> None:
        """Make values lazy again that came from lazy ones."""
        found: dict[Any, Any] = {}
        self.fills: list[tuple[Any, Any]] = []
        self.seen: set[int] = set()
        for slot, before in self.before.items():
            now = slot.get()
            found[slot] = before if now is self.instead.get(slot, before) else now
            if type(found[slot]) not in _LAZY:
                found[slot] = self._left(found[slot])
        for container, *_ in self.given.values():
            self._left(container)
        for slot, value in found.items():
            if slot.get() is not value:
                slot.set(value)
        for container, held in self.fills:
            _fill(container, held)

    def _left(self, value: Any) -> Any:
        kind = type(value)
        if kind in _EXACT or value is UNBOUND or isinstance(value, _FIXED):
            return value
        if id(value) in self.lazy:
            return self.lazy[id(value)][1]
        if kind in _KNOWING:
            made = value.origin if isinstance(value.origin, Tensor) else value.origin[0][value.origin[1]]
        elif kind is tuple:
            made = tuple(map(self._left, value))
            made = value if all(a is b for a, b in zip(made, value, strict=True)) else made
        elif kind in (list, dict, set):
            if id(value) not in self.seen:
                self.seen.add(id(value))
                self._left_in(value)
            return value
        elif id(value) in self.known or (kind is float and not self.loses):
            return value
        else:
            raise _NotOnlyMovedError
        self.lazy[id(value)] = value, made
        return made

    def _left_in(self, value: Any) -> None:
        if type(value) is set:
            if not all(type(v) in _EXACT for v in value):
                raise _NotOnlyMovedError
            return
        _, held, given = self.given.get(id(value), (value, (), ()))
        if type(value) is list:
            made: Any = [
                held[k] if k < len(held) and v is given[k] and type(held[k]) in _LAZY else self._left(v)
                for k, v in enumerate(value)
            ]
            changed = any(a is not b for a, b in zip(made, value, strict=True))
        else:
            if not all(type(k) in _EXACT or type(k) is float for k in value):
                raise _NotOnlyMovedError
            old, new = (dict(d) for d in (held, given))
            made = {
                k: old[k] if k in old and v is new[k] and type(old[k]) in _LAZY else self._left(v)
                for k, v in value.items()
            }
            changed = any(made[k] is not v for k, v in value.items())
        if changed:
            self.fills.append((value, made))


def _fill(container: Any, held: Any) -> None:
    if type(container) is list:
        container[:] = held
    elif type(container) is dict:
        container.clear()
        container.update(held)


def moved(
    items: Any, parts: Sequence[Callable[..., Any]], called: tuple[str, ...] | None, otherwise: Callable[[], object]
) -> Moved | None:
    """Return a loop to be run on numbers; None where that cannot be, or where nothing in it needs to know a number.

    Parameters
    ----------
    items
        What is gone over.
    parts
        The functions that the loop's parts have become.
    called
        What the loop calls; None where it is not simple.
    otherwise
        Runs the loop as any other.
    """
    if called is None or context.current() is None or not values_are_there() or trial() is not None:
        return None
    own: list[FunctionType] = [getattr(p, "__wrapped__", p) for p in parts]
    if _ASKING.isdisjoint(names_in(own[0].__code__)):
        return None
    found = Moved(items, otherwise)
    if not found.may_call(own[:1], called):
        return None
    try:
        found.begin(own)
    except _NotOnlyMovedError:
        return None
    return found
