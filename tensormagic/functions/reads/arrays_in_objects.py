"""Arrays inside containers and objects as inputs of a trace, if a function stores into them in place: ``self.w -= g``.

A record of what the function can read lists them. While the function is captured, lazy arrays are put into their
places; stores are then done to the arrays, at each call. The same record undoes the changes of a first attempt.
"""

from __future__ import annotations

import gc
import operator
from array import array
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CellType, MemberDescriptorType
from typing import Any

import numpy as np

from tensormagic.capture.foreign import rebuilt_containers
from tensormagic.capture.numbers.deferred import Deferred
from tensormagic.capture.random import generators
from tensormagic.capture.stores.holding import is_own
from tensormagic.capture.stores.overlap import memory_of, share
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.reads.name_reads import CellSpace, Read
from tensormagic.functions.reads.record import ANYTHING, MISSING, Check, Record
from tensormagic.ir.errors import CaptureError, SharedArgumentsError
from tensormagic.ir.plain_texts import key_text

LIMIT = 500  # arrays that may be inputs


@dataclass(eq=False)
class Inside(Mapping[str, Any]):
    """The place of an array inside objects, used like the dictionary that holds a name.

    Parameters
    ----------
    name
        As the user would write it: ``p['w']``.
    places
        The dictionaries and lists that hold it, each with the key or index.
    moving
        Whether another value of the same type may stand there at each call (``moving.py``): a number or array, in any
        holder.
    apart
        Whether it is a variable of a derivative (``apart.py``).
    """

    name: str
    places: list[tuple[Any, Any]]
    moving: bool = False
    apart: bool = False

    @property
    def holder(self) -> Any:
        """The holder of the first place; a tuple itself."""
        found = self.places[0][0]
        return found.own if isinstance(found, InTuple) else found

    @property
    def spot(self) -> tuple[int, Any]:
        """The identity of the first place, valid while its holder lives."""
        return self.spots[0]

    @property
    def spots(self) -> list[tuple[int, Any]]:
        """The identities of all places; for a place in a tuple, that of the tuple."""
        return [(id(holder.own if isinstance(holder, InTuple) else holder), key) for holder, key in self.places]

    def __getitem__(self, name: str) -> Any:
        value = held(*self.places[0])
        if any(held(*place) is not value for place in self.places[1:]):
            raise KeyError(name)  # the places no longer hold one array
        if not (type(value) is np.ndarray or generators.is_generator(value) or (self.moving and is_number(value))):
            raise KeyError(name)
        return value

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __iter__(self) -> Iterator[str]:
        return iter((self.name,))

    def __len__(self) -> int:
        return 1


def is_number(value: Any) -> bool:
    """Return whether a value is a real or complex number of Python or NumPy, and no integer."""
    return isinstance(value, float | complex | np.inexact)


@dataclass(eq=False)
class InTuple:
    """A tuple as a holder of its items: to store one, another tuple is put in its place.

    Parameters
    ----------
    own
        The original tuple, which is put back once all its items are back.
    place
        The holder of the tuple, and the key there; None if it cannot be replaced.
    """

    own: tuple[Any, ...]
    place: tuple[Any, Any] | None

    def put(self, key: int, value: Any) -> None:
        """Replace the tuple by one with another item."""
        holder, where = self.place or (None, None)
        items = [*held(holder, where)]
        items[key] = value
        own = all(map(operator.is_, items, self.own))
        put(holder, where, self.own if own else rebuilt_containers.sequence(type(self.own), items))


def held(holder: Any, key: Any) -> Any:
    """Return the value in a dictionary, list, tuple, closure cell, class or object with slots, or ``MISSING`` if there is none."""
    try:
        if isinstance(holder, InTuple):
            return held(*holder.place)[key] if holder.place else MISSING
        if isinstance(holder, dict | list | deque):
            return holder[key]
        if isinstance(holder, CellType):
            return holder.cell_contents
        return vars(holder)[key] if isinstance(holder, type) else object.__getattribute__(holder, key)
    except (LookupError, AttributeError, ValueError):
        return MISSING


