"""``for`` and ``while`` of staged code: regions of the graph, or Python's, iteration by iteration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.refusal import values_are_there
from tensormagic.capture.staging import raising
from tensormagic.capture.staging.aliases import holding
from tensormagic.capture.staging.branches import staged_branch
from tensormagic.capture.staging.carries import Names
from tensormagic.capture.staging.consumed import counted_by, refuse_held
from tensormagic.capture.staging.growing import growing, retyped
from tensormagic.capture.staging.grown import Untyped
from tensormagic.capture.staging.left_to_python import Left, PlainPython, left_before
from tensormagic.capture.staging.lists import FEW
from tensormagic.capture.staging.loop_region import conditional, counted
from tensormagic.capture.staging.loops import Loop
from tensormagic.capture.staging.moving import moved
from tensormagic.capture.staging.needs_python import BeginsWeakly, Grows, NeedsPython
from tensormagic.capture.staging.plainly import NOTHING, PLAIN, Plainly, plainly
from tensormagic.capture.staging.ranges import First, Items, LazyIterator, Rest, is_lazy, items_of, used
from tensormagic.capture.staging.trial import attempt, refuse_taken
from tensormagic.capture.staging.truth import Driving, computed, decided, truth, unstaged
from tensormagic.capture.staging.world import Journaled, World
from tensormagic.capture.stand_ins import gone_over
from tensormagic.capture.value import extent, wrap
from tensormagic.ir.errors import CaptureError, TensorError
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, hint, is_at_least, nodes_of
from tensormagic.ir.type import python
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import Source, index_node, input_node, size_node
from tensormagic.ops.scalars import scalar

Thunk = Callable[[], Any]
_GUARDED = 250  # iterations that a function has of its own, each of which may not be done
UNROLLED = 32  # iterations up to which Python runs a loop in which arrays change their length


def each(
    iterable: Any,
    iteration: Callable[[Any], None],
    stop: Thunk | None,
    told: tuple[Sequence[str], ...],
    called: tuple[str, ...] | None = None,
    named: bool = False,
) -> Plainly:
    """``for``; what is left to go over, where Python runs the body as it is written: where it is simple, what it has ``called``.

    ``named`` says that what is gone over has a name, by which code may go on with it.
    """
    body = Body(iteration, stop or never, Names(*map(tuple, told)))
    iterable = iterable if named and body.early else gone_over(iterable)
    if called is not None and type(iterable) in PLAIN and (left := plainly(iterable, [iteration], called, iterable)):
        return left
    items = _items(iterable, early=named and body.early) if context.current() is not None else None
    failed: Exception | None = None
    if items is not None and _may_stage(items):
        failed = _staged_for(items, body)
        if failed is None:
            used(iterable, early=body.early)
            return NOTHING
        if not isinstance(iterable, Rest) and _first_is_another(failed, _known(items.count())):
            used(iterable, early=body.early)
            return each(Rest(items), iteration, stop, told, called) if _went_on(items, body) else NOTHING
    return _by_python(iterable, items, failed, body, called)


def never() -> bool:
    """Of a ``for`` that goes on to its end: it is not left."""
    return False


@dataclass(frozen=True, eq=False)
class Body:
    """What a loop does, of a ``for``, a ``while`` or a comprehension.

    Parameters
    ----------
    iteration
        Runs one; of a ``for``, for what is gone over.
    asked
        What is asked before each: of a ``while``, whether to go on; of a ``for``, whether it is left.
    names
        What the syntax says.
    lists
        What iterations append to, beside what the syntax names.
    """

    iteration: Callable[..., None]
    asked: Thunk = never
    names: Names = field(default_factory=Names)
    lists: Sequence[list[Any] | Journaled] = ()

    @property
    def early(self) -> bool:
        """Whether the loop may be left before its end."""
        return self.asked is not never

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """Those that are called."""
        return [self.iteration, *([self.asked] if self.early else [])]

    @property
    def users(self) -> list[Any]:
        """The user's functions behind these, for what they reach."""
        return [getattr(self.iteration, "__wrapped__", self.iteration), *self.functions[1:]]


