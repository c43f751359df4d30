"""Errors of code that data may leave out: raised where NumPy raises them, and nowhere else."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import check, kind_of

FEW, MANY = np.array([0, 1]), np.array([7, 1])


def way(x: Any, k: Any) -> Any:
    if x.sum() > k[0]:  # noqa: SIM108 (a statement)
        y = x[:2] + np.ones(3)
    else:
        y = x[:2]
    return y


def index(x: Any, k: Any) -> Any:
    return x[7] if x.sum() > k[0] else x[0]


def call(x: Any, k: Any) -> Any:
    for i in range(3):
        if x[i] > k[0]:
            x[i] = int(1j)
    return x


def rank(x: Any, k: Any) -> Any:
    if x.sum() > k[0]:
        x = x.reshape(7, 7)
    return x + 1


def counted(x: Any, k: Any) -> Any:
    for _ in range(k[0]):
        x[0] = x[:2] @ np.ones(3)
    return x


def repeated(x: Any, k: Any) -> Any:
    t = 0
    while t < k[0]:
        t += 1
        x[0] = x[:2] @ np.ones(3)
    return x


def collected(x: Any, k: Any) -> Any:
    return x + sum([int(1j) for _ in range(k[0])])


def first(x: Any, k: Any) -> Any:
    view = x[3:]
    for _ in range(2):
        for _ in range(k[0]):
            view[0] = 1
    return x


@pytest.mark.parametrize("k", [FEW, MANY])
@pytest.mark.parametrize("program", [way, index, call, rank, counted, repeated, collected, first])
def test_an_error_is_met_where_its_code_runs(program: Callable[..., Any], k: np.ndarray):
    try:
        expected = program(np.arange(3.0), k)
    except Exception as error:  # noqa: BLE001 (errors are compared)
        with pytest.raises(kind_of(error)) as caught:
            tm.tensor(program)(np.arange(3.0), k)
        assert not isinstance(caught.value, CaptureError)
    else:
        np.testing.assert_array_equal(tm.tensor(program)(np.arange(3.0), k), expected)


def test_an_error_of_both_ways_is_raised():
    def both(x: Any) -> Any:
        return x.reshape(7, 7) if x.sum() > 0 else x[:2] + x

    with pytest.raises(tm.ShapeError):
        tm.tensor(both)(np.arange(3.0))


def caught_index(x: Any, k: Any) -> Any:
    try:
        y = x[k[0]]
    except IndexError:
        y = x[0]
    return y


def caught_way(x: Any, k: Any) -> Any:
    try:
        y = x[5] if x.sum() > k[0] else x[2]
    except IndexError:
        y = x[0]
    return y


def caught_iteration(x: Any, k: Any) -> Any:
    try:
        for _ in range(k[0]):
            x[9] = 1
    except IndexError:
        x[0] = 3
    return x


def caught_matrix(x: Any, k: Any) -> Any:
    try:
        y = np.linalg.cholesky(np.outer(x, x) - k[0])
    except np.linalg.LinAlgError:
        y = x
    return y


def caught_number(x: Any, k: Any) -> Any:
    try:
        y = math.sqrt(x[0] - k[0])
    except ValueError:
        y = 0.0
    return y


def caught_power(x: Any, k: Any) -> Any:
    try:
        y = float(x[0]) ** -float(k[0])
    except ZeroDivisionError:
        y = 0.0
    return y


def caught_whole(x: Any, k: Any) -> Any:
    try:
        y = int(x[0] / k[0])
    except ValueError:
        y = 0
    return y


def caught_float(x: Any, k: Any) -> Any:
    with np.errstate(divide="raise"):
        try:
            y = k[0] / x
        except FloatingPointError:
            y = x
    return y


@pytest.mark.parametrize("k", [FEW, MANY])
@pytest.mark.parametrize(
    "program",
    [caught_index, caught_iteration, caught_power, caught_float],
)
def test_what_data_decide_is_not_caught_in_a_function(program: Callable[..., Any], k: np.ndarray):
    with pytest.raises(CaptureError, match=r"in a `try`|a `try` around code that may fail"):
        tm.tensor(program).graph(np.arange(3.0), k)


@pytest.mark.parametrize("program", [caught_number, caught_whole, caught_matrix, caught_way])
def test_errors_of_numbers_and_matrices_are_caught_in_a_function(program: Callable[..., Any]):
    captured, x = tm.tensor(program), np.arange(3.0)
    for k in (FEW, MANY, FEW):
        with np.errstate(all="ignore"):
            assert repr(captured(x, k)) == repr(program(x, k))


def test_each_way_out_of_a_try_is_followed_and_differentiated():
    def inverse(a: Any, stored: Any) -> Any:
        stored[0], steps = 5.0, 0
        try:
            result, steps = 1 / a + math.log(a), 1
            stored[1] = result
        except ZeroDivisionError as error:
            result = a * len(str(error))
        except ValueError:
            result = a**2
        return result + steps

    captured, slope, zero = tm.tensor(inverse), tm.grad(inverse), 0.0
    with pytest.raises(ZeroDivisionError) as met:
        1 / zero
    length = len(str(met.value))
    for a, expected in [(2.0, 0.25), (0.0, length), (-3.0, -6.0), (4.0, 0.1875)]:
        ours, theirs = np.zeros(2), np.zeros(2)
        assert captured(a, ours) == inverse(a, theirs)
        np.testing.assert_array_equal(ours, theirs)
        assert slope(a, np.zeros(2)) == expected


def test_what_is_known_or_was_made_before_may_stand_in_a_try():
    def known(x: Any, k: Any) -> Any:
        y = x[k]
        try:
            z = x[0] + y[0] + x[:2] @ x[:2]
        except ValueError:
            z = x[0]
        return z

    x, k = np.arange(3.0), np.array([2, 1])
    assert tm.tensor(known)(x, k) == known(x, k)


@pytest.mark.parametrize("k", [FEW, MANY])
@pytest.mark.parametrize(
    "body",
    [
        "    y = x[k[0]]",
        "    x[0] = 5\n    x[k[0]] = 7\n    x[1] = 8",
        "    y = np.linalg.inv(np.zeros((2, 2)) * x[0])",
        "    if x[1] > 0: y = x[k[0]]\n    else: y = x[9]",
        "    for i in range(k[0]): x[9]",
    ],
)
def test_a_cell_meets_errors_in_a_try_at_their_statement(body: str, k: np.ndarray):
    check(f"try:\n{body}\nexcept (IndexError, np.linalg.LinAlgError):\n    x[2] = x[0] + 3", x=np.arange(3.0), k=k)


CAUGHT = (
    "math.sqrt(-s); math.log(s - 2); math.exp(s * 500); math.acos(s); math.gamma(0 * s); math.log(s, 1); math.hypot(s, s * 1e308);"
    "math.floor(s / (s - 2) * 1e308 * 10); int(x[0] * np.nan); (s - 2) ** -1; 1e200 ** s; s % (s - 2); divmod(s, s - 2); np.float64(1) / x"
)


@pytest.mark.parametrize("expression", CAUGHT.split(";"))
def test_numbers_that_fail_in_a_try_do_so_at_their_statement(expression: str):
    shapes = (
        "try:\n    y = {}\nexcept (ArithmeticError, ValueError) as error:\n    y = type(error).__name__",
        "y = 0\nfor j in range(3):\n    try:\n        y = {}\n    except Exception:\n        y = j\n        break",
        "def safe(x, s):\n    try:\n        return {}\n    except Exception:\n        return -1.0\ny = safe(x, s)\ndel safe",
        "try:\n    y = {}\nexcept* Exception as error:\n    y = 7",
        "y = 0\nfor j in range(3):\n    try:\n        y += {}\n    finally:\n        continue",
        "class Held:\n    try:\n        y = {}\n    except Exception:\n        y = 5\ny = Held.y\ndel Held",
    )
    for shape in shapes:
        check(shape.format(expression.strip()), x=np.arange(3.0), s=2.0)


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_a_call_that_asks_for_floating_point_errors_is_pythons_where_a_try_would_catch_them():
    def caught(x: Any) -> Any:
        try:
            return 1 / x
        except FloatingPointError:
            return x

    function = tm.tensor(caught)
    np.testing.assert_array_equal(function(np.ones(2)), np.ones(2))
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(function(np.zeros(2)), np.zeros(2))


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_an_empty_list_is_pythons_where_only_its_shape_is_asked_for():
    def width(x: Any, k: Any) -> Any:
        rows = []
        for _ in range(k[0]):
            rows.append(x + 1)  # noqa: PERF401 (a list that grows)
        table = np.array(rows)
        t = 0
        while t < table.shape[-1]:
            t += 1
            x[0] = t
        return x

    np.testing.assert_array_equal(tm.tensor(width)(np.arange(3.0), MANY), width(np.arange(3.0), MANY))
    np.testing.assert_array_equal(tm.tensor(width)(np.arange(3.0), FEW), width(np.arange(3.0), FEW))


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_a_size_that_does_not_fit_as_data_say_is_pythons_and_refused_by_name_elsewhere():
    def joined(x: Any, y: Any) -> Any:
        return x[x > 1] + y

    x = np.arange(3.0)
    np.testing.assert_array_equal(tm.tensor(joined)(x, x), joined(x, x))
    with pytest.raises(CaptureError, match="sizes do not fit: 1 and 3"):
        tm.compile(joined, x, x)(x, x)


def test_an_error_that_sizes_decide_is_caught_for_these_alone():
    def squared(x: Any) -> Any:
        try:
            return x.reshape(3, 3)
        except ValueError:
            return x * 2

    function = tm.tensor(squared)
    for size in (2, 9, 4):
        np.testing.assert_array_equal(function(np.ones(size)), squared(np.ones(size)))
