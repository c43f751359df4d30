"""Complex numbers in kernels: products, quotients and exponentials of complex128 have NumPy's bits, sums are those of the parts.

complex64 is what memory holds: it is computed with in double precision, and each operation is rounded.
"""

import random

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import device as devices
from tensormagic.backend.cuda import run as cuda
from tests.backend.cuda.emulated import Emulation, compiles
from tests.backend.cuda.fake import FakeDevice
from tests.backend.cuda.test_run import graph_of

PARTS = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-310, 3e307]
EDGES = np.array([complex(a, b) for a in PARTS for b in PARTS])
COUNTS = [0, 1, 5, 31, 32, 33, 4096]


def numbers(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(shape)
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def is_numpys(function, *values: np.ndarray, exact: bool = True) -> Emulation:
    """Assert that kernels alone compute what NumPy does."""
    found = Emulation(function, *(v.copy() for v in values))
    with np.errstate(all="ignore"):
        expected = function(*values)
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for own, numpys in zip(found.results(), map(np.asarray, wanted), strict=True):
        assert (own.shape, own.dtype) == (numpys.shape, numpys.dtype)
        if exact:
            np.testing.assert_array_equal(own, numpys)
        else:
            np.testing.assert_allclose(own, numpys, rtol=1e-13, atol=1e-13)
    return found


def rounds_once() -> bool:
    """Whether NumPy adds the two products in one of complex numbers without rounding both, as it does where the processor can."""
    a = 1 + 2.0**-30
    return bool(np.all((np.full(8, complex(a, 1)) * np.full(8, complex(a, 1 + 2.0**-29))).real))


@compiles
@pytest.mark.parametrize("count", COUNTS)
def test_arithmetic_is_numpys(count: int):
    values = shifted(count), numbers(count)[::-1]
    found = is_numpys(lambda z, w: (z * w + z, z - w, -z, z.conj() * 2, z / w), *values, exact=rounds_once())
    assert len(found.launches) == 1


def shifted(count: int) -> np.ndarray:
    return numbers(count) + (0.5 - 2j)


@compiles
def test_edges_are_numpys():
    z, w = np.repeat(EDGES, 9), np.tile(EDGES[::9], 81)
    is_numpys(lambda z, w: (z + w, z == w, z != w, np.isnan(z), np.isinf(z), np.isfinite(z), z.real, w.imag), z, w)
    is_numpys(lambda z, w: np.where(z.real > 0, z, w), z, w)


@compiles
def test_exponentials_and_absolute_values():
    z = numbers(257)
    is_numpys(lambda z: (np.exp(z), np.abs(z), np.exp(1j * z.real)), z, exact=False)


@compiles
def test_logarithms_roots_and_powers():
    z, w = numbers(257), numbers(257)[::-1]
    is_numpys(lambda z, w: (np.log(z), np.sqrt(z), z**3, z**0.5, z**w), z, w, exact=False)


@compiles
def test_moves_stores_and_sums():
    def stored(z):
        w = z.copy()
        w[1:3] = w[1:3] * 1j
        w[:, 4] += z[:, 5]
        return w

    z = numbers(33, 40)
    is_numpys(stored, z)
    found = is_numpys(lambda z: (z.T * 2, z[1:, ::2] - z[:-1, ::2], z[::-1] + 1j), z)
    assert any("squares" in one for one in found.names)
    is_numpys(lambda z: (z.sum(), z.sum(axis=0), z.mean(axis=1), np.abs(z).max(axis=1)), z, exact=False)
    is_numpys(lambda z: z[np.array([3, 0, -1])] * 2, z)


def near(function, *values: np.ndarray) -> Emulation:
    """Assert that kernels compute what complex128 gives, to a few roundings of complex64, of the largest number."""
    found = Emulation(function, *(v.copy() for v in values))
    wide = function(*(v.astype({"c": np.complex128, "f": np.float64}.get(v.dtype.kind, v.dtype)) for v in values))
    plain = function(*values)
    for own, numpys, exact in zip(found.results(), *(v if isinstance(v, tuple) else (v,) for v in (plain, wide))):  # noqa: B905 (as many)
        assert (own.shape, own.dtype) == (np.shape(numpys), np.asarray(numpys).dtype)
        if own.dtype.kind not in "fc":
            np.testing.assert_array_equal(own, numpys)
            continue
        np.testing.assert_allclose(own, exact, rtol=1e-6, atol=4e-7 * np.abs(exact).max(initial=0))
    return found


def singles(*shape: int) -> np.ndarray:
    return numbers(*shape).astype(np.complex64)


@compiles
@pytest.mark.parametrize("count", [*COUNTS, 100_003])
def test_single_precision(count: int):
    z, w = singles(count), singles(count)[::-1] + np.complex64(3)
    found = near(lambda z, w: (z * w + z, z - w, z.conj() * 2, z / w, np.abs(z), np.exp(z), z == w, z.real), z, w)
    assert len(found.launches) == 1
    if count == 4096:
        traffic = [t for report in found.reports for t in report.traffic.values()]
        assert sum(t.bytes for t in traffic) == count * (2 * 8 + 5 * 8 + 4 + 4 + 1)


@compiles
def test_single_precision_adds_compares_and_converts_as_numpy():
    with np.errstate(over="ignore"):  # beyond single precision
        z, w = np.repeat(EDGES, 9).astype(np.complex64), np.tile(EDGES[::9], 81).astype(np.complex64)
    is_numpys(lambda z, w: (z + w, z - w, -z, z == w, np.isnan(z), z.real, w.imag, z.conj()), z, w)
    is_numpys(lambda z, w: (z.astype(complex), np.where(z.real > 0, z, w), z.astype(complex) + w), z, w)
    for dtype in ("float16", "float32", "float64", "int32", "int64", "bool"):
        x = np.array([0, 1, 3, 100, 2**24 + 1 if dtype != "float16" else 2049, 7]).astype(dtype)
        is_numpys(lambda x: (x.astype(np.complex64), x.astype(np.complex64) + 1j), x)
    is_numpys(lambda x, y: x + 1j * y, np.float32([1.5, -0.0]), np.float32([2.25, np.inf])[::-1].copy(), exact=True)


@compiles
def test_moves_stores_and_sums_of_single_precision():
    def stored(z):
        w = z.copy()
        w[1:3] = w[1:3] * 1j
        w[:, 4] += z[:, 5]
        return w

    z = singles(33, 40)
    near(stored, z)
    found = near(lambda z: (z.T * 2, z[1:, ::2] - z[:-1, ::2], z[::-1] + 1j, np.concatenate([z, z])), z)
    assert any("squares" in one for one in found.names)
    near(lambda z: (z.sum(), z.sum(axis=0), z.mean(axis=1), np.abs(z).max(axis=1)), z)
    near(lambda z: z[np.array([3, 0, -1])] * 2, z)


@compiles
@pytest.mark.share(3)
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_drawn_programs(seed: int, dtype: str):
    rng = random.Random(seed)
    names = ["z", "w"]
    lines = []
    for k in range(rng.randint(2, 7)):
        a, b = rng.choice(names), rng.choice(names)
        choices = [
            f"{a} * {b} + {a}",
            f"{a} / ({b} + 3)",
            f"np.exp({a} * 1j) * 0.5",
            f"np.where({a}.real > {b}.imag, {a}, {b} * 0.5)",
            f"{a} - {b}.mean(axis=1)[:, None]",
            f"{a} * np.abs({b}).max()",
            f"{a}[::-1] + {b}[:, ::-1]",
            f"{a}.conj() * {b}.real",
            f"{a}.T.copy().T + {b}.sum()",
        ]
        lines.append(f"v{k} = " + rng.choice(choices))
        names.append(f"v{k}")
    text = "def program(z, w):\n    " + "\n    ".join(lines) + f"\n    return {', '.join(names[-2:])}\n"
    made: dict = {}
    exec(text, {"np": np}, made)
    given = [numbers(7, 20) * 0.3, numbers(7, 20) * 0.2]
    if dtype == "complex64":
        near(made["program"], *(v.astype(dtype) for v in given))
    else:
        is_numpys(made["program"], *given, exact=False)


@compiles
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_whole_programs(dtype: str):
    """With a transform and a product of matrices, which the library does, and a loop."""

    def program(z, w):
        for _ in range(3):
            z = z * z * 0.1 + w
        spectrum = np.fft.fft(z @ w.T, axis=1)
        return np.abs(spectrum) ** 2, spectrum * 2j, (z * w.conj()).real.sum()

    given = [numbers(6, 5).astype(dtype), numbers(6, 5)[::-1].astype(dtype).copy()]
    device = FakeDevice()
    devices.use(device)
    try:
        _, graph = graph_of(program, given)
        with tm.config.using(tier="numba"):
            found = cuda.run(graph, [device.put(v) for v in given], device)
    finally:
        devices.use(None)
    for own, numpys in zip(found, program(*given), strict=True):
        held = device.fetch(own)
        assert held.dtype == numpys.dtype
        np.testing.assert_allclose(
            held, numpys, rtol=2e-4 if dtype == "complex64" else 1e-12, atol=1e-4 if dtype == "complex64" else 1e-12
        )
