"""Searching, sorting and sets."""

# tests named elsewhere

import itertools

import numpy as np
import pytest

import tensormagic.numpy as xp
from tests.array_api.oracle import DTYPES, SHAPES, agree, data, values

CASES = list(itertools.product(DTYPES, SHAPES))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_extremes(name: str):
    options = [{}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"keepdims": True}]
    for (dtype, shape), given in itertools.product(CASES, options):
        agree(name, data(shape, dtype), **given)


def test_nonzero():
    for dtype, shape in CASES:
        agree("nonzero", data(shape, dtype))


def test_where():
    for dtype, shape in CASES:
        x = data(shape, dtype)
        agree("where", x != 0, x, data((3,), "float32"))
        agree("where", x != 0, x, {"b": True, "i": 1, "u": 1}.get(dtype.kind, 1.5))
        agree("where", x != 0, {"b": True, "i": 1, "u": 1}.get(dtype.kind, 1.5), x)


def test_searchsorted():
    for dtype in DTYPES:
        x = data((5,), dtype)
        for shape, side in itertools.product(SHAPES, ["left", "right"]):
            agree("searchsorted", np.sort(x), data(shape, dtype, 1), side=side)
            agree("searchsorted", x, data(shape, dtype, 1), side=side, sorter=np.argsort(x))


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_sorting(name: str):
    for (dtype, shape), axis in itertools.product(CASES, [-1, 0]):
        agree(name, data(shape, dtype), axis=axis, stable=True)
    agree(name, np.array([3.0, np.nan, -0.0, 0.0, np.inf]), stable=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sorting_downwards_is_stable(dtype: np.dtype):
    x = data((4, 60), dtype) if dtype.kind != "i" else data((4, 60), dtype) // 30
    order = values(xp.argsort(xp.asarray(x), descending=True))
    found = values(xp.sort(xp.asarray(x), descending=True))
    np.testing.assert_array_equal(found, np.take_along_axis(x, order, -1))
    np.testing.assert_array_equal(found, np.flip(np.sort(x), -1))
    for row, places in zip(x, order, strict=True):
        assert all(p < q for p, q in itertools.pairwise(places) if row[p] == row[q])
    np.testing.assert_array_equal(values(xp.argsort(xp.asarray(x), axis=0, descending=True)).shape, x.shape)


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse"])
def test_sets(name: str):
    for dtype, shape in CASES:
        agree(name, data(shape, dtype))
    agree(name, np.array([1.0, np.nan, 1.0, np.nan, -2.0]))


def test_different_values_come_in_order():
    for dtype, shape in CASES:
        x = data(shape, dtype)
        got = values(xp.unique_values(xp.asarray(x)))
        np.testing.assert_array_equal(got, np.unique(x))
        assert got.dtype == dtype


def test_fields_of_sets():
    x = xp.asarray([3, 1, 3])
    assert xp.unique_all(x)._fields == ("values", "indices", "inverse_indices", "counts")
    assert xp.unique_counts(x)._fields == ("values", "counts")
    assert xp.unique_inverse(x)._fields == ("values", "inverse_indices")
    assert xp.unique_inverse(xp.asarray(3)).inverse_indices.shape == ()
