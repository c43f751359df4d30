"""Kernels for a GPU: real PTX in the emulator, against NumPy."""

import re

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda.kernels.lowering import lower
from tensormagic.backend.cuda.plan import plan_device
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.ir.node import Node
from tests.backend.cuda.emulated import Emulation, compiles, holds, integers, normals

SIZES = (0, 1, 5, 31, 32, 33, 4096)


@compiles
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_maps(dtype: str):
    for size in (*SIZES, 100_003):
        holds(lambda x: (np.exp(-x * x) * 0.3 + x, np.maximum(x, 0) > 0.1), normals(size, dtype))


@compiles
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64"])
def test_integers(dtype: str):
    holds(lambda x: (x + x, x * 3, x // 3, x % 5, x & 7, x << 2, x > 50), integers(77, dtype))


@compiles
def test_truth_values_and_nans():
    x = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -2.5])
    holds(lambda x: (np.isnan(x) | ~np.isfinite(x), np.maximum(x, 0.0), np.rint(x), np.where(x > 0, x, -x)), x)
    found = Emulation(lambda x: (np.max(x), np.min(x)), x[:2]).results()
    assert [str(float(v)) for v in found] == ["0.0", "-0.0"]


@compiles
def test_functions():
    """The polynomials of the processor, and arguments of trigonometric functions that are reduced apart."""
    x = normals(33, "float32")
    holds(lambda x: (np.tanh(x), np.log1p(np.exp(x)), np.sqrt(np.abs(x)), np.abs(x) ** 1.7), x)
    big = np.array([1e-3, 1.0, 1e6, 1e18, 1e300])
    found = Emulation(lambda x: (np.sin(x), np.cos(x), np.tan(x)), big).results()
    np.testing.assert_allclose(found, [np.sin(big), np.cos(big), np.tan(big)], rtol=3e-16)


@compiles
def test_layouts():
    x, row = normals((33, 34)), normals(34)
    holds(lambda x: x.T * 2, x)
    holds(lambda x: x[1:, ::2] - x[:-1, 1::2], x)
    holds(lambda x: x[::-1, ::-1] + 1, x)
    holds(lambda x, y: (x * y, x.T + y[:33]), x, row)
    holds(lambda x, y: x * y, normals((5, 1, 7)), normals((1, 4, 7)))


@compiles
def test_squares():
    """What lies across is read in order, too, by squares; the sectors that are touched are those that are asked for."""
    x = normals((64, 96), "float32")
    found = holds(lambda x, y: (x.T * 2 + y, x.T > 0), x, normals((96, 64), "float32"))
    assert found.names == ["squares"]
    assert all(t.sectors * 32 == t.bytes for t in found.reports[0].traffic.values())
    holds(lambda x: np.transpose(x, (2, 0, 1)) + 1, normals((20, 3, 33)))
    assert holds(lambda x: x.T * 2, normals((7, 45))).names == ["elements"]


@compiles
def test_totals():
    for size in (*SIZES[1:], 100_003):
        holds(lambda x: (np.sum(x), np.max(x)), normals(size, "float32"), ulps=4)
    holds(lambda x: (np.sum(x), np.any(x > 99)), integers(4096, "int16"))
    assert holds(lambda x: np.mean(x * x), normals(4096)).names == ["totals", "finish"]
    holds(lambda x: np.sum(x), normals(0))


@compiles
@pytest.mark.parametrize("shape", [(3, 2), (33, 257), (2, 20_000), (700, 30)])
def test_folds_along_axes(shape: tuple[int, int]):
    x = normals(shape, "float32")
    holds(lambda x: np.sum(x, axis=1), x, ulps=8)
    holds(lambda x: (np.sum(x, axis=0), np.max(x, axis=0)), x, ulps=8)


@compiles
def test_folds_of_more_axes():
    x = integers((4, 5, 6), "int16")
    assert holds(lambda x: (np.sum(x, axis=1), np.max(x * 2, axis=1)), x).names == ["columns", "finish", "finish"]
    holds(lambda x: np.sum(x, axis=(0, 2)), x)
    holds(lambda x, v: (x @ v[:7], v @ x), normals((9, 7)), normals(9), ulps=4)


@compiles
@pytest.mark.parametrize("columns", [2, 7, 2048, 12_000])
def test_rows(columns: int):
    """A softmax reads and writes once, whatever threads a row has; rows that shared memory does not hold go by an array."""

    def softmax(x):
        e = np.exp(x - np.max(x, axis=1)[:, None])
        return e / np.sum(e, axis=1)[:, None]

    def norm(x):
        centred = x - np.mean(x, axis=1)[:, None]
        return centred / np.sqrt(np.mean(centred**2, axis=1)[:, None] + 1e-5)

    assert holds(softmax, normals((5, columns), "float32"), ulps=4).names == ["rows"]
    if columns == 2048:
        assert holds(norm, normals((5, columns)), ulps=4).names == ["rows"]


