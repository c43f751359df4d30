"""The notebook's arrays as lazy values of an earlier cell see them: a view of one follows it, and is stored through, as in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.context import Capture
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import snapshots
from tensormagic.capture.stores.alias import reach
from tensormagic.capture.stores.overlap import connect, share
from tensormagic.capture.stores.place import Buffer, Place, serials
from tensormagic.capture.values.operands import input_tensor, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ops.effects.checks import require
from tensormagic.ops.leaf import constant


def connected(array: np.ndarray[Any, Any], name: str, capture: Capture) -> Tensor:
    """Return the lazy array of the notebook's ``array``, if there are values; all readers share it, so that stores reach the array."""
    held = capture.names.lifted.get(("array", id(array)))
    if isinstance(held, Tensor) and (held.place.buffer.version or held.node is snapshots.of_array(array, name)):
        return held
    found = input_tensor(array, name)
    if found is None:
        return wrap(node_of(array))
    for other in [v.place.buffer for v in capture.names.lifted.values() if isinstance(v, Tensor)]:
        if other.array is not None and other.array is not array and share(array, other.array):
            if other.version:
                refuse(f"reading {name}, which shares memory with {other.name}, after a store into that,", "Copy it.")
            connect(found.place.buffer, other)
    found.place.buffer.born = 0  # it existed before, even if code on trial reads it first
    capture.names.lifted["array", id(array)] = found
    capture.names.lifted["alive", id(array)] = array
    return found


def whole_array(value: Any) -> Any:
    """Return the notebook's array that a lazy one stands for as a whole; other values unchanged."""
    whole = isinstance(value, Tensor) and value.place.parent is None and value.place.buffer.array is not None
    return value.place.buffer.array if whole else value


def callers_container(value: Any) -> Any:
    """Return the caller's container where a function's code has a copy of it, and record that its identity matters."""
    capture = context.current()
    if capture is None or id(value) not in capture.callers.containers:
        return value
    capture.callers.identities = True
    return capture.callers.containers[id(value)]


def one_of_callers(first: Any, second: Any) -> bool | None:
    """Return whether two containers or arrays of the arguments are the same object, as a guard of the trace; None if unknown."""
    capture = context.current()
    if capture is None:
        return None
    if id(first) in capture.callers.containers and id(second) in capture.callers.containers:
        capture.callers.alike = True
        return capture.callers.containers[id(first)] is capture.callers.containers[id(second)]
    one, other = given_array(first), given_array(second)
    if one is None or other is None or (one is not other and one.__array_interface__ == other.__array_interface__):
        return None  # two arrays may have been made of the same memory
    capture.callers.alike = True
    return one is other


def given_array(value: Any) -> np.ndarray[Any, Any] | None:
    """Return the array passed in a call for a lazy one that stands for all of it; None for others."""
    capture = context.current()
    whole = isinstance(value, Tensor) and value.place.parent is None and value.place.buffer.argument
    found = capture.inputs.values.get(value.place.buffer.first) if whole and capture is not None else None
    return found if isinstance(found, np.ndarray) else None


def seen(array: np.ndarray[Any, Any], name: str) -> Node:
    """Return the present content of the notebook's array; in a cell that reads it, the content that the cell sees."""
    capture = context.current()
    held = None if capture is None else capture.names.lifted.get(("array", id(array)))
    return held.place.buffer.node if isinstance(held, Tensor) else snapshots.of_array(array, name)


class _ReadOnDemand(Buffer):
    """Represents memory whose value is read only when it is needed."""

    def __init__(self, array: Any, name: str, **options: Any) -> None:
        self._known: Node | None = None
        self._version = 0
        super().__init__(None, array, name, **options)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        """Read nothing before it is needed."""

    def _look(self) -> Node:
        raise NotImplementedError

    @property
    def first(self) -> Node:  # type: ignore[override]
        """Return the value: it has always been where it is."""
        return self.node

    @property
    def node(self) -> Node:
        """Return the current value."""
        now = self._look()
        if now is not self._known:
            self._version = 0 if self._known is None else next(serials)
            self._known = now
        return now

    @node.setter
    def node(self, node: Node) -> None:  # type: ignore[override]
        """Ignore the value: nothing is held here."""

    @property
    def version(self) -> int:
        """Return a number that is different for each value that it is seen to have."""
        return self._version if self.node is self._known else 0

    @version.setter
    def version(self, version: int) -> None:  # type: ignore[override]
        """Ignore the number: nothing is held here."""


