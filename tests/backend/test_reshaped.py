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
