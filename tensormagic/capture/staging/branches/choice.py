"""Joins the results of two branches on a data-dependent condition, pair by pair, by a ``cond``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers import undecided_dtypes
from tensormagic.capture.numbers.classes import Classes, is_number
from tensormagic.capture.numbers.optional import narrowed
from tensormagic.capture.staging.branches import merged_values
from tensormagic.capture.staging.branches.containers import NOTHING, OlderContainers, SharedStandIns
from tensormagic.capture.staging.branches.lifted_values import aligned
from tensormagic.capture.staging.branches.merged_values import ExistenceCheck, Partial, Parts, apart
from tensormagic.capture.staging.branches.shared_arrays import (
    Joined,
    Leaf,
    arrays_of,
    none_held,
    numbers_of,
    share,
    writeable,
)
from tensormagic.capture.staging.branches.slots import UNBOUND, Slot
from tensormagic.capture.staging.loops.carries import differing
from tensormagic.capture.staging.regions import (
    below,
    beside,
    fitting_branches,
    graph_of,
    of_type,
    one_type,
    zeros_of,
)
from tensormagic.capture.staging.trials.aliases import is_own
from tensormagic.capture.staging.trials.needs_python import Grows, NeedsPython
from tensormagic.capture.staging.trials.trial import Outcome
from tensormagic.capture.staging.trials.world import Journaled
from tensormagic.capture.stores.alias import Alternative, places
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size
from tensormagic.ir.type import Type, python_kind
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.leaf import constant
from tensormagic.ops.pointwise import astype
from tensormagic.ops.regions import control
from tensormagic.ops.reverse.tape_stack import boxed, unboxed
from tensormagic.ops.scalars import scalar


@dataclass(eq=False)
class Choice:
    """Represents pairs of results of two branches, and how they are joined.

    Parameters
    ----------
    predicate
        Selects the branch.
    known
        The values that existed before: anything else is computed only on its branch.
    outcomes
        What each branch has done.
    why
        The message for a name that only one branch binds.
    slots
        The slots bound on a branch.
    boxes
        Results whose lengths differ between the branches: their types otherwise, and the axes of each.
    lengths
        The differing lengths, if known.
    narrower
        Results that one branch returns as numbers of another dtype, with that.
    classes
        Results that may be numbers of several classes, with the number of the code's result, and the classes.
    bound
        The numbers and arrays the slots then hold.
    functions
        The two branches as functions of staged code, if they are statements.
    arrays
        The memory of NumPy arrays that the code could reach before.
    older, once
        The containers that it could reach before, and the stand-ins for those between which it chooses.
    """

    predicate: Node
    known: set[Node]
    outcomes: tuple[Outcome, Outcome]
    why: str
    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    steps: list[Callable[[Callable[[int], Node]], None]] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list[Slot])
    boxes: dict[int, tuple[Type, dict[int, tuple[Size, Size]]]] = field(default_factory=dict)
    lengths: dict[tuple[Size, Size], Size] = field(default_factory=dict[tuple[Size, Size], Size])
    narrower: dict[int, np.dtype[Any]] = field(default_factory=dict[int, np.dtype[Any]])
    classes: dict[int, tuple[int, frozenset[Type]]] = field(default_factory=dict[int, tuple[int, frozenset[Type]]])
    bound: list[Joined] = field(default_factory=list[Joined])
    functions: Sequence[Any] = ()
    arrays: set[int] = field(default_factory=set[int])
    older: OlderContainers | None = None
    once: SharedStandIns = field(default_factory=SharedStandIns)

    def pair(self, first: Node, second: Node, what: str) -> int:
        """Add a pair of results, ``first`` or ``second``; return its number."""
        axes = () if values_are_there() else differing(first.type, second.type)
        alike = second.type.with_shape(first.type.shape, second.type.form) if axes else second.type
        t = merge_type(what, beside(first, alike), beside(second, first.type) if not axes else alike)
        narrower = [w.dtype for w in (first.type, second.type) if w.dtype != t.dtype]
        if narrower and not t.shape:
            self.narrower[len(self.pairs)] = narrower[0]
        if axes:
            self.boxes[len(self.pairs)] = t, {k: (first.type.shape[k], second.type.shape[k]) for k in axes}
            self.pairs.append((boxed(astype(first, t.dtype)), boxed(astype(second, t.dtype))))
        else:
            self.pairs.append((of_type(first, t), of_type(second, t)))
        number = len(self.pairs) - 1
        if first is not second and is_number(t) and number_classes.followed():
            self._classify(number, first, second, what)
        return number

    def _classify(self, number: int, first: Node, second: Node, what: str) -> None:
        """Record the possible classes of a number, if they are data-dependent."""
        one, other = number_classes.classes_of(first), number_classes.classes_of(second)
        if (one is None or other is None) and not number_classes.are_needed():
            return
        if one is None or other is None:
            raise NeedsPython(f"{what} a number whose class depends on data", "Let both give numbers of the same kind.")
        if len(types := one.types | other.types) > 1:
            self.classes[number] = self.pair(one.code, other.code, ""), types

    def _result(self, number: int, chosen: Mapping[tuple[Node, Node], Node]) -> Node:
        """Return result ``number`` as the code sees it."""
        found = chosen.get(self.pairs[number], self.pairs[number][0])
        if number in self.classes:
            code, types = self.classes[number]
            classes = Classes(self._result(code, chosen), types)
            if self.pairs[number] not in chosen:  # 1 or True: the 1 that stands elsewhere is another value
                found = number_classes.by_itself(found, classes)
            number_classes.note(found, classes)
        if number in self.narrower:
            undecided_dtypes.note(found, self.narrower[number])
        return self._of_box(found, *self.boxes[number]) if number in self.boxes else found

    def _of_box(self, found: Node, t: Type, axes: dict[int, tuple[Size, Size]]) -> Node:
        """Return an array from its box; its lengths are those of others that are as long in either branch."""
        known = {k: self.lengths[ends] for k, ends in axes.items() if ends in self.lengths}
        array = unboxed(found, t, tuple(axes), known)
        for k, ends in axes.items():
            self.lengths.setdefault(ends, array.type.shape[k])
        return context.record(array)

    def name(self, slot: Slot, first: Any, second: Any) -> None:
        """Join the two values of a slot after the branches."""
        first, second = (narrowed(v, self.predicate, holds=branch == 0) for branch, v in enumerate((first, second)))
        if merged_values.same_value(first, second):
            self._stays(*(arrays_of(first) or ()))
            self.steps.append(lambda _of: slot.set(first))
            return
        may = NOTHING if self.older is None else self.older.among((first, second), self.slots, self.outcomes)
        may.refuse(slot)
        (self._join_one_sided if first is UNBOUND or second is UNBOUND else self._join_two_sided)(slot, first, second)
        other = scalar.logical_not(self.predicate)
        self.steps.append(lambda _of: may.note(slot, [(self.predicate, first), (other, second)]))

    def _join_two_sided(self, slot: Slot, first: Any, second: Any) -> None:
        values = first, second
        first, second = aligned(first, second, slot.said)
        one, other = self._alike(slot, self._apart(slot, 0, first), self._apart(slot, 1, second), first, second)
        what = f"the two branches give {slot.said}"
        pairs = list(zip(one.nodes, other.nodes, strict=True))
        self._refuse_without_axes(slot, pairs, first, second)
        unlike = _unlike_numbers if values_are_there() else _unlike_digits
        if context.in_cell() and any(map(unlike, pairs)):
            raise self._unlike(slot, first, second)  # in a cell it can be computed which of them it is
        numbers = [self.pair(*pair, what) for pair in pairs]
        conditions = [
            self._condition(merged_values.both(a, b, lambda x, y: x) is None, a, b)
            for a, b in zip(one.defined, other.defined, strict=True)
        ]
        self._bind(slot, one, numbers, conditions, (first, second), values)

    def _apart(self, slot: Slot, branch: int, value: Any) -> Parts:
        none_held([value], self.arrays, slot)
        return self.outcomes[branch].seen(lambda: apart(value, asked=slot.internal))

    def _alike(self, slot: Slot, one: Parts, other: Parts, first: Any, second: Any) -> tuple[Parts, Parts]:
        if one.form != other.form or not one.numeric:
            raise self._unlike(slot, first, second)
        return one, other

    def _unlike(self, slot: Slot, first: Any, second: Any) -> NeedsPython:
        if isinstance(first, Journaled) is not isinstance(
            second, Journaled
        ):  # it has grown in a branch within one of these
            return Grows(
                f"{slot.said} grows a data-dependent number of times", "Use an array that is as large as needed."
            )
        lines = [merged_values.bound_at(f, slot.name) for f in self.functions]
        return merged_values.unlike(
            slot.name, "which branch is taken depends on data, and they give", (first, second), lines or ["", ""]
        )

    def _join_one_sided(self, slot: Slot, first: Any, second: Any) -> None:
        """Join a name that one branch binds: its value there, and a condition."""
        there = self._apart(slot, 1, second) if first is UNBOUND else self._apart(slot, 0, first)
        if slot.internal and (second is None or first is None):  # read only where it is bound
            self.steps.append(lambda _of: slot.set(None))
            return
        if not there.numeric:
            raise self._unlike(slot, first, second)
        zeros = [zeros_of(n.type) for n in there.nodes]
        sides = (zeros, there.nodes) if first is UNBOUND else (there.nodes, zeros)
        what = f"the two branches give {slot.said}"
        numbers = [self.pair(a, b, what) for a, b in zip(*sides, strict=True)]
        true, false = constant(True), constant(False)
        conditions: list[int | None] = []
        for defined in there.defined:
            if slot.internal:
                conditions.append(None)
                continue
            branches = (false, defined or true) if first is UNBOUND else (defined or true, false)
            conditions.append(self.pair(*branches, what))
        self._bind(slot, there, numbers, conditions, (first, second), (first, second))

    def _condition(self, always: bool, first: Node | None, second: Node | None) -> int | None:
        if always:
            return None
        true = constant(True)
        return self.pair(first or true, second or true, "")

    def _bind(
        self,
        slot: Slot,
        like: Parts,
        numbers: list[int],
        conditions: list[int | None],
        values: tuple[Any, Any],
        bound: tuple[Any, Any],
    ) -> None:
        """Bind a slot to one of two ``values`` of one form; for containers, to one of those that were ``bound``."""
        sides = [arrays_of(v) or [None] * len(numbers) for v in values]
        given = zip(*(numbers_of(v) or [None] * len(numbers) for v in values), strict=True)
        may = [writeable(*pair) for pair in given]
        same = zip(*sides, conditions, strict=True)
        self._stays(*(a for a, b, c in same if c is None and a is not None and b is not None and a.place is b.place))
        places = [self._places(a, b) for a, b in zip(*sides, strict=True)]

        def bind(of: Callable[[int], Node]) -> None:
            made: list[Tensor] = []
            for first, second, n, c, asked, may_be in zip(*sides, numbers, conditions, places, may, strict=True):
                defined = None if c is None else of(c)
                if defined is None and first is not None and second is not None and first.place is second.place:
                    made.append(first)  # neither branch has changed which array it is
                    continue
                known = self._already_joined(first, second) if defined is None else None
                made.append(merged_values.result(of(n), defined, slot.said, self.why) if known is None else known)
                if known is None:
                    made[-1].place.buffer.writeable = may_be
                found = (
                    None if asked is None else [Alternative(of(k) if isinstance(k, int) else k, p) for k, p in asked]
                )
                told = self._other_names((first, second)) if found is not None and known is None else {}
                places_of = None if found is None else [*found, *told.values()]
                self.bound.append(Joined(made[-1], (first, second), places_of, told=told))
            slot.set(self.once.of(bound, like.build(made)))

        self.steps.append(bind)

    def _places(self, *sides: Leaf) -> list[tuple[int | Node, Place]] | None:
        """Return the places that an array may be, each with its condition or that condition's number; None where they are not known."""
        found: list[tuple[int | Node, Place]] = []
        for branch, leaf in enumerate(sides):
            known = [] if leaf is None else places(leaf.place, self._is_older)
            if known is None:
                return None
            taken = scalar.logical_not(self.predicate) if branch and known else self.predicate
            for one in known:
                branches = (one.holds, constant(False)) if branch == 0 else (constant(False), one.holds)
                found.append((taken if one.holds is None else self.pair(*branches, ""), one.place))  # type: ignore[arg-type]
        return found

    def _refuse_without_axes(self, slot: Slot, pairs: Sequence[tuple[Node, Node]], *values: Any) -> None:
        """Raise for a choice between a number and a shared rank-0 array: a store would reach the array's other references."""
        for pair, *leaves in zip(pairs, *(arrays_of(v) or [None] * len(pairs) for v in values), strict=True):
            forms = {n.type.form for n in pair}
            known = [a for a, n in zip(leaves, pair, strict=True) if a is not None and n.type.form == "array"]
            if len(forms) == 1 or "array" not in forms or pair[0].type.shape or pair[1].type.shape:
                continue
            if any(self._is_older(a.place.buffer) for a in known):
                raise NeedsPython(
                    f"{slot.said} is a number, or an array without axes, depending on data",
                    "Make both numbers: float(a).",
                )

    def _stays(self, *leaves: Leaf) -> None:
        """Note arrays that a name holds on both branches: another name may mean one of them on one branch."""
        self.bound += [Joined(leaf, (leaf, leaf), []) for leaf in leaves if leaf is not None]

    def _already_joined(self, first: Leaf, second: Leaf) -> Tensor | None:
        """Return the array already made for a pair of arrays that has another name, too; else None."""
        exact = (
            b for b in self.bound if all(branch is not None for branch in b.ways) and not isinstance(b.value, Partial)
        )
        return next((b.value for b in exact if b.ways[0] is first and b.ways[1] is second), None)

    def _other_names(self, branches: Sequence[Leaf]) -> dict[int, Alternative]:
        """Return the branches on which an array already has another name, with that."""
        found: dict[int, Alternative] = {}
        for branch, leaf in enumerate(branches):
            named = [
                b
                for b in self.bound
                if (other := b.ways[branch]) is not None and leaf is not None and other.place is leaf.place
            ]
            if (
                named
                and leaf is not None
                and leaf.place.parent is None
                and not self._is_older(leaf.place.buffer)
                and not isinstance(named[0].value, Partial)
            ):
                holds = scalar.logical_not(self.predicate) if branch else self.predicate
                found[branch] = Alternative(holds, named[0].value.place)
        return found

    def _is_older(self, buffer: Buffer) -> bool:
        """Return whether an array existed before and is referenced by other names."""
        return buffer.born <= self.outcomes[0].started and not is_own(buffer, self.slots)

    def store(self, buffer: Buffer) -> None:
        """Join the contents of a buffer after the branches."""
        if buffer.alias.beside and buffer.first.op is REQUIRE:
            return  # a name that may be unbound: it is lost with what it shares, whichever branch is taken
        question = ExistenceCheck.of(buffer.node)
        first, second = (  # a branch that stores into what may be unbound checks it there
            o.buffers[buffer][0] if buffer in o.buffers else question.unasked(buffer.node) for o in self.outcomes
        )
        number = self.pair(first, second, f"the two branches store into {buffer.name or 'an array'}")
        stored = any(o.buffers[buffer][2] for o in self.outcomes if buffer in o.buffers)
        self.steps.append(lambda of: buffer.leave(question.asked(of(number)), stored=stored))

    def finish(self) -> None:
        """Build the ``cond``, and do what either branch has done."""
        pairs = list(dict.fromkeys(p for p in self.pairs if p[0] is not p[1]))
        chosen: dict[tuple[Node, Node], Node] = {}
        if pairs:
            sides = [[p[k] for p in pairs] for k in (0, 1)]
            free = list(dict.fromkeys(n for side in sides for n in below(side, self.known)))
            graphs = [graph_of(side, free) for side in sides]
            found = control.cond(self.predicate, graphs[0], graphs[1], fitting_branches(graphs, free, self.predicate))
            chosen = {p: context.record(n) for p, n in zip(pairs, found, strict=True)}
        for step in self.steps:
            step(lambda k: self._result(k, chosen))
        arrays = {id(b.value): b for b in self.bound if any(branch is not None for branch in b.ways)}
        share(list(arrays.values()), self._is_older)


