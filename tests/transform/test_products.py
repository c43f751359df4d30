"""Products of rows and columns in loops, which are parts of one product before the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import topological
from tensormagic.session import executable

N, K = 40, 50


def triangle(x, y):
    out = np.zeros((x.shape[1], x.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        out[i:, i] = out[i, i:] = x[:, i] @ x[:, i:]
    return out


def rows(x, y):
    out = np.zeros((x.shape[1], y.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        out[i] = y.T @ x[:, i]
    return out


def one_by_one(x, y):
    out = np.zeros((x.shape[1], y.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        for j in range(y.shape[1]):
            out[i, j] = np.dot(x[:, i], y[:, j])
    return out


def backwards(x, y):
    out = np.zeros((x.shape[1], y.shape[1] - 3), x.dtype)
    for i in range(x.shape[1] - 1, -1, -1):
        out[i] += x[:, i] @ y[:, 3:] * 2
    return out


def every_other(x, y):
    out = np.zeros((x.shape[1] // 2, y.shape[1]), x.dtype)
    for i in range(x.shape[1] // 2):
        out[i] = x[:, 2 * i + 1] @ y - x[0, i]
    return out


def by_einsum(x, y):
    out = np.zeros((x.shape[1], y.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        out[i] = np.einsum("ab,a->b", y, x[:, i])
    return out


def shorter_sums(x, y):
    out = np.zeros((x.shape[1], y.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        out[i] = x[:i, i] @ y[:i]
    return out


def what_iterations_change(x, y):
    out = np.zeros((x.shape[0], y.shape[1]), x.dtype) + 0.01 * y[0]
    for i in range(1, x.shape[1]):
        out[i] = x[:, i] @ out
    return out


BEFORE = [triangle, rows, one_by_one, backwards, every_other, by_einsum]
WITHIN = [shorter_sums, what_iterations_change]


def given(dtype: Any) -> tuple[Any, Any]:
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(K, N)), draw.normal(size=(K, N + 3))
    return (
        ((x + 1j * y[:, :N]).astype(dtype), y.astype(dtype)) if dtype == "c16" else (x.astype(dtype), y.astype(dtype))
    )


def products(graph: Graph) -> tuple[int, int]:
    """How many products there are outside of regions, and within."""
    outside = sum(n.op.kind == "contract" for n in graph.nodes)
    inner = [v for n in topological(graph.results) for v in n.params.values() if isinstance(v, Graph)]
    return outside, sum(map(sum, map(products, inner)))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("function", [*BEFORE, *WITHIN], ids=lambda f: f.__name__)
@pytest.mark.parametrize("tier", ["numpy", pytest.param("numba", marks=pytest.mark.share(4))])
def test_values(function, dtype, tier):
    arguments = given(dtype)
    expected = function(*arguments)
    with tm.config.using(tier=tier):
        found = tm.tensor(function)(*arguments)
    close = 1e-3 if dtype == "f4" else 1e-11
    np.testing.assert_allclose(found, expected, rtol=close, atol=close * np.abs(expected).max())
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("function", [*BEFORE, *WITHIN], ids=lambda f: f.__name__)
def test_what_is_computed_before_the_loop(function):
    outside, within = products(executable(tm.compile(function, *given("f8")).graph).graph)
    assert (outside, within) == ((1, 0) if function in BEFORE else (0, 1))


def test_products_of_integers_stay_where_they_are():
    arguments = [np.rint(v).astype(int) for v in given("f8")]
    assert products(executable(tm.tensor(triangle).graph(*arguments)).graph) == (0, 1)


def test_at_exact_nothing_moves():
    with tm.config.using(math="exact"):
        assert products(executable(tm.compile(triangle, *given("f8")).graph).graph) == (0, 1)


@pytest.mark.parametrize("function", BEFORE, ids=lambda f: f.__name__)
def test_gradients(function):
    x, y = given("f8")
    slope = tm.grad(lambda x, y: (function(x, y) ** 2).sum() * 0.5)(x, y)
    weight = function(x, y)
    h, d = 1e-6, np.random.default_rng(1).normal(size=x.shape)
    expected = ((function(x + h * d, y) - function(x - h * d, y)) / (2 * h) * weight).sum()
    np.testing.assert_allclose((slope * d).sum(), expected, rtol=1e-6)


def same_rows(x, y):
    out = np.zeros((x.shape[1], 4, y.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        out[i] = np.broadcast_to(x[:, i], (4, x.shape[0])) @ y
    return out


def same_columns(x, y):
    out = np.zeros((x.shape[1], y.shape[1], 4), x.dtype)
    for i in range(x.shape[1]):
        out[i] = y.T @ np.broadcast_to(x[:, i, None], (x.shape[0], 4))
    return out


def rows_of_a_part(x, y):
    parts = np.ones((x.shape[1], 4, x.shape[0]), x.dtype) * x.T[:, None]
    out = np.zeros((x.shape[1], 4, y.shape[1]), x.dtype)
    for i in range(x.shape[1]):
        out[i] = parts[i] @ y
    return out


@pytest.mark.parametrize("math", ["exact", "stable"])
@pytest.mark.parametrize("function", [same_rows, same_columns, rows_of_a_part], ids=lambda f: f.__name__)
def test_matrices_whose_rows_or_columns_are_the_same(function, math):
    arguments = given("f8")
    with tm.config.using(tier="numba", math=math):
        found = tm.tensor(function)(*arguments)
    np.testing.assert_allclose(found, function(*arguments), rtol=1e-11, atol=1e-11)
