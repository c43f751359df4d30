"""Power series at 0 with fractions as coefficients: their arithmetic, and functions of them. Knows nothing of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

_Terms = Sequence[Fraction | int]


class NoSeriesError(Exception):
    """Raised if a function has no series at 0."""


@dataclass(frozen=True)
class Series:
    """``x ** order`` times a truncated power series.

    Parameters
    ----------
    order
        The power of the first term.
    terms
        The coefficients from there on; the first is nonzero unless all are zero.
    """

    order: int
    terms: tuple[Fraction | int, ...]

    @property
    def end(self) -> int:
        """The first power whose coefficient is unknown."""
        return self.order + len(self.terms)

    def __add__(self, other: Series) -> Series:
        start, end = min(self.order, other.order), min(self.end, other.end)
        return series([self.at(k) + other.at(k) for k in range(start, end)], start)

    def __neg__(self) -> Series:
        return Series(self.order, tuple(-c for c in self.terms))

    def __mul__(self, other: Series) -> Series:
        n = min(len(self.terms), len(other.terms))
        found: list[Fraction | int] = [0] * n
        for k, c in enumerate(self.terms[:n]):
            if c:
                for m, d in enumerate(other.terms[: n - k]):
                    if d:
                        found[k + m] += c * d
        return series(found, self.order + other.order)

    def __truediv__(self, other: Series) -> Series:
        if not other.terms or not other.terms[0]:
            raise NoSeriesError
        n = min(len(self.terms), len(other.terms))
        first = Fraction(other.terms[0])
        found: list[Fraction | int] = []
        for k in range(n):
            rest = self.terms[k] - sum(other.terms[j] * found[k - j] for j in range(1, k + 1) if other.terms[j])
            found.append(rest / first if rest else 0)
        return series(found, self.order - other.order)

    def at(self, power: int) -> Fraction | int:
        """Return the coefficient of a power."""
        return self.terms[power - self.order] if self.order <= power < self.end else 0

    def below(self) -> list[Fraction | int]:
        """Return the coefficients from the power 0 on; raise NoSeriesError if the series is infinite at 0."""
        if self.order < 0:
            raise NoSeriesError
        return [0] * self.order + list(self.terms)


def series(terms: _Terms, order: int = 0) -> Series:
    """Return the series of these coefficients, without leading zeros."""
    skip = next((k for k, c in enumerate(terms) if c), len(terms))
    return Series(order + skip, tuple(terms[skip:]))


def power_of_x(k: int, known: int) -> Series:
    """Return ``x ** k`` with ``known`` terms."""
    return Series(k, (1, *(0,) * (known - 1)))


def number(value: Fraction, known: int) -> Series:
    """Return a constant as a series."""
    return Series(0, (value, *(0,) * (known - 1))) if value else Series(known, ())


def in_powers(coefficients: Sequence[Fraction], small: Series) -> Series:
    """Return the polynomial with these coefficients at ``small``."""
    size = len(small.terms)
    found = number(coefficients[-1], size)
    for c in reversed(coefficients[:-1]):
        found = found * small + number(c, size)
    return found


# functions ------------------------------------------------------------------------------------------------------------


def _zero_at_zero(u: Series) -> list[Fraction | int]:
    terms = u.below()
    if not terms or terms[0]:
        raise NoSeriesError
    return terms


def _one_at_zero(w: Series) -> list[Fraction | int]:
    terms = w.below()
    if not terms or terms[0] != 1:
        raise NoSeriesError
    return terms


def _slopes(terms: _Terms) -> list[Fraction | int]:
    return [k * c for k, c in enumerate(terms)]


def exponential(u: Series) -> Series:
    """Return ``exp(u)``, from ``e' = u' e``."""
    slopes = _slopes(_zero_at_zero(u))
    found: list[Fraction | int] = [1]
    for n in range(1, len(slopes)):
        found.append(Fraction(sum(slopes[k] * found[n - k] for k in range(1, n + 1) if slopes[k])) / n)
    return series(found)


def sine_and_cosine(u: Series, sign: int = -1) -> tuple[Series, Series]:
    """Return sine and cosine of ``u``, hyperbolic for a positive sign, from ``s' = u' c`` and ``c' = sign u' s``."""
    slopes = _slopes(_zero_at_zero(u))
    s: list[Fraction | int] = [0]
    c: list[Fraction | int] = [1]
    for n in range(1, len(slopes)):
        own = [k for k in range(1, n + 1) if slopes[k]]
        s.append(Fraction(sum(slopes[k] * c[n - k] for k in own)) / n)
        c.append(Fraction(sign * sum(slopes[k] * s[n - k] for k in own)) / n)
    return series(s), series(c)


def raised(w: Series, power: Fraction) -> Series:
    """Return ``w ** power``: small integer powers of any series, others of a series that is 1 at 0."""
    if power.denominator == 1 and 0 <= power <= 4:
        found = number(Fraction(1), len(w.terms))
        for _ in range(int(power)):
            found = found * w
        return found
    terms = _one_at_zero(w)
    out: list[Fraction | int] = [1]
    for n in range(1, len(terms)):
        total = sum((power * k - (n - k)) * terms[k] * out[n - k] for k in range(1, n + 1) if terms[k])
        out.append(Fraction(total) / n)
    return series(out)


def integral(of: Series) -> Series:
    """Return the antiderivative that is 0 at 0."""
    return series([0, *(Fraction(c) / (k + 1) for k, c in enumerate(of.below()))])


def slope(u: Series) -> Series:
    """Return the derivative."""
    return series(_slopes(u.below())[1:])


def _one_plus(u: Series) -> Series:
    terms = _zero_at_zero(u)
    return series([1, *terms[1:]])


def logarithm(w: Series) -> Series:
    """Return ``log(w)`` for a series that is 1 at 0."""
    _one_at_zero(w)
    return integral(slope(w) / w)


def _by_slope(of: Callable[[Series], Series]) -> Callable[[Series], Series]:
    """Return a function of series that is 0 at 0 and whose derivative is ``of(u * u)``."""

    def function(u: Series) -> Series:
        _zero_at_zero(u)
        return integral(slope(u) * of(u * u))

    return function


def _root_below(square: Series) -> Series:
    return raised(_one_plus(square), Fraction(-1, 2))


_FUNCTIONS: dict[str, Callable[[Series], Series]] = {
    "exp": exponential,
    "expm1": lambda u: series([0, *exponential(u).terms[1:]]),
    "sin": lambda u: sine_and_cosine(u, -1)[0],
    "cos": lambda u: sine_and_cosine(u, -1)[1],
    "tan": lambda u: sine_and_cosine(u, -1)[0] / sine_and_cosine(u, -1)[1],
    "sinh": lambda u: sine_and_cosine(u, 1)[0],
    "cosh": lambda u: sine_and_cosine(u, 1)[1],
    "tanh": lambda u: sine_and_cosine(u, 1)[0] / sine_and_cosine(u, 1)[1],
    "log": logarithm,
    "log1p": lambda u: logarithm(_one_plus(u)),
    "sqrt": lambda w: raised(w, Fraction(1, 2)),
    "cbrt": lambda w: raised(w, Fraction(1, 3)),
    "arctan": _by_slope(lambda s: raised(_one_plus(s), Fraction(-1))),
    "arctanh": _by_slope(lambda s: raised(_one_plus(-s), Fraction(-1))),
    "arcsin": _by_slope(lambda s: _root_below(-s)),
    "arcsinh": _by_slope(_root_below),
    "sigmoid": lambda u: raised(_half_of_more(u), Fraction(-1)) * number(Fraction(1, 2), len(u.terms) + u.order),
}

half_of_erf = lru_cache(maxsize=64)(_by_slope(lambda s: exponential(-s)))
"""``erf(u) * sqrt(pi) / 2``, whose coefficients are all rational."""

FUNCTIONS = {name: lru_cache(maxsize=64)(of) for name, of in _FUNCTIONS.items()}
"""Functions of series by the name of the op, cached as most calls repeat a few arguments."""


def _half_of_more(u: Series) -> Series:
    """Return ``(1 + exp(-u)) / 2``, which is 1 at 0."""
    terms = exponential(-u).terms
    return series([1, *(Fraction(c) / 2 for c in terms[1:])])
