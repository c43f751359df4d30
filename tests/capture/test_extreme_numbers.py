"""Integers and floats of Python's own that data give, at the ends of their ranges: Python's answer, its error, or a refusal."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import check

pytestmark = pytest.mark.usefixtures("by_numpy")
WHOLE = [0, 1, -1, 3, -7, 2**31, 2**32 + 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 1, -(2**63)]
REAL = [0.0, -0.0, 1.0, 0.5, -3.7, 2.0**53, -(2.0**53), 2.0**62, 2.0**63, -(2.0**63), 1e300, math.inf, math.nan]
MIXED = {
    "<": lambda a, b: (int(a[0]) < float(b[0]), float(b[0]) < int(a[0])),
    "<=": lambda a, b: (int(a[0]) <= float(b[0]), float(b[0]) <= int(a[0])),
    ">": lambda a, b: (int(a[0]) > float(b[0]), float(b[0]) > int(a[0])),
    ">=": lambda a, b: (int(a[0]) >= float(b[0]), float(b[0]) >= int(a[0])),
    "==": lambda a, b: (int(a[0]) == float(b[0]), float(b[0]) == int(a[0])),
    "!=": lambda a, b: (int(a[0]) != float(b[0]), float(b[0]) != int(a[0])),
    "+": lambda a, b: int(a[0]) + float(b[0]),
    "*": lambda a, b: int(a[0]) * float(b[0]),
}
WHOLES = {
    "*": lambda a, b: int(a[0]) * int(b[0]),
    "-": lambda a, b: int(a[0]) - int(b[0]),
    "/": lambda a, b: int(a[0]) / int(b[0]),
    "//": lambda a, b: int(a[0]) // int(b[0]),
    "%": lambda a, b: int(a[0]) % int(b[0]),
    "divmod": lambda a, b: divmod(int(a[0]), int(b[0])),
    "**": lambda a, b: int(a[0]) ** min(int(b[0]), 70),
    "<<": lambda a, b: int(a[0]) << min(int(b[0]), 70),
    ">>": lambda a, b: int(a[0]) >> int(b[0]),
    "<": lambda a, b: int(a[0]) < int(b[0]),
}


def outcome(function: Any, *args: Any) -> Any:
    """What a call gives, or the error that it ends in; floats by their bits."""
    try:
        found = function(*args)
    except Exception as error:  # noqa: BLE001 (compared)
        return error
    parts = found if isinstance(found, tuple) else (found,)
    return [(type(v), str(v)) for v in parts]


def faults(function: Any, pairs: Any) -> list[Any]:
    """Where a captured function is neither as Python is nor refused."""
    captured, found = tm.tensor(function), []
    for first, second in pairs:
        args = np.array([first]), np.array([second])
        expected, given = outcome(function, *args), outcome(captured, *args)
        if isinstance(given, CaptureError):
            continue
        alike = expected == given
        if isinstance(expected, Exception):
            alike = type(expected) is type(given) and str(expected) == str(given)
        if not alike:
            found.append((first, second, expected, given))
    return found


@pytest.mark.parametrize("name", MIXED)
def test_an_integer_beside_a_float(name):
    assert not faults(MIXED[name], itertools.product(WHOLE, REAL))


@pytest.mark.parametrize("name", WHOLES)
def test_two_integers(name):
    assert not faults(WHOLES[name], itertools.product(WHOLE, WHOLE))


def test_what_is_answered():
    """Not everything is refused."""
    captured = tm.tensor(MIXED["=="])
    assert captured(np.array([2**53 + 1]), np.array([2.0**53])) == (False, False)
    assert tm.tensor(WHOLES["*"])(np.array([2**32 + 1]), np.array([2**32 + 1])) == (2**32 + 1) ** 2
    assert tm.tensor(WHOLES["/"])(np.array([7]), np.array([2])) == 3.5


def test_a_number_that_data_choose():
    def chosen(a: Any, b: Any) -> Any:
        n, y = int(a[0]), float(b[0])
        return n if n > y else y  # noqa: FURB136 (what is tried)

    captured = tm.tensor(chosen)
    assert captured(np.array([5]), np.array([2.0])) == 5
    assert captured(np.array([2**53 + 1]), np.array([2.0])) == 2**53 + 1  # Python runs that call
    with pytest.raises(CaptureError, match="53 bits"):
        tm.compile(chosen, np.array([5]), np.array([2.0])).run(np.array([2**53 + 1]), np.array([2.0]))


def test_a_negative_power_in_a_cell():
    check("m, n = int(a[0]), int(a[1])\nr = m ** n, n ** 2", a=np.array([4, -2]))
    check("m, n = int(a[0]), int(a[1])\nr = m ** n", a=np.array([0, -2]))


def test_machine_code_divides_by_zero_as_python_does(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numba")
    one, zero = np.array([5]), np.array([0])
    compiled = tm.compile(
        lambda a, b: (int(a[0]) % int(b[0]), int(a[0]) // int(b[0]), int(a[0]) == float(b[0])), one, one
    )
    assert compiled.run(one, np.array([3])) == (2, 1, False)
    assert compiled.run(np.array([2**53 + 1]), np.array([2**53])) == (1, 1, False)
    with pytest.raises(ZeroDivisionError):
        compiled.run(one, zero)
