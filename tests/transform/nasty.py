"""66 families of expressions that lose all digits as they are written, with the inputs at which they do, and what is true there.

One text of each is what somebody writes who knows the formula and not the machine: log-sum-exp, differences of what is near each
other, squares that run over, probabilities far out. The truth is the same text with many digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
from scipy import special

import tensormagic as tm
from tensormagic.config import config

mp = mpmath.mp.clone()
mp.dps = 1000
ENOUGH = 1e-9
"""The relative error at which a value counts as accurate."""


@dataclass(frozen=True, eq=False)
class Family:
    """A text over numbers ``x``, ``y``, ``z`` or a row ``v``, and the inputs that it is asked at."""

    name: str
    text: str
    at: tuple[tuple[Any, ...], ...]
    needs: str = ""
    """What has to be taken for granted; such a family is counted at *real* alone."""
    true: str = ""
    """What is true, where the text has no value of its own there."""

    @property
    def names(self) -> list[str]:
        """The operands, in the order of the alphabet."""
        return sorted(set(re.findall(r"\b[vxyz]\b", self.text)))


def _family(name: str, text: str, *at: Any, needs: str = "", true: str = "") -> Family:
    return Family(name, text, tuple(p if isinstance(p, tuple) else (p,) for p in at), needs, true)


P = "1 / (1 + np.exp(-x))"
FAR = [1000.0, 999.0, -1000.0]
FAMILIES = [
    _family("log of 1 + x", "np.log(1 + x)", 1e-18, -3e-13, 1e300),
    _family("log of 1 - x", "np.log(1 - x)", 1e-18, 3e-13),
    _family("exp(x) - 1", "np.exp(x) - 1", 1e-18, -1e-12),
    _family("1 - exp(x)", "1 - np.exp(x)", 1e-18, -1e-12),
    _family("softplus", "np.log(1 + np.exp(x))", 800.0, -50.0, 0.3),
    _family("log of 1 - exp", "np.log(1 - np.exp(-x))", 1e-20, 50.0, 1.0),
    _family("log of exp - 1", "np.log(np.exp(x) - 1)", 1e-20, 800.0),
    _family("log-add-exp", "np.log(np.exp(x) + np.exp(y))", (1000.0, 999.0), (-1000.0, -1001.0), (1000.0, -1000.0)),
    _family(
        "log-subtract-exp", "np.log(np.exp(x) - np.exp(y))", (1000.0, 999.0), (-1000.0, -1001.0), (1.0, 1 - 2.0**-40)
    ),
    _family("log-sum-exp", "np.log(np.sum(np.exp(v)))", FAR, [-800.0, -801.0]),
    _family("log-mean-exp", "np.log(np.mean(np.exp(v)))", FAR, [-800.0, -801.0]),
    _family("softmax", "np.exp(v) / np.sum(np.exp(v))", [1000.0, 999.0, 990.0], [-800.0, -801.0]),
    _family("log-softmax", "np.log(np.exp(v) / np.sum(np.exp(v)))", FAR, [-800.0, -801.0]),
    _family("cross entropy", "-np.log(np.exp(v) / np.sum(np.exp(v)))[1]", FAR, [-800.0, -801.0]),
    _family("sigmoid", P, -700.0, 800.0, 0.3),
    _family("log of a sigmoid", f"np.log({P})", -800.0, 50.0),
    _family("log of 1 - sigmoid", f"np.log(1 - {P})", 800.0, -50.0),
    _family("1 - sigmoid", f"1 - {P}", 50.0, 600.0),
    _family("logit of a sigmoid", f"np.log({P} / (1 - {P}))", 50.0, 1e-17, -800.0),
    _family("fraction of exponentials", "np.exp(x) / (1 + np.exp(x))", 800.0, -700.0),
    _family("logistic density", "np.exp(-x) / (1 + np.exp(-x)) ** 2", -600.0, 600.0),
    _family("logit", "np.log(x / (1 - x))", 0.5 + 2.0**-45, 1e-300, 0.25),
    _family("log of a quotient", "np.log(x / y)", (1 + 2.0**-45, 1.0)),
    _family("difference of logarithms", "np.log(x) - np.log(y)", (1e5 + 2.0**-30, 1e5), (1e300, 1e-300)),
    _family("log of a product", "np.log(x * y)", (1e200, 1e200), (1e-200, 1e-200)),
    _family("log of a power", "np.log(np.power(x, y))", (10.0, 400.0), (0.1, 400.0)),
    _family("log of the product of many", "np.log(np.prod(v))", [1e200, 1e200, 3.0], [1e-200, 1e-200]),
    _family("log of a product of exponentials", "np.log(np.prod(np.exp(v)))", [500.0, 400.0], [-800.0, -10.0]),
    _family("product of exponentials", "np.exp(x) * np.exp(y)", (800.0, -799.0), (-800.0, 799.0)),
    _family("quotient of exponentials", "np.exp(x) / np.exp(y)", (800.0, 799.0), (-800.0, -799.0)),
    _family("log of a density", "np.log(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))", 40.0, 1e5),
    _family("x log x", "x * np.log(x)", 0.0, 1e-300, needs="0 log 0", true="x * np.log(x) if x else x"),
    _family(
        "entropy", "-np.sum(v * np.log(v))", [0.0, 0.25, 0.75], needs="0 log 0", true="-np.sum(v[1:] * np.log(v[1:]))"
    ),
    _family("slope of the log of erfc", "np.exp(-(x**2)) / special.erfc(x)", 30.0, 100.0, 1.0),
    _family("sinh", "(np.exp(x) - np.exp(-x)) / 2", 1e-10, 710.2),
    _family("cosh", "(np.exp(x) + np.exp(-x)) / 2", 710.2, 0.3),
    _family("tanh", "(np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x))", 800.0, 1e-10),
    _family("log-cosh", "np.log(np.cosh(x))", 800.0, 1e-9),
    _family("1 - tanh squared", "1 - np.tanh(x) ** 2", 20.0, 300.0),
    _family("log of 1 - tanh squared", "np.log(1 - np.tanh(x) ** 2)", 20.0, 800.0, 1e-9),
    _family("arcsinh", "np.log(x + np.sqrt(x**2 + 1))", 1e-20, -1e10, 1e200),
    _family("arccosh", "np.log(x + np.sqrt(x**2 - 1))", 1 + 2.0**-45, 1e200),
    _family("arctanh", "np.log((1 + x) / (1 - x)) / 2", 1e-18, 0.5),
    _family("1 - erf", "1 - special.erf(x)", 6.0, 20.0),
    _family("1 + erf", "1 + special.erf(x)", -6.0, -20.0),
    _family("log of erfc", "np.log(special.erfc(x))", 100.0, 1e-18),
    _family("log of the normal distribution", "np.log((1 + special.erf(x / np.sqrt(2))) / 2)", -40.0, 9.0),
    _family("sqrt(x + 1) - sqrt(x)", "np.sqrt(x + 1) - np.sqrt(x)", 1e20, 1e7),
    _family("sqrt(1 + x) - 1", "np.sqrt(1 + x) - 1", 1e-18, -1e-12),
    _family("difference of reciprocal roots", "1 / np.sqrt(x) - 1 / np.sqrt(x + 1)", 1e20, 1e7),
    _family("hypotenuse", "np.sqrt(x * x + y * y)", (1e200, 1e200), (3e-200, 4e-200)),
    _family("root of a square", "np.sqrt(x * x)", -1e200, 1e-200),
    _family("direction", "x / np.sqrt(x * x + y * y)", (1e200, 1e200), (3e-200, 4e-200)),
    _family("root of a quadratic", "(-x + np.sqrt(x**2 - 4 * y * z)) / (2 * y)", (1e9, 1.0, 1.0), (-1e9, 1.0, 1e-9)),
    _family("difference of squares", "x**2 - y**2", (1e8 + 1, 1e8), (1 + 2.0**-50, 1.0)),
    _family("(1 + x) ** n - 1", "(1 + x) ** 12 - 1", 1e-18, -1e-12),
    _family("compound interest", "(1 + x) ** y - 1", (1e-18, 360.0), (1e-12, 0.5)),
    _family("1 - cos", "1 - np.cos(x)", 1e-9, 1e-150),
    _family("1 - cos over x squared", "(1 - np.cos(x)) / x**2", 1e-9, 1e-150),
    _family("x - sin", "x - np.sin(x)", 1e-5, 1e-9),
    _family("difference of sines", "np.sin(x + y) - np.sin(x)", (1.0, 2.0**-50), (1e4, 2.0**-35)),
    _family("difference of arctangents", "np.arctan(x + 1) - np.arctan(x)", 1e9, 1e20),
    _family("difference of reciprocals", "1 / x - 1 / (x + 1)", 1e15, 1e9),
    _family("variance", "np.mean(v**2) - np.mean(v) ** 2", [1e9, 1e9 + 1, 1e9 + 2], [1e-9 + 1, 1.0]),
    _family("norm", "np.sqrt(np.sum(v**2))", [1e200, 2e200, 3.0], [1e-200, 2e-200]),
    _family("multiplied out", "(3 / x + 5 / y) * x * y", (1e-310, 2.0), (1e-310, 1e-310), needs="x != 0"),
]

# values ---------------------------------------------------------------------------------------------------------------

FORMS: dict[str, Callable[[float], Any]] = {
    "array": lambda v: np.array([v, v]),
    "0-d": np.array,
    "numpy": np.float64,
    "python": float,
}


def _function(text: str, names: list[str], space: dict[str, Any]) -> Callable[..., Any]:
    return eval(f"lambda {', '.join(names)}: {text}", space)


def values(family: Family, point: tuple[Any, ...], form: str, level: str) -> list[Any]:
    """What a captured function gives at its first call and at the next one; a row is an array in any form."""
    given = [np.array(v) if isinstance(v, list) else FORMS[form](v) for v in point]
    captured = tm.tensor(_function(family.text, family.names, {"np": np, "special": special}))
    with config.using(math=level), np.errstate(all="ignore"):
        return [np.asarray(captured(*given)) for _ in range(2)]


# the truth ------------------------------------------------------------------------------------------------------------


def _total(v: Any) -> Any:
    return reduce(lambda a, b: a + b, v)


_MANY = SimpleNamespace(
    **{n: np.frompyfunc(getattr(mp, n), 1, 1) for n in ("exp", "log", "sqrt", "cosh", "tanh", "sin", "cos")},
    arctan=np.frompyfunc(mp.atan, 1, 1),
    power=np.frompyfunc(mp.power, 2, 1),
    sum=_total,
    prod=lambda v: reduce(lambda a, b: a * b, v),
    mean=lambda v: _total(v) / len(v),
    pi=mp.pi,
)


@lru_cache
def truths(family: Family) -> list[Any]:
    """What the text is at each of its inputs, with 1,000 digits."""
    space = {"np": _MANY, "special": SimpleNamespace(erf=mp.erf, erfc=mp.erfc)}
    function = _function(family.true or family.text, family.names, space)
    return [np.asarray(function(*map(_exact, point)), object) for point in family.at]


def _exact(v: Any) -> Any:
    return np.array([mp.mpf(e) for e in v], object) if isinstance(v, list) else mp.mpf(v)


def worst(family: Family, form: str, level: str) -> float:
    """The largest relative error over the inputs of a family, at first and later calls."""
    points = zip(family.at, truths(family), strict=True)
    return max(_error(f, true) for point, true in points for f in values(family, point, form, level))


def _error(found: Any, true: Any) -> float:
    pairs = zip(*(a.ravel() for a in np.broadcast_arrays(found, true)), strict=True)
    return max(_apart(float(f), t) for f, t in pairs)


def _apart(found: float, true: Any) -> float:
    if not math.isfinite(found):
        return math.inf
    return float(abs(mp.mpf(found) - true) / abs(true)) if true else math.inf if found else 0.0