def _staged_for(items: Items, body: Body) -> Exception | None:
    """Stage a ``for``; gives what stands in the way."""
    known = _known(items.count())
    rest = left_before(body.users[0].__code__, known)
    long = body.early or known is None or known > UNROLLED
    return rest.reason() or rest.noted(
        _staged_as_needed(lambda varies: staged_each(items, body, varies=varies), body, long=long)
    )


def _by_python(
    iterable: Any, items: Items | None, failed: Exception | None, body: Body, called: tuple[str, ...] | None
) -> Plainly:
    """Have Python run a ``for``; what is left to go over, where it runs the body as it is written."""
    if isinstance(failed, PlainPython) and not is_lazy(iterable):
        left = plainly(iterable, body.functions, called, iterable, captured=False)
        if left is not None:
            return left
    if _is_long(items, failed):
        over = items if isinstance(iterable, LazyIterator) else iterable
        left = moved(items, body.functions, called, partial(_go_over, over, items, failed, body))
        if left is not None:
            used(iterable, early=body.early)
            return left
    _go_over(iterable, items, failed, body)
    return NOTHING


def _items(iterable: Any, *, early: bool) -> Items | None:
    if early and isinstance(iterable, LazyIterator) and values_are_there():
        return None  # Python takes as many as there are iterations
    found = items_of(iterable)
    return counted_by(iterable) if found is None else found


def _known(count: Size) -> int | None:
    """How many iterations there were when the code was captured; None where it is data-dependent."""
    return None if nodes_of(count) else hint(count)


def _staged_as_needed(stage: Callable[[bool], None], body: Body, *, long: bool) -> Exception | None:
    """Stage a loop; gives what stands in the way.

    Where Python cannot run it (or not well: it is ``long``), arrays may change their length in it, and lists get a data-dependent length.
    """
    found: Exception
    try:
        retyped(lambda: stage(False))
    except Exception as error:  # noqa: BLE001 (Python runs the loop, and meets the same error, if it is one)
        found = error
    else:
        raising.settle()
        return None
    if isinstance(found, PlainPython) or not isinstance(found, NeedsPython | TensorError) or not long:
        return found
    computes = values_are_there()
    if computes and not isinstance(found, Grows):
        return found  # Python runs the rest
    return _staged_with_lists(lambda: stage(not computes), body, found)


def _staged_with_lists(stage: Thunk, body: Body, failed: Exception) -> Exception | None:
    try:
        lists = growing(body.users, body.names.lists, stage)
        if values_are_there():
            lists.listed()
    except Untyped as error:
        return error
    except Exception as error:  # noqa: BLE001 (what it failed for at first says more, but of lists)
        return error if isinstance(failed, Grows) and isinstance(error, NeedsPython) else failed
    raising.settle()
    return None


def _first_is_another(failed: Exception, known: int | None) -> bool:
    """Whether Python is to run the first iteration, and the rest is asked again."""
    return isinstance(failed, BeginsWeakly) or _begins_otherwise(failed, known)


def _begins_otherwise(failed: Exception | None, known: int | None) -> bool:
    """Whether the first iteration of a long loop of a cell may be another than the rest: it binds what was None, or was not bound."""
    later = isinstance(failed, NeedsPython) and not isinstance(failed, PlainPython | Grows)
    return later and known is not None and known > UNROLLED and values_are_there()


def _went_on(items: Items, body: Body) -> bool:
    """Have Python run the first iteration; gives whether there is to be another one."""
    ran: list[Any] = []

    def first(item: Any) -> None:
        ran.append(item)
        body.iteration(item)

    with holding(items):
        _iterations([items.at(0)], Body(first, body.asked, body.names), 0)
    return bool(ran)


def _is_short(count: Size) -> bool:
    known = _known(count)
    return known is not None and known <= UNROLLED


def _is_long(items: Items | None, failed: Exception | None) -> bool:
    """Whether Python runs too many iterations of a loop for a graph of all of them."""
    return items is not None and not isinstance(failed, PlainPython) and not _is_short(items.count())


def _may_stage(items: Items) -> bool:
    count = items.count()
    return not isinstance(count, int) or count > 1


