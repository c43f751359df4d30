"""Lazy forms of Python's and NumPy's iterators whose items can be indexed by number: ``zip``, ``enumerate``, ``np.ndindex``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.capture.hooks import hooks
from tensormagic.capture.names import implements
from tensormagic.capture.staging.loops.ranges import Items, LazyIterator, Range, counted, items_of
from tensormagic.capture.values.value import Tensor, extent
from tensormagic.ir.size import Size, apply, product


class Enumerated(Items):
    """Represents the items of an ``enumerate``."""

    def __init__(self, items: Items, start: Any) -> None:
        self.items = items
        self.start = counted(start)

    def count(self) -> Size:
        return self.items.count()

    def at(self, index: Any) -> Any:
        return self.start + index, self.items.at(index)


class Zipped(Items):
    """Represents the items of a ``zip``."""

    def __init__(self, parts: Sequence[Items], *, strict: bool) -> None:
        self.parts = parts
        self.strict = strict

    def count(self) -> Size:
        total = self.parts[0].count()
        for part in self.parts[1:]:
            if self.strict and part.count() != total:
                as_number = [int(extent(p.count())) for p in self.parts]
                least = min(as_number)
                list(zip(*(range(n > least) for n in as_number), strict=True))  # Python's own error, where they differ
            total = apply("min", total, part.count())
        return total

    def at(self, index: Any) -> Any:
        return tuple(part.at(index) for part in self.parts)


class Reversed(Items):
    """Represents the items of a ``reversed``."""

    def __init__(self, items: Items) -> None:
        self.items = items

    def count(self) -> Size:
        return self.items.count()

    def at(self, index: Any) -> Any:
        return self.items.at(extent(self.items.count()) - 1 - index)


class Product(Items):
    """Represents the items of an ``itertools.product``: the last of ``parts`` changes first."""

    def __init__(self, parts: Sequence[Items]) -> None:
        self.parts = parts

    def count(self) -> Size:
        return product(tuple(part.count() for part in self.parts))

    def at(self, index: Any) -> Any:
        found: list[Any] = []
        for k, part in reversed([*enumerate(self.parts)]):
            count = extent(part.count())
            found.append(part.at(index % count if k else index))
            index = index // count
        return tuple(found[::-1])


class Places(Product):
    """Represents the items of an ``np.ndindex``: the indices of an array of a shape."""

    def __init__(self, shape: Sequence[Any]) -> None:
        super().__init__([Range(0, n, 1) for n in shape])


class Placed(Items):
    """Represents the items of an ``np.ndenumerate``: the elements of an array, each with its index."""

    def __init__(self, array: Tensor) -> None:
        self.array = array
        self.places = Places([*map(extent, array.type.shape)])

    def count(self) -> Size:
        return self.places.count()

    def at(self, index: Any) -> Any:
        place = self.places.at(index)
        return place, self.array[place]


# Python's functions ---------------------------------------------------------------------------------------------------


def _over(items: Items, own_class: type, sources: Sequence[Any]) -> LazyIterator:
    """Return an iterator that takes from the iterators ``sources``."""
    for source in sources:
        if isinstance(source, LazyIterator):
            source.lost = f"a {own_class.__name__} that takes from it"
    return LazyIterator(items, own_class)


def enumerate_(iterable: Any, start: Any = 0) -> Any:
    """Return what ``enumerate`` gives."""
    items = items_of(iterable)
    return enumerate(iterable, start) if items is None else _over(Enumerated(items, start), enumerate, (iterable,))


def zip_(*iterables: Any, strict: bool = False) -> Any:
    """Return what ``zip`` gives."""
    parts = [items_of(v) for v in iterables]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts) or not known:
        return zip(*iterables, strict=strict)
    return _over(Zipped(known, strict=strict), zip, iterables)


def reversed_(sequence: Any) -> Any:
    """Return what ``reversed`` gives."""
    items = items_of(sequence)
    return reversed(sequence) if items is None else LazyIterator(Reversed(items), reversed)


def product_(*iterables: Any, repeat: int = 1) -> Any:
    """Return what ``itertools.product`` gives."""
    parts = [items_of(v) for v in iterables]
    known = [p for p in parts if p is not None]
    if len(known) < len(parts) or not known or repeat < 1:
        return itertools.product(*iterables, repeat=repeat)
    return _over(Product(known * repeat), itertools.product, iterables)


@implements(np.ndindex)
def ndindex(*shape: Any) -> Any:
    """Return what ``np.ndindex`` gives."""
    extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    if not all(type(n) is int or (isinstance(n, Tensor) and not n.ndim) for n in extents):
        return np.ndindex(*shape)
    return LazyIterator(Places(extents), np.ndindex)


@implements(np.ndenumerate)
def ndenumerate(arr: Any) -> Any:
    """Return what ``np.ndenumerate`` gives."""
    return LazyIterator(Placed(arr), np.ndenumerate) if isinstance(arr, Tensor) else np.ndenumerate(arr)


# in a notebook --------------------------------------------------------------------------------------------------------


def pythons(items: Items, lent: Callable[[Any], Any] | None = None) -> Any:
    """Return Python's own iterable for items indexed by number, made with ``lent`` values for functions that are not staged."""
    if isinstance(items, Range):
        return range(*(int(v) for v in (items.start, items.stop, items.step)))
    if isinstance(items, Zipped):
        return zip(*(pythons(p, lent) for p in items.parts), strict=items.strict)
    if isinstance(items, Enumerated):
        return enumerate(pythons(items.items, lent), int(items.start))
    if isinstance(items, Reversed):
        return reversed(tuple(pythons(items.items, lent)))
    if isinstance(items, Places):
        return np.ndindex(*map(len, items.parts))
    if isinstance(items, Product):
        return itertools.product(*(pythons(p, lent) for p in items.parts))
    if isinstance(items, Placed):
        return np.ndenumerate(items.array.numpy())
    return iter(items) if lent is None else map(lent, items)


def _handed_out(value: Any, lent: Callable[[Any], Any]) -> Any:
    """Return what other code receives for such an iterator."""
    if isinstance(value, Items):
        return pythons(value, lent)
    return going_on(value, lent) if isinstance(value, LazyIterator) else value


hooks.handed_out = _handed_out


def going_on(iterator: LazyIterator, lent: Callable[[Any], Any] | None = None) -> Any:
    """Return Python's own iterator that continues where a captured one has stopped; the iterator itself if that is not known."""
    if iterator.lost:
        return iterator
    if iterator.ended:
        made: Any = iterator.own_class
        return made(0) if made is np.ndindex else made(())
    found = pythons(iterator.items, lent)
    for _ in itertools.islice(found, iterator.taken):
        pass
    return found
