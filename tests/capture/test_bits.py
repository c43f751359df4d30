"""Bits, parts of floating numbers, zeros at the ends, and different rows: what NumPy gives, bit for bit, and derivatives."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, DTypeError

RNG = np.random.default_rng(8)
REALS = np.array([0.0, -0.0, 1.0, -3.75, 1e-310, 1e300, np.inf, -np.inf, np.nan])
SINGLE = np.array([0.0, -0.0, 1.0, -3.75, 1e-40, 1e30, np.inf, -np.inf, np.nan], np.float32)
HALF = np.array([0.0, 1.0, -3.75, 6e4, np.inf, np.nan], np.float16)
ROWS = RNG.integers(0, 2, (9, 3)).astype(float)
BYTES = RNG.integers(0, 256, (5, 3)).astype(np.uint8)

CALLS = {
    "frexp": (
        np.frexp,
        [REALS, SINGLE, HALF, np.arange(5), np.float64(0.3), BYTES],
    ),
    "ldexp": (
        lambda x: np.ldexp(x, 3),
        [REALS, SINGLE, np.arange(5, dtype=np.int16), np.float64(0.3)],
    ),
    "ldexp by each": (lambda x: np.ldexp(x[:, None], np.array([-1074, 2, 3])), [REALS]),
    "packbits": (np.packbits, [BYTES, BYTES > 9, np.zeros((0, 3), bool), np.arange(17)]),
    "packbits, little": (lambda x: np.packbits(x, axis=0, bitorder="little"), [BYTES, BYTES > 9, ROWS > 0]),
    "packbits of rows": (lambda x: np.packbits(x, axis=-1), [BYTES, BYTES > 9]),
    "unpackbits": (np.unpackbits, [BYTES, BYTES[:0], BYTES[0]]),
    "unpackbits of rows": (lambda x: np.unpackbits(x, axis=1, bitorder="little"), [BYTES]),
    "view, float64": (lambda x: x.view(np.int64), [REALS, REALS[::-2], np.ones((2, 3)).T]),
    "view, float32": (lambda x: x.view("u4") + np.uint32(1), [SINGLE]),
    "view of integers": (lambda x: (x + 1).view(np.float64), [np.array([1, 2 << 61])]),
    "trim_zeros": (np.trim_zeros, [np.array([0.0, 0, 1, 0, 2, 0]), np.zeros(3), np.array([]), np.array([0, 3, 0])]),
    "trim_zeros, front": (lambda x: np.trim_zeros(x, "f"), [np.array([0.0, 0, 1, 0, 2, 0]), np.zeros(3)]),
    "trim_zeros, back": (lambda x: np.trim_zeros(x, "b"), [np.array([0.0, 0, 1, 0, 2, 0]), np.array([np.nan, 0])]),
    "unique rows": (lambda x: np.unique(x, axis=0), [ROWS, BYTES, ROWS[:1], RNG.integers(0, 2, (6, 2, 2))]),
    "unique columns": (lambda x: np.unique(x, axis=1), [ROWS.T, BYTES]),
    "unique rows, all": (lambda x: np.unique(x, True, True, True, axis=0), [ROWS, BYTES]),
}


def stored_as_bits(x):
    y = x * 1.0
    y.view(np.int64)[0] = 0
    return y


CALLS["a store through a view of bits"] = (stored_as_bits, [np.arange(1.0, 4.0)])


@pytest.mark.parametrize("name", CALLS)
def test_what_numpy_gives(name):
    call, operands = CALLS[name]
    captured = tm.tensor(call)
    for operand in operands:
        expected, found = call(operand), captured(operand)
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for left, right in pairs:
            assert type(left) is type(right)
            assert left.dtype == right.dtype
            assert left.shape == right.shape
            if right.dtype.kind == "f":
                assert np.array_equal(np.signbit(left), np.signbit(right))
            assert np.array_equal(left, right, equal_nan=right.dtype.kind == "f")


def test_derivatives():
    x = np.array([0.3, -5.0, 12.0])
    np.testing.assert_array_equal(tm.grad(lambda v: np.frexp(v)[0].sum())(x), 2.0 ** -np.frexp(x)[1])
    tm.check_grads(lambda v: np.frexp(v)[0] ** 2, (x,), order=2)
    tm.check_grads(lambda v: np.ldexp(*np.frexp(v)), (x,), order=2)
    rows = np.array([x, 3 * x])
    batched = tm.vmap(tm.grad(lambda v: (np.frexp(v)[0] ** 2).sum()))(rows)
    np.testing.assert_array_equal(batched, 2 * np.frexp(rows)[0] * 2.0 ** -np.frexp(rows)[1])
    tm.check_grads(lambda v: np.ldexp(v, 3) ** 2, (x,), order=2)
    tm.check_grads(lambda v: np.unique(v.reshape(3, 1), axis=0) ** 2, (x,), order=1)
    with pytest.raises(CaptureError, match="the bits of integers as floats"):
        tm.grad(lambda v: v.view(np.int64).view(np.float64).sum())(x)


def test_what_numpy_refuses():
    for call in (np.unpackbits, np.packbits):
        with pytest.raises(TypeError):
            call(np.ones(3))
        with pytest.raises(DTypeError):
            tm.tensor(call)(np.ones(3))
