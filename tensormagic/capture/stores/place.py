"""Places: where a lazy array lives. A buffer holds the node of its current value; a view, the functions that lead to its part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.stores.alias import OWN, Alias
from tensormagic.capture.stores.kept_order import kept_order
from tensormagic.capture.stores.layout import (
    NOWHERE,
    EveryOther,
    Layout,
    as_given,
    given_for,
    in_c_order,
    is_dense,
    lies_as,
    may_have_gaps,
    note_all,
    note_extents,
)
from tensormagic.config import config
from tensormagic.ir.alive import Alive
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, hint
from tensormagic.ops.form import to_form

Forward = Callable[[Node], Node]
Backward = Callable[[Node, Node], Node]
serials = itertools.count(1)
_ANYWHERE = ("", "")


@dataclass(eq=False)
class Buffer:
    """Represents memory, as captured code sees it.

    Parameters
    ----------
    node
        The current value.
    array
        The notebook's array, for an input; stores are written back to it.
    alias
        The other memory that it may share.
    shared
        Buffers of arrays that share the array's memory, each with a function from its value and this one's to its value
        after a store.
    writeable
        Whether it may be stored into; None if that is data-dependent.
    stored
        Whether the code itself has stored into it.
    version
        0 until the first store; then a number that no other value of any buffer has had.
    born
        A serial number in the order in which buffers were made.
    level
        The rewriting level that its value is computed at, if it comes from code with its own level; else empty.
    placed
        The device that its value is computed on, and the copies, if it comes from code with its own device.
    argument
        Whether it stands for an argument of a function, or for a variable that the function reads.
    first
        The initial value, which determines the memory layout.
    ordered
        Whether it was explicitly copied to C order.
    """

    node: Node
    array: Any = None
    name: str = ""
    version: int = 0
    writeable: bool | None = True
    alias: Alias = OWN
    shared: list[tuple[Buffer, Callable[[Node, Node], Node]]] = field(default_factory=list)
    stored: bool = False
    born: int = field(default_factory=lambda: next(serials))
    level: str = field(default_factory=lambda: config.own_math)
    placed: tuple[str, str] = field(default_factory=lambda: config.own_place() if config.own_devices else _ANYWHERE)
    argument: bool = False
    ordered: bool = False
    first: Node = field(init=False)

    def __post_init__(self) -> None:
        self.first = self.node

    @classmethod
    def unread(cls, array: Any, name: str, make: Callable[[], Node]) -> Buffer:
        """Return a buffer of a notebook's array that is read when its value is first needed."""
        made = cls(None, array, name, writeable=bool(array.flags.writeable))  # type: ignore[arg-type]
        del made.node, made.first
        made.__dict__["make"] = make
        return made

    def __getattr__(self, name: str) -> Any:
        if name not in {"node", "first"} or "make" not in self.__dict__:
            raise AttributeError(name)
        late = self in _late
        _late.discard(self)
        make = self.__dict__.pop("make")
        try:
            made = make()
        except BaseException:  # it is computed again when it is needed
            self.__dict__["make"] = make
            if late:
                _late.add(self)
            raise
        lies_as(self.__dict__.setdefault("node", made), self.__dict__.setdefault("first", made))
        return self.__dict__[name]

    def layout(self) -> Layout | None:
        """Return the layout of NumPy's array for the value; None where that is not known."""
        shape = [hint(s) or 7 for s in self.node.type.shape]
        if isinstance(self.array, np.ndarray):
            strides = [s // self.array.itemsize for s in self.array.strides]
            return np.lib.stride_tricks.as_strided(NOWHERE, self.array.shape, strides)
        given = given_for(self.first) if self.argument else None
        if given is not None and not given.flags.c_contiguous:
            return as_given(self.first, given)
        if not (self.ordered or in_c_order(self.first)):
            return None if self.alias.from_region else kept_order(self.first)
        if self.alias.from_region and may_have_gaps(self.first):
            return None
        return np.lib.stride_tricks.as_strided(NOWHERE, shape, [math.prod(shape[k + 1 :]) for k in range(len(shape))])

    def in_order(self, value: Any) -> Any:
        """Return a computed value in C order, if it is ``ordered`` and not so already: the same array each time."""
        if value.flags.c_contiguous:
            return value
        known = self.__dict__.get("laid")
        if known is None or known[0] is not value:
            known = self.__dict__["laid"] = value, np.ascontiguousarray(value)
            known[1].flags.writeable = False
        return known[1]

    def store(self, node: Node) -> None:
        """Replace the value, and that of every buffer that shares its memory."""
        self.may_store()
        self.alias.store(self, node)

    def leave(self, node: Node, *, stored: bool) -> None:
        """Set the value that a region leaves; ``stored`` says whether code in it has stored that.

        A buffer whose aliases depend on data has either changed with these, or was stored into before it was shared.
        """
        if not self.alias.depends:
            self.store(node)
            return
        self.put(node)
        self.stored = self.stored or stored

    def may_store(self) -> None:
        """Raise for memory that cannot be stored into."""
        if self.writeable is None:
            name = self.name or "an array"
            raise CaptureError(
                f"{name} may be read-only, depending on the data: a store into it is not captured", "Store into a copy."
            )
        if not self.writeable:
            raise ValueError("assignment destination is read-only")
        self.alias.may_store(self)
        for other, _ in self.shared:
            other.alias.may_change(other)

    @property
    def bare(self) -> Node:
        """Return the value, without the check that the name is bound."""
        return self.node

    def asked(self, node: Node) -> Node:
        """Return the value to hold after storing ``node``, with the check that the name is bound."""
        return node

    def put(self, node: Node) -> None:
        """Replace the value; a trial in progress records the old one."""
        self._change()
        self.level = config.own_math or self.level
        self.placed = config.own_place() if config.own_devices else self.placed
        self.hold(node)
        lies_as(node, self.first)

    def hold(self, node: Node) -> None:
        """Set a value, dropping a pending computation of it."""
        if self in _late:
            _late.discard(self)
            del self.__dict__["make"]
        self.node = node

    def renew(self, node: Node) -> None:
        """Set an equal value that is computed in another way."""
        self.hold(node)
        self.version = next(serials)

    def set_lazy(self, make: Callable[[Node], Node]) -> None:
        """Replace the value by one that is computed from the old one when it is read, or when a trial begins."""
        if self in _late:
            self.version = next(serials)
            return
        self._change()
        was = self.node
        del self.node
        self.__dict__["make"] = lambda: make(was)
        _late.add(self)

    def _change(self) -> None:
        capture = context.current()
        if capture is not None:
            capture.stored()
            for journal in capture.heap.journals:
                if self not in journal:
                    journal[self] = self.node, self.version, self.stored
        self.version = next(serials)


_late: Alive[Buffer] = Alive()


def ask_all() -> None:
    """Make all values that are still to be computed lazily."""
    while _late:
        for buffer in _late:
            if buffer in _late:
                buffer.node  # noqa: B018 (which makes it)


@dataclass(frozen=True, eq=False)
class Place:
    """Represents a buffer, or a view of another place.

    Parameters
    ----------
    buffer
        The memory.
    parent
        The place that this one is a view of.
    forward
        Computes the view's value from the parent's.
    backward
        ``backward(parent, view)``: the parent's value with the view's replaced; None for a view that cannot be stored
        into.
    moved
        Applies NumPy's operation for the view to an array of the parent's layout. If that differs from the operation on
        values, or is data-dependent, it has a method ``of(array, number)`` as well.
    own
        Whether it is the parent's array itself, with a new shape.
    """

    buffer: Buffer
    parent: Place | None = None
    forward: Forward | None = None
    backward: Backward | None = None
    moved: Callable[[Layout], Layout] | None = None
    own: bool = False

    @property
    def is_view(self) -> bool:
        """Return whether it is a separate NumPy array that shares the parent's memory."""
        return self.parent is not None and not self.own

    def layout(self) -> Layout | None:
        """Return the layout of NumPy's array at this place; None where that is not known."""
        if self.parent is None or self.moved is None:
            return self.buffer.layout()
        base = self.parent.layout()
        if base is not None:
            note_extents(self.read().type.shape, self.parent.read().type.shape)
        try:
            return None if base is None else self.moved(base)
        except (IndexError, ValueError):  # an extent that is not known yet
            return None

    def read(self) -> Node:
        """Return the current value."""
        if self.parent is None or self.forward is None:
            return self.buffer.node
        return self.forward(self.parent.read())

    @property
    def writeable(self) -> bool | None:
        """Return whether it may be stored into; None where that is data-dependent."""
        one = self
        while one.parent is not None:
            if one.backward is None:
                return False
            one = one.parent
        return self.buffer.writeable

    @property
    def frozen(self) -> bool:
        """Return whether NumPy's array there is read-only; captured code refuses stores into some that are not."""
        one = self
        while one.parent is not None:
            if one.backward is None and not getattr(one.moved, "writeable", False):
                return True
            one = one.parent
        return self.buffer.writeable is False

    def write(self, node: Node) -> None:
        """Store a new value, through the views, into the buffer: a rank-0 array remains one."""
        if self.parent is None:
            self.buffer.store(to_form(node, self.buffer.node.type.form))
            return
        if self.backward is None:
            raise ValueError("assignment destination is read-only")
        self.parent.write(self.backward(self.parent.read(), node))

    def taken_from(
        self, whole: np.ndarray[Any, Any], number: Callable[[Size], int], shape: tuple[Size, ...] | None = None
    ) -> np.ndarray[Any, Any] | None:
        """Return NumPy's view for this place in the parent's array; None if NumPy makes a copy.

        Parameters
        ----------
        whole
            The parent's array.
        number
            Evaluates a size; a data-dependent one is computed.
        shape
            The shape of this place, if known.
        """
        exactly = getattr(self.moved, "of", None)
        try:
            part = exactly(whole, number) if exactly is not None else self.moved(whole)  # type: ignore[misc]
        except (IndexError, ValueError):
            return None
        inside = np.may_share_memory(part, whole) or not part.size
        return part if inside and part.shape == tuple(map(number, shape or self.read().type.shape)) else None

    def within(self, memory: Any, number: Callable[[Size], int]) -> Any:
        """Return the part of its buffer's memory at this place: the memory itself, or a view of it; None if that is no view.

        ``number`` evaluates a size, as for :meth:`taken_from`.
        """
        if self.parent is None:
            return memory
        whole = self.parent.within(memory, number)
        return None if whole is None else self.taken_from(whole, number)

    def view(self, forward: Forward, backward: Backward | None, moved: Callable[[Layout], Layout]) -> Place:
        """Return a view of this place."""
        return Place(self.buffer, self, forward, backward, moved)


def reshapes_in_place(place: Place, after: tuple[Size, ...]) -> bool | None:
    """Return whether NumPy reshapes the array at a place without a copy; None where that is data-dependent."""
    layout = place.layout()
    if layout is None:
        return None
    apart = 2 ** sum(
        isinstance(one.moved, EveryOther) for one in _upwards(place)
    )  # this does not change which axes can be merged
    layout = np.lib.stride_tricks.as_strided(layout, layout.shape, [s // apart for s in layout.strides])
    if layout.flags.c_contiguous:
        return True
    extents = (*after, *_extents_of(place))
    if any(hint(s) is None for s in extents):
        return None
    if len(after) > 1 or not is_dense(layout):  # then extents decide which axes NumPy can merge
        note_all(extents)
    try:
        np.reshape(layout, tuple(hint(s) or 7 for s in after), copy=False)
    except ValueError:
        return False
    return True


def _upwards(place: Place | None) -> Generator[Place]:
    """Yield a place, and all its parents."""
    while place is not None:
        yield place
        place = place.parent


def _extents_of(place: Place) -> Generator[Size]:
    """Yield the extents of a place, and of all its parents."""
    for one in _upwards(place):
        yield from one.read().type.shape
