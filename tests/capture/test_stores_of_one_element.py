"""Arrays and sequences where one element has to hold them: what becomes of them is what the NumPy that is there says, and in its words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tensormagic as tm

from .harness import captured as in_cell
from .harness import check, kind_of, plain

VALUES = {
    "one": np.array([1.5]),
    "one by one": np.array([[2.5]]),
    "a whole number": np.array([3]),
    "complex": np.array([1 + 2j]),
    "three": np.arange(3.0),
    "nothing": np.zeros(0),
}
STORES = (
    "a.fill(v)",
    "a[1] = v",
    "a.reshape(1, 3)[0, 2] = v",
    "for i in range(2):\n    a[i] = v * 2",
    "if a[0] == 0:\n    a[2] = v",
    "a[0] = [v[:1].sum(), 1]",
    "a.fill([v[:1].sum()])",
    "a.fill(v[v > 1])",
    "a.flat[1] = v",
    "a.flat[np.int64(2)] = v[:1]",
    "k = np.arange(3)\na.flat[k[1]] = v * 1",
    "k = np.arange(3) * 1\nfor i in range(2):\n    a.flat[k[i]] = v",
    "if a[0] == 0:\n    a.reshape(1, 3).flat[-1] = v",
    "a.flat[0] = v[:1][0]",
    "a.flat[1] = [v[:1].sum()]",
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("dtype", [bool, np.int64, np.float64, complex])
def test_cells(dtype, store):
    for value in VALUES.values():
        if (value.dtype.kind, store) != ("c", "a.fill(v[v > 1])"):  # complex numbers have no order
            check(store, a=np.zeros(3, dtype), v=value)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize("way", [tm.tensor, lambda f: lambda v: tm.compile(f, v)(v)], ids=["captured", "compiled"])
@pytest.mark.parametrize("value", [v for v in VALUES.values() if v.dtype.kind != "c"])
def test_functions(value, way):
    def filled(v):
        a = np.zeros(3)
        a[1] = v
        for i in range(2):
            if v.sum() > i:
                a[2] = v * 2
        return a

    try:
        expected = filled(value)
    except ValueError:
        with pytest.raises(ValueError, match="sequence"):
            way(filled)(value)
    else:
        assert np.array_equal(way(filled)(value), expected)
        assert np.array_equal(tm.jacobian(filled)(value.astype(float)).ravel(), [0, 1, 2] if value[0] else [0, 1, 0])


@pytest.mark.parametrize("store", ["a.fill(v)", "a[1] = v", "a.flat[1] = v"])
def test_warnings_are_numpys(store):
    found = []
    for run in (plain, in_cell):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            error = run(store, {"a": np.zeros(3), "v": np.ones(1)}).error
        found.append(([(str(w.message), w.category) for w in said], error and kind_of(error)))
    assert found[0] == found[1]
