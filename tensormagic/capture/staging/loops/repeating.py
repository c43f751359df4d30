"""Runs ``for`` of staged code: as a region of the graph, or by Python, iteration by iteration."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.inputs.stand_ins import gone_over
from tensormagic.capture.staging.branches.conditional import staged_branch
from tensormagic.capture.staging.loops.appended_lists import FEW
from tensormagic.capture.staging.loops.carries import Names
from tensormagic.capture.staging.loops.consumed_iterators import counted_by, refuse_held
from tensormagic.capture.staging.loops.fixpoint import Loop
from tensormagic.capture.staging.loops.left_to_python import PlainPython, left_before
from tensormagic.capture.staging.loops.loop_bodies import (
    UNROLLED,
    Body,
    begins_otherwise,
    iterations_raise,
    never,
    staged_as_needed,
)
from tensormagic.capture.staging.loops.moving import moved
from tensormagic.capture.staging.loops.plain_loops import NOTHING, PLAIN, PlainLoop, plainly
from tensormagic.capture.staging.loops.ranges import First, Items, LazyIterator, Rest, is_lazy, items_of, used
from tensormagic.capture.staging.loops.region import conditional, counted
from tensormagic.capture.staging.numbers.truth import Driving, computed, decided, truth, unstaged
from tensormagic.capture.staging.trials.aliases import holding
from tensormagic.capture.staging.trials.needs_python import (
    BeginsWeakly,
    GetsKeys,
    Grows,
    NeedsPython,
    UnlikeDTypesError,
)
from tensormagic.capture.staging.trials.trial import refuse_taken
from tensormagic.capture.values.value import extent, wrap
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, hint, is_at_least, nodes_of
from tensormagic.ir.type import python
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import Source, index_node, input_node, size_node
from tensormagic.ops.scalars import scalar

Thunk = Callable[[], Any]
_FEW = 8  # iterations that Python runs itself where an array gets another dtype in the first one
_GUARDED = 250  # iterations that a function keeps with a body each of their own, since each may be skipped


def each(
    iterable: Any,
    iteration: Callable[[Any], None],
    stop: Thunk | None,
    told: tuple[Sequence[str], ...],
    called: tuple[str, ...] | None = None,
    named: bool = False,
) -> PlainLoop:
    """Run a ``for`` loop; return the items left if Python is to run the simple body as written (``called``: what it calls).

    ``named``: the iterable has a name, by which later code may go on with it.
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
        if not isinstance(iterable, Rest) and _retries_after_first(failed, _known_count(items.count())):
            used(iterable, early=body.early)
            return each(Rest(items), iteration, stop, told, called) if _run_first_iteration(items, body) else NOTHING
    return _by_python(iterable, items, failed, body, called)


def _staged_for(items: Items, body: Body) -> Exception | None:
    """Stage a ``for``; return the error that prevents it, or None."""
    known = _known_count(items.count())
    rest = left_before(body.users[0].__code__, known)
    long = body.early or known is None or known > UNROLLED
    return rest.reason() or rest.noted(
        staged_as_needed(lambda varies: staged_each(items, body, varies=varies), body, long=long)
    )


def _by_python(
    iterable: Any, items: Items | None, failed: Exception | None, body: Body, called: tuple[str, ...] | None
) -> PlainLoop:
    """Let Python run a ``for``; return the items left, if it runs the body as written."""
    if isinstance(failed, PlainPython) and not is_lazy(iterable):
        left = plainly(iterable, body.functions, called, iterable, captured=False)
        if left is not None:
            return left
    if _is_long(items, failed):
        over = items if isinstance(iterable, LazyIterator) else iterable
        left = moved(items, body.functions, called, partial(_run_in_python, over, items, failed, body))
        if left is not None:
            used(iterable, early=body.early)
            return left
    _run_in_python(iterable, items, failed, body)
    return NOTHING


def _items(iterable: Any, *, early: bool) -> Items | None:
    if early and isinstance(iterable, LazyIterator) and values_are_there():
        return None  # Python takes as many items as there are iterations
    found = items_of(iterable)
    return counted_by(iterable) if found is None else found


def _known_count(count: Size) -> int | None:
    """Return the number of iterations at capture; None where it is data-dependent."""
    return None if nodes_of(count) else hint(count)


def _retries_after_first(failed: Exception, known: int | None) -> bool:
    """Return whether Python is to run the first iteration, after which staging the rest is tried again."""
    another = isinstance(failed, UnlikeDTypesError | GetsKeys) and known is not None and known > _FEW
    return another or isinstance(failed, BeginsWeakly) or begins_otherwise(failed, known)


def _run_first_iteration(items: Items, body: Body) -> bool:
    """Let Python run the first iteration; return whether there is another one."""
    ran: list[Any] = []

    def first(item: Any) -> None:
        ran.append(item)
        body.iteration(item)

    with holding(items):
        _iterations([items.at(0)], Body(first, body.asked, body.names), 0)
    return bool(ran)


def _is_short(count: Size) -> bool:
    known = _known_count(count)
    return known is not None and known <= UNROLLED


def _is_long(items: Items | None, failed: Exception | None) -> bool:
    """Return whether a loop has too many iterations to put each of them into the graph."""
    return items is not None and not isinstance(failed, PlainPython) and not _is_short(items.count())


def _may_stage(items: Items) -> bool:
    count = items.count()
    return not isinstance(count, int) or count > 1


def _run_in_python(iterable: Any, items: Items | None, failed: Exception | None, body: Body) -> None:
    """Let Python run a loop; if there are no values, raise or defer the error that prevents staging it."""
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
        _iterations(
            over,
            body,
            0 if _is_long(items, failed) else UNROLLED,
            None if items is None else _known_count(items.count()),
        )


def _listed(items: Items) -> Iterable[Any]:
    """Yield the items one by one, with their number determined again each time: an array may be reshaped, a list may grow."""
    known, number = None, 0
    for k in itertools.count():
        count = items.count()
        if count != known:
            known, number = count, int(wrap(size_node(count)).numpy()) if nodes_of(count) else int(extent(count))
        if k >= number:
            return
        yield items.at(k)


def _iterations(items: Iterable[Any], body: Body, lazy: int, count: int | None = None) -> None:
    """Run iterations, ``lazy`` of them before their conditions are computed; a loop that is left takes nothing more from an iterator.

    ``count`` is how many there are, where that is known.
    """
    with Driving(lazy, count, early=body.early) as driving:
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
    """Stage an iteration that runs unless the loop was left before, which is data-dependent; return whether it is known to be left."""

    def nothing() -> None:
        """Do nothing: the loop was left."""

    names, ways = body.names, (nothing, lambda: body.iteration(item))
    try:
        staged_branch(stopped, ways, names.bound, (*names.entering, *names.leaving), (body.iteration,), (item,))
    except Exception:
        if not values_are_there():
            raise
        if computed(stopped):
            return True
        body.iteration(item)
    return False


def staged_each(items: Items, body: Body, *, varies: bool = False) -> None:
    """Stage a ``for`` as a region: a ``loop``, or a ``while`` where data may end it early."""
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
