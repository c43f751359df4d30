"""What data selects: reading through masks, nonzero, unique and their kin, as parts of one graph, against NumPy."""

import re

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import topological
from tests.capture.harness import check

pytestmark = pytest.mark.usefixtures("by_numpy")
RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4))
Y = RNG.normal(size=(3, 4))
V = np.array([3.0, -1.0, 2.0, 3.0, -1.0, 0.0])
W = np.array([1, 0, 2, 2, 0])


def listed(value):
    return list(value) if isinstance(value, tuple) else [value]


FUNCTIONS = {
    "mask": lambda x, y: x[x > 0],
    "sum": lambda x, y: x[x > 0].sum(),
    "mean": lambda x, y: x[x > 0].mean(),
    "two of one mask": lambda x, y: x[x > 0] * y[x > 0],
    "mask of rows": lambda x, y: x[x[:, 0] > 0],
    "mask of columns": lambda x, y: x[:, x[0] > 0],
    "mask and number": lambda x, y: x[x[:, 0] > 0, 1],
    "number and mask": lambda x, y: x[1, x[1] > 0],
    "mask and slice": lambda x, y: x[x[:, 0] > 0, :2],
    "slice and mask": lambda x, y: x[::-1, x[0] > 0],
    "mask and new axis": lambda x, y: x[None, x[:, 0] > 0],
    "mask, new axis, ellipsis": lambda x, y: x[x[:, 0] > 0, None, ...],
    "mask and indices": lambda x, y: x[x[:, 0] > -9, [0, 1, 1]],
    "mask and index apart": lambda x, y: x[:, None, x[0] > 0][0],
    "nothing": lambda x, y: x[x > 9],
    "sum of nothing": lambda x, y: x[x > 9].sum(),
    "everything": lambda x, y: x[x < 9],
    "list of bools": lambda x, y: x[[True, False, True]],
    "table of bools": lambda x, y: x[[[True, False, True, False]] * 3],
    "true": lambda x, y: x[True],
    "false": lambda x, y: x[False],
    "a truth value of data": lambda x, y: x[(x > 0).any()],
    "a false value of data": lambda x, y: x[(x > 9).any()],
    "length": lambda x, y: x[x > 0].shape[0] + x[x > 0].size,
    "mask of a mask": lambda x, y: x[x > 0][x[x > 0] < 1],
    "slice of a mask": lambda x, y: x[x > 0][1:],
    "flip of a mask": lambda x, y: x[x > 0][::-1],
    "element of a mask": lambda x, y: x[x > 0][-1] + x[x > 0][0],
    "sorted": lambda x, y: np.sort(x[x > 0]),
    "running sum": lambda x, y: np.cumsum(x[x > 0]),
    "joined": lambda x, y: np.concatenate([x[x > 0], x[x <= 0], y[0]]),
    "outer": lambda x, y: x[x > 0][:, None] * x[x > 0],
    "product": lambda x, y: x[:, x[0] > 0] @ y[:, x[0] > 0].T,
    "stacked": lambda x, y: np.stack([x[x > 0], y[x > 0]]),
    "zeros": lambda x, y: np.zeros(np.count_nonzero(x > 0)) + x[x > 0],
    "ramp": lambda x, y: np.arange((x > 0).sum()) * x[x > 0],
    "ones": lambda x, y: np.ones((np.count_nonzero(x > 0), 2)),
    "nonzero": lambda x, y: np.nonzero(x > 0),
    "nonzero of floats": lambda x, y: np.nonzero(np.round(x)),
    "method": lambda x, y: (x > 0).nonzero(),
    "through nonzero": lambda x, y: x[np.nonzero(x > 0)],
    "argwhere": lambda x, y: np.argwhere(x > 0),
    "flatnonzero": lambda x, y: np.flatnonzero(x > 0),
    "where": lambda x, y: np.where(x > 0),
    "where of nothing": lambda x, y: np.where(x > 9),
    "compress": lambda x, y: np.compress(x[0] > 0, x, axis=1),
    "compress, shorter": lambda x, y: np.compress([True, False, True], x, axis=1),
    "compress, flat": lambda x, y: np.compress(x[0] > 0, x),
    "compress method": lambda x, y: x.compress(x[:, 0] > 0, axis=0),
    "extract": lambda x, y: np.extract(x > 0, x),
    "unique": lambda x, y: np.unique(np.round(x)),
    "unique and all": lambda x, y: np.unique(np.round(x), True, True, True),
    "unique and counts": lambda x, y: np.unique(np.round(x[0]), return_counts=True),
    "unique count": lambda x, y: np.unique(np.round(x)).shape[0] * 2,
    "union": lambda x, y: np.union1d(np.round(x[0]), np.round(y)),
    "variance": lambda x, y: x[x > 0].var() + x[x > 0].std(),
    "normalised": lambda x, y: x[x > 0] / np.linalg.norm(x[x > 0]),
    "a store of the same mask": lambda x, y: stored(x, y),
    "median of positives": lambda x, y: np.sort(x[x > 0])[x[x > 0].shape[0] // 2],
}


def stored(x, y):
    x = x.copy()
    x[x > 0] = y[x > 0]
    return x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_numpy(name):
    function = FUNCTIONS[name]
    captured = tm.tensor(function)
    for x in (X, -X, np.abs(X)):
        try:
            expected = listed(function(x, Y))
        except IndexError:
            with pytest.raises(IndexError):
                captured(x, Y)
            continue
        found = listed(captured(x, Y))
        assert len(found) == len(expected)
        for ours, numpys in zip(found, expected, strict=True):
            assert np.asarray(ours).dtype == np.asarray(numpys).dtype
            np.testing.assert_allclose(ours, numpys, rtol=1e-13, strict=not np.isscalar(numpys))


GRADIENTS = [n for n in FUNCTIONS if n in {
    "sum", "mean", "mask", "two of one mask", "mask of rows", "mask of columns", "mask and number", "slice of a mask", "flip of a mask",
    "element of a mask", "sorted", "running sum", "joined", "outer", "product", "stacked", "ramp", "compress", "extract", "variance",
    "normalised", "a store of the same mask", "median of positives", "mask of a mask", "nothing", "through nonzero",
}]  # fmt: skip


@pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.ConstantGradientWarning")  # most read one argument
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    def loss(x, y):
        return (FUNCTIONS[name](x, y) ** 3).sum()

    gradients = tm.grad(loss, (0, 1))(X, Y)
    for number, gradient in enumerate(gradients):
        expected = np.zeros_like(X)
        for place in np.ndindex(X.shape):
            step = np.zeros_like(X)
            step[place] = 1e-6
            plus, minus = ((X + s * step * (number == 0), Y + s * step * (number == 1)) for s in (1, -1))
            expected[place] = (loss(*plus) - loss(*minus)) / 2e-6
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)
    x_move, y_move = RNG.normal(size=(2, 3, 4))
    pushed = tm.jvp(loss, (X, Y), (x_move, y_move))[1]
    np.testing.assert_allclose(pushed, (gradients[0] * x_move).sum() + (gradients[1] * y_move).sum(), rtol=1e-10)


