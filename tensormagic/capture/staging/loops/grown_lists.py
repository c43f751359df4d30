"""Lists of data-dependent length, in code without values: their elements lie on tapes, their length is a number of the graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.hooks import run_time
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers import undecided_dtypes
from tensormagic.capture.numbers.classes import Classes
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.branches.merged_values import Parts, apart, is_number
from tensormagic.capture.staging.loops.watched_containers import watch
from tensormagic.capture.staging.regions import of_type, one_type, zeros_of
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.staging.trials.trial import iteration, trial
from tensormagic.capture.staging.trials.world import Journaled
from tensormagic.capture.stores.alias import beside, part_of, reach
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.tree import flatten, is_container, items_of, with_items
from tensormagic.capture.values.list_elements import Outgrown, Twins
from tensormagic.capture.values.value import Tensor, extent, wrap
from tensormagic.capture.values.value import as_size as size_written
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size
from tensormagic.ir.type import Type, python
from tensormagic.ops.form import to_form
from tensormagic.ops.indices.position import position
from tensormagic.ops.leaf import constant, size_of
from tensormagic.ops.move import broadcast
from tensormagic.ops.pointwise import astype
from tensormagic.ops.reverse.tape import empty_tape, read_tape, record
from tensormagic.ops.reverse.tape_stack import stack_tape, unstack_tape
from tensormagic.ops.scalars import scalar

WHAT = "a list that grows a data-dependent number of times"
COUNT = "count"  # the key of the length, beside those of the tapes


class Untyped(NeedsPython):
    """Raised when a list gets values of another type than was known: code is traced again."""

    def __init__(self, grown: GrownList) -> None:
        super().__init__("a list does not keep the type of its elements", "Append numbers or arrays of the same type.")
        self.grown = grown


class GrownList(Journaled):
    """Represents a list whose length is data-dependent.

    Parameters
    ----------
    values
        Its elements so far.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.first = list(values)
        self.others = Others()
        self.like: Parts | None = None
        self.types: list[Type] = []
        self.narrowest: list[np.dtype[Any]] = []  # dtypes that NumPy's array of these numbers may have for some data
        self.state: dict[str, Tensor] = {}  # the length, and a tape for each number of an element
        self.classes: list[
            frozenset[Type]
        ] = []  # the types of the numbers in its elements; where one has several, a further tape says which
        self.only: list[Type] = []  # the types of each number while it had one dtype
        for value in self.first:
            self._learn(apart(value))
        self.prepare()

    def prepare(self) -> None:
        """Begin with the elements that it had, of the types that are known by now."""
        self.state.clear()
        self.state[COUNT] = wrap(constant(0))
        for k, t in enumerate(self.types):
            self.state[str(k)] = wrap(empty_tape(t))
            if self._is_coded(k):
                self.state[_class(k)] = wrap(empty_tape(python(int)))
        for value in self.first:
            self._append(value, once=True)

    def widen(self) -> None:
        """Convert what was appended to the types known by now."""
        for k, t in enumerate(self.types):
            tape = self.state.get(str(k))
            if tape is None:
                self.state[str(k)] = wrap(empty_tape(t))
            elif tape.type.dtype != t.dtype:
                stack = stack_tape(tape.node, self.size, Type(tape.type.dtype, t.shape))
                self.state[str(k)] = wrap(unstack_tape(astype(stack, t.dtype)))
            if self._is_coded(k) and _class(k) not in self.state:
                codes = broadcast(constant(number_classes.number(self.only[k])), (self.size,))
                self.state[_class(k)] = wrap(unstack_tape(codes))

    def _learn(self, parts: Parts) -> bool:
        """Note the types of an element; return whether these were known."""
        if not parts.numeric or any(d is not None for d in parts.defined):
            raise NeedsPython(f"a value appended to {WHAT} is not a number", "Append numbers and arrays.")
        types, narrowest = [n.type for n in parts.nodes], [undecided_dtypes.narrowest(n) for n in parts.nodes]
        if self.like is None:
            self.like, self.types, self.narrowest = parts, types, narrowest
            self.classes = [_classes(n).types for n in parts.nodes]
            self.only = [next(iter(c)) for c in self.classes]
            return False
        if parts.form != self.like.form:
            raise NeedsPython(f"the elements of {WHAT} differ in kind", "Append values of the same kind.")
        merged = [_merged(a, b) for a, b in zip(self.types, types, strict=True)]
        classes = [known | _classes(n).types for known, n in zip(self.classes, parts.nodes, strict=True)]
        known = merged == self.types and classes == self.classes
        self.only = [next(iter(c)) if len(c) == 1 else o for c, o in zip(self.classes, self.only, strict=True)]
        self.types, self.classes = merged, classes
        self.narrowest = [a if np.can_cast(a, b) else b for a, b in zip(self.narrowest, narrowest, strict=True)]
        return known

    def _is_coded(self, number: int) -> bool:
        """Return whether a number in an element has a data-dependent class, which is recorded for each element."""
        return len(self.classes[number]) > 1 and all(map(number_classes.is_number, self.classes[number]))

    # what Python does with lists --------------------------------------------------------------------------------------

    def append(self, value: Any) -> None:
        """Append a value, as ``list.append`` does."""
        self._append(value, once=False)

    def _append(self, value: Any, *, once: bool) -> None:
        parts = apart(value, asked=True)
        coded = sum(map(self._is_coded, range(len(self.types))))
        if (
            not self._learn(parts) or len(self.state) <= len(self.types) + coded
        ):  # its tapes were taken back, with a trial
            if trial() is not None:
                raise Untyped(self)
            self.widen()
        count = self.state[COUNT]
        for k, (node, t) in enumerate(zip(parts.nodes, self.types, strict=True)):
            self._record(str(k), of_type(node, t))
            if self._is_coded(k):
                self._record(_class(k), _classes(node).code)
        self.state[COUNT] = count + 1
        watch(value)
        for leaf in flatten(value)[0]:
            if isinstance(leaf, Tensor) and leaf.type.form == "array":
                self.others.note(leaf.place.buffer, once=once)
                beside(leaf.place.buffer, WHAT)  # may no longer be stored into

    def _record(self, key: str, value: Node) -> None:
        self.state[key] = wrap(record(self.state[key].node, self.count.node, value))

    def extend(self, values: Iterable[Any]) -> None:
        """Append each of ``values``, as ``list.extend`` does."""
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
        """Return the list of the elements that a slice selects."""
        if self.like is None:
            return GrownList([])
        codes = {k: wrap(s)[index] for k, s in self.codes.items()}
        return _of_stacks([wrap(s)[index] for s in self.stacks], self, codes)

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
        """Return the length, as a lazy number."""
        return self.state[COUNT]

    @property
    def filled(self) -> Tensor:
        """Return whether the list has an element, as a lazy bool."""
        return wrap(to_form(scalar.greater(self.count.node, 0), "python"))

    @property
    def size(self) -> Size:
        """Return the length as a size."""
        size = size_of(self.count.node)
        if size is None:
            raise AssertionError
        return size

    def element(self, place: Node) -> Any:
        """Return the element at a place that is known to be within the list."""
        if self.like is None:
            raise NeedsPython("an element of an empty list is read", "Begin with one element.")
        return watch(self.like.build([self._number(k, place) for k in range(len(self.types))]))

    def _number(self, k: int, place: Node) -> Tensor:
        """Return the ``k``-th number, or array, of the element at a place."""
        found = read_tape(self.state[str(k)].node, place, self.types[k])
        if not self._is_coded(k):
            return self._unstored(found)
        code = read_tape(self.state[_class(k)].node, place, python(int))
        return wrap(number_classes.from_among(found, Classes(code, self.classes[k])))

    @property
    def stacks(self) -> list[Node]:
        """Return, for each number of an element, the array of its values in all elements."""
        found = [stack_tape(self.state[str(k)].node, self.size, t) for k, t in enumerate(self.types)]
        for node, narrowest in zip(found, self.narrowest, strict=True):
            undecided_dtypes.note(node, narrowest)
        return found

    @property
    def codes(self) -> dict[int, Node]:
        """Return the arrays of class codes for numbers of several classes."""
        coded = [k for k in range(len(self.types)) if self._is_coded(k)]
        return {k: stack_tape(self.state[_class(k)].node, self.size, python(int)) for k in coded}

    @property
    def several(self) -> list[Classes | None]:
        """Return for each number in an element its possible classes with the array of codes, or None if there is one class."""
        codes = self.codes
        return [Classes(codes[k], c) if k in codes else None for k, c in enumerate(self.classes)]

    @property
    def lazy(self) -> Tensor:
        """Return the array that NumPy makes of the list."""
        rows, (several,) = self.rows, self.several
        return wrap(rows if several is None else number_classes.of_array(rows, [several]))

    @property
    def rows(self) -> Node:
        """Return the elements, numbers or arrays, as one array."""
        if len(self.types) != 1 or self.like is None or not is_number(self.like.build([0])):
            raise NeedsPython(
                f"an array is made of {WHAT}, but its elements are not numbers", "Append numbers or arrays."
            )
        plain = self.types[0] in {Type(np.dtype(float), (), form) for form in ("python", "scalar")}
        return self.stacks[0] if plain else self._unless_empty(self.stacks[0])

    def _unless_empty(self, node: Node) -> Node:
        """Return ``node``, with a check at run time that the list is not empty if an empty one gives another type."""
        if self.first:
            return node
        frame = usercode.user_frame()
        where = "" if frame is None else f" in {usercode.span(frame)}"
        capture = context.current()
        if capture is not None and not capture.abstract:  # in a cell, Python has the values
            raise NeedsPython(f"a list is empty{where}, depending on data", "Begin with one element.")
        error = CaptureError(f"a list is empty{where}, depending on data, and would then give another type")
        if capture is not None:
            capture.refusals.assumed = f"a list may be empty{where}, depending on data, and is assumed not to be"
        if not run_time.defer(scalar.greater(self.count.node, 0), error):
            raise context.uncaught()
        return node

    @property
    def shown(self) -> Node | None:
        """Return the array of the elements, if they are numbers or arrays, which Python shows as a list; None for an empty list."""
        if self.like is None:
            return None
        if len(self.types) != 1 or not is_number(self.like.build([0])):
            raise NeedsPython(f"the text of {WHAT}, whose elements are no numbers", "Return the list, and print it.")
        return self.stacks[0]

    @property
    def holds_numbers(self) -> bool:
        """Return whether the elements are numbers, to which Python's 0 is added in a sum."""
        return len(self.types) == 1 and number_classes.is_number(self.types[0]) and number_classes.followed()

    @property
    def zero(self) -> Any:
        """Return the zero element that a sum starts with."""
        if self.like is None:
            return 0
        zeros = [zeros_of(t) for t in self.types]
        return self.like.build(
            [wrap(z if t.form != "array" else self._unless_empty(z)) for z, t in zip(zeros, self.types, strict=True)]
        )

    def result(self) -> Outgrown:
        """Return what a function returns for this list: the arrays of its numbers, and how a list is made of them."""
        if any(len(c) > 1 and not self._is_coded(k) for k, c in enumerate(self.classes)):
            raise NeedsPython(
                f"{WHAT} gets numbers of different classes (1, 1.0, np.float64(1))",
                "Append numbers of one class: float(x).",
            )
        build: Callable[[Sequence[Any]], Any] = (lambda _parts: []) if self.like is None else self.like.build
        codes, types = self.codes, number_classes.types()
        classes = {k: (len(self.types) + at, types) for at, k in enumerate(codes)}
        stacks = [wrap(s) for s in (*self.stacks, *codes.values())]
        return Outgrown(
            stacks, [t.form for t in self.types], build, classes, Twins(id(self), id(self.others), self.others.said)
        )

    def _unstored(self, node: Node) -> Tensor:
        found = wrap(node)
        if found.type.form == "array":
            beside(found.place.buffer, WHAT)
            part_of(found.place.buffer, self.others.older)
        return found


