"""Each class of kernels at each size, and arrays that lie in memory in other ways."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.device import Device
from tests.backend.cuda.emulated import compiles, holds, normals
from tests.backend.cuda.test_assembled import CLASSES
from tests.backend.cuda.test_run import graph_of

pytestmark = compiles
SIZES = (1, 5, 31, 32, 33, 4096, 100_003)
OF_ROWS = {"rows", "softmax", "layer norm"}  # folds of rows, of which each has a size: the other axis is short


def arguments(name: str, size: int, dtype: str):
    """Arrays of which one axis has the size; stencils and gathers have three rows at least."""
    if CLASSES[name][1][0] == "[n]":
        return [normals(size, dtype) for _ in CLASSES[name][1]]
    shape = (3, size) if name in OF_ROWS else (max(size, 3), 4)
    return [normals(s, dtype) for s in {"logistic": (shape, shape[:1], shape[1:])}.get(name, (shape,))]


@pytest.mark.share(9)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CLASSES)
def test_each_class_at_each_size(name: str, dtype: str, size: int):
    if name == "scan" and size == 1:
        pytest.skip("lines of one element are the library's (test_scans.py)")
    holds(CLASSES[name][0], *arguments(name, size, dtype), ulps=16 if size < 4096 else 64)


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
