"""Functions of NumPy that give numbers: of which class, for Python's numbers, NumPy's and arrays without axes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

FUNCTIONS = {
    "divmod": lambda a, b: np.divmod(a, b),
    "divmod of an array": lambda a, b: np.divmod(np.array([1.0, 5.0]), b),
    "divmod by zero": lambda a, b: np.divmod(a, b - b),
    "Python's divmod": lambda a, b: divmod(a, b),
    "isreal": lambda a, b: (np.isreal(a), np.isreal(b), np.isreal(a + b)),
    "iscomplex": lambda a, b: np.iscomplex(a),
    "frexp": lambda a, b: np.frexp(a),
    "choose": lambda a, b: np.choose(1, [a, b]),
    "choose of three": lambda a, b: np.choose(0, [b, a, 2.5]),
}
VALUES: dict[str, tuple[Any, Any]] = {
    "int and float": (7, -3.0),
    "floats": (7.5, 2.0),
    "complex": (2 + 1j, 2.0),
    "float32": (np.float32(2.5), 2),
    "float64 and float32": (np.float64(2.5), np.float32(2)),
    "array": (np.array(2.5), 2),
    "array of int": (np.array(3), 2.0),
    "float16": (np.float16(2.5), 1.5),
    "int8": (np.int8(3), np.int8(2)),
}


def outcome(function: Any, values: tuple[Any, Any]) -> Any:
    with warnings.catch_warnings(action="ignore"):
        try:
            found = function(*values)
        except (TypeError, ZeroDivisionError, ValueError):
            return "error"
    return [(type(v), str(v)) for v in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls(name, values):
    function = FUNCTIONS[name]
    captured = tm.tensor(function)
    with tm.config.using(tier="numpy"):
        for _ in range(2):
            assert outcome(captured, VALUES[values]) == outcome(function, VALUES[values])


def test_in_a_loop_and_its_gradient():
    def wrapped(x):
        total = 0.0
        for k in range(1, 5):
            whole, rest = np.divmod(x * k, 0.7)
            total = total + rest * k + whole
        return total

    assert np.isclose(tm.tensor(wrapped)(1.3), wrapped(1.3))
    assert np.isclose(tm.grad(wrapped)(1.3), 30.0)
