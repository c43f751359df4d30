"""Fit the polynomials of vecmath's tables, and say whether the tables hold them.

    python benchmarks/vecmath_coefficients.py [NAME ...]

A fit is least squares at Chebyshev points in 70 digits, reweighted (Lawson) towards the smallest largest error. Each
coefficient in turn is rounded to the float format, and the later ones fitted again to what is left.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

from tensormagic.backend.vecmath.tables import FLOAT32, FLOAT64, Polynomials

mp.mp.dps = 70
POINTS = 120
TINY = mp.mpf(10) ** -12

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Fit:
    """A function on an interval, the weight of its errors, and the degree of the polynomial."""

    function: Function
    weight: Function
    lower: Any
    upper: Any
    degree: int


def lawson(points: Sequence[Any], values: Sequence[Any], weights: Sequence[Any], powers: range, sweeps: int) -> Any:
    """The coefficients of the best of some reweighted least-squares fits, and its largest error."""
    table = [[x**p for p in powers] for x in points]
    emphasis, best = [mp.mpf(1)] * len(points), None
    for _ in range(sweeps):
        squares = [e * w * w for e, w in zip(emphasis, weights, strict=True)]
        matrix, right = mp.matrix(len(powers)), mp.matrix(len(powers), 1)
        for i in range(len(powers)):
            column = [s * row[i] for s, row in zip(squares, table, strict=True)]
            right[i] = mp.fdot(column, values)
            for j in range(i, len(powers)):
                matrix[i, j] = matrix[j, i] = mp.fdot(column, [row[j] for row in table])
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[i] for i in range(len(powers))]
        errors = [abs(w * (mp.fdot(coefficients, row) - v)) for w, row, v in zip(weights, table, values, strict=True)]
        largest = max(errors)
        if best is None or largest < best[1]:
            best = (coefficients, largest)
        emphasis = [e * (error / largest + mp.mpf("1e-3")) for e, error in zip(emphasis, errors, strict=True)]
        total = sum(emphasis)
        emphasis = [e * len(points) / total for e in emphasis]
    return best


def rounded_fit(fit: Fit, bits: int) -> tuple[tuple[float, ...], float]:
    """The rounded coefficients, and the binary logarithm of the largest weighted error."""
    lower, upper = mp.mpf(fit.lower), mp.mpf(fit.upper)
    turns = [(1 - mp.cos(mp.pi * (i + mp.mpf(".5")) / POINTS)) / 2 for i in range(POINTS)]
    points = [lower + (upper - lower) * t for t in turns]
    left, weights = [fit.function(x) for x in points], [fit.weight(x) for x in points]
    result: list[float] = []
    for k in range(fit.degree + 1):
        coefficients, _ = lawson(points, left, weights, range(k, fit.degree + 1), 6 if k else 16)
        number = float(coefficients[0])
        result.append(number if bits == 64 else float(np.float32(number)))
        left = [v - mp.mpf(result[k]) * x**k for v, x in zip(left, points, strict=True)]
    largest = max(abs(w * v) for w, v in zip(weights, left, strict=True))
    return tuple(result), float(mp.log(largest, 2))


def of_square(function: Function) -> Function:
    """The even function of x as a function of x*x."""
    return lambda z: function(mp.sqrt(z))


def logarithm(s: Any) -> Any:
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / s**3


def logarithm_rest(s: Any) -> Any:
    return (logarithm(s) - mp.mpf(2) / 3) / s**2


def scaled_erfc(center: int) -> Function:
    def function(q: Any) -> Any:
        a = center * (1 + q) / (1 - q)
        return (1 + 2 * a) * mp.exp(a * a) * mp.erfc(a)

    return function


def odd_rest(function: Function) -> Function:
    """What follows x in an odd function, over x**3, in x*x."""
    return of_square(lambda x: (function(x) - x) / x**3)


def one(_: Any) -> Any:
    return mp.mpf(1)


def fits(p: Polynomials, bits: int) -> dict[str, Fit]:
    """The fits of a format, by the names of the tables."""
    double = bits == 64
    half = mp.log(2) / 2 * mp.mpf(1.0001 if double else 1.01)
    eighth = (mp.pi / 4 * mp.mpf("1.0001")) ** 2 * mp.mpf(1 if double else 1.02)
    root = ((mp.mpf("1.41423") - 1) / (mp.mpf("1.41423") + 1)) ** 2
    near_zero, square = (lambda r: abs(r) + mp.mpf(10) ** -9), (lambda z: z * z)
    center = int(p.erfc_center)
    erfc_zero = mp.mpf(str(p.erfc_zero))

    def power(r: Any) -> Any:
        return (mp.expm1(r) - r) / r**2

    return {
        "exp": Fit(power, near_zero, -half, half, 9 if double else 4),
        "expm1": Fit(power, near_zero, -half, half, 10 if double else 5),
        "log": Fit(of_square(logarithm), lambda z: z, TINY, root, 6 if double else 2),
        "log_unit": Fit(of_square(logarithm), lambda z: z, TINY, mp.mpf("0.2001") ** 2, 7 if double else 3),
        "log_long": Fit(of_square(logarithm_rest), square, TINY, root, 7 if double else 2),
        "sin": Fit(of_square(lambda r: (mp.sin(r) - r) / r**3), lambda z: z, TINY, eighth, 5 if double else 2),
        "cos": Fit(of_square(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4), square, TINY, eighth, 5 if double else 2),
        "tanh_near": Fit(
            of_square(lambda x: (mp.tanh(x) - x) / x**3),
            lambda z: z,
            TINY,
            mp.mpf(str(p.tanh_far)) ** 2,
            14 if double else 6,
        ),
        "erf_near": Fit(of_square(lambda x: mp.erf(x) / x - 1), one, TINY, 1, 12 if double else 6),
        "erf_far": Fit(lambda a: -mp.log(mp.erfc(a)), mp.erfc, 1, str(p.erf_one), 17 if double else 7),
        "tan": Fit(odd_rest(mp.tan), lambda z: z, TINY, eighth, 14 if double else 6),
        "arcsin": Fit(odd_rest(mp.asin), lambda z: z, TINY, mp.mpf("0.25"), 12 if double else 4),
        "arctan": Fit(odd_rest(mp.atan), lambda z: z, TINY, mp.mpf("0.41422") ** 2, 10 if double else 4),
        "sinh": Fit(odd_rest(mp.sinh), lambda z: z, TINY, 1, 6 if double else 3),
        "cbrt": Fit(lambda m: 1 / mp.cbrt(m), mp.cbrt, mp.mpf("0.7071"), mp.mpf("1.41422"), 6 if double else 4),
        "erfc": Fit(scaled_erfc(center), one, -1, (erfc_zero - center) / (erfc_zero + center), 23 if double else 10),
    }


def main() -> int:
    """Fit the named polynomials, or all; 1 where a table holds another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    names, differ = parser.parse_args().names, 0
    for table, bits in ((FLOAT64, 64), (FLOAT32, 32)):
        for name, fit in fits(table, bits).items():
            if names and name not in names:
                continue
            coefficients, error = rounded_fit(fit, bits)
            same = coefficients == getattr(table, name)
            differ |= not same
            sys.stdout.write(f"{name} float{bits}: largest weighted error 2**{error:.1f}, ")
            sys.stdout.write("as in the table\n" if same else f"not as in the table:\n  {coefficients}\n")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
