"""``for`` and ``while`` of staged code: regions of the graph, or Python's, turn by turn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.refusal import values_are_there
from tensormagic.capture.staging import raising
from tensormagic.capture.staging.aliases import holding
from tensormagic.capture.staging.branches import staged_branch
from tensormagic.capture.staging.carries import Names
from tensormagic.capture.staging.grown import Untyped, growing
from tensormagic.capture.staging.lists import FEW
from tensormagic.capture.staging.loops import Loop, conditional, counted
from tensormagic.capture.staging.ranges import First, Items, is_lazy, items_of
from tensormagic.capture.staging.trial import Grows, Journaled, NeedsPython, World, attempt
from tensormagic.capture.staging.truth import computed, truth, unstaged
from tensormagic.capture.value import extent, wrap
from tensormagic.ir.errors import CaptureError, TensorError
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, hint, is_at_least, nodes_of
from tensormagic.ir.type import python
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import Source, index_node, input_node, size_node
from tensormagic.ops.scalars import scalar

Thunk = Callable[[], Any]
UNROLLED = 32  # turns up to which Python runs a loop in which arrays change their length


class PlainPython(Exception):  # noqa: N818 (no error: a loop over Python's own numbers)
    """There is nothing lazy in a loop; ``alone`` says that there is nothing lazy in reach of it either."""

    def __init__(self, *, alone: bool) -> None:
        super().__init__()
        self.alone = alone


def each(
    iterable: Any,
    turn: Callable[[Any], None],
    stop: Thunk | None,
    told: tuple[Sequence[str], ...],
    simple: bool = False,
) -> Iterable[Any]:
    """``for``; what is left to go over, where Python can run the body as it is written: ``simple`` says that it is there."""
    items = items_of(iterable) if context.current() is not None else None
    names = Names(*map(tuple, told))
    failed: Exception | None = None
    if items is not None and _may_stage(items):
        functions = [getattr(turn, "__wrapped__", turn), *([stop] if stop else [])]
        known = _known(items.count())
        rest = _rest(functions[0].__code__, known)
        failed = rest.reason() or rest.noted(
            _staged_as_needed(
                lambda varies: staged_each(items, turn, stop, names, varies=varies),
                functions,
                names,
                stop is not None or known is None or known > UNROLLED,
            )
        )
        if failed is None:
            return ()
    if simple and isinstance(failed, PlainPython) and failed.alone and not is_lazy(iterable):
        return iterable
    _go_over(iterable, items, failed, turn, stop, names)
    return ()


@dataclass
class Rest:
    """Why a short loop within another one was left to Python, and for how many more of its runs it is not asked again."""

    failed: Exception | None = None
    length: int = 0
    left: int = 0

    def reason(self) -> Exception | None:
        """Why it is left to Python without being asked; None where it is to be asked."""
        self.left -= 1
        return self.failed if self.left >= 0 else None

    def noted(self, failed: Exception | None) -> Exception | None:
        """Note what came of asking: each time that there was nothing lazy in it, twice as many runs are left."""
        plain = isinstance(failed, PlainPython)
        self.failed, self.length = failed, min(2 * self.length + 1, _LONGEST) if plain else 0
        self.left = self.length
        return failed


_LONGEST, _SHORT = 255, 100  # runs, iterations


def _rest(code: CodeType, known: int | None) -> Rest:
    """The rest of a loop: in a cell, which Python can always run, and where that makes no large graph."""
    capture = context.current()
    if capture is None or known is None or known > _SHORT or not values_are_there():
        return Rest()
    return capture.rests.setdefault(code, Rest())


def _known(count: Size) -> int | None:
    """How many turns there were when the code was captured; None where data say it."""
    return None if nodes_of(count) else hint(count)


def _staged_as_needed(
    stage: Callable[[bool], None], functions: Sequence[Any], names: Names, long: bool
) -> Exception | None:
    """Stage a loop; gives what stands in the way.

    Where Python cannot run it, or not well, since it is ``long``, arrays may change their length in it, and lists grow as data say.
    """
    found: Exception
    try:
        stage(False)
    except Exception as error:  # noqa: BLE001 (Python runs the loop, and meets the same error, if it is one)
        found = error
    else:
        raising.settle()
        return None
    if values_are_there() or isinstance(found, PlainPython) or not isinstance(found, NeedsPython | TensorError):
        return found
    return found if not long else _staged_with_lists(stage, functions, names, found)


def _staged_with_lists(
    stage: Callable[[bool], None], functions: Sequence[Any], names: Names, failed: Exception
) -> Exception | None:
    try:
        growing(functions, names.lists, lambda: stage(True))
    except Untyped as error:
        return error
    except Exception as error:  # noqa: BLE001 (what it failed for at first says more, but of lists)
        return error if isinstance(failed, Grows) and isinstance(error, NeedsPython) else failed
    raising.settle()
    return None


def _may_stage(items: Items) -> bool:
    count = items.count()
    return not isinstance(count, int) or count > 1


def _go_over(
    iterable: Any,
    items: Items | None,
    failed: Exception | None,
    turn: Callable[[Any], None],
    stop: Thunk | None,
    names: Names,
) -> None:
    """Have Python run a loop."""
    if items is not None and failed is not None and not isinstance(failed, PlainPython):
        count = items.count()
        if nodes_of(count) and not values_are_there():
            if turns_raise(failed, scalar.greater(size_node(count), 0), lambda: turn(items.at(0)), (turn,)):
                return
            raise failed
        unstaged(failed)
    over: Iterable[Any] = _listed(items) if items is not None and is_lazy(iterable) else iterable
    with holding(over):
        _turns(over, turn, stop, names)


def _listed(items: Items) -> Iterable[Any]:
    """As many as there are when it is asked for the next one: an array may get a new shape, a list may grow."""
    known, number = None, 0
    for k in itertools.count():
        count = items.count()
        if count != known:
            known, number = count, int(wrap(size_node(count)).numpy()) if nodes_of(count) else int(extent(count))
        if k >= number:
            return
        yield items.at(k)


def _turns(items: Iterable[Any], turn: Callable[[Any], None], stop: Thunk | None, names: Names) -> None:
    if stop is None:
        for item in items:
            turn(item)
        return
    for item in items:
        condition = truth(stop())
        if isinstance(condition, bool):
            if condition:
                break
            turn(item)
        elif _guarded(condition, turn, item, names):
            break


def _guarded(stopped: Node, turn: Callable[[Any], None], item: Any, names: Names) -> bool:
    """A turn that runs unless the loop was left before, which depends on data; gives whether it is known that it was."""

    def nothing() -> None:
        """The loop was left."""

    try:
        staged_branch(stopped, (nothing, lambda: turn(item)), names.bound, (*names.entering, *names.leaving), (turn,))
    except Exception:
        if not values_are_there():
            raise
        if computed(stopped):
            return True
        turn(item)
    return False


def staged_each(
    items: Items,
    turn: Callable[[Any], None],
    stop: Thunk | None,
    names: Names,
    lists: Sequence[list[Any] | Journaled] = (),
    *,
    varies: bool = False,
) -> None:
    """A ``for`` as a region: a ``loop``, or a ``while`` where data may end it early; ``lists`` are what turns append to."""
    count: Size = items.count()
    once = is_at_least(count, 1)
    index = index_node("index", 0, count)

    def run() -> tuple[Any, Any]:
        with holding(items):
            before = stop() if stop is not None else False
            turn(items.at(wrap(index)))
            return before, stop() if stop is not None else False

    loop = Loop(
        [getattr(turn, "__wrapped__", turn), *([stop] if stop else [])],
        names,
        run,
        once=once,
        lists=lists,
        over=items,
        varies=varies,
    )
    loop.index = index
    loop.trace()
    if isinstance(count, int) and not loop.is_lazy(index):
        raise PlainPython(alone=loop.world.has_no_tensors)
    if loop.appended and not isinstance(count, int):
        if nodes_of(count):
            raise Grows("a list grows a data-dependent number of times", "Fill an array of the largest size.")
        staged_each(First(items, int(extent(count))), turn, stop, names, lists, varies=varies)
        return
    if loop.appended and isinstance(count, int) and count <= FEW:
        raise NeedsPython(f"a list gets no more than {FEW} values", "They stay values of their own.")
    before, after = (truth(v) for v in loop.outcome.result)
    number = size_node(count)
    if after is False:
        counted(loop, number, index)
        return
    if isinstance(before, bool):
        raise NeedsPython("the loop is left in its first iteration", "Write what it does without a loop.")
    asked = input_node(Source("index"), python(int))
    going = scalar.logical_and(scalar.less(asked, number), scalar.logical_not(before))
    conditional(loop, to_form(going, "python"), None if once else scalar.greater(number, 0), (index, asked))


def repeat(test: Thunk, turn: Thunk, told: tuple[Sequence[str], ...]) -> None:
    """``while``."""
    condition = truth(test())
    names = Names(*map(tuple, told))
    failed: Exception | None = None
    turns, due = 0, 0 if context.current() is not None else math.inf
    while condition is not False:
        if not isinstance(condition, bool) and failed is None:
            failed = _staged(test, turn, names, condition)
            if failed is None:
                return
        elif failed is None and turns >= due and condition is True:
            due = 3 * turns + 1 if turns <= UNROLLED else math.inf
            if turns > UNROLLED and _staged_while_known(test, turn, names):
                return
            if turns <= UNROLLED:  # what is known of these iterations may depend on data in later ones
                condition, failed = _first_turn(test, turn, names)
                if condition is None:
                    return
                if failed is None:
                    turns += 1
                    continue
        if not isinstance(condition, bool) and _is_over(condition, failed, turn):
            return
        turn()
        turns += 1
        condition = truth(test())


def _staged_while_known(test: Thunk, turn: Thunk, names: Names) -> bool:
    """Stage what is left of a long ``while`` whose test is known so far; gives whether that was done."""
    capture = context.current()
    rest = Rest() if capture is None else capture.rests.setdefault(turn.__code__, Rest())
    stage = partial(staged_repeat, test, turn, names, True, known=True)
    return (rest.reason() or rest.noted(_staged_as_needed(lambda _: stage(), [turn, test], names, False))) is None


def turns_raise(failed: Exception, ran: Node, first: Thunk, functions: Sequence[Any]) -> bool:
    """Have the graph raise what the ``first`` turn of a loop raises, where one has ``ran``; whether that can wait."""
    if raising.place_of(failed) is None or isinstance(failed, CaptureError):
        return False
    world = World([getattr(f, "__wrapped__", f) for f in functions])
    if attempt(world, first, may_raise=True).raised is None:
        raise NeedsPython(
            f"the first iteration of the loop leaves what ends in an error in another one, and their number depends on data ({failed})",
            "Let each iteration leave what the next one takes: numbers and arrays of one dtype and shape.",
        ) from failed
    return raising.turns_raise(failed, ran)


def _is_over(condition: Node, failed: Exception | None, turn: Thunk) -> bool:
    """Whether a ``while`` that no region can hold has no further turn: known, or told by an error that a turn would be."""
    if failed is not None and turns_raise(failed, condition, turn, (turn,)):
        return True
    if not values_are_there() or failed is None:
        raise failed or AssertionError
    unstaged(failed)
    return not computed(condition)


def _staged(test: Thunk, turn: Thunk, names: Names, condition: bool | Node) -> Exception | None:
    """Stage a ``while``; gives what stands in the way."""
    return _staged_as_needed(
        lambda varies: staged_repeat(test, turn, names, condition, varies=varies), [turn, test], names, True
    )


def _first_turn(test: Thunk, turn: Thunk, names: Names) -> tuple[bool | Node | None, Exception | None]:
    """One turn of a ``while`` whose test is known: it stands, if the test is known after it, else the loop is staged.

    Gives whether to go on, None where the loop is done; and what stands in the way of staging it.
    """
    checks, computes = raising.noted(), values_are_there()

    def run() -> tuple[bool | Node, bool]:
        turn()
        return truth(test()), raising.noted() is checks or not computes

    def stands(found: tuple[bool | Node, bool]) -> bool:
        return isinstance(found[0], bool) and found[1]  # Python runs what relies on something that it can look at

    try:
        going, sure = attempt(World((turn, test)), run, stands).result
        if isinstance(going, bool):
            return (going, None) if sure else (True, NeedsPython("an iteration relies on what depends on data"))
    except Grows as error:
        if values_are_there():
            return True, error
    except Exception as error:  # noqa: BLE001 (as above)
        return True, error
    failed = _staged(test, turn, names, True)
    return (None, None) if failed is None else (True, failed)


def staged_repeat(
    test: Thunk, turn: Thunk, names: Names, first: bool | Node, *, varies: bool = False, known: bool = False
) -> None:
    """A ``while`` as a region; one whose test is ``known`` so far, only if there is something lazy in it."""

    def run() -> tuple[Any, Any]:
        before = test()
        turn()
        return before, None

    loop = Loop([turn, test], names, run, once=first is True, varies=varies)
    loop.trace()
    if known and not loop.is_lazy(None):
        raise PlainPython(alone=loop.world.has_no_tensors)
    condition = truth(loop.outcome.result[0])
    if isinstance(condition, bool):
        raise NeedsPython(
            "the test of a `while` does not depend on what an iteration changes", "Write it as Python does."
        )
    conditional(loop, condition, None if isinstance(first, bool) else first)
