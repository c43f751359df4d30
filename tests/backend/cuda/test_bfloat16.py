"""bfloat16 in kernels: memory holds it, single precision computes, and each operation is rounded as ml_dtypes rounds it."""

import random

import numpy as np
import pytest

from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.device import Device
from tests.backend.cuda.emulated import Emulation, compiles
from tests.backend.cuda.test_run import graph_of

bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
BITS = np.array([0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC0])
EDGES = np.array([*BITS, 0x3DCD, 0x4040, 0x0080, 0x0081], np.uint16).view(bfloat16)
COUNTS = [0, 1, 5, 31, 32, 33, 4096, 100_003]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(bfloat16)


def is_exact(function, *values: np.ndarray, signs: bool = True) -> Emulation:
    """Assert that kernels alone compute, bit for bit, what ml_dtypes does; without ``signs``, of zeros either one."""
    found = Emulation(function, *(v.copy() for v in values))
    with np.errstate(all="ignore"):
        expected = function(*values)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for own, theirs in zip(found.results(), map(np.asarray, wanted), strict=True):
        assert (own.shape, own.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_array_equal(*(v.astype(float) if v.dtype == bfloat16 else v for v in (own, theirs)))
        if own.dtype == bfloat16 and signs:
            np.testing.assert_array_equal(*(np.signbit(v) & ~np.isnan(v) for v in (own, theirs)))
    return found


def is_near(function, *values: np.ndarray, units: float = 1) -> Emulation:
    """Assert that kernels alone compute, within so many units of the largest number, what float64 does."""
    found = Emulation(function, *(v.copy() for v in values))
    wide = function(*(v.astype(float) for v in values))
    for own, exact in zip(found.results(), wide if isinstance(wide, tuple) else (wide,), strict=True):
        unit = 2.0**-8 if own.dtype == bfloat16 else 2.0**-20
        assert own.dtype in {np.dtype(bfloat16), np.dtype(np.float32)}
        np.testing.assert_allclose(own.astype(float), exact, rtol=0, atol=units * unit * np.abs(exact).max())
    return found


@compiles
@pytest.mark.parametrize("count", COUNTS)
def test_each_step_is_rounded(count: int):
    def function(x, y):
        return x * y + x, x - y * 3, (x > y) & (x < 2), x * 0.3

    found = is_exact(function, numbers(count), numbers(count)[::-1])
    assert len(found.launches) == 1


@compiles
def test_edges_are_those_of_the_package():
    def function(x, y):
        return x + y, x * y, x / y, -x, np.abs(x), np.sqrt(np.abs(x)), x == y, np.where(x > y, x, y)

    is_exact(function, *np.meshgrid(EDGES, EDGES))
    is_exact(lambda x, y: (np.maximum(x, y), np.minimum(x, y)), *np.meshgrid(EDGES, EDGES), signs=False)


@compiles
def test_every_number_there_is():
    every = np.arange(1 << 16, dtype=np.uint16).view(bfloat16)
    is_exact(lambda x: (x.astype(np.float32), x * 1, x.astype(np.float16)), every)


@compiles
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "uint8", "bool"])
def test_conversions(dtype: str):
    other = np.array([0, 1, 3, 100, 70, 7, 250, 33]).astype(dtype)
    if other.dtype.kind == "f":  # halfway between two, above it by less than single precision has, and what runs over
        other[:5] = [257, np.nextafter(other.dtype.type(257), np.inf, dtype=dtype), 1e-7, np.nan, np.inf]
    if dtype == "int64":
        other[:3] = [2**24 + 2**16 + 1, 2**40 + 2**32 + 1, 2**63 - 1]
    is_exact(lambda x, y: (x.astype(bfloat16), x.astype(bfloat16) + y), other, numbers(8))
    if dtype != "uint8":  # what does not fit there, a processor converts in its own way
        is_exact(lambda x: x.astype(dtype), numbers(8) * bfloat16(9))


@compiles
def test_numbers_of_single_precision_are_rounded_to_even_in_the_middle():
    bits = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
    several = [(v << 16) + bits for v in (0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x0000, 0x8000)]
    x = np.concatenate(several).astype(np.uint32).view(np.float32)
    is_exact(lambda x: (x.astype(bfloat16), (x * 2).astype(bfloat16)), x)


@compiles
def test_sixteen_bytes_at_once():
    """Eight numbers are one load and one store of a thread; memory gives each sector once, beside wider numbers, too."""
    x = numbers(4096)
    (report,) = is_exact(lambda x, y: x * y + x, x, x[::-1].copy()).reports
    assert all(".v4.u32" in text for text in report.traffic)
    assert sum(t.bytes for t in report.traffic.values()) == 3 * 2 * 4096
    (beside,) = is_exact(lambda x, y: x.astype(np.float32) + y, x, x[::-1].copy()).reports
    assert all(t.sectors * 32 == t.bytes for found in (report, beside) for t in found.traffic.values())


