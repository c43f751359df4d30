"""Runs code on trial: what it has changed is recorded, and undone."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import astuple, dataclass, field
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import is_met_by_numpy, is_of_format, names_ours
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.branches.slots import Slot
from tensormagic.capture.staging.loops.watched_containers import refuse_grown
from tensormagic.capture.staging.trials.needs_python import NeedsPython, Unknown
from tensormagic.capture.staging.trials.world import CHECKS, World
from tensormagic.capture.stores.alias import forget
from tensormagic.capture.stores.place import Buffer, ask_all, serials
from tensormagic.capture.tree import tensors_in
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.unused_values import raises, unused_on_trial, within_no_function
from tensormagic.capture.values.value import wrap
from tensormagic.ir.errors import REFUSALS, CaptureError
from tensormagic.ir.modules import is_users
from tensormagic.ir.node import Node, topological

DEPTH = 40  # of nested trials


Held = tuple[Node, int, bool]  # the node of a buffer, its version, and whether the code has stored into it


@dataclass(eq=False)
class Trial:
    """Represents a trial that is going on.

    Parameters
    ----------
    failure
        Why it cannot be staged, as the code may have caught that.
    raised, place
        The exception of its last ``raise`` statement, and its place.
    iterators
        Those that existed before.
    made
        The results of its expressions, used or not.
    stand_ins
        Inputs for the arguments of functions that it calls, valid inside these.
    ahead
        How many of its results are computed before its last print or check.
    iteration
        The start of the iteration it is, in the count of buffers; 0 if it is none.
    """

    iterators: dict[int, Any]
    failure: CaptureError | None = None
    raised: Exception | None = None
    place: tuple[Any, ...] = ()
    made: list[Node] = field(default_factory=list[Node])
    stand_ins: list[Node] = field(default_factory=list[Node])
    ahead: int = 0
    iteration: int = 0


@dataclass
class Outcome:
    """Represents what code on trial has done.

    Parameters
    ----------
    result
        Its result.
    started
        Its start, in the count of buffers: arrays made later are its own.
    slots
        The slots that changed, with their new values.
    buffers
        The values of older arrays into which it has stored.
    chosen
        Containers, held by names, between which a data-dependent condition chooses.
    grown
        Lists, and what it has appended to them.
    raised, place
        The exception it ended in by ``raise`` or ``assert``, and its place.
    met
        Whether the exception came from Python, NumPy or the capture instead.
    """

    result: Any = None
    started: int = 0
    raised: Exception | None = None
    place: tuple[Any, ...] = ()
    met: bool = False
    chosen: list[Any] = field(default_factory=list)
    grown: list[tuple[list[Any], list[Any]]] = field(default_factory=list[tuple[list[Any], list[Any]]])
    slots: dict[Slot, Any] = field(default_factory=dict[Slot, Any])
    buffers: dict[Buffer, Held] = field(default_factory=dict[Buffer, Held])

    def seen(self, read: Callable[[], Any]) -> Any:
        """Return the result of ``read()`` with the arrays as the code has left them."""
        kept = {b: _held(b) for b in self.buffers}
        _fill(self.buffers)
        try:
            return read()
        finally:
            _fill(kept)


def _held(buffer: Buffer) -> Held:
    return buffer.node, buffer.version, buffer.stored


def _fill(values: dict[Buffer, Held]) -> None:
    for buffer, (node, version, stored) in values.items():
        buffer.hold(node)
        buffer.version, buffer.stored = version, stored


def trial() -> Trial | None:
    """Return the innermost trial that is going on, or None."""
    capture = context.current()
    return capture.heap.trials[-1] if capture is not None and capture.heap.trials else None


def iteration() -> int:
    """Return when the innermost iteration on trial began, in the count of buffers: arrays made later are its own."""
    capture = context.current()
    return 0 if capture is None else max((t.iteration for t in capture.heap.trials), default=0)


def fail_trial(what: str, advice: str) -> NeedsPython:
    """Return the error for something that a trial cannot do, and note it in the trial."""
    error = NeedsPython(what, advice)
    running = trial()
    if running is not None:
        running.failure = running.failure or error
    return error


def refuse_taken(value: Any) -> None:
    """Raise if values are taken from an older iterator in code on trial or called once for many: they would be gone."""
    capture = context.current()
    for iterators, refused in capture.heap.once if capture is not None else ():
        if id(value) in iterators:
            raise refused()
    if capture is not None and any(id(value) in t.iterators for t in capture.heap.trials):
        raise fail_trial(
            f"values are taken from a {type(value).__name__} in a loop or a branch that depends on data",
            "Make a list of them first.",
        )


def attempt(
    world: World,
    run: Callable[[], Any],
    keep: Callable[[Any], bool] = lambda _result: False,
    *,
    may_raise: bool = False,
    unneeded: Container[Slot] = (),
) -> Outcome:
    """Run code and record what it does; then undo everything, unless ``keep`` holds for its result.

    If it ``may_raise``, an exception of a ``raise`` statement is an outcome, too; in code without values any error of
    its own is. Values of ``unneeded`` variables are ignored.

    Raises
    ------
    Exception
        What the code raises, after everything was undone.
    """
    capture = context.current()
    if capture is None:
        raise AssertionError
    if len(capture.heap.trials) >= DEPTH:
        raise NeedsPython(
            f"branches are nested {DEPTH} deep: a function calls itself depending on data, and does more than return the result",
            "Return the recursive call itself, with the result so far as an argument; or write a loop.",
        )
    ask_all()  # of what existed before
    journal: dict[Buffer, Held] = {}
    running = Trial(world.iterators)
    start = next(serials)
    counts = capture.effort.nodes, len(capture.guards), dict(capture.names.noted), dict(capture.names.lifted)
    refused = capture.refusals.refused
    told, chosen = len(capture.heap.followed), len(capture.heap.chosen)
    capture.heap.journals.append(journal)
    capture.heap.trials.append(running)
    done = kept = False
    used: list[Node] | None = None
    try:
        outcome = _run(run, running, start) if may_raise else Outcome(run(), start)
        if running.failure is not None:
            raise running.failure
        for one in capture.heap.chosen[chosen:]:
            one.check()
        kept = keep(outcome.result)
        if not kept:
            ask_all()  # with their current values
            outcome.slots = world.changes()
            outcome.grown = world.grown
            refuse_grown(into for into, _ in outcome.grown)
            outcome.chosen = capture.heap.chosen[chosen:]
            outcome.buffers = {b: _held(b) for b in journal if b.born < start}
            used = _used(running, outcome, unneeded)
        done = True
    finally:
        capture.heap.trials.pop()
        capture.heap.journals.pop()
        if not done:
            capture.effort.nodes, capture.refusals.refused = counts[0], refused
            del capture.guards[counts[1] :]
            capture.names.noted, capture.names.lifted = counts[2], counts[3]
        if not kept:
            del capture.heap.chosen[chosen:]
            world.restore()
            _fill({b: was for b, was in journal.items() if b.born < start})
            forget(capture.heap.followed[told:])
            del capture.heap.followed[told:]
    context.keep(*((running.made, running.stand_ins) if kept else ()))
    if used is not None:  # everything that the world knew is restored
        capture.heap.trials.append(running)  # what is built for it has no line of the code around
        _await_unused(capture, outcome, world, used)
        capture.heap.trials.pop()
    return outcome


def _used(running: Trial, outcome: Outcome, unneeded: Container[Slot]) -> list[Node] | None:
    """Return the nodes that code on trial passes on; None if nothing it computes can raise."""
    if not any(map(raises, topological(running.made))):
        return None
    held = [value for slot, value in outcome.slots.items() if slot not in unneeded]
    held += [outcome.result, *(v for _, more in outcome.grown for v in more)]
    return [t.node for t in tensors_in(held)] + [node for node, _, _ in outcome.buffers.values()]


def _await_unused(capture: context.Capture, outcome: Outcome, world: World, used: list[Node]) -> None:
    """Add unused results of code on trial that may raise to the checks: Python computes them, too."""
    slot = world.variables[id(capture.order.checks), CHECKS]
    token = node_of(outcome.slots.get(slot, slot.get()))
    running = capture.heap.trials[-1]
    made = within_no_function(list(running.made), running.stand_ins, capture.inputs.behind)
    checked = unused_on_trial(made, used, world.nodes(), token)
    if checked is not token:
        outcome.slots[slot] = wrap(checked)


def _run(run: Callable[[], Any], running: Trial, start: int) -> Outcome:
    try:
        return Outcome(run(), start)
    except Exception as error:
        if error is running.raised or isinstance(error, Unknown):
            return Outcome(None, start, raised=error, place=running.place)
        place = place_of(error)
        if isinstance(error, (*REFUSALS, MemoryError, RecursionError)) or place is None:
            raise
        refuse_caught(error)
        return Outcome(None, start, raised=error, place=place, met=True)


def refuse_caught(error: Exception) -> None:
    """Raise for an error in a `try` if it is data-dependent whether it is raised."""
    capture = context.current()
    if capture is not None and capture.attempts.depth:
        raise fail_trial(
            "an error in a `try` occurs only for some data", "Check with `if` instead of `try`."
        ) from error


def place_of(error: Exception) -> tuple[Any, ...] | None:
    """Return the place of an error in the user's code that can be raised when the graph runs, since the code is data-dependent.

    None for an error that Python or NumPy makes of something lazy, or of a refusal: this is not the code's.
    """
    capture, trace, found = context.current(), error.__traceback__, None
    if capture is None or not capture.abstract or is_met_by_numpy(error) or is_of_format(error):
        return None
    if names_ours(error) and not str(error).startswith("'Tensor' object has no attribute"):
        return None
    while trace is not None:
        if is_users(trace.tb_frame.f_code.co_filename):
            found = usercode.span_at(trace.tb_frame.f_code, trace.tb_lasti, trace.tb_lineno)
        trace = trace.tb_next
    return None if found is None else astuple(found)[:6]
