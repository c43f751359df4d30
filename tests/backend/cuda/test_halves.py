"""Half floats in kernels: memory holds them, single precision computes, and each operation is rounded as NumPy rounds it."""

import random

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import device as devices
from tensormagic.backend.cuda import run as cuda
from tests.backend.cuda.emulated import Emulation, compiles
from tests.backend.cuda.fake import FakeDevice
from tests.backend.cuda.test_run import graph_of

EDGES = np.array(
    [0, -0.0, 1, -1, 6e-8, -6e-8, 6.1e-5, 65504, -65504, np.inf, -np.inf, np.nan, 0.1, 2049, 1e-3, 3], np.float16
)
COUNTS = [0, 1, 5, 31, 32, 33, 4096]


def halves(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float16)


def is_numpys(function, *values: np.ndarray, ulps: int = 0) -> Emulation:
    """Assert that kernels alone compute what NumPy does, within so many half floats."""
    found = Emulation(function, *(v.copy() for v in values))
    with np.errstate(all="ignore"):
        expected = function(*values)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for own, numpys in zip(found.results(), map(np.asarray, wanted), strict=True):
        assert (own.shape, own.dtype) == (numpys.shape, numpys.dtype)
        if own.dtype == np.float16 and ulps:
            largest = np.abs(numpys[np.isfinite(numpys)]).max(initial=0)
            np.testing.assert_allclose(own, numpys, rtol=ulps * 2.0**-10, atol=float(np.spacing(largest)))
        else:
            np.testing.assert_array_equal(own, numpys)
    return found


@compiles
@pytest.mark.parametrize("count", COUNTS)
def test_each_step_is_rounded(count: int):
    found = is_numpys(lambda x, y: (x * y + x, x - y * 3, (x > y) & (x < 2)), halves(count), halves(count)[::-1])
    assert len(found.launches) == 1


@compiles
def test_edges_are_numpys():
    def function(x, y):
        return x + y, x * y, x / y, -x, np.abs(x), np.sqrt(np.abs(x)), np.maximum(x, y), x == y, np.where(x > y, x, y)

    x, y = np.meshgrid(EDGES, EDGES)
    is_numpys(function, x, y)


@compiles
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_conversions(dtype: str):
    other = np.array([0, 1, 3, 100, 70, 7, 250, 33]).astype(dtype)
    if other.dtype.kind == "f":  # halfway between two half floats, above it by less than single precision has
        other[:3] = [2049, np.nextafter(other.dtype.type(2049), np.inf, dtype=dtype), 1e-7]
    is_numpys(lambda x, y: (x.astype(np.float16), x.astype(np.float16) + y), other, halves(8))
    if dtype != "uint8":  # what does not fit there, a processor converts in its own way
        is_numpys(lambda x: x.astype(dtype), halves(8) * np.float16(9))


@compiles
def test_folds_and_moves():
    x = halves(9, 33)
    found = is_numpys(
        lambda x: (np.max(x, axis=0), np.argmax(x, axis=1), np.any(x > 2, axis=1), x.T * 2, x[1:, ::2] - x[:-1, ::2]), x
    )
    assert found.launches
    is_numpys(lambda x: (np.sum(x, axis=1), np.sum(x, axis=0), np.mean(x), np.prod(x[:, :5], axis=1)), x, ulps=1)
    is_numpys(lambda x: np.transpose(x, (2, 0, 1)) + 1, halves(20, 3, 33))
    is_numpys(lambda x, v, w: (x @ v, w @ x, x.T @ w), x, halves(33), halves(9), ulps=2)


@compiles
def test_stores_and_gathers():
    def stored(x):
        y = x.copy()
        y[1:3] = y[1:3] * x.dtype.type(2)
        y[:, 4] += x[:, 5]
        y[::2, 1:] = x[::2, :-1]
        return y

    def padded(x):
        y = np.zeros((40, 50), x.dtype)
        y[1:10, 2:35] = x * 2
        return y

    x = halves(9, 33)
    is_numpys(stored, x)
    is_numpys(padded, x)
    is_numpys(lambda x: (np.concatenate([x, x * 2], axis=1), np.stack([x, -x])), x)
    is_numpys(lambda x: (x[np.array([0, -1, 2])] + 1, np.take(x, np.array([3, 3, 0]), axis=1)), x)


