"""Results that are real or complex as their values say: functions give NumPy's dtype at each call."""

import numpy as np
import pytest

import tensormagic as tm

REAL = np.diag([3.0, 1.0, 2.0]) + 0.1
ITERATION = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
RNG = np.random.default_rng(5)


def same(ours, numpys):
    ours, numpys = (v if isinstance(v, tuple) else (v,) for v in (ours, numpys))
    for a, b in zip(ours, numpys, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(a, b)


def values(a):
    return np.linalg.eigvals(a)


def vectors(a):
    return tuple(np.linalg.eig(a))


def sums(a):
    w, v = np.linalg.eig(a)
    return w.sum() * 2, np.abs(v).sum(axis=0), np.linalg.eigvals(a @ a) + 1


def two(a):
    return np.linalg.eigvals(a), np.linalg.eigvals(a.T @ a), np.linalg.eigvals(a - a.T)


def roots(a):
    return np.roots(a[0] + 1) * 2


@pytest.mark.parametrize("function", [values, vectors, sums, two, roots])
def test_the_dtype_follows_the_values_call_by_call(function):
    captured = tm.tensor(function)
    drawn = [RNG.normal(size=(n, n)).astype(t) for n in (2, 3) for t in (np.float64, np.float32) for _ in range(4)]
    for matrix in [REAL, ITERATION, REAL, ITERATION, ITERATION.astype(np.float32), np.eye(2), *drawn]:
        same(captured(matrix), function(matrix))


def test_each_way_is_traced_once():
    f = tm.tensor(values)
    graphs = set()
    for matrix in [REAL, ITERATION] * 5:
        f(matrix)
        graphs |= {id(p.graph) for programs in f._kinds.values() for p, _ in programs}
    assert len(graphs) == len(
        {np.linalg.eigvals(m).dtype for m in (REAL, ITERATION)}
    )  # NumPy 2.5 has complex ones alone


def test_gradients_and_batches():
    def largest(a):
        return np.abs(np.linalg.eigvals(a)).max()

    for matrix in (REAL, ITERATION * 1.5 + REAL / 7, REAL):
        differences = np.zeros_like(matrix)
        for k in np.ndindex(matrix.shape):
            step = np.zeros_like(matrix)
            step[k] = 1e-6
            differences[k] = (largest(matrix + step) - largest(matrix - step)) / 2e-6
        np.testing.assert_allclose(tm.grad(largest)(matrix), differences, atol=1e-7)
    stack = np.stack([ITERATION, ITERATION + np.eye(3)])
    np.testing.assert_allclose(tm.vmap(values)(stack), np.linalg.eigvals(stack))


def test_roots_have_gradients():
    def largest(p):
        return np.abs(np.roots(p)).max()

    for p in (np.array([2.0, -3.0, -5.0, 1.0]), np.array([1.0, 0.3, 2.0, 0.5])):
        step = 1e-6 * np.eye(4)
        differences = [(largest(p + s) - largest(p - s)) / 2e-6 for s in step]
        np.testing.assert_allclose(tm.grad(largest)(p), differences, atol=1e-7)


def test_roots_whose_number_depends_on_data_are_refused_and_trailing_zeros_are_roots():
    captured = tm.tensor(lambda p: np.roots(p))
    same(captured(np.array([2.0, 1.0, 0.0, 0.0])), np.roots([2.0, 1.0, 0.0, 0.0]))
    with pytest.raises(tm.GuardError, match="leading coefficient is 0"):
        captured(np.array([0.0, 1.0, 2.0]))
    same(captured(np.array([2, 1, 1])), np.roots([2, 1, 1]))


def test_what_is_both_in_the_iterations_of_a_loop_is_an_error():
    @tm.tensor
    def f(a):
        total = 0.0
        for k in range(2):
            total = total + np.abs(np.linalg.eigvals(a[k])).sum()
        return total

    assert f(np.stack([ITERATION, ITERATION])) == pytest.approx(8.0)
    both = np.stack([ITERATION, REAL])
    try:
        assert f(both) == pytest.approx(np.abs(np.linalg.eigvals(both)).sum())
    except tm.GuardError as error:
        assert "NumPy's dtype depends on the values" in str(error)  # noqa: PT017 (a value that is right is as good)


def test_nothing_is_printed_twice(capfd):
    @tm.tensor
    def f(a):
        print("once", a[0, 0])
        return np.linalg.eigvals(a)

    f(REAL)
    capfd.readouterr()
    same(f(ITERATION), np.linalg.eigvals(ITERATION))
    assert capfd.readouterr().out.count("once") == 1


def test_stores_are_done_once():
    @tm.tensor
    def f(a):
        found = np.abs(np.linalg.eigvals(a)).sum()
        a[0, 0] += 1.0
        return found

    def g(a):
        found = np.abs(np.linalg.eigvals(a)).sum()
        a[0, 0] += 1.0
        return found

    for matrix in (REAL, ITERATION):
        ours, numpys = matrix.copy(), matrix.copy()
        assert f(ours) == pytest.approx(g(numpys))
        np.testing.assert_array_equal(ours, numpys)