class Outside(_ReadOnDemand):
    """Represents the memory of a notebook's array."""

    def __init__(self, array: np.ndarray[Any, Any], name: str) -> None:
        super().__init__(array, name, writeable=array.flags.writeable)

    def _look(self) -> Node:
        return seen(self.array, self.name)

    def store(self, node: Node) -> None:
        """Store into the array: at once, or after the running cell has succeeded."""
        capture = context.current()
        if capture is None:
            self.may_store()
            snapshots.secure_all()
            np.copyto(self.array, hooks.compute([node])[0], casting="same_kind")
        elif capture.abstract:
            refuse(f"a store into {self.name or 'an array'}, through a part of it,", "Store into the array itself.")
        else:
            connected(self.array, self.name, capture).place.buffer.store(node)


class Undecided(_ReadOnDemand):
    """Represents the memory of a value that may be a view of the notebook's arrays, depending on data, until one of these changes.

    ``before`` is the memory that the cell had for it, which displayed results still use.
    """

    def __init__(self, before: Buffer, arrays: dict[str, np.ndarray[Any, Any]], label: str) -> None:
        self.before = before
        self._held, self._label = before.node, label
        self._of = [(array, name, snapshots.of_array(array, name)) for name, array in arrays.items()]
        self._names = list(arrays)
        super().__init__(None, "")

    def may_store(self) -> None:
        """Raise CaptureError: it is not known where a store would go."""
        raise CaptureError(
            f"{self._label} assigned this to what may be a part of {' or '.join(self._names)}, depending on data: it is not stored into",
            f"Store into {self._names[0]} itself, or into a copy.",
        )

    def _look(self) -> Node:
        name = next((name for array, name, then in self._of if seen(array, name) is not then), None)
        if name is not None:
            self._of = []
            message = (
                f"{self._label} assigned this to what may be a part of {name}, which has changed since, so its value is not known now. "
                "Run that cell again, or make a copy in it with .copy()."
            )
            self._held = require(self._held, constant(False), message, "capture")
        return self._held


def undecided(place: Place, label: str) -> Place | None:
    """Return the same place, for a lazy value that may be a view of notebook arrays and outlives its cell; None for any other."""
    if place.parent is not None:
        whole = undecided(place.parent, label)
        return None if whole is None else Place(whole.buffer, whole, place.forward, place.backward, place.moved)
    found = {b.name: b.array for b in reach(place.buffer) if type(b.array) is np.ndarray}
    return Place(Undecided(place.buffer, found, label)) if found else None


def asked(place: Place) -> Iterator[Node]:
    """Yield the conditions that :func:`outside` may need: which of several arrays a place lies in."""
    while place.parent is not None:
        place = place.parent
    if type(place.buffer.array) is np.ndarray:
        return
    for one in place.buffer.alias.alternatives:
        if one.holds is not None:
            yield one.holds
        yield from asked(one.place)


def outside(place: Place, holds: Callable[[Node], bool]) -> Place | None:
    """Return the same place in the notebook's array, for a lazy value that outlives its cell; None if it is in no such array.

    Parameters
    ----------
    place
        Where the lazy value lies.
    holds
        Whether a condition holds, where it is data-dependent which array it is.
    """
    if place.parent is not None:
        whole = outside(place.parent, holds)
        return None if whole is None else Place(whole.buffer, whole, place.forward, place.backward, place.moved)
    buffer = place.buffer
    if type(buffer.array) is np.ndarray:
        return Place(buffer if isinstance(buffer, Outside) else Outside(buffer.array, buffer.name))
    taken = buffer.alias.taken(holds)
    return None if taken is None else outside(taken, holds)