@compiles
@pytest.mark.parametrize("shape", [(300,), (9, 33), (3, 1100), (200, 1100)])
def test_running_sums_keep_single_precision_and_running_extremes_are_numpys(shape: tuple[int, ...]):
    x = halves(*shape)
    found = is_numpys(lambda x: (np.maximum.accumulate(x * 2, axis=0), np.minimum.accumulate(x, axis=-1)), x)
    assert "scan" in " ".join(found.names)
    (own,) = Emulation(lambda x: np.cumsum(x, axis=-1), x).results()
    wide = np.cumsum(x.astype(np.float64), axis=-1)
    np.testing.assert_allclose(own, wide, rtol=2.0**-10, atol=2.0**-10)


@compiles
def test_rows_in_registers():
    def softmax(x):
        e = np.exp(x - np.max(x, axis=1)[:, None])
        return e / np.sum(e, axis=1)[:, None]

    found = is_numpys(softmax, halves(33, 257), ulps=2)
    assert len(found.launches) == 1


def stored(a, b):
    y = a.copy()
    y[1:4, ::2] = b[1:4, ::2]
    y[:, 3] += b[:, 0]
    return y


@compiles
@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(40))
def test_drawn_programs(seed: int):
    rng = random.Random(seed)
    names = ["x", "y"]
    lines = []
    for k in range(rng.randint(2, 7)):
        a, b = rng.choice(names), rng.choice(names)
        lines.append(
            f"v{k} = "
            + rng.choice(
                [
                    f"{a} * {b} + {a}",
                    f"np.maximum({a}, {b}) - 0.3",
                    f"{a} / (np.abs({b}) + 1)",
                    f"np.where({a} > {b}, {a}, {b} * 0.5)",
                    f"{a} - np.max({b}, axis=1)[:, None]",
                    f"{a} * np.min({b})",
                    f"{a}[::-1] + {b}[:, ::-1]",
                    f"({a}.astype(np.float32) * 1.1).astype(np.float16)",
                    f"np.sqrt(np.abs({a})) + {b}",
                    f"np.clip({a}, -1, 1)",
                    f"np.concatenate([{a}, {b}], axis=1)[:, 5:25]",
                    f"stored({a}, {b})",
                    f"{a}[np.array([6, 0, 0, 3, -2, 1, 5])] - {b}",
                ]
            )
        )
        names.append(f"v{k}")
    made: dict = {"np": np, "stored": stored}
    text = "def program(x, y):\n    " + "\n    ".join(lines) + f"\n    return {', '.join(names[2:])}\n"
    exec(text, made)
    is_numpys(made["program"], halves(7, 20), halves(7, 20) * np.float16(2))


@compiles
@pytest.mark.parametrize("tier", ["numpy", "numba"])
def test_whole_programs(tier):
    """With products of matrices and a loop, which the library does."""

    def program(x, w):
        z = np.tanh(x @ w)
        z = z.copy()
        z[1:3] = z[1:3] * 2
        for _ in range(3):
            z = z * x.dtype.type(0.5) + 1
        return z, np.cumsum(z, axis=1)[:, -1], z.sum()

    x, w = halves(8, 5), halves(5, 4)
    device = FakeDevice()
    devices.use(device)
    try:
        _, graph = graph_of(program, (x, w))
        with tm.config.using(tier=tier):
            found = cuda.run(graph, [device.put(x), device.put(w)], device)
    finally:
        devices.use(None)
    for own, numpys in zip(found, program(x, w), strict=True):
        assert own.dtype == np.float16
        np.testing.assert_allclose(device.fetch(own).astype(float), numpys.astype(float), rtol=2e-3, atol=1e-2)
