"""Sampled functions, padding, polynomials, choices and repeated calls in captured code against NumPy: values, and errors."""

import warnings

import numpy as np
import pytest

from tests.capture.harness import check

RNG = np.random.default_rng(0)
NAMES = {
    "x": RNG.normal(size=6),
    "A": RNG.normal(size=(4, 3)),
    "i": np.array([1, 2, 0]),
    "n": np.array([1.0, np.nan, 3, 2]),
    "s": 0.3,
    "T": RNG.normal(size=(2, 3, 4)),
    "z": RNG.normal(size=4) + 1j,
    "f": RNG.normal(size=5).astype(np.float32),
    "m": RNG.normal(size=6) > 0,
    "k": np.array([3, 1, 2, 0, 5]),
}

SOURCES = """
np.clip(np.zeros(0, np.uint8) + i[:0].astype(np.uint8), -1, 1)
np.clip(i.astype(np.uint8), -1, 1)
np.clip(x, None, 1)
np.clip(x, min=0)
np.clip(x)
np.diff(x, prepend=0, append=[1, 2])
np.diff(A, 2, axis=0)
np.ediff1d(x, to_end=[1., 2], to_begin=0.)
np.gradient(x)
np.gradient(x, .5)
np.gradient(A, x[:4], 2.)
np.gradient(A, np.array([0., 1, 3, 4]), axis=0, edge_order=2)
np.gradient(x, np.arange(6.) * s)
np.gradient(x, edge_order=2)
np.gradient(x, np.cumsum(x*x), edge_order=2)
np.trapezoid(x)
np.trapezoid(A, dx=.1, axis=0)
np.trapezoid(A, x=np.cumsum(x*x)[:4], axis=0)
np.trapezoid(A, A*A, axis=1)
np.unwrap(x*5)
np.unwrap(k*3, period=7)
np.unwrap(k*3, period=6)
np.unwrap(A*5, axis=0, discont=4)
np.interp(s, np.sort(x), x)
np.interp(A, np.sort(x), x, left=-1)
np.interp(x, np.array([0., .5, 1]), A[0], right=9)
np.interp(x, np.array([1.]), A[0, :1])
np.interp(x, k * 1.7, z.real[[0,1,2,3,0]], period=2.)
np.interp(x, np.array([0., .5, 1]), z[:3])
np.convolve(x, k)
np.convolve(x, k, 'same')
np.convolve(k, x, 'same')
np.convolve(x, i, 'valid')
np.convolve(i, x, 'valid')
np.convolve(z, x)
np.correlate(x, i)
np.correlate(i, x)
np.correlate(x, i, 'full')
np.correlate(i, x, 'full')
np.correlate(x, i, 'same')
np.correlate(i, x, 'same')
np.correlate(x[:4], i, 'same')
np.correlate(i, x[:4], 'same')
np.correlate(x, z, 'full')
np.correlate(z, x, 'same')
np.select([x > 0, x < -1], [x, x * 2], 7)
np.select([x > 0, x < -1], [i.sum(), 2])
np.piecewise(x, [x < 0, x >= 0.5], [-1, 1])
np.piecewise(x, [x < 0, x >= 0.5], [lambda v: v * 2, lambda v: v ** 2, 9])
np.piecewise(x, x < 0, [lambda v: v * 2, 9])
np.choose(i, [x[:3], x[3:], 0])
np.choose(i, [x[:3], x[3:]])
np.choose(i, [x[:3], x[3:]], mode='wrap')
np.choose(i, np.arange(9).reshape(3, 3) * s)
np.isclose(x, x + 1e-9)
np.allclose(x, x)
np.array_equal(x, x)
np.array_equal(x, A)
np.array_equiv(x, x[None])
np.isposinf(x)
np.isreal(z)
np.isin(k, [1, 5])
np.isin(k, i, invert=True)
np.round(x, 2)
np.round(z, 1)
np.round(k * 12, -1)
np.round(s, 1)
np.fix(x)
np.fabs(x)
np.sinc(x)
np.sinc(k)
np.sinc(f)
np.sinc(z)
np.angle(z, deg=True)
np.real_if_close(x)
np.heaviside(x, .5)
np.sign(x)
np.bitwise_and(k, 3)
k << 2 | 1
~k
np.bitwise_count(k)
np.take(A, i, axis=1, mode='clip')
np.i0(x)
np.pad(x, 2)
np.polyfit(x, x*x, 2)
np.polyval(i, x)
np.apply_along_axis(lambda v: v.sum() * v, 1, A)
np.vectorize(lambda a, b: a * b + 1)(x, s)
np.pad(A, ((1, 2), (0, 1)), constant_values=s)
np.pad(A, (1, 2), constant_values=((1, 2), (3, 4)))
np.pad(A, {0: 1})
np.pad(A, {-1: (1, 2)}, mode='edge')
np.pad(x, 9, mode='empty').shape
np.pad(A, 2, mode='edge')
np.pad(A, 2, mode='linear_ramp', end_values=(1, 2))
np.pad(k, 3, mode='linear_ramp')
np.pad(A, 2, mode='maximum')
np.pad(A, 2, mode='minimum', stat_length=2)
np.pad(A, 2, mode='mean', stat_length=((1, 2), (2, 9)))
np.pad(k, 2, mode='mean')
np.pad(x, (2, 3), mode='reflect')
np.pad(x, (12, 13), mode='reflect')
np.pad(A, 3, mode='reflect', reflect_type='odd')
np.pad(A, (9, 4), mode='reflect', reflect_type='odd')
np.pad(x, (2, 3), mode='symmetric')
np.pad(x, (22, 13), mode='symmetric')
np.pad(A, 3, mode='symmetric', reflect_type='odd')
np.pad(A, (9, 4), mode='symmetric', reflect_type='odd')
np.pad(x[:1], (9, 4), mode='symmetric', reflect_type='odd')
np.pad(x, (2, 3), mode='wrap')
np.pad(A, (12, 31), mode='wrap')
np.pad(A, 1.5)
np.pad(A, -1)
np.pad(x[:0], 1)
np.pad(x[:0], 1, mode='wrap')
np.pad(x, 1, mode='quark')
np.pad(x, 1, mode='wrap', stat_length=2)
np.polyfit(x, x**3, 2, w=x*x)
np.polyval(x, s)
np.polyval(A[0], A)
np.polyder(x)
np.polyder(x, 3)
np.polyder(x[:1])
np.polyint(x)
np.polyint(i, 2, k=[3., s])
np.polyint(x, 2, k=1)
np.polyadd(x, A[0])
np.polysub(A[0], x)
np.polymul(x, i)
np.polydiv(x, A[0])
np.roots(x)
np.poly(x[:4])
np.poly(z)
np.i0(s)
np.modf(x)
np.modf(s)
np.bitwise_count(-k)
np.clip(s, 0, 1)
np.isclose(s, s)
np.allclose(s, s)
np.sinc(s)
np.fix(s)
np.angle(s)
np.isposinf(s)
np.apply_along_axis(lambda v: np.outer(v, v), 1, T)
np.apply_along_axis(np.sort, -1, A)
np.vectorize(lambda a, b: (a * b, a + 1))(A, A[0])
np.vectorize(lambda a: a * 2, otypes=[int])(x)
np.vectorize(lambda a, p: np.polyval(p, a), excluded=[1])(x, A[0])
np.vectorize(lambda a: np.where(a > 0, a, 0))(x)
from numpy import r_, vectorize; r_[x, 1] + vectorize(lambda a: a)(s)
np.isin(k, np.arange(40) * i.sum())
np.isin(x, np.concatenate([x[:2], np.arange(30.)]))
np.isin(n, n)
np.isin(s, x)
np.isin(A, np.tile(A[0], 9), invert=True)
np.einsum('ij,jk->ik', A, A[:1])
np.einsum('ij,ij->ij', A, A[:, :1])
"""


