"""Derivatives of functions that read a part of their operand, put it elsewhere, or are real as its values say."""

import warnings

import numpy as np
import pytest
import scipy

import tensormagic as tm

draw = np.random.default_rng(7)
SQUARE = draw.normal(size=(4, 4))
SYMMETRIC = SQUARE + SQUARE.T
DEFINITE = SQUARE @ SQUARE.T + np.eye(4)


def differences(f, a, h=1e-6):
    found = np.zeros_like(a)
    for index in np.ndindex(a.shape):
        step = np.zeros_like(a)
        step[index] = h
        found[index] = (f(a + step) - f(a - step)) / (2 * h)
    return found


TRIANGLES = {
    "eigvalsh": (lambda a: (np.linalg.eigvalsh(a) ** 3).sum(), SYMMETRIC),
    "eigvalsh upper": (lambda a: (np.linalg.eigvalsh(a, "U") ** 3).sum(), SYMMETRIC),
    "eigh": (lambda a: (np.linalg.eigh(a)[1][0] ** 2 * np.arange(4)).sum(), SYMMETRIC),
    "not symmetric": (lambda a: (np.linalg.eigh(a)[1][0] ** 2 * np.arange(4)).sum(), SQUARE),
    "cholesky": (lambda a: (np.linalg.cholesky(a) ** 3).sum(), DEFINITE),
    "cholesky upper": (lambda a: (np.linalg.cholesky(a, upper=True) ** 3).sum(), DEFINITE),
    "SciPy's eigh": (lambda a: (scipy.linalg.eigh(a)[1][0] ** 2 * np.arange(4)).sum(), SYMMETRIC),
    "of two": (lambda a: (scipy.linalg.eigh(SYMMETRIC, a + 9 * np.eye(4), eigvals_only=True) ** 3).sum(), DEFINITE),
    "SciPy's cholesky": (lambda a: (scipy.linalg.cholesky(a) ** 3).sum(), DEFINITE),
    "a system": (lambda a: scipy.linalg.solve(a, np.arange(4.0), assume_a="pos").sum(), DEFINITE),
}


@pytest.mark.parametrize("name", TRIANGLES)
def test_one_triangle(name):
    f, at = TRIANGLES[name]
    found = tm.grad(f)(at)
    np.testing.assert_allclose(found, differences(f, at), rtol=1e-5, atol=1e-6)
    assert not np.tril(found, -1).any() or not np.triu(found, 1).any()


def test_imaginary_parts_of_a_diagonal_are_not_read():
    z = SYMMETRIC + 1j * (SQUARE - SQUARE.T)
    found = tm.grad(lambda y: (np.linalg.eigvalsh(z + 1j * y) ** 3).sum())(np.zeros((4, 4)))
    assert not np.triu(found).any()
    assert np.tril(found, -1).all(where=np.tri(4, 4, -1, dtype=bool))


@pytest.mark.parametrize(
    ("shape", "axis", "k"), [((40,), 0, 7), ((5, 60), 1, [3, 8]), ((30, 4), 0, -2), ((3, 20), None, 50)]
)
def test_partitions_have_numpys_order(shape, axis, k):
    x, along = draw.normal(size=shape), draw.normal(size=shape)
    for f in (np.partition, np.argpartition):
        assert np.array_equal(tm.tensor(lambda x, f=f: f(x, k, axis=axis))(x), f(x, k, axis=axis))
    moved = tm.jvp(lambda x: np.partition(x, k, axis=axis), (x,), (along,))[1]
    order = np.argsort(x, axis=axis)
    places = np.argsort(np.argsort(np.partition(x, k, axis=axis), axis=axis), axis=axis)
    flat = along.ravel() if axis is None else along
    last = 0 if axis is None else axis
    assert np.array_equal(moved, np.take_along_axis(np.take_along_axis(flat, order, last), places, last))
    tm.check_grads(lambda x: np.partition(x, k, axis=axis), (x,), order=1)


def test_partitions_in_batches():
    x, places = draw.normal(size=(3, 6)), np.array([1, 2, 5])
    for f in (np.partition, np.argpartition):
        rows = [f(r, k) for r, k in zip(x, places, strict=True)]
        assert np.array_equal(tm.vmap(lambda r, k, f=f: f(r, k))(x, places), rows)
        assert np.array_equal(tm.vmap(lambda r, f=f: f(r, 2))(x), [f(r, 2) for r in x])
        assert np.array_equal(tm.vmap(lambda k, f=f: f(x, k))(places), [f(x, k) for k in places])


OF_KIND = {
    "eigvals": (lambda a: np.abs(np.linalg.eigvals(a)).sum(), (SQUARE, SYMMETRIC)),
    "eig": (lambda a: np.abs(np.linalg.eig(a)[1]).sum(), (SQUARE, SYMMETRIC)),
    "roots": (lambda p: np.abs(np.roots(p)).sum(), (np.array([1.0, -6, 11, -6]), np.array([1.0, 2, 3, 4]))),
    "sqrtm": (lambda a: np.abs(scipy.linalg.sqrtm(a)).sum(), (DEFINITE,)),
    "real_if_close": (lambda z: np.abs(np.real_if_close(z)).sum(), (np.array([1 + 1j, 2]), np.array([1 + 1e-17j, 2]))),
}


@pytest.mark.parametrize("name", OF_KIND)
def test_what_is_real_as_values_say(name):
    f, points = OF_KIND[name]
    function = tm.tensor(f)
    for at in points:
        np.testing.assert_allclose(function(at), f(at), rtol=1e-12)
        value, pull = tm.vjp(f, at)
        np.testing.assert_allclose(value, f(at), rtol=1e-12)
        np.testing.assert_allclose(pull(1.0)[0], tm.grad(f)(at), rtol=1e-9)
        along = at * 0.5
        slope = tm.linearize(f, at)[1](along)
        np.testing.assert_allclose(slope, tm.jvp(f, (at,), (along,))[1], rtol=1e-9)


def test_real_if_close_keeps_numpys_dtype():
    function = tm.tensor(lambda z: np.real_if_close(z) * 2)
    for z in (np.array([1 + 1e-17j, 2]), np.array([1 + 1j, 2]), np.array(3 + 0j), np.array([1 + 0j])):
        found, expected = np.asarray(function(z)), np.real_if_close(z) * 2
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)


@pytest.mark.skipif(not hasattr(np, "row_stack"), reason="NumPy has removed it")
def test_the_old_name_of_vstack():
    with warnings.catch_warnings(action="ignore"):
        x = draw.normal(size=3)
        assert np.array_equal(tm.tensor(lambda x: np.row_stack([x, 2 * x]))(x), [x, 2 * x])  # noqa: NPY201 (the old name)


def test_a_derivative_of_another_modules_function_is_no_librarys():
    def own(x):
        return np.sin(x)

    own.__module__ = "some_library"
    derived = tm.grad(own)
    value, pull = tm.vjp(lambda x: derived(x) * 2, 0.5)
    assert value == pytest.approx(2 * np.cos(0.5))
    assert pull(1.0)[0] == pytest.approx(-2 * np.sin(0.5))
    assert tm.grad(lambda x: derived(x) * 2)(0.5) == pytest.approx(-2 * np.sin(0.5))
