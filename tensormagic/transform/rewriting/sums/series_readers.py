"""Readers of functions as expansions: what each function gives for the expansions of its arguments. Knows no rules."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tensormagic.ops.scalars.scalar import cos, cosh, sin, sinh
from tensormagic.transform.rewriting.sums.fifty_digits import exact, pi
from tensormagic.transform.rewriting.sums.power_series import FUNCTIONS, NoSeriesError

if TYPE_CHECKING:
    from tensormagic.transform.rewriting.sums.expansions import Expansion, Read

_HALF = Fraction(1, 2)


_OTHER = {"sin": (cos, 1), "cos": (sin, -1), "sinh": (cosh, 1), "cosh": (sinh, 1)}
_OWN = {"sin": sin, "cos": cos, "sinh": sinh, "cosh": cosh}
_NUMBER: frozenset[Any] = frozenset()


def _of_sum(of: Expansion, name: str, a: Read) -> Read | None:
    """Return ``sin(b + t)`` and the like by the sine and cosine of ``b`` for small ``t``, or None if ``a`` is no such sum."""
    base = of.place.shifted(a) if len(a) > 1 and name in _OTHER else None
    if base is None:
        return None
    other, sign = _OTHER[name]
    even, odd = (FUNCTIONS[f](a[_NUMBER]) for f in (("cos", "sin") if name in {"sin", "cos"} else ("cosh", "sinh")))
    nodes = (of.same(_OWN[name](base)), even), (of.same(other(base)), odd if sign > 0 else -odd)
    return {frozenset(((node, Fraction(1)),)): own for node, own in nodes}


def _hyperbolic(name: str, top: tuple[int, int], below: tuple[int, int] | None) -> Any:
    def read(of: Expansion, a: Read) -> Read:
        if (found := _of_sum(of, name, a)) is not None:
            return found
        try:
            return of.function(name, a)
        except NoSeriesError:
            return of.by_exponentials(a, top, below)

    return read


def _power(of: Expansion, a: Read, b: Read) -> Read:
    """Return a power: directly if the exponent is constant, otherwise by the logarithm."""
    if set(b) == {frozenset()} and of.constant(b):
        return of.raised(a, Fraction(b[frozenset()].terms[0]))
    return of.exponential(of.product(b, of.logarithm(a)))


def _to_base(base: int) -> Any:
    return lambda of, a: of.product(of.logarithm(a), of.number(1 / exact("log", Fraction(base))))


def _log_of_sum(of: Expansion, a: Read, b: Read) -> Read:
    """Return ``log(exp(a) + exp(b))``, by their difference."""
    rise = of.exponential(of.sum([b, a], (1, -1)))
    return of.sum([a, of.logarithm(of.plus(rise, 1))], (1, 1))


def _sinc(of: Expansion, a: Read) -> Read:
    poles, turned = of.poles, of.product(a, of.number(pi()))
    found = of.product(of.function("sin", turned), of.inverse(turned))
    of.poles = poles  # the function has a finite value at 0
    return found


def _named(name: str) -> Any:
    return lambda of, a: _of_sum(of, name, a) or of.function(name, a)


READERS: dict[str, Any] = {
    "add": lambda of, a, b: of.sum([a, b], (1, 1)),
    "subtract": lambda of, a, b: of.sum([a, b], (1, -1)),
    "negative": lambda of, a: of.sum([a], (-1,)),
    "multiply": lambda of, a, b: of.product(a, b),
    "square": lambda of, a: of.product(a, a),
    "divide": lambda of, a, b: of.product(a, of.inverse(b)),
    "reciprocal": lambda of, a: of.inverse(a),
    "power": _power,
    "sqrt": lambda of, a: of.raised(a, Fraction(1, 2)),
    "cbrt": lambda of, a: of.raised(a, Fraction(1, 3)),
    "log": lambda of, a: of.logarithm(a),
    "log2": _to_base(2),
    "log10": _to_base(10),
    "log1p": lambda of, a: of.logarithm(of.plus(a, 1)),
    "xlogy": lambda of, a, b: of.product(a, of.logarithm(b)),
    "log1mexp": lambda of, a: of.logarithm(of.sum([of.number(1), of.exponential(a)], (1, -1))),
    "softplus": lambda of, a: of.logarithm(of.plus(of.exponential(a), 1)),
    "sigmoid": lambda of, a: of.inverse(of.plus(of.exponential(of.sum([a], (-1,))), 1)),
    "logaddexp": _log_of_sum,
    "exp": lambda of, a: of.exponential(a),
    "exp2": lambda of, a: of.exponential(of.product(a, of.number(exact("log", Fraction(2))))),
    "expm1": lambda of, a: of.plus(of.exponential(a), -1),
    "sinh": _hyperbolic("sinh", (1, -1), None),
    "cosh": _hyperbolic("cosh", (1, 1), None),
    "tanh": _hyperbolic("tanh", (1, -1), (1, 1)),
    "hypot": lambda of, a, b: of.raised(of.sum([of.product(a, a), of.product(b, b)], (1, 1)), _HALF),
    "absolute": lambda of, a: of.size(a),
    "sinc": _sinc,
    "arccos": lambda of, a: of.sum([of.number(pi() / 2), of.function("arcsin", a)], (1, -1)),
    "arctan2": lambda of, a, b: of.angle(a, b),
    "erf": lambda of, a: of.error(a),
    "erfc": lambda of, a: of.sum([of.number(1), of.error(a)], (1, -1)),
    "erfcx": lambda of, a: of.tail(a),
    "gammaln": lambda of, a: of.log_gamma(a),
    **{name: _named(name) for name in ("sin", "cos", "tan", "arctan", "arctanh", "arcsin", "arcsinh")},
}
ROOTS = frozenset(("sqrt", "cbrt", "power"))
ARITHMETIC = frozenset(("add", "subtract", "negative", "multiply", "square", "divide", "reciprocal"))
