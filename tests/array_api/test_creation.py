"""Functions that make arrays, of every data type and shape, and what they refuse."""

import itertools

import numpy as np
import pytest

import tensormagic as tm
import tensormagic.numpy as xp
from tests.array_api.oracle import DTYPES, SHAPES, agree, data, values


@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_constants(name: str):
    for shape in [*SHAPES, 3]:
        agree(name, shape)
        for dtype in DTYPES:
            agree(name, shape, dtype=dtype)


@pytest.mark.parametrize("name", ["zeros_like", "ones_like"])
def test_constants_like_an_array(name: str):
    for dtype, shape in itertools.product(DTYPES, SHAPES):
        agree(name, data(shape, dtype))
        agree(name, data(shape, dtype), dtype=np.dtype("float32"))


def test_empty_arrays_have_shape_and_type():
    for dtype in DTYPES:
        assert (xp.empty((2, 3), dtype=dtype).dtype, xp.empty((2, 3), dtype=dtype).shape) == (dtype, (2, 3))
        like = xp.empty_like(xp.zeros((4,), dtype=dtype))
        assert (like.dtype, like.shape) == (dtype, (4,))


def test_full():
    for shape in SHAPES:
        for number in (True, 3, 2.5, 1j):
            agree("full", shape, number)
        for dtype in DTYPES:
            agree("full", shape, True if dtype.kind == "b" else 3, dtype=dtype)
            agree("full_like", data(shape, dtype), True if dtype.kind == "b" else 3)
    agree("full", (2,), 300, dtype=np.dtype("int8"))
    agree("full_like", data((2,), "uint8"), -1)


def test_arange():
    for bounds in [(5,), (2, 7), (2, 9, 3), (9, 2, -2), (0,), (5, 2), (0.0, 2.0, 0.3), (2.5,), (-1.5, 2)]:
        agree("arange", *bounds)
        for dtype in (d for d in DTYPES if d.kind in "iuf"):
            if dtype.kind == "f" or all(isinstance(b, int) for b in bounds):
                agree("arange", *bounds, dtype=dtype)


def test_linspace():
    for number, end in itertools.product((0, 1, 2, 7), (True, False)):
        agree("linspace", 0.0, -3.0, number, endpoint=end)
        agree("linspace", 0, 1 + 2j, number, endpoint=end)
        for dtype in DTYPES:
            agree("linspace", 0, 10, number, dtype=dtype, endpoint=end)


def test_eye_and_triangles():
    for dtype in DTYPES:
        agree("eye", 3, dtype=dtype)
        agree("eye", 3, 4, k=1, dtype=dtype)
        for shape, k in itertools.product([(3, 3), (2, 3), (2, 0, 3), (2, 3, 2)], (-1, 0, 2)):
            agree("tril", data(shape, dtype), k=k)
            agree("triu", data(shape, dtype), k=k)
    agree("eye", 2, 3, k=-1)
    agree("eye", 0)


def test_meshgrid():
    x, y, number = data((3,), "float32"), data((2,), "int8"), data((), "float64")
    for arrays in [(), (x,), (x, x), (x, x, x), (number,), (x, y)]:
        agree("meshgrid", *arrays)
        agree("meshgrid", *arrays, indexing="ij")


def test_asarray_of_numbers_lists_and_arrays():
    for obj in [True, 3, 2.5, 1j, [1, 2], [[1.0, 2.0], [3.0, 4.0]], [], [True], (1, 2.5), np.float32(2), range(3)]:
        agree("asarray", obj)
    for dtype, to in itertools.product(DTYPES, DTYPES):
        if to.kind == "c" or dtype.kind != "c":
            array = np.abs(data((2, 3), dtype)).astype(dtype)
            np.testing.assert_array_equal(values(xp.asarray(array, dtype=to)), np.asarray(array, dtype=to))
            np.testing.assert_array_equal(values(xp.asarray(xp.asarray(array), dtype=to)), np.asarray(array, dtype=to))


def test_asarray_of_lists_that_hold_lazy_arrays():
    x = xp.asarray([1.0, 2.0])
    np.testing.assert_array_equal(values(xp.asarray([x[0], 5.0])), [1.0, 5.0])
    np.testing.assert_array_equal(values(xp.asarray([x, x])), [[1.0, 2.0], [1.0, 2.0]])


def test_asarray_copies_as_it_is_told():
    x = xp.asarray([1.0, 2.0])
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=False) is x
    copied = xp.asarray(x, copy=True)
    copied[0] = 9.0
    assert float(x[0]) == 1.0
    with pytest.raises(ValueError, match="avoid copy"):
        xp.asarray(x, dtype=xp.float32, copy=False)
    with pytest.raises(ValueError, match="avoid copy"):
        xp.asarray(np.ones(2), copy=False)


def test_asarray_does_not_follow_later_stores_into_the_data():
    array = np.array([1.0, 2.0])
    x = xp.asarray(array)
    array[0] = 9.0
    assert float(x[0]) == 1.0


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: xp.asarray([300], dtype=xp.int8), OverflowError),
        (lambda: xp.asarray(["a"]), TypeError),
        (lambda: xp.asarray([[1, 2], [3]]), ValueError),
        (lambda: xp.zeros(-1), ValueError),
        (lambda: xp.zeros(3, device="gpu"), ValueError),
        (lambda: xp.asarray(1, device="gpu"), ValueError),
        (lambda: xp.meshgrid(xp.ones(2), indexing="ji"), ValueError),
    ],
)
def test_what_is_refused(make, error):
    with pytest.raises(error):
        make()


def test_the_device_may_be_named():
    for make in (xp.zeros, xp.ones, xp.empty):
        assert isinstance(make(3, device="cpu"), tm.Tensor)
    assert xp.arange(3, device="cpu").device == xp.eye(3, device=None).device == "cpu"
