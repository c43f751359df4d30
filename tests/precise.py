"""Real functions to many digits: what decides where NumPy's own value depends on the processor that it runs on.

NumPy chooses its loops by what the processor has, and their errors differ: cbrt of float64 is 3 units of the last place off on one
processor and half a unit on another. So a function of ours is held against the real number where NumPy's value is another.
"""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np

DIGITS = 60


def _log(x: Any) -> Any:
    if x <= 0:
        raise ValueError
    return mpmath.log(x)


def _power(x: Any, y: Any) -> Any:
    if x < 0 and y != mpmath.floor(y):
        raise ValueError
    return mpmath.power(x, y)


_SAME = [
    "sqrt",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log10",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "erf",
    "erfc",
    "hypot",
]
_INVERSE = ["arcsin", "arccos", "arctan", "arctan2", "arcsinh", "arccosh", "arctanh"]

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(mpmath, name) for name in _SAME},
    **{name: getattr(mpmath, name.replace("arc", "a")) for name in _INVERSE},
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "log2": lambda x: mpmath.log(x, 2),
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "logaddexp": lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
    "logaddexp2": lambda x, y: mpmath.log(mpmath.mpf(2) ** x + mpmath.mpf(2) ** y, 2),
    "power": _power,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "log1mexp": lambda x: _log(-mpmath.expm1(x)),
    "log_hypot": lambda x, y: _log(x * x + y * y) / 2,
    "log_erfc": lambda x: mpmath.log(mpmath.erfc(x)),
    "logit": lambda x: _log(x / (1 - x)),
    "sinc": mpmath.sincpi,
    "xlogy": lambda x, y: mpmath.mpf(0) if x == 0 else x * _log(y),
}
"""By the name of the op."""


def off(name: str, found: Any, operands: Sequence[Any], dtype: Any) -> float:
    """How far ``found`` is from the real value at ``operands``, in units of its last place in ``dtype``; infinite where there is none."""
    try:
        with mpmath.workdps(DIGITS):
            true = FUNCTIONS[name](*(mpmath.mpf(float(v)) for v in operands))
            place = np.spacing(np.abs(np.asarray(float(true)).astype(dtype)))
            return float(abs(mpmath.mpf(float(found)) - true) / mpmath.mpf(float(place)))
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError):
        return np.inf
