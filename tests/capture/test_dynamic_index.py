"""Indices and bounds that are known only when the graph runs: every small range against NumPy, read and stored, with gradients."""

import itertools

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.usefixtures("by_numpy")
INDEX = range(-5, 6)
STEPS = (1, 2, 3, -1, -2)


def outcome(function, *args):
    try:
        return function(*args)
    except (IndexError, ValueError, TypeError) as error:
        return next(k for k in (IndexError, ValueError, TypeError) if isinstance(error, k))


def assert_outcome(ours, numpys):
    if isinstance(numpys, type) or isinstance(ours, type):
        assert ours == numpys
        return
    assert type(ours) is type(numpys)
    assert np.asarray(ours).dtype == np.asarray(numpys).dtype
    np.testing.assert_array_equal(ours, numpys, strict=True)


def sweep(function, *arrays, count=1, index=INDEX):
    """Hold a function of arrays and of integers against NumPy, for all values of the integers; it is traced once."""
    captured = tm.tensor(function)
    for numbers in itertools.product(index, repeat=count):
        ours = outcome(captured, *arrays, *(np.int64(k) for k in numbers))
        assert_outcome(ours, outcome(function, *arrays, *numbers))


# reading --------------------------------------------------------------------------------------------------------------


@pytest.mark.share(3)
@pytest.mark.parametrize("length", range(5))
@pytest.mark.parametrize("step", STEPS)
def test_every_slice_of_a_vector(length, step):
    x = np.arange(1.0, length + 1)
    sweep(lambda x, a, b: x[a:b:step], x, count=2)
    sweep(lambda x, a: x[a::step], x)
    sweep(lambda x, b: x[:b:step], x)


@pytest.mark.parametrize("length", range(5))
def test_every_index_of_a_vector(length):
    x = np.arange(1.0, length + 1)
    sweep(lambda x, k: x[k], x)
    sweep(lambda x, k: x[k - 1] + x[k], x)
    sweep(lambda x, k: x[k, ...], x)


X = np.arange(12.0).reshape(3, 4)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "function",
    [
        lambda x, i, j: x[i, j],
        lambda x, i, j: x[i][j],
        lambda x, i, j: x[i, :j],
        lambda x, i, j: x[i, j:],
        lambda x, i, j: x[i:, j],
        lambda x, i, j: x[i : i + 3, 1:],
        lambda x, i, j: x[-i:, j::-1],
        lambda x, i, j: x[None, i, ..., j],
        lambda x, i, j: x[:i, :j].sum(),
        lambda x, i, j: x[:i, :j].T,
        lambda x, i, j: x[i:][:j],
        lambda x, i, j: x[i:][j],
        lambda x, i, j: x[:i].shape[0] + x[j:].shape[0],
        lambda x, i, j: x[:i].size + x[:, :j].size,
        lambda x, i, j: x[i, [0, -1]] + x[j, [1, 2]],
        lambda x, i, j: np.concatenate([x[:i], x[j:]]),
        lambda x, i, j: x[:i] * x[:i] + x[:i],
        lambda x, i, j: np.sort(x[:i], axis=0)[::-1],
        lambda x, i, j: x.T[j:, i:],
        lambda x, i, j: x.ravel()[i * 2 + j],
        lambda x, i, j: x.ravel()[i * j : i + j],
    ],
)
def test_every_index_of_a_matrix(function):
    sweep(function, X, count=2)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_indices_of_any_integer_dtype(dtype):
    f = tm.tensor(lambda x, k: (x[k], x[k:], x[:k]))
    numbers = [0, 2] if np.dtype(dtype).kind == "u" else [0, 2, -1]
    for number in numbers:
        for ours, numpys in zip(f(X, np.array(number, dtype)), (X[number], X[number:], X[:number]), strict=True):
            assert_outcome(ours, numpys)


def test_a_type_that_is_no_index():
    with pytest.raises(IndexError):
        tm.tensor(lambda x, k: x[k])(X, np.array(1.0))
    with pytest.raises(TypeError):
        tm.tensor(lambda x, k: x[k:])(X, np.array(1.0))


def test_an_index_that_is_computed():
    x = np.array([3.0, 9.0, 1.0, 4.0])
    idx = np.array([2, 0, 3])
    for f in (
        lambda x, idx: x[x.argmax()],
        lambda x, idx: x[idx[1]],
        lambda x, idx: x[idx[0] : idx[2]],
        lambda x, idx: x[: x.argmax() + 1],
        lambda x, idx: x[np.searchsorted(np.sort(x), 4.0) :],
        lambda x, idx: x[min(idx[0], 1) :] if not isinstance(x, tm.Tensor) else x[np.minimum(idx[0], 1) :],
    ):
        assert_outcome(tm.tensor(f)(x, idx), f(x, idx))


