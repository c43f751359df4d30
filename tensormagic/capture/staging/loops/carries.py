"""The state that a loop carries from iteration to iteration: numbers, arrays, arrays of varying length, and names bound to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers.classes import Classes, is_number
from tensormagic.capture.staging.branches.lifted_values import aligned
from tensormagic.capture.staging.branches.merged_values import NONE, ExistenceCheck, Partial, Parts, apart
from tensormagic.capture.staging.branches.slots import UNBOUND, Slot
from tensormagic.capture.staging.loops.unchanged_entries import Installed, Path, Unchanged
from tensormagic.capture.staging.regions import grown_type, may_be, of_type
from tensormagic.capture.staging.trials.needs_python import Grows, NeedsPython
from tensormagic.capture.staging.trials.world import Journaled
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ir.type import Type, python
from tensormagic.ops.leaf import Source, input_node
from tensormagic.ops.move_kind import same, show
from tensormagic.ops.pointwise import astype
from tensormagic.ops.reverse.tape import tape_type
from tensormagic.ops.reverse.tape_stack import boxed, unboxed


class Varies(NeedsPython):
    """Raised when a carried array changes its length from iteration to iteration: a region can hold it, at a cost."""


@dataclass(frozen=True)
class Names:
    """Represents what the syntax says of a loop's names, see :func:`tensormagic.capture.staging.syntax.liveness`.

    Parameters
    ----------
    bound
        Names that an iteration binds.
    entering
        Names whose value before an iteration matters.
    leaving
        Names that are needed after the loop.
    anew
        Names that an iteration binds other than by an in-place operation.
    stored
        Names of objects that an iteration stores into.
    grown
        Names on which an iteration only calls ``append``.
    lists
        Names of lists that an iteration may append to, or of their holders.
    """

    bound: tuple[str, ...] = ()
    entering: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    anew: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    grown: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()


def check_kept(slot: Slot, value: Any) -> None:
    """Raise where a name is not bound any more after an iteration, or where its list has grown in a branch."""
    if value is UNBOUND:
        raise NeedsPython(f"an iteration deletes {slot.name}", "Remove the del.")
    if isinstance(value, Journaled) and not isinstance(slot.get(), Journaled):
        raise Grows(f"{slot.said} grows a data-dependent number of times", "Fill an array of the largest size.")


@dataclass
class Lengths:
    """Records which array lengths change together: those that begin equal, until an iteration makes them differ.

    Parameters
    ----------
    apart
        Carries and axes whose lengths change independently.
    here
        In the traced iteration, by initial length: the lengths, and whose they are.
    """

    apart: set[tuple[Carry, int]] = field(default_factory=set["tuple[Carry, int]"])
    here: dict[Size, tuple[Size, list[tuple[Carry, int]]]] = field(default_factory=dict)

    def known(self, carry: Carry) -> dict[int, Size]:
        """Return the lengths of a carry that are equal to those of another one."""
        return {
            k: self.here[start][0]
            for k in carry.axes
            if (carry, k) not in self.apart and (start := carry.start.type.shape[k]) in self.here
        }

    def note(self, carry: Carry, value: Node) -> None:
        """Note the lengths of a carry in an iteration."""
        for k in carry.axes:
            if (carry, k) not in self.apart:
                _, group = self.here.setdefault(carry.start.type.shape[k], (value.type.shape[k], []))
                group.append((carry, k))

    def hold(self) -> bool:
        """Return whether lengths assumed to change in step did so in this iteration."""
        wrong = [
            (carry, k)
            for _, [(first, axis), *others] in self.here.values()
            for carry, k in others
            if carry.after[k] != first.after[axis]
        ]
        self.apart.update(wrong)
        return not wrong


@dataclass(eq=False)
class Carry:
    """Represents one number or array carried from iteration to iteration.

    Parameters
    ----------
    label
        For messages.
    start
        Its initial value.
    type
        Its assumed type at the beginning of an iteration.
    axes
        Those whose length differs from iteration to iteration: it is carried on a tape then.
    stand_in, value, end
        In the last tracing: its value in the iteration, for the graph and for the code, and its next value.
    question
        A condition for whether it exists, if a name may be unbound.
    classes, code
        The possible classes of a number of data-dependent class, and the code: see
        :mod:`tensormagic.capture.numbers.classes`.
    """

    label: str
    start: Node
    type: Type
    axes: tuple[int, ...] = ()
    stand_in: Node | None = None
    value: Node | None = None
    end: Node | None = None
    question: ExistenceCheck = NONE
    classes: frozenset[Type] = frozenset()
    code: Carry | None = None
    becomes: Type | None = None
    """What a number of Python's is after the first iteration, where that is one type for sure."""
    after: tuple[Size, ...] = ()
    """The shape of what the iteration made of it."""
    narrowed: bool = False
    """Whether it was taken for NumPy's number where an iteration may leave Python's as it is."""

    @classmethod
    def of_buffer(cls, label: str, node: Node) -> Carry:
        """Return the carry for the content of an array that iterations store into."""
        question = ExistenceCheck.of(node)
        return cls(label, question.unasked(node), node.type, question=question)

    def fresh(self, lengths: Lengths | None = None) -> Node:
        """Make a new stand-in; return what the code sees of it, with the ``lengths`` that it has in common with others."""
        self.stand_in = input_node(Source(self.label), tape_type(self.type) if self.axes else self.type)
        self.value = self.outside(self.stand_in, {} if lengths is None else lengths.known(self))
        if lengths is not None:
            lengths.note(self, self.value)
        if self.code is not None:
            number_classes.note(self.value, Classes(self.code.fresh(), self.classes))
        return self.value

    def outside(self, node: Node, known: Mapping[int, Size] | None = None) -> Node:
        """Return what the code sees of the value that the region holds."""
        return unboxed(node, self.type, self.axes, known) if self.axes else node

    @property
    def first(self) -> Node:
        """Return the value that the region begins with."""
        start = of_type(self.start, self.type)
        return boxed(start) if self.axes else start

    def settle(self, loop: str, end: Node, *, varies: bool = False) -> bool:
        """Record the next value; return whether the type stays. If it ``varies``, lengths may differ."""
        self.after = end.type.shape
        axes = differing(self.type, end.type)
        if axes and not varies:
            raise Varies(
                f"{loop}: {self.label} begins with shape {show(self.type.shape)} and becomes {show(end.type.shape)}, "
                "so its shape differs from iteration to iteration",
                "Fill an array of the largest size.",
            )
        if not set(axes) <= set(self.axes):
            self.axes = tuple(sorted({*self.axes, *axes}))
            return False
        shape = tuple(
            s if k in self.axes else t for k, (s, t) in enumerate(zip(self.type.shape, end.type.shape, strict=False))
        )
        fitting = end.type.with_shape(shape, end.type.form) if self.axes else end.type
        if self.start.type.form == "python":
            fitting = self._beside_pythons(loop, end, fitting)
        grown = grown_type(loop, self.label, self.start.type, self.type, fitting)
        same_type = grown == self.type
        self.type = grown
        self.end = end
        if same_type:
            self.end = boxed(astype(end, grown.dtype)) if self.axes else of_type(end, grown)
        return same_type

    def _beside_pythons(self, loop: str, end: Node, after: Type) -> Type:
        """Return the type of a carry that begins as a Python number; where an iteration may leave one, it has NumPy's dtype."""
        found = number_classes.classes_of(end)
        types = frozenset({after}) if found is None else found.types
        others = {t for t in types if t.form != "python"}
        if self.type == self.start.type:
            self.becomes = after if len(types) == 1 else None
        if len(others) != 1 or len(types) == 1 or (own := others.pop()).dtype == after.dtype:
            return after
        holds = may_be(own.dtype, self.start)
        if not holds and context.in_cell():
            raise NeedsPython(
                f"{loop}: {self.label} begins as {self.start.type} and may become {own}",
                f"Begin with a number of {own.dtype}.",
            )
        if self.narrowed or not holds:  # it computes a Python number that is not exact in NumPy's dtype
            return after
        self.narrowed = True
        return own

    def settle_class(self, loop: str, end: Node) -> bool:
        """Note the class of the number after an iteration; return whether it was known."""
        if not number_classes.followed() or not is_number(self.type):
            return True
        start, after = number_classes.classes_of(self.start), number_classes.classes_of(end)
        if (start is None or after is None) and not number_classes.are_needed():
            self.classes, self.code = frozenset(), None
            return True
        if start is None or after is None:
            raise NeedsPython(f"{loop}: the class of {self.label} is data-dependent", "Begin with 0.0 instead of 0.")
        classes = self.classes | start.types | after.types
        if len(classes) == 1:
            return True
        known, self.classes = classes == self.classes, classes
        if self.code is None:
            self.code = Carry(self.label, start.code, python(int))
        self.code.settle(loop, after.code)
        return known


