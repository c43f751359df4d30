"""Expressions of staged code that choose: ``first if test else second``, ``and``, ``or``."""

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
    """``first if test else second``."""
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
    """Whether a condition in a `try` is settled for each trace, where a region cannot hold what hangs on it."""
    return isinstance(error, NeedsPython) and raising.settles()


def taken_for(condition: Node) -> bool:
    """Whether a condition in a `try` is taken to hold in this trace."""
    return not raising.taken_for(scalar.logical_not(condition))


def both(first: Any, *rest: Thunk) -> Any:
    """``and``."""
    return _connected(first, rest, conjunction=True)


def either(first: Any, *rest: Thunk) -> Any:
    """``or``."""
    return _connected(first, rest, conjunction=False)


def connected(thunks: Sequence[Thunk], *, conjunction: bool) -> Any:
    """``all`` or ``any`` of what gives truth values, one by one."""
    return _connected(thunks[0](), thunks[1:], conjunction=conjunction) if thunks else conjunction


def _connected(value: Any, rest: Sequence[Thunk], *, conjunction: bool) -> Any:
    """Operands of ``and`` or ``or``, each evaluated where those before it leave that open."""
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
    """What ``run`` gives; None where it fails, which the way that is taken otherwise says better."""
    try:
        return run()
    except Exception:  # noqa: BLE001 (as above)
        return None
