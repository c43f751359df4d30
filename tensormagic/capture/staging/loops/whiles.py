"""Runs ``while`` of staged code: as a region of the graph, or by Python, iteration by iteration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.staging.loops.carries import Names
from tensormagic.capture.staging.loops.fixpoint import Loop
from tensormagic.capture.staging.loops.left_to_python import Left, PlainPython
from tensormagic.capture.staging.loops.loop_bodies import (
    UNROLLED,
    Body,
    begins_otherwise,
    iterations_raise,
    staged_as_needed,
)
from tensormagic.capture.staging.loops.plain_loops import NOTHING, PlainLoop, plainly
from tensormagic.capture.staging.loops.region import conditional
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.staging.numbers.truth import Driving, asked, computed, decided, truth, unstaged
from tensormagic.capture.staging.trials.needs_python import Grows, NeedsPython
from tensormagic.capture.staging.trials.trial import attempt
from tensormagic.capture.staging.trials.world import CHECKS, World
from tensormagic.capture.values.operands import node_of
from tensormagic.ir.node import Node, topological
from tensormagic.ops.effects.outside import OUTSIDE
from tensormagic.ops.effects.telling import TELL

Thunk = Callable[[], Any]


def repeat(
    test: Thunk, iteration: Thunk, told: tuple[Sequence[str], ...], called: tuple[str, ...] | None = None
) -> PlainLoop:
    """Run a ``while`` loop; return whether Python is to run it as written (if it is simple, ``called`` is what it calls)."""
    if left := plainly(True, [iteration, test], called):
        return left
    with Driving(UNROLLED) as driving:
        _While(Body(iteration, test, Names(*map(tuple, told))), driving).run()
    return NOTHING


class _While:
    """Represents a ``while`` that Python runs iteration by iteration, until a region can take over the rest.

    Parameters
    ----------
    body
        Its body.
    driving
        Python's part.
    """

    def __init__(self, body: Body, driving: Driving) -> None:
        self._body, self._driving = body, driving
        self._capture = context.current()
        self._failed: Exception | None = None  # the error that prevents staging
        self._iterations = 0
        self._due = math.inf if self._capture is None else UNROLLED + 1 if self._capture.effort.driven else 0

    def run(self) -> None:
        """Run the loop, staged as soon as a region can hold the rest."""
        condition = decided(self._body.asked())
        while condition is not False:
            condition = self._goes_on(condition)

    def _goes_on(self, condition: bool | Node) -> bool | Node:
        """Return the condition of a further iteration; stage the rest of the loop where that is possible."""
        if self._failed is None and not isinstance(condition, bool):
            self._failed = _staged_while(self._body, condition)
            if self._failed is None:
                return False
        elif self._failed is None and self._iterations >= self._due:
            done = self._go_on_asking()
            if done is not None:
                return done
        if not isinstance(condition, bool) and _is_over(condition, self._failed, self._body.iteration):
            return False
        return self._by_python(condition)

    def _go_on_asking(self) -> bool | Node | None:
        """Return whether a loop whose test is known so far goes on after an iteration, or a region; None if Python is to run it."""
        if self._iterations > UNROLLED:
            self._due = math.inf
            return False if self._is_staged_while_known() else None
        self._due = 3 * self._iterations + 1
        # what is known of these iterations may depend on data in later ones
        going, self._failed = _first_iteration(self._body)
        self._iterations += self._failed is None
        return going if self._failed is None else None

    def _by_python(self, condition: bool | Node) -> bool | Node:
        self._driving.lazy = 0 if self._failed is not None else UNROLLED
        self._driving.begin()
        self._body.iteration()
        self._iterations += 1
        if (
            self._capture is not None and self._capture.refusals.refused is not None
        ):  # errors that the code may have caught, and would catch for ever
            raise self._capture.refusals.refused
        if self._iterations == 1 and begins_otherwise(self._failed, UNROLLED + 1):
            self._failed = None
        known = self._failed is not None or isinstance(condition, bool)
        return decided(self._body.asked()) if known else truth(self._body.asked())

    def _is_staged_while_known(self) -> bool:
        """Return whether the rest of a long loop, whose test is known so far, has been staged."""
        capture, body = self._capture, self._body
        rest = Left() if capture is None else capture.effort.rests.setdefault(body.iteration.__code__, Left())
        stage = partial(staged_repeat, body, True, known=True)
        return (rest.reason() or rest.noted(staged_as_needed(lambda _: stage(), body, long=False))) is None


def _is_over(condition: Node, failed: Exception | None, iteration: Thunk) -> bool:
    """Return whether a ``while`` that cannot be staged is over.

    It is over if its condition is computed to be false, or if the iteration would only raise an error, which is then
    staged.
    """
    if failed is not None and iterations_raise(failed, condition, iteration, (iteration,)):
        return True
    if not values_are_there() or failed is None:
        raise failed or AssertionError
    unstaged(failed)
    return not computed(condition)


def _staged_while(body: Body, condition: bool | Node) -> Exception | None:
    """Stage a ``while``; return the error that prevents it, or None."""
    return staged_as_needed(lambda varies: staged_repeat(body, condition, varies=varies), body, long=True)


def _first_iteration(body: Body) -> tuple[bool | Node, Exception | None]:
    """Run one iteration of a ``while`` with a known test: it counts if the test is known after it, else the loop is staged.

    Returns whether to go on, and the error that prevents staging.
    """
    checks, computes = raising.noted(), values_are_there()

    def run() -> tuple[bool | Node, bool]:
        body.iteration()
        return truth(body.asked()), raising.noted() is checks or not computes

    def stands(found: tuple[bool | Node, bool]) -> bool:
        return isinstance(found[0], bool) and found[1]  # Python runs code that must know a value

    try:
        going, sure = attempt(World(body.functions), run, stands).result
        if isinstance(going, bool):
            return (going, None) if sure else (True, NeedsPython("an iteration relies on a value that depends on data"))
    except Grows:
        pass
    except Exception as error:  # noqa: BLE001 (as above)
        return True, error
    return False, _staged_while(body, True)


def staged_repeat(body: Body, first: bool | Node, *, varies: bool = False, known: bool = False) -> None:
    """Stage a ``while`` as a region; one whose test is ``known`` so far, only if there is something lazy in it."""
    _refuse_effects(body)

    def run() -> tuple[Any, Any]:
        before = asked(body.asked())  # asked now: an iteration may store into the tested array, `while m: m -= 1`
        body.iteration()
        return before, None

    loop = Loop(body.users, body.names, run, once=first is True, varies=varies)
    loop.trace()
    if known and not loop.is_lazy(None):
        raise PlainPython
    condition = truth(loop.outcome.result[0])
    if isinstance(condition, bool):
        raise NeedsPython(
            "the test of a `while` does not depend on what an iteration changes", "Write the condition so that it does."
        )
    conditional(loop, condition, None if isinstance(first, bool) else first)


_ACTS = {TELL, OUTSIDE}  # ops that must not be done once more


def _refuse_effects(body: Body) -> None:
    """Raise if evaluating the test has effects: a region evaluates it once more than Python would."""
    before = raising.noted()
    found = attempt(World([body.asked]), body.asked)
    slots = {
        slot: value for slot, value in found.slots.items() if slot.name != CHECKS or _has_effects_between(value, before)
    }
    changed = ["what is printed" if slot.name == CHECKS else slot.said for slot in slots]
    changed += [buffer.name for buffer in found.buffers]
    if changed or found.grown:
        raise NeedsPython(
            f"the test of a `while` changes {', '.join(filter(None, changed)) or 'something'}",
            "Begin the loop with `while True:`, and leave it by `if not ...: break`.",
        )


def _has_effects_between(token: Any, before: Any) -> bool:
    """Return whether something is printed, or called outside of the graph, between two tokens."""
    start = node_of(before)
    return any(n.op in _ACTS for n in topological([node_of(token)], stop=lambda n: n is start) if n is not start)