def differing(before: Type, after: Type) -> tuple[int, ...]:
    """Return the axes of an array whose length differs after an iteration."""
    if before.form != "array" or after.form != "array" or before.ndim != after.ndim:
        return ()
    pairs = enumerate(zip(before.shape, after.shape, strict=True))
    return tuple(k for k, (s, t) in pairs if s != t and (nodes_of(s) or nodes_of(t) or not same(s, t)))


@dataclass(eq=False)
class CarriedSlot:
    """Represents a slot whose value is carried: carries for its numbers, and conditions for what may be unbound."""

    slot: Slot
    parts: Parts
    values: list[Carry]
    conditions: list[Carry | None]
    start: Any = UNBOUND
    given: list[Tensor] = field(default_factory=list[Tensor])
    stays: Unchanged = field(default_factory=Unchanged)
    """The entries that iterations hand on as they are: ``start`` and ``parts`` are without them."""
    installed: Installed | None = None

    @property
    def carries(self) -> list[Carry]:
        """Return all carries of the slot."""
        return [*self.values, *codes_of(self.values), *(c for c in self.conditions if c is not None)]

    def fitted(self, value: Any) -> tuple[Any, Any]:
        """Return the slot's value in an iteration, and a value that the iteration leaves, in one form: either may be None."""
        return aligned(self.stays.without(self.parts.build(self.given)), self.stays.without(value), self.slot.said)

    def unchanged(self, value: Any) -> list[Path]:
        """Return the paths of entries that the iteration leaves unchanged, given the final ``value``; none if nothing else remains."""
        if self.installed is None or self.start is UNBOUND or any(self.conditions):
            return []
        paths = self.installed.unchanged(self.stays.within(self.start), value)
        return paths if apart(Unchanged(self.start, paths).without(self.start)).numeric else []

    def install(self, why: str, lengths: Lengths) -> None:
        """Put stand-ins into the slot."""
        self.given = []
        for value, condition in zip(self.values, self.conditions, strict=True):
            node = value.fresh(lengths)
            if condition is None:
                self.given.append(Tensor(Place(Buffer(node, name=self.slot.said))))
            else:
                self.given.append(Partial(node, condition.fresh(), self.slot.said, why))
        built = self.parts.build(self.given)
        self.installed = Installed(built)
        self.slot.set(built)


def codes_of(carries: Sequence[Carry]) -> list[Carry]:
    """Return the carries with class codes of numbers of data-dependent class."""
    return [c.code for c in carries if c.code is not None]


def split(carries: Sequence[Carry]) -> tuple[list[Node], list[Node], list[Node]]:
    """Return the stand-ins, ends and starts of carries."""
    stand_ins = [c.stand_in for c in carries if c.stand_in is not None]
    ends = [c.end for c in carries if c.end is not None]
    return stand_ins, ends, [c.first for c in carries]
