"""Operators between lazy numbers and what is no number: the errors are Python's and NumPy's, and name no class of this package."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

NUMBERS: dict[str, Callable[[], Any]] = {
    "NumPy's": lambda: np.float64(2.5),
    "an integer of NumPy's": lambda: np.int64(3),
    "Python's": lambda: 2.5,
    "an integer": lambda: 3,
    "an array": lambda: np.arange(3.0),
}
OTHERS: dict[str, Any] = {"None": None, "a text": "abc", "bytes": b"abc", "a dict": {"a": 1}, "a set": {1, 2}}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "**": lambda a, b: a**b,
    "&": lambda a, b: a & b,
    "*": lambda a, b: a * b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}


class Unit(str):
    """A text of the user's, which has operators."""

    __slots__ = ()

    def __radd__(self, other: Any) -> Any:
        return other * 2

    def __gt__(self, other: Any) -> bool:
        return True


def error_of(function: Callable[[], Any]) -> str:
    """The text of an error; empty where there is none."""
    try:
        function()
    except (TypeError, ValueError) as error:
        return str(error).split("\n", 1)[0]
    return ""


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("other", OTHERS)
def test_errors_are_pythons(number: str, other: str):
    given, own = OTHERS[other], NUMBERS[number]()
    for sign, operator in OPERATORS.items():
        if sign == "+" and other == "bytes":
            continue  # Python appends the bytes of a number of NumPy's
        compares = sign in {"<", ">="} and number in {"Python's", "an integer"}
        for sides in (lambda v, op=operator: op(v, given), lambda v, op=operator: op(given, v)):
            theirs = error_of(lambda sides=sides, own=own: sides(own))
            ours = error_of(lambda sides=sides, own=own: tm.tensor(sides).graph(own))
            assert bool(ours) is bool(theirs), (sign, theirs, ours)
            assert "Tensor" not in ours
            if theirs and not compares:  # Python's numbers do not know which side asks
                assert theirs in ours or ours == theirs, (sign, theirs, ours)


def test_a_users_text_has_its_operators():
    assert error_of(lambda: tm.tensor(lambda v: v + 1).graph(2.5)) == ""
    for number in (np.float64(2.0), 2.0):
        lazy = tm.tensor(number) * 1
        assert lazy + Unit("m") == number * 2
        assert (lazy < Unit("m")) is True
