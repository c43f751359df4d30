"""Lists of data-dependent length, in code without values: their elements lie on tapes, their length is a number of the graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tensormagic.capture import context, undecided, usercode
from tensormagic.capture.elements import Outgrown, Stack
from tensormagic.capture.hooks import hooks
from tensormagic.capture.staging.aliases import lead_elsewhere
from tensormagic.capture.staging.merged import Parts, apart, is_number
from tensormagic.capture.staging.needs_python import NeedsPython
from tensormagic.capture.staging.ranges import Items
from tensormagic.capture.staging.regions import of_type, one_type, zeros_of
from tensormagic.capture.staging.slots import Slot
from tensormagic.capture.staging.watched import watch
from tensormagic.capture.staging.world import Journaled, World
from tensormagic.capture.stores.alias import beside
from tensormagic.capture.tree import flatten
from tensormagic.capture.value import Tensor, extent, wrap
from tensormagic.capture.value import as_size as size_written
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ir.plain_texts import key_text
from tensormagic.ir.size import Size, apply
from tensormagic.ir.type import Type
from tensormagic.ops.form import to_form
from tensormagic.ops.indices.position import position
from tensormagic.ops.leaf import constant, size_node, size_of
from tensormagic.ops.reverse.tape import empty_tape, read_tape, record
from tensormagic.ops.reverse.tape_stack import stack_tape, unstack_tape
from tensormagic.ops.scalars import scalar

WHAT = "a list that grows a data-dependent number of times"
PASSES = 12
COUNT = "count"  # the key of the length, beside those of the tapes


class Untyped(NeedsPython):
    """A list holds values of another type than was known: code is traced again."""

    def __init__(self, grown: GrownList) -> None:
        super().__init__("a list does not keep the type of its elements", "Append numbers or arrays of the same type.")
        self.grown = grown


class GrownList(Journaled):
    """A list without a known length.

    Parameters
    ----------
    values
        Its elements so far.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.first = list(values)
        self.like: Parts | None = None
        self.types: list[Type] = []
        self.narrowest: list[np.dtype[Any]] = []  # that an array of these numbers may be of in NumPy for some data
        self.state: dict[str, Tensor] = {}  # its length, and a tape for each number of an element
        self.own: list[list[Type]] = []  # of the numbers of the elements that it begins with
        self.met: list[set[tuple[str, str]]] = []  # the forms and kinds of the numbers that are appended
        for value in self.first:
            parts = apart(value)
            self._learn(parts)
            self.own.append([n.type for n in parts.nodes])
        self.prepare()

    def prepare(self) -> None:
        """Begin with the elements that it had, of the types that are known by now."""
        self.state.clear()
        self.state[COUNT] = wrap(constant(0))
        for k, t in enumerate(self.types):
            self.state[str(k)] = wrap(empty_tape(t))
        for value in self.first:
            self.append(value)
        self.met = [set[tuple[str, str]]() for _ in self.types]

    def _learn(self, parts: Parts) -> bool:
        """Note the types of an element; whether these were known."""
        if not parts.numeric or any(d is not None for d in parts.defined):
            raise NeedsPython(f"a value appended to {WHAT} is not a number", "Append numbers and arrays.")
        types, narrowest = [n.type for n in parts.nodes], [undecided.narrowest(n) for n in parts.nodes]
        if self.like is None:
            self.like, self.types, self.narrowest = parts, types, narrowest
            return False
        if parts.form != self.like.form:
            raise NeedsPython(f"the elements of {WHAT} differ in kind", "Append values of the same kind.")
        merged = [one_type(f"the elements of {WHAT} have", a, b) for a, b in zip(self.types, types, strict=True)]
        known, self.types = merged == self.types, merged
        self.narrowest = [a if np.can_cast(a, b) else b for a, b in zip(self.narrowest, narrowest, strict=True)]
        return known

    # what Python does with lists --------------------------------------------------------------------------------------

    def append(self, value: Any) -> None:
        """``list.append``."""
        parts = apart(value, asked=True)
        if not self._learn(parts) or len(self.state) <= len(self.types):  # its tapes were taken back, with a trial
            raise Untyped(self)
        count = self.state[COUNT]
        for met, node in zip(self.met, parts.nodes, strict=False):
            met.add((node.type.form, node.type.dtype.kind))
        for k, (node, t) in enumerate(zip(parts.nodes, self.types, strict=True)):
            self.state[str(k)] = wrap(record(self.state[str(k)].node, count.node, of_type(node, t)))
        self.state[COUNT] = count + 1
        watch(value)
        for leaf in flatten(value)[0]:
            if isinstance(leaf, Tensor) and leaf.type.form == "array":
                beside(leaf.place.buffer, WHAT)  # not to be stored into any more

    def extend(self, values: Iterable[Any]) -> None:
        """``list.extend``."""
        if isinstance(values, GrownList):
            raise NeedsPython(f"{WHAT} is extended by another one", "Append its elements in a loop.")
        for value in values:
            self.append(value)

    def __iadd__(self, values: Iterable[Any]) -> Self:
        self.extend(values)
        return self

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._part(index)
        return self.element(position(size_written(index), self.size, 0))

    def _part(self, index: slice) -> GrownList:
        """The list of some of its elements."""
        if self.like is None:
            return GrownList([])
        return _of_stacks([wrap(s)[index] for s in self.stacks], self.like, self.types, self.narrowest)

    def __eq__(self, other: object) -> Any:
        if other is self:
            return True
        if not isinstance(other, list | GrownList):
            return NotImplemented
        if isinstance(other, GrownList) or other:
            raise NeedsPython(f"{WHAT} is compared", "Compare arrays: np.array_equal(np.array(values), ...).")
        return wrap(to_form(scalar.equal(self.count.node, 0), "python"))

    def __ne__(self, other: object) -> Any:
        found = self.__eq__(other)
        return found if found is NotImplemented else self.filled if isinstance(found, Tensor) else not found

    __hash__ = object.__hash__

    def __str__(self) -> str:
        raise NeedsPython(f"the text of {WHAT}", "Print the list itself, or return it.")

    __repr__ = __str__

    def __iter__(self) -> Iterator[Any]:
        raise NeedsPython(f"Python iterates over {WHAT}", "Use a `for` loop, or make it an array: np.array(...).")

    def __len__(self) -> int:
        return int(self.count)

    def __bool__(self) -> bool:
        return bool(self.filled)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        del copy
        return np.asarray(self.lazy, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return getattr(ufunc, method)(*(v.lazy if isinstance(v, GrownList) else v for v in inputs), **options)

    def __array_function__(self, function: Any, kinds: Any, args: Any, options: Any) -> Any:
        del kinds
        return function(*(v.lazy if isinstance(v, GrownList) else v for v in args), **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NeedsPython(
            f"{WHAT} does not support `{name}` in captured functions",
            "You can append to it, read its elements, and convert it: np.array(...).",
        )

    # what it is -------------------------------------------------------------------------------------------------------

    @property
    def count(self) -> Tensor:
        """Its length."""
        return self.state[COUNT]

    @property
    def filled(self) -> Tensor:
        """Whether there is an element in it."""
        return wrap(to_form(scalar.greater(self.count.node, 0), "python"))

    @property
    def size(self) -> Size:
        """Its length as a size."""
        size = size_of(self.count.node)
        if size is None:
            raise AssertionError
        return size

    def element(self, place: Node) -> Any:
        """The element at a place that is known to be one."""
        if self.like is None:
            raise NeedsPython("an element of an empty list is read", "Begin with one element.")
        parts = [_unstored(read_tape(self.state[str(k)].node, place, t)) for k, t in enumerate(self.types)]
        return watch(self.like.build(parts))

    @property
    def stacks(self) -> list[Node]:
        """For each number of an element, the array of them all."""
        found = [stack_tape(self.state[str(k)].node, self.size, t) for k, t in enumerate(self.types)]
        for node, narrowest in zip(found, self.narrowest, strict=True):
            undecided.note(node, narrowest)
        return found

    @property
    def lazy(self) -> Tensor:
        """The array that NumPy makes of it."""
        if len(self.types) != 1 or self.like is None or not is_number(self.like.build([0])):
            raise NeedsPython(
                f"an array is made of {WHAT}, but its elements are not numbers", "Append numbers or arrays."
            )
        plain = self.types[0] in {Type(np.dtype(float), (), form) for form in ("python", "scalar")}
        return wrap(self.stacks[0] if plain else self._unless_empty(self.stacks[0]))

    def _unless_empty(self, node: Node) -> Node:
        """A value that is of another type where there are no elements."""
        if self.first:
            return node
        from tensormagic.capture.staging import raising

        frame = usercode.user_frame()
        where = "" if frame is None else f" in {usercode.span(frame)}"
        capture = context.current()
        if capture is not None and not capture.abstract:  # in a cell, Python has the values
            raise NeedsPython(f"a list is empty{where}, depending on data", "Begin with one element.")
        error = CaptureError(f"a list is empty{where}, depending on data, and would then give another type")
        if capture is not None:
            capture.assumed = f"a list may be empty{where}, depending on data, and is assumed not to be"
        raising.note(raising.wait(scalar.greater(self.count.node, 0), error))
        return node

    @property
    def shown(self) -> Node | None:
        """The array of its elements, where these are numbers or arrays, of which Python shows a list; None where there are none."""
        if self.like is None:
            return None
        if len(self.types) != 1 or not is_number(self.like.build([0])):
            raise NeedsPython(f"the text of {WHAT}, whose elements are no numbers", "Return the list, and print it.")
        return self.stacks[0]

    @property
    def zero(self) -> Any:
        """What an element is that adds nothing."""
        if self.like is None:
            return 0
        zeros = [zeros_of(t) for t in self.types]
        return self.like.build(
            [wrap(z if t.form != "array" else self._unless_empty(z)) for z, t in zip(zeros, self.types, strict=True)]
        )

    def result(self) -> Outgrown:
        """What a function gives back of it."""
        if any(len(met) > 1 for met in self.met):
            raise NeedsPython(
                f"{WHAT} gets numbers of different classes (1, 1.0, np.float64(1))",
                "Append numbers of one class: float(x).",
            )
        build: Callable[[Sequence[Any]], Any] = (lambda _parts: []) if self.like is None else self.like.build
        return Outgrown([wrap(s) for s in self.stacks], [t.form for t in self.types], build, self.own)


def _unstored(node: Node) -> Tensor:
    found = wrap(node)
    if found.type.form == "array":
        beside(found.place.buffer, WHAT)
    return found


class Grown(Items):
    """The elements of a list without a known length, but for some at the beginning."""

    def __init__(self, values: GrownList, start: int = 0) -> None:
        self.values = values
        self.start = start

    def count(self) -> Size:
        return apply("max", self.values.size - self.start, 0)

    def at(self, index: Any) -> Any:
        return self.values.element(size_node(size_written(index) + self.start))


def unstacked(array: Tensor) -> GrownList:
    """The rows of an array as a list."""
    row = wrap(array.node)[0] if array.ndim > 1 else None
    t = Type(array.dtype, array.type.shape[1:], "scalar" if row is None else "array")
    return _of_stacks([array], apart(wrap(of_type(constant(array.dtype.type(0)), t))), [t], [])


def _of_stacks(stacks: Sequence[Tensor], like: Parts, types: list[Type], narrowest: list[np.dtype[Any]]) -> GrownList:
    """The list whose elements are like others, where the arrays of their numbers are there."""
    found = GrownList([])
    found.like, found.types, found.narrowest = like, types, narrowest
    tapes = {str(k): wrap(unstack_tape(s.node)) for k, s in enumerate(stacks)}
    found.state = {COUNT: extent(stacks[0].type.shape[0]), **tapes}
    return found


def given_back(value: Any) -> Any:
    """What a function gives, with lists without a known length as what becomes a list when the graph has run; itself without such."""
    if isinstance(value, GrownList):
        return value.result()
    if type(value) not in {list, tuple, dict}:
        return value
    parts = value.values() if type(value) is dict else value
    found = [*map(given_back, parts)]
    if all(map(operator.is_, found, parts)):
        return value
    return dict(zip(value, found, strict=True)) if type(value) is dict else type(value)(found)


# in place of Python's lists -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Replaced:
    """Python's lists, and what stands in their places: the variables, what these held, and lists without a known length."""

    slots: list[Slot]
    before: list[list[Any]]
    made: list[GrownList]

    def back(self) -> None:
        """Have the variables hold Python's lists again."""
        for slot, value in zip(self.slots, self.before, strict=True):
            slot.set(value)

    def listed(self) -> None:
        """Have Python's lists, where values are there, hold what was appended: elements of arrays, of which the length is computed."""
        stacks = [m.stacks if m.like is not None else [] for m in self.made]
        hooks.compute([*(m.count.node for m in self.made), *(n for nodes in stacks for n in nodes)])
        self.back()
        for value, made, nodes in zip(self.before, self.made, stacks, strict=True):
            count = int(made.count.numpy())
            if made.like is not None and count > len(made.first):
                rows = [Stack(n, t.form, count).elements for n, t in zip(nodes, made.types, strict=True)]
                value.extend(made.like.build(list(parts)) for parts in [*zip(*rows, strict=True)][len(made.first) :])


def growing(functions: Sequence[Any], names: Sequence[str], stage: Callable[[], None]) -> Replaced:
    """Run ``stage`` with the lists of ``names`` as lists without a known length; they are put back where it fails."""
    slots = _lists(World(functions), names)
    before = [s.get() for s in slots]
    found = Replaced(slots, before, [GrownList(v) for v in before])
    for slot, value in zip(slots, found.made, strict=True):
        slot.set(value)
    try:
        until_typed(found.made, stage)
    except BaseException:
        found.back()
        raise
    return found


def until_typed(made: Sequence[GrownList], stage: Callable[[], None]) -> None:
    """Run ``stage`` until the types of what lists hold are known."""
    for passes in range(1, PASSES + 1):
        try:
            stage()
        except Untyped as error:
            if passes == PASSES or not any(error.grown is m for m in made):
                raise
            error.grown.prepare()
        else:
            return


def _lists(world: World, names: Sequence[str]) -> list[Slot]:
    """The variables, items and attributes that hold lists which nobody else knows: no arguments, which the caller has."""
    found: list[Slot] = []
    capture = context.current()
    callers = {} if capture is None else capture.callers
    for slot in [s for s in world.variables.values() if s.name in names]:
        value = slot.get()
        inside = value if isinstance(value, dict) else getattr(value, "__dict__", None)
        items = [Slot(inside, k, f"{slot.name}[{key_text(k)}]") for k in inside] if isinstance(inside, dict) else []
        found += [s for s in (slot, *items) if type(s.get()) is list and id(s.get()) not in callers]
    return [
        s
        for s in found
        if not lead_elsewhere([s.get()], [s]) and not any(s.get() is t.get() for t in found if t is not s)
    ]
