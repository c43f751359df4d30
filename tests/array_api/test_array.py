"""The array object as the standard has it: attributes, operators, conversion of one element, exchange with other libraries."""

import itertools
import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
import tensormagic.numpy as xp
from tests.array_api.oracle import DTYPES, KINDS, SHAPES, data, outcome

BINARY = str.split(
    """
    add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift eq ne lt le gt ge
    """
)
IN_PLACE = str.split(
    """
    iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift
    """
)


def right(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    found = data(shape, dtype, 1)
    return found % found.dtype.type(7) if "shift" in name and dtype.kind in "iu" else found


def held_together(compute: Callable, x: np.ndarray, *others: object) -> None:
    want = outcome(lambda: compute(x.copy(), *others))
    got = outcome(
        lambda: np.asarray(compute(xp.asarray(x), *(xp.asarray(o) if isinstance(o, np.ndarray) else o for o in others)))
    )
    if isinstance(want, Exception) or isinstance(got, Exception):
        assert any(isinstance(want, k) and isinstance(got, k) for k in KINDS), (want, got)
    else:
        # NumPy's own complex products differ in the last bit between numbers and arrays
        limit = 2 * np.finfo(got.dtype).eps if got.dtype.kind == "c" else 0
        np.testing.assert_allclose(got, want, rtol=limit)
        assert got.dtype == np.asarray(want).dtype


@pytest.mark.parametrize("name", BINARY)
def test_operators(name: str):
    op = getattr(operator, name)
    for dtype, shape in itertools.product(DTYPES, SHAPES):
        number = {"b": True, "i": 2, "u": 2}.get(dtype.kind, 1.5)
        held_together(op, data(shape, dtype), right(name, shape, dtype))
        held_together(op, data(shape, dtype), number)
        held_together(lambda x, n: op(n, x), right(name, shape, dtype), number)


@pytest.mark.parametrize("name", IN_PLACE)
def test_operators_in_place(name: str):
    op = getattr(operator, name)
    for dtype, shape in itertools.product(DTYPES, SHAPES):
        held_together(op, data(shape, dtype), right(name, shape, dtype))
        held_together(op, data(shape, dtype), right(name, (1,), dtype))
        held_together(op, data((2, 3), "float32"), right(name, (), dtype))


@pytest.mark.parametrize("name", IN_PLACE[:3])
def test_operators_in_place_store(name: str):
    for shape in [(), (3,)]:
        x = xp.ones(shape)
        y = x
        y = getattr(operator, name)(y, 3.0)
        assert y is x
        np.testing.assert_array_equal(np.asarray(x), getattr(operator, name)(np.ones(shape), 3.0))


def test_operators_of_one_array():
    for dtype, shape in itertools.product(DTYPES, SHAPES):
        for op in (operator.neg, operator.pos, operator.abs, operator.invert):
            held_together(op, data(shape, dtype))


def test_matrix_product():
    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
    y = x
    y @= xp.asarray([[0.0, 1.0], [1.0, 0.0]])
    assert y is x
    np.testing.assert_array_equal(np.asarray(x @ xp.ones(2)), [3.0, 7.0])


@pytest.mark.filterwarnings(
    "ignore:.*(an empty array is ambiguous|'np.bool' scalars):DeprecationWarning"
)  # of NumPy 2.1
@pytest.mark.parametrize("convert", [bool, int, float, complex, operator.index])
def test_one_element_as_a_number(convert: Callable):
    for dtype, shape in itertools.product(DTYPES, [(), (0,), (2,)]):
        x = data(shape, dtype)
        if (convert, dtype.kind) in {(float, "c"), (int, "c")}:  # NumPy drops the imaginary part
            with pytest.raises(TypeError):
                convert(xp.asarray(x))
            continue
        want, got = outcome(lambda x=x: convert(x)), outcome(lambda x=x: convert(xp.asarray(x)))
        if isinstance(want, Exception):
            assert any(isinstance(want, k) and isinstance(got, k) for k in KINDS), (dtype, shape, want, got)
        else:
            assert (got, type(got)) == (want, type(want))


def test_attributes():
    x = xp.ones((2, 3, 4), dtype=xp.float32)
    assert (x.shape, x.ndim, x.size, x.dtype, x.device) == ((2, 3, 4), 3, 24, xp.float32, "cpu")
    assert x.mT.shape == (2, 4, 3)
    assert xp.ones((2, 3)).T.shape == (3, 2)
    with pytest.raises(ValueError, match="ndim"):
        _ = xp.ones(3).mT


def test_length_and_iteration():
    x = xp.asarray([[1, 2], [3, 4]])
    assert len(x) == 2
    assert [v.tolist() for v in x] == [[1, 2], [3, 4]]
    for ask in (len, iter):
        with pytest.raises(TypeError):
            ask(xp.asarray(1))


def test_indexing_and_stores():
    x = xp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    mask = x > 2
    np.testing.assert_array_equal(np.asarray(x[mask]), [3.0, 4.0, 5.0, 6.0])
    np.testing.assert_array_equal(np.asarray(x[xp.asarray([1, 0]), xp.asarray([0, 2])]), [4.0, 3.0])
    assert x[None, ..., 1:].shape == (1, 2, 2)
    x[mask] = 0.0
    x[0, :] = xp.asarray([7.0, 8.0, 9.0])
    np.testing.assert_array_equal(np.asarray(x), [[7.0, 8.0, 9.0], [0.0, 0.0, 0.0]])
    number = xp.asarray(1.0)
    number[()] = 2.0
    assert float(number) == 2.0
    with pytest.raises(IndexError):
        _ = x[2]


@pytest.mark.parametrize(
    ("shape", "mask"),
    [
        ((1,), (0,)),
        ((3, 2), (0,)),
        ((3, 2), (3, 0)),
        ((3, 2), (0, 0)),
        ((3, 2), (2, 0)),
        ((3, 2), (0, 3)),
        ((0,), (1,)),
    ],
)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside an index"])
def test_a_mask_without_elements_selects_nothing(shape: tuple[int, ...], mask: tuple[int, ...], beside: bool):
    def read(module: Any) -> Any:
        x = module.asarray(np.arange(math.prod(shape)).reshape(shape))
        return np.asarray(x[(index(module), 0) if beside else index(module)])

    def store(module: Any) -> Any:
        x = module.asarray(np.arange(math.prod(shape)).reshape(shape))
        x[(index(module), 0) if beside else index(module)] = 5
        return np.asarray(x)

    def index(module: Any) -> Any:
        return module.zeros(mask, dtype=bool)

    for compute in (read, store):
        want, got = (outcome(partial(compute, module)) for module in (np, xp))
        if isinstance(want, Exception):
            assert isinstance(want, IndexError)
            assert isinstance(got, IndexError)
        else:
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_array_equal(got, want)


def test_the_namespace_of_an_array():
    x = xp.ones(2)
    assert x.__array_namespace__() is xp
    for version in ("2021.12", "2022.12", "2023.12", "2024.12", None):
        assert x.__array_namespace__(api_version=version) is xp
    with pytest.raises(ValueError, match=r"2019\.12.* not supported"):  # NumPy's own text
        x.__array_namespace__(api_version="2019.12")
    with pytest.raises(TypeError):
        x.__array_namespace__("2024.12")


def test_devices():
    x = xp.ones(2)
    assert x.to_device("cpu") is x
    with pytest.raises(ValueError, match="gpu"):
        x.to_device("gpu")
    with pytest.raises(ValueError, match="stream"):
        x.to_device("cpu", stream=1)


def test_exchange_by_dlpack():
    for dtype, shape in itertools.product(DTYPES, SHAPES):
        array = data(shape, dtype)
        there = np.from_dlpack(xp.asarray(array))
        np.testing.assert_array_equal(there, array)
        assert there.dtype == dtype
        back = xp.from_dlpack(array)
        assert isinstance(back, tm.Tensor)
        np.testing.assert_array_equal(np.asarray(back), array)
    assert xp.ones(2).__dlpack_device__() == np.ones(2).__dlpack_device__()


class Old:
    """An array of a library that knows nothing of read-only memory."""

    def __init__(self, held: tm.Tensor) -> None:
        self.held = held

    def __dlpack__(self, **options: object) -> object:
        return self.held.__dlpack__()

    def __dlpack_device__(self) -> object:
        return self.held.__dlpack_device__()


def test_what_dlpack_hands_out_cannot_change_the_value():
    x = xp.ones(3) + 1
    shared = np.from_dlpack(x)
    assert not shared.flags.writeable
    copied = np.from_dlpack(x, copy=True)
    assert copied.flags.writeable == np.from_dlpack(np.ones(3), copy=True).flags.writeable  # false before NumPy 2.3
    if copied.flags.writeable:
        copied[0] = 9.0

    assert np.shares_memory(shared, x.numpy())
    assert not np.shares_memory(np.from_dlpack(Old(x)), x.numpy())
    np.testing.assert_array_equal(np.asarray(x), [2.0, 2.0, 2.0])


def test_from_dlpack_copies_as_it_is_told():
    x = xp.ones(3)
    assert xp.from_dlpack(x) is x
    assert xp.from_dlpack(x, copy=True) is not x
    with pytest.raises(ValueError, match="avoid copy"):
        xp.from_dlpack(np.ones(2), copy=False)
    with pytest.raises(ValueError, match="device"):
        xp.from_dlpack(x, device="gpu")