@compiles
def test_gathers():
    x, at = normals((40, 3)), np.array([0, -1, 5, 39, -40])
    assert not holds(lambda x, i: x[i] + 1, x, at).fault[0]
    assert Emulation(lambda x, i: x[i] + 1, x, np.array([0, 40])).fault[0]  # the library says what is wrong


@compiles
def test_stores():
    def padded(x):
        y = np.zeros((40, 30))
        y[1:, 2:] = x[:-1, :-2] * 2
        return y

    def stencil(x):
        y = x.copy()
        y[1:-1] = x[:-2] + x[2:]
        return y

    def placed(x):
        y = np.zeros((45, 30))
        y[np.array([3, 1, 8])] = x[:3] * 2
        np.add.at(y, np.array([0, 5, 8]), x[3:6])
        return y

    def totalled(u, v):
        s = u.sum()
        v = v.copy()
        v[1] = s * 0.1
        return v, s

    assert (
        holds(totalled, normals(7), normals(9)).names[0] == "copy"
    )  # what is stored behind a total begins with a copy, too
    x = normals((40, 30))
    holds(placed, x)  # places of which each is named once
    holds(padded, x)
    assert holds(stencil, x).names == ["copy", "elements"]
    holds(lambda x: np.concatenate([x, x * 2], axis=1), x)


@compiles
def test_sectors():
    """Each warp touches no more memory than it asks for."""
    found = holds(lambda x, y: np.exp(x) * y, normals(4096, "float32"), normals(4096, "float32"))
    traffic = [t for report in found.reports for t in report.traffic.values()]
    assert sum(t.bytes for t in traffic) == 3 * 4 * 4096
    assert all(t.sectors * 32 == t.bytes for t in traffic)
    assert all(".v4.f32" in text for report in found.reports for text in report.traffic)


@compiles
@pytest.mark.share(3)
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "float16", "uint32", "int64", "float64", "complex64", "complex128"]
)
def test_sectors_of_other_dtypes(dtype: str):
    """Loads and stores are of 16 bytes, whatever the dtype; memory gives each sector once, since all bytes are asked for once.

    A thread takes four neighbours: of 8 bytes and more these are several vectors side by side, each of which touches half a sector.
    """
    x = integers(4096, dtype if dtype[0] != "c" else "float64").astype(dtype)
    (report,) = holds(lambda x, y: x + y, x, x).reports
    assert sum(t.bytes for t in report.traffic.values()) == 3 * x.nbytes
    assert all(t.sectors * 32 == t.bytes * (1 if x.itemsize <= 4 else 2) for t in report.traffic.values())
    wide = r"(ld\.global\.nc|st\.global)\.(v4\.[fu]32|v2\.[fu]64)"
    assert all(re.match(wide, text) for text in report.traffic)


@compiles
def test_folds_of_nothing():
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum which has no identity"):
        Emulation(lambda x: np.max(x, axis=0), np.empty((0, 3)))


def _steps(function, *types):
    plan = plan_device(tm.trace(function, *types))
    return [(step, lower(step, plan) if isinstance(step, Kernel) else None) for step in plan.steps]


def test_what_the_library_computes():
    def counted(x, i):
        y = np.zeros(100)
        np.add.at(y, i, x)
        return y

    def repeated(x):
        for _ in tm.range(10) if hasattr(tm, "range") else range(10):
            x = np.where(np.sum(x) > 3, x * 0.5, x)
        return x

    assert _steps(lambda x: np.cumsum(x * 1j), "float64[n]")[-1][1] is None
    assert isinstance(_steps(lambda x: x @ x, "complex64[n,n]")[-1][0], Node)
    assert _steps(counted, "float64[n]", "int64[n]")[-1][1] is None
    assert all(not isinstance(step, Kernel) or not step.regions for step, _ in _steps(repeated, "float64[n]"))
    assert isinstance(_steps(lambda x: x @ x, "float64[n, n]")[0][0], Node)


def test_texts():
    """The kernel has the user's names, and says which line each of its own is for."""
    ((_, launches),) = _steps(lambda price, rate: price * np.exp(rate), "float32[n]", "float32[n]")
    assert launches is not None
    text = launches[0].readable
    assert "vector(price, i, 4)" in text
    assert "test_kernels.py line" in text
    assert [p.type for p in launches[0].parameters].count("*float32") == 3
    assert [p.written for p in launches[0].parameters if p.type == "*float32"] == [False, False, True]
