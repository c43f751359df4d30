"""Data-dependent ``assert`` and ``raise`` where no values are known: they become checks of the graph, in program order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import astuple
from functools import wraps
from types import CellType, TracebackType
from typing import Any, NoReturn

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors import try_blocks
from tensormagic.capture.errors.refusal import refuse_python, text_asked_for
from tensormagic.capture.errors.traces import remove_our_frames
from tensormagic.capture.hooks import run_time
from tensormagic.capture.numbers import classes as number_classes
from tensormagic.capture.python import usercode
from tensormagic.capture.staging.branches.merged_values import is_number
from tensormagic.capture.staging.loops.grown_lists import given_back
from tensormagic.capture.staging.messages.refusals import (
    hides_refusal,
    is_pythons,
    rebuildable,
    refusal_if_assumed,
    refusal_of,
)
from tensormagic.capture.staging.messages.value_texts import LATER, Text, holds_lazy, part_of
from tensormagic.capture.staging.trials.needs_python import NeedsPython, Unknown
from tensormagic.capture.staging.trials.trial import Outcome, fail_trial, place_of, refuse_caught, trial
from tensormagic.capture.staging.trials.world import CHECKS
from tensormagic.capture.stores.place import Buffer, Place
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.unused_values import before_effect
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import REFUSALS, CaptureError, GuardError, TensorError, ValueNeededError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.site import Site
from tensormagic.ops.effects.failing import may_fail
from tensormagic.ops.effects.raising import after, check
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars import scalar

_QUIET = (np.errstate, warnings.catch_warnings, nullcontext, redirect_stdout)  # managers that catch no error
_WAYS = 64  # conditions in a `try` that one trace may fix: each one adds to all traces, and to what each call checks


# what is being caught -------------------------------------------------------------------------------------------------


class Attempt:
    """The body of a ``try``: which error is raised decides what runs then, so none can be deferred until the graph runs."""

    def __enter__(self) -> None:
        self._capture = context.current()
        if self._capture is not None:
            self._capture.attempts.depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        capture = self._capture
        if capture is not None:
            capture.attempts.depth -= 1
            refusals = REFUSALS if capture.abstract else CaptureError
            if isinstance(error, refusals):  # a handler would mistake it for an error of the code
                capture.refusals.refused = capture.refusals.refused or error
                return
            if isinstance(error, Exception):  # it may be raised for these sizes alone
                hides = (capture.abstract or capture.heap.trials) and hides_refusal(error)
                if hides or (capture.abstract and is_pythons(error)):  # a handler would take it for the code's own
                    capture.refusals.refused = capture.refusals.refused or refusal_of(error, capture.label)
                for size in (s for node in capture.inputs.values for s in node.type.shape):
                    capture.specialise(size)
        if isinstance(error, Exception) and (capture is None or not (capture.abstract or capture.heap.trials)):
            remove_our_frames(error)


class _CatchingManager:
    """Represents a context manager that may catch exceptions raised inside it."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager
        self.attempt = Attempt()

    def __enter__(self) -> Any:
        found = self.manager.__enter__()
        self.attempt.__enter__()
        return found

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        with suppress(CaptureError):
            self.attempt.__exit__(kind if isinstance(error, Exception) else None, error, trace)
        return self.manager.__exit__(kind, error, trace if error is None else error.__traceback__)


