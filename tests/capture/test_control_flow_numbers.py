"""Numbers that are one of several, depending on data: which dtype they get, and that they keep their values."""

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import check

SINGLE = np.arange(3, dtype=np.float32)


def run_on(x: Any, s: Any) -> Any:
    for v in x[x > 5]:
        s = v
    return s


def from_tenth(x: Any) -> Any:
    s = 0.1
    for v in x[x > 5]:
        s = v
    return s


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_what_a_loop_begins_with_keeps_its_value():
    f = tm.tensor(run_on)
    assert f(SINGLE, 0.5) == 0.5
    assert f(SINGLE + 5, 0.1) == np.float32(7)
    assert f(SINGLE, 0.1) == 0.1
    assert tm.tensor(from_tenth)(SINGLE + 5) == np.float32(7)
    assert tm.tensor(from_tenth)(SINGLE) == 0.1
    with pytest.raises(CaptureError, match="begins as a float64 that does not fit float32"):
        tm.compile(from_tenth, SINGLE)(SINGLE)


@pytest.mark.parametrize("x", [SINGLE + 1, SINGLE])
def test_a_number_in_the_code_takes_the_dtype_of_numpys_where_it_fits(x: np.ndarray):
    def largest(x: Any) -> Any:
        return x * (x.max() if x[0] > 0 else 0.5)

    found = tm.tensor(largest)(x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, largest(x))


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("first", [1.0, -1.0])
def test_numpys_numbers_are_of_the_class_that_data_choose(first: float):
    def either(x: Any, k: Any) -> Any:
        return x.max() if x[0] > 0 else k[0]

    x, k, captured = np.array([first, 2.5]), np.array([3, 4]), tm.tensor(either)
    found = captured(x, k)
    assert found.dtype == either(x, k).dtype
    assert found == either(x, k)
    if first < 0:  # where the common type does not hold all digits
        k = np.array([2**60 + 1, 4])
        assert captured(x, k) == either(x, k)
        with pytest.raises(CaptureError, match="2\\*\\*53"):
            tm.compile(either, x, k)(x, k)


LARGEST = """
for i in range(n):
    for j in range(i):
        t = x[i] * x[j]
        s += t
    for j in range(i, m):
        t = x[i] - x[j]
"""


def test_what_inner_loops_leave_goes_from_iteration_to_iteration():
    for n, m in ((4, 3), (1, 0), (4, 0), (1, 1)):
        check(LARGEST + "r = s + t" * (m > 0 or n > 1), n=n, m=m, s=0.5, x=np.arange(5.0))


@pytest.mark.parametrize("k", [[3, 2], [0, 2], [2, 0]])
def test_what_an_inner_loop_leaves_may_be_unbound(k: list[int]):
    def left(x: Any, k: Any) -> Any:
        for i in range(k[0]):
            for j in range(k[1]):
                t = x[i] * j
        return t

    x = np.arange(3.0)
    if all(k):
        assert tm.tensor(left)(x, np.array(k)) == left(x, np.array(k))
    else:
        with pytest.raises(UnboundLocalError):
            tm.tensor(left)(x, np.array(k))


def test_the_largest_of_a_few_in_a_function():
    def extremes(x: Any) -> Any:
        return (
            max(x[i] * 2 for i in range(3)),
            min(abs(v) for v in (x[0], x[1])),
            max((v for v in (x[2], 1)), default=0),
        )

    for x in (np.array([1.0, -3.0, 0.5]), np.array([-1.0, 0.25, 2.0])):
        assert tm.tensor(extremes)(x) == extremes(x)


@pytest.mark.parametrize("first", [1.0, -1.0])
def test_one_array_under_two_names_in_both_ways(first: float):
    def returned(x: Any, y: Any) -> Any:
        if x[0] > 0:
            return x, y, x
        u = v = y
        return u, x, v

    x, y = np.array([first, 2.0]), np.arange(2.0)
    for found, expected in zip(tm.tensor(returned)(x, y), returned(x, y), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("first", [1.0, -1.0])
def test_a_method_of_a_ufunc_in_a_branch(first: float):
    def made(x: Any) -> Any:
        s = np.zeros((2, 2))
        if x[0] > 0:
            s = np.add.outer(x, x)
            np.add.at(s, 0, x)
        return s

    x = np.array([first, 2.0])
    np.testing.assert_array_equal(tm.tensor(made)(x), made(x))
