"""Loops whose iterations work on each element by itself run tile by tile: the same bits as NumPy's, for any size and number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend import threads
from tensormagic.backend.cpu_rows import TILED

rng = np.random.default_rng(7)
SIZES = (0, 1, 2, TILED - 1, TILED, TILED + 1, 5 * TILED + 3, 20 * TILED)


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """Compiled code as NumPy computes, on two threads where there are any, which share every loop that has more than one share."""
    monkeypatch.setattr(tm.config, "tier", "numba")
    monkeypatch.setattr(tm.config, "math", "exact")
    monkeypatch.setattr(threads, "_least", 0)
    monkeypatch.setattr(tm.config, "threads", 2)


def horner(x, c):
    p = 0 * x + 0.1
    for k in range(40):
        p = p * x + c / (k + 1)
    return p


def escape(x, c):
    z, w, count = 0 * x, 0 * x, np.zeros(x.shape, int)
    for _ in range(41):
        inside = z * z + w * w < 4
        z, w = np.where(inside, z * z - w * w + x, z), np.where(inside, 2 * z * w + c, w)
        count = count + inside
    return z, w, count


def traded(x, c):
    y = x + 1
    for k in range(37):
        x, y = y - k, x * 0.5 + c
    return x, y


def scaled(x, c):
    """Each iteration reads an element of an array that stays as it is."""
    weights = np.linspace(0, 1, 50)
    for k in range(50):
        x = x + weights[k] * (c - x)
    return x


def steps(count):
    """So many short iterations."""

    def short(x, c):
        y = c + 0
        for k in range(count):
            x, y = y, x * 0.5 + k
        return x, y

    return short


def grown(x, c):
    """As many short iterations as the argument says."""
    for k in range(int(c[0] * 0) + 45 if c.size else 45):
        x = x * 0.5 + k
    return x


def neighbours(x, c):
    """No such loop: an element needs another one."""
    for _ in range(40):
        x = 0.5 * (x + np.roll(x, 1)) + 0 * c
    return x


def taken(x, c):
    """Each iteration takes elements that may not be there."""
    table, k = np.arange(60.0), np.zeros(x.shape, int)
    for _ in range(45):
        x = x + table[k]
        k = k + (c > 0)
    return x


def recorded(x, c):
    """Each iteration stores a row."""
    rows = np.zeros((40, len(x)))
    for k in range(40):
        x = x + 0.1 * (c - x)
        rows[k] = x
    return rows


def is_interchanged(function, *args):
    """Whether iterations are inside of tiles."""
    lines = tm.compile(function, *args).code.splitlines()
    return any("for iteration" in line and "for start" in "".join(lines[k - 3 : k - 1]) for k, line in enumerate(lines))


@pytest.mark.parametrize("function", [horner, escape, traded, scaled, grown, neighbours, taken, recorded])
@pytest.mark.parametrize("size", SIZES)
def test_bits_are_those_of_numpy(function, size):
    x, c = rng.uniform(-1, 0.5, size), rng.uniform(-0.5, 0.5, size)
    if size < 2:
        c = rng.uniform(-0.5, 0.5, x.shape)
    want, run = function(x, c), tm.tensor(function)
    for _ in range(2):
        got = run(x, c)
        for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            assert (a.dtype, a.shape, np.asarray(a).tobytes()) == (b.dtype, b.shape, b.tobytes())


@pytest.mark.parametrize("function", [horner, escape, traded, scaled])
def test_such_loops_are_told(function):
    assert is_interchanged(function, np.ones(5000), np.ones(5000))


@pytest.mark.parametrize("count", [33, 48, 51, 64, 97])
def test_short_iterations_are_written_one_after_the_other(count):
    x, c = rng.uniform(-1, 0.5, 2 * TILED + 9), rng.uniform(-0.5, 0.5, 2 * TILED + 9)
    for a, b in zip(tm.tensor(steps(count))(x, c), steps(count)(x, c), strict=True):
        assert np.asarray(a).tobytes() == b.tobytes()
    lines = tm.compile(steps(count), x, c).code.splitlines()
    sums = [k for k, line in enumerate(lines) if " + astype" in line or "add_" in line.split("=")[0]]
    assert len(sums) > 9
    assert sum("a1[i] = " in line for line in lines) <= 2


@pytest.mark.parametrize("function", [neighbours, taken])
def test_others_are_not(function):
    assert not is_interchanged(function, np.ones(5000), np.ones(5000))


@pytest.mark.parametrize("shape", [(70, 90), (3, 40, 50), (1, 9000)])
def test_several_axes(shape):
    x, c = rng.uniform(-1, 0.5, shape), rng.uniform(-0.5, 0.5, shape)
    for a, b in zip(tm.tensor(escape)(x, c), escape(x, c), strict=True):
        assert np.asarray(a).tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_other_dtypes(dtype):
    x = rng.integers(-3, 3, 9000).astype(dtype)

    def stepped(x):
        for _ in range(35):
            x = x * x // x.dtype.type(3) - x
        return x

    assert np.asarray(tm.tensor(stepped)(x)).tobytes() == stepped(x).tobytes()


@pytest.mark.parametrize("function", [horner, traded, scaled, recorded])
def test_gradients_are_those_of_the_numpy_tier(function, monkeypatch):
    x, c = rng.uniform(-1, 0.5, 3 * TILED + 5), rng.uniform(-0.5, 0.5, 3 * TILED + 5)

    def loss(x, c):
        found = function(x, c)
        return sum(np.sum(f * f) for f in found) if isinstance(found, tuple) else np.sum(found * found)

    compiled = tm.grad(loss, (0, 1))(x, c)
    monkeypatch.setattr(tm.config, "tier", "numpy")
    for a, b in zip(compiled, tm.grad(loss, (0, 1))(x, c), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