class _Recording:
    """Stands for ``warnings.catch_warnings``: captured code cannot know what it records, since it gives no warnings."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __enter__(self) -> Any:
        return None if self.manager.__enter__() is None else _Recorded()

    def __exit__(self, *error: object) -> Any:
        return self.manager.__exit__(*error)


class _Recorded:
    """Stands for the list of warnings, which cannot be read."""

    def _refuse(self, *_: Any) -> NoReturn:
        refuse_python(
            "to look at recorded warnings, of which captured code gives none,",
            "Ask for what they tell of: np.isfinite.",
        )

    __len__ = __iter__ = __getitem__ = __bool__ = __contains__ = __eq__ = __str__ = __repr__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def managed(manager: Any) -> Any:
    """Return the manager of a ``with``: one that may catch errors is treated as a ``try``."""
    capture = context.current()
    if type(manager) is warnings.catch_warnings and capture is not None and capture.abstract:
        return _Recording(manager)
    quiet = isinstance(manager, _QUIET) or context.current() is None or not hasattr(type(manager), "__exit__")
    return manager if quiet else _CatchingManager(manager)


def settles() -> bool:
    """Return whether a condition can be settled for this trace: in a `try`, and in no code on trial."""
    capture = context.current()
    return capture is not None and capture.abstract and capture.attempts.depth > 0 and not capture.heap.trials


def assumed_to_hold(holds: Node) -> bool:
    """Return whether a condition is taken to hold in this trace: a call in which it differs is captured anew."""
    capture = context.current()
    if capture is None:
        raise AssertionError
    capture.output.told = True
    capture.attempts.conditions += 1
    if capture.attempts.conditions > _WAYS:
        capture.refusals.refused = capture.refusals.refused or ValueNeededError(
            f"more than {_WAYS} conditions on data, each of which decides whether there is an error in a `try`",
            "Write `if` and `else` instead of `try` and `except`, or let a loop around them have fewer iterations.",
        )
        raise capture.refusals.refused
    return try_blocks.taken_for(holds, capture.complexes.of_site, capture.order.checks)


def can_defer() -> bool:
    """Return whether an exception may be raised when the graph runs."""
    capture = context.current()
    return capture is not None and not capture.attempts.depth


# raising --------------------------------------------------------------------------------------------------------------


def raising(error: Any) -> Any:
    """Return the exception of a ``raise``, recorded by the current trial."""
    running = trial()
    made = error() if isinstance(error, type) and issubclass(error, BaseException) else error
    if running is not None and isinstance(made, Exception) and not isinstance(made, REFUSALS):
        if not can_defer():
            raise fail_trial("`raise` on data in a `try`", "Write `if` and `else` instead of `try` and `except`.")
        running.raised = made
        running.place = _place()
    return made


def _place() -> tuple[Any, ...]:
    frame = usercode.user_frame()
    return () if frame is None else _fields(usercode.span(frame))


def _fields(site: Site) -> tuple[Any, ...]:
    return astuple(site)[:6]


def wait(holds: Node, error: Exception, place: tuple[Any, ...] = (), before: Any = None) -> Any:
    """Return the token of all checks so far, after one by which the graph raises ``error`` unless ``holds``."""
    told, details = _described(error)
    token = so_far() if before is None else before
    return recorded(check(node_of(token), holds, type(error), told, details, place or _place()))


def recorded(token: Node) -> Tensor:
    """Return a token recorded as done once, whatever the classes of the numbers in its message."""
    return wrap(context.record(number_classes.settle(token)))


def note(token: Any) -> None:
    """Set the token of all checks so far."""
    _checks()[CHECKS] = token
    capture = context.current()
    if capture is not None:
        capture.output.told = True


def defer(holds: Node, error: Exception) -> bool:
    """Let the graph raise ``error`` unless ``holds``; return False if it cannot be deferred, since a ``try`` may catch it."""
    if not can_defer():
        return False
    note(wait(holds, error))
    return True


run_time.raised, run_time.defer = raising, defer


def so_far() -> Any:
    """Return the token of all checks so far, and of computed values that may fail: what follows is ordered after it."""
    capture, token = context.current(), noted()
    if capture is None or not capture.abstract or capture.inputs.standing:
        return token
    holder: Any = capture.heap.trials[-1] if capture.heap.trials else capture.order
    made = holder.made[holder.ahead :]
    holder.ahead = len(holder.made)
    return wrap(before_effect(made, node_of(token))) if made else token


def noted() -> Any:
    """Return the token of all checks that are noted so far."""
    return _checks()[CHECKS]


def _checks() -> dict[str, Any]:
    capture = context.current()
    if capture is None:
        raise AssertionError
    return capture.order.checks


def _described(error: Exception) -> tuple[list[Any], list[Node]]:
    """Return the arguments of an exception, and the lazy values in them."""
    details: list[Node] = []
    parts = [part_of(value, details) for value in error.args]
    for part, value in zip(parts, error.args, strict=True):
        if part is None:
            raise NeedsPython(
                f"{type(error).__name__} is raised depending on data, and holds a {type(value).__name__}",
                "Pass texts, numbers and arrays to it.",
            )
    return parts, details


def only_raises(outcomes: Sequence[Outcome]) -> int | None:
    """Return the number of the branch that raises an exception; None where neither does."""
    raised = [k for k, o in enumerate(outcomes) if o.raised is not None]
    if len(raised) == 2 and all(isinstance(o.raised, Unknown) for o in outcomes):
        raise Unknown
    met = [o.raised for o in outcomes if o.met and o.raised is not None]
    if len(raised) == 2 and met:
        raise met[0]
    if len(raised) == 2:
        raise fail_trial(
            "each branch on data raises an exception",
            "Raise one exception after the branches, and put the difference into its text.",
        )
    return raised[0] if raised else None


def branch_raised(predicate: Node, branch: int, outcome: Outcome, choose: Callable[[Any, Any], Any]) -> None:
    """Let the graph raise the error of one branch; ``choose`` selects one of two values by the predicate."""
    holds = scalar.logical_not(predicate) if branch == 0 else predicate
    checks = _checks()
    if outcome.met and outcome.raised is not None:
        outcome.raised = rebuildable(outcome.raised)
    before = next((v for s, v in outcome.slots.items() if s.holder is checks), None)
    if outcome.raised is None:
        raise AssertionError
    _changes_before(outcome)
    if before is None and any(map(may_fail, topological(_described(outcome.raised)[1]))):
        before = noted()  # the values in its text are computed where it is raised
    if before is None:
        note(wait(holds, outcome.raised, outcome.place))
        return
    with _as_part_of_branch():
        own = wait(holds, outcome.raised, outcome.place, before)
    note(choose(*((own, checks[CHECKS]) if branch == 0 else (checks[CHECKS], own))))


def _changes_before(outcome: Outcome) -> None:
    """Note that code changes something before a data-dependent error: where that is raised, Python runs the call."""
    capture, checks = context.current(), _checks()
    items = any(not isinstance(s.holder, CellType) and s.holder is not checks for s in outcome.slots)
    if capture is not None and (outcome.buffers or outcome.grown or items):
        capture.attempts.changing = True


@contextmanager
def _as_part_of_branch() -> Generator[None]:
    """Treat what is built in the block as part of a branch, so that it is not computed outside even if it may fail."""
    capture = context.current()
    made: list[Node] = (
        [] if capture is None else (capture.heap.trials[-1] if capture.heap.trials else capture.order).made
    )
    count = len(made)
    yield
    del made[count:]


def iterations_raise(error: Exception, ran: Node) -> bool:
    """Let the graph raise the error of any iteration of a loop, if one has ``ran``; return whether the error is deferred."""
    place = None if isinstance(error, REFUSALS) else place_of(error)
    if place is None:
        return False
    refuse_caught(error)
    note(wait(scalar.logical_not(ran), rebuildable(error), place))
    return True


def settle() -> None:
    """Evaluate the deferred checks of a region at the top level of a cell: the cell ends where one fails."""
    capture = context.current()
    if capture is None or capture.abstract or capture.heap.trials:
        return
    token = capture.order.checks[CHECKS]
    if isinstance(token, Tensor):
        try:
            token.numpy()
        except GuardError:  # in a function that is differentiated, or batched: there are no values
            return
        capture.order.checks[CHECKS] = 0


def known(condition: Node) -> bool | None:
    """Return the value of a condition; None where it depends on arguments that have no values."""
    try:
        return bool(wrap(condition).numpy())
    except GuardError:
        return None


# functions ------------------------------------------------------------------------------------------------------------


def checked(body: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``body`` with results that depend on all its checks."""

    @wraps(body, updated=())
    def run(*args: Any, **options: Any) -> Any:
        capture = context.current()
        if capture is None:
            return body(*args, **options)
        outer, capture.order.checks[CHECKS] = capture.order.checks[CHECKS], 0
        whole, capture.order.whole = capture.order.whole, False
        given = {t.place.buffer: t.place.buffer.version for t in flatten((args, options))[0] if isinstance(t, Tensor)}
        try:
            result = given_back(_call_body(body, args, options, whole=whole))
            token = capture.order.checks[CHECKS]
            if capture.refusals.refused is not None:
                raise capture.refusals.refused
        finally:
            capture.order.checks[CHECKS] = outer
        if not isinstance(token, Tensor):
            return result
        if whole and _awaits_checks(token.node):
            _stores_after_checks(token.node, given)
            return result
        return _result_after_checks(token.node, result, given)

    return run


