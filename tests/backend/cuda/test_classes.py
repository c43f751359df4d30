"""Each class of kernels at each size, and arrays that lie in memory in other ways."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.kernels.widened import WIDER
from tensormagic.backend.planning import kinds
from tests.backend.cuda.emulated import compiles, holds, normals
from tests.backend.cuda.test_assembled import CLASSES
from tests.backend.cuda.test_run import graph_of

pytestmark = compiles
SIZES = (1, 5, 31, 32, 33, 4096, 100_003)
OF_ROWS = {"rows", "softmax", "layer norm"}  # folds of rows, of which each has a size: the other axis is short
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
OF_FLOATS = {"map", "functions", "softmax", "layer norm", "logistic"}
OF_NUMBERS = {  # of other dtypes, where a class does something else with them
    "integers": (lambda x, y: (x + y, x * y, x // 3, x % 5, x & y, x > y, x * 0.5), ("[n]", "[n]")),
    "truth values": (lambda x, y: (x & y, x ^ y, ~x, x == y, np.where(x, 2.5, y)), ("[n]", "[n]")),
    "complex numbers": (lambda z, w: (z * w + z, z - w.conj(), np.abs(z), z.real > 0, z == w), ("[n]", "[n]")),
    "sum": (lambda x: np.sum(x), ("[n]",)),
    "total of truth values": (lambda x: (np.any(x), np.all(x), np.sum(x)), ("[n]",)),
    "stencil of truth values": (lambda x: np.concatenate([x[1:], x[:1]]) & x, ("[n, m]",)),
}
EVERY = {**CLASSES, **OF_NUMBERS}


def takes(name: str) -> tuple[str, ...]:
    """The dtypes that a class is for."""
    if name in OF_FLOATS:
        return FLOATS if name != "logistic" else FLOATS[1:]  # exponentials there leave half floats
    if name == "integers":
        return INTEGERS[1:]
    if "truth values" in name:
        return INTEGERS[:1]
    if name == "complex numbers":
        return COMPLEX
    if name in {"total", "scan", "scan of columns", "places"}:  # of an order, or running
        return (*FLOATS, *INTEGERS[1:])
    return (*FLOATS, *INTEGERS[1:], *COMPLEX) if name != "sum" else (*INTEGERS[1:], *COMPLEX)


def arguments(name: str, size: int, dtype: str):
    """Arrays of which one axis has the size; stencils and gathers have three rows at least."""
    if EVERY[name][1][0] == "[n]":
        return [numbers(size, dtype, seed) for seed, _ in enumerate(EVERY[name][1])]
    shape = (3, size) if name in OF_ROWS else (max(size, 3), 4)
    return [
        numbers(s, dtype, seed)
        for seed, s in enumerate({"logistic": (shape, shape[:1], shape[1:])}.get(name, (shape,)))
    ]


def numbers(shape, dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.startswith("complex"):
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if dtype.startswith("float"):
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype) if dtype != "bool" else rng.integers(0, 2, shape) > 0


CASES = [(name, dtype, size) for name in EVERY for dtype in takes(name) for size in SIZES]


@pytest.mark.share(40)
@pytest.mark.parametrize(("name", "dtype", "size"), CASES)
def test_each_class_with_each_dtype_at_each_size(name: str, dtype: str, size: int):
    if name == "scan" and size == 1:
        pytest.skip("lines of one element are the library's (test_scans.py)")
    holds(EVERY[name][0], *arguments(name, size, dtype), ulps=16 if size < 4096 else 64)


def test_every_dtype_that_kernels_have_is_tried():
    kept = {np.dtype(d) for name in EVERY for d in takes(name)}
    assert kept == {*kinds.DTYPES, *WIDER}


@pytest.mark.parametrize("name", ["map", "functions", "squares", "total", "columns"])
def test_nothing_at_all(name: str):
    """Arrays of no elements: what NumPy gives, or what it raises."""
    function, shapes = CLASSES[name]
    given = [np.empty((0, 4) if shape != "[n]" else 0) for shape in shapes]
    if name == "total":
        with pytest.raises(ValueError, match="zero-size array to reduction operation maximum which has no identity"):
            holds(function, *given)
        return
    holds(function, *given)


def test_other_layouts(device: Device):
    """Strided, transposed, reversed, stretched and shared memory on the device is read as it is meant, and left as it was."""
    base = normals((8, 6))
    there = device.put(base)
    xp = device.library
    _, graph = graph_of(lambda x, y: (x * 2 + y, x.sum(0)), (base[:4, :3], base[:4, :3]))
    views = {
        "strided": (there[::2, ::2], base[::2, ::2]),
        "transposed": (xp.transpose(there)[:4, :3], base.T[:4, :3]),
        "reversed": (there[7:3:-1, 2::-1], base[7:3:-1, 2::-1]),
        "inside": (there[1:5, 3:], base[1:5, 3:]),
        "stretched": (xp.broadcast_to(there[:1, :3], (4, 3)), np.broadcast_to(base[:1, :3], (4, 3))),
    }
    for name, (own, numpys) in views.items():
        with warnings.catch_warnings(), tm.config.using(tier="numba"):
            warnings.simplefilter("ignore")
            launches = device.copied.launches
            sums, columns = cuda.run(graph, [own, there[:4, :3]], device)
        assert device.copied.launches > launches, name
        np.testing.assert_allclose(device.fetch(sums), numpys * 2 + base[:4, :3], rtol=1e-15, err_msg=name)
        np.testing.assert_allclose(device.fetch(columns), numpys.sum(0), rtol=1e-14, atol=1e-14, err_msg=name)
    np.testing.assert_array_equal(device.fetch(there), base)


HOSTED = {
    "strided": lambda x: x[::2, ::3],
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1, ::-1],
    "stretched": lambda x: np.broadcast_to(x[:1], x.shape),
    "one column": lambda x: x[:, 2:3],
    "nothing": lambda x: x[:0],
    "read-only": lambda x: x,
}


@pytest.mark.parametrize("tier", ["numpy", "numba"])
@pytest.mark.parametrize("name", HOSTED)
def test_other_layouts_on_the_host(device: Device, name: str, tier: str):
    """What lies on the host in another way is copied as it is meant, and left as it was."""
    base = normals((8, 6))
    base.flags.writeable = name != "read-only"
    held = HOSTED[name](base)
    before = held.copy()
    with warnings.catch_warnings(), tm.config.using(tier=tier, device="gpu"):
        warnings.simplefilter("ignore", tm.HiddenTransferWarning)
        x = tm.tensor(held)
        found = [tm.to_host(v) for v in (x * 2 + 1, x.sum(0), x.T + 0.5)]
    for own, numpys in zip(found, (held * 2 + 1, held.sum(0), held.T + 0.5), strict=True):
        np.testing.assert_allclose(own, numpys, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(held, before)
    assert held.flags.writeable is (name not in {"read-only", "stretched"})
