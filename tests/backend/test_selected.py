"""Elements that a mask selects, to be added up or stored back: made of all elements, with the values that NumPy has."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def total(x, m):
    return x[m > 0.5].sum()


def mean(x, m):
    return x[m > 0.5].mean()


def spread(x, m):
    v = x[m > 0.5]
    return v.mean(), v.std()


def error(x, m):
    k = m > 0.5
    return ((x[k] - 2 * m[k]) ** 2).mean()


def product(x, m):
    return np.prod(x[m > 0.9] + 1)


def some(x, m):
    return np.any(x[m > 0.5] > 0.99), np.all(x[m > 0.5] > 0.001)


def bins(x, m):
    out = np.zeros(10)
    for i in range(10):
        out[i] = x[np.logical_and(i / 10 <= m, m < (i + 1) / 10)].sum()
    return out


def table(x, m):
    return x.reshape(-1, 2)[m.reshape(-1, 2) > 0.5].sum()


def stored(x, m):
    x = x.copy()
    x[m > 0.5] = x[m > 0.5] * 2 + 1
    return x


def added(x, m):
    x, k = x.copy(), m > 0.5
    x[k] += m[k]
    return x


def rows(x, m):
    t = x.reshape(-1, 2)
    k = t[:, 0] > 0.5
    return t[k].mean(axis=0), t[k].sum(), t[k].std(axis=0)


def centres(x, m):
    t, labels = x.reshape(-1, 2), (m[::2] * 3).astype(int)
    return np.array([t[labels == k].mean(axis=0) for k in range(3)])


def stored_rows(x, m):
    t = x.reshape(-1, 2).copy()
    k = t[:, 1] > 0.5
    t[k] = t[k] * 0.5 + t.sum(axis=0)
    t[k] -= 0.25
    return t


def two_masks(x, m):
    return x[m > 0.5].sum() / (1 + m[x > 0.5].sum())


ALL = [total, mean, spread, error, product, some, bins, table, stored, added, stored_rows, two_masks]


def handed_out(x, m):
    v = x[m > 0.5]
    return v, v.sum()


def where(x, m):
    return np.flatnonzero(m > 0.5), x[m > 0.5].sum()


def dear(x, m):
    return np.exp(np.sin(x[m > 0.5])).sum()


def in_order(x, m):
    return np.cumsum(x[m > 0.5]).sum()


def largest(x, m):
    return x[m > 0.5].max()


def with_another(x, m):
    return (x[m > 0.5] + np.arange((m > 0.5).sum())).sum()


def long_rows(x, m):
    t = x.reshape(-1, 20)
    return t[t[:, 0] > 0.5].sum(axis=0)


def sums_of_rows(x, m):
    t = x.reshape(-1, 2)
    return t[t[:, 0] > 0.5].sum(axis=1)


KEPT = [rows, centres, long_rows, sums_of_rows, handed_out, where, dear, in_order, largest, with_another]


def arrays(dtype: Any = np.float64, size: int = 400) -> tuple[Any, Any]:
    r = np.random.default_rng(0)
    x = r.random(size)
    return (x + 1j * r.random(size) if np.dtype(dtype).kind == "c" else x * 9).astype(dtype), r.random(size)


def selects(f: Any, *args: Any) -> bool:
    """Whether compiled code writes down where a mask is true."""
    return re.search(r"at_\d+ \+= 1", tm.compile(f, *args).code) is not None


def close(one: Any, other: Any, rtol: float) -> bool:
    parts = zip(one, other, strict=True) if isinstance(other, tuple) else [(one, other)]
    return all(
        np.asarray(a).dtype == np.asarray(b).dtype and np.allclose(a, b, rtol=rtol, atol=0, equal_nan=True)
        for a, b in parts
    )


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_all_elements_are_gone_through(f):
    assert not selects(f, *arrays())


@pytest.mark.parametrize("f", KEPT, ids=lambda f: f.__name__)
def test_what_is_needed_elsewhere_or_is_dear_stays(f):
    assert selects(f, *arrays())


@pytest.mark.parametrize("tier", ["numpy", pytest.param("numba", marks=pytest.mark.share(4))])
@pytest.mark.parametrize("f", [*ALL, *KEPT], ids=lambda f: f.__name__)
def test_values_are_numpys(f, tier):
    x, m = arrays()
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"), tm.config.using(tier=tier):
        found = tm.tensor(f)
        for values in ((x, m), (x[::-1], m[::2].repeat(2)), (x, m + 1)):
            assert close(found(*values), f(*values), 1e-12)


@pytest.mark.parametrize("dtype", ["f4", "c8", "c16", "i8", "i4", "u1", "?"])
def test_dtypes(dtype):
    x, m = arrays(dtype)
    for f in (total, mean, product):
        with np.errstate(all="ignore"):
            assert close(tm.tensor(f)(x, m), f(x, m), 1e-5), f


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_what_is_not_selected_is_not_seen(bad):
    x, m = arrays()
    x[m <= 0.5] = bad
    with tm.config.using(tier="numpy"):
        for f in (total, spread, error, added):
            assert close(tm.tensor(f)(x, m), f(x, m), 1e-12), f


def test_where_nothing_is_selected():
    x, m = arrays()
    f = tm.tensor(lambda x, m: (x[m > 2].sum(), np.prod(x[m > 2]), np.any(x[m > 2] > 0), np.all(x[m > 2] > 0)))
    assert tuple(float(v) for v in f(x, m)) == (0.0, 1.0, 0.0, 1.0)
    with np.errstate(all="ignore"):
        assert np.isnan(tm.tensor(mean)(x, m - 1))


def test_gradients():
    x, m = arrays()
    picked = m > 0.5
    slope = np.where(picked, 2 * (x - 2 * m) / picked.sum(), 0)
    assert not selects(tm.grad(error), x, m)
    for tier in ("numpy", "numba"):
        with tm.config.using(tier=tier):
            assert np.allclose(tm.grad(error)(x, m), slope, rtol=1e-12, atol=0)
            assert np.allclose(tm.grad(lambda x, m: stored(x, m).sum())(x, m), np.where(picked, 2, 1))


def test_exact_sums_what_is_selected():
    x, m = arrays(size=5000)
    with tm.config.using(math="exact", tier="numpy"):
        assert float(tm.tensor(total)(x, m)) == float(total(x, m))
