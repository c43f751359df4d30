"""Containers of arrays: tuples, lists, dicts, dataclasses and tables, flattened into leaves and rebuilt."""

from __future__ import annotations

import dataclasses
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np

from tensormagic.capture.foreign import rebuilt_containers
from tensormagic.capture.inputs import door
from tensormagic.capture.inputs.door import is_table, numbers_of
from tensormagic.capture.numbers.deferred import Deferred
from tensormagic.capture.tables import mixed_frames
from tensormagic.capture.tables.labelled import Labelled, structure_of, with_labels
from tensormagic.capture.values.list_elements import Outgrown
from tensormagic.capture.values.value import Tensor

OF_NUMBERS: dict[type, Callable[..., Any]] = {
    slice: slice
}  # classes with a start, a stop and a step, and how one is made of these
_LEAVES = {np.ndarray, Tensor, float, int, bool, complex, np.float64}  # classes of leaves, recognised at once


Build = Callable[[Iterator[Any]], Any]
Special = Callable[[Any, Callable[[], Build]], Build]  # flattens a container, given the usual function for its parts


class Rest(Iterator[Any]):
    """An iterator over values for the leaves of a tree, from one ``run`` of a program."""

    __slots__ = ("_values", "run")

    def __init__(self, values: Iterable[Any], run: Any) -> None:
        self._values = iter(values)
        self.run = run

    def __next__(self) -> Any:
        return next(self._values)


def flatten(tree: Any, special: Special | None = None) -> tuple[list[Any], Build]:
    """Return the leaves of ``tree`` in order, and a function that rebuilds it with others; ``special`` flattens certain containers.

    Examples
    --------
    >>> leaves, build = flatten({"a": (1, 2), "b": None})
    >>> leaves
    [1, 2]
    >>> build(iter([3, 4]))
    {'a': (3, 4), 'b': None}
    """
    leaves: list[Any] = []
    return leaves, _collect(tree, leaves, special)


def computed(tree: Any, special: Special | None = None) -> tuple[list[Any], Build]:
    """Return the computed leaves of a result, like ``flatten``: texts, ranges, enumerations and huge integers stay in place.

    Examples
    --------
    >>> leaves, build = computed((1.0, "converged"))
    >>> leaves, build(iter([2.0]))
    ([1.0], (2.0, 'converged'))
    """
    leaves, build = flatten(tree, special)
    stays = [_is_told(v) for v in leaves]
    if not any(stays):
        return leaves, build

    known = [
        v if told else None for v, told in zip(leaves, stays, strict=True)
    ]  # the rebuilding function does not hold what is computed

    def completed(rest: Iterator[Any]) -> Any:
        return build(
            Rest([v if told else next(rest) for v, told in zip(known, stays, strict=True)], getattr(rest, "run", None))
        )

    return [v for v, told in zip(leaves, stays, strict=True) if not told], completed


def _is_told(value: Any) -> bool:
    if type(value) is int:  # more than 64 bits: unchanged, since no array holds it
        return not -(2**63) <= value < 2**63
    return type(value) in _CONSTANT or (isinstance(value, Enum) and not isinstance(value, float))


_CONSTANT = {
    *(str, bytes, range, slice, type, type(...), type(NotImplemented)),
    *(Fraction, Decimal, np.datetime64, np.timedelta64),
}


def tensors_in(tree: Any) -> list[Tensor]:
    """Return the lazy arrays in a value of any kind; other parts are not searched."""
    if isinstance(tree, Deferred):
        return [t for part in tree.parts for t in tensors_in(part)]
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, Outgrown):
        return [t for t in tree.stacks if isinstance(t, Tensor)]
    if isinstance(tree, dict):
        return [t for v in tree.values() for t in tensors_in(v)]
    if isinstance(tree, tuple | list):
        return [t for v in tree for t in tensors_in(v)]
    return [t for name in _names(tree) for t in tensors_in(getattr(tree, name))] if _is_record(tree) else []


def _collect(tree: Any, leaves: list[Any], special: Special | None = None) -> Build:
    if isinstance(tree, Deferred):
        again, inside = tree.again, [_collect(part, leaves, special) for part in tree.parts]
        return lambda rest: again([build(rest) for build in inside])
    if special is not None and (is_container(tree) or _has_more(tree)):
        return special(tree, lambda: _taken_apart(tree, leaves, special))
    return _taken_apart(tree, leaves, special)


def _taken_apart(tree: Any, leaves: list[Any], special: Special | None) -> Build:
    kind: Any = type(tree)  # the rebuilding function does not hold the container, nor the lazy values in it
    if type(tree) in _LEAVES or _has_more(tree):
        leaves.append(tree)
        return next
    if tree is None or isinstance(tree, np.dtype):
        return lambda _rest: tree
    if isinstance(tree, Labelled):
        leaves.append(tree)
        return lambda rest: _relabelled(next(rest), tree)
    if is_table(tree) and (build := _of_table(tree, leaves)) is not None:
        return build
    if isinstance(tree, Outgrown):
        leaves += tree.stacks
        return lambda rest: tree.listed([next(rest) for _ in tree.stacks])
    if isinstance(tree, dict):
        items = {_key(k): _collect(v, leaves, special) for k, v in tree.items()}
        return lambda rest: rebuilt_containers.mapping(kind, [(k, build(rest)) for k, build in items.items()])
    if isinstance(tree, tuple | list):
        parts = [_collect(v, leaves, special) for v in tree]
        return lambda rest: rebuilt_containers.sequence(kind, [build(rest) for build in parts])
    if _is_record(tree):
        names = _names(tree)
        parts = [_collect(getattr(tree, n), leaves, special) for n in names]
        return lambda rest: rebuilt_containers.record(
            kind, {n: build(rest) for n, build in zip(names, parts, strict=True)}
        )
    return _of_numbers(tree, leaves)


