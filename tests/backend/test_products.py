"""Products of matrices within compiled loops: own loops and BLAS, in every orientation, of every remainder of the blocks."""

import itertools

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.planning.kinds import is_product
from tensormagic.backend.printing import product_text
from tensormagic.session import executable

rng = np.random.default_rng(8)


pytestmark = pytest.mark.usefixtures("by_numba")


def repeated(iteration):
    """A loop of three iterations of ``iteration``, as a function of NumPy arrays."""

    def function(x, y, h):
        for k in range(3):
            h = np.tanh(iteration(x, y, h, k))
        return h

    return function


ITERATIONS = {
    "plain": (lambda x, y, h, k: h @ y + k, lambda m, n: ((1, 1), (n, n), (m, n))),
    "right transposed": (lambda x, y, h, k: h @ y.T - h, lambda m, n: ((1, 1), (n, n), (m, n))),
    "left transposed": (lambda x, y, h, k: x.T @ h + k, lambda m, n: ((m, m), (1, 1), (m, n))),
    "both transposed": (lambda x, y, h, k: (h.T @ x.T).T + h, lambda m, n: ((m, m), (1, 1), (m, n))),
    "a part": (lambda x, y, h, k: x[k, 1:] @ y + h, lambda m, n: ((3, m + 1, n), (n, n), (m, n))),
    "every second": (lambda x, y, h, k: x[k, ::2, ::2] @ y + h, lambda m, n: ((3, 2 * m, 2 * n), (n, n), (m, n))),
    "reversed": (lambda x, y, h, k: x[k, :, ::-1] @ y + h, lambda m, n: ((3, m, n), (n, n), (m, n))),
    "of sums": (lambda x, y, h, k: (h + x) @ (y * 2), lambda m, n: ((m, n), (n, n), (m, n))),
}
SIZES = [(2, 2), (5, 7), (6, 9), (16, 33)]


def operands(shapes, dtype):
    return [(rng.normal(size=s) / 4).astype(dtype) for s in shapes]


@pytest.mark.share(3)
@pytest.mark.parametrize("blas", [False, True], ids=["loops", "blas"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", ITERATIONS)
def test_a_product_in_a_loop_is_numpys(name, dtype, blas, monkeypatch):
    limit = -1 if blas else 1 << 60
    monkeypatch.setattr(product_text, "SMALL", limit)
    monkeypatch.setattr(product_text, "TINY", limit)
    iteration, shapes = ITERATIONS[name]
    function = repeated(iteration)
    captured = tm.tensor(function)
    for m, n in SIZES:
        values = operands(shapes(m, n), dtype)
        found = captured(*values)
        assert found.dtype == np.dtype(dtype)
        np.testing.assert_allclose(found, function(*values), rtol=1e-5 if dtype == "f4" else 1e-12, atol=1e-6)
    graph = captured.graph(*values)
    assert any(is_product(n) for loop in graph.nodes if loop.op.name == "loop" for n in loop["body"].nodes)


def test_no_iteration_is_run_by_numpy():
    values = operands(((1, 1), (9, 9), (4, 9)), "f8")
    graph = tm.tensor(repeated(ITERATIONS["plain"][0])).graph(*values)
    plan = executable(graph).plan
    assert not plan.library_steps
    assert any("gemm(" in k.source for k in plan.kernels)


@pytest.mark.parametrize(("rows", "terms"), list(itertools.product([1, 2, 3], [1, 3, 4, 5])))
def test_extents_of_one_and_of_no_whole_block(rows, terms):
    def function(x, y):
        total = np.zeros((x.shape[1], y.shape[2]))
        for k in range(2):
            total = total * np.cos(total) + x[k] @ y[k]
        return total

    x, y = rng.normal(size=(2, rows, terms)), rng.normal(size=(2, terms, 3))
    np.testing.assert_allclose(tm.tensor(function)(x, y), function(x, y), rtol=1e-12, atol=1e-14)


def test_integers_are_summed_as_they_are():
    def function(x, y):
        total = np.zeros((4, 4), np.int64)
        for k in range(3):
            total = (total @ y + x) % 1000 + k
        return total

    x, y = rng.integers(0, 50, size=(4, 4)), rng.integers(0, 50, size=(4, 4))
    np.testing.assert_array_equal(tm.tensor(function)(x, y), function(x, y))


def test_what_is_stored_over_by_its_iterations_is_not_filled_before():
    """The record of a loop is written iteration by iteration into memory that holds nothing yet."""

    def function(x):
        kept = np.zeros((50, 6))
        for k in range(50):
            x = np.sin(x) + k
            kept[k] = x
        return kept

    def read_too(x):
        kept = np.ones((50, 6))
        for k in range(50):
            x = np.sin(x) + kept[(k * 7) % 50]
            kept[k] = x
        return kept

    x = rng.normal(size=6)
    for f, filled in ((function, False), (read_too, True)):
        captured = tm.tensor(f)
        np.testing.assert_allclose(captured(x), f(x), rtol=1e-14)
        first = executable(captured.graph(x)).plan.kernels[0].source
        assert ("] = 1.0" in first) is filled
        assert "] = 0.0" not in first
