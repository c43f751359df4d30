"""Complex numbers in kernels: products, quotients and exponentials have the bits that NumPy's have, sums are those of the parts."""

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


@compiles
@pytest.mark.parametrize("count", COUNTS)
def test_arithmetic_is_numpys(count: int):
    found = is_numpys(lambda z, w: (z * w + z, z - w, -z, z.conj() * 2, z / w), shifted(count), numbers(count)[::-1])
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


@compiles
@pytest.mark.share(3)
@pytest.mark.parametrize("seed", range(30))
def test_drawn_programs(seed: int):
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
    is_numpys(made["program"], numbers(7, 20) * 0.3, numbers(7, 20) * 0.2, exact=False)


@compiles
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_whole_programs(dtype: str):
    """With a transform and a product of matrices, which the library does, and a loop; complex64 is the library's alone."""

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