def test_the_message_is_numpys():
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 1 with size 4"):
        tm.tensor(lambda x, k: x[0, k])(X, np.array(7))


# sizes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x, k: np.zeros(k),
        lambda x, k: np.ones((k, 2)),
        lambda x, k: np.full((2, k), 7),
        lambda x, k: np.arange(k),
        lambda x, k: np.arange(1, k),
        lambda x, k: np.arange(k, 0, -1),
        lambda x, k: np.eye(k),
        lambda x, k: np.arange(k)[:, None] * np.ones(k),
        lambda x, k: np.zeros(x[:k].shape),
        lambda x, k: np.zeros_like(x[:k]),
        lambda x, k: x[:k].sum(axis=0) / x[:k].shape[0],
        lambda x, k: x[:k].mean(axis=0),
        lambda x, k: np.broadcast_to(x[0], (k, 4)),
        lambda x, k: x[:k].reshape(-1),
        lambda x, k: np.ones(k) @ np.ones(k),
        lambda x, k: np.stack([x[:k], x[:k]]),
    ],
)
def test_sizes_that_depend_on_data(function):
    captured = tm.tensor(function)
    for k in range(1, 4):
        assert_outcome(captured(X, np.array(k)), function(X, k))


def test_empty_results():
    for f in (lambda x, k: x[:k].sum(), lambda x, k: np.zeros(k), lambda x, k: x[:k].prod(axis=0)):
        assert_outcome(tm.tensor(f)(X, np.array(0)), f(X, 0))
    with pytest.raises(ValueError, match="no identity"):
        tm.tensor(lambda x, k: x[:k].max())(X, np.array(0))
    with pytest.raises(ValueError, match="negative dimensions"):
        tm.tensor(lambda x, k: np.zeros(k))(X, np.array(-1))


def test_sizes_that_do_not_fit_are_numpys_error():
    f = tm.tensor(lambda x, y, k: x[:k] + y)
    x, y = np.arange(5.0), np.arange(3.0)
    assert_outcome(f(x, y, np.array(3)), x[:3] + y)
    for k in (0, 2, 4):
        with pytest.raises(ValueError, match="do not fit"):
            f(x, y, np.array(k))


# storing --------------------------------------------------------------------------------------------------------------


def stores(x, a, b, v):
    x = x.copy()
    x[a] = v
    x[b] *= 2
    return x


def slices(x, a, b, v):
    x = x.copy()
    x[a:b] = v
    x[b:] += x[b:] + a
    return x


def backwards(x, a, b, v):
    x = x.copy()
    x[a:b:-1] += v
    x[: a + 1] = x[: a + 1][::-1]
    return x


@pytest.mark.share(3)
@pytest.mark.parametrize("length", range(1, 5))
@pytest.mark.parametrize("function", [stores, slices, backwards])
def test_every_store_into_a_vector(function, length):
    sweep(lambda x, v, a, b: function(x, a, b, v), np.arange(1.0, length + 1), np.array(5.0), count=2)


def matrix_stores(x, i, j):
    x = x.copy()
    x[i, 1:] += x[0, 1:]
    x[:i, j] = 0
    x[i:, j:] *= 2
    row = x[i]
    row[j] = 7
    return x


def test_every_store_into_a_matrix():
    sweep(matrix_stores, X, count=2, index=range(-4, 5))


def test_an_augmented_store_is_one_store():
    def scaled(x, k):
        x = x.copy()
        x[k:, 1] *= 2
        return x

    names = [n.op.name for n in tm.trace(scaled, "float64[n, m]", "int64").nodes]
    assert names.count("set") == 1
    sweep(scaled, X)


# derivatives ----------------------------------------------------------------------------------------------------------


def differences(function, x, *rest):
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        found[place] = (function(x + step, *rest) - function(x - step, *rest)) / 2e-6
    return found


LOSSES = [
    lambda x, i, j: (x[i] ** 2).sum() * x[j, 0],
    lambda x, i, j: (x[:i] ** 3).sum(),
    lambda x, i, j: (x[i:, j:] * x[i:, j:]).sum() + x[i, j] ** 2,
    lambda x, i, j: np.exp(x[i, ::-1] * x[j]).sum(),
    lambda x, i, j: stores(x, i, j, x[0, 1] ** 2).sum() ** 2,
    lambda x, i, j: (slices(x, i, j, x[1] ** 2) ** 2).sum(),
    lambda x, i, j: (matrix_stores(x, i, j) ** 2).sum(),
    lambda x, i, j: np.arange(j + 3) @ np.cumsum(x.ravel()[: j + 3]),
]


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients(loss):
    x = np.random.default_rng(1).normal(size=(3, 4))
    gradient = tm.grad(loss)
    for i, j in ((0, 0), (1, 2), (-1, 1), (2, -2)):
        expected = differences(loss, x, i, j)
        np.testing.assert_allclose(gradient(x, np.int64(i), np.int64(j)), expected, rtol=1e-6, atol=1e-8)
        direction = np.random.default_rng(2).normal(size=x.shape)
        (_, pushed) = tm.jvp(lambda x, i=i, j=j: loss(x, np.int64(i), np.int64(j)), (x,), (direction,))
        np.testing.assert_allclose(pushed, (expected * direction).sum(), rtol=1e-6, atol=1e-8)


