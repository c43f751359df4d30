"""Reductions and running sums: every data type, axis and option."""

import itertools

import numpy as np
import pytest

import tensormagic.numpy as xp
from tests.array_api.oracle import DTYPES, SHAPES, agree, data

CASES = list(itertools.product(DTYPES, SHAPES))
AXES = [{}, {"axis": 0}, {"axis": (0, 1)}, {"axis": -1, "keepdims": True}, {"keepdims": True}, {"axis": ()}]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "std", "var", "all", "any", "count_nonzero"])
def test_reductions(name: str):
    ulps = 4 if name in {"mean", "std", "var"} else 0  # the division of complex sums, and the order of squares
    for (dtype, shape), options in itertools.product(CASES, AXES):
        agree(name, data(shape, dtype), **options, tolerance=ulps)


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_sums_in_a_named_type(name: str):
    for dtype, to in itertools.product(DTYPES, ["float32", "int64", "complex128"]):
        agree(name, data((2, 3), dtype), dtype=np.dtype(to))


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_small_integers_are_added_as_the_default_integer(name: str):
    for dtype, to in [("int8", "int64"), ("int32", "int64"), ("uint8", "uint64"), ("float32", "float32")]:
        assert getattr(xp, name)(xp.ones(3, dtype=np.dtype(dtype))).dtype == to


@pytest.mark.parametrize("name", ["std", "var"])
def test_corrections(name: str):
    for dtype, correction in itertools.product(["float32", "float64"], [0.0, 1.0, 0.5, 2]):
        agree(name, data((2, 3), dtype), correction=correction, axis=-1, tolerance=4)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running_sums(name: str):
    options = [{}, {"axis": 0}, {"axis": -1, "include_initial": True}, {"axis": 0, "dtype": np.dtype("float64")}]
    for (dtype, shape), given in itertools.product(CASES, options):
        agree(name, data(shape, dtype), **given)


def test_diff():
    for (dtype, shape), options in itertools.product(CASES, [{}, {"axis": 0}, {"n": 2}, {"n": 0}, {"n": -1}]):
        agree("diff", data(shape, dtype), **options)
    x = data((2, 3), "float32")
    agree("diff", x, prepend=x, append=x[:, :1])
