"""Values into repeated places: NumPy's results, without atomic operations, and the same bits each time."""

import numpy as np
import pytest

from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.kernels import segments
from tests.backend.cuda.emulated import compiles
from tests.backend.cuda.test_run import graph_of

pytestmark = compiles
UFUNCS = {"+": np.add, "*": np.multiply, ">": np.maximum, "<": np.minimum}
PIECE = segments.PIECE
SIZES = (1, 5, 31, 32, 33, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 1, 4096, 4097)


def drawn(rng: np.random.Generator, shape, dtype: str):
    if dtype.startswith("float"):
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(-9 if dtype.startswith("int") else 0, 100, shape).astype(dtype)


def stored(device: Device, step: str, x, places, values, axis: int):
    target = device.put(x)
    segments.store(device, step, target, device.put(places), device.put(values), axis)
    return device.fetch(target)


def compared(device: Device, step: str, x, places, values, axis: int = 0):
    wanted = x.astype(np.longdouble if x.dtype == np.float64 else np.float64 if x.dtype == np.float32 else x.dtype)
    UFUNCS[step].at(wanted, (*(slice(None),) * axis, places), values)
    found = stored(device, step, x, places, values, axis)
    if x.dtype.kind == "f" and step in {"+", "*"}:
        rtol = 40 * np.finfo(x.dtype).eps * max(1, np.log2(places.size + 1))
        scale = np.nanmax(np.abs(wanted), initial=1.0)
        np.testing.assert_allclose(found.astype(wanted.dtype), wanted, rtol=rtol, atol=float(rtol * scale))
    else:
        np.testing.assert_array_equal(found, wanted.astype(x.dtype))
    assert found.tobytes() == stored(device, step, x, places, values, axis).tobytes()


@pytest.mark.parametrize("size", SIZES)
def test_sizes_and_repetitions(device: Device, size: int):
    """Places that are all one, all different, few, and in runs that end at the ends of pieces."""
    rng = np.random.default_rng(size)
    for places in (
        np.zeros(size, np.int64),
        rng.permutation(size),
        rng.integers(0, 3, size),
        np.arange(size) // PIECE,
        rng.integers(0, size // 10 + 2, size),
    ):
        x = rng.normal(size=int(places.max()) + 2)
        compared(device, "+", x, places, rng.normal(size=size))


@pytest.mark.share(4)
@pytest.mark.parametrize("step", UFUNCS)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64", "float32", "float64"])
def test_steps_and_dtypes(device: Device, step: str, dtype: str):
    rng = np.random.default_rng(1)
    places = rng.integers(0, 7, 300)
    compared(device, step, drawn(rng, 9, dtype), places, drawn(rng, 300, dtype))
    if dtype == "float32":
        values = drawn(rng, 300, dtype)
        values[[5, 250]] = np.nan
        compared(device, step, drawn(rng, 9, dtype), places, values)


@pytest.mark.parametrize(
    ("dtype", "other"),
    [("float32", "float64"), ("float64", "float32"), ("int32", "int64"), ("float32", "int64"), ("int8", "bool")],
)
def test_values_of_another_dtype_are_converted(device: Device, dtype: str, other: str):
    """As NumPy does it: their bytes are not those of the target's dtype."""
    rng = np.random.default_rng(3)
    x, places = drawn(rng, (6, 8), dtype), np.array([5, 3, 1, 1])
    values = (drawn(rng, (4, 8), "int64") > 3) if other == "bool" else drawn(rng, (4, 8), other)
    for name in ("add", "multiply", "maximum"):

        def program(x, values, name=name):
            z = x.copy()
            getattr(np, name).at(z, places, values)
            return z

        _, graph = graph_of(program, (x, values))
        held = {"x": x, "values": values, "places": places}
        (found,) = cuda.run(graph, [device.put(held[n]) for n in graph.names], device)
        np.testing.assert_allclose(device.fetch(found), program(x, values), rtol=1e-6)
    _, graph = graph_of(lambda x: _with_a_number(x, places), (x,))
    (found,) = cuda.run(graph, [device.put({"x": x, "places": places}[n]) for n in graph.names], device)
    np.testing.assert_allclose(device.fetch(found), _with_a_number(x, places), rtol=1e-6)


def _with_a_number(x, places):
    z = x.copy()
    np.add.at(z, places, 1.5 if x.dtype.kind == "f" else 2)
    return z


def test_axes(device: Device):
    rng = np.random.default_rng(2)
    for axis in range(3):
        x = rng.normal(size=(3, 4, 5))
        places = rng.integers(0, x.shape[axis], (6, 30))
        values = rng.normal(size=(*x.shape[:axis], 6, 30, *x.shape[axis + 1 :]))
        compared(device, "+", x, places, values, axis)


def test_a_hundred_thousand(device: Device):
    rng = np.random.default_rng(3)
    places = rng.integers(0, 10, 100_003) ** 2
    compared(device, "+", rng.normal(size=82).astype("float32"), places, rng.normal(size=100_003).astype("float32"))
    assert device.copied.launches == 2 * 4  # 1,563 pieces, 49, 2, 1; twice


def test_programs_use_no_atomic_operations(device: Device, monkeypatch: pytest.MonkeyPatch):
    def refused(*_given):
        raise AssertionError("an atomic operation")

    def histogram(x, k):
        found = np.zeros(4)
        np.add.at(found, k, x)
        np.maximum.at(found, k, x * 2)
        return found, np.bincount(k, x, 4)

    monkeypatch.setattr(device, "scatter", refused)
    x, k = np.arange(6.0), np.array([0, 1, 0, 3, -1, 1]) % 4
    _, graph = graph_of(histogram, (x, k))
    assert not cuda.offenders(graph)
    found, counts = cuda.run(graph, [device.put(x), device.put(k)], device)
    assert device.copied.to_host == 0
    wanted, numbers = histogram(x, k)
    np.testing.assert_array_equal(device.fetch(found), wanted)
    np.testing.assert_array_equal(device.fetch(counts), numbers)


def test_folds_of_bits(device: Device):
    rng = np.random.default_rng(4)
    x = rng.integers(1, 1000, (5, 7))

    def folds(x):
        bits = np.bitwise_and.reduce(x, axis=0), np.bitwise_or.reduce(x, axis=1), np.bitwise_xor.reduce(x, axis=0)
        return *bits, np.gcd.reduce(x * 6, axis=0), np.lcm.reduce(x % 9 + 1, axis=1)

    for array in (x, -x[:2, :3], x[:0], x.astype(np.int16)):
        _, graph = graph_of(folds, (array,))
        assert {n.op.name for n in graph.nodes} >= {"bitwise_and_of", "gcd_of"}
        assert not cuda.offenders(graph)
        for one, other in zip(cuda.run(graph, [device.put(array)], device), folds(array), strict=True):
            np.testing.assert_array_equal(device.fetch(one), other)
