"""``all`` and ``any`` in captured code: they evaluate no more than Python would if an element prints, has effects or may fail."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse, values_are_there
from tensormagic.capture.staging.branches.choices import connected
from tensormagic.capture.staging.loops.comprehensions import ON_THE_WAY, Generated
from tensormagic.capture.staging.loops.consumed_iterators import is_held
from tensormagic.capture.staging.numbers.conversions import bool_
from tensormagic.capture.staging.numbers.truth import truth
from tensormagic.capture.staging.trials.changes import alone
from tensormagic.capture.staging.trials.world import CHECKS, World
from tensormagic.capture.values.list_elements import rows_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.node import Node, topological
from tensormagic.ops.effects import failing
from tensormagic.ops.form import to_form
from tensormagic.ops.scalars import scalar


def quantified(name: str, whole: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``all`` or ``any`` as captured code calls it; ``whole`` makes a list of a generator expression.

    A lazy array with one axis is reduced in the graph.
    """
    plain: Callable[[Any], bool] = getattr(builtins, name)

    def find(values: Any) -> Any:
        if isinstance(values, Generated) and not values_are_there():
            return _of_generated(name, values, of_all)
        return of_all(values)

    def of_all(values: Any) -> Any:
        takes = isinstance(values, Generated) and values.takes
        before, values = _effects(), values if takes and not values_are_there() else whole(values)
        if before is not _effects():  # a loop has evaluated all of them
            refuse(f"{name}() of values whose computation prints, or checks data,", _LOOP)
        rows = rows_of(values)
        if rows is not None and rows.type.ndim == 1:
            return wrap(to_form(getattr(wrap(rows), name)().node, "python"))
        if isinstance(values, Tensor) and values.ndim == 1:
            return wrap(to_form(getattr(values, name)().node, "python"))
        return plain(values) if values_are_there() else _connected(name, values, takes=takes)

    return find


def _of_generated(name: str, values: Generated, of_all: Callable[[Any], Any]) -> Any:
    """Return the result for a generator expression; record how many values Python would have taken, for later consumers."""
    goes_on = type(values.iterable) in ON_THE_WAY and values.running is None and is_held(values.iterable, values)
    few = values.one_by_one()
    if few is None:
        found = of_all(values)
        known = isinstance(found, bool) and not values.left
    else:
        found = connected([partial(_truth, one) for one in few], conjunction=name == "all")
        known = len(values.within) < 2  # none was evaluated on trial
    if not known and goes_on:
        refuse(f"{name}() that takes a data-dependent number of values from an iterator", _LOOP)
    if not known:
        values.leave(f"{name}()")
    return found


def _truth(one: Callable[[], Any]) -> Any:
    return bool_(one())


def _connected(name: str, values: Iterable[Any], *, takes: bool) -> Any:
    """Return ``all`` or ``any`` of values with data-dependent truth, evaluated no further than Python does."""
    decides, asked = name == "any", list[Node]()
    takes = takes or (not isinstance(values, Generated) and hasattr(values, "__next__"))
    before, left = _effects(), iter(values)
    while True:
        value, alone = _taken(values, left) if asked and not takes else (next(left, _NOTHING), True)
        if value is _NOTHING:
            break
        if asked and takes:
            refuse(f"{name}() that takes a data-dependent number of values from an iterator", _LOOP)
        if not alone:
            refuse(f"{name}() of values whose computation changes something", _LOOP)
        known = truth(value)
        if asked and before is not _effects():
            refuse(f"{name}() of values whose computation prints, or checks data,", _LOOP)
        before = _effects()
        if isinstance(known, bool):
            if known is decides:
                if asked and isinstance(values, Generated):
                    values.left = f"{name}()"
                return known
            continue
        if asked and any(map(failing.may_fail, topological([known]))):
            refuse(f"{name}() of values whose computation may fail", _LOOP)
        asked.append(known)
    connect = scalar.logical_or if decides else scalar.logical_and
    return wrap(to_form(reduce(connect, asked), "python")) if asked else not decides


def _taken(values: Iterable[Any], left: Iterator[Any]) -> tuple[Any, bool]:
    """Return the next value, and whether computing it changes nothing."""
    capture = context.current()
    if not isinstance(values, Generated) or capture is None:
        return next(left, _NOTHING), True
    world = World([f for f in (values.iteration, values.one, values.test, values.holds) if f is not None])
    return alone(world, lambda: next(left, _NOTHING), checks=True)


_NOTHING = object()
_LOOP = "Write a loop that stops where the answer is known."


def _effects() -> Any:
    """Return the token of all prints and checks so far."""
    capture = context.current()
    return None if capture is None else capture.order.checks[CHECKS]
