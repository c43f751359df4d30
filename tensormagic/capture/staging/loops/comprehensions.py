"""Comprehensions and generator expressions: loops that fill an array, where their iterations are alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import GeneratorType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, values_are_there
from tensormagic.capture.inputs.stand_ins import StandIn, gone_over
from tensormagic.capture.limits import Ahead
from tensormagic.capture.staging.branches.conditional import staged_branch
from tensormagic.capture.staging.calls.computed_ahead import compute_ahead, producers_of
from tensormagic.capture.staging.loops.appended_lists import FEW
from tensormagic.capture.staging.loops.growing_lists import until_typed
from tensormagic.capture.staging.loops.grown_lists import GrownList
from tensormagic.capture.staging.loops.loop_bodies import Body
from tensormagic.capture.staging.loops.plain_loops import PLAIN, plainly
from tensormagic.capture.staging.loops.ranges import items_of, used
from tensormagic.capture.staging.loops.repeating import staged_each
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.staging.numbers.truth import truth
from tensormagic.capture.staging.trials.aliases import holding
from tensormagic.capture.staging.trials.trial import attempt, refuse_taken
from tensormagic.capture.staging.trials.world import Reaching, World
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.size import hint, nodes_of
from tensormagic.ops.leaf import size_node
from tensormagic.ops.scalars import scalar

Iteration = Callable[..., Any]


def comprehended(
    iterable: Any,
    iteration: Iteration,
    single: bool,
    test: Iteration | None = None,
    called: tuple[str, ...] | None = None,
    written: Callable[[Any], list[Any]] | None = None,
) -> Any:
    """Run ``[iteration(item) for item in iterable if test(item)]``, as a loop that fills an array if iterations are alike.

    ``written`` builds the list as the user wrote it, if that is simple, and ``called`` is what it calls: Python runs
    it on numbers.
    """
    if written is not None and type(iterable) in PLAIN:
        left = plainly(iterable, [iteration, *([test] if test else [])], called, iterable)
        if left is not None:
            with left as items:
                return written(items)
    refuse_taken(iterable)
    iterable = gone_over(iterable)
    one = _of_one(iteration, single)
    if test is not None:
        return _filtered_list(iterable, (iteration, test), one, _of_one(test, single))
    found = _list_by_region(iterable, iteration, one)
    if found is not None:
        return found
    capture, ahead_of = context.current(), Ahead(_count_of(iterable), listed=True)

    def each(item: Any) -> Any:
        if capture is not None:
            ahead_of.begin(capture)
        return one(item)

    with holding(iterable):
        return [each(item) for item in iterable]


def _count_of(iterable: Any) -> int | None:
    """Return the number of items of a list, a range or an array; None where it is not known without iterating."""
    if type(iterable) in _KNOWN:
        return len(iterable)
    items = items_of(iterable) if context.current() is not None else None
    count = None if items is None else items.count()
    return None if count is None or nodes_of(count) else hint(count)


def _of_one(iteration: Iteration, single: bool) -> Iteration:
    return iteration if single else lambda item: iteration(*item)


def generated(iterable: Any, iteration: Iteration, single: bool, test: Iteration | None = None) -> Any:
    """Return the generator expression ``(iteration(item) for item in iterable if test(item))``."""
    refuse_taken(iterable)
    return Generated(
        iterable, iteration, _of_one(iteration, single), test, None if test is None else _of_one(test, single)
    )


_LIST = "Make a list of it first."
_KNOWN = {list, tuple, range}
ON_THE_WAY = (
    zip,
    map,
    enumerate,
    filter,
    reversed,
)  # iterators that usually make items only on request
_TAKEN = {type(iter(v)) for v in ([], (), "", {}, set[int](), range(0))}  # iterators that other code can hold
_CHOSEN = "choosing among values by a condition on data,"
_FEW = 32  # items computed one by one, only as far as the earlier ones leave the result open


class Generated(StandIn, Reaching):
    """Represents a generator expression: Python's, unless a function that consumes all of it needs a list.

    Parameters
    ----------
    iterable
        What it iterates over.
    iteration, test
        The user's expression and condition, for their reach.
    one, holds
        Functions that compute them for one item.
    """

    def __init__(
        self, iterable: Any, iteration: Iteration, one: Iteration, test: Iteration | None, holds: Iteration | None
    ) -> None:
        self.iteration, self.one = iteration, one
        self.test, self.holds = test, holds
        self.iterable = iterable if items_of(iterable) is not None else iter(iterable)
        self.few = iterable if type(iterable) in _KNOWN and len(iterable) <= _FEW and test is None else None
        self.running: Any = None
        self.taken = 0  # the requested items among the few
        self.within: frozenset[int] = frozenset()  # the number of enclosing trials at each request of an item
        self.left = ""  # the consumer that has taken a data-dependent number of values, if there is one
        named = hasattr(iterable, "__next__") and not isinstance(iterable, (Generated, *ON_THE_WAY))
        self.takes = type(iterable) in _TAKEN or named

    @property
    def reached(self) -> tuple[Any, ...]:
        """Return the functions and the iterable that items are made from."""
        return self.iteration, self.test, self.iterable

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        self._goes_on()
        if self.running is None:
            self.running = map(self.one, self.iterable if self.holds is None else filter(self.holds, self.iterable))
        with holding(self.iterable):
            return next(self.running)

    def one_by_one(self) -> list[Callable[[], Any]] | None:
        """Return functions that compute each of a few items, none of which is computed so far; None if there are many."""
        if self.few is None or self.running is not None:
            return None
        self.running = self._others(self.few)
        return [partial(self._asked, k, item) for k, item in enumerate(self.few)]

    def _asked(self, number: int, item: Any) -> Any:
        capture = context.current()
        self.taken = max(self.taken, number + 1)
        self.within |= {0 if capture is None else len(capture.heap.trials)}
        return self.one(item)

    def _others(self, few: Sequence[Any]) -> Iterator[Any]:
        while self.taken < len(few):
            yield self._asked(self.taken, few[self.taken])

    def leave(self, by: str) -> None:
        """Record that ``by`` has taken a data-dependent number of values, which later consumers need to know."""
        self.left = by
        if isinstance(self.iterable, Generated):
            self.iterable.leave(by)

    def _goes_on(self) -> None:
        if self.left:
            refuse(f"to go on with a generator of which {self.left} has taken a data-dependent number of values", _LIST)

    @property
    def own_class(self) -> type:
        """Return the class that Python gives such an object: the generator type."""
        return GeneratorType

    def real(self) -> Any:
        """Return a Python generator that continues from here."""
        return (item for item in self)

    def whole(self) -> Any:
        """Return a list of all items, if a region makes it, which exhausts the generator; else the generator itself."""
        self._goes_on()
        if self.running is not None:
            return self
        self.iterable = gone_over(self.iterable)
        if self.test is not None and self.holds is not None:
            found = _filtered_list(self.iterable, (self.iteration, self.test), self.one, self.holds)
        else:
            found = _list_by_region(self.iterable, self.iteration, self.one)
        if found is None:
            return self
        self.running = iter(())
        return found

    def gone_over(self) -> Any:
        if self.test is None or values_are_there():
            return self
        return compute_ahead((self.iteration, self.test), self.whole, _CHOSEN)


class Filtered(Generated):
    """Represents ``filter`` over values, with a test."""

    def __init__(self, values: Any, test: Iteration) -> None:
        refuse_taken(values)
        super().__init__(values, _same, _same, test, test)

    @property
    def own_class(self) -> type:
        return filter


def _same(value: Any) -> Any:
    return value


def _list_by_region(iterable: Any, iteration: Callable[..., Any], one: Callable[[Any], Any]) -> Any:
    """Return a list of the results of the iterations, made by a region; None where Python makes it."""
    items = items_of(iterable) if context.current() is not None else None
    count = 0 if items is None else items.count()
    if items is None or (not nodes_of(count) and (hint(count) or FEW + 1) <= FEW):
        return None
    if nodes_of(count) and not values_are_there():
        used(iterable)
        return _list_of_unknown_length(items, (iteration,), one, None)
    found: list[Any] = []

    def run(item: Any) -> None:
        found.append(one(item))

    run.__wrapped__ = iteration  # type: ignore[attr-defined]  (what it reaches is what the user's function reaches)
    try:
        staged_each(items, Body(run, lists=[found]))
    except Exception:  # noqa: BLE001 (Python goes over it, and meets the same error, if it is one)
        return None
    raising.settle()
    used(iterable)
    return found


def _filtered_list(iterable: Any, users: tuple[Iteration, Iteration], one: Iteration, holds: Iteration) -> Any:
    """Return a list of the results for which a condition holds; ``users`` are the user's functions involved."""

    def filtered() -> list[Any]:
        with holding(iterable):
            return [one(item) for item in iterable if holds(item)]

    def chosen() -> Any:
        try:
            return attempt(World(users), filtered, lambda _result: True).result
        except CaptureError:  # the condition depends on data
            return _list_of_unknown_length(iterable, users, one, holds)

    if values_are_there() or context.current() is None:
        return filtered()
    again = items_of(iterable)
    used(iterable)
    source, computes = iterable, [] if again is not None else producers_of(iterable)
    if computes:
        iterable = compute_ahead([*users, *computes], lambda: list(source), _CHOSEN)
        return compute_ahead([*users, *computes], chosen, _CHOSEN, may_print=True)
    iterable = list(iterable) if again is None else again
    return chosen()


def _list_of_unknown_length(
    iterable: Any, users: tuple[Iteration, ...], one: Iteration, holds: Iteration | None
) -> Any:
    """Return a list of data-dependent length."""
    items, found = items_of(iterable), GrownList([])
    reached = list[Any]([*users, found])

    def run(item: Any) -> None:
        condition = True if holds is None else truth(holds(item))
        if condition is True:
            found.append(one(item))
        elif condition is not False:
            staged_branch(condition, (lambda: found.append(one(item)), lambda: None), (), (), reached)

    def go_over() -> None:
        if items is not None:
            staged_each(items, Body(run, lists=[found], beside=users[1:]), varies=True)
            return
        with holding(iterable):
            for item in iterable:
                run(item)

    def taken_back_where_untyped() -> None:
        attempt(World(reached), go_over, lambda _none: True)

    run.__wrapped__ = users[0]  # type: ignore[attr-defined]
    try:
        until_typed([found], taken_back_where_untyped if items is None else go_over)
    except Exception as error:
        if items is None or not raising.iterations_raise(error, scalar.greater(size_node(items.count()), 0)):
            raise
        return []
    raising.settle()
    return found