def test_the_hessian_of_a_selection():
    def loss(x):
        return (x[x > 0] ** 3).sum()

    np.testing.assert_allclose(tm.hessian(loss)(V), np.diag(np.where(V > 0, 6 * V, 0)))


def test_one_graph_with_one_count():
    graph = tm.trace(lambda x, y: (x[x > 0] * y[x > 0]).sum() / np.count_nonzero(x > 0), "float64[n]", "float64[n]")
    names = [n.op.name for n in topological(graph.results)]
    assert names.count("places") == names.count("greater") == 1
    assert graph.checks == ()
    assert tm.parse(str(graph)) == graph


def test_masks_that_do_not_fit():
    with pytest.raises(IndexError, match="boolean index did not match indexed array along axis 0; size of axis is 3"):
        tm.tensor(lambda x, m: x[m])(X, np.array([True, False]))
    with pytest.raises(IndexError):
        tm.tensor(lambda x, m: x[m])(X, np.ones((3, 1), bool))
    with pytest.raises(IndexError, match="too many indices"):
        tm.tensor(lambda x, m: x[m, 0])(X, X > 0)
    with pytest.raises(ValueError, match="0d"):
        tm.tensor(lambda x: np.nonzero(x.sum()))(X)


def test_counts_that_do_not_agree_are_an_error():
    f = tm.tensor(lambda x, y: x[x > 0] + y[y > 0])
    np.testing.assert_array_equal(f(np.abs(X), np.abs(Y)), (np.abs(X) + np.abs(Y)).ravel())
    with pytest.raises(ValueError, match="do not fit"):
        f(np.abs(X), Y)