def _go_over(iterable: Any, items: Items | None, failed: Exception | None, body: Body) -> None:
    """Have Python run a loop."""
    if items is not None and failed is not None and not isinstance(failed, PlainPython):
        count = items.count()
        if nodes_of(count) and not values_are_there():
            ran = scalar.greater(size_node(count), 0)
            if iterations_raise(failed, ran, lambda: body.iteration(items.at(0)), (body.iteration,)):
                return
            raise failed
        unstaged(failed)
    over: Iterable[Any] = (
        _listed(items)
        if items is not None and is_lazy(iterable) and not isinstance(iterable, LazyIterator)
        else iterable
    )
    with holding(over):
        _iterations(over, body, 0 if _is_long(items, failed) else UNROLLED)


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


def _iterations(items: Iterable[Any], body: Body, lazy: int) -> None:
    """Run iterations, ``lazy`` of them before their conditions are computed; a loop that is left takes nothing more from an iterator."""
    with Driving(lazy) as driving:
        taking = iter(items)
        asked, guarded, early = taking is not items, 0, body.early
        if not asked:
            refuse_taken(items)
        while True:
            driving.begin()
            condition = decided(body.asked()) if early else False
            if not asked and not isinstance(condition, bool):
                if values_are_there():
                    condition = computed(condition)
                else:
                    refuse_held(items)
                    asked = True
            if condition is True:
                break
            try:
                item = next(taking)
            except StopIteration:
                break
            if condition is False:
                body.iteration(item)
                continue
            guarded += 1
            if guarded > _GUARDED and not values_are_there():
                raise CaptureError(
                    f"a loop over a {type(items).__name__} has more than {_GUARDED:,} iterations, and how many of them run depends on data",
                    "Loop over an array or a range, or use `while`.",
                )
            if _guarded(condition, body, item):
                break


def _guarded(stopped: Node, body: Body, item: Any) -> bool:
    """An iteration that runs unless the loop was left before, which depends on data; gives whether it is known that it was."""

    def nothing() -> None:
        """The loop was left."""

    names, ways = body.names, (nothing, lambda: body.iteration(item))
    try:
        staged_branch(stopped, ways, names.bound, (*names.entering, *names.leaving), (body.iteration,))
    except Exception:
        if not values_are_there():
            raise
        if computed(stopped):
            return True
        body.iteration(item)
    return False


def staged_each(items: Items, body: Body, *, varies: bool = False) -> None:
    """A ``for`` as a region: a ``loop``, or a ``while`` where data may end it early."""
    count: Size = items.count()
    once = is_at_least(count, 1)
    index = index_node("index", 0, count)

    def run() -> tuple[Any, Any]:
        with holding(items):
            before = body.asked()
            body.iteration(items.at(wrap(index)))
            return before, body.asked()

    loop = Loop(body.users, body.names, run, once=once, lists=body.lists, over=items, varies=varies)
    loop.index = index
    loop.trace()
    if not isinstance(items, Rest) and (not body.early or values_are_there()):
        loop.check_begin()
    if isinstance(count, int) and not loop.is_lazy(index):
        raise PlainPython
    if loop.appended and not isinstance(count, int):
        if nodes_of(count):
            raise Grows("a list grows a data-dependent number of times", "Fill an array of the largest size.")
        staged_each(First(items, int(extent(count))), body, varies=varies)
        return
    if loop.appended and isinstance(count, int) and count <= FEW:
        raise NeedsPython(f"a list gets no more than {FEW} values", "They stay separate values.")
    before, after = (truth(v) for v in loop.outcome.result)
    number = size_node(count)
    if after is False:
        counted(loop, number, index)
        return
    if isinstance(before, bool):
        raise NeedsPython("the loop is left in its first iteration", "Write it without a loop.")
    asked = input_node(Source("index"), python(int))
    going = scalar.logical_and(scalar.less(asked, number), scalar.logical_not(before))
    conditional(loop, to_form(going, "python"), None if once else scalar.greater(number, 0), (index, asked))


