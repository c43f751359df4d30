"""Values of a tile that are kept where the result will be, and those that may not be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.planning.plan import Plan, plan_graph

X = np.random.default_rng(0).normal(size=(37, 23))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def used_again(x: Any) -> Any:
    """The exponential is needed by two results."""
    e = np.exp(x)
    total = e.sum(1, keepdims=True)
    return e / total, np.exp(e / total) + e


def of_another_dtype(x: Any) -> Any:
    e = np.exp(x)
    return (e / e.sum(1, keepdims=True)).astype(np.float32)


def of_a_neighbour(x: Any) -> Any:
    e = np.exp(x)
    return e[:, ::-1] / e.sum(1, keepdims=True)


def in_the_row_and_reversed(x: Any) -> Any:
    e = np.exp(x)
    return e / e.sum(1, keepdims=True) + e[:, ::-1]


def lodged(plan: Plan) -> int:
    return sum(len(nest.lodged) for kernel in plan.kernels for nest in kernel.kernel.nests)


def plan_of(function: Callable[[Any], Any]) -> Plan:
    return plan_graph(tm.tensor(function).graph(X))


def check(function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tm.config, "tier", "numba")
    found, expected = tm.tensor(function)(X), function(X)
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for a, b in pairs:
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6 if b.dtype == np.float32 else 1e-14)


def test_the_terms_of_a_softmax_are_kept_in_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(softmax)
    assert lodged(plan) == 1
    assert not any(e.kind == "tile" for k in plan.kernels for e in k.printed.entries)
    check(softmax, monkeypatch)


@pytest.mark.parametrize("function", [of_another_dtype, of_a_neighbour, in_the_row_and_reversed])
def test_where_the_result_is_no_place_for_them(function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert lodged(plan_of(function)) == 0
    check(function, monkeypatch)


def test_a_value_with_a_later_use_is_not_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    check(used_again, monkeypatch)


def test_flat_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return np.log1p(np.exp(-abs(x)))

    assert lodged(plan_of(function)) == 1
    check(function, monkeypatch)
