"""Loops whose iterations work on each element by itself run tile by tile: the same bits as NumPy's, for any size and number of threads."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cpu.rows import STRIDED, TILED

rng = np.random.default_rng(7)
SIZES = (0, 1, 2, TILED - 1, TILED, TILED + 1, 5 * TILED + 3, 20 * TILED)


pytestmark = pytest.mark.usefixtures("on_two_threads", "exact")


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


def columns(x, c):
    """Each iteration stores a column, and reads the one before."""
    found = np.zeros((len(x), 40))
    for k in range(1, 40):
        found[:, k] = 0.5 * found[:, k - 1] + x
        x = x + 0.1 * (c - x)
    return found


def along(axis):
    """A sweep there and back along an axis of three, of two arrays."""

    def swept(a, b):
        a, b = np.moveaxis(a.copy(), axis, 0), np.moveaxis(b.copy(), axis, 0)
        for k in range(1, 36):
            b[k] = b[k] / (2 - b[k - 1])
            a[k] = (a[k] + a[k - 1] * 0.25) * b[k]
        for k in range(34, -1, -1):
            a[k] = a[k] - b[k] * a[k + 1]
        return a, b

    return swept


def along_the_last(a, b):
    """The same, as people write it."""
    a, b = a.copy(), b.copy()
    for k in range(1, 36):
        b[:, :, k] = b[:, :, k] / (2 - b[:, :, k - 1])
        a[:, :, k] = (a[:, :, k] + a[:, :, k - 1] * 0.25) * b[:, :, k]
    for k in range(34, -1, -1):
        a[:, :, k] = a[:, :, k] - b[:, :, k] * a[:, :, k + 1]
    return a, b


def along_the_middle(a, b):
    a, b = a.copy(), b.copy()
    for k in range(1, 36):
        b[:, k] = b[:, k] / (2 - b[:, k - 1])
        a[:, k] = (a[:, k] + a[:, k - 1] * 0.25) * b[:, k]
    return a, b


def rows_and_columns(a):
    """No such loop: what is a column for one iteration is a part of a row for others."""
    a = a.copy()
    for k in range(36):
        a[:, k] = 0.5 * a[k, :] + a[:, k]
    return a


def shifted(a):
    """No such loop: an element needs another one of the column before."""
    a = a.copy()
    for k in range(1, 36):
        a[1:, k] = 0.5 * a[:-1, k - 1] + a[1:, k]
    return a


def around(lines, k):
    """The number of the line that begins the block of a line; 0 for none."""
    depth = [len(line) - len(line.lstrip()) for line in lines]
    return next((j for j in range(k - 1, -1, -1) if lines[j].strip() and depth[j] < depth[k]), 0)


def is_interchanged(function, *args):
    """Whether iterations are inside of tiles."""
    lines = tm.compile(function, *args).code.splitlines()
    return any("for iteration" in line and "for start" in lines[around(lines, k)] for k, line in enumerate(lines))


def loop_after(begin, end, count):
    """A loop of so many iterations over what one function begins with, and what another one makes of its results."""

    def drawn(x, c):
        p, q = begin[0](x, c), begin[1](x, c)
        for k in range(count):
            p = p * x + c / (k + 1)
            q = q * 0.5 + p
        return end(x, c, p, q)

    return drawn


ZERO, MORE = (lambda x, c: np.zeros_like(x)), (lambda x, c: c + 1)
BACKWARDS = lambda x, c: x[::-1] * 2  # noqa: E731
SCALED = lambda x, c: 0 * x + 0.1  # noqa: E731
BEGINS = (
    ZERO,
    MORE,
    BACKWARDS,
    SCALED,
    lambda x, c: np.full(x.shape, 0.3),
    lambda x, c: np.sqrt(np.abs(x)),
    lambda x, c: np.roll(c, 1),
    lambda x, c: x,
)
PAIR = lambda x, c, p, q: (p, q)  # noqa: E731
TURNED = lambda x, c, p, q: p[::-1] + q  # noqa: E731
SUMS = lambda x, c, p, q: (p + q, p - q)  # noqa: E731
ENDS = (
    PAIR,
    TURNED,
    SUMS,
    lambda x, c, p, q: (p * 2 + x, q),
    lambda x, c, p, q: np.where(p > q, p, c),
    lambda x, c, p, q: (q, x * 2),
    lambda x, c, p, q: (np.roll(p, 1), q),
)


@pytest.mark.parametrize("seed", range(14))
def test_what_is_before_and_after_a_loop(seed):
    own = np.random.default_rng(seed)
    begin, end = [BEGINS[k] for k in own.integers(0, len(BEGINS), 2)], ENDS[own.integers(0, len(ENDS))]
    count = int(own.choice([12, 40, 63]))
    function = loop_after(begin, end, count)
    x, c = own.uniform(-1, 0.5, 3 * TILED + 5), own.uniform(-0.5, 0.5, 3 * TILED + 5)
    got, want, kept = tm.tensor(function), function(x, c), (x.copy(), c.copy())
    for _ in range(2):
        found = got(x, c)
        for a, b in zip(found, want, strict=True) if isinstance(want, tuple) else [(found, want)]:
            assert np.asarray(a).tobytes() == b.tobytes()
    assert np.array_equal(x, kept[0])
    assert np.array_equal(c, kept[1])


@pytest.mark.parametrize(
    ("begin", "end", "kernels"),
    [
        ((ZERO, SCALED), PAIR, 1),
        ((MORE, ZERO), SUMS, 1),
        ((BACKWARDS, MORE), PAIR, 1),
        ((ZERO, MORE), TURNED, 2),
    ],
)
def test_they_are_one_kernel(begin, end, kernels):
    assert len(tm.compile(loop_after(begin, end, 40), np.ones(5000), np.ones(5000)).kernels) == kernels


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
    stores = [around(lines, around(lines, k)) for k, line in enumerate(lines) if "a1[i] = " in line]
    assert sum("for iteration" in lines[k] for k in stores) <= 2


@pytest.mark.parametrize("function", [neighbours, taken])
def test_others_are_not(function):
    assert not is_interchanged(function, np.ones(5000), np.ones(5000))


@pytest.mark.parametrize("shape", [(70, 90), (3, 40, 50), (1, 9000)])
def test_several_axes(shape):
    x, c = rng.uniform(-1, 0.5, shape), rng.uniform(-0.5, 0.5, shape)
    for a, b in zip(tm.tensor(escape)(x, c), escape(x, c), strict=True):
        assert np.asarray(a).tobytes() == b.tobytes()


def test_columns():
    x, c = rng.uniform(-1, 0.5, 3000), rng.uniform(-0.5, 0.5, 3000)
    assert np.asarray(tm.tensor(columns)(x, c)).tobytes() == columns(x, c).tobytes()
    assert is_interchanged(columns, x, c)


@pytest.mark.parametrize(
    ("function", "axis"), [(along(0), 0), (along(1), 1), (along(2), 2), (along_the_middle, 1), (along_the_last, 2)]
)
def test_sweeps_along_any_axis(function, axis):
    shape = [40, 50]
    shape.insert(axis, 36)
    a, b = rng.uniform(-1, 1, shape), rng.uniform(0, 0.5, shape)
    for found, want in zip(tm.tensor(function)(a, b), function(a, b), strict=True):
        assert np.array_equal(found, want)
    assert is_interchanged(function, a, b) == (axis == 0 or function in {along_the_middle, along_the_last})


@pytest.mark.parametrize("function", [rows_and_columns, shifted])
def test_what_crosses_columns_is_not(function):
    a = rng.uniform(-1, 1, (36, 36))
    assert np.asarray(tm.tensor(function)(a)).tobytes() == function(a).tobytes()
    assert not is_interchanged(function, a)


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


def test_a_tile_has_fewer_elements_where_each_of_them_is_in_a_cache_line_of_its_own() -> None:
    def along_the_last_axis(x):
        y = x.copy()
        for k in range(1, x.shape[1]):
            y[:, k] = y[:, k - 1] * 0.5 + x[:, k]
        return y

    def along_the_first_axis(x):
        y = x.copy()
        for k in range(1, x.shape[0]):
            y[k] = y[k - 1] * 0.5 + x[k]
        return y

    def rows(function):
        texts = "".join(k.source for k in tm.compile(function, "float64[n, m]").kernels)
        return {int(n) for n in re.findall(r"rows_\d+ = (\d+)$", texts, re.MULTILINE)} & {STRIDED, TILED}

    assert rows(along_the_last_axis) == {STRIDED}
    assert rows(along_the_first_axis) == {TILED}
