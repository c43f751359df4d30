"""Branches on data-dependent conditions: both are traced, and a ``cond`` selects what either has done."""

from __future__ import annotations

from collections.abc import Callable, Container, MutableMapping, Sequence
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.hooks import run_time
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.numbers.classes import Classes
from tensormagic.capture.numbers.optional import supposing
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.branches.choice import Choice
from tensormagic.capture.staging.branches.containers import OlderContainers
from tensormagic.capture.staging.branches.shared_arrays import memory, once_each
from tensormagic.capture.staging.branches.slots import UNBOUND, Slot
from tensormagic.capture.staging.messages.raising import branch_raised, noted, only_raises
from tensormagic.capture.staging.regions import (
    effects_before,
)
from tensormagic.capture.staging.trials.needs_python import grows
from tensormagic.capture.staging.trials.trial import Outcome, attempt
from tensormagic.capture.staging.trials.world import CHECKS, World, unasked
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.node import Node, topological
from tensormagic.ops.form import FORM, to_form
from tensormagic.ops.pointwise import Pointwise
from tensormagic.ops.scalars import scalar

MIXED = object()  # stands for a boolean that is Python's or NumPy's, which is data-dependent
Branches = Sequence[Callable[[], Any]]


def staged_branch(
    predicate: Node,
    branches: Branches,
    names: Sequence[str],
    needed: Sequence[str],
    functions: Sequence[Any] = (),
    given: Sequence[Any] = (),
) -> None:
    """Stage both branches of a statement: the names that they bind, and the arrays that they store into.

    Parameters
    ----------
    predicate
        Whether the first branch is taken.
    branches
        The two branches.
    names, needed
        The names that the branches bind, and those that are needed afterwards.
    functions
        The functions of staged code that the branches call, where they are not these themselves.
    given
        What these are given, and may change.

    Raises
    ------
    Exception
        Where no region can do it; nothing has changed then.
    """
    functions = functions or branches
    world = World([*functions, *given])
    slots = {name: world.slot(functions[0], name) for name in names}
    unneeded = {slots[name] for name in names if name not in needed}
    why = f"only one branch of the `if` in {usercode.here()} assigns it"
    if (raising := _trace_both(world, predicate, branches, functions, why, unneeded)) is not None:
        branches[1 - raising]()


def staged_value(predicate: Node, branches: Branches, functions: Sequence[Any] = ()) -> Any:
    """Return the value of one of two expressions, with its effects, as one ``cond``."""
    world = World(functions or branches)
    holder: list[Any] = [None]
    why = f"it is assigned in an expression in {usercode.here()}, and whether that is evaluated depends on data"
    if (raising := _trace_both(world, predicate, branches, (), why, result=Slot(holder, 0, "the value"))) is not None:
        return branches[1 - raising]()
    return holder[0]


run_time.choose = staged_value


def _trace_both(
    world: World,
    predicate: Node,
    branches: Branches,
    functions: Sequence[Any],
    why: str,
    unneeded: Container[Slot] = (),
    result: Slot | None = None,
) -> int | None:
    """Trace both branches, and do what either does; return the number of a branch that only raises if the other is still to be run."""
    coded = number_classes.nodes()
    world.adding = True
    supposed = (supposing(branch, predicate, holds=k == 0) for k, branch in enumerate(branches))
    first, second = (attempt(world, branch, may_raise=True, unneeded=unneeded) for branch in supposed)
    outcomes = first, second
    world.adding = False
    raising = only_raises(outcomes)
    if raising is not None:
        _check_branch(predicate, raising, outcomes, world)
        return raising
    for outcome in outcomes:
        once_each(outcome.slots)
    _refuse_added_once(outcomes, {*world.variables.values()})
    stored = list(dict.fromkeys(b for o in outcomes for b in o.buffers))  # states of random generators, too
    known = {*world.nodes(), *coded, predicate, *(n for b in stored for n in unasked(b.node))}
    known |= effects_before(node_of(noted()))
    choice = Choice(predicate, known, outcomes, why, functions=functions)
    choice.older = OlderContainers(world)
    choice.arrays = {memory(s.array) for s in world.arrays}
    for buffer in sorted(stored, key=lambda b: (b.alias.depends, b.born)):
        choice.store(buffer)
    choice.slots += dict.fromkeys(s for o in outcomes for s in o.slots)
    for slot in choice.slots:
        if slot in unneeded:
            choice.steps.append(lambda _of, slot=slot: slot.set(UNBOUND))
            continue
        first, second = (o.slots.get(slot, slot.get()) for o in outcomes)
        choice.name(slot, first, second)
    if result is not None:
        choice.name(result, outcomes[0].result, outcomes[1].result)
    attempt(world, choice.finish, lambda _result: True)  # all of it, or nothing where an array refuses a store
    return None


def _refuse_added_once(outcomes: tuple[Outcome, Outcome], variables: set[Slot]) -> None:
    """Raise if one branch alone adds items to a container or an object, or both in another order; variables may be unbound."""
    first, second = (
        [
            s
            for s in o.slots
            if s not in variables and isinstance(s.holder, MutableMapping | list) and s.get() is UNBOUND
        ]
        for o in outcomes
    )
    if first != second:
        raise grows(type((first or second)[0].holder).__name__)


def _check_branch(predicate: Node, branch: int, outcomes: tuple[Outcome, Outcome], world: World) -> None:
    """Let the graph raise the error of one branch."""

    def choose(first: Any, second: Any) -> Any:
        holder: list[Any] = [None]
        choice = Choice(predicate, {*world.nodes(), predicate}, outcomes, "")
        choice.name(Slot(holder, 0, CHECKS), first, second)
        choice.finish()
        return holder[0]

    branch_raised(predicate, branch, outcomes[branch], choose)


def _pure_truth(outcome: Outcome, world: World) -> Node | None:
    """Return the boolean that code gives if it does nothing else, and never fails; else None."""
    if outcome.slots or outcome.buffers or not isinstance(outcome.result, Tensor | bool):
        return None
    node, known = node_of(outcome.result), world.nodes()
    if not _is_truth(node):
        return None
    inside = [n for n in topological([node], stop=lambda n: n in known) if n not in known]
    return node if all(n.op.kind in {"pointwise", "leaf"} or n.op is FORM for n in inside) else None


def _is_truth(node: Node) -> bool:
    return node.type.form != "array" and not node.type.shape and node.type.dtype == bool


def joined(value: Tensor, first: Node, second: Callable[[], Any], functions: Sequence[Any], op: Pointwise) -> Any:
    """Return ``value and second()``, or ``or``, as one operation; None if either is no boolean, or the second may fail.

    Its class is Python's or NumPy's if both agree; else data-dependent: MIXED in a cell, where values can be
    computed. ``first`` is the truth of ``value``.
    """
    if not _is_truth(value.node):
        return None
    world = World(functions)
    outcome = attempt(world, supposing(second, first, holds=op is scalar.logical_and))
    if (node := _pure_truth(outcome, world)) is None:
        return None
    if node.type.form != value.type.form and values_are_there():
        return MIXED
    form = "python" if value.type.form == node.type.form == "python" else "scalar"
    found = to_form(op(to_form(first, "scalar"), to_form(node, "scalar")), form)
    one, other = number_classes.classes_of(value.node), number_classes.classes_of(node)
    if one is not None and other is not None and len(types := one.types | other.types) > 1:
        codes = (other.code, one.code) if op is scalar.logical_and else (one.code, other.code)
        number_classes.note(found, Classes(scalar.where(first, *codes), types))
    return wrap(context.record(found))