def put(holder: Any, key: Any, value: Any) -> None:
    """Store a value into a holder."""
    if isinstance(holder, dict | list | deque):
        holder[key] = value
    elif isinstance(holder, InTuple):
        holder.put(key, value)
    elif isinstance(holder, CellType):
        holder.cell_contents = value
    elif isinstance(holder, type):
        type.__setattr__(holder, key, value)
    else:
        object.__setattr__(holder, key, value)


def remove(holder: Any, key: Any) -> None:
    """Delete an entry of a dictionary, of a class, or of an object with slots."""
    if isinstance(holder, dict):
        del holder[key]
    else:
        (type if isinstance(holder, type) else object).__delattr__(holder, key)


def _keys(holder: Any, key: Any) -> Iterable[Any]:
    if isinstance(holder, dict):
        return list(holder)
    return range(len(holder)) if isinstance(holder, list | deque) else (key,)


def arrays_in(record: Record) -> tuple[tuple[str, Inside], ...]:
    """Return the arrays in containers and objects among what was read."""
    found: dict[int, Inside] = {}
    for check in record.checks:
        for place, name in places_of(check):
            value = held(*place)
            if generators.is_generator(value) or (type(value) is np.ndarray and not value.dtype.hasobject):
                found.setdefault(id(value), Inside(name, [])).places.append(place)
    return tuple((space.name, space) for space in found.values()) if len(found) <= LIMIT else ()


def memory_in(record: Record, inputs: Iterable[tuple[Read, Any]]) -> tuple[Any, ...]:
    """Return the objects with memory among what was read, outside of ``inputs``, which are given with their values in a call."""
    inputs = list(inputs)
    spots = {spot for read, _ in inputs for spot in _spots_of(read)}
    free, lazy = set[int](), {id(value) for _, value in inputs}
    for check in record.checks:
        if check.place is not None:
            there = check.operands[2] if check.kind == "items" else [check.operands[2]]  # the values before the trace
            found = [(id(holder), key) in spots for (holder, key), _ in places_of(check)]
            if len(found) != len(there):
                found = [False] * len(there)
            for is_input, value in zip(found, there, strict=True):
                (lazy if is_input else free).add(id(value))
    there = (record.there() or {}).values()
    return tuple([v for v in there if (id(v) in free or id(v) not in lazy) and memory_of(v)])


def _spots_of(read: Read) -> Iterable[tuple[int, Any]]:
    name, space = read
    if isinstance(space, Inside):
        return [(id(holder), key) for holder, key in space.places]
    return [(id(space.cell), None) if isinstance(space, CellSpace) else (id(space), name)]


def places_of(check: Check) -> Iterable[tuple[tuple[Any, Any], str]]:
    """Return the places that a check covers, each with the user's name for it."""
    if check.place is None:
        return []
    if check.kind != "items":
        return [(check.place, check.told)]
    holder = check.place[0]
    keys: Iterable[Any] = holder if isinstance(holder, dict) else range(len(holder))
    return [((holder, key), f"{check.told}[{key_text(key)}]") for key in keys]


HOLDING = dict | list | deque


@contextmanager
def placed(reads: Sequence[Read], stand_ins: Sequence[Any]) -> Generator[None]:
    """Put lazy arrays in the places of the arrays for the duration of the block."""
    inside = [(r[1], lazy) for r, lazy in zip(reads, stand_ins, strict=True) if isinstance(r[1], Inside)]
    arrays = {id(lazy): space[space.name] for space, lazy in inside}
    every = [place for space, _ in inside for place in space.places]
    places = {(id(h), None if isinstance(h, HOLDING) else key): (h, key) for h, key in every}
    try:
        for space, lazy in inside:
            for holder, key in space.places:
                put(holder, key, lazy)
        yield
    finally:
        for holder, one in places.values():
            for key in _keys(holder, one):
                if id(now := held(holder, key)) in arrays:  # where it was, or where the code has put it
                    put(holder, key, arrays[id(now)])