def test_second_derivatives():
    x = np.random.default_rng(1).normal(size=(3, 4))
    loss = LOSSES[2]
    direction = np.random.default_rng(2).normal(size=x.shape)
    gradient = tm.grad(lambda x: loss(x, np.array(1), np.array(2)))
    expected = (gradient(x + 1e-6 * direction) - gradient(x - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(tm.jvp(gradient, (x,), (direction,))[1], expected, rtol=1e-6, atol=1e-8)


# batches --------------------------------------------------------------------------------------------------------------


def test_batches_of_indices():
    x = np.random.default_rng(1).normal(size=(5, 3, 4))
    i, j = np.array([0, 1, 2, -1, -3]), np.array([0, 3, -4, 1, 2])

    def read(x, i, j):
        return x[i, j] + x[i] * x[j % 3]

    def write(x, i, j):
        return matrix_part(x, i, j)

    for f in (read, write):
        expected = np.stack([f(a, b, c) for a, b, c in zip(x, i, j, strict=True)])
        np.testing.assert_allclose(tm.vmap(f)(x, i, j), expected)
        expected = np.stack([f(x[0], b, c) for b, c in zip(i, j, strict=True)])
        np.testing.assert_allclose(tm.vmap(f, in_axes=(None, 0, 0))(x[0], i, j), expected)
        expected = np.stack([f(a, 1, -2) for a in x])
        np.testing.assert_allclose(tm.vmap(f, in_axes=(0, None, None))(x, np.array(1), np.array(-2)), expected)
    loss = tm.grad(lambda x, i, j: (matrix_part(x, i, j) ** 2).sum())
    expected = np.stack([loss(a, np.array(b), np.array(c)) for a, b, c in zip(x, i, j, strict=True)])
    np.testing.assert_allclose(tm.vmap(loss)(x, i, j), expected)


def matrix_part(x, i, j):
    x = x.copy()
    x[i, j] = x[j % 3, i] ** 2
    x[i] += x[j % 3]
    return x


def test_sizes_that_differ_within_a_batch_are_refused():
    x = np.ones((2, 4))
    with pytest.raises(ValueError, match="differs within the batch"):
        tm.vmap(lambda x, k: x[:k].sum())(x, np.array([1, 2]))


# loops ----------------------------------------------------------------------------------------------------------------


def back_substitution(U, b):
    n = U.shape[0]

    def iteration(k, x):
        i = n - 1 - k
        new = (b[i] - U[i, i + 1 :] @ x[i + 1 :]) / U[i, i]
        x = x.copy()
        x[i] = new
        return x

    return tm.fori_loop(0, n, iteration, np.zeros_like(b))


def test_a_loop_over_rows():
    rng = np.random.default_rng(3)
    f = tm.tensor(back_substitution)
    for n in (2, 5):
        U = np.triu(rng.normal(size=(n, n))) + 3 * np.eye(n)
        b = rng.normal(size=n)
        np.testing.assert_allclose(f(U, b), np.linalg.solve(U, b))
        stack = U + 0.1 * np.triu(rng.normal(size=(3, n, n)))
        np.testing.assert_allclose(tm.vmap(back_substitution, in_axes=(0, None))(stack, b), np.linalg.solve(stack, b))
        direction = rng.normal(size=n)
        np.testing.assert_allclose(
            tm.jvp(lambda b, U=U: back_substitution(U, b), (b,), (direction,))[1], np.linalg.solve(U, direction)
        )
    assert "max(" not in str(f.graph(U, b))  # ranges decide every clipping
    assert "min(" not in str(f.graph(U, b))
    assert "position" not in str(f.graph(U, b))


def cholesky(A):
    n = A.shape[0]

    def column(j, L):
        def row(i, L):
            L = L.copy()
            L[j + i, j] = A[j + i, j] - L[j + i, :j] @ L[j, :j]
            return L

        L = tm.fori_loop(0, n - j, row, L).copy()
        L[j:, j] /= np.sqrt(L[j, j])
        return L

    return tm.fori_loop(0, n, column, np.zeros_like(A))


def test_an_inner_bound_on_the_outer_index():
    rng = np.random.default_rng(4)
    f = tm.tensor(cholesky)
    for n in (2, 4):
        B = rng.normal(size=(n, n))
        A = B @ B.T + np.eye(n)
        np.testing.assert_allclose(f(A), np.linalg.cholesky(A))
    text = str(tm.trace(cholesky, "float64[n, n]"))
    assert not any(name in text for name in ("max(", "min(", "position", "guard"))
    assert "%0: int from 0 below -1*%3+n0" in text


def test_an_index_out_of_bounds_in_a_loop():
    x = np.arange(4.0)
    f = tm.tensor(lambda x, m: tm.fori_loop(0, m, lambda k, s: s + x[k], 0.0))
    assert f(x, np.array(4)) == 6.0
    assert f(x, np.array(0)) == 0.0
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        f(x, np.array(5))
    previous = tm.tensor(lambda x: tm.fori_loop(0, x.shape[0], lambda k, s: s + x[k] * x[k - 1], 0.0))
    assert previous(x) == (x * np.roll(x, 1)).sum()


def test_sizes_that_do_not_fit_in_a_loop():
    f = tm.tensor(lambda x, y, m: tm.fori_loop(0, m, lambda k, s: s + (x[k:] + y).sum(), 0.0))
    x = np.arange(4.0)
    assert f(x, x, np.array(1)) == 12.0
    with pytest.raises(ValueError, match="do not fit"):
        f(x, x, np.array(2))


def test_sizes_in_branches():
    f = tm.tensor(lambda x, k: tm.cond(k > 1, lambda: x[:k].sum(), lambda: x[k:].prod()))
    x = np.arange(1.0, 6.0)
    for k in range(5):
        assert f(x, np.array(k)) == (x[:k].sum() if k > 1 else x[k:].prod())
    same = tm.tensor(lambda x, k: tm.cond(x.sum() > 0, lambda: x[:k] * 2, lambda: x[:k] + 1))
    np.testing.assert_array_equal(same(x, np.array(3)), x[:3] * 2)
    np.testing.assert_array_equal(same(-x, np.array(2)), 1 - x[:2])


# both tiers -----------------------------------------------------------------------------------------------------------


def test_compiled_code_agrees(monkeypatch):
    def program(x, k):
        y = np.exp(x) * 2
        return y[k], y[:k].sum() + x.sum(), (y[k:] * 3 + 1).ravel(), np.zeros(k) + 1

    x = np.random.default_rng(5).normal(size=(6, 3))
    expected = program(x, 2)
    monkeypatch.setattr(tm.config, "tier", "numba")
    for ours, numpys in zip(tm.tensor(program)(x, np.array(2)), expected, strict=True):
        np.testing.assert_allclose(ours, numpys, rtol=1e-12)
    with pytest.raises(IndexError):
        tm.tensor(program)(x, np.array(6))
    with pytest.raises(ValueError, match=r"broadcast|fit"):
        tm.tensor(lambda x, y, k: (x[:k] + y).sum())(x[:, 0], x[0], np.array(2))


def test_an_index_out_of_bounds_on_a_way_that_is_not_taken(tier):

    def chosen(x, k):
        return x[k] if k < len(x) else -1.0

    def stored(x, k):
        if k < len(x):
            x[k] = 9
        return x * 2

    def constant(x, k):
        if k > 5:
            return x[7] + 0.0
        return x[0] + 0.0

    for function in (chosen, stored, constant):
        captured = tm.tensor(function)
        for k in (7, 1, -3, -4):
            for index in (np.int64(k), np.array(k)):
                given = outcome(captured, np.arange(3.0), index)
                expected = outcome(function, np.arange(3.0), index)
                if isinstance(expected, type):
                    assert given is expected
                else:
                    np.testing.assert_array_equal(given, expected)


def test_an_index_out_of_bounds_in_a_loop_without_a_iteration():
    def summed(x, n):
        total = 0.0
        for _ in range(n):
            total += x[9]
        return total

    captured = tm.tensor(summed)
    assert captured(np.arange(3.0), np.int64(0)) == 0.0
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        captured(np.arange(3.0), np.int64(2))


def test_take_looks_at_no_index_where_there_are_no_rows(tier):

    def taken(x, n):
        return np.take(x[:n, 1:], [0, -1], axis=1)

    captured = tm.tensor(taken)
    for columns, rows in itertools.product((1, 3), (0, 2)):
        x = np.arange(2.0 * columns).reshape(2, columns)
        given, expected = (outcome(f, x, np.int64(rows)) for f in (captured, taken))
        assert given is IndexError if expected is IndexError else np.array_equal(given, expected)


def test_a_number_that_does_not_fit_stored_into_one_element_of_flat():
    def stored(x, n, value):
        x.flat[n] = value
        return x

    captured = tm.tensor(stored)
    for value in (3.5, 3, -1, 300, 2.5e9):
        given, expected = (outcome(f, np.zeros(3, np.uint8), np.int64(1), value) for f in (captured, stored))
        assert given is expected if isinstance(expected, type) else np.array_equal(given, expected)