def test_special_values():
    x = np.array([np.nan, 0.0, -0.0, np.inf, 2.0, np.nan])
    for f in (
        lambda x: np.unique(x),
        lambda x: np.unique(x, equal_nan=False),
        lambda x: np.unique(x, return_inverse=True),
        lambda x: np.flatnonzero(x),
        lambda x: x[~np.isnan(x)],
    ):
        for ours, numpys in zip(listed(tm.tensor(f)(x)), listed(f(x)), strict=True):
            np.testing.assert_array_equal(ours, numpys)
    for value in (np.array([1 + 2j, 0, 1 + 2j]), np.array([True, False]), W):
        for ours, numpys in zip(
            tm.tensor(lambda x: np.unique(x, True, True, True))(value), np.unique(value, True, True, True), strict=True
        ):
            np.testing.assert_array_equal(ours, numpys, strict=True)


ZEROS = {
    "values": np.unique,
    "places": lambda x: np.unique(x, return_index=True),
    "inverse": lambda x: np.unique(x, return_inverse=True),
    "counts": lambda x: np.unique(x, return_counts=True),
    "both": lambda x: np.unique(x, return_inverse=True, return_counts=True),
    "nan apart": lambda x: np.unique(x, equal_nan=False),
    "union": lambda x: np.union1d(x, x[::2]),
    "common": lambda x: np.intersect1d(x, x[1::2]),
    "rest": lambda x: np.setdiff1d(x, x[x == 1]),
    "either": lambda x: np.setxor1d(x[::2], x[x == 1]),
    "sorted": np.sort,
    "order": np.argsort,
}


