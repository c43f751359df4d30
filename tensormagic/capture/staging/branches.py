"""Two ways of which data choose one: both are traced, and a ``cond`` gives what either has done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.staging import merged
from tensormagic.capture.staging.aliases import is_own
from tensormagic.capture.staging.merged import INTERNAL, Partial, Parts, apart
from tensormagic.capture.staging.raising import only_raises, way_raised
from tensormagic.capture.staging.regions import below, common_type, graph_of, of_type, zeros_of
from tensormagic.capture.staging.sharing import Leaf, arrays_of, follow, pairs, reached
from tensormagic.capture.staging.trial import CHECKS, UNBOUND, NeedsPython, Outcome, Slot, World, attempt
from tensormagic.capture.stores.place import Buffer
from tensormagic.capture.value import Tensor, node_of, wrap
from tensormagic.ir.errors import DTypeError, ShapeError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Type
from tensormagic.ops import control
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant
from tensormagic.ops.move import show
from tensormagic.ops.pointwise import Pointwise

Ways = Sequence[Callable[[], Any]]


@dataclass(eq=False)
class Choice:
    """What two ways give, pair by pair, and what is to be done with it.

    Parameters
    ----------
    predicate
        Which way is taken.
    known
        The values that were there before: what is computed on a way is computed on that way alone.
    outcomes
        What each way has done.
    why
        What to say of a name that only one way binds.
    slots
        Those that are bound anew.
    bound
        The numbers and arrays that they then hold: what each is on the two ways, and what stands for it.
    """

    predicate: Node
    known: set[Node]
    outcomes: tuple[Outcome, Outcome]
    why: str
    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    steps: list[Callable[[Callable[[int], Node]], None]] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list[Slot])
    bound: list[tuple[Leaf, Leaf, Tensor]] = field(default_factory=list[tuple[Leaf, Leaf, Tensor]])

    def pair(self, first: Node, second: Node, what: str) -> int:
        """The number of a result that is ``first`` or ``second``."""
        t = merge_type(what, first.type, second.type)
        self.pairs.append((of_type(first, t), of_type(second, t)))
        return len(self.pairs) - 1

    def name(self, slot: Slot, first: Any, second: Any) -> None:
        """What a slot holds afterwards."""
        if merged.same_value(first, second):
            self.steps.append(lambda _of: slot.set(first))
            return
        if first is UNBOUND or second is UNBOUND:
            self._in_one(slot, first, second)
            return
        one, other = self._alike(slot, self._apart(0, first), self._apart(1, second), first, second)
        what = f"the two ways give {slot.name}"
        numbers = [self.pair(a, b, what) for a, b in zip(one.nodes, other.nodes, strict=True)]
        conditions = [
            self._condition(merged.both(a, b, lambda x, y: x) is None, a, b)
            for a, b in zip(one.defined, other.defined, strict=True)
        ]
        self._bind(slot, one, numbers, conditions, (first, second))

    def _apart(self, way: int, value: Any) -> Parts:
        return self.outcomes[way].seen(lambda: apart(value))

    def _alike(self, slot: Slot, one: Parts, other: Parts, first: Any, second: Any) -> tuple[Parts, Parts]:
        if one.form != other.form or not one.numeric:
            raise merged.unlike(slot.name, "which way is taken depends on data, and they give", first, second)
        return one, other

    def _in_one(self, slot: Slot, first: Any, second: Any) -> None:
        """A name that one way binds: its value there, and a condition."""
        there = self._apart(1, second) if first is UNBOUND else self._apart(0, first)
        if not there.numeric:
            raise merged.unlike(slot.name, "which way is taken depends on data, and they give", first, second)
        zeros = [zeros_of(n.type) for n in there.nodes]
        sides = (zeros, there.nodes) if first is UNBOUND else (there.nodes, zeros)
        what = f"the two ways give {slot.name}"
        numbers = [self.pair(a, b, what) for a, b in zip(*sides, strict=True)]
        true, false = constant(True), constant(False)
        conditions: list[int | None] = []
        for defined in there.defined:
            if slot.name.startswith(INTERNAL):
                conditions.append(None)
                continue
            ways = (false, defined or true) if first is UNBOUND else (defined or true, false)
            conditions.append(self.pair(*ways, what))
        self._bind(slot, there, numbers, conditions, (first, second))

    def _condition(self, always: bool, first: Node | None, second: Node | None) -> int | None:
        if always:
            return None
        true = constant(True)
        return self.pair(first or true, second or true, "")

    def _bind(
        self, slot: Slot, like: Parts, numbers: list[int], conditions: list[int | None], values: tuple[Any, Any]
    ) -> None:
        self.slots.append(slot)
        sides = [arrays_of(v) or [None] * len(numbers) for v in values]

        def bind(of: Callable[[int], Node]) -> None:
            made: list[Tensor] = []
            for first, second, n, c in zip(*sides, numbers, conditions, strict=True):
                defined = None if c is None else of(c)
                known = self._same(first, second) if defined is None else None
                made.append(known or merged.result(of(n), defined, slot.name, self.why))
                self.bound.append((first, second, made[-1]))
            slot.set(like.build(made))

        self.steps.append(bind)

    def _same(self, first: Leaf, second: Leaf) -> Tensor | None:
        """What stands for an array already that has two names on both ways."""
        pairs = ((a, b, t) for a, b, t in self.bound if a is not None and b is not None)
        return next((t for a, b, t in pairs if a is first and b is second and not isinstance(t, Partial)), None)

    def _is_older(self, buffer: Buffer) -> bool:
        """Whether an array was there before, and somebody else knows it."""
        return buffer.born <= self.outcomes[0].started and not is_own(buffer, self.slots)

    def _share(self) -> None:
        """Note which arrays share memory in Python: with arrays made before, and among each other."""
        found = list({id(t): (a, b, t) for a, b, t in self.bound if a is not None or b is not None}.values())
        sides = [[reached(one[k]) for one in found] for k in (0, 1)]
        shared = [[b for b in one | other if self._is_older(b)] for one, other in zip(*sides, strict=True)]
        tensors = [t for _, _, t in found]
        for i, j in pairs(sides):
            shared[i].append(tensors[j].place.buffer)
            shared[j].append(tensors[i].place.buffer)
        follow(zip(tensors, shared, strict=True))

    def store(self, buffer: Buffer) -> None:
        """What a buffer holds afterwards."""
        first, second = (o.buffers[buffer][0] if buffer in o.buffers else buffer.node for o in self.outcomes)
        number = self.pair(first, second, f"the two ways store into {buffer.name or 'an array'}")
        put = (
            buffer.put if buffer.overlaps else buffer.store
        )  # what shares memory as data decide is lost, not stored into
        self.steps.append(lambda of: put(of(number)))

    def finish(self) -> None:
        """Build the ``cond``, and do what either way has done."""
        pairs = list(dict.fromkeys(p for p in self.pairs if p[0] is not p[1]))
        chosen: dict[tuple[Node, Node], Node] = {}
        if pairs:
            sides = [[p[k] for p in pairs] for k in (0, 1)]
            free = list(dict.fromkeys(n for side in sides for n in below(side, self.known)))
            graphs = [graph_of(side, free) for side in sides]
            found = control.cond(self.predicate, graphs[0], graphs[1], free)
            chosen = {p: context.record(n) for p, n in zip(pairs, found, strict=True)}
        for step in self.steps:
            step(lambda k: chosen.get(self.pairs[k], self.pairs[k][0]))
        self._share()


def merge_type(what: str, first: Type, second: Type) -> Type:
    """The type of a value that is one or the other: Python's numbers promote, arrays and NumPy's numbers are of one dtype."""
    if "python" not in {first.form, second.form} and first.dtype != second.dtype:
        raise DTypeError(
            f"{what} dtypes {first.dtype} and {second.dtype}, and which one depends on data", "Convert one with astype."
        )
    if first.shape != second.shape and any(nodes_of(s) for s in (*first.shape, *second.shape)):
        raise NeedsPython(
            f"{what} shapes {show(first.shape)} and {show(second.shape)}, which depend on data",
            "Let both ways give one shape: fill an array of the largest size.",
        )
    if (first.form == "array") != (second.form == "array") and not first.shape and not second.shape:
        first, second = (Type(t.dtype, (), "scalar" if t.form == "array" else t.form) for t in (first, second))
    try:
        return common_type(what, first, second)
    except ShapeError as error:
        error.hint = "Which one is taken depends on data: let both ways give one shape."
        raise


def staged_branch(
    predicate: Node, ways: Ways, names: Sequence[str], needed: Sequence[str], functions: Sequence[Any] = ()
) -> None:
    """Both ways of a statement: the names that they bind, and the arrays that they store into.

    Parameters
    ----------
    predicate
        Whether the first way is taken.
    ways
        The two ways.
    names, needed
        The names that the ways bind, and those that are needed afterwards.
    functions
        The functions of staged code that the ways call, where they are not these themselves.

    Raises
    ------
    Exception
        Where no region can do it; nothing has changed then.
    """
    functions = functions or ways
    world = World(functions)
    slots = {name: world.slot(functions[0], name) for name in names}
    outcomes = (attempt(world, ways[0], may_raise=True), attempt(world, ways[1], may_raise=True))
    raising = only_raises(outcomes)
    if raising is not None:
        _check_way(predicate, raising, outcomes, world)
        ways[1 - raising]()
        return
    why = f"only one way of the `if` in {here()} binds it"
    choice = Choice(predicate, {*world.nodes(), predicate}, outcomes, why)
    for buffer in sorted(dict.fromkeys(b for o in outcomes for b in o.buffers), key=lambda b: bool(b.overlaps)):
        choice.store(buffer)
    unneeded = {slots[name] for name in names if name not in needed}
    for slot in dict.fromkeys(s for o in outcomes for s in o.slots):
        if slot in unneeded:
            choice.slots.append(slot)
            choice.steps.append(lambda _of, slot=slot: slot.set(UNBOUND))
            continue
        first, second = (o.slots.get(slot, slot.get()) for o in outcomes)
        choice.name(slot, first, second)
    attempt(world, choice.finish, lambda _result: True)  # all of it, or nothing where an array refuses a store


def _check_way(predicate: Node, way: int, outcomes: tuple[Outcome, Outcome], world: World) -> None:
    """Have the graph raise what one way raises."""

    def choose(first: Any, second: Any) -> Any:
        holder: list[Any] = [None]
        choice = Choice(predicate, {*world.nodes(), predicate}, outcomes, "")
        choice.name(Slot(holder, 0, CHECKS), first, second)
        choice.finish()
        return holder[0]

    way_raised(predicate, way, outcomes[way], choose)


def here() -> str:
    """The user's line that is being run."""
    frame = context.user_frame()
    return "the code" if frame is None else str(context.span(frame))