@compiles
def test_folds_and_moves():
    def of_places(x):
        return np.max(x, axis=0), np.argmax(x, axis=1), np.any(x > 2, axis=1), x.T * 2, x[1:, ::2] - x[:-1, ::2]

    x = numbers(9, 33)
    assert is_exact(of_places, x).launches
    is_near(lambda x: (np.sum(x, axis=1), np.sum(x, axis=0), np.mean(x, axis=0), np.prod(x[:, :5], axis=1)), x)
    is_near(lambda x: np.sum(x.astype(np.float32), axis=1), x)
    is_exact(lambda x: np.transpose(x, (2, 0, 1)) + 1, numbers(20, 3, 33))
    is_near(lambda x, v, w: (x @ v, w @ x, np.dot(x.T, w)), x, numbers(33), numbers(9))


@compiles
def test_sums_keep_single_precision_until_their_end():
    (own,) = Emulation(lambda x: np.sum(x), np.ones(1000, bfloat16)).results()
    assert own == 1000  # 256 where each partial sum is rounded


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

    x = numbers(9, 33)
    is_exact(stored, x)
    is_exact(padded, x)
    is_exact(lambda x: (np.concatenate([x, x * 2], axis=1), np.stack([x, -x])), x)
    is_exact(lambda x: (x[np.array([0, -1, 2])] + 1, np.take(x, np.array([3, 3, 0]), axis=1)), x)


@compiles
@pytest.mark.share(2)
@pytest.mark.parametrize("shape", [(300,), (9, 33), (3, 1100), (200, 1100)])
def test_running_extremes_are_exact_and_running_sums_near(shape: tuple[int, ...]):
    x = numbers(*shape)
    found = is_exact(lambda x: (np.maximum.accumulate(x * 2, axis=0), np.minimum.accumulate(x, axis=-1)), x)
    assert "scan" in " ".join(found.names)
    is_near(lambda x: np.cumsum(x, axis=-1), x)


@compiles
def test_rows_in_one_launch():
    def softmax(x):
        e = np.exp(x - np.max(x, axis=1)[:, None])
        return e / np.sum(e, axis=1)[:, None]

    assert len(is_near(softmax, numbers(33, 257), units=4).launches) == 1


def stored(a, b):
    y = a.copy()
    y[1:4, ::2] = b[1:4, ::2]
    y[:, 3] += b[:, 0]
    return y


STEPS = (
    "{a} * {b} + {a}",
    "np.maximum({a}, {b}) - 3",
    "{a} / (np.abs({b}) + 1)",
    "np.where({a} > {b}, {a}, {b} * 2)",
    "{a} - np.max({b}, axis=1)[:, None]",
    "{a} * np.min({b})",
    "{a}[::-1] + {b}[:, ::-1]",
    "({a}.astype(np.float32) * 1.1).astype(bfloat16)",
    "({a} * 0.7 + {b}).astype(bfloat16)",
    "np.sqrt(np.abs({a})) + {b}",
    "np.clip({a}, -1, 1).astype(bfloat16)",
    "np.concatenate([{a}, {b}], axis=1)[:, 5:25]",
    "stored({a}, {b})",
    "{a}[np.array([6, 0, 0, 3, -2, 1, 5])] - {b}",
)


@compiles
@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(40))
def test_drawn_programs(seed: int):
    rng = random.Random(seed)
    names = ["x", "y"]
    lines = []
    for k in range(rng.randint(2, 7)):
        lines.append(f"v{k} = " + rng.choice(STEPS).format(a=rng.choice(names), b=rng.choice(names)))
        names.append(f"v{k}")
    made: dict = {"np": np, "stored": stored, "bfloat16": bfloat16}
    text = "def program(x, y):\n    " + "\n    ".join(lines) + f"\n    return {', '.join(names[2:])}\n"
    exec(text, made)
    is_exact(made["program"], numbers(7, 20), numbers(7, 20) * bfloat16(2))


@compiles
def test_whole_programs(device: Device, tier: str):
    """With products of matrices and a loop, which the library does; nothing but the arguments is copied, two bytes a number."""

    def program(x, w):
        z = np.tanh(x @ w).astype(bfloat16).copy()
        z[1:3] = z[1:3] * 2
        for _ in range(3):
            z = z * x.dtype.type(0.5) + 1
        return z, np.cumsum(z, axis=1)[:, -1], z.sum()

    x, w = numbers(8, 5), numbers(5, 4)
    _, graph = graph_of(program, (x, w))
    found = cuda.run(graph, [device.put(x), device.put(w)], device)
    assert (device.copied.to_device, device.copied.to_host) == (2 * (x.size + w.size), 0)
    for own, theirs in zip(found, program(x, w), strict=True):
        assert own.dtype == bfloat16
        np.testing.assert_allclose(device.fetch(own).astype(float), theirs.astype(float), rtol=2.0**-6)
