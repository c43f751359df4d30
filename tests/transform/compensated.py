"""Code that works with roundings: error-free transformations, drawn at random, and functions whose tricks need them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import mpmath
import numpy as np

# error-free transformations: (what is rounded, its rounding error) ------------------------------------------------------


def two_sum(a, b):
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_difference(a, b):
    s = a - b
    t = s - a
    return s, (a - (s - t)) - (b + t)


def fast_two_sum(a, b):
    high, low = np.maximum(a, b), np.minimum(a, b)
    s = high + low
    return s, low - (s - high)


def halves(a):
    c = a * 134217729.0
    high = c - (c - a)
    return high, a - high


def two_product(a, b):
    p = a * b
    (ah, al), (bh, bl) = halves(a), halves(b)
    return p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)


def two_square(a):
    p = a * a
    high, low = halves(a)
    return p, ((high * high - p) + 2 * high * low) + low * low


def two_square_by_name(a):
    p = np.square(a)
    high, low = halves(a)
    return p, low**2 - ((p - high**2) - 2 * high * low)


def two_quotient(a, b):
    q = a / b
    p, e = two_product(q, b)
    return q, ((a - p) - e) / b


def two_root(a):
    s = np.sqrt(np.abs(a))
    p, e = two_square(s)
    return s, ((np.abs(a) - p) - e) / (2 * s)


PAIRS = (two_sum, two_difference, fast_two_sum, two_product, two_quotient)
SINGLES = (halves, two_square, two_square_by_name, two_root)
# of what does not run over: a quotient of exponentials that do is nan in NumPy, and a number here
STARTS: tuple[Callable, ...] = (
    lambda x: np.exp(x / (1 + np.abs(x))),
    np.sqrt,
    np.cos,
    np.log,
    lambda x: 1 + x,
    lambda x: 1 / x,
)


def program(seed: int) -> Callable:
    """A straight line of such transformations over numbers and functions of them: its results are all errors, or some."""
    r = np.random.default_rng(seed)
    firsts = [STARTS[int(k)] for k in r.permutation(len(STARTS))[:2]]
    other = STARTS[int(r.integers(len(STARTS)))]
    steps = []
    for k in range(int(r.integers(1, 5))):
        kinds = PAIRS if r.random() < 0.6 else SINGLES
        places = [int(p) for p in r.integers(5 + k, size=2)]
        steps.append((kinds[int(r.integers(len(kinds)))], places, r.random() < 0.2))
    kept = r.random()

    def run(x, y):
        pool = [x, y, firsts[0](x), firsts[1](x), other(y)]
        errors = []
        for step, (first, second), unit in steps:
            operands = (1.0 if unit else pool[first], pool[second]) if step in PAIRS else (pool[second],)
            value, error = step(*operands)
            pool.append(value)
            errors.append(error)
        if kept < 0.3:
            return errors[-1]
        return (*errors, pool[-1]) if kept < 0.6 else tuple(errors)

    return run


# sums -----------------------------------------------------------------------------------------------------------------


def kahan(v):
    s, c = v[0] * 0, v[0] * 0
    for i in range(len(v)):
        y = v[i] - c
        t = s + y
        c = (t - s) - y
        s = t
    return s


def neumaier(v):
    s, c = v[0], v[0] * 0
    for i in range(1, len(v)):
        t = s + v[i]
        if abs(s) >= abs(v[i]):
            c += (s - t) + v[i]
        else:
            c += (v[i] - t) + s
        s = t
    return s + c


def klein(v):
    s, cs, ccs = v[0] * 0, v[0] * 0, v[0] * 0
    for i in range(len(v)):
        t = s + v[i]
        c = np.where(np.abs(s) >= np.abs(v[i]), (s - t) + v[i], (v[i] - t) + s)
        s = t
        t = cs + c
        cc = np.where(np.abs(cs) >= np.abs(c), (cs - t) + c, (c - t) + cs)
        cs = t
        ccs = ccs + cc
    return s + (cs + ccs)


def squares_twice(v):
    s, c = v[0] * 0, v[0] * 0
    for i in range(len(v)):
        p, e = two_square(v[i])
        s, q = two_sum(s, p)
        c += q + e
    return s + c


def product_twice(v):
    p, e = v[0], v[0] * 0
    for i in range(1, len(v)):
        p, q = two_product(p, v[i])
        e = e * v[i] + q
    return p + e


def variance(v):
    d = v - np.mean(v)
    return (np.sum(d * d) - np.sum(d) ** 2 / len(v)) / (len(v) - 1)


def welford(v):
    mean, m2 = v[0] * 0, v[0] * 0
    for i in range(len(v)):
        d = v[i] - mean
        mean = mean + d / (i + 1)
        m2 = m2 + d * (v[i] - mean)
    return m2 / len(v)


SUMS = (kahan, neumaier, klein, squares_twice, product_twice, variance, welford)

# functions ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trick:
    """A function of one number that is right to a few roundings because its parts are rounded alike."""

    function: Callable
    true: Callable
    low: float = 1e-18
    high: float = 1.0

    def __str__(self) -> str:
        return self.function.__name__


def expm1_kahan(x):
    u = np.exp(x)
    return np.where(u == 1, x, np.where(u - 1 == -1, -1, (u - 1) * x / np.log(u)))


def expm1_kahan_late(x):
    u = np.exp(x)
    d = u - 1.0
    quotient = d / np.log(u)
    return np.where(u == 1.0, x, quotient * x)


def expm1_kahan_kept(x):
    u = np.exp(x)
    return np.where(u == 1, x, x * ((u - 1) / np.log(u))) + 0 * (u * u + 2)


def expm1_kahan_negated(x):
    u = np.exp(x)
    return np.where(u == 1, x, (1 - u) * x / -np.log(u))


def expm1_over_x(x):
    u = np.exp(x)
    return np.where(u == 1, 1, (u - 1) / np.log(u))


def expm1_by_square(x):
    h = np.exp(x / 2)
    u = h * h
    return np.where(u == 1, x, (h - 1) * (h + 1) / np.log(u) * x)


def log1p_goldberg(x):
    w = 1 + x
    return np.where(w == 1, x, x * np.log(w) / (w - 1))


def log1p_goldberg_backwards(x):
    w = x + 1.0
    z = w - 1.0
    return np.where(z == 0, x, np.log(w) * (x / np.where(z == 0, 1.0, z)))


def log1p_corrected(x):
    w = 1 + x
    return np.log(w) - ((w - 1) - x) / w


def log1m_goldberg(x):
    w = 1 - x
    return np.where(w == 1, -x, -x * np.log(w) / (1 - w))


def log1p_of_small(x):
    y = x * 0.5
    w = 1 + y
    return np.where(w == 1, y, y * np.log(w) / (w - 1))


def logarithm_of_square(x):
    w = (1 + x) * (1 + x)
    return np.where(w == 1, 2 * x, np.log(w) / (w - 1) * (x * (2 + x)))


def cosine_less_one(x):
    c = np.cos(x)
    s = np.sin(x)
    return np.where(c > 0, -(s * s) / (1 + c), c - 1)


def root_difference(x):
    a = np.sqrt(1 + x)
    return x / (a + 1)


def hyperbolic_sine(x):
    u = np.exp(x)
    e = np.where(u == 1, x, (u - 1) * x / np.log(u))
    return (e + e / (e + 1)) / 2


def hyperbolic_tangent(x):
    u = np.exp(-2 * x)
    e = np.where(u == 1, -2 * x, (u - 1) * (-2 * x) / np.log(u))
    return -e / (2 + e)


def power_less_one(x):
    u = np.exp(x * np.log(3.0))
    return np.where(u == 1, x * np.log(3.0), (u - 1) * (x * np.log(3.0)) / np.log(u))


def compound(x):
    w = 1 + x
    g = np.where(w == 1, x, x * np.log(w) / (w - 1))
    return np.exp(12 * g)


def slope_of_exp(x):
    """A difference quotient whose step is what the two points are apart in fact."""
    t = x + 1e-3
    h = t - x
    return (np.square(t) - np.square(x)) / h


mp = mpmath.mp.clone()
mp.dps = 80
TRICKS = (
    *(
        Trick(f, mp.expm1)
        for f in (expm1_kahan, expm1_kahan_late, expm1_kahan_kept, expm1_kahan_negated, expm1_by_square)
    ),
    Trick(expm1_over_x, lambda x: mp.expm1(x) / x),
    *(Trick(f, mp.log1p) for f in (log1p_goldberg, log1p_goldberg_backwards, log1p_corrected)),
    Trick(log1m_goldberg, lambda x: mp.log1p(-x), high=0.5),
    Trick(log1p_of_small, lambda x: mp.log1p(x / 2)),
    Trick(logarithm_of_square, lambda x: 2 * mp.log1p(x), low=1e-3),
    Trick(cosine_less_one, lambda x: mp.cos(x) - 1, low=1e-100),
    Trick(root_difference, lambda x: mp.sqrt(1 + x) - 1),
    Trick(hyperbolic_sine, mp.sinh),
    Trick(hyperbolic_tangent, mp.tanh),
    Trick(power_less_one, lambda x: mp.expm1(x * mp.mpf(float(np.log(3.0))))),
    Trick(compound, lambda x: (1 + x) ** 12),
    Trick(
        slope_of_exp, lambda x: (mp.mpf(float(x + 1e-3)) ** 2 - x**2) / (mp.mpf(float(float(x) + 1e-3)) - x), low=1e-3
    ),
)


def points(trick: Trick, seed: int, count: int) -> Iterator[float]:
    """Numbers of all sizes between the ends."""
    r = np.random.default_rng(seed)
    yield from 10.0 ** r.uniform(np.log10(trick.low), np.log10(trick.high), count)