def in_a_list(own: Buffer) -> bool:
    """Return whether an array may be an element of a list of data-dependent length."""
    return any(WHAT in text for text in own.alias.beside)


class Others:
    """Records which elements arrays that are appended to a list may be the same as: arrays that Python has, or each other."""

    def __init__(self) -> None:
        self.older: list[Buffer] = []
        self.said: str | None = None

    def note(self, own: Buffer, *, once: bool) -> None:
        """Note what an appended array may be; it is appended ``once``, or in each iteration."""
        given = [b for b in reach(own) if b.argument or b.array is not None]
        again = not once and (own.born < iteration() or in_a_list(own))
        if given or again:
            self.older.append(own)
            names = [b.name for b in given if b.name]
            self.said = self.said or (names[0] if names else "another array")


def _merged(first: Type, second: Type) -> Type:
    """Return the type that holds numbers, or arrays, of two types; for numbers, the class of each is recorded."""
    numbers = number_classes.is_number(first) and number_classes.is_number(second) and number_classes.followed()
    return one_type(f"the elements of {WHAT} have", first, second, promotes=numbers)


def _class(number: int) -> str:
    """Return the key of the tape with the class codes of a number in each element."""
    return f"class {number}"


def _classes(node: Node) -> Classes:
    """Return the possible classes of an appended value; that of its node if nothing else is known."""
    found = None
    if number_classes.is_number(node.type) and number_classes.followed():
        found = number_classes.classes_of(node)
        if found is None and number_classes.are_needed():
            raise NeedsPython(
                f"the class of a number in {WHAT} is data-dependent", "Append numbers of one class: float(x)."
            )
    return found or number_classes.one_class(node.type.with_shape((), node.type.form))


def _of_stacks(stacks: Sequence[Tensor], like: GrownList, codes: Mapping[int, Tensor]) -> GrownList:
    """Return a list in the form of ``like``, made from the arrays of its numbers and class codes."""
    found = GrownList([])
    found.like, found.types, found.narrowest, found.classes = like.like, like.types, like.narrowest, like.classes
    found.others = like.others
    arrays = {**{str(k): s for k, s in enumerate(stacks)}, **{_class(k): s for k, s in codes.items()}}
    found.state = {
        COUNT: extent(stacks[0].type.shape[0]),
        **{key: wrap(unstack_tape(s.node)) for key, s in arrays.items()},
    }
    return found


def given_back(value: Any) -> Any:
    """Return a function's result with each list of data-dependent length replaced by what becomes a list when the graph has run."""
    if isinstance(value, GrownList):
        return value.result()
    if not is_container(value):
        return value
    parts = items_of(value)
    found = [*map(given_back, parts)]
    return value if all(map(operator.is_, found, parts)) else with_items(value, found)
