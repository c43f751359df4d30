"""What functions give and take of Python's own: ranges and slices of captured numbers, all of ``math``, tables by their labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

GIVEN = {
    "a range": lambda x: range(int(x[0])),
    "ranges": lambda x: [range(2, int(x[0])), range(int(x[0]), 0, -2)],
    "a slice": lambda x: {"rows": slice(int(x[0]), None), "all": slice(None)},
    "both beside arrays": lambda x: (range(int(x[1])), x * 2, slice(int(x[0]), int(x[1]))),
}


@pytest.mark.parametrize("name", GIVEN)
def test_ranges_and_slices_that_are_given_back(name: str) -> None:
    """They are of Python's classes, and of the numbers of each call."""
    captured = tm.tensor(GIVEN[name])
    for x in (np.array([4.0, 2.0]), np.array([7.0, 0.0]), np.array([0.0, 3.0])):
        assert repr(captured(x)) == repr(GIVEN[name](x))


MATH = {
    "modf": lambda x: math.modf(x[0]),
    "frexp": lambda x: math.frexp(x[0]),
    "ldexp": lambda x: math.ldexp(x[0], int(x[1])),
    "fsum": lambda x: math.fsum([x[0], 1e100, x[1], -1e100]),
    "fsum of an array": lambda x: math.fsum(x),
    "isqrt": lambda x: math.isqrt(int(x[0])),
    "comb": lambda x: math.comb(int(x[0]), int(x[1])),
    "perm": lambda x: math.perm(int(x[0]), 2),
    "factorial": lambda x: math.factorial(int(x[1])),
}
NUMBERS = [(3.75, 2.0), (-3.75, 1.0), (16.0, 3.0), (0.0, 0.0), (-0.0, 4.0), (1e300, 20.0), (5e-324, 1.0)]
SPECIAL = [(math.inf, 1.0), (-math.inf, 1.0), (math.nan, 1.0), (1e300, 5000.0), (-2.0, -1.0)]


@pytest.mark.parametrize("name", MATH)
def test_functions_of_math(name: str) -> None:
    """Values, classes and errors of Python's own, at each call."""
    captured = tm.tensor(MATH[name])
    for numbers in [*NUMBERS, *SPECIAL]:
        x = np.array(numbers)
        if name in {"isqrt", "comb", "perm", "factorial"} and (abs(x) > 100).any():  # integers of more than 64 bits
            continue
        assert _told(captured, x) == _told(MATH[name], x), numbers


def _told(function: Any, x: Any) -> Any:
    try:
        return repr(function(x))
    except (ValueError, OverflowError) as error:
        return isinstance(error, OverflowError), str(error)


def test_dist_and_its_derivative() -> None:
    x, y = np.array([1.0, 2.5, -3.0]), np.array([0.5, 2.0, 1.0])
    assert tm.tensor(lambda x, y: math.dist(x, y))(x, y) == pytest.approx(math.dist(x, y), rel=1e-15)
    np.testing.assert_allclose(tm.grad(lambda x: math.dist(x, y))(x), (x - y) / math.dist(x, y), rtol=1e-14)
    with pytest.raises(ValueError, match="both points must have the same number of dimensions"):
        tm.tensor(lambda x: math.dist(x, [1.0]))(x)
    assert tm.grad(lambda x: math.modf(x)[0] * 3 + math.ldexp(x, 2))(2.5) == 7.0


FRAME = pd.DataFrame({"a": [1.25, 2.0, 3.0], "b": [4.0, 5.55, 6.0]})
TABLES = {
    "running sums": lambda df: df.cumsum(),
    "of columns": lambda df: df.cumsum(axis=1),
    "running products": lambda df: df.cumprod(axis="index"),
    "rounded": lambda df: round(df, 1),
    "a rounded column": lambda df: round(df["b"], 1),
    "a column's": lambda df: df["a"].cumsum() * 2,
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_by_column(name: str) -> None:
    """Functions of functions have them as arrays; a call gives what pandas gives."""
    wanted = TABLES[name](FRAME)
    np.testing.assert_array_equal(tm.compile(TABLES[name], FRAME).run(FRAME), wanted.to_numpy())
    with pytest.warns(tm.PlainRunWarning, match="returns or keeps is not captured"):
        found = tm.tensor(TABLES[name])(FRAME)
    assert type(found) is type(wanted)
    assert found.equals(wanted)


def test_labels_that_tables_have() -> None:
    def asked(df: Any) -> Any:
        return "a" in df, "z" in df, 1 in df["a"], 7 in df["a"], "a" in df["a"]

    assert tm.tensor(asked)(FRAME) == asked(FRAME)


@pytest.mark.parametrize(
    "function",
    [
        lambda df: pd.concat([df, df]),
        lambda df: df.cummax(),
        lambda df: df.diff(),
        lambda df: df["a"].rolling(2).mean(),
    ],
)
def test_what_tables_are_not_captured_for_is_refused(function: Any) -> None:
    """By name, without a word of classes that the user has not made."""
    with pytest.raises(CaptureError) as met:
        tm.tensor(function).graph(FRAME)
    assert "tensormagic" not in str(met.value)
    assert "Labelled" not in str(met.value)


def test_round_of_pythons_floats() -> None:
    """Python rounds the decimal text, and NumPy multiplies, rounds and divides."""
    captured = tm.tensor(lambda x: (round(float(x), 2), round(float(x), -1), np.round(x, 2)))
    for value in (2.675, 1.005, 0.285, 5.0, 15.0, 1e22, -2.5):
        assert captured(value) == (round(value, 2), round(value, -1), np.round(value, 2))


def test_a_function_along_the_only_axis() -> None:
    found = tm.tensor(lambda x: np.apply_along_axis(np.sum, 0, x))(np.arange(3.0))
    assert type(found) is type(np.apply_along_axis(np.sum, 0, np.arange(3.0)))
