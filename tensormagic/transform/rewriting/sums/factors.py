"""Factors of polynomials that vanish where two numbers are equal, or where one is a number of few bits. Knows nothing of nodes.

``x**3 - 3 * x**2 + 3 * x - 1`` is ``(x - 1)**3``, and ``(x**2 + y**2) / 2 - ((x + y) / 2)**2`` is ``(x - y)**2 / 4``:
a factor ``x - 1`` or ``x - y`` has no rounding error where it is near 0, which is where the written sum has lost its
digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

Powers = tuple[int, ...]
Polynomial = dict[Powers, Fraction | int]

_DEGREE = 6
_LARGEST = 4096
"""The largest number whose divisors are tried."""


@dataclass(frozen=True)
class Factored:
    """A number times factors times a remaining polynomial."""

    number: Fraction
    factors: tuple[tuple[Polynomial, int], ...]
    rest: Polynomial


def factored(p: Mapping[Powers, Fraction | int]) -> Factored | None:
    """Return the factors of a polynomial in one variable, or a homogeneous one in two, with roots of few bits, or None if it has none."""
    own = [k for k in range(len(next(iter(p)))) if any(powers[k] for powers in p)]
    degrees = {sum(powers) for powers in p}
    if not own or max(degrees) > _DEGREE or max(degrees) < 2 or not any(c < 0 for c in p.values()):
        return None
    if len(own) == 1 or (len(own) == 2 and len(degrees) == 1):
        return _by_roots(p, own)
    factors, rest = _by_variables(p, own)
    more, rest = _by_equal_numbers(rest, own)
    return Factored(Fraction(1), (*factors, *more), rest) if factors or more else None


def _by_variables(
    p: Mapping[Powers, Fraction | int], own: list[int]
) -> tuple[tuple[tuple[Polynomial, int], ...], Polynomial]:
    """Return the factors ``x - r`` of what is linear in ``x``, and the rest: ``1 + x * y - x - y`` is ``(x - 1) * (y - 1)``."""
    nothing = (0,) * len(next(iter(p)))
    left: Polynomial = dict(p)
    found: list[tuple[Polynomial, int]] = []
    for k in own:
        times = {_without(powers, k): Fraction(c) for powers, c in left.items() if powers[k] == 1}
        plus = {powers: Fraction(c) for powers, c in left.items() if not powers[k]}
        if len(times) + len(plus) < len(left) or times.keys() != plus.keys():
            continue
        roots = {-plus[powers] / c for powers, c in times.items()}
        if len(roots) == 1:
            one = tuple(int(m == k) for m in range(len(nothing)))
            found.append(({one: 1, nothing: -roots.pop()}, 1))
            left = dict(times)
    return tuple(found), left


def _by_equal_numbers(p: Polynomial, own: list[int]) -> tuple[list[tuple[Polynomial, int]], Polynomial]:
    """Return the factors ``x - y``, ``x + y``, ``x - 1`` and ``x + 1`` of a polynomial of several variables, and the rest."""
    size = len(next(iter(p)))
    ones = [tuple(int(m == k) for m in range(size)) for k in range(size)]
    pairs = [*combinations(own, 2), *((k, None) for k in own)]
    found: list[tuple[Polynomial, int]] = []
    for k, m in pairs:
        for sign in (1, -1):
            times = 0
            while len(p) > 1 and _may_be_0(p, k, sign) and (rest := _over_difference(p, k, m, sign)) is not None:
                p, times = rest, times + 1
            if times:
                found.append(({ones[k]: 1, (0,) * size if m is None else ones[m]: -sign}, times))
    return found, p


def _may_be_0(p: Polynomial, k: int, sign: int) -> bool:
    """Return whether a polynomial is 0 where ``x_k`` is ``sign`` and all others are 1 (a quick test)."""
    values = [float(c) if sign > 0 or powers[k] % 2 == 0 else -float(c) for powers, c in p.items()]
    return abs(sum(values)) <= _NOTHING * max(map(abs, values))


_NOTHING = 1e-9


def _over_difference(p: Polynomial, k: int, m: int | None, sign: int) -> Polynomial | None:
    """Return a polynomial over ``x_k - sign * x_m``, or ``x_k - sign`` without ``m``, or None if that is no factor of it."""
    rows: dict[int, Polynomial] = {}
    for powers, c in p.items():
        rows.setdefault(powers[k], {})[_without(powers, k)] = c
    found: Polynomial = {}
    carried: Polynomial = {}
    for power in range(max(rows), -1, -1):
        for powers, c in rows.get(power, {}).items():
            carried[powers] = carried.get(powers, 0) + c
        carried = {powers: c for powers, c in carried.items() if c}
        if not power:
            return None if carried else found
        found.update({(*q[:k], power - 1, *q[k + 1 :]): c for q, c in carried.items()})
        carried = {q if m is None else (*q[:m], q[m] + 1, *q[m + 1 :]): c * sign for q, c in carried.items()}
    return None


def _without(powers: Powers, k: int) -> Powers:
    return (*powers[:k], 0, *powers[k + 1 :])


def _by_roots(p: Mapping[Powers, Fraction | int], own: list[int]) -> Factored | None:
    size, degree = len(next(iter(p))), max(map(sum, p))
    coefficients = [Fraction(0)] * (degree + 1)
    for powers, c in p.items():
        coefficients[powers[own[0]]] = Fraction(c)
    found: list[tuple[Fraction, int]] = []
    for root in _candidates(coefficients, both=len(own) == 2):
        times = 0
        while len(coefficients) > 1 and not _at(coefficients, root):
            coefficients = _divided(coefficients, root)
            times += 1
        if times:
            found.append((root, times))
    if not found:
        return None

    def at(first: int, second: int) -> Powers:
        exponents = [0] * size
        exponents[own[0]] = first
        if len(own) == 2:
            exponents[own[1]] = second
        return tuple(exponents)

    scale = Fraction(1)
    factors: list[tuple[Polynomial, int]] = []
    for root, times in found:
        p_, q = (root.numerator, root.denominator) if len(own) == 2 else (root, 1)
        factors.append(({at(1, 0): q, at(0, 1): -p_}, times))
        scale /= Fraction(q) ** times
    last = len(coefficients) - 1
    lead = coefficients[last] if not last else Fraction(1)
    rest: Polynomial = {at(k, last - k): c / lead for k, c in enumerate(coefficients) if c}
    return Factored(scale * lead, tuple(factors), rest)


def _candidates(coefficients: list[Fraction], *, both: bool) -> Iterator[Fraction]:
    """Yield numbers of few bits that may be roots; with ``both`` variables, powers of two only."""
    whole = math.lcm(*(c.denominator for c in coefficients))
    common = math.gcd(*(int(c * whole) for c in coefficients))  # to reduce multiples of pi, for example
    scaled = [int(c * whole) // common for c in coefficients]
    if not scaled[0] or not scaled[-1] or max(map(abs, scaled)) > 2**40:
        return
    for q in _divisors(scaled[-1]):
        if q & (q - 1):
            continue
        for p in _divisors(scaled[0]):
            if math.gcd(p, q) == 1 and not (both and p & (p - 1)):
                yield Fraction(p, q)
                yield Fraction(-p, q)


def _divisors(n: int) -> list[int]:
    n = abs(n)
    return [d for d in range(1, min(n, _LARGEST) + 1) if n % d == 0] if n < _LARGEST**2 else []


def _at(coefficients: list[Fraction], x: Fraction) -> Fraction:
    value = Fraction(0)
    for c in reversed(coefficients):
        value = value * x + c
    return value


def _divided(coefficients: list[Fraction], root: Fraction) -> list[Fraction]:
    """Return the quotient by the factor ``x - root``."""
    found: list[Fraction] = []
    carried = Fraction(0)
    for c in reversed(coefficients[1:]):
        carried = c + carried * root
        found.append(carried)
    return found[::-1]


def squares_of_differences(p: Mapping[Powers, Fraction | int]) -> list[tuple[int, int, Fraction]] | None:
    """Return ``(i, j, c)`` for each ``c * (x_i - x_j)**2`` of a quadratic form, or None if it is no sum of these with one sign."""
    size = len(next(iter(p)))
    rows = [Fraction(0)] * size
    found: list[tuple[int, int, Fraction]] = []
    for powers, c in p.items():
        own = [k for k in range(size) if powers[k]]
        if sum(powers) != 2:
            return None
        if len(own) == 1:
            rows[own[0]] += 2 * Fraction(c)
        else:
            found.append((own[0], own[1], -Fraction(c) / 2))
            for k in own:
                rows[k] += c
    if any(rows) or len(found) < 2 or len({c > 0 for _, _, c in found}) != 1:
        return None
    return found


def square_less_square(p: Mapping[Powers, Fraction | int]) -> tuple[int, int, int, Fraction] | None:
    """Return ``(i, j, k, c)`` if the form is ``c * (x_k**2 - (x_i - x_j)**2)``, as in Heron's formula; else None."""
    squares = {powers.index(2): Fraction(c) for powers, c in p.items() if 2 in powers and sum(powers) == 2}
    mixed = [(powers, Fraction(c)) for powers, c in p.items() if powers.count(1) == 2 and sum(powers) == 2]
    if len(p) != 4 or len(squares) != 3 or len(mixed) != 1:
        return None
    powers, twice = mixed[0]
    i, j = (n for n, power in enumerate(powers) if power)
    (k,) = (n for n in squares if n not in {i, j}) if {i, j} <= squares.keys() else (i,)
    c = squares[k]
    if k == i or squares[i] != -c or squares[j] != -c or twice != 2 * c:
        return None
    return i, j, k, c
