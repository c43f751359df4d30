"""Comparisons of lists and tuples that hold lazy values, and ``in``: nodes of the graph compare their parts, if there are no values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from tensormagic.capture.errors.refusal import refuse, values_are_there
from tensormagic.capture.staging.branches.choices import chosen
from tensormagic.capture.staging.branches.merged_values import apart
from tensormagic.capture.staging.loops import nan_in_lists
from tensormagic.capture.staging.loops.grown_lists import GrownList
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.staging.numbers.truth import truth
from tensormagic.capture.staging.trials.attributes import is_users_class
from tensormagic.capture.staging.trials.trial import place_of, trial
from tensormagic.capture.tables.labelled import Labelled
from tensormagic.capture.values.operands import has_lazy
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import REFUSALS
from tensormagic.ir.node import Node
from tensormagic.ops.form import to_form
from tensormagic.ops.scalars import scalar

_SEQUENCES = {list, tuple}


def compared(name: str, plain: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return the result of a comparison: lists or tuples with lazy values are compared part by part."""
    if type(left) not in {dict, *_SEQUENCES} or type(right) is not type(left):
        return plain(left, right)
    if not _is_lazy(left, right):
        return plain(nan_in_lists.as_read(left), nan_in_lists.as_read(right))
    if name in {"==", "!="}:
        found = _equal_parts(left, right)
        return _as_value(found if name == "==" else _opposite(found))
    if type(left) is dict:
        return plain(left, right)
    return ordered(plain, left, right)


def before(left: Any, right: Any) -> Any:
    """Return ``left < right``."""
    return ordered(operator.lt, left, right)


def ordered(order: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return the result of an order comparison; tuples and lists are ordered by their first parts that differ."""
    if type(left) is not type(right) or not isinstance(left, tuple | list):
        return order(left, right)
    if not left or not right:
        return order(len(left), len(right))
    if left[0] is right[0]:
        return ordered(order, left[1:], right[1:])
    same = compared("==", operator.eq, left[0], right[0])
    return chosen(
        same, lambda: _ordered_on_trial(order, left[1:], right[1:]), lambda: _ordered_on_trial(order, left[0], right[0])
    )


def _ordered_on_trial(order: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return the result of a data-dependent comparison; values without an order are then an error at the user's line."""
    try:
        return ordered(order, left, right)
    except TypeError as error:
        if trial() is None or isinstance(error, REFUSALS) or place_of(error) is not None:
            raise
        raise raising.raising(error) from None


def contained(value: Any, container: Any) -> Any:
    """Return ``value in container``, where either holds lazy values; None where Python itself can compare."""
    if isinstance(container, GrownList):
        return _in_grown_list(value, container)
    if (
        isinstance(container, Tensor)
        and not isinstance(container, Labelled)
        and container.ndim
        and not values_are_there()
    ):
        return _as_value(truth((container == value).any()))
    if type(container) not in _SEQUENCES or not _is_lazy(value, container):
        own = nan_in_lists.as_read(value)
        return (
            own in nan_in_lists.as_read(container)
            if type(container) in _SEQUENCES and nan_in_lists.holds_nan(own, value)
            else None
        )
    return _as_value(_connected((lambda v=v: _equal_parts(v, value) for v in container), decides=True))


def _in_grown_list(value: Any, grown: GrownList) -> Any:
    """Return ``value in grown``, for a list of data-dependent length that holds numbers, or tuples of numbers."""
    if grown.like is None:
        return False
    parts = apart(value)
    if not grown.like.numeric or not all(n.shape == () for n in (*grown.types, *(p.type for p in parts.nodes))):
        refuse(
            "`in` of a list that grows a data-dependent number of times, and holds arrays,", "Compare arrays of them."
        )
    if parts.form != grown.like.form:
        return False
    found = [scalar.equal(stack, number) for stack, number in zip(grown.stacks, parts.nodes, strict=True)]
    return _as_value(truth(wrap(reduce(scalar.logical_and, found)).any()))


def _is_lazy(left: Any, right: Any) -> bool:
    return not values_are_there() and (_holds(left) or _holds(right))


def _holds(value: Any) -> bool:
    """Return whether a value is lazy, a user object that may compare lazy values, or a list that holds one."""
    if type(value) in _SEQUENCES:
        return any(map(_holds, value))
    if type(value) is dict:
        return any(map(_holds, value.values()))
    return has_lazy(value) or is_users_class(type(value))


def _as_value(found: bool | Node) -> Any:
    return found if isinstance(found, bool) else wrap(to_form(found, "python"))


def _opposite(found: bool | Node) -> bool | Node:
    return not found if isinstance(found, bool) else scalar.logical_not(found)


def _equal(left: Sequence[Any], right: Sequence[Any]) -> bool | Node:
    if len(left) != len(right):
        return False
    return _connected((lambda a=a, b=b: _equal_parts(a, b) for a, b in zip(left, right, strict=True)), decides=False)


def _equal_parts(left: Any, right: Any) -> bool | Node:
    """Return whether Python takes two parts for equal: an object is equal to itself."""
    if left is right:
        return True
    if type(left) in _SEQUENCES and type(right) is type(left):
        return _equal(left, right)
    if type(left) is type(right) is dict:
        return left.keys() == right.keys() and _equal([*left.values()], [right[k] for k in left])
    nan_in_lists.refuse_two_nans(left, right)
    return truth(left == right)


def _connected(questions: Iterable[Callable[[], bool | Node]], *, decides: bool) -> bool | Node:
    """Return whether any is true (if ``decides``), or all are; evaluation stops at one known to decide."""
    asked = list[Node]()
    for question in questions:
        try:
            found = question()
        except ValueError:  # arrays have no single truth value
            if asked:
                refuse("a comparison of lists that hold arrays, part by part,", "Compare arrays: np.array_equal(a, b).")
            raise
        if not isinstance(found, bool):
            asked.append(found)
        elif found is decides:
            return found
    return reduce(scalar.logical_or if decides else scalar.logical_and, asked) if asked else not decides
