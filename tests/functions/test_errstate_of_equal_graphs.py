"""Functions with one and the same graph, of which some ask for floating-point errors: each is obeyed, whichever was captured first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def plain(x: Any) -> Any:
    a = 1 / x
    return a + 1 / (x * 2)


def first(x: Any) -> Any:
    with np.errstate(divide="raise"):
        a = 1 / x
    return a + 1 / (x * 2)


def last(x: Any) -> Any:
    a = 1 / x
    with np.errstate(invalid="raise"):
        return a + 1 / (x * 2)


def sums(x: Any) -> Any:
    s = x * 0
    for i in range(3):
        s = s + np.log(x - i)
    return s


def strict_sums(x: Any) -> Any:
    s = x * 0
    for i in range(3):
        with np.errstate(invalid="raise"):
            s = s + np.log(x - i)
    return s


def branch(x: Any) -> Any:
    return 1 / x if x.sum() < 5 else x / 0


def strict_branch(x: Any) -> Any:
    if x.sum() < 5:
        with np.errstate(divide="raise"):
            return 1 / x
    return x / 0


GROUPS = [(plain, first, last), (sums, strict_sums), (branch, strict_branch)]


def _outcome(f: Callable[..., Any], x: Any) -> str:
    try:
        with np.errstate(all="ignore"):
            return str(f(x))
    except FloatingPointError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("functions", [p for group in GROUPS for p in permutations(group)])
def test_each_is_obeyed(functions: tuple[Callable[..., Any], ...]) -> None:
    captured = [tm.tensor(f) for f in functions]
    for x in (np.full(3, 4.0), np.zeros(3), np.ones(3), np.zeros(3)):
        for f, own in zip(functions, captured, strict=True):
            assert _outcome(own, x) == _outcome(f, x), f.__name__