def _key(key: Any) -> Any:
    """Return the key of a dictionary: a captured size becomes its number, which the capture recorded when it was hashed."""
    if isinstance(key, tuple):
        parts = [_key(part) for part in key]
        return key if all(map(operator.is_, parts, key)) else rebuilt_containers.sequence(type(key), parts)
    known = key.specialised() if isinstance(key, Tensor) else None
    return key if known is None else known


def _of_numbers(tree: Any, leaves: list[Any]) -> Callable[[Iterator[Any]], Any]:
    """Flatten a leaf; a slice or a range of captured numbers is split into these."""
    numbers = [tree.start, tree.stop, tree.step] if type(tree) in OF_NUMBERS else []
    if not any(isinstance(v, Tensor) for v in numbers):
        leaves.append(door.variable(tree))
        return next
    kind, parts = OF_NUMBERS[type(tree)], [_collect(v, leaves) for v in numbers]
    return lambda rest: kind(*(build(rest) for build in parts))


def _of_table(table: Any, leaves: list[Any]) -> Callable[[Iterator[Any]], Any] | None:
    array = numbers_of(table, str(getattr(table, "name", None) or "table"))
    if array is None:
        return mixed_frames.collect(table, leaves)
    leaves.append(array)
    return lambda rest: _labelled(next(rest), table)


def _labelled(value: Any, table: Any) -> Any:
    return with_labels(value, table) if isinstance(value, Tensor) else value


def _relabelled(value: Any, like: Labelled) -> Any:
    return Labelled(value, like.labels, like.columns) if isinstance(value, Tensor) else value


def structure(tree: Any) -> Any:
    """Return a key that two trees of the same form have in common."""
    if type(tree) in _LEAVES or _has_more(tree):
        return ...
    if tree is None or isinstance(tree, np.dtype):
        return tree
    if isinstance(tree, Deferred):
        return (tree.form, tuple(structure(part) for part in tree.parts))
    if is_table(tree):
        columns = None if numbers_of(tree, "table") is not None else mixed_frames.arrays_of(tree)
        return structure_of(tree) if columns is None else mixed_frames.form_of(tree, columns)
    if isinstance(tree, Outgrown):
        return (Outgrown, len(tree.stacks))
    if isinstance(tree, dict):
        return (type(tree), tuple((type(k), k, structure(v)) for k, v in tree.items()))
    if isinstance(tree, tuple | list):
        return (type(tree), tuple(structure(v) for v in tree))
    if _is_record(tree):
        return (type(tree), tuple((name, structure(getattr(tree, name))) for name in _names(tree)))
    return ...


def _is_record(tree: Any) -> bool:
    """Return whether an object is a dataclass instance with no attributes beside its fields, so that it can be rebuilt."""
    if type(tree) is rebuilt_containers.Gradient:
        return True
    if not dataclasses.is_dataclass(tree) or isinstance(tree, type):
        return False
    fields = dataclasses.fields(tree)
    return all(f.init for f in fields) and getattr(tree, "__dict__", {}).keys() <= {f.name for f in fields}


def _names(record: Any) -> list[str]:
    """Return the field names of a dataclass, or of a gradient record."""
    return (
        list(vars(record))
        if type(record) is rebuilt_containers.Gradient
        else [f.name for f in dataclasses.fields(record)]
    )


def _has_more(tree: Any) -> bool:
    """Return whether a container has attributes besides its items, in which case it is not flattened."""
    if type(tree) in _PLAIN or not isinstance(tree, dict | tuple | list):
        return False
    return isinstance(tree, defaultdict) or bool(getattr(tree, "__dict__", None))


_PLAIN = {dict, tuple, list}


def is_container(value: Any) -> bool:
    """Return whether a value is flattened."""
    return (isinstance(value, dict | tuple | list) and not _has_more(value)) or _is_record(value)


def parts_in(container: Any) -> list[Any]:
    """Return the direct parts of a container, with the keys of a dictionary."""
    if isinstance(container, dict):
        return [*container, *container.values()]
    if isinstance(container, tuple | list):
        return list(container)
    return [getattr(container, name) for name in _names(container)]


def items_of(container: Any) -> list[Any]:
    """Return what a container holds, in order; of a dictionary, the values."""
    return list(container.values()) if isinstance(container, dict) else parts_in(container)


def with_items(container: Any, items: Sequence[Any]) -> Any:
    """Return a container like another one, with other items."""
    kind: Any = type(container)
    if isinstance(container, dict):
        return rebuilt_containers.mapping(kind, zip(container, items, strict=True))
    if isinstance(container, tuple | list):
        return rebuilt_containers.sequence(kind, items)
    return rebuilt_containers.record(kind, dict(zip(_names(container), items, strict=True)))


def holds_deferred(tree: Any) -> bool:
    """Return whether a tree contains a value that is built only once a graph has run."""
    return isinstance(tree, Deferred) or (is_container(tree) and any(map(holds_deferred, items_of(tree))))
