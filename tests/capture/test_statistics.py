"""Reductions, order statistics, counts and flat indices in captured code against NumPy: values, and errors."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
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
np.unravel_index(k, (2, 3))
np.unravel_index(np.argmax(A), A.shape)
np.unravel_index(np.array([22, 41, 37]), (7,6), order='F') + k[0]
np.ravel_multi_index((k % 2, k % 3), (2, 3))
np.ravel_multi_index((k, k), (2, 3), mode='wrap')
np.ravel_multi_index((k, k), (2, 3), mode=('clip','wrap'), order='F')
np.ravel_multi_index((k, k), (2, 3))
np.unravel_index(k, (2, 2))
np.average(A, axis=0, weights=np.arange(4.))
np.average(A, weights=A*A, returned=True)
np.average(A, axis=(0,), weights=x[:4])
np.cov(A)
np.cov(A.T, ddof=0)
np.cov(x, x[::-1])
np.cov(x)
np.cov(A, rowvar=False, bias=True)
np.cov(A[0], aweights=np.array([1., 2, 3]), fweights=i)
np.corrcoef(A)
np.corrcoef(x, x[::-1])
np.corrcoef(A, rowvar=False)
np.corrcoef(x)
np.nansum(n)
np.nanmean(n)
np.nanmax(n)
np.nanargmin(n)
np.nanstd(n, ddof=1)
np.nanvar(np.stack([n, n]), axis=1)
np.nancumsum(n)
np.nanmedian(n)
np.nanmedian(np.stack([n, n*0, n[::-1]]), axis=0)
np.nanmedian(np.stack([n, n*0, n[::-1]]), axis=1)
np.nanpercentile(n, 30)
np.nanquantile(np.stack([n, n*2]), [.1, .5], axis=1)
np.nanquantile(np.stack([n, n*2]), .3, axis=0, keepdims=True)
np.nanmax(np.array([np.nan, np.nan]) * s)
np.nanargmax(np.array([np.nan, np.nan]) * s)
np.percentile(x, 30)
np.percentile(A, [10, 50], axis=0)
np.percentile(A, [10, 50], axis=(0, 1), keepdims=True)
np.quantile(f, .3)
np.quantile(f, [.3, .4])
np.quantile(k, .3)
np.quantile(k, .3, method='lower')
np.quantile(T, np.array([[.3, .2]]), axis=(0, 2))
np.quantile(x, s)
np.quantile(x, 1.5)
np.quantile(x, s + 2)
np.median(A, axis=1, keepdims=True)
np.median(n)
np.median(k)
np.median(x[:0])
np.quantile(x, 1.0)
np.quantile(n, .5)
np.sum(A, where=A > 0, axis=0)
np.sum(x, initial=3.5)
np.max(x, initial=0.1, where=m)
np.max(x, where=m)
np.max(A[:0], axis=0, initial=2.)
np.mean(A, where=A > 0, axis=0)
np.var(A, where=A > 0, axis=0)
np.std(A, axis=(0, 1), ddof=1)
np.sum(np.float64(3.) * s, axis=0)
np.prod(np.max(x), axis=-1)
np.argmax(np.max(x), axis=0)
np.mean(np.max(x), axis=0)
np.sum(np.max(x), axis=1)
np.cumulative_sum(x, include_initial=True)
np.cumulative_prod(A, axis=1)
np.searchsorted(np.sort(x), A)
np.searchsorted(np.sort(x), s, side='right')
np.searchsorted(x, [.1, .2], sorter=np.argsort(x))
np.lexsort((k, k % 2))
np.lexsort(np.stack([k, k % 2]))
np.sort_complex(z)
np.delete(x, np.argmax(x))
np.roll(x, np.argmax(x))
np.array_equal(n, n, equal_nan=True)
np.nan_to_num(n)
np.nan_to_num(n * 1j, nan=3.)
np.put_along_axis(A, np.argmax(A, axis=0)[None], 0, axis=0); A
np.ptp(A, axis=0)
np.count_nonzero(k % 2, axis=0)
np.maximum.accumulate(x)
np.minimum.accumulate(A, axis=1)
np.maximum.reduce(A, axis=1)
np.add.reduce(A, axis=(0, 1))
np.logaddexp.reduce(x)
np.histogram(x)
np.bincount(k)
np.digitize(x, [0, .5])
np.apply_over_axes(np.sum, T, [0, 2])
np.histogram2d(x, x)
np.histogram(x, 4, range=(-1, 1))
np.histogram(x, [-1, 0, .5, 1])
np.histogram(x, 4, density=True)
np.histogram(x, 4, weights=x)
np.histogram(k, 3)
np.histogram(A, bins=np.sort(x))
np.histogram(x, bins=x)
np.histogram(n)
np.histogram(np.array([2., 2.])*s)
np.histogram(x, range=(2, 1))
np.histogram_bin_edges(x, 5)
np.histogram2d(x, x[::-1], bins=3)
np.histogram2d(x, x[::-1], bins=[3, [-1, 0, 1]], range=None, density=True)
np.histogramdd(A, bins=(2, 3, 2), range=[(-1, 1)] * 3)
np.histogramdd(A, bins=2, weights=x[:4])
np.bincount(k, minlength=12)
np.bincount(i, weights=x[:3])
np.bincount(-k)
np.digitize(x, [.5, 0], right=True)
np.digitize(x, [0, .5, .2])
np.digitize(k, np.array([1, 3, 5]), right=True)
np.digitize(k, np.sort(x)[::-1])
np.digitize(k, x)
np.pad(A, 1, mode='median')
np.pad(k, 1, mode='median')
np.polyfit(x, x**3, 1, cov=True)
np.polyfit(x, np.stack([x**3, x]).T, 2, cov='unscaled')
np.polyfit(x, np.stack([x**3, x*x]).T, 2, cov=True)
np.maximum.accumulate(n)
np.add.reduce(A)
np.add.reduce(A, axis=None, keepdims=True)
np.add.reduce(A, where=A > 0, initial=3., axis=1)
np.subtract.reduce(A)
np.subtract.accumulate(A, axis=1)
np.bitwise_or.reduce(k)
np.bitwise_xor.accumulate(k)
np.logical_xor.reduce(m)
np.logical_or.accumulate(m)
np.fmax.reduce(n)
np.add.reduceat(A, [0, 3, 1], axis=0)
np.maximum.reduceat(k, [0, 3, 1])
np.multiply.reduceat(A, [0, 1], axis=1)
np.add.reduceat(x, [0, 9])
np.exp.reduce(x)
np.add.accumulate(i, dtype=float)
np.hypot.reduce(x)
np.nan_to_num(s)
np.apply_along_axis(np.sum, 0, T)
np.repeat(x, k[[0,1,2,3,4,0]])
np.repeat(A, k[:4], axis=0)
np.repeat(A, k[:3], axis=1).sum()
np.repeat(x, -k[[0,1,2,3,4,0]])
np.repeat(x, k)
np.repeat(x, k[:1])
np.repeat(x, x)
np.delete(x, i)
np.delete(x, k)
np.delete(x, k + 3)
np.delete(A, i, axis=0)
np.delete(A, -i, axis=1)
np.delete(x, m)
np.delete(x, m[:3])
np.repeat(x, [1, 2])
np.repeat(x, [2])
np.quantile(x, .3, weights=x*x, method='inverted_cdf')
np.quantile(A, [.3, 1, 0], axis=1, weights=x[:3]**2, method='inverted_cdf')
np.quantile(A, .3, axis=0, weights=A*A, method='inverted_cdf', keepdims=True)
np.quantile(A, .3, weights=A, method='inverted_cdf')
np.quantile(A, .3, weights=A*0, method='inverted_cdf')
np.quantile(A, .3, weights=A*A)
np.nan_to_num(n, copy=False); n
np.histogram(x, bins='auto')
np.histogram(x, bins='sturges')
np.quantile(k, .3, weights=i.sum() + k, method='inverted_cdf')
"""