@pytest.mark.parametrize("source", SOURCES.strip().splitlines())
def test_as_numpy(source: str):
    with warnings.catch_warnings(action="ignore"):  # NumPy's own, of slices that are empty
        check(source, 1e-13, **NAMES)


RANGES = ["range(len(y))", "range(1, len(y) + 1)", "range(len(y), 0, -1)", "range(0, 2 * len(y), 2)", "range(4)"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", ">=", "==", "!=", "@", "&"]
PARTNERS = {
    "an array": "y",
    "integers": "y.astype(int)",
    "a scalar": "y.sum()",
    "an element": "y[1]",
    "rows": "np.stack([y, y])",
}


@pytest.mark.parametrize("partner", PARTNERS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_ranges_are_operands_of_arrays(operator: str, partner: str):
    for one in RANGES:
        for text in (f"{one} {operator} {PARTNERS[partner]}", f"{PARTNERS[partner]} {operator} {one}"):
            check(f"y = x * 2 + 1\nr = {text}", x=np.arange(4.0))


@pytest.mark.parametrize(
    "text",
    [
        "range(len(y)) + len(y)",
        "len(y) * range(len(y))",
        "range(3) * len(y)",
        "range(len(y)) - range(len(y))",
        "-range(len(y))",
    ],
)
def test_ranges_have_no_operators_of_their_own(text: str):
    check(f"y = x * 2 + 1\nr = {text}", x=np.arange(4.0))
