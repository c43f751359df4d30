"""Places: where a lazy array lives. A buffer holds the node that is its value now; a view, the moves that lead to its part."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from tensormagic.capture import context
from tensormagic.config import config
from tensormagic.ir.alive import Alive
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.type import Size, hint, product
from tensormagic.ops.form import to_form
from tensormagic.ops.move import squeezes

Forward = Callable[[Node], Node]
Backward = Callable[[Node, Node], Node]
serials = itertools.count(1)
_ANYWHERE = ("", "")
Layout = np.ndarray[Any, Any]  # an array that is never read: what is where in memory


class Choice(Protocol):
    """What stores into whichever of several buffers it is ``between``."""

    @property
    def between(self) -> Sequence[Buffer]: ...

    def may_be(self, place: Place) -> bool: ...

    def store(self, node: Node) -> None: ...

    def taken(self, holds: Callable[[Node], bool]) -> Place | None: ...


@dataclass(eq=False)
class Buffer:
    """Memory, as the captured code sees it.

    Parameters
    ----------
    node
        The current value.
    array
        The notebook's array, for an input: a store into the buffer is to be handed back to it.
    overlaps
        What else the cell reads that shares the array's memory, and cannot be told: stores are refused.
    shared
        Buffers of arrays that share the array's memory, each with what it holds after a store: a function of what it held and of
        what this one holds.
    writeable
        Whether it may be stored into; None where data decide that.
    stored
        Whether the code itself has stored into it.
    away
        The cell that read the array, once that has ended: what it handed back cannot be stored into.
    version
        0 until something is stored; then a number that no other value of any buffer has had.
    born
        Counts buffers, in the order in which they were made.
    followers
        What has to be told of a store.
    origins
        Buffers that it may share memory with, where data decide whether it does.
    choice
        What stores into the one of several places that it is, as data say; None for memory of its own.
    merged
        Whether a branch or a loop gave it: then it may be a part of another array.
    level
        The level of rewriting that its value is computed at, where code of a level of its own gave it; empty for the one in force.
    placed
        The device that its value is computed on, and what is said of copies, likewise.
    argument
        Whether it stands for an argument of a function, or for what one reads.
    first
        The value that it was made with, which decides where the elements lie.
    ordered
        Whether the elements lie in C order whatever that value is of: a copy was asked for that does.
    """

    node: Node
    array: Any = None
    name: str = ""
    version: int = 0
    writeable: bool | None = True
    overlaps: list[str] = field(default_factory=list)
    shared: list[tuple[Buffer, Callable[[Node, Node], Node]]] = field(default_factory=list)
    stored: bool = False
    away: str = ""
    born: int = field(default_factory=lambda: next(serials))
    followers: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    origins: list[Buffer] = field(default_factory=list)
    choice: Choice | None = None
    merged: bool = False
    level: str = field(default_factory=lambda: config.own_math)
    placed: tuple[str, str] = field(default_factory=lambda: config.own_place() if config.own_devices else _ANYWHERE)
    argument: bool = False
    ordered: bool = False
    first: Node = field(init=False)

    def __post_init__(self) -> None:
        self.first = self.node

    @classmethod
    def unread(cls, array: Any, name: str, make: Callable[[], Node]) -> Buffer:
        """A buffer of a notebook's array that is read when its value is first asked for."""
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
        except BaseException:  # it is asked for again
            self.__dict__["make"] = make
            if late:
                _late.add(self)
            raise
        lies_as(self.__dict__.setdefault("node", made), self.__dict__.setdefault("first", made))
        return self.__dict__[name]

    def layout(self) -> Layout | None:
        """Where the elements lie in NumPy; None where that is not known."""
        shape = [hint(s) or 7 for s in self.node.type.shape]
        if isinstance(self.array, np.ndarray):
            strides = [s // self.array.itemsize for s in self.array.strides]
            return np.lib.stride_tricks.as_strided(_NOWHERE, self.array.shape, strides)
        given = given_for(self.first) if self.argument else None
        if given is not None and not given.flags.c_contiguous:
            return _as_given(self.first, given)
        if not (self.ordered or in_c_order(self.first)) or (self.merged and _may_have_gaps(self.first)):
            return None
        return np.lib.stride_tricks.as_strided(_NOWHERE, shape, [math.prod(shape[k + 1 :]) for k in range(len(shape))])

    def store(self, node: Node) -> None:
        """Replace the value."""
        self.may_store()
        if self.choice is not None:
            self.choice.store(node)
            return
        self.put(node)
        self.stored = True
        for other, transfer in self.shared:
            other.put(transfer(other.node, node))
        for tell in (t for b in (self, *(other for other, _ in self.shared)) for t in b.followers):
            tell()

    def may_store(self) -> None:
        """Refuse what cannot be stored into."""
        if self.writeable is None:
            name = self.name or "an array"
            raise CaptureError(
                f"{name} may be read-only, as data decide: a store into it is not captured", "Store into a copy."
            )
        if not self.writeable:
            raise ValueError("assignment destination is read-only")
        if self.away:
            raise CaptureError(
                f"this is a part of the notebook's {self.name} as it was in {self.away}: it cannot be stored into",
                f"Store into {self.name} itself, or into a copy.",
            )
        for buffer in (self, *(other for other, _ in self.shared)):
            buffer.may_change()

    def may_change(self) -> None:
        """Refuse a store that what cannot be told would change, too."""
        if self.overlaps:
            copied = f"{self.name} = {self.name}.copy()" if self.name else "made with .copy()"
            raise CaptureError(
                f"{self.name or 'an array'} shares memory with {', '.join(self.overlaps)}, which this cell reads too: "
                "a store into it is not captured yet",
                f"Work on a copy, {copied}, or run the cell with --plain.",
            )

    @property
    def depends(self) -> bool:
        """Whether data decide what it shares memory with: then it changes with that."""
        return bool(self.overlaps) or self.choice is not None

    def put(self, node: Node) -> None:
        """Replace the value, and have whoever is trying code out note what it was."""
        self._change()
        self.level = config.own_math or self.level
        self.placed = config.own_place() if config.own_devices else self.placed
        self.hold(node)
        lies_as(node, self.first)

    def hold(self, node: Node) -> None:
        """Have a value, and none that is still to be made."""
        if self in _late:
            _late.discard(self)
            del self.__dict__["make"]
        self.node = node

    def renew(self, node: Node) -> None:
        """Have the same value, computed from something else."""
        self.hold(node)
        self.version = next(serials)

    def put_late(self, make: Callable[[Node], Node]) -> None:
        """Replace the value by one that is made of what it was when it is asked for, or when code is tried out."""
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
            for journal in capture.journals:
                if self not in journal:
                    journal[self] = self.node, self.version, self.stored
        self.version = next(serials)


_late: Alive[Buffer] = Alive()


def ask_all() -> None:
    """Make all values that have been waiting to be asked for."""
    while _late:
        for buffer in _late:
            if buffer in _late:
                buffer.node  # noqa: B018 (which makes it)


@dataclass(frozen=True, eq=False)
class Place:
    """A buffer, or the part of a place that a move leads to.

    Parameters
    ----------
    buffer
        The memory.
    parent
        The place that this one is a view of.
    forward
        The view's value for the parent's.
    backward
        The parent's value with the view's replaced: ``backward(parent, view)``; None for a view that cannot be stored into.
    moved
        The layout of the view for that of the parent: what NumPy does to an array. Where that differs from what is done to an array of
        values, or where data decide it, it has a method ``of(array, number)`` as well.
    """

    buffer: Buffer
    parent: Place | None = None
    forward: Forward | None = None
    backward: Backward | None = None
    moved: Callable[[Layout], Layout] | None = None

    def layout(self) -> Layout | None:
        """Where the elements lie in NumPy; None where that is not known."""
        if self.parent is None or self.moved is None:
            return self.buffer.layout()
        base = self.parent.layout()
        if base is not None:
            _note_extents(self.read().type.shape, self.parent.read().type.shape)
        try:
            return None if base is None else self.moved(base)
        except (IndexError, ValueError):  # an extent that is not known yet
            return None

    def read(self) -> Node:
        """The current value."""
        if self.parent is None or self.forward is None:
            return self.buffer.node
        return self.forward(self.parent.read())

    @property
    def writeable(self) -> bool | None:
        """Whether it may be stored into; None where data decide that."""
        one = self
        while one.parent is not None:
            if one.backward is None:
                return False
            one = one.parent
        return self.buffer.writeable

    def write(self, node: Node) -> None:
        """Store a new value, through the views, into the buffer: an array without axes remains one."""
        if self.parent is None:
            self.buffer.store(to_form(node, self.buffer.node.type.form))
            return
        if self.backward is None:
            raise ValueError("assignment destination is read-only")
        self.parent.write(self.backward(self.parent.read(), node))

    def taken_from(self, whole: np.ndarray[Any, Any], number: Callable[[Size], int]) -> np.ndarray[Any, Any] | None:
        """NumPy's view of an array that is the place of which this one is a view; None where that is no view.

        Parameters
        ----------
        whole
            The array.
        number
            What a size is: one that data decide is computed.
        """
        exactly = getattr(self.moved, "of", None)
        try:
            part = exactly(whole, number) if exactly is not None else self.moved(whole)  # type: ignore[misc]
        except (IndexError, ValueError):
            return None
        inside = np.may_share_memory(part, whole) or not part.size
        return part if inside and part.shape == tuple(map(number, self.read().type.shape)) else None

    def view(self, forward: Forward, backward: Backward | None, moved: Callable[[Layout], Layout]) -> Place:
        """A view of this place."""
        return Place(self.buffer, self, forward, backward, moved)


@dataclass(frozen=True)
class EveryOther:
    """Where the real parts lie, or the imaginary ones: a number of the other kind lies between two of them."""

    name: str

    def __call__(self, layout: Layout) -> Layout:
        """The layout for that of the complex numbers."""
        return np.lib.stride_tricks.as_strided(layout, layout.shape, [2 * s for s in layout.strides])

    def of(self, array: np.ndarray[Any, Any], number: Callable[[Size], int]) -> np.ndarray[Any, Any]:
        """The parts of an array."""
        del number
        return getattr(array, self.name)


def _note_extents(part: Sequence[Size], whole: Sequence[Size]) -> None:
    """Note which axes of a part are as long as those of the whole, and which have one element: that decides what is contiguous."""
    capture = context.current()
    if capture is None or product(tuple(part)) == product(tuple(whole)):  # all of it
        return
    if len(part) != len(whole):
        _note_all((*part, *whole))
        return
    for own, all_of_it in zip(part, whole, strict=True):
        n, most = hint(own), hint(all_of_it)
        if n is None or most is None:
            continue
        more, less = (own, all_of_it) if n > most else (all_of_it, own)  # a view may be longer: reshaped, or broadcast
        capture.decides((own, "==", all_of_it) if n == most else (more, ">=", less + 1))
        capture.decides((own, "==", n) if n < 2 else (own, ">=", 2))


def _note_all(extents: Sequence[Size]) -> None:
    """Note extents, each as the number that it was."""
    capture = context.current()
    if capture is not None:
        for size in extents:
            capture.decides((size, "==", hint(size) or 0))


_NOWHERE = np.zeros(1, np.int8)
_lies_as: WeakKeyDictionary[Node, list[Node]] = WeakKeyDictionary()


def given_for(leaf: Node) -> np.ndarray[Any, Any] | None:
    """The array of the call that a function is captured for, for an argument; what is made of how it lies is for such arrays alone."""
    capture = context.current()
    if capture is None or leaf.op.name != "input":
        return None
    while leaf in capture.behind:
        leaf = capture.behind[leaf]
    value = capture.values.get(leaf) if leaf.op.name == "input" else None
    if not isinstance(value, np.ndarray):
        return None
    capture.ordered = True
    return value


def _as_given(leaf: Node, given: np.ndarray[Any, Any]) -> Layout | None:
    """The layout of an argument that is not in C order: then its sizes are those of the call, too."""
    capture = context.current()
    for size in leaf.type.shape if capture is not None else ():
        capture.specialise(size)  # type: ignore[union-attr]
    if any(s % given.itemsize for s in given.strides):
        return None
    return np.lib.stride_tricks.as_strided(_NOWHERE, given.shape, [s // given.itemsize for s in given.strides])


def lies_as(node: Node, other: Node) -> None:
    """Note that a value was stored into an array that was made as ``other``, which decides where its elements lie."""
    known = _lies_as.setdefault(node, [])
    if other is not node and other not in known:
        known.append(other)


def in_c_order(node: Node) -> bool:
    """Whether NumPy's array for ``node`` has its elements in C order for sure: most operations keep the order of their operands."""
    pending, seen = [node], set[Node]()
    while pending:
        found = pending.pop()
        if found in seen or (len(found.types) == 1 and found.type.ndim < 2):
            continue
        seen.add(found)
        pending += _lies_as.get(found, ())
        if not _keeps_order(found):
            return False
        pending += _of_order(found)
        pending += [r for graph in found.params.values() if isinstance(graph, Graph) for r in graph.results]
    return True


def _may_have_gaps(first: Node) -> bool:
    """Whether what a branch or a loop gives may be a part of another array, whose elements lie apart."""
    pending: list[tuple[Node, Any]] = [(first, None)]
    seen: set[tuple[Node, Any]] = set()
    while pending:
        node, around = found = pending.pop()
        if found in seen or not node.types[0].shape:
            continue
        seen.add(found)
        name = node.op.name
        if name == "slice" and _is_run(node):
            pending.append((node.args[0], around))
        elif name in {"slice", "transpose"} or (name == "broadcast" and node.args[0].type.shape):
            return True
        given = given_for(node)
        if name == "input" and not (_has_no_gaps(node["source"]) if given is None else given.flags.c_contiguous):
            return True
        if name == "parameter" and around is not None:
            pending += _handed_on(node["index"], *around)
        elif is_region(node):
            region, number = _result_of(node)
            graphs = [g for n, g in region.params.items() if isinstance(g, Graph) and n != "test"]
            pending += [(graph.results[number], (region, around)) for graph in graphs]
        elif name in {"reshape", "require"} or getattr(node.op, "kind", "") == "update":
            pending.append((node.args[0], around))
    return False


def _is_run(part: Node) -> bool:
    """Whether a slice of what lies in C order without gaps does so, too: a row, or rows that follow each other."""
    pairs = zip(part["slices"], part.args[0].type.shape, strict=True)
    parts = [k for k, (taken, extent) in enumerate(pairs) if taken != (0, extent, 1)]
    last = max(parts, default=0)
    single = all(length == 1 for _, length, _ in part["slices"][:last])
    return not parts or (single and (part["slices"][last][1] == 1 or part["slices"][last][2] == 1))


def _result_of(node: Node) -> tuple[Node, int]:
    return (node.args[0], node["index"]) if node.op.name == "item" else (node, 0)


def is_region(node: Node) -> bool:
    """Whether a branch or a loop gives a value."""
    return any(isinstance(p, Graph) for p in _result_of(node)[0].params.values())


def _handed_on(number: int, region: Node, around: Any) -> Generator[tuple[Node, Any]]:
    """What parameter ``number`` of the graphs of a region is: an operand; where it is carried, what an iteration gives, too."""
    yield region.args[number + (region.op.name == "cond")], around
    body, first = region.params.get("body"), int(region.op.name == "loop")
    if body is not None and first <= number < first + len(body.results):
        yield body.results[number - first], (region, around)


def _has_no_gaps(source: Any) -> bool:
    """Whether the elements of an input follow each other: of an argument that is checked at the call, where it matters."""
    original = getattr(source, "original", None)
    value = original() if callable(original) else getattr(source, "value", None)  # the value may be a copy without gaps
    return bool(value.flags.c_contiguous) if isinstance(value, np.ndarray) else original is None


def _keeps_order(node: Node) -> bool:
    """Whether a result lies in C order where the operands do."""
    if node.op.name in {"input", "parameter"}:
        return _leaf_in_order(node)
    kind = getattr(node.op, "kind", "")
    if node.op.name == "gather":  # what several axes leave behind, NumPy lays out as it likes
        return node.args[0].type.ndim == 1
    if node.op.name == "transpose" or (kind == "opaque" and not node.op.name.startswith("scatter")):
        return False
    if kind == "contract":
        left, _, right = node["subscripts"].partition("->")
        return sorted(right, key=left.index) == list(right)
    return True


def _leaf_in_order(leaf: Node) -> bool:
    value = getattr(leaf.params.get("source"), "value", None)
    value = given_for(leaf) if value is None else value
    capture = context.current()
    if value is None and capture is not None:
        capture.ordered = True  # arguments are taken to be in C order: checked at the call, where it matters
    return value is None or in_memory_order(value)


def _of_order(node: Node) -> tuple[Node, ...]:
    """The operands whose order in memory decides that of the result."""
    kind = getattr(node.op, "kind", "")
    if kind == "update" or node.op.name.startswith("scatter"):
        return node.args[:1]
    if node.op.name == "gather":
        return node.args[1:]
    if kind in {"pointwise", "fold", "move", "region"} or node.op.name == "item":
        return node.args if node.op.name != "reshape" or squeezes(node) else ()
    return ()


def in_memory_order(value: Any) -> bool:
    """Whether the axes of an array stand in memory in their order."""
    steps = (
        [abs(s) for s, n in zip(value.strides, value.shape, strict=True) if n > 1]
        if isinstance(value, np.ndarray)
        else []
    )
    return steps == sorted(steps, reverse=True)


def reshapes_in_place(place: Place, after: tuple[Size, ...]) -> bool | None:
    """Whether NumPy reshapes what lies there without a copy; None where data decide."""
    layout = place.layout()
    if layout is None:
        return None
    apart = 2 ** sum(
        isinstance(one.moved, EveryOther) for one in _upwards(place)
    )  # which changes nothing of what can be merged
    layout = np.lib.stride_tricks.as_strided(layout, layout.shape, [s // apart for s in layout.strides])
    if layout.flags.c_contiguous:
        return True
    extents = (*after, *_extents_of(place))
    if any(hint(s) is None for s in extents):
        return None
    if len(after) > 1 or not _is_dense(layout):  # then extents decide which axes NumPy can merge
        _note_all(extents)
    try:
        np.reshape(layout, tuple(hint(s) or 7 for s in after), copy=False)
    except ValueError:
        return False
    return True


def _upwards(place: Place | None) -> Generator[Place]:
    """A place, and all that it is a view of."""
    while place is not None:
        yield place
        place = place.parent


def _extents_of(place: Place) -> Generator[Size]:
    """The extents of a place, and of all that it is a view of."""
    for one in _upwards(place):
        yield from one.read().type.shape


def _is_dense(layout: Layout) -> bool:
    """Whether an array fills its memory, its axes in any order and direction."""
    filled = 1
    for step, extent in sorted((abs(step), n) for step, n in zip(layout.strides, layout.shape, strict=True) if n > 1):
        if step != filled:
            return False
        filled *= extent
    return True