def repeat(
    test: Thunk, iteration: Thunk, told: tuple[Sequence[str], ...], called: tuple[str, ...] | None = None
) -> Plainly:
    """``while``; gives whether Python is to run it as it is written: where it is simple, what it has ``called``."""
    if left := plainly(True, [iteration, test], called):
        return left
    with Driving(UNROLLED) as driving:
        _While(Body(iteration, test, Names(*map(tuple, told))), driving).run()
    return NOTHING


class _While:
    """A ``while`` that is run: by Python, iteration by iteration, until a region holds what is left of it.

    Parameters
    ----------
    body
        What it does.
    driving
        Python's part.
    """

    def __init__(self, body: Body, driving: Driving) -> None:
        self._body, self._driving = body, driving
        self._capture = context.current()
        self._failed: Exception | None = None  # why no region holds it
        self._iterations = 0
        self._due = math.inf if self._capture is None else UNROLLED + 1 if self._capture.driven else 0

    def run(self) -> None:
        """Run it."""
        condition = decided(self._body.asked())
        while condition is not False:
            condition = self._goes_on(condition)

    def _goes_on(self, condition: bool | Node) -> bool | Node:
        """Whether there is to be another iteration, after one, or after all that a region holds."""
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
        """Of one whose test is known so far: whether to go on after an iteration, or a region; None where Python is to run one."""
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
            self._capture is not None and self._capture.refused is not None
        ):  # which the code may have caught, and would for ever
            raise self._capture.refused
        if self._iterations == 1 and _begins_otherwise(self._failed, UNROLLED + 1):
            self._failed = None
        known = self._failed is not None or isinstance(condition, bool)
        return decided(self._body.asked()) if known else truth(self._body.asked())

    def _is_staged_while_known(self) -> bool:
        """Whether what is left of a long one, whose test is known so far, has been staged."""
        capture, body = self._capture, self._body
        rest = Left() if capture is None else capture.rests.setdefault(body.iteration.__code__, Left())
        stage = partial(staged_repeat, body, True, known=True)
        return (rest.reason() or rest.noted(_staged_as_needed(lambda _: stage(), body, long=False))) is None


def iterations_raise(failed: Exception, ran: Node, first: Thunk, functions: Sequence[Any]) -> bool:
    """Have the graph raise what the ``first`` iteration of a loop raises, where one has ``ran``; whether that can wait."""
    if raising.place_of(failed) is None or isinstance(failed, CaptureError):
        return False
    world = World([getattr(f, "__wrapped__", f) for f in functions])
    if attempt(world, first, may_raise=True).raised is None:
        raise NeedsPython(
            f"values of the first iteration cause an error in a later one, and the number of iterations depends on data ({failed})",
            "Let each iteration leave numbers and arrays of the same dtypes and shapes.",
        ) from failed
    return raising.iterations_raise(failed, ran)


def _is_over(condition: Node, failed: Exception | None, iteration: Thunk) -> bool:
    """Whether a ``while`` that no region can hold has no further iteration: known, or told by an error that an iteration would be."""
    if failed is not None and iterations_raise(failed, condition, iteration, (iteration,)):
        return True
    if not values_are_there() or failed is None:
        raise failed or AssertionError
    unstaged(failed)
    return not computed(condition)


def _staged_while(body: Body, condition: bool | Node) -> Exception | None:
    """Stage a ``while``; gives what stands in the way."""
    return _staged_as_needed(lambda varies: staged_repeat(body, condition, varies=varies), body, long=True)


def _first_iteration(body: Body) -> tuple[bool | Node, Exception | None]:
    """One iteration of a ``while`` whose test is known: it stands, if the test is known after it, else the loop is staged.

    Gives whether to go on, and what stands in the way of staging it.
    """
    checks, computes = raising.noted(), values_are_there()

    def run() -> tuple[bool | Node, bool]:
        body.iteration()
        return truth(body.asked()), raising.noted() is checks or not computes

    def stands(found: tuple[bool | Node, bool]) -> bool:
        return isinstance(found[0], bool) and found[1]  # Python runs what relies on something that it can look at

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
    """A ``while`` as a region; one whose test is ``known`` so far, only if there is something lazy in it."""

    def run() -> tuple[Any, Any]:
        before = body.asked()
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
