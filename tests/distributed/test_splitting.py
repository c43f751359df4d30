"""Functions split over chunks of rows, in one process: the values of the whole, one chunk or many, in any order; and what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.distributed.distribute import grouped
from tensormagic.distributed.running import combined, run
from tensormagic.distributed.splitting import split
from tensormagic.distributed.stages import Split
from tensormagic.functions.tracing import Typed, traced
from tensormagic.ir import site
from tensormagic.ir.size import symbol
from tensormagic.ir.type import Type
from tests.distributed.here import Here

pytestmark = pytest.mark.usefixtures("by_numpy")
ROWS = 23
RNG = np.random.default_rng(7)
X, Y, W = RNG.normal(size=(ROWS, 3)), RNG.normal(size=ROWS), RNG.normal(size=3)
N = symbol("n", least=16)
TYPES = (Typed(Type(np.dtype(float), (N, 3))), Typed(Type(np.dtype(float), (N,))), "float64[k]")


def splitted(function: Callable[..., Any], types: tuple[Any, ...] = TYPES, places: tuple[int, ...] = (0, 1)) -> Split:
    found = traced(function, types)
    return split(found.graph, places, sites=found.lens.of)


def by_chunks(found: Split, arrays: tuple[Any, ...], bounds: list[int]) -> list[Any]:
    """The results, with chunks of rows that end at ``bounds``."""
    groups = grouped(np.diff([0, *bounds]).tolist(), found.short)
    bounds = [bounds[group[-1]] for group in groups]
    starts = [0, *bounds[:-1]]
    chunks = [[arrays[k][a : b + found.halo] for a, b in zip(starts, bounds, strict=True)] for k in found.places]
    given = {k: a for k, a in enumerate(arrays) if k not in found.places}
    results = run(found, [np.shape(a) for a in arrays], given, Here(found.own, chunks, starts))
    return [np.concatenate(r, found.axes[k]) if k in found.axes else r for k, r in enumerate(results)]


def whole(function: Callable[..., Any]) -> list[Any]:
    graph = traced(function, TYPES).graph
    return session.executable(graph).run(graph.bind([X.shape, Y.shape, W.shape]), X, Y, W)


def bounds_of(count: int) -> list[int]:
    return [ROWS * (k + 1) // count for k in range(count)]


def loss(x, y, w):
    z = x @ w[:3]
    return np.mean(np.logaddexp(0, z) - y * z)


def newton(x, y, w):
    z = np.ones(len(y))
    for _ in range(5):
        z = z - (z * z - 2 - y * y) / (2 * z)
    return z


def decaying(x, y, w):
    z, rate = np.zeros(len(y)), w[0]
    for _ in range(6):
        z = z + rate * (y - z)
        rate = rate * 0.5
    return z.mean() + rate


def stored(x, y, w):
    z = x * 2
    z[:, 1] = y
    z[:, 0] += w[0]
    return z


def stored_rows(x, y, w):
    z = y * 2
    z[3:9] = 0
    return z


def cross_entropy(x, y, w):
    z = x * w[:3]
    picked = np.take_along_axis(z, (y[:, None] > 0).astype(int), axis=1)[:, 0]
    return np.mean(np.log(np.exp(z).sum(axis=1)) - picked)


def clusters(x, y, w):
    near = np.argmin((x[:, :, None] - w[:3]) ** 2, axis=2)[:, 0]
    own = (near[:, None] == np.arange(3)).astype(float)
    return own.T @ x / np.maximum(own.sum(axis=0), 1)[:, None]


def stacked(x):
    return x[:, :, None] * x[:, None, :] + np.eye(3) * 3


def classes(y):
    return (y > 0).astype(int) + (y > 0.5)


def grouped_sums(x, y, w):
    sums, counts, most = np.ones((3, 3)), np.zeros(3, int), np.full(3, -np.inf)
    np.add.at(sums, classes(y), x)
    np.add.at(counts, classes(y), 1)
    np.maximum.at(most, classes(y), x[:, 0])
    return sums, counts, most, (sums / np.maximum(counts, 1)[:, None])[classes(y)]


def checked(x, y, w):
    if w.sum() > 1e9:
        raise ValueError("w")
    if x.max() > 1e9:
        raise ValueError("x")
    if not (y < 1e9).all():
        raise KeyError("y")
    return x @ w[:3], x.sum()


def recurrent(x, y, w):
    h, m = np.zeros((len(x), 2)), w[:2, None] * np.ones((2, 2))
    for t in range(3):
        h = np.tanh(h @ m + x[:, t, None] * w[1:3] + w[0])
    return ((h.sum(axis=1) - y) ** 2).mean()


def descent(x, y, w):
    p = w[:3] * 0
    for _ in range(3):
        p = p - 0.01 * (x.T @ (x @ p - y))
    return p


def lloyd(x, y, w):
    c = np.outer(w[:2], np.ones(3)) + np.arange(2)[:, None]
    for _ in range(4):
        own = (((x[:, None] - c) ** 2).sum(axis=2).argmin(axis=1)[:, None] == np.arange(2)) * 1.0
        c = own.T @ x / np.maximum(own.sum(axis=0), 1)[:, None]
    return c


def direction(x, y, w):
    v = w[:3] / np.linalg.norm(w[:3])
    for _ in range(10):
        v = x.T @ (x @ v)
        v = v / np.linalg.norm(v)
    return v


def decaying_sum(x, y, w):
    s = 0.0
    for k in range(3):
        s = s * 0.5 + (x[:, k] * w[0]).sum()
    return s


def sums_beside_others(x, y, w):
    s = np.zeros(2)
    for k in range(3):
        s = s + np.concatenate([x[:, k].sum()[None], w[:1]])
    return s


def branch_of_sums(x, y, w):
    return x.sum(axis=0) if w[0] > 0 else (x * y[:, None]).sum(axis=0)


def branch_on_a_sum(x, y, w):
    if x.sum() > 0:
        z = y * 2
        for k in range(2):
            z = z * (y[:, None] * w[:1]).sum(axis=1) if w[k] > 0 else z + k
    else:
        z = y - 1
    return z


SLOPES = tm.vmap(tm.grad(lambda x, y: np.log(np.linalg.det(np.outer(x, x) + np.eye(3) * (2 + y * y)))), (0, 0))
ROWWISE: dict[str, Callable[..., Any]] = {
    "pointwise": lambda x, y, _: np.where(x > 0, np.exp(-x), y[:, None]),
    "folds of other axes": lambda x, y, w: (
        x.max(axis=1),
        np.linalg.norm(x, axis=1),
        np.argmin(x * y[:, None], axis=1),
    ),
    "rows along the second axis": lambda x, y, w: (x.T * y, np.cumsum(x.T, axis=0)),
    "shapes": lambda x, y, w: (
        np.ones((len(x), 2)),
        x[:, ::-1],
        x[:, None, :] - np.ones((2, 1)),
        np.concatenate([x, x], 1),
    ),
    "sorted": lambda x, y, w: (np.sort(x, axis=1), np.take_along_axis(x, np.argsort(x, axis=1), 1), x[:, [2, 0]]),
    "tables": lambda x, y, w: (w[(x[:, 0] > 0).astype(int)], x * len(x), x / x.size),
    "stacks of matrices": lambda x, y, w: (
        np.linalg.inv(stacked(x)),
        np.linalg.solve(stacked(x), x[:, :, None])[:, :, 0],
        np.linalg.det(stacked(x)),
        np.linalg.cholesky(stacked(x)),
        np.linalg.eigh(stacked(x))[0],
        np.linalg.qr(stacked(x))[1],
        np.linalg.svd(stacked(x))[1],
        np.linalg.solve(np.eye(3) * 2, x[:, :, None]),
        np.linalg.slogdet(stacked(x))[1],
    ),
    "slopes of stacks": lambda x, y, w: SLOPES(x, y),
    "stores into columns": stored,
    "a gradient with rows": tm.grad(lambda x, y, w: (np.sin(x[:, :2]).sum(axis=1) * y).sum()),
    "transforms": lambda x, y, w: np.abs(np.fft.fft(x, axis=1)),
    "a loop": lambda x, y, w: tm.fori_loop(0, 3, lambda i, c: np.sin(c) * y + w[0], y),
    "a loop that counts": lambda x, y, w: tm.fori_loop(0, 3, lambda i, c: c / len(y), y),
    "a loop of several": lambda x, y, w: tm.fori_loop(
        0, 4, lambda i, c: (c[0] * w[0] + c[1][:, 0], c[1] * 0.5), (y, x)
    )[0],
    "a while loop": lambda x, y, w: tm.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * y), (0, y * 2))[1],
    "branches": lambda x, y, w: tm.cond(w[0] > 0, lambda a: a[:, 0] * 2, lambda a: a[:, 1], x),
    "Newton's iteration": newton,
    "an element of each row": lambda x, y, w: (
        x[np.arange(len(x)), classes(y)],
        x.T[classes(y), np.arange(len(x))],
        (x[:, None] * np.ones((2, 1)))[np.arange(len(x)), classes(y) - 2],
    ),
    "tables that are searched": lambda x, y, w: (
        np.searchsorted(np.array([-1.0, 0, 1]), x),
        np.interp(y, [-1.0, 0, 1], [0.0, 2, 0]),
        np.digitize(y, [-1.0, 0, 1]),
    ),
    "partitioned": lambda x, y, w: (np.partition(x, 1, axis=1)[:, 1], np.argpartition(x, 1, axis=1)[:, 1]),
    "softmax": lambda x, y, w: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
}
SUMMED: dict[str, Callable[..., Any]] = {
    "loss": loss,
    "loss and gradient": tm.value_and_grad(loss, argnums=2),
    "products": lambda x, y, w: (x.T @ x, y @ x, x.T @ y, np.einsum("ni,nj->ij", x, x)),
    "folds": lambda x, y, w: (x.sum(), x.prod(axis=0), x.max(), x.min(axis=0), (x > 2).any(), (x > -9).all(axis=0)),
    "counted": lambda x, y, w: ((x > 0).sum(), len(x) * w.sum(), x.size, y.sum() / len(x) + w),
    "standardised": lambda x, y, w: ((x - x.mean(axis=0)) / x.std(axis=0), y.var()),
    "softmax of the batch": lambda x, y, w: np.exp(y - y.max()) / np.exp(y - y.max()).sum(),
    "a loop and what it leaves": decaying,
    "cross entropy": tm.grad(cross_entropy, argnums=2),
    "means of clusters": clusters,
    "groups": grouped_sums,
    "histogram": lambda x, y, w: np.histogram(y, bins=np.linspace(-3, 3, 7), weights=x[:, 0]),
    "gradient of a table": tm.grad(lambda x, y, w: (w[classes(y)] * w[classes(-y)] * y).sum(), argnums=2),
    "sums of differences by group": lambda x, y, w: np.histogram(y[1:], bins=[-9.0, 0, 9], weights=np.diff(y)),
    "checked": checked,
    "not split at all": lambda x, y, w: w + 1,
    "flat": lambda x, y, w: (
        np.sqrt((x.reshape(-1) ** 2).sum()),
        np.linalg.norm(x),
        np.vdot(x, x),
        (x.ravel() * 2).max(),
    ),
    "integers": lambda x, y, w: tuple(
        f.reduce(np.abs(y * 9).astype(int) + 1) for f in (np.gcd, np.bitwise_or, np.bitwise_xor)
    ),
    "a recurrent net": tm.value_and_grad(recurrent, argnums=2),
    "descent": descent,
    "a loop over sums": lambda x, y, w: tm.fori_loop(0, 3, lambda i, c: c * 2 / c.sum(), y),
    "Lloyd's iterations": lloyd,
    "the largest direction": direction,
    "a decaying sum": decaying_sum,
    "a branch of sums": branch_of_sums,
    "sums beside others": sums_beside_others,
    "a branch on a sum": branch_on_a_sum,
    "a long loop over sums": lambda x, y, w: tm.fori_loop(0, 50, lambda i, c: c * 2 / c.sum(), np.abs(y)),
}


@pytest.mark.parametrize("name", ROWWISE)
def test_rows_have_the_bits_of_the_whole(name: str):
    found = splitted(ROWWISE[name])
    assert not any(stage.parts for stage in found.stages)
    for count in (1, 2, 3, 7, ROWS):
        results = by_chunks(found, (X, Y, W), bounds_of(count))
        for result, expected in zip(results, whole(ROWWISE[name]), strict=True):
            assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(result, expected)


def leaves(value: Any) -> list[Any]:
    return [v for part in value for v in leaves(part)] if isinstance(value, tuple) else [value]


@pytest.mark.parametrize("name", SUMMED)
def test_parts_are_put_together(name: str):
    found = splitted(SUMMED[name])
    numpys = leaves(SUMMED[name](X, Y, W))
    for count in (1, 2, 3, 7):
        for result, expected in zip(by_chunks(found, (X, Y, W), bounds_of(count)), numpys, strict=True):
            assert np.asarray(result).dtype == np.asarray(expected).dtype
            assert np.shape(result) == np.shape(expected)
            np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-14)


def test_parts_of_blocks_are_put_together_as_those_of_all():
    parts = list(RNG.normal(size=1000) * 10.0 ** RNG.integers(-9, 9, 1000))
    for count in (1, 2, 15, 16, 17, 33, 1000):
        blocks = [combined(parts[k : min(k + 16, count)], np.add) for k in range(0, count, 16)]
        assert combined(blocks, np.add) == combined(parts[:count], np.add)


NEIGHBOURS: dict[str, Callable[..., Any]] = {
    "differences": lambda x, y, w: x[1:] - x[:-1],
    "a mean of three": lambda x, y, w: (y[:-2] + y[1:-1] + y[2:]) / 3,
    "a window of a window": lambda x, y, w: np.diff(x, n=3, axis=0),
    "the last ones left out": lambda x, y, w: (x * 2)[:-4].T,
    "with what is whole": lambda x, y, w: (y[2:] * w[0], np.ones(len(y) - 1) * y[1:]),
    "numbered": lambda x, y, w: (np.arange(len(x)) * y, np.arange(len(x) - 2) + y[2:], np.linspace(0.0, 1.0, 3) @ x.T),
}
SUMMED |= {
    "differences, summed": lambda x, y, w: ((y[1:] - y[:-1]) ** 2).sum() + y.sum() + (x[3:] * y[3:, None]).max(),
    "a gradient over neighbours": tm.grad(lambda x, y, w: ((y[1:] - y[:-1] * w[0]) ** 2).mean(), argnums=2),
    "neighbours after a mean": lambda x, y, w: np.abs(np.diff(y - y.mean())).max(),
    "numbered, summed": lambda x, y, w: (np.arange(len(y)) * y).sum(),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_rows_of_neighbours_have_the_bits_of_the_whole(name: str):
    found = splitted(NEIGHBOURS[name])
    for count in (1, 2, 3, 4):
        results = by_chunks(found, (X, Y, W), bounds_of(count))
        for result, expected in zip(results, whole(NEIGHBOURS[name]), strict=True):
            assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(result, expected)


def test_stages_are_as_many_as_there_are_barriers():
    counts = {name: len(splitted(SUMMED[name]).stages) for name in SUMMED}
    assert counts["loss"] == counts["loss and gradient"] == counts["products"] == 1
    assert (counts["standardised"], counts["softmax of the batch"], counts["not split at all"]) == (3, 3, 0)


def printed(x, y, w):
    print(x.sum())
    return y


def store_at(x, y, w):
    z = np.zeros(3)
    z[classes(y)] = y
    return z


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "sorted": (lambda x, y, w: np.sort(y), "sort runs along the rows"),
    "cumulative": (lambda x, y, w: np.cumsum(x, axis=0), "cumsum runs along the rows"),
    "flipped": (lambda x, y, w: y[::-1], "slice picks or moves rows"),
    "every other one": (lambda x, y, w: y[::2], "slice picks or moves rows"),
    "neighbours in a circle": (lambda x, y, w: np.roll(y, 1) - y, "slice picks or moves rows"),
    "Gram": (lambda x, y, w: x @ x.T, "contract multiplies each row with every other one"),
    "outer": (lambda x, y, w: y[:, None] - y, "the number of rows is not that of an axis of rows: float64.n0, n0."),
    "flat": (lambda x, y, w: x.reshape(-1), "reshape merges the rows with another axis in a result"),
    "doubled": (lambda x, y, w: np.concatenate([y, y * y]), "concatenate puts rows after one another"),
    "shuffled": (lambda x, y, w: y[np.argsort(x[:, 0])], "argsort runs along the rows"),
    "picked": (lambda x, y, w: x[(w > 0).astype(int)], "gather picks rows"),
    "unruled": (lambda x, y, w: np.unique(y), "has no rule"),
    "a matrix of rows": (
        lambda x, y, w: np.linalg.svd(x, compute_uv=False),
        "has the rows within|have the rows within",
    ),
    "a transform of rows": (lambda x, y, w: np.fft.fft(y), "runs along the rows"),
    "as long": (lambda x, y, w: y * w, "w is not split and has the length of what is split"),
    "its shape": (lambda x, y, w: np.eye(len(x)).sum(), "number"),
    "cut": (lambda x, y, w: w[: len(x)].sum(), "slice has a size that follows from the number of rows"),
    "a loop over sorts": (
        lambda x, y, w: tm.fori_loop(0, 3, lambda i, c: np.sort(c), y),
        "loop has sort in it, which runs along the rows",
    ),
    "as many iterations as rows": (lambda x, y, w: tm.fori_loop(0, len(y), lambda i, c: c + i, y), "loop counts rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rows_that_mix_are_refused_by_name(name: str):
    function, message = REFUSED[name]
    others = traced(function, TYPES).graph.nodes  # kept: equal nodes are one node as long as it is there
    for k, node in enumerate(others):
        site.record(node, site.Site("a.py", 0, 1, k, 1, k + 1))
    with pytest.raises(tm.CaptureError, match=message) as caught:
        splitted(function)
    line = function.__code__.co_firstlineno
    assert name == "as long" or f"test_splitting.py line {line}: " in str(caught.value)
    del others


def test_what_cannot_be_split_at_all():
    with pytest.raises(tm.CaptureError, match="x and y: no common number of rows"):
        splitted(lambda x, y: (x + 1, y + 1), ("float64[n]", "float64[m]"))
    with pytest.raises(tm.CaptureError, match="x has further axes as long as what is split"):
        splitted(lambda x: x + 1, ("float64[n, n]",), (0,))
    with pytest.raises(tm.CaptureError, match="x has no axis of rows"):
        splitted(lambda x: x + 1, ("float64",), (0,))
    with pytest.raises(tm.CaptureError, match="concatenate combines rows with a value that is not split"):
        splitted(lambda x: np.pad(x, 1), TYPES[1:2], (0,))
    with pytest.raises(tm.CaptureError, match="set stores into some of the rows"):
        splitted(stored_rows)
    with pytest.raises(tm.CaptureError, match="sets places that rows name"):
        splitted(store_at)
    with pytest.raises(tm.CaptureError, match="printing is done once for each call"):
        splitted(printed)
    with pytest.raises(tm.CaptureError, match="random numbers are not drawn"):
        splitted(lambda x, y: (x * RNG.normal(size=3)).sum() + y[:0].sum(), ("float64[n, 3]", "float64[n]"))
    with pytest.raises(tm.TensorError):
        by_chunks(splitted(loss), (X[:1], Y[:1], W), [1])  # NumPy may stretch one row
