"""Functions that move elements, of every data type."""

import itertools

import numpy as np
import pytest

import tensormagic.numpy as xp
from tests.array_api.oracle import DTYPES, SHAPES, agree, data

CASES = list(itertools.product(DTYPES, SHAPES))
WITH_AXES = [case for case in CASES if case[1]]


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("broadcast_to", [(2, 3), (2, 2, 3), (0,), (4,)]),
        ("permute_dims", [(), (0,), (1, 0), (2, 0, 1), (0, 0), (-1, 0)]),
        ("reshape", [-1, (3, 2), (6,), (1, -1), (0,), (5,)]),
    ],
)
def test_shapes_by_position(name: str, choices: list):
    for (dtype, shape), choice in itertools.product(CASES, choices):
        agree(name, data(shape, dtype), choice)


def test_reshape_copies_where_it_is_told_to():
    x = xp.asarray([1.0, 2.0, 3.0, 4.0])
    copied = xp.reshape(x, (2, 2), copy=True)
    copied[0, 0] = 9.0
    assert float(x[0]) == 1.0
    seen = xp.reshape(x, (2, 2), copy=False)
    seen[0, 0] = 9.0
    assert float(x[0]) == 9.0


@pytest.mark.parametrize(
    ("name", "axes"), [("expand_dims", [0, -1, -2, 7]), ("flip", [None, 0, -1, (0, -1), 7]), ("unstack", [0, -1, 7])]
)
def test_axes(name: str, axes: list):
    for (dtype, shape), axis in itertools.product(CASES, axes):
        agree(name, data(shape, dtype), axis=axis)


def test_squeeze():
    for (dtype, shape), axis in itertools.product(WITH_AXES, [0, 1, -2, (1,), (0, 1), ()]):
        agree("squeeze", data(shape, dtype), axis)
    with pytest.raises(ValueError, match="axis"):  # NumPy lets a number pass
        xp.squeeze(xp.asarray(1.0), 0)


def test_moveaxis():
    for (dtype, shape), (source, to) in itertools.product(CASES, [(0, -1), ((0, 1), (1, 0)), (-1, 0), ((), ())]):
        agree("moveaxis", data(shape, dtype), source, to)


def test_roll():
    for (dtype, shape), (shift, axis) in itertools.product(CASES, [(1, None), (-2, 0), ((1, 2), (0, -1)), (5, -1)]):
        agree("roll", data(shape, dtype), shift, axis=axis)


def test_repeat():
    for (dtype, shape), times in itertools.product(WITH_AXES, [0, 2]):
        agree("repeat", data(shape, dtype), times)
        agree("repeat", data(shape, dtype), times, axis=0)
    agree("repeat", data((2, 3), "int16"), np.array([1, 2]), axis=0)
    agree("repeat", data((3,), "float32"), np.array([0, 2, 1]))
    agree("repeat", data((0,), "float32"), np.zeros(0, np.int8))
    with pytest.raises(ValueError, match="axis 0 is out of bounds"):
        xp.repeat(xp.asarray(1.0), 2, axis=0)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_repeat_by_one_number_stretched(count: int):
    x = data((3,), "float32")
    np.testing.assert_array_equal(np.asarray(xp.repeat(xp.asarray(x), xp.full((3,), count))), np.repeat(x, count))
    with pytest.raises(ValueError, match="could not be broadcast"):
        xp.repeat(xp.asarray(x), xp.full((2,), count))


def test_tile():
    for (dtype, shape), times in itertools.product(CASES, [(2,), (2, 1), (1, 2, 2), (0,), ()]):
        agree("tile", data(shape, dtype), times)


@pytest.mark.parametrize("name", ["concat", "stack"])
def test_joining(name: str):
    for (dtype, shape), axis in itertools.product(CASES, [0, -1, 1, 7]):
        agree(name, [data(shape, dtype), data(shape, dtype, 1)], axis=axis)
    for one, other in itertools.permutations(DTYPES, 2):
        agree(name, (data((2,), one), data((2,), other)))
    agree(name, [data((2,), "int8"), data((2, 2), "int8")])
    agree(name, [])


def test_concat_of_flattened_arrays():
    for dtype in DTYPES:
        agree("concat", [data((2, 3), dtype), data((), dtype), data((2,), dtype)], axis=None)


def test_broadcast_arrays():
    for dtype, shape in CASES:
        agree("broadcast_arrays", data(shape, dtype), data((3,), "int8"))
        agree("broadcast_arrays", data(shape, dtype))


@pytest.mark.parametrize("indices", [[0, 1, 0], [-1], [], [1, 7]])
def test_take(indices: list[int]):
    for dtype, shape in ((d, s) for d, s in WITH_AXES if 0 not in s):
        for axis in (0, -1):
            agree("take", data(shape, dtype), np.asarray(indices, np.int64), axis=axis)
    agree("take", data((3,), "float32"), np.asarray(indices, np.int32))


def test_take_needs_an_axis_of_more_than_one():
    with pytest.raises(ValueError, match="axis"):
        xp.take(xp.ones((2, 2)), xp.asarray([0]))


def test_take_along_axis():
    for dtype, shape in ((d, s) for d, s in WITH_AXES if 0 not in s):
        agree("take_along_axis", data(shape, dtype), np.zeros(shape, np.int64))
        agree("take_along_axis", data(shape, dtype), np.full(shape, -1), axis=0)
