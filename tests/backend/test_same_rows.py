"""Stores into one array that keep to the rows of their iterations are one loop; others have loops of their own. Values are NumPy's."""

import numpy as np
import pytest

import tensormagic as tm

rng = np.random.default_rng(31)
A, B = rng.uniform(-1, 1, (2, 4001, 3))


def columns(a, b):
    out = np.empty((a.shape[0], 3))
    out[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    out[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    out[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return out


def crosses_in_turn(a, b):
    return a + np.cross(b, np.cross(a, b))


def stacked(a, b):
    return np.stack([np.abs(a[:, 0]), b[:, 1] - a[:, 0], a[:, 0] * b[:, 1]], axis=-1)


def rows_of_an_array(a, b):
    out = np.empty((3, a.shape[0]))
    out[0] = a[:, 0] - b[:, 0]
    out[1] = out[0] * a[:, 1]
    out[2] = out[1] - out[0]
    return out


def read_between(a, b):
    out = a.copy()
    out[:, 0] = out[:, 1] * b[:, 0]
    kept = out[:, 0] - out[:, 2]
    out[:, 2] = kept * out[:, 0]
    out[:, 0] += out[:, 2]
    return np.column_stack([out, kept])


def inner_rows(a, b):
    out = a.copy()
    out[1:-1, 0] = b[1:-1, 0] * 0.5
    out[1:-1, 1] = out[1:-1, 0] - b[1:-1, 1]
    return out


def largest_of_rows(a, b):
    out = np.zeros((a.shape[0], 3))
    out[:, 1] = a[:, 0] - b[:, 1]
    out[:, 2] = np.max(out, axis=1)
    return out


def row_above(a, b):
    out = a.copy()
    out[1:, 0] = b[1:, 0] - a[1:, 1]
    out[1:, 1] = out[:-1, 0] * b[1:, 1]
    return out


def backwards(a, b):
    out = a.copy()
    out[:, 0] = b[:, 0] - a[:, 1]
    out[:, 1] = out[::-1, 0] * b[:, 1]
    return out


def over_one_another(a, b):
    out = a.copy()
    out[:, 0:2] = b[:, 0:2] * 2
    out[:, 1:3] = out[:, 0:2] - b[:, 1:3]
    out[:, 0:2] = out[:, 1:3]
    return out


def row_by_row(a, b):
    out = a.copy()
    for k in range(3):
        out[:, 0] = out[:, 1] - b[:, k]
        out[:, 1] = out[:, 0] * a[:, 2]
        out[:, 2] += out[:, 1]
    return out


LOOPS = {columns: 1, stacked: 1, crosses_in_turn: 1, rows_of_an_array: 1, row_above: 2, backwards: 2}
OTHERS = (read_between, inner_rows, largest_of_rows, over_one_another, row_by_row)


@pytest.mark.parametrize("function", [*LOOPS, *OTHERS], ids=lambda f: f.__name__)
def test_values_are_numpys(function):
    with tm.config.using(tier="numba", math="exact"):
        found = tm.tensor(function)(A, B)
    np.testing.assert_array_equal(found, function(A, B))


@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_stores_that_keep_to_their_rows_are_one_loop(function):
    compiled = tm.compile(function, A, B)
    nests = [nest for step in compiled.kernels for nest in step.kernel.nests]
    holding = [nest for nest in nests if any(s.written is not None for s in nest.stages)]
    assert len(holding) == LOOPS[function]
