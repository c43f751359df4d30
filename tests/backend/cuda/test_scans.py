"""Running sums, products and extremes, and places of extremes, as kernels: real PTX in the emulator, against NumPy."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda import run as cuda
from tensormagic.backend.cuda.device import Device
from tests.backend.cuda.emulated import Emulation, compiles, holds, integers, normals
from tests.backend.cuda.test_run import graph_of

pytestmark = compiles
PARTS = ["parts of lines", "ends of parts"]


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("size", "names"),
    [
        *((n, ["lines"]) for n in (2, 5, 31, 32)),
        *((n, ["scan"]) for n in (33, 256, 257, 4096)),
        *((n, [*PARTS, "scan"]) for n in (4099, 100_003)),
    ],
)
def test_one_line(size: int, names: list[str]):
    """By one thread, a warp, a block, or several blocks."""
    found = holds(lambda x: np.cumsum(x * 2), normals(size, "float32"), ulps=16 if size <= 4096 else 64)
    assert found.names == names


@pytest.mark.share(3)
@pytest.mark.parametrize("shape", [(5, 3), (3, 40), (3, 5000)])
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_along_an_axis(shape: tuple[int, int], axis: int):
    holds(lambda x: np.cumsum(np.exp(x) * 0.1, axis=axis), normals(shape), ulps=16)


def test_many_lines_side_by_side():
    assert holds(lambda x: np.cumsum(x, axis=0), normals((200, 1100)), ulps=16).names == [*PARTS, "lines"]
    assert holds(lambda x: np.cumsum(x, axis=1), normals((30, 7, 50)), ulps=16).names == ["lines"]
    assert holds(lambda x: np.cumsum(x, axis=1), normals((3, 70, 5)), ulps=16).names == ["scan"]


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float32", "float64", "bool"])
def test_each_fold_and_dtype(dtype: str):
    x = integers(300, dtype, 3) if dtype[0] in "iu" else (1 + integers(300, "int8", 3) * 0.01).astype(dtype)
    holds(lambda x: (np.cumsum(x), np.cumprod(x), np.maximum.accumulate(x), np.minimum.accumulate(x)), x, ulps=64)


def test_moved_lines_and_nans():
    holds(lambda x: np.cumsum(x[::-1])[::-1], normals(700), ulps=16)
    holds(lambda x: np.cumsum(x.T * 2, axis=1), normals((70, 40)), ulps=16)
    x = normals(600)
    x[400] = np.nan
    (found,) = Emulation(lambda x: np.maximum.accumulate(x), x).results()
    np.testing.assert_array_equal(found, np.maximum.accumulate(x))


def test_repeated_runs_give_the_same_bits():
    x = normals(9000, "float32")
    first, second = (Emulation(lambda x: np.cumsum(x), x).results()[0] for _ in range(2))
    np.testing.assert_array_equal(first.view(np.int32), second.view(np.int32))


def test_memory_is_touched_once():
    """Of a line that one block scans: each sector is read once and stored once."""
    (report,) = holds(lambda x: np.cumsum(x), normals(4096, "float32"), ulps=16).reports
    assert all(t.sectors * 32 == t.bytes for t in report.traffic.values())
    assert sum(t.bytes for t in report.traffic.values()) == 2 * 4 * 4096


@pytest.mark.parametrize("size", [2, 33, 1025, 100_003])
def test_places_in_one_row(size: int):
    names = ["places in parts", "finish"] if size > 5000 else ["places"]
    assert holds(lambda x: np.argmax(np.round(x * 2)), normals(size)).names == names


def test_places_along_axes():
    for shape in ((50, 3), (3, 40), (2, 1500), (3, 9000)):
        holds(lambda x: (np.argmax(x, axis=1), np.argmin(x, axis=0)), np.round(normals(shape) * 2))
    holds(lambda x: (np.argmax(x, 0), np.argmin(x, 1), np.argmax(x, 2)), integers((4, 5, 70), "int16", 5))
    holds(lambda x: np.argmax(x, axis=0), integers((40, 50), "int16", 5) > 3)
    assert holds(lambda x: np.argmax(x, axis=0), integers((30, 1100), "uint64", 5)).names == ["places"]
    x = normals(600)
    x[[400, 500]] = np.nan
    holds(lambda x: (np.argmax(x), np.argmin(x)), x)


def test_places_of_nothing():
    with pytest.raises(ValueError, match="attempt to get argmin of an empty sequence"):
        Emulation(lambda x: np.argmin(x, axis=0), np.empty((0, 3)))


def test_lines_of_one_element_are_the_librarys(device: Device):
    def both(x):
        return np.cumsum(x), np.argmax(x), x * 2

    x = np.array([3.5])
    _, graph = graph_of(both, (x,))
    with tm.config.using(tier="numba"):
        found = cuda.run(graph, [device.put(x)], device)
    for one, other in zip(found, both(x), strict=True):
        np.testing.assert_array_equal(device.fetch(one) if device.is_array(one) else one, other)


IN_PARTS = {
    "cumsum": lambda x: (np.cumsum(x, axis=0), np.cumsum(x, axis=1)),
    "cumulative extrema": lambda x: (np.maximum.accumulate(x, axis=0), np.minimum.accumulate(x, axis=1)),
    "places": lambda x: (np.argmax(x, axis=0), np.argmin(x, axis=1)),
    "folds": lambda x: (np.sum(x, axis=0), np.max(x, axis=1), np.sum(x)),
    "softmax": lambda x: (
        np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
    ),
    "squares": lambda x: x.T * 2 + np.ones_like(x.T),
    "gathers": lambda x: (x[np.array([3, 0, 2])] * 2, x[:, np.array([1, 1])] + 1),
    "stores": lambda x: (np.roll(x, 1, axis=0) + x, np.concatenate([x, x * 2]) - 1),
    "broadcast": lambda x: x * x[0] + x[:, 1][:, None],
}


@compiles
@pytest.mark.parametrize("name", IN_PARTS)
@pytest.mark.parametrize("shape", [(9, 11), (70, 41), (5, 1300), (1300, 5)])
def test_sizes_that_are_sums(name: str, shape: tuple[int, int]):
    """Of parts and of arrays that are put together: such a size is a factor, too."""
    if name in {"places", "gathers", "cumulative extrema"}:
        holds(lambda x: IN_PARTS[name](x[1:, 2:]), np.round(normals(shape) * 9))
    else:
        holds(lambda x: IN_PARTS[name](x[1:, 2:]), normals(shape), ulps=40 if "sum" in name or name == "folds" else 4)
