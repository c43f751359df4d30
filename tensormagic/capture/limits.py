"""Limits on the size of a graph, and on the time for which Python runs captured iterations, before a capture is given up."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from tensormagic.capture.python import usercode
from tensormagic.ir.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensormagic.capture.context import Capture

LIMIT = 100_000  # nodes that one cell may unroll to
MANY = 500  # nodes above which a cell whose iterations Python runs should not be captured: one takes the time of 50 calls of NumPy
SEVERAL = 16  # values that the code needs meanwhile, above which the same holds if they take long
REPEATS = 2  # of these, values needed again at the same place, above which it holds, too
EACH = 0.1  # seconds that one of these takes at most: what takes longer is work, which a second run would do again
PATIENCE = 1.0  # seconds of the thread after which code with many such values is given up
SOON = 0.15  # the share of that for code that needs values, is data-dependent recursion, or adds nothing to the graph
SURE = 2.0  # seconds of iterations that build a graph, predicted from the second: above this it is long for any graph
KNOWN = 0.1  # the share of all of these for a cell whose text was given up before
FIRST = 16  # elements of an array that is iterated over, after which the time of the others is predicted
NODE = 0.0005  # seconds that a node takes later on, to be rewritten and run
DEEP = 8  # nested trials of branches and loops, above which the code is data-dependent recursion
CALLS = 1024  # calls after which the time is checked
ITERATIONS = 64  # iterations that Python runs, over all loops, after which it is checked
FEW = 8  # calls or iterations per node, above which they do not serve the graph
ENOUGH = 20  # how many times the limit such a capture may take

computed = 0.0  # seconds of the thread that all values took to be computed, once their graphs were built


def built(capture: Capture) -> None:
    """Count a node.

    Raises
    ------
    LimitError
        For a graph that is too large, or that grows large where the code can be run without one.
    """
    capture.effort.nodes += 1
    many = (
        capture.effort.again is _yes
        or capture.effort.nodes > LIMIT
        or (len(capture.heap.trials) >= DEEP and _is_endless(capture))
    )
    if many or (capture.effort.nodes > MANY and capture.effort.driven and _can_do_without(capture)):
        refuse(capture)


class Ahead:
    """Predicts, from the first iterations, how large the graph of a loop run by Python becomes, and how long it takes.

    Parameters
    ----------
    count
        The number of iterations, if known.
    listed
        Whether the loop makes a list: Python decides nothing in it, and the graph is abandoned if it would take long.
    early
        Whether the loop may be left early: as many iterations as have run are then assumed to remain.
    around
        The enclosing loop, if Python runs that, too.
    """

    __slots__ = ("_asked", "_before", "_listed", "_nodes", "_since", "around", "begun", "count", "early")

    def __init__(
        self, count: int | None, *, listed: bool = False, early: bool = False, around: Ahead | None = None
    ) -> None:
        self.count, self._listed, self.early, self.around = count, listed, early, around
        self.begun = self._nodes = self._before = 0  # ``_before``: nodes when the time was last checked, at ``_since``
        self._asked, self._since = 0, 0.0

    def begin(self, capture: Capture) -> None:
        """Begin an iteration: the second one begins as later ones do, and shows how large the graph of all of them will be.

        Later ones show how long all of them will take.

        Raises
        ------
        LimitError
            Where that is much, and the code can be run without a graph.
        """
        if (
            capture.effort.again is _yes and not capture.heap.trials
        ):  # the nodes of a trial as a region that was given up
            refuse(capture)
        self.begun += 1
        capture.effort.iterated += 1
        if not capture.effort.iterated % ITERATIONS:
            _idles(capture, capture.effort.iterated)
        if self.begun == 2:
            self._nodes = self._before = capture.effort.nodes
            self._asked, self._since = capture.effort.asked, _spent(capture)
        elif self.begun == 3 and self.count is not None:
            self._foresee(capture, self.count - 2)
        elif self.begun > 2 and not self.begun & (self.begun - 1):
            self._wait(capture)

    def _left(self) -> int:
        """Return the number of remaining iterations, multiplied by those of enclosing loops."""
        if self.count is None or self.early:
            return self.begun
        left, each, around = self.count - self.begun, self.count, self.around
        while around is not None and around.count is not None and not around.early:
            left, each = left + each * (around.count - around.begun), each * around.count
            around = around.around
        return left

    def _asks(self, capture: Capture, each: float) -> bool:
        """Return whether each iteration needs a computed value, so that the graph is in pieces, and this takes most of the time."""
        asked = (capture.effort.asked - self._asked) / (self.begun - 2)
        return asked >= 1 and each < asked * EACH

    def _foresee(self, capture: Capture, count: int) -> None:
        """Predict the remaining cost from the second iteration."""
        if capture.heap.trials or not (self._listed or capture.effort.driven):
            return
        more = (capture.effort.nodes - self._nodes) * count
        nodes = capture.effort.nodes + more
        many = NODE * more > _patience(capture) if self._listed else nodes > MANY
        if not (many or self._listed or capture.abstract) and more:
            each, sure = _spent(capture) - self._since, SURE * (KNOWN if capture.effort.hurried else 1.0)
            asks = self._asks(capture, each) and each * self._left() > 2 * _patience(capture, soon=True)
            many = asks or each * count > sure
        if many and _can_do_without(capture):
            refuse(capture, nodes)

    def _wait(self, capture: Capture) -> None:
        """Predict the remaining time from the latter half of the iterations so far: the first ones take longer."""
        now, before, nodes = _spent(capture), self._before, capture.effort.nodes
        took, self._since, self._before = now - self._since, now, nodes
        if capture.abstract or capture.heap.trials:
            return
        each = (took + NODE * (nodes - before) * self._listed) / max(self.begun // 2, 2)
        empty, asks = nodes == self._nodes, self._asks(capture, each)
        if (self.begun <= FIRST) if empty else not (self._listed or asks):  # a loop that builds a graph keeps it
            return
        if each * self._left() > _patience(capture, soon=empty or asks) and _can_do_without(capture):
            refuse(capture, empty=empty)


def called(capture: Capture) -> None:
    """Count a call of a function of the user's.

    Raises
    ------
    LimitError
        Where many have taken long, have put nothing into the graph, and the code can be run without one.
    """
    capture.effort.calls += 1
    if not capture.effort.calls % CALLS:
        _idles(capture, capture.effort.calls)


def _idles(capture: Capture, count: int) -> None:
    """Give up if calls or iterations have taken long without adding to the graph, and the code can run without one."""
    if capture.effort.nodes * FEW > count or capture.abstract or capture.heap.trials:
        return
    if _has_taken(capture, _patience(capture, soon=True)) and _can_do_without(capture):
        refuse(capture, empty=True)


def _is_endless(capture: Capture) -> bool:
    """Return whether to give up data-dependent recursion: each call is tried for each outcome of the branches before it."""
    if capture.abstract:
        return False
    return _has_taken(capture, ENOUGH * PATIENCE) or (
        _has_taken(capture, _patience(capture, soon=True)) and _can_do_without(capture)
    )


def asked(capture: Capture | None) -> None:
    """Count a value that the code of a cell needs.

    Raises
    ------
    LimitError
        Where many of them have taken long, and the code can be run without a graph.
    """
    if capture is None or capture.abstract:
        return
    effort = capture.effort
    effort.asked += 1
    frame = usercode.user_frame()
    place = None if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    effort.repeats += place in effort.places
    effort.places.add(place)
    several = effort.asked >= SEVERAL or effort.repeats >= REPEATS
    long = several and _has_taken(capture, _patience(capture, soon=True), effort.asked * EACH)
    if effort.again is _yes or (long and _can_do_without(capture)):
        refuse(capture)


def ran(capture: Capture | None, seconds: float) -> None:
    """Count the time taken to compute values that the code needed: a second run would take that again."""
    global computed
    computed += seconds
    if capture is not None:
        capture.effort.ran += seconds


class Pace:
    """Predicts, from the first elements, how long iterating over an array in Python takes."""

    __slots__ = ("_begun", "_nodes", "_own")

    def __init__(self) -> None:
        self._begun, self._nodes = 0.0, 0
        self._own = 0  # nodes of the elements themselves

    def element(self, capture: Capture | None, number: int, count: int, take: Callable[[], Any]) -> Any:
        """Return element ``number`` of ``count``, which ``take`` makes.

        Raises
        ------
        LimitError
            If the others will take long, and the code can run without a graph.
        """
        if capture is None:
            return take()
        if number >= FIRST and not number & (number - 1) and not capture.abstract and not capture.heap.trials:
            self._foresee(capture, number, count)
        before = capture.effort.nodes
        found = take()
        self._own += capture.effort.nodes - before
        return found

    def _foresee(self, capture: Capture, number: int, count: int) -> None:
        now = time.thread_time()
        if number == FIRST:
            self._begun, self._nodes, self._own = now, capture.effort.nodes, 0
            return
        took = now - self._begun + NODE * (capture.effort.nodes - self._nodes - self._own)
        if took / (number - FIRST) * (count - number) > _patience(capture) and _can_do_without(capture):
            refuse(capture)


def _has_taken(capture: Capture, seconds: float, most: float = math.inf) -> bool:
    """Return whether a capture has taken this long, without runs.

    The cheap wall clock is read first, as it is never behind the thread's.
    """
    effort = capture.effort
    if time.perf_counter() - effort.wall <= seconds:
        return False
    taken = time.thread_time() - effort.begun
    return taken - effort.ran > seconds and taken < most


def _spent(capture: Capture) -> float:
    """Return the seconds of the thread, without those in which values were computed."""
    return time.thread_time() - capture.effort.ran


def _patience(capture: Capture, *, soon: bool = False) -> float:
    return PATIENCE * (SOON if soon else 1.0) * (KNOWN if capture.effort.hurried else 1.0)


def _can_do_without(capture: Capture) -> bool:
    """Return whether the code can be run once more, without a graph; this is found out only once."""
    if capture.effort.again is not None:
        capture.effort.again = _yes if capture.effort.again() else None
    return capture.effort.again is _yes


def _yes() -> bool:
    """Return True, in place of a check that has succeeded: code that catches the error may go on."""
    return True


def refuse(capture: Capture, nodes: int = 0, *, empty: bool = False) -> None:
    """Raise LimitError, and record it in case the code catches it: too many ``nodes``, or (``empty``) time without nodes."""
    places = list(capture.effort.unstaged.items())[:3]
    why = "; ".join(f"{place}: {reason}" for place, reason in places)
    count = min(LIMIT, nodes or capture.effort.nodes)
    capture.refusals.refused = LimitError(
        f"{capture.label} unrolls to more than {count:,} operations" + (f" ({why})" if why else ""),
        "Use fewer iterations, or array operations instead of the loop; %%tensor --plain runs the cell as it is.",
        why,
        next((place.line for place, _ in places if place.line), 0),
        empty=empty,
    )
    raise capture.refusals.refused
