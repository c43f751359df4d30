"""Lists that a rolled loop appends to: each appended value goes into an array with an axis for the iterations."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers import undecided_dtypes
from tensormagic.capture.numbers.classes import Classes
from tensormagic.capture.staging.branches.merged_values import Parts, apart, is_number
from tensormagic.capture.staging.regions import zeros_of
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.staging.trials.trial import Outcome
from tensormagic.capture.staging.trials.world import Journaled, World
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.list_elements import Stack, list_of, numbers_in
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node, as_size
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ir.type import Type, hint
from tensormagic.ops.move import reshape
from tensormagic.ops.update import set_at

FEW = 8  # iterations up to which Python fills a list: its elements are values of their own then
MOST = 64  # values that one iteration appends


@dataclass(frozen=True, eq=False)
class Append:
    """Represents one value that every iteration appends to a list.

    Parameters
    ----------
    into
        The list.
    parts
        The value, as parts.
    buffers
        For each of its numbers and arrays, the array that it is; None for a number.
    classes
        For each, the classes of a number, where that is data-dependent.
    value
        The value of the iteration that was traced.
    """

    into: list[Any]
    parts: Parts
    buffers: list[Buffer | None]
    classes: list[Classes | None]
    value: Any

    @property
    def nodes(self) -> list[Node]:
        """Return the nodes that an iteration keeps of the value: its numbers and arrays, then class codes."""
        return [*self.parts.nodes, *(c.code for c in self.classes if c is not None)]


def own_lists(
    world: World, functions: Sequence[Any], names: Sequence[str], more: Sequence[list[Any] | Journaled]
) -> None:
    """Replace lists by journaled ones that may grow in an iteration: those reachable only by one of ``names``, and ``more``."""
    inside = {
        id(v)
        for container, _ in world.containers
        if isinstance(container, list | MutableMapping)
        for v in _items(container)
    }
    slots = [s for s in world.variables.values() if type(s.get()) is list]
    for slot in slots:
        value = slot.get()
        alone = sum(s.get() is value for s in slots) == 1 and id(value) not in inside
        readers = world.readers.get((id(slot.holder), slot.key), [])
        if slot.name in names and alone and all(any(r is f for f in functions) for r in readers):
            world.growing[id(value)] = value
    for value in more:
        if isinstance(value, Journaled):
            world.containers.append((value.state, dict(value.state)))
            continue
        world.growing[id(value)] = value
        world.containers.append((value, list(value)))


def _items(container: Any) -> list[Any]:
    return list(container.values()) if isinstance(container, MutableMapping) else container


def appended(outcome: Outcome) -> list[Append]:
    """Return the values that an iteration has appended, in order."""
    _none_inside([v for _, new in outcome.grown for v in new], [*outcome.slots.values()])
    found = [outcome.seen(lambda value=v, into=into: _taken(into, value)) for into, new in outcome.grown for v in new]
    if len(found) > MOST:
        raise NeedsPython(f"an iteration appends more than {MOST} values to a list", "Append one array of them.")
    buffers = [b for a in found for b in a.buffers if b is not None]
    if any(b.born < outcome.started for b in buffers) or len(set(map(id, buffers))) < len(buffers):
        raise NeedsPython("an array that also has another name is appended to a list", "Append a copy of it.")
    return found


_HOLDERS = list, dict  # values that can be changed by another name


def _none_inside(values: list[Any], named: list[Any]) -> None:
    """Refuse appended values with a list that has a name or occurs elsewhere: what remains of an iteration has it once."""
    inside = [part for v in values for part in _holders_in(v)]
    others = {id(v) for v in (*values, *named) if isinstance(v, _HOLDERS)}
    if len({*map(id, inside)}) < len(inside) or any(id(part) in others for part in inside):
        raise NeedsPython("a list in what is appended to a list also has another name or place", "Append a copy of it.")


def _holders_in(value: Any) -> Iterator[Any]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for part in parts:
        if isinstance(part, _HOLDERS):
            yield part
        yield from _holders_in(part)


def _taken(into: list[Any], value: Any) -> Append:
    numbers = numbers_in(value)
    if numbers is not None and not undecided_dtypes.is_undecided(numbers.node):
        return _taken_whole(into, value, numbers)
    parts = apart(value, asked=True)
    if not parts.numeric:
        raise NeedsPython("a value that an iteration appends to a list is not a number", "Append numbers and arrays.")
    if any(nodes_of(s) for n in parts.nodes for s in n.type.shape):
        raise NeedsPython(
            "a value appended to a list differs in shape from iteration to iteration",
            "Append values of the same shape.",
        )
    leaves = [v for v in flatten(value)[0] if is_number(v)]
    arrays = [v.place.buffer if isinstance(v, Tensor) and v.type.form == "array" else None for v in leaves]
    return Append(into, parts, arrays, [_several(n) for n in parts.nodes], value)


def _taken_whole(into: list[Any], value: list[Any], numbers: Stack) -> Append:
    """Return a list made by an inner loop as one appended array, rather than as single numbers."""
    count, form = len(numbers.elements), numbers.form
    parts = Parts((numbers.node,), (None,), (count, form), lambda rows: list_of(rows[0], form, count))
    return Append(into, parts, [None], [None], value)


def _several(number: Node) -> Classes | None:
    """Return the possible classes of a number of data-dependent class; None if there is one class."""
    if not number_classes.is_number(number.type) or not number_classes.followed():
        return None
    found = number_classes.classes_of(number)
    if found is None and number_classes.are_needed():
        raise NeedsPython(
            "a number whose class is data-dependent is appended to a list", "Append numbers of one class: float(x)."
        )
    return None if found is None or len(found.types) == 1 else found


def start_of(value: Node, count: Size) -> Node:
    """Return the array that the appended values go into, as it is before the first iteration."""
    return zeros_of(Type(value.type.dtype, (count, *value.type.shape)))


def put(stack: Node, value: Node, index: Node) -> Node:
    """Return ``stack`` with the value of one iteration stored at ``index``."""
    place: Any = as_size(index)
    whole = tuple((0, s, 1) for s in value.type.shape)
    return set_at(stack, reshape(value, (1, *value.type.shape)), ((place, 1, 1), *whole))


class Kept(NamedTuple):
    """Represents what the last iteration has appended: where its arrays, lists and dictionaries are now."""

    arrays: dict[Buffer, list[Buffer]]
    holders: list[tuple[Any, Any]]


def extend(found: Sequence[Append], ends: Sequence[Node], *, asked: bool) -> Kept:
    """Extend the lists by what all iterations have appended; return where that of the last iteration is now.

    ``asked``: values are known, and with them the classes of numbers.
    """
    given, count = iter(ends), int(hint(ends[0].type.shape[0]) or 0)
    columns: dict[int, tuple[list[Any], list[list[Any]]]] = {}
    kept, once = Kept({}, []), dict[int, list[Any]]()
    for one in found:
        own = [next(given) for _ in one.parts.nodes]
        classes = [None if c is None else Classes(next(given), c.types) for c in one.classes]
        types = number_classes.computed(classes if asked else [None] * len(classes))
        each = zip(own, one.parts.nodes, classes, types, strict=True)
        stacks = [Stack(s, n.type.form, count, c, known) for s, n, c, known in each]
        for buffer, stack in zip(one.buffers, stacks, strict=True):
            if buffer is not None:
                kept.arrays.setdefault(buffer, []).append(stack.place.buffer)
        rows = [one.parts.build([s.elements[k] for s in stacks]) for k in range(count)]
        if isinstance(one.value, _HOLDERS):
            rows = once.setdefault(id(one.value), rows)  # one list may be appended to two
            kept.holders.extend((one.value, row) for row in rows[-1:])
        columns.setdefault(id(one.into), (one.into, []))[1].append(rows)
    for into, rows in columns.values():
        into.extend(value for iteration in zip(*rows, strict=True) for value in iteration)
    return kept
