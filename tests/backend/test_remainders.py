"""Remainders of floats, and quotients that are rounded down, in kernels: NumPy's bits for every pair of operands."""

import numpy as np
import pytest

import tensormagic as tm

EDGES = [
    0.0,
    1.0,
    3.0,
    0.1,
    6.0,
    1e16,
    2.0**900,
    2.0**-900,
    5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    np.inf,
]
OPS = {"remainder": np.remainder, "fmod": np.fmod, "floor_divide": np.floor_divide}


def pairs(dtype, n=3000):
    """Edges with both signs, numbers from near to far apart, and multiples with their neighbours."""
    rng, info = np.random.default_rng(11), np.finfo(dtype)

    def spread(low, high):
        return np.ldexp(rng.uniform(0.5, 1, n), rng.integers(low, high, n)) * rng.choice([-1, 1], n)

    edges = [*EDGES, *(-e for e in EDGES), np.nan]
    found = [np.meshgrid(edges, edges)]
    found += [(spread(-k, k), spread(-k, k)) for k in (3, 40)]
    found += [(spread(info.minexp - info.nmant, info.maxexp), spread(info.minexp - info.nmant, info.maxexp))]
    by = spread(-3, 3).astype(dtype)
    for digits in (4, info.nmant + 3):
        times = (np.trunc(spread(0, digits)) * by).astype(dtype)
        found += [(np.nextafter(times, np.array(to, dtype)), by) for to in (-np.inf, 0, np.inf)]
    with np.errstate(over="ignore"):
        return [np.concatenate([np.ravel(p[k]) for p in found]).astype(dtype) for k in (0, 1)]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("remainder", "f8"), ("fmod", "f8"), ("floor_divide", "f8"), ("remainder", "f4"), ("fmod", "f4")],
)
def test_bits_are_numpys(name, dtype):
    x, y = pairs(np.dtype(dtype).type)
    compiled = tm.compile(lambda x, y: OPS[name](x, y), x, y, math="exact")
    assert len(compiled.kernels) == 1
    with np.errstate(all="ignore"):
        found, expected = compiled.run(x, y), OPS[name](x, y)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))


def test_they_are_part_of_a_loop():
    def wrapped(x, v):
        for _ in range(20):
            x = (x + v) % 1.0
        return x * 2 - 1

    x, v = np.random.default_rng(2).uniform(-2, 2, (2, 500))
    compiled = tm.compile(wrapped, x, v, math="exact")
    (kernel,) = compiled.kernels
    assert kernel.kernel.regions
    np.testing.assert_array_equal(compiled.run(x, v), wrapped(x, v))