def refuse_kept(left: Sequence[Any], buffers: Sequence[Any], label: str) -> None:
    """Raise for code that has kept an array that it stores into, or a part of it, in a way that cannot be replaced."""
    for value in left:
        if value.place.buffer in buffers and value.place.buffer.stored:
            raise CaptureError(
                f"{label} stores into {value.place.buffer.name}, and also keeps it, or a part of it, in another object",
                "Keep a copy there.",
            )


def refuse_shared(before: Record, values: Sequence[Any], label: str) -> None:
    """Raise for a trace that has stored into an object's array that shares memory with an input: a run would read the change."""
    if not before.changed():
        return
    stored = [c for c in before.checks if c.kind == "array" and not c.holds()]
    shared = [c for c in stored if any(isinstance(v, np.ndarray) and share(c.operands[0], v) for v in values)]
    if shared:
        raise SharedArgumentsError(
            f"{label} stores into {shared[0].told}, which shares memory with an argument", "Pass a copy: x.copy()."
        )


def taken_back(record: Record) -> bool:
    """Restore what can be restored, and return whether everything is as it was."""
    if record.unseen():
        if record.rest is not None:
            taken_back(record.rest)
        return False
    if not record.changed():
        return True
    keys = {id(c.operands[0]): c.operands[2] for c in record.checks if c.kind == "items"}
    for check in record.checks:
        _put_back(check, keys)
    for check in record.checks:
        if check.kind == "names" and type(check.operands[0]) is dict:
            _put_names(check.operands[0], check.operands[2])
        elif check.kind == "names" and check.place is not None:
            for name in check.operands[0].keys() - set(check.operands[2]):
                remove(check.place[0], name)
    return not record.changed()


def not_again(label: str, before: Record) -> CaptureError:
    """Return the refusal to capture a call a second time where the changes of the first capture cannot be undone."""
    return CaptureError(
        f"{label} has to be captured again for these values, and what it may have changed in {before.why} cannot be undone",
        "Give it values of that as arguments, or call it without tm.tensor.",
    )


def _put_names(attributes: dict[str, Any], before: tuple[str, ...]) -> None:
    """Restore an object's attributes and their order: new ones are removed, deleted ones return."""
    if tuple(attributes) != before and all(name in attributes for name in before):
        kept = [(name, attributes[name]) for name in before]
        attributes.clear()
        attributes.update(kept)


@contextmanager
def undoing(before: Record) -> Generator[None]:
    """Undo what a capture has changed in objects if the block fails, as they would otherwise hold values without a call."""
    try:
        yield
    except BaseException:
        taken_back(before)
        raise


def _put_back(check: Check, keys: Mapping[int, Any]) -> None:
    of, _, before = check.operands
    own = _PUT_BACK.get(check.kind)
    if own is not None:
        own(of, before)
    elif check.kind == "items":
        _put_items(of, before, keys)
    elif check.kind != "names" and check.place is not None and held(*check.place) is not before:
        remove(*check.place) if before is MISSING else put(*check.place, before)


def _put_array(of: Any, before: Any) -> None:
    if of.flags.writeable:
        np.copyto(of, np.frombuffer(before[3], before[0]).reshape(before[1]))


def _put_dict(of: Any, before: Any) -> None:
    if vars(of) is not before:
        of.__dict__ = before


def _put_cache(of: Any, before: Any) -> None:
    if not any(before[:2]) and not before[3]:  # otherwise its previous contents are unknown
        of.cache_clear()


def _put_buffer(of: Any, before: Any) -> None:
    of.seek(0)
    of.truncate()
    of.write(before[0])
    of.seek(before[1])


def _put_memory(of: Any, before: Any) -> None:
    of[:] = array(of.typecode, before) if isinstance(of, array) else before


_PUT_BACK: dict[str, Callable[[Any, Any], None]] = {
    "array": _put_array,
    "dict": _put_dict,
    "state": lambda of, before: of.setstate(before),
    "cache": _put_cache,
    "buffer": _put_buffer,
    "memory": _put_memory,
}