def staged_value(predicate: Node, ways: Ways, functions: Sequence[Any] = ()) -> Any:
    """The value of one of two expressions."""
    world = World(functions or ways)
    outcomes = (attempt(world, ways[0], may_raise=True), attempt(world, ways[1], may_raise=True))
    raising = only_raises(outcomes)
    if raising is not None:
        _check_way(predicate, raising, outcomes, world)
        return ways[1 - raising]()
    changed = {s for o in outcomes for s in o.slots}
    if any(s.name != CHECKS for s in changed) or any(o.buffers for o in outcomes):
        raise NeedsPython(
            "an expression changes something, and whether it is evaluated depends on data", "Write it as a statement."
        )
    holder: list[Any] = [None]
    choice = Choice(predicate, {*world.nodes(), predicate}, outcomes, "")
    choice.name(Slot(holder, 0, "the value"), outcomes[0].result, outcomes[1].result)
    for slot in changed:
        choice.name(slot, *(o.slots.get(slot, slot.get()) for o in outcomes))
    choice.finish()
    return holder[0]


def joined(first: Node, second: Callable[[], Any], functions: Sequence[Any], op: Pointwise) -> Any:
    """``first and second()``, or ``or``, as one operation; None where the second is no truth value or may fail by itself."""
    world = World(functions)
    outcome = attempt(world, second)
    if outcome.slots or outcome.buffers or not isinstance(outcome.result, Tensor | bool):
        return None
    node = node_of(outcome.result)
    if node.type.shape or node.type.dtype != bool or node.type.form == "array":
        return None
    known = world.nodes()
    inside = [n for n in topological([node], stop=lambda n: n in known) if n not in known]
    if any(getattr(n.op, "kind", "") not in {"pointwise", "leaf"} and n.op.name != "form" for n in inside):
        return None
    return wrap(context.record(to_form(op(to_form(first, "scalar"), to_form(node, "scalar")), "python")))
