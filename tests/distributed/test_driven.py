"""Loops and branches that take all rows together in each iteration: driven from the process that calls, with NumPy's values."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.distributed.distribute import grouped
from tensormagic.distributed.running import run
from tensormagic.distributed.splitting import split
from tensormagic.distributed.stages import Split
from tensormagic.functions.tracing import Typed, traced
from tensormagic.ir.size import symbol
from tensormagic.ir.type import Type
from tests.distributed.here import Here

pytestmark = pytest.mark.usefixtures("by_numpy")
ROWS = 61
RNG = np.random.default_rng(3)
X = RNG.normal(size=(ROWS, 3))
Y = X @ [1.0, 2.0, -1.0] + RNG.normal(size=ROWS) * 0.1
N = symbol("n", least=32)
TYPES = (Typed(Type(np.dtype(float), (N, 3))), Typed(Type(np.dtype(float), (N,))))


def descent(x, y):
    w = np.zeros(3)
    for _ in range(20):
        w = w - 0.1 * x.T @ (x @ w - y) / len(y)
    return w


def until_it_is_flat(x, y):
    w, slope, count = np.zeros(3), np.ones(3), 0
    while np.linalg.norm(slope) > 3e-2 and count < 500:
        slope = x.T @ (x @ w - y) / len(y)
        w = w - 0.3 * slope
        count += 1
    return w, count


def newton(x, y):
    w = np.zeros(3)
    for _ in range(6):
        p = 1 / (1 + np.exp(-(x @ w)))
        w = w - np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + np.eye(3), x.T @ (p - (y > 0)))
    return w


def power_method(x, y):
    v, old = np.ones(3), np.zeros(3)
    while np.abs(v - old).max() > 1e-9:
        old = v
        v = x.T @ (x @ v)
        v = v / np.linalg.norm(v)
    return v


def lloyd(x, y):
    centres = np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.5]])
    for _ in range(5):
        label = ((x[:, None, :] - centres) ** 2).sum(-1).argmin(1)
        for k in range(3):
            of_it = label == k
            if of_it.any():
                centres[k] = x[of_it].mean(0)
    return centres, label


def mixture(x, y):
    mean, spread, share = np.array([-1.0, 1.0]), np.ones(2), np.ones(2) / 2
    for _ in range(10):
        r = share * np.exp(-0.5 * ((y[:, None] - mean) / spread) ** 2) / spread
        r /= r.sum(1, keepdims=True)
        n = r.sum(0)
        mean = (r * y[:, None]).sum(0) / n
        spread = np.sqrt((r * (y[:, None] - mean) ** 2).sum(0) / n)
        share = n / len(y)
    return mean, spread, share


def boosting(x, y):
    left, found = y - y.mean(), np.zeros(3)
    for _ in range(8):
        c = x.T @ left
        k = np.abs(c).argmax()
        found[k] += 0.05 * np.sign(c[k])
        left = left - 0.05 * np.sign(c[k]) * x[:, k]
    return found, left


def boosting_until_it_is_small(x, y):
    left, count = y - y.mean(), 0
    while (left**2).mean() > 1.0 and count < 50:
        left = left - 0.1 * x @ (x.T @ left) / len(y)
        count += 1
    return left, count, left.max()


def bisection(x, y):
    low, high = y.min(), y.max()
    for _ in range(40):
        middle = (low + high) / 2
        if (y < middle).sum() * 2 < len(y):
            low = middle
        else:
            high = middle
    return low


def momentum(x, y):
    w, v, losses = np.zeros(3), np.zeros(3), []
    for _ in range(30):
        e = x @ w - y
        losses.append((e**2).mean())
        v = 0.9 * v + 2 * x.T @ e / len(y)
        w = w - 0.01 * v
    return w, np.array(losses)


def a_branch_on_a_mean(x, y):
    m = y.mean()
    return (y - m).std() if m > 0 else np.abs(y - m).mean()


def rows_by_a_branch(x, y):
    m = x.sum()
    z = (x - x.mean(0)) / x.std(0) if m > 0 else np.exp(x - x.max(0))
    return z, z.sum()


def standardised_first(x, y):
    z = (x - x.mean(0)) / x.std(0)
    w = np.zeros(3)
    for _ in range(12):
        w = w - 0.1 * z.T @ (z @ w - y) / len(y)
    return w, z @ w


def until_all_rows_are_small(x, y):
    count = 0
    while (np.abs(y) > 0.1).any():
        y = y / 2
        count += 1
    return y, count


def loops_in_loops(x, y):
    w = np.zeros(3)
    for _ in range(4):
        step = 1.0
        slope = x.T @ (x @ w - y) / len(y)
        while ((x @ (w - step * slope) - y) ** 2).sum() > ((x @ w - y) ** 2).sum() and step > 1e-3:
            step = step / 2
        w = w - step * slope
    return w


def gram_schmidt(x, y):
    q = x.copy()
    for j in range(3):
        for i in range(j):
            q[:, j] -= (q[:, i] @ q[:, j]) * q[:, i]
        q[:, j] /= np.linalg.norm(q[:, j])
    return q


def by_gradients(x, y):
    w = np.zeros(3)
    for _ in range(6):
        w = w - 0.1 * tm.grad(lambda w: np.mean((x @ w - y) ** 2))(w)
    return w


LOOPS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        descent, until_it_is_flat, newton, power_method, lloyd, mixture, boosting, boosting_until_it_is_small, bisection, momentum,
        a_branch_on_a_mean, rows_by_a_branch, standardised_first, until_all_rows_are_small,
        loops_in_loops, gram_schmidt,
    )
}  # fmt: skip


def splitted(function: Callable[..., Any]) -> Split:
    found = traced(function, TYPES)
    return split(found.graph, (0, 1), sites=found.lens.of)


def by_chunks(parts: Split, count: int, x: Any = X, y: Any = Y) -> list[Any]:
    ends = [len(x) * (k + 1) // count for k in range(count)]
    groups = grouped(np.diff([0, *ends]).tolist(), parts.short)
    ends = [ends[group[-1]] for group in groups]
    starts = [0, *ends[:-1]]
    chunks = [[v[a:b] for a, b in zip(starts, ends, strict=True)] for v in (x, y)]
    results = run(parts, [x.shape, y.shape], {}, Here(parts.own, chunks, starts))
    return [np.concatenate(r, parts.axes[k]) if k in parts.axes else r for k, r in enumerate(results)]


def compared(results: list[Any], expected: Any) -> None:
    expected = expected if isinstance(expected, tuple) else (expected,)
    for result, numpys in zip(results, expected, strict=True):
        assert np.shape(result) == np.shape(numpys)
        assert np.asarray(result).dtype == np.asarray(numpys).dtype
        np.testing.assert_allclose(result, numpys, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", LOOPS)
def test_values_are_those_of_numpy(name: str):
    parts = splitted(LOOPS[name])
    for count in (1, 2, 5):
        compared(by_chunks(parts, count), LOOPS[name](X, Y))


@pytest.mark.parametrize("name", ["until_it_is_flat", "boosting", "a_branch_on_a_mean", "rows_by_a_branch"])
def test_other_data_take_other_branches(name: str):
    parts = splitted(LOOPS[name])
    for x, y in ((X, -Y - 3), (X - 2, Y + 1), (X + 5, Y * 0)):
        with np.errstate(all="ignore"):
            compared(by_chunks(parts, 3, x, y), LOOPS[name](x, y))


def test_an_iteration_is_one_graph_and_rows_are_not_kept():
    (loop,) = splitted(standardised_first).driven
    (stage,) = loop.graphs["body"].split.stages
    assert len(stage.inputs) == 2  # x and y: z is computed again
    assert not stage.rows
    assert [len(stage.rows) for stage in splitted(boosting).driven[0].graphs["body"].split.stages] == [
        0,
        1,
    ]  # what is left is handed on


def test_few_iterations_that_do_not_wait_for_each_other_are_one_stage():
    def moments(x, y):
        found = np.zeros((3, 3))
        for i in range(3):
            for j in range(3):
                found[i, j] = (x[:, i] * x[:, j]).mean()
        return found

    parts = splitted(moments)
    assert (len(parts.stages), len(parts.driven)) == (1, 0)
    compared(by_chunks(parts, 3), moments(X, Y))


def one_row_after_the_other(x, y):
    total = 0.0
    for k in range(len(y)):
        total = np.cos(total) + y[k]
    return total


REFUSED = {
    "as many iterations as there are rows": (one_row_after_the_other, "loop counts rows"),
    "a sort": (lambda x, y: tm.fori_loop(0, 9000, lambda i, c: np.sort(c) / c.sum(), y), "sort"),
    "neighbours": (
        lambda x, y: tm.while_loop(lambda c: c > 0.1, lambda c: c * np.abs(np.diff(y * c)).mean(), 1.0),
        "neighbours",
    ),
    "running sums": (
        lambda x, y: tm.fori_loop(0, 9000, lambda i, c: c + np.cumsum(y)[i % 7], 0.0),
        "cumsum|runs along",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_within_is_named(name: str):
    function, message = REFUSED[name]
    with pytest.raises(tm.CaptureError, match=message):
        splitted(function)
