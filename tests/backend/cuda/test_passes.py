"""Folds of rows, and folds of columns that need them, read their array once."""

import numpy as np
import pytest

import tensormagic as tm
from tests.backend.cuda.emulated import Emulation, compiles, holds, normals

pytestmark = compiles


def logistic(x, y, w):
    z = y * (x @ w)
    return np.mean(np.log1p(np.exp(-z))), x.T @ (-y / (1 + np.exp(z))) / x.shape[0]


def centred(x):
    return np.sum((x - np.mean(x, axis=1)[:, None]) ** 2, axis=0)


def squares(x):
    r = np.sum(x * x, axis=1)
    return r, x.T @ r, np.sum(r), np.sum(x * r[:, None] + 1, axis=0)


def two(x, y, w, v):
    return x.T @ np.tanh(x @ w), y.T @ (y @ v - x @ w)


def data(rows: int, columns: int, dtype: str = "float64"):
    x = normals((rows, columns), dtype)
    return x, np.sign(normals(rows, dtype)), normals(columns, dtype) / 4


SHAPES = [(5, 3), (31, 4), (32, 7), (33, 8), (600, 30), (100, 33), (70, 80), (2100, 5), (40_000, 2)]


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_values(shape: tuple[int, int], dtype: str):
    found = holds(logistic, *data(*shape, dtype), ulps=64)
    assert found.names[:3] == ["one pass", "finish", "finish"]


@pytest.mark.parametrize("shape", [(600, 30), (33, 52)])
def test_other_folds(shape: tuple[int, int]):
    x = normals(shape)
    assert holds(squares, x, ulps=64).names.count("one pass") == 1
    holds(centred, x, ulps=64)
    holds(two, x, x[::-1].copy(), normals(shape[1]), normals(shape[1]), ulps=256)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "float16"])
def test_other_dtypes(dtype: str):
    x = (normals((70, 12)) * 4).astype(dtype)
    holds(squares if dtype != "float16" else lambda x: x.T @ np.sum(x, axis=1) / 64, x, ulps=64)


def asked_for(found: Emulation) -> int:
    """Bytes that all launches ask the memory for, sums of blocks aside."""
    big = [r for r, name in zip(found.reports, found.names, strict=True) if name != "finish"]
    return sum(t.bytes for r in big for text, t in r.traffic.items() if text.startswith("ld.global"))


@pytest.mark.parametrize("columns", [30, 32, 7])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_number_is_read_once(columns: int, dtype: str):
    x = normals((700, columns), dtype)
    found = holds(lambda x: x.T @ np.tanh(np.sum(x, axis=1)), x, ulps=64)
    assert found.names == ["one pass", "finish"]
    assert asked_for(found) == x.nbytes


def test_a_logistic_loss_with_its_gradient_is_one_pass():
    """Beside the data each row asks for the weights, which stay near it, and each of its eight threads for the label."""
    x, y, w = data(700, 30, "float32")
    written = Emulation(logistic, x, y, w)
    assert asked_for(written) <= 2 * x.nbytes + 8 * y.nbytes + 1024
    derived = Emulation(
        lambda x, y, w: tm.value_and_grad(lambda w: np.mean(np.log1p(np.exp(-(y * (x @ w))))))(w), x, y, w
    )
    assert derived.names.count("one pass") == 1
    assert asked_for(derived) <= 2 * x.nbytes + 8 * y.nbytes + 1024


def test_the_same_bits_each_time():
    given = data(3000, 30, "float32")
    first, second = (Emulation(logistic, *given).results() for _ in range(2))
    assert [a.tobytes() for a in first] == [a.tobytes() for a in second]


def test_long_rows_take_two_passes():
    found = holds(logistic, *data(9, 5000), ulps=256)
    assert "one pass" not in found.names
    assert "columns" in found.names


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x - np.mean(x, axis=0),
        lambda x: x / np.sum(x * x, axis=1)[:, None],
        lambda x: (np.max(x, axis=0), np.sum(x, axis=1)),
        lambda x: np.sum(x, axis=0) * np.sum(x[:, 0] * 2),
    ],
)
def test_what_is_no_such_pass(function):
    assert "one pass" not in holds(function, normals((40, 6)), ulps=64).names