@pytest.mark.parametrize("name", ZEROS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_of_the_zeros_the_one_is_kept_that_numpy_keeps(name, dtype):
    rng = np.random.default_rng(5)
    f = tm.tensor(ZEROS[name])
    for size in (1, 2, 5, 12, 40, 300):
        for _ in range(4):
            x = rng.choice(np.array([0.0, -0.0, 1.0, -2.0, np.nan]), size).astype(dtype)
            if dtype is np.complex128:
                x.imag = rng.choice([0.0, -0.0, 1.0], size)
            for ours, numpys in zip(listed(f(x)), listed(ZEROS[name](x)), strict=True):
                np.testing.assert_array_equal(ours, numpys, strict=True)
                for part in ("real", "imag"):
                    signs = (np.signbit(getattr(v[~np.isnan(v)], part)) for v in (ours, numpys))
                    np.testing.assert_array_equal(*signs)


def test_batches():
    mask = np.array([True, False, True, True])
    np.testing.assert_array_equal(tm.vmap(lambda x: x[mask].sum())(X), X[:, mask].sum(1))
    with pytest.raises(ValueError, match="differs within the batch"):
        tm.vmap(lambda x: x[x > 0].sum())(X)


def test_in_loops_and_branches():
    def iteration(k, s):
        row = X[k]
        return s + row[row > 0].sum()

    assert tm.fori_loop(0, 3, iteration, 0.0) == pytest.approx(X[X > 0].sum())
    f = tm.tensor(lambda x: tm.cond(x.sum() > 0, lambda: x[x > 0].sum(), lambda: x[x < 0].prod()))
    assert f(V) == V[V > 0].sum()
    assert f(-V) == (-V)[-V < 0].prod()


CELLS = [
    "y = x[x > 0]\nz = y * 2 + y.mean()\nn = y.shape[0]\nz",
    "m = x > 0\ny = x[m]\nw = np.ones(y.shape[0]) @ y\nw",
    "rows, columns = np.nonzero(x > 0)\nx[rows, columns].sum()",
    "values, counts = np.unique(np.round(x), return_counts=True)\nvalues[counts.argmax()]",
    "k = x.argmax()\nx.ravel()[k], x.ravel()[:k].sum()",
    "y = x.copy()\ny[y > 0] = 0\ny",
]


@pytest.mark.parametrize("source", CELLS)
def test_in_cells(source):
    check(source, x=X)


def test_values_of_a_selection_outside_of_code():
    lazy = tm.tensor(X)
    chosen = lazy[lazy > 0]
    assert chosen.shape == ((X > 0).sum(),)
    assert len(chosen) == (X > 0).sum()
    np.testing.assert_array_equal(chosen.numpy(), X[X > 0])
    later = chosen * 2
    np.testing.assert_array_equal(later.numpy(), X[X > 0] * 2)
    assert [float(v) for v in chosen] == X[X > 0].tolist()


def test_as_text_in_plain_numpy():
    def program(x):
        k = x[0].argmax()
        values, counts = np.unique(np.round(x), return_counts=True)
        return x[x > 0].sum() * x[k - 1, k] + (values * counts).sum() + x[:k].sum() + np.ones(k + 1).sum()

    lazy = tm.tensor(program)(tm.tensor(X))
    names = {}
    exec(lazy.code("numpy"), names)
    *_helpers, run = (v for v in names.values() if callable(v))
    assert run(X) == pytest.approx(program(X))


def test_compiled_code_agrees(monkeypatch):
    def program(x, y):
        chosen = x[x > 0]
        return np.exp(chosen).sum() + (y * 2).sum(), chosen * y[x > 0], np.unique(np.round(y)), np.exp(y)

    expected = program(X, Y)
    monkeypatch.setattr(tm.config, "tier", "numba")
    for ours, numpys in zip(tm.tensor(program)(X, Y), expected, strict=True):
        np.testing.assert_allclose(ours, numpys, rtol=1e-12)


def test_an_axis_of_as_many_as_data_say_is_not_dropped_in_a_store_by_a_mask():
    def stored(x, u, k):
        x[u] = x[: k[0], None] * 2
        return x

    captured = tm.tensor(stored)
    x, u = np.ones((2, 3)), np.array([True, False])
    with pytest.raises(CaptureError, match=r"(?s)shape mismatch.*is not dropped when it happens to be 1"):
        captured.graph(x.copy(), u, np.array([1]))
    assert np.array_equal(stored(x.copy(), u, np.array([1])), [[2, 2, 2], [1, 1, 1]])


OF_EACH = {
    "columns": lambda z, k: z[np.arange(len(z)), k],
    "turned": lambda z, k: z.T[k, np.arange(len(z))],
    "vectors": lambda z, k: (z[:, :, None] * np.ones(2))[np.arange(len(z)), k],
    "behind others": lambda z, k: (z[None] * np.ones((2, 1, 1)))[:, np.arange(len(z)), k],
    "apart": lambda z, k: (z[:, None, :] * np.ones((2, 1)))[np.arange(len(z)), :, k],
    "from the end": lambda z, k: z[np.arange(len(k), dtype=np.int32), -k - 1],
    "three": lambda z, k: (z[:, :, None] * np.ones(3))[np.arange(len(z)), k, k % 2],
}


@pytest.mark.parametrize("name", OF_EACH)
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_one_element_of_each_row(name: str, count: int):
    rng = np.random.default_rng(count)
    f, z, k = OF_EACH[name], rng.normal(size=(count, 3)), rng.integers(0, 3, count)
    for places in (k, k.astype(np.int8)):
        found, wanted = tm.tensor(f)(z, places), f(z, places)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(found, wanted)
    slope = tm.grad(lambda z: (f(z, k) ** 3).sum())(z)
    np.testing.assert_allclose(slope, slope * 0 + 3 * z**2 * (tm.grad(lambda z: f(z, k).sum())(z)), rtol=1e-12)
    if count:
        with pytest.raises(IndexError, match="index 7 is out of bounds" if name == "columns" else "out of bounds"):
            tm.tensor(f)(z, np.full(count, 7))


@pytest.mark.parametrize("text", ["x[None, m]", "x[None, :, m]", "x[..., None, m]", "x[m]", "x[:, m]"])
def test_the_axis_that_a_mask_does_not_fit_is_told_as_numpy_tells_it(text):
    x, m = np.zeros((4, 3)), np.array([True, False])
    read = eval(f"lambda x, m: {text}")
    with pytest.raises(IndexError) as numpys:
        read(x, m)
    with pytest.raises(IndexError, match=re.escape(str(numpys.value))):
        tm.tensor(read)(x, m)
