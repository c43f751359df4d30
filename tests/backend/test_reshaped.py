"""Functions of reshaped arrays: taken of what is below the reshapes, with the values that NumPy has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def of_transposes(x, n):
    y = x[::-1] - n
    return x.T.ravel() * y.T.ravel()


def with_rows_repeated(x, n):
    y = x[::-1] - n
    return np.reshape(np.transpose(x), -1) + np.repeat(np.reshape(y[:, 0], (1, -1)), x.shape[1], axis=0).ravel()


def of_values_and_a_transpose(x, n):
    y = x[::-1] - n
    return np.maximum(np.ravel(np.abs(x)), np.ravel(y.T[:, : x.shape[0]].T)) - 1.5


def with_numbers(x, n):
    y = x[::-1] - n
    return 2 * np.reshape(x.T, (2, -1)) - np.float32(3) / np.reshape(np.abs(y.T) + 1, (2, -1))


def other_order(x, n):
    y = x[::-1] - n
    return np.where(x.reshape(-1, order="F") > 0, y.reshape(-1, order="F"), -x.reshape(-1, order="F"))


def one_of_another_shape(x, n):
    y = x[::-1] - n
    return x.T.ravel() * y.ravel()


def one_that_is_there(x, n):
    y = x[::-1] - n
    return x.ravel() * y.T.ravel()


def both_wanted(x, n):
    y = x[::-1] - n
    a = x.T.ravel()
    return a * y.T.ravel(), a


def extents_of_one(x, n):
    y = x[::-1] - n
    return (x.T[:, None, :] * 2).ravel() * y.T.ravel()[None, :]


def folded(x, n):
    y = x[::-1] - n
    return (x.T.ravel() * y.T.ravel()).sum(), (x.T.reshape(2, -1) + y.T.reshape(2, -1)).max(axis=1)


PROGRAMS = [
    of_transposes, with_rows_repeated, of_values_and_a_transpose, with_numbers, other_order, one_of_another_shape,
    one_that_is_there, both_wanted, extents_of_one, folded,
]  # fmt: skip


def given() -> list[tuple[np.ndarray[Any, Any], Any]]:
    rng = np.random.default_rng(0)
    found = []
    for shape in ((6, 4), (1, 4), (6, 1), (130, 70)):
        x = rng.standard_normal(shape)
        found += [(x, 0.5), (x.astype(np.float32), 2), (np.asfortranarray(x), 0.5), (x[::-1], 0.5), (x[:, ::-1], 1)]
        found += [((9 * x).astype(int), 2), (x, np.float32(0.5))]
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_functions_of_reshaped_arrays_are_numpys(program):
    with tm.config.using(tier="numba", math="exact"):
        captured = tm.tensor(program)
        for x, n in given():
            expected, found = program(x, n), captured(x, n)
            for e, f in zip(*(v if isinstance(v, tuple) else (v,) for v in (expected, found)), strict=True):
                assert f.dtype == e.dtype
                assert f.shape == e.shape
                if program is folded:
                    np.testing.assert_allclose(f, e, rtol=1e-5)
                else:
                    np.testing.assert_array_equal(f, e)


def test_transposed_arrays_are_read_where_they_are():
    compiled = tm.compile(of_transposes, np.ones((30, 20)), 0.5)
    memory = compiled.memory(np.ones((30, 20)), 0.5)
    assert len(compiled.kernels) == 1
    assert int(memory.working) == int(memory.results) + 8  # and the number


def steps_of_a_fractal(z, c, n):
    z, count = z.copy(), np.zeros(z.shape, int)
    for k in range(n):
        inside = np.abs(z) < 2
        count[inside] = k
        z[inside] = z[inside] ** 2 + c[inside]
    return z, count


def round_trips(z, c, n):
    flat = (z.ravel() * 2 + c.ravel()).reshape(z.shape)
    turned = np.where(c.ravel() > 0, z.ravel() - n, 1.5).reshape(z.shape[0], -1)
    return flat, turned, flat.ravel() - turned.ravel()


def one_that_is_read_flat_too(z, c, n):
    flat = z.ravel() * 2 + n
    return flat, (flat + 1).reshape(z.shape), np.cumsum(flat.reshape(z.shape), axis=0)


@pytest.mark.parametrize(
    "program", [steps_of_a_fractal, round_trips, one_that_is_read_flat_too], ids=lambda f: f.__name__
)
def test_functions_of_arrays_that_are_reshaped_back_are_numpys(program):
    rng = np.random.default_rng(0)
    with tm.config.using(tier="numba", math="exact"):
        captured = tm.tensor(program)
        for shape in ((6, 4), (1, 5), (40, 70), (2, 3, 4)):
            z, c = rng.standard_normal((2, *shape)) + (
                1j * rng.standard_normal(shape) if program is steps_of_a_fractal else 0
            )
            expected, found = program(z, c, 7), captured(z, c, 7)
            for e, f in zip(expected, found, strict=True):
                assert f.dtype == e.dtype
                np.testing.assert_allclose(f, e, rtol=1e-12)


def test_what_masks_over_two_axes_select_is_computed_where_the_mask_is():
    complexes = "complex128[n, m]"
    compiled = tm.compile(steps_of_a_fractal, complexes, complexes, 7)
    (loop,) = [k for k in compiled.kernels if "iteration" in k.source]
    _, _, iterations = loop.source.partition("for iteration")
    assert iterations.count("for i in range(start, stop):") == 1