def _put_items(of: Any, before: Sequence[Any], keys: Mapping[int, Any]) -> None:
    """Restore the contents of a container; inputs of the trace stay."""
    if any(old is ANYTHING for old in before):
        before = [now if old is ANYTHING else old for now, old in zip(of, before, strict=False)]
    if isinstance(of, list | set | deque):
        rebuilt_containers.refill(of, before)
    elif type(of) is _VALUES and id(mapped := _owner(of)) in keys:
        rebuilt_containers.refill(mapped, dict(zip(keys[id(mapped)], before, strict=True)))


def as_values(
    left: Mapping[int, tuple[Any, Any]], record: Record, made: Sequence[Any], given: Mapping[int, Any]
) -> None:
    """Replace lazy values that a call has left in objects by NumPy's numbers and arrays.

    Covers the objects of a record, and those the call has ``made`` and returns. A container that is ``given`` back, by
    its identity in the trace, is replaced by the one that the call returns.
    """
    new = {id(container) for container in given.values()}  # in place of a container of the trace, which nobody holds
    left = {**left, **{key: (type(v), v) for key, v in given.items() if key not in new}}
    for check in record.checks:
        for place, _ in places_of(check):
            _put_value(place, left)
        if check.kind == "items":
            _put_keys(check.operands[0], left)
    seen, pending = set[int](), [*made]
    while pending:
        value = pending.pop()
        if id(value) in seen or not (isinstance(value, HOLDING | tuple | set) or is_own(value)):
            continue
        seen.add(id(value))
        _put_keys(value, left)
        for holder, key in () if isinstance(value, tuple | set) else _places_in(value):
            _put_value((holder, key), left)
            pending.append(held(holder, key))
        pending += value if isinstance(value, tuple | set) else ()


def _put_keys(container: Any, left: Mapping[int, tuple[Any, Any]]) -> None:
    """Replace lazy keys of a dictionary and lazy members of a set by values."""
    if isinstance(container, dict | set):
        keys = [_valued(key, left) for key in container]
        if not all(map(operator.is_, keys, container)):
            now = dict(zip(keys, container.values(), strict=True)) if isinstance(container, dict) else keys
            rebuilt_containers.refill(container, {})
            rebuilt_containers.refill(container, now)


def _put_value(place: tuple[Any, Any], left: Mapping[int, tuple[Any, Any]]) -> None:
    value = held(*place)
    found = _valued(value, left)
    if found is not value:
        put(*place, found)


def _places_in(value: Any) -> list[tuple[Any, Any]]:
    """Return the places of a container, or of an object."""
    if isinstance(value, HOLDING):
        return [(value, key) for key in _keys(value, None)]
    spaces = [getattr(value, "__dict__", {}), *(vars(c) for c in type(value).__mro__ if "__slots__" in vars(c))]
    return [
        (value, n)
        for n, v in [i for s in spaces for i in s.items()]
        if n in spaces[0] or isinstance(v, MemberDescriptorType)
    ]


def _valued(value: Any, left: Mapping[int, tuple[Any, Any]]) -> Any:
    """Return the Python value for a lazy one that the call has left: a number or array, or a text, None or object that depends on these."""
    if issubclass(type(value), Deferred):
        parts, build = flatten(value)
        return build(iter([_number(_valued(part, left)) for part in parts]))
    if not isinstance(value, tuple):
        known, found = left.get(id(value), (value, value))
        return found if known is value or known is type(value) else value
    parts = [_valued(v, left) for v in value]
    if all(map(operator.is_, parts, value)):
        return value
    return rebuilt_containers.sequence(type(value), parts)


def _number(value: Any) -> Any:
    """Return the value of a lazy number that occurs only in a text."""
    if not isinstance(value, Tensor):
        return value
    return value.item() if value.type.form == "python" else value.numpy()[()]


_VALUES = type({}.values())


def _owner(values: Any) -> Any:
    """Return the dictionary behind ``values()`` of a read-only mapping, or None."""
    return next((d for d in gc.get_referents(values) if isinstance(d, dict)), None)