def _unlike_numbers(pair: tuple[Node, Node]) -> bool:
    """Return whether two numbers are of different classes: 1, 1.0, np.float32(1)."""
    first, second = (n.type for n in pair)
    numbers = not first.shape and not second.shape and "array" not in {first.form, second.form}
    return numbers and (first.form, first.dtype) != (second.form, second.dtype)


def _unlike_digits(pair: tuple[Node, Node]) -> bool:
    """Return whether one of two numbers is Python's, and the joined number has another dtype than NumPy's result."""
    first, second = pair
    if {first.type.form, second.type.form} != {"python", "scalar"}:
        return False
    kinds = beside(first, second.type), beside(second, first.type)
    pythons, numpys = kinds if first.type.form == "python" else kinds[::-1]
    return np.result_type(*(t.dtype for t in kinds)) != np.result_type(numpys.dtype, python_kind(pythons)())


def merge_type(what: str, first: Type, second: Type) -> Type:
    """Return the type of one of two values: Python's numbers promote, NumPy's only if there are no values, arrays never."""
    capture, forms = context.current(), {first.form, second.form}
    numbers = "array" not in forms and capture is not None and capture.abstract
    if (first.form == "array") != (second.form == "array") and not first.shape and not second.shape:
        first, second = (Type(t.dtype, (), "scalar" if t.form == "array" else t.form) for t in (first, second))
    return one_type(what, first, second, promotes=numbers)
