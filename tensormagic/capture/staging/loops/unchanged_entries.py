"""Entries of a container that iterations leave unchanged: they stay the very objects that they were, and nothing carries them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensormagic.capture.staging.branches.merged_values import Parts, is_number
from tensormagic.capture.tree import flatten, is_container, items_of, parts_in, with_items
from tensormagic.capture.values.value import Tensor

Path = tuple[int, ...]  # the numbers of entries that lead to one


class _UnchangedMark:
    """A mark in place of an unchanged entry, when a value is split into parts."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Unchanged:
    """Represents the entries of a name's value that iterations do not change.

    Parameters
    ----------
    value
        The value before the loop.
    paths
        The paths of the entries.
    """

    def __init__(self, value: Any = None, paths: Iterable[Path] = ()) -> None:
        self._stays = {path: _UnchangedMark(_at(value, path)) for path in paths}

    def __bool__(self) -> bool:
        return bool(self._stays)

    @property
    def paths(self) -> list[Path]:
        """Return the paths of the entries."""
        return [*self._stays]

    def without(self, value: Any) -> Any:
        """Return a value with marks in place of these entries, if it has them; else unchanged."""
        return _replaced(value, self._stays, ()) if self._stays else value

    def within(self, value: Any) -> Any:
        """Return a value with the entries in place of the marks."""
        return _filled(value) if self._stays else value

    def built(self, parts: Parts) -> Parts:
        """Return parts of a value without the entries, which are put back when the value is built."""
        if not self._stays:
            return parts
        build: Callable[[Sequence[Any]], Any] = parts.build
        return Parts(parts.nodes, parts.defined, parts.form, lambda given: self.within(build(given)))


class Installed:
    """Represents what a name holds at the beginning of an iteration, and what the containers in it held then."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self._contents: dict[int, tuple[Any, list[Any]]] = {}
        self._note(value)

    def _note(self, value: Any) -> None:
        if is_container(value) and id(value) not in self._contents:
            self._contents[id(value)] = value, parts_in(value)
            for part in items_of(value):
                self._note(part)

    def unchanged(self, start: Any, after: Any) -> list[Path]:
        """Return the paths of entries that an iteration leaves in place; ``start`` is the value before the loop."""
        return self._unchanged(start, self._value, after, ())

    def _unchanged(self, start: Any, given: Any, after: Any, path: Path) -> list[Path]:
        if path and (after is given or _is_one(given, after)):
            return [path] if self._is_whole(given) else []
        if not all(map(is_container, (start, given, after))) or not _alike(start, given) or not _alike(given, after):
            return []
        entries = zip(items_of(start), items_of(given), items_of(after), strict=True)
        return [p for k, entry in enumerate(entries) for p in self._unchanged(*entry, (*path, k))]

    def _is_whole(self, value: Any) -> bool:
        """Return whether a value has kept its contents since the beginning of the iteration."""
        if not is_container(value):
            return is_number(value)
        if id(value) not in self._contents or not any(map(is_number, flatten(value)[0])):
            return False
        before, now = self._contents[id(value)][1], parts_in(value)
        same = len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))
        return same and all(not is_container(v) or self._is_whole(v) for v in items_of(value))


def _is_one(given: Any, after: Any) -> bool:
    """Return whether two lazy arrays are one array of NumPy's."""
    return isinstance(given, Tensor) and type(after) is type(given) and after.place is given.place


def _alike(first: Any, second: Any) -> bool:
    if type(first) is not type(second):
        return False
    return [*first] == [*second] if isinstance(first, dict) else len(items_of(first)) == len(items_of(second))


def _at(value: Any, path: Path) -> Any:
    for k in path:
        value = items_of(value)[k]
    return value


def _replaced(value: Any, stays: dict[Path, _UnchangedMark], path: Path) -> Any:
    if path in stays:
        return stays[path] if value is stays[path].value or _is_one(stays[path].value, value) else value
    if not is_container(value) or not any(p[: len(path)] == path for p in stays):
        return value
    return with_items(value, [_replaced(v, stays, (*path, k)) for k, v in enumerate(items_of(value))])


def _filled(value: Any) -> Any:
    if isinstance(value, _UnchangedMark):
        return value.value
    if not is_container(value):
        return value
    items = items_of(value)
    filled = [_filled(v) for v in items]
    return value if all(a is b for a, b in zip(items, filled, strict=True)) else with_items(value, filled)
