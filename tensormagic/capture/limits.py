"""How large a graph may grow, and how long Python may run iterations that are captured, before a capture is given up."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from tensormagic.ir.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensormagic.capture.context import Capture

LIMIT = 100_000  # nodes that one cell may unroll to
MANY = 500  # nodes from which on a cell whose iterations Python runs had better not be captured: one takes the time of 50 calls of NumPy
SEVERAL = 16  # values that the code asks for on the way, from which on the same holds where they take long
EACH = 0.1  # seconds that one of these takes at most: what takes longer is work, which a second run would do again
PATIENCE = 1.0  # where they have taken so long: seconds of the thread
SOON = 0.25  # of that, where the code asks for values, is data-dependent recursion, or puts nothing into the graph
SURE = 2.0  # seconds of iterations that build a graph, by what the second one has taken: that is long whatever the graph is for
KNOWN = 0.1  # of all of these, for a cell whose text was given up before
FIRST = 16  # elements of an array that is gone over, after which the time of the others is taken
NODE = 0.0005  # seconds that a node takes later on, to be rewritten and run
DEEP = 8  # branches and loops that are tried within one another, from which on the code is data-dependent recursion
CALLS = 1024  # calls, after which the time is taken
ITERATIONS = 64  # iterations that Python runs, of all loops, after which it is taken
FEW = 8  # of either to a node, from which on they are for nothing that is in the graph
ENOUGH = 20  # times so long such a capture may take


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
    """How large the graph of iterations that Python runs will be, and how long they will take: foreseen by the first ones.

    Parameters
    ----------
    count
        How many there are, where that is known.
    listed
        Whether they make a list: Python decides nothing in them, and a graph of them is given up where it would take long.
    """

    __slots__ = ("_before", "_begun", "_count", "_listed", "_nodes", "_ran", "_since")

    def __init__(self, count: int | None, *, listed: bool = False) -> None:
        self._count, self._listed = count, listed
        self._begun = self._nodes = self._before = 0  # ``_before``: nodes when the time was last taken, at ``_since``
        self._since = self._ran = 0.0

    def begin(self, capture: Capture) -> None:
        """Begin an iteration: the second one begins as the later ones do, and tells how large the graph of all of them will be.

        More of them tell how long all of them will take.

        Raises
        ------
        LimitError
            Where that is much, and the code can be run without a graph.
        """
        if capture.effort.again is _yes and not capture.heap.trials:  # what was given up when it was tried as a region
            refuse(capture)
        self._begun += 1
        capture.effort.iterated += 1
        if not capture.effort.iterated % ITERATIONS:
            _idles(capture, capture.effort.iterated)
        if self._begun == 2:
            self._nodes = self._before = capture.effort.nodes
            self._since, self._ran = time.thread_time(), capture.effort.ran
        elif self._begun == 3 and self._count is not None:
            self._foresee(capture, self._count - 2)
        elif self._begun > 2 and not self._begun & (self._begun - 1):
            self._wait(capture, self._begun if self._count is None else self._count - self._begun)

    def _foresee(self, capture: Capture, count: int) -> None:
        """Foresee those that are left by the second one."""
        if capture.heap.trials or not (self._listed or capture.effort.driven):
            return
        more = (capture.effort.nodes - self._nodes) * count
        nodes = capture.effort.nodes + more
        many = NODE * more > _patience(capture) if self._listed else nodes > MANY
        if not (many or self._listed or capture.abstract) and more:
            each = time.thread_time() - self._since - (capture.effort.ran - self._ran)
            many = each * count > SURE * (KNOWN if capture.effort.hurried else 1.0)
        if many and _can_do_without(capture):
            refuse(capture, nodes)

    def _wait(self, capture: Capture, left: int) -> None:
        """Foresee how long those that are left take by the latter half of those that have run: the first ones take longer."""
        now, before, nodes = time.thread_time(), self._before, capture.effort.nodes
        took, self._since, self._before = now - self._since, now, nodes
        if capture.abstract or capture.heap.trials:
            return
        empty = nodes == self._nodes
        if (self._begun <= FIRST) if empty else not self._listed:  # a loop that builds a graph keeps it, up to its size
            return
        each = (took + NODE * (nodes - before)) / max(self._begun // 2, 2)
        if each * left > _patience(capture, soon=empty) and _can_do_without(capture):
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
    """Give up where so many calls, or iterations, have taken long, have put nothing into the graph, and the code can be run without one."""
    if capture.effort.nodes * FEW > count or capture.abstract or capture.heap.trials:
        return
    if _has_taken(capture, _patience(capture, soon=True)) and _can_do_without(capture):
        refuse(capture, empty=True)


def _is_endless(capture: Capture) -> bool:
    """Whether data-dependent recursion is to be given up: each call is tried for each outcome of the branches before it."""
    if capture.abstract:
        return False
    return _has_taken(capture, ENOUGH * PATIENCE) or (
        _has_taken(capture, _patience(capture, soon=True)) and _can_do_without(capture)
    )


def asked(capture: Capture | None) -> None:
    """Count a value that the code of a cell asks for.

    Raises
    ------
    LimitError
        Where many of them have taken long, and the code can be run without a graph.
    """
    if capture is None or capture.abstract:
        return
    capture.effort.asked += 1
    count = capture.effort.asked
    long = count >= SEVERAL and count % 8 == 0 and _has_taken(capture, _patience(capture, soon=True), count * EACH)
    if capture.effort.again is _yes or (long and _can_do_without(capture)):
        refuse(capture)


def ran(capture: Capture | None, seconds: float) -> None:
    """Count the time that values which the code asked for took to be computed: a second run would do that again."""
    if capture is not None:
        capture.effort.ran += seconds


class Pace:
    """What it takes to go over an array in Python, with what is done with each element: foreseen by the first ones."""

    __slots__ = ("_begun", "_nodes", "_own")

    def __init__(self) -> None:
        self._begun, self._nodes = 0.0, 0
        self._own = 0  # nodes that are the elements themselves

    def element(self, capture: Capture | None, number: int, count: int, take: Callable[[], Any]) -> Any:
        """Element ``number`` of ``count``, which ``take`` gives.

        Raises
        ------
        LimitError
            Where the others will take long, and the code can be run without a graph.
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
    """Whether a capture has taken so long, beside runs: the clock on the wall, which costs little, is never behind that of the thread."""
    effort = capture.effort
    if time.perf_counter() - effort.wall <= seconds:
        return False
    taken = time.thread_time() - effort.begun
    return taken - effort.ran > seconds and taken < most


def _patience(capture: Capture, *, soon: bool = False) -> float:
    return PATIENCE * (SOON if soon else 1.0) * (KNOWN if capture.effort.hurried else 1.0)


def _can_do_without(capture: Capture) -> bool:
    """Whether the code can be run once more, without a graph; it is found out once."""
    if capture.effort.again is not None:
        capture.effort.again = _yes if capture.effort.again() else None
    return capture.effort.again is _yes


def _yes() -> bool:
    """In place of what is asked, where the answer was yes: code on the way out may catch the error, and goes on."""
    return True


def refuse(capture: Capture, nodes: int = 0, *, empty: bool = False) -> None:
    """Give up, whatever the code does with the error: there are so many ``nodes``, or will be; or none that take the time."""
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