@pytest.mark.parametrize("source", SOURCES.strip().splitlines())
def test_as_numpy(source: str):
    with warnings.catch_warnings(action="ignore"):  # NumPy's own, of slices that are empty
        check(source, 1e-13, **NAMES)


@pytest.mark.parametrize("name", ["median", "nanmedian", "quantile", "nanquantile"])
def test_order_statistics_of_what_data_leave_empty(name, tier):
    function = getattr(np, name)
    more = () if "median" in name else (0.25,)

    def chosen(x, t):
        return function(x[x > t], *more), function(x[:2, x[0] > t], *more, axis=1)

    x = np.arange(12.0).reshape(3, 4)
    captured = tm.tensor(chosen)
    for t in (20.0, 1.0, 2.5, -1.0):
        with warnings.catch_warnings(action="ignore"):
            try:
                expected = chosen(x, t)
            except IndexError:
                with pytest.raises(IndexError, match="out of bounds"):
                    captured(x, t)
                continue
        for ours, numpys in zip(captured(x, t), expected, strict=True):
            np.testing.assert_array_equal(ours, numpys)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_a_median_is_never_negative_zero(name: str):
    rows = np.array([[-0.0, 0.0, -0.0], [-0.0, -0.0, -0.0], [-1.0, -0.0, 2.0]])
    check(f"np.{name}(x, axis=1), np.{name}(x[:, :2], axis=1), np.{name}(x)", x=rows)
