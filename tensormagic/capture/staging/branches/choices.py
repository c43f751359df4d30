"""Expressions of staged code that choose a value: ``first if test else second``, ``and``, ``or``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.staging.branches.conditional import MIXED, joined, staged_value
from tensormagic.capture.staging.messages import raising
from tensormagic.capture.staging.numbers.truth import computed, decided, unstaged
from tensormagic.capture.staging.trials.needs_python import NeedsPython
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.node import Node
from tensormagic.ops.scalars import scalar

Thunk = Callable[[], Any]


def chosen(test: Any, first: Thunk, second: Thunk) -> Any:
    """Return what ``first if test else second`` gives."""
    condition = decided(test)
    if isinstance(condition, bool):
        return (first if condition else second)()
    return _one_of(condition, (first, second), (first, second))


def _one_of(condition: Node, ways: tuple[Thunk, Thunk], functions: Sequence[Any]) -> Any:
    try:
        found = staged_value(condition, ways, functions)
    except Exception as error:
        if not values_are_there() and not is_settled(error):
            raise
        failed = error
    else:
        raising.settle()
        return found
    if not values_are_there():
        return ways[0 if taken_for(condition) else 1]()
    unstaged(failed)
    return ways[0 if computed(condition) else 1]()


def is_settled(error: Exception) -> bool:
    """Return whether an error of a region in a `try` means that the condition is settled for each trace."""
    return isinstance(error, NeedsPython) and raising.settles()


def taken_for(condition: Node) -> bool:
    """Return whether a condition in a `try` is taken to hold in this trace."""
    return not raising.assumed_to_hold(scalar.logical_not(condition))


def both(first: Any, *rest: Thunk) -> Any:
    """Return what ``and`` gives."""
    return _connected(first, rest, conjunction=True)


def either(first: Any, *rest: Thunk) -> Any:
    """Return what ``or`` gives."""
    return _connected(first, rest, conjunction=False)


def connected(thunks: Sequence[Thunk], *, conjunction: bool) -> Any:
    """Return what ``all`` or ``any`` gives for thunks that return truth values, called one by one."""
    return _connected(thunks[0](), thunks[1:], conjunction=conjunction) if thunks else conjunction


def _connected(value: Any, rest: Sequence[Thunk], *, conjunction: bool) -> Any:
    """Return what ``and`` or ``or`` gives, where each operand is evaluated only if those before it leave the result open."""
    for k, thunk in enumerate(rest):
        condition = decided(value)
        if isinstance(condition, bool):
            if condition is not conjunction:
                return value
            value = thunk()
            continue

        def go_on(k: int = k, thunk: Thunk = thunk) -> Any:
            return _connected(thunk(), rest[k + 1 :], conjunction=conjunction)

        if isinstance(value, Tensor):
            found = _tried(
                lambda value=value, condition=condition, go_on=go_on: joined(
                    value, condition, go_on, rest, scalar.logical_and if conjunction else scalar.logical_or
                )
            )
            if found is MIXED:
                return go_on() if computed(condition) is conjunction else value
            if found is not None:
                return found

        def stay(value: Any = value) -> Any:
            return value

        return _one_of(condition, (go_on, stay) if conjunction else (stay, go_on), rest)
    return value


def _tried(run: Thunk) -> Any:
    """Return the result of ``run``; None where it fails, as the branch run then gives the better error."""
    try:
        return run()
    except Exception:  # noqa: BLE001 (as above)
        return None
