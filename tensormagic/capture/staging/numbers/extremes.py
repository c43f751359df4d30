"""``min``, ``max`` and ``sum`` in staged code, compared as Python compares; a list that a loop has filled is folded by another loop."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.foreign.calls import on_values
from tensormagic.capture.python import usercode
from tensormagic.capture.python.words import said
from tensormagic.capture.staging.branches.choices import chosen
from tensormagic.capture.staging.calls import special_methods
from tensormagic.capture.staging.loops import ranges
from tensormagic.capture.staging.loops.appended_lists import FEW
from tensormagic.capture.staging.loops.comprehensions import Generated
from tensormagic.capture.staging.loops.repeating import each
from tensormagic.capture.staging.messages.raising import defer
from tensormagic.capture.staging.numbers import ordering
from tensormagic.capture.values.list_elements import rows_of
from tensormagic.capture.values.operands import has_lazy
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ir.type import Type, hint, product
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import size_node
from tensormagic.ops.scalars import scalar

_LONG, _MANY = 1000, 64  # elements of an array, and of a list, that get a node each, at most


def extreme(name: str, smaller: bool) -> Callable[..., Any]:
    """Return ``min`` or ``max`` as captured code calls it: of lazy numbers, by the comparisons that Python makes."""
    plain: Callable[..., Any] = getattr(builtins, name)

    def find(*args: Any, **options: Any) -> Any:
        args = tuple(map(whole, args))
        rows = rows_of(args[0]) if len(args) == 1 and not options else None
        if rows is not None:
            first, rest = ranges.first_and_rest(args[0], said(plain, ()))
            return first if _is_alone(rows, rest) else _folded(pick, first, rest)
        if len(args) == 1 and _is_long(args[0]):
            return on_values(plain)(*args, **options)
        several = len(args) == 1 and hasattr(type(args[0]), "__iter__")
        values = list(args[0]) if several else list(args)
        args = (values,) if several else args
        if several and _is_long(values):  # what a generator gave
            return on_values(plain)(values, **options)
        if values and not values_are_there() and set(options) <= {"default", "key"} and _by_parts(values, options):
            return ordering.extreme(plain, values, key=options.get("key"), smaller=smaller)
        if set(options) - {"default"} or len(values) < 2 or not any(isinstance(v, Tensor) for v in values):
            return plain(*args, **options)
        best = values[0]
        for value in values[1:]:
            best = pick(best, value) if _alike(best, value) or not values_are_there() else _first_of(best, value)
        return best

    def _first_of(best: Any, value: Any) -> Any:
        return value if (value < best if smaller else value > best) else best

    def pick(best: Any, value: Any) -> Any:
        value_wins, (value, best) = value < best if smaller else value > best, _as_numbers(value, best)
        return chosen(value_wins, lambda: value, lambda: best)

    return find


def _as_numbers(*values: Any) -> tuple[Any, ...]:
    """Return values to choose from; a rank-0 array beside a number becomes its number."""
    without = [isinstance(v, Tensor) and v.type.form == "array" and not v.type.shape for v in values]
    if all(without):
        return values
    if any(without) and (capture := context.current()) is not None:
        capture.callers.unsure = "an array without axes that is compared with a number"
    return tuple(wrap(to_form(v.node, "scalar")) if w else v for v, w in zip(values, without, strict=True))


def _by_parts(values: list[Any], options: dict[str, Any]) -> bool:
    """Return whether ``min`` and ``max`` compare keys, containers of lazy values, or the user's objects, and not numbers."""
    lazy_parts = any(isinstance(v, tuple | list) for v in values) and has_lazy(values)
    return options.get("key") is not None or lazy_parts or any(special_methods.method_of(v, "__lt__") for v in values)


def _is_long(values: Any) -> bool:
    """Return whether an array or list in a cell has too many elements for one comparison each: Python compares the values then."""
    if type(values) is list and len(values) > _MANY:
        return values_are_there() and all(isinstance(v, Tensor | int | float | np.number) for v in values)
    if not isinstance(values, Tensor) or values.ndim != 1 or not values_are_there():
        return False
    return (hint(values.type.shape[0]) or 0) > _LONG


def _alike(left: Any, right: Any) -> bool:
    """Return whether two numbers have the same class; otherwise the class depends on the choice."""
    kinds = [v.type if isinstance(v, Tensor) else Type(np.asarray(v).dtype, (), "python") for v in (left, right)]
    return kinds[0].form == kinds[1].form and kinds[0].dtype == kinds[1].dtype


def _is_alone(rows: Node, rest: ranges.Items) -> bool:
    """Return whether the first of several values is the only one, so that it is compared with no other.

    This must be so for arrays that are not booleans; if their number is data-dependent, it is checked when the graph
    runs.
    """
    count, size = rest.count(), product(rows.type.shape[1:])
    if isinstance(count, int) or hint(size) == 1:
        return count == 0
    error: Exception = CaptureError(
        f"the largest or the smallest, in {usercode.here()}, of arrays of data-dependent length is not captured",
        "Use one element of each.",
    )
    if not nodes_of(size):
        error = ValueError(
            "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
        )
    return defer(scalar.less_equal(size_node(count), 0), error)


def whole(value: Any) -> Any:
    """Return a generator expression as a list, where a region makes that; other values unchanged."""
    return value.whole() if isinstance(value, Generated) else value


def _folded(step: Callable[[Any, Any], Any], total: Any, items: ranges.Items) -> Any:
    """Return ``functools.reduce`` of a list made by one loop, as another loop."""

    def iteration(item: Any) -> None:
        nonlocal total
        total = step(total, item)

    own = ("total",)
    each(items, iteration, None, (own, own, own, own, ()))
    return total


def sum_(values: Any, /, start: Any = 0) -> Any:
    """Return what ``sum`` gives: a loop adds up what a loop has made, and more than a few elements of an array, in the same order."""
    values = whole(values)
    if rows_of(values) is not None:
        first, rest = ranges.none_and_all(values)
        return _folded(operator.add, start + first, rest)
    items = ranges.items_of(values) if isinstance(values, Tensor) and context.current() is not None else None
    if items is not None and (values_are_there() or not nodes_of(items.count())) and len(items) > FEW:
        return _folded(operator.add, start + items.at(0), ranges.Rest(items))
    return sum(values, start)
