"""Numbers to fifty digits, and series of functions around nonzero numbers. Knows nothing of nodes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import comb

from tensormagic.transform.rewriting.sums.power_series import (
    NoSeriesError,
    Series,
    integral,
    number,
    raised,
    sine_and_cosine,
    slope,
)

_CONTEXT = Context(prec=50)
_HALF = Fraction(1, 2)


def _decimal(value: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))


def _rounded(value: Fraction) -> Fraction:
    """Return a number rounded to the working precision."""
    return Fraction(_decimal(value))


@lru_cache(maxsize=256)
def exact(name: str, value: Fraction, power: Fraction = Fraction(1)) -> Fraction:
    """Return the value of a function at a number, to fifty digits; raise NoSeriesError where it has none."""
    given = _decimal(value)
    if name == "exp":
        return Fraction(_CONTEXT.exp(given))
    if name in _OWN:
        return _OWN[name](value)
    if value <= 0:
        raise NoSeriesError
    logarithm = _CONTEXT.ln(given)
    if name == "log":
        return Fraction(logarithm)
    return Fraction(_CONTEXT.exp(_CONTEXT.multiply(logarithm, _decimal(power))))


def _root(value: Fraction) -> Fraction:
    return Fraction(_CONTEXT.sqrt(_decimal(value)))


_LEAST = Fraction(1, 10**52)


def _arctangent(x: Fraction) -> Fraction:
    """Return the arctangent, by halving the angle and Euler's series."""
    if abs(x) > _HALF:
        return 2 * _arctangent(_rounded(x / (1 + _root(1 + x * x))))
    square = _rounded(x * x / (1 + x * x))
    term = total = _rounded(x / (1 + x * x))
    for n in count(1):
        term = _rounded(term * square * 2 * n / (2 * n + 1))
        total += term
        if abs(term) < _LEAST:
            break
    return total


def _sine(x: Fraction, first: int) -> Fraction:
    """Return the sine by its series, or for ``first = 0`` the cosine."""
    if abs(x) > _MOST:
        raise NoSeriesError
    term = total = x if first else Fraction(1)
    for n in count(first + 1, 2):
        term = _rounded(-term * x * x / (n * (n + 1)))
        total += term
        if abs(term) < _LEAST:
            break
    return total


_MOST = 8


def _within_one(x: Fraction) -> Fraction:
    if abs(x) >= 1:
        raise NoSeriesError
    return x


_OWN: dict[str, Callable[[Fraction], Fraction]] = {
    "sin": lambda x: _sine(x, 1),
    "cos": lambda x: _sine(x, 0),
    "arctan": _arctangent,
    "arcsin": lambda x: _arctangent(_rounded(x / _root(1 - _within_one(x) ** 2))),
    "arcsinh": lambda x: exact("log", abs(x) + _root(1 + x * x)) * (1 if x > 0 else -1),
    "arctanh": lambda x: exact("log", (1 + _within_one(x)) / (1 - x)) / 2,
}


@lru_cache(maxsize=1)
def pi() -> Fraction:
    """Return the number pi, to fifty digits."""
    return 4 * _arctangent(Fraction(1))


def value_of(name: str, at: Fraction) -> Fraction:
    """Return the value of a function at a number; raise NoSeriesError if it is undefined, or unknown here."""
    if name not in _VALUES:
        raise NoSeriesError
    return _VALUES[name](at)


def _exponentials(x: Fraction) -> tuple[Fraction, Fraction]:
    if abs(x) > _MOST:
        raise NoSeriesError
    return exact("exp", x), exact("exp", -x)


def _halves(x: Fraction, sign: int) -> Fraction:
    rising, falling = _exponentials(x)
    return (rising + sign * falling) / 2


_VALUES: dict[str, Callable[[Fraction], Fraction]] = {
    **_OWN,
    "sqrt": lambda x: exact("power", x, _HALF),
    "cbrt": lambda x: exact("power", abs(x), Fraction(1, 3)) * (1 if x > 0 else -1),
    "exp": lambda x: _exponentials(x)[0],
    "expm1": lambda x: _exponentials(x)[0] - 1,
    "exp2": lambda x: _exponentials(_rounded(x * exact("log", Fraction(2))))[0],
    "log": lambda x: exact("log", x),
    "log2": lambda x: exact("log", x) / exact("log", Fraction(2)),
    "log10": lambda x: exact("log", x) / exact("log", Fraction(10)),
    "softplus": lambda x: exact("log", 1 + _exponentials(x)[0]),
    "sigmoid": lambda x: 1 / (1 + _exponentials(x)[1]),
    "tan": lambda x: _sine(x, 1) / _sine(x, 0),
    "sinh": lambda x: _halves(x, -1),
    "cosh": lambda x: _halves(x, 1),
    "tanh": lambda x: _halves(x, -1) / _halves(x, 1),
    "arccos": lambda x: pi() / 2 - _OWN["arcsin"](x),
}


_SLOPES = {
    "arctan": (1, Fraction(-1)),
    "arctanh": (-1, Fraction(-1)),
    "arcsin": (-1, -_HALF),
    "arcsinh": (1, -_HALF),
}
"""Functions whose slope at ``u`` is a power of ``1 + u * u``, or with -1 of ``1 - u * u``."""


@lru_cache(maxsize=64)
def beside(name: str, u: Series) -> Series:
    """Return the series of a function whose argument is a nonzero number at the place."""
    at, size = Fraction(u.at(0)), len(u.terms)
    if name in _SLOPES:
        sign, power = _SLOPES[name]
        square = u * u
        whole = (square if sign > 0 else -square) + number(Fraction(1), size)
        first = Fraction(whole.at(0))
        if first <= 0:
            raise NoSeriesError
        rest = raised(whole * number(1 / first, size), power)
        times = 1 / first if power == -1 else exact("power", first, power)
        return integral(slope(u) * rest * number(times, size)) + number(exact(name, at), size)
    if name not in {"sin", "cos", "tan"}:
        raise NoSeriesError
    s, c = sine_and_cosine(u + number(-at, size))
    first, second = (number(exact(n, at), size) for n in ("sin", "cos"))
    sine, cosine = first * c + second * s, second * c + -(first * s)
    return {"sin": sine, "cos": cosine}.get(name) or sine / cosine


@lru_cache(maxsize=8)
def stirling(terms: int) -> tuple[Fraction, ...]:
    """Return the coefficients of the odd powers of ``1 / x`` in ``log(gamma(x))`` for large x."""
    bernoulli = [Fraction(1)]
    for n in range(1, 2 * terms + 1):
        bernoulli.append(-sum((comb(n + 1, k) * b for k, b in enumerate(bernoulli)), Fraction(0)) / (n + 1))
    return tuple(bernoulli[2 * k] / (2 * k * (2 * k - 1)) for k in range(1, terms + 1))


@lru_cache(maxsize=8)
def tails(terms: int) -> tuple[Fraction, ...]:
    """Return the coefficients of the even powers of ``1 / x`` in ``erfcx(x) * x * sqrt(pi)`` for large x."""
    found = [Fraction(1)]
    for n in range(1, terms):
        found.append(found[-1] * Fraction(1 - 2 * n, 2))
    return tuple(found)