def _call_body(body: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any], *, whole: bool) -> Any:
    """Return the result of ``body``; an error that other data might avoid becomes a refusal, one with lazy values is left to the graph."""
    try:
        return body(*args, **options)
    except Exception as error:
        capture = context.current()
        if whole and capture is not None:
            capture.output.until = capture.order.checks[CHECKS]
        if any(isinstance(a, (*LATER, Text)) or holds_lazy(a) for a in error.args):
            if not whole or capture is None or not capture.abstract or capture.refusals.assumed:
                raise text_asked_for() from error
            note(wait(constant(False), error, place_of(error) or ()))
            return None
        doubted = refusal_if_assumed(error)
        if doubted is error:
            raise
        raise doubted from error


def _awaits_checks(token: Node) -> bool:
    """Let the captured function wait for checks that no result depends on; return whether it can."""
    capture = context.current()
    if capture is None or not capture.abstract or capture.heap.trials or capture.inputs.standing:
        return False
    capture.order.awaited.append(token)
    return True


def _stores_after_checks(token: Node, given: dict[Buffer, int]) -> list[Buffer]:
    """Let what the function has stored into its arguments depend on its checks."""
    changed = [b for b, version in given.items() if b.version != version]
    for buffer in changed:
        buffer.put(after(token, buffer.node))
    return changed


def _result_after_checks(token: Node, result: Any, given: dict[Buffer, int]) -> Any:
    """Return a result that depends on its checks, together with what the function has stored into its arguments."""
    leaves, build = flatten(result)
    changed = _stores_after_checks(token, given)
    numbers = [v for v in leaves if is_number(v)]
    if not numbers and not changed:
        if not _awaits_checks(token):
            raise TensorError(
                "the function returns nothing here, so what it checks or prints would never run",
                "Return the value that it computes or checks, and use that.",
            )
        return result

    def behind(value: Any) -> Any:
        if not is_number(value) or (isinstance(value, Tensor) and value.place.buffer in changed):
            return value
        return Tensor(Place(Buffer(after(token, node_of(value)))))

    return build(iter([behind(v) for v in leaves]))
