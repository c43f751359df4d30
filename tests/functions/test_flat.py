"""``x.flat`` as NumPy's iterator: its class, what is compared, gone over, stored and returned; arrays over a buffer."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import check
from tests.functions.same_as_python import captures, same


def classes(x):
    y = x * 2
    return type(x.flat).__name__, isinstance(y.flat, np.flatiter), type(y.flat) is np.flatiter


def compared(x):
    return x.flat == 2.0, x.flat == x.T.flat, (x * 2).flat >= 4, 3.0 in x.flat, (x.flat > 2).sum(), x.flat != x.flat


def gone_over(x):
    s = 0.0
    for v in x.flat:
        s += v
    return s, [v for v in x.flat if v > 2], any(v > 3 for v in x.flat), max(x.flat), list(enumerate(x.T.flat))[2]


def stored(x):
    x.flat[1] = 9
    x.T.flat[2] = 5
    y = np.zeros(6)
    y[:] = x.flat
    x.flat = y[::-1].copy()
    return x, y


def read(x):
    return x.flat[2], x.flat[1:4], x.flat[[0, 2]], len(x.flat), x.flat.copy(), x.flat.base is x


def taken(x):
    f = x.flat
    a = next(f)
    return a, next(f), f.index, f.coords


def added(x):
    try:
        return x.flat + 1
    except TypeError:
        return "no sum"


def over_a_buffer(x):
    y = np.ndarray((3, 2), buffer=x)
    y[0] = 7
    return x, y


def over_bytes(x):
    b = bytearray(24)
    y = np.ndarray((3,), float, b)
    y[0] = x[0, 1]
    return y, bytes(b)


def by_strides(x):
    return np.ndarray((2,), buffer=x, offset=8, strides=(16,), dtype=float)


@pytest.mark.parametrize(
    "program",
    [classes, compared, gone_over, stored, read, taken, added, over_a_buffer, over_bytes, by_strides],
    ids=lambda f: f.__name__,
)
def test_it_is_numpys(program):
    same(program, lambda: (np.arange(6.0).reshape(2, 3),))


def test_what_numbers_can_say_is_captured():
    for program in (classes, gone_over, stored, read):
        captures(program, np.arange(6.0).reshape(2, 3))
    check("m = x.flat == 2\nn = (x * 2).flat > 3", x=np.arange(6.0).reshape(2, 3))


def test_returned_it_is_refused_by_name_in_graphs():
    with pytest.raises(tm.CaptureError, match=r"returns x\.flat"):
        tm.tensor(lambda x: x.flat).graph(np.ones(3))
    with pytest.raises(tm.CaptureError, match=r"np\.ndarray with a buffer"):
        tm.tensor(over_a_buffer).graph(np.arange(6.0).reshape(2, 3))
