"""``tm.cond``, ``while_loop``, ``fori_loop`` and ``scan``: Python's if, while and for, with derivatives and batches."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, DTypeError, ShapeError

RNG = np.random.default_rng(2)
A = RNG.normal(size=(3, 3)) / 2
X = RNG.normal(size=3)


def branchy(x):
    return tm.cond(x.sum() > 0, lambda v: np.sin(v) @ A, lambda v: v * x.sum(), x)


def plain_branchy(x):
    return np.sin(x) @ A if x.sum() > 0 else x * x.sum()


@pytest.mark.parametrize("sign", [1, -1])
def test_cond(sign):
    x = sign * np.abs(X)
    np.testing.assert_allclose(tm.tensor(branchy)(x), plain_branchy(x))
    step = 1e-6 * np.eye(3)
    expected = np.stack([(plain_branchy(x + s) - plain_branchy(x - s)) / 2e-6 for s in step], axis=-1)
    np.testing.assert_allclose(tm.jacobian(branchy)(x), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(tm.grad(lambda x: branchy(x).sum())(x), expected.sum(0), rtol=1e-6, atol=1e-8)


def test_cond_on_plain_values():
    assert tm.cond(True, lambda x: x * 2, lambda x: x - 1, 5.0) == 10.0
    assert tm.cond(False, lambda x: x * 2, lambda x: x - 1, 5.0) == 4.0
    found = tm.cond(X[0] > 1e9, lambda p: (p["a"], 1.0), lambda p: (p["b"] @ A, 2), {"a": X, "b": 2 * X})
    np.testing.assert_allclose(found[0], 2 * X @ A)
    assert found[1] == 2.0


def test_cond_in_a_batch():
    x = RNG.normal(size=(6, 3))
    np.testing.assert_allclose(tm.vmap(branchy)(x), [plain_branchy(row) for row in x])
    np.testing.assert_allclose(tm.vmap(tm.jacobian(branchy))(x), [tm.jacobian(branchy)(row) for row in x])


def power(x, n):
    return tm.fori_loop(0, n, lambda k, v: np.tanh(A @ v) + k * x, x)


def plain_power(x, n):
    v = x
    for k in range(n):
        v = np.tanh(A @ v) + k * x
    return v


@pytest.mark.parametrize("iterations", [0, 1, 4])
def test_fori_loop(iterations):
    np.testing.assert_allclose(tm.tensor(power)(X, iterations), plain_power(X, iterations))
    found = tm.jvp(lambda x: power(x, iterations), (X,), (A[0],))[1]
    expected = (plain_power(X + 1e-6 * A[0], iterations) - plain_power(X - 1e-6 * A[0], iterations)) / 2e-6
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    stack = RNG.normal(size=(4, 3))
    np.testing.assert_allclose(
        tm.vmap(lambda x: power(x, iterations))(stack), [plain_power(x, iterations) for x in stack]
    )


def test_the_bounds_of_a_loop_are_data_or_sizes():
    f = tm.tensor(lambda x: tm.fori_loop(1, x.shape[0], lambda k, total: total + x[k] * k, 0.0))
    for size in (3, 6):
        x = RNG.normal(size=size)
        np.testing.assert_allclose(f(x), (x * np.arange(size)).sum())
    g = tm.tensor(lambda n: tm.fori_loop(0, n.astype(int).sum(), lambda _k, v: v * 2.0, 1.0))
    assert g(np.array([2.0, 3.0])) == 32.0


def test_numbers_take_the_type_that_a_iteration_gives_them():
    found = tm.fori_loop(0, 3, lambda _k, s: s + X.astype(np.float32).sum(), 0)
    assert type(found) is np.float32
    assert type(tm.fori_loop(0, 3, lambda _k, s: s * 2, 1.5)) is float
    assert tm.fori_loop(0, 3, lambda k, s: s + k, 0) == 3


def newton(a):
    return tm.while_loop(lambda x: np.abs(x * x - a) > 1e-13 * a, lambda x: (x + a / x) / 2, a)


def test_while_loop():
    np.testing.assert_allclose(tm.tensor(newton)(2.0), np.sqrt(2))
    np.testing.assert_allclose(tm.jvp(newton, (2.0,), (1.0,))[1], 0.5 / np.sqrt(2))
    values = np.array([0.5, 2.0, 900.0])
    np.testing.assert_allclose(tm.vmap(newton)(values), np.sqrt(values))
    state = tm.while_loop(lambda s: s["k"] < 5, lambda s: {"k": s["k"] + 1, "v": A @ s["v"]}, {"k": 0, "v": X})
    np.testing.assert_allclose(state["v"], np.linalg.matrix_power(A, 5) @ X)
    assert state["k"] == 5


def recurrence(w, xs):
    def iteration(h, x):
        h = np.tanh(w @ h + x)
        return h, (h.sum(), h * 2)

    return tm.scan(iteration, np.zeros(3), xs)


def plain_recurrence(w, xs):
    h, sums, doubles = np.zeros(3), [], []
    for x in xs:
        h = np.tanh(w @ h + x)
        sums.append(h.sum())
        doubles.append(2 * h)
    return h, (np.array(sums), np.array(doubles))


def test_scan():
    xs = RNG.normal(size=(5, 3))
    last, (sums, doubles) = tm.tensor(recurrence)(A, xs)
    expected = plain_recurrence(A, xs)
    np.testing.assert_allclose(last, expected[0])
    np.testing.assert_allclose(sums, expected[1][0])
    np.testing.assert_allclose(doubles, expected[1][1])
    change = tm.jvp(lambda w: recurrence(w, xs)[1][0], (A,), (np.eye(3),))[1]
    shifted = [plain_recurrence(A + s * 1e-6 * np.eye(3), xs)[1][0] for s in (1, -1)]
    np.testing.assert_allclose(change, (shifted[0] - shifted[1]) / 2e-6, rtol=1e-6, atol=1e-8)
    stack = RNG.normal(size=(4, 5, 3))
    np.testing.assert_allclose(
        tm.vmap(lambda xs: recurrence(A, xs)[0])(stack), [plain_recurrence(A, x)[0] for x in stack]
    )


def test_scan_on_plain_values():
    total, seen = tm.scan(lambda t, x: (t + x, t * x), 0.0, np.array([1.0, 2.0, 3.0]))
    assert total == 6.0
    np.testing.assert_array_equal(seen, [0, 2, 9])
    last, seen = tm.scan(lambda t, _: (t * 2.0, t > 2), 1.0, None, length=4)
    assert last == 16.0
    np.testing.assert_array_equal(seen, [False, False, True, True])


def test_what_is_constant_is_computed_outside():
    graph = tm.tensor(lambda x: tm.fori_loop(0, 9, lambda _k, v: v * np.exp(A @ x).sum(), x)).graph(X)
    assert "exp" in {n.op.name for n in graph.nodes}
    (loop,) = [n for n in graph.nodes if n.op.name == "loop"]
    assert {n.op.name for n in loop["body"].nodes} <= {"parameter", "broadcast", "multiply"}


def test_nested():
    def table(n):
        return tm.fori_loop(0, n, lambda i, t: tm.fori_loop(0, n, lambda j, u: u + i * j, t), 0)

    assert tm.tensor(table)(4) == sum(i * j for i in range(4) for j in range(4))
    found = tm.fori_loop(0, 6, lambda k, v: tm.cond(k % 2 == 0, lambda u: u + 1, lambda u: u * 3, v), 1.0)
    assert found == (((1 + 1) * 3 + 1) * 3 + 1) * 3


def test_errors_say_what_to_do():
    with pytest.raises(DTypeError, match=r"carry number 0 begins as float32.* and becomes float64"):
        tm.fori_loop(0, 3, lambda _k, x: x * X, X.astype(np.float32))
    with pytest.raises(ShapeError, match=r"carry number 0 begins with shape \(3,\) and becomes \(\)"):
        tm.fori_loop(0, 3, lambda _k, x: x.sum(), X)
    with pytest.raises(ShapeError, match=r"the branches give shapes \(3,\) and \(\)"):
        tm.cond(True, lambda x: x, lambda x: x.sum(), X)
    with pytest.raises(DTypeError, match="different containers"):
        tm.cond(True, lambda x: (x, x), lambda x: x, X)
    with pytest.raises(DTypeError, match="a different container"):
        tm.while_loop(lambda s: s[0] < 3, lambda s: s[0] + 1, (0.0, 1.0))
    with pytest.raises(ShapeError, match="different lengths: 3, 4"):
        tm.scan(lambda c, x: (c, x[0]), 0.0, (X, np.ones(4)))
    with pytest.raises(ShapeError, match="xs is empty"):
        tm.scan(lambda c, x: (c, c), 0.0, None)

    def stores(_k, v):
        v[0] = 1.0
        return v

    with pytest.raises(CaptureError, match="stores stores into its argument"):
        tm.fori_loop(0, 3, stores, X)


def b30(r, x):
    return tm.cond(x <= 1, lambda: r, lambda: b30(r * x, x - 1))


def of_operands(r, x):
    return tm.cond(x <= 1, lambda r, x: r, lambda r, x: of_operands(r * x, x - 1), r, x)


def fibonacci(n):
    return tm.cond(n < 2, lambda: n, lambda: fibonacci(n - 1) + fibonacci(n - 2))


def is_even(n):
    return tm.cond(n <= 0, lambda: 1.0, lambda: is_odd(n - 1))


def is_odd(n):
    return tm.cond(n <= 0, lambda: 0.0, lambda: is_even(n - 1))


@tm.tensor
def decorated(x):
    return tm.cond(x <= 1, lambda: 1.0, lambda: x * decorated(x - 1))


def collatz(n, k):
    return tm.cond(
        n == 1,
        lambda: k,
        lambda: tm.cond(n % 2 == 0, lambda: collatz(n // 2, k + 1), lambda: collatz(3 * n + 1, k + 1)),
    )


@pytest.mark.parametrize("function", [b30, of_operands])
def test_b30_cond_calls_the_function_around_it(function):
    for f in (function, tm.tensor(function)):
        assert [f(1.0, x) for x in (1.0, 3.0, 5.0)] == [1.0, 6.0, 120.0]
        assert f(1.0, 30.0) == pytest.approx(2.6525285981219103e32)
    assert tm.grad(function)(1.0, 3.0) == 6.0
    assert tm.grad(function, 1)(1.0, 3.0) == 5.0  # of x * (x - 1)
    np.testing.assert_array_equal(tm.vmap(function)(np.ones(4), np.arange(4.0)), [1, 1, 2, 6])
    np.testing.assert_array_equal(function(np.array([1.0, 2.0]), 4.0), [24.0, 48.0])


def test_cond_calls_several_functions_and_one_twice():
    assert [fibonacci(n) for n in (1, 2, 7, 10.0)] == [1, 1, 13, 55.0]
    assert [is_even(float(n)) for n in range(4)] == [1.0, 0.0, 1.0, 0.0]
    assert (decorated(5.0), tm.grad(decorated)(5.0)) == (120.0, 154.0)
    assert collatz(27, 0) == 111

    def local(x, n):
        return tm.cond(n <= 0, lambda: x, lambda: local(np.sin(x), n - 1))

    x = np.arange(3.0)
    np.testing.assert_allclose(local(x, 3), np.sin(np.sin(np.sin(x))), rtol=1e-15)


def test_recursion_of_cond_without_an_end_is_refused():
    def endless(x):
        return tm.cond(x > 0, lambda: endless(x + 1), lambda: endless(x))

    with pytest.raises(tm.CaptureError, match="endless always calls itself"):
        endless(1.0)


@pytest.mark.parametrize("function", [lambda c, x: c, lambda c, x: (c, x, x), lambda c, x: x])
def test_a_function_of_scan_that_gives_no_pair(function):
    with pytest.raises(tm.DTypeError, match="does not give a pair"):
        tm.scan(function, 0.0, np.ones((4, 2)))
