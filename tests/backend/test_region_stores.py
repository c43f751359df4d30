"""Compiled stores, joins, running folds and indices against the NumPy tier: values, order, errors."""

import numpy as np
import pytest

from tensormagic.ir.size import atom
from tensormagic.ops import fold, move
from tensormagic.ops.fold import CUMSUM, MAX
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.scatter import scatter_add
from tensormagic.ops.leaf import constant
from tensormagic.ops.move import broadcast, flip, reshape, slice_, transpose
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import add_at, set_at
from tests.backend.graphs import prepared
from tests.backend.regions import (
    A,
    L,
    M,
    V,
    compiled_alike,
    element,
    number,
    put,
    repeat,
    rng,
    total,
    variable,
)

# stores, joins and running folds without loops around them -------------------------------------------------------------------


def test_stores_into_values_inputs_and_one_another():
    first = put(V, number(3.0), 1)
    second = put(first, element(first, slice(0, 3)) * 2, slice(2, 5))
    compiled_alike(first, second, put(V * 2, number(1.0), 0), add_at(second, V, ((0, L, 1),)))


def test_rank_0_and_empty_stores():
    nothing = variable("nothing", np.zeros((0, 3)))
    compiled_alike(
        set_at(variable("number", np.array(2.0)), number(5.0), ()),
        add_at(variable("other", np.array(2.0)), number(5.0), ()),
        set_at(V, slice_(V, ((0, 0, 1),)), ((2, 0, 1),)),
        add_at(nothing, nothing * 2, ((0, 0, 1), (0, 3, 1))),
    )


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64"])
def test_running_folds_and_places_of_extremes(dtype):
    data = rng.integers(0, 2 if dtype == "bool" else 4, (3, 4, 5)).astype(dtype)
    x = variable("x", data)
    found = [fold.row(op, x, (k,)) for op in (CUMSUM, fold.CUMPROD, fold.CUMMAX, fold.CUMMIN) for k in range(3)]
    found += [fold.fold(op, x, axes) for op in (fold.ARGMAX, fold.ARGMIN) for axes in ((0,), (1,), (2,), (0, 1, 2))]
    compiled_alike(*found)


def test_running_folds_along_an_axis_with_one_element():
    row = variable("row", rng.integers(0, 9, (1, 4)).astype("i2"))
    compiled_alike(*(fold.row(op, row, (k,)) for op in (CUMSUM, fold.CUMMAX) for k in range(2)))


def test_the_first_nan_is_the_extreme():
    values = np.array([[1.0, np.nan, 3, np.nan], [np.nan, 1, 2, 3], [1, 1, 0, 0], [-np.inf, np.inf, np.inf, -np.inf]])
    x = variable("x", values)
    compiled_alike(
        *(fold.fold(op, x, (1,)) for op in (fold.ARGMAX, fold.ARGMIN)),
        *(fold.row(op, x, (1,)) for op in (fold.CUMMAX, fold.CUMMIN)),
    )


def test_joins():
    compiled_alike(
        move.concatenate([V, V * 2, flip(V, (0,))], 0),
        move.concatenate([A, A + 1], 0),
        move.concatenate([A, transpose(transpose(A)) * 2, broadcast(reshape(V, (1, L)), A.type.shape)], 1),
    )


# indices --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint32"])
def test_elements_by_index_arrays(dtype):
    places = np.array([[0, 3, 2], [2, 1, 4]])
    given = places if dtype[0] == "u" else np.where(places % 2, places - 5, places)
    index = variable("index", given.astype(dtype))
    compiled_alike(
        gather(A, index, 0), gather(A, index, 1), gather(scalar.exp(V), index, 0), total(gather(V * 2, index, 0))
    )


@pytest.mark.parametrize("wrong", [5, -6, 100])
def test_an_index_out_of_bounds_is_numpys_error(wrong):
    index = variable("index", np.array([0, wrong, 2]))
    handle, sizes, values = prepared(gather(A, index, 0) * 2)
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0 with size 5"):
        handle.run(sizes, *values)
    good = [np.array([1, 2, 3]) if v.ndim == 1 else v for v in values]
    np.testing.assert_array_equal(handle.run(sizes, *good)[0], A["source"].value[[1, 2, 3]] * 2)


def test_stores_by_index_arrays_happen_in_order():
    index = variable("index", np.array([4, 0, 4, -1, 4, 2]))
    compiled_alike(scatter_add(V, index, V * 2), scatter_add(A, index, broadcast(reshape(V, (L, 1)), (L, M)), 0))
    compiled_alike(*repeat(3, [V], lambda _k, a, i: scatter_add(a, i, a), index), ulps=16, scale=1.0)


def test_counts_by_a_computed_index():
    data = variable("data", rng.integers(0, 5, 40))
    (n,) = data.type.shape

    def body(k, counts, d):
        return scatter_add(counts, reshape(element(d, k), (1,)), broadcast(constant(np.int64(1)), (1,)))

    compiled_alike(*repeat(n, [broadcast(constant(np.int64(0)), (5,))], body, data))


def test_an_error_in_a_loop_leaves_it():
    index = variable("index", np.array([1, 2, 9, 0]))

    def body(k, a, i):
        return put(a, reshape(gather(a, element(i, k), 0), ()), 0)

    handle, sizes, values = prepared(*repeat(4, [V], body, index))
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 6"):
        handle.run(sizes, *values)


def test_a_maximum_of_nothing_in_a_loop_is_an_error_only_where_it_is_reached():
    def body(k, a):
        return put(a, fold.fold(MAX, slice_(a, ((0, atom(k), 1),)), (0,)), k)

    handle, sizes, values = prepared(*repeat(L, [V], body))
    with pytest.raises(ValueError, match="zero-size array to reduction operation max"):
        handle.run(sizes, *values)
    compiled_alike(*repeat(0, [V], body))
