"""Stores through masks, arrays of indices and ``ufunc.at``: values, shapes, errors as NumPy's, and derivatives."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import captured, cell, check, refused
from tests.capture.harness import plain as in_numpy

X = np.arange(24.0).reshape(2, 3, 4)
Y = np.linspace(-2, 3, 6)
NAMES = {
    "x": X,
    "y": Y,
    "v": np.arange(3.0) + 100,
    "k": np.array([2, 0, 2]),
    "n": np.array([-1, 1, -6]),
    "i": np.arange(6),
    "u": np.array([3, 1, 4], np.uint8),
    "s": 2.5,
}

PROGRAMS = {
    "mask and a number": "y[y > 0] = 7",
    "mask and a captured number": "y[y > 0] = s",
    "mask of all axes": "x[x > 5] = -1",
    "mask of leading axes": "x[x[:, :, 0] > 5] = [1, 2, 3, 4]",
    "mask of one axis": "x[:, x[0, :, 0] > 3] = 5",
    "mask of one axis, values in one row": "x[:, x[0, :, 0] > 3] = np.arange(4)",
    "mask of the last axis": "x[..., x[0, 0] > 1] = -3",
    "mask beside an integer": "x[0, x[0, :, 0] > 3] = 5",
    "mask behind a slice and an integer": "x[0, :, x[0, 0] > 1] = np.arange(3)",
    "mask before an integer": "x[:, x[0, :, 0] > 3, 0] = 5",
    "mask and a new axis": "x[None, x[:, 0, 0] > 3] = 5",
    "mask and an ellipsis": "x[..., 0][x[..., 0] > 5] = 5",
    "mask in place": "y[y > 0] += 10",
    "mask in place with a number of the cell": "y[y < 0] *= s",
    "mask that is a constant": "y[np.array([True, False, True, False, False, True])] = v",
    "mask that is a list": "y[[True, False, True, False, False, True]] = [1, 2, 3]",
    "mask that is a constant, rows": "x[:, np.array([True, False, True])] = np.arange(8).reshape(2, 1, 4)",
    "mask and leading axes of one": "y[y > 0] = np.array([4.0])",
    "mask that is true nowhere": "y[y > 99] = 1",
    "a bool": "x[True] = 4",
    "no bool": "x[False] = 4",
    "a captured bool": "y[y.sum() > 0] = 4",
    "mask and a cast": "a = y.astype(int)\na[a > 0] = 2.9",
    "mask through a view": "z = y[1:4]\nz[z > 0] = 9",
    "mask through a transpose": "z = x[0].T\nz[z > 5] = 0",
    "mask and values": "y[y > 0] = v",
    "mask and what another array holds there": "z = np.cos(y)\ny[y > 0] = z[y > 0]",
    "mask and a formula": "m = y > 0\nz = np.cos(y)\ny[m] = y[m] ** 2 + s * z[m] / 3 - 1",
    "mask and a mean": "m = y > 0\ny[m] -= y[m].mean()",
    "mask and a reversal": "m = y > 0\ny[m] = y[m][::-1]",
    "mask and a sum that runs": "m = y > 0\ny[m] = np.cumsum(y[m])",
    "mask of rows and a formula": "m = x[:, :, 0] > 5\nx[m] = 2 * x[m] + np.arange(4)",
    "mask of rows and rows": "m = x[:, :, 0] > 5\nx[m] = x[m][::-1]",
    "mask of one axis and a formula": "m = x[0, :, 0] > 3\nx[:, m] *= x[:, m]",
    "mask of the last axis and a formula": "m = x[0, 0] > 1\nx[..., m] = -x[..., m]",
    "mask behind an integer and a formula": "m = x[0, 0] > 1\nx[0, :, m] = x[1, :, m] * 2",
    "two masks": "y[y > 0] = y[y > 1].sum()",
    "mask and integers": "m = y > 0\na = y.astype(int)\na[m] = 2 ** a[m]",
    "mask that is true nowhere and nothing": "y[y > 99] = []",
    "mask and a list beside it": "x[x[:, 0, 0] > 3, [1]] = 7",
    "masks of two axes": "x[x[:, 0, 0] > 3, :, x[0, 0] == 2] = 7",
    "add.at of a mask": "np.add.at(y, y > 0, v)",
    "multiply.at of a mask": "np.multiply.at(x, x[:, :, 0] > 5, 3)",
    "nonzero": "y[np.nonzero(y > 0)] = v\nx[np.nonzero(x > 5)] += 1",
    "where with one argument": "y[np.where(y > 0)] = v",
    "integers": "y[k] = v",
    "integers and a number": "y[k] = 4",
    "integers that repeat in place": "y[k] += 1",
    "integers that repeat in place with values": "y[k] += v",
    "negative integers": "y[n] = v",
    "unsigned integers": "y[u] = v",
    "list": "y[[1, 4]] = [7, 8]",
    "empty list": "y[[]] = 5",
    "permutation": "y[i[::-1]] = y",
    "rows": "x[0][k] = v[:, None]",
    "columns": "x[0][:, k] = v",
    "middle axis": "x[:, k] = np.arange(4.0)",
    "matrix of integers": "y[np.array([[0, 1], [4, 5]])] = [[1, 2], [3, 4]]",
    "two arrays": "x[0][k, [0, 1, 3]] = v",
    "two arrays that broadcast": "x[0][k[:, None], [0, 3]] = 1",
    "three arrays": "x[[0, 1], [1, 2], [3, 0]] = [5, 6]",
    "array and an integer": "x[0, k] = np.arange(4)",
    "array behind a slice": "x[:, :, [0, -1]] = x[:, :, [1, 2]]",
    "arrays apart": "x[[0, 1], :, [2, 3]] = np.arange(3)",
    "integer and array apart": "x[0, :, [2, 3]] = np.arange(6).reshape(2, 3)",
    "array and a slice with step": "x[::-1, [0, 2], 1::2] = np.arange(8).reshape(2, 2, 2)",
    "array and a new axis": "y[None, k] = v",
    "array and an ellipsis": "x[..., [0, 1]] = np.arange(2)",
    "mask and array": "x[np.array([True, True]), [0, 2]] = 8",
    "array in place on two axes": "x[0][k, [0, 0, 0]] += 1",
    "swap of rows": "a = x[0]\na[[0, 1]] = a[[1, 0]]",
    "swap of elements": "y[0], y[1] = y[1], y[0]",
    "captured integers": "y[(y > 0).astype(int)] = 5",
    "argsort": "r = np.empty(6, int)\nr[np.argsort(y[::-1])] = np.arange(6)",
    "one-hot": "h = np.zeros((3, 4))\nh[np.arange(3), u % 4] = 1",
    "array through a view": "z = y[::2]\nz[[0, 2]] = [-5, -6]",
    "array through a reshape": "y.reshape(2, 3)[:, [0, 2]] = 0",
    "captured integer": "j = np.argmax(y)\ny[j] = -1\ny[j - 2] += 7",
    "captured integer beside a slice": "j = np.argmax(x[0, :, 0])\nx[:, j] = 3\nx[:, j, 1:] *= 2",
    "row of the largest": "x[0, np.argmin(x[0, :, 1])] += 1",
    "add.at": "np.add.at(y, k, 1)",
    "add.at values": "np.add.at(y, k, v)",
    "add.at rows": "np.add.at(x, (slice(None), k), x[:, :, ::-1])",
    "add.at two axes": "np.add.at(x[0], (k, [1, 1, 1]), v)",
    "add.at slice": "np.add.at(y, slice(1, 4), 1)",
    "add.at integer": "np.add.at(y, 2, 1)",
    "add.at ints with a float": "a = np.zeros(3, int)\nnp.add.at(a, k, 0.6)",
    "add.at float32 with float64": "a = np.zeros(3, np.float32)\nnp.add.at(a, k, v * 1.1)",
    "add.at constant mask": "np.add.at(y, np.array([True, False, True, False, False, True]), v)",
    "subtract.at": "np.subtract.at(y, k, v)",
    "multiply.at": "np.multiply.at(y, k, v)",
    "maximum.at": "np.maximum.at(y, k, [1, 5, 0.5])",
    "minimum.at": "np.minimum.at(y, k, [1, 5, -7])",
    "histogram": "h = np.zeros(4, int)\nnp.add.at(h, (x % 4).astype(int), 1)",
    "scatter in a loop": "for j in range(3):\n    x[0, [j, 0]] += j",
    "chained": "a = y[k] = v * 2",
    "fancy columns, chained": "a = np.zeros((3, 3))\na[1:, 0] = a[0, 1:] = [4, 5]",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str):
    check(PROGRAMS[name], **NAMES)


ERRORS = {
    "index out of bounds": "y[[0, 6]] = 1",
    "index out of bounds below": "y[[0, -7]] = 1",
    "captured index out of bounds": "y[(y * 100).astype(int)] = 1",
    "one of two out of bounds": "x[0][[0, 3], [0, 1]] = 1",
    "captured, one of two out of bounds": "x[0][k + 1, k] = 1",
    "at out of bounds": "np.add.at(y, [6], 1)",
    "float index": "y[[0.5]] = 1",
    "floats": "y[v] = 1",
    "too many": "y[k, k] = 1",
    "too many with a mask": "y[y > 0, k] = 1",
    "two ellipses": "x[..., k, ...] = 1",
    "arrays that do not fit": "x[0][[0, 1], [0, 1, 2]] = 1",
    "values that do not fit": "y[k] = [1, 2]",
    "values of too many axes": "y[k] = x",
    "values that do not fit a mask of rows": "x[x[:, :, 0] > 5] = [1, 2, 3]",
    "values that do not fit a constant mask": "y[np.array([True] * 3 + [False] * 3)] = [1, 2]",
    "values that do not fit a mask": "y[y > 0] = v[:2]",
    "too many values for a mask": "y[y > 1] = v",
    "values for a mask that is true nowhere": "y[y > 99] = v",
    "a number for a mask, too often": "y[y > 0] = np.full(2, v.sum())",
    "mask of another length": "y[v > 0] = 1",
    "mask and values of two axes": "y[y > 0] = np.ones((1, 1))",
    "complex": "y[k] = 1j",
    "too large": "u[k] = 300",
    "too large in a list": "u[k] = [1, 2, 300]",
    "negative": "u[0] = -1",
    "nan into integers": "k[[0]] = np.nan",
    "at of a shape": "np.add.at(y, k, [1, 2])",
    "at of bools": "np.subtract.at(y > 0, [0], True)",
    "in place of another kind": "k[[0, 1]] += 0.5",
    "a number": "a = y[0]\na[[0]] = 1",
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str):
    check(ERRORS[name], **NAMES)


def test_a_formula_of_what_a_mask_selects_is_a_choice():
    for source in (
        "m = y > 0\ny[m] = np.exp(z[m]) + y[m] * 2\ny",
        "m = y > 0\ny[m] += 1\ny",
        "y[y > 0] *= z[y > 0]\ny",
    ):
        result = cell(source, {"y": Y, "z": Y[::-1], "np": np}).result
        ops = [n.op.name for n in result.optimized.nodes]
        assert "where" in ops
        assert not {"places", "gather", "scatter_set"} & set(ops)


def test_what_is_not_captured_runs_on_values():
    check("np.hypot.at(y, k, 1)\nz = y * 2", **NAMES)  # a function has none
    with pytest.raises(CaptureError, match=r"np\.hypot\.at"):
        tm.tensor(lambda y, k: np.hypot.at(y, k, 1)).graph(NAMES["y"] * 1, NAMES["k"])
    source = "np.add.at(np.diagonal(x[0]), k, 1)"
    if in_numpy(source, NAMES).error is None:  # NumPy before 2.5 stores into it
        refused(source, "read-only array", **NAMES)
    else:
        check(source, **NAMES)


GRADIENTS = {
    "mask": lambda x, v: _set(x, x > 0.2, v.sum()),
    "mask in place": lambda x, v: _set(x, x > 0.2, None, lambda part: part * v[0]),
    "mask and values": lambda x, v: _set(x, x > 0.05, v),
    "mask and a reversal": lambda x, v: _set(x, x > 0.05, None, lambda part: part[::-1] * v.sum()),
    "integers": lambda x, v: _set(x, np.array([2, 0, 1]), v),
    "integers that repeat": lambda x, v: _set(x, np.array([2, 0, 2]), v),
    "captured integers": lambda x, v: _set(x, np.argsort(v), v),
    "captured integers that may repeat": lambda x, v: _set(x, (v > 0).astype(int), v),
    "add.at": lambda x, v: _at(np.add, x, [1, 1, 0], v),
    "subtract.at": lambda x, v: _at(np.subtract, x, [1, 1, 0], v),
    "multiply.at": lambda x, v: _at(np.multiply, x, [1, 1, 0], v),
    "maximum.at": lambda x, v: _at(np.maximum, x, [1, 1, 0], v),
    "minimum.at": lambda x, v: _at(np.minimum, x, [1, 1, 0], v),
}


def _set(x, index, value, change=None):
    y = x.copy()
    y[index] = change(y[index]) if change else value
    return y


def _at(ufunc, x, index, value):
    y = x.copy()
    ufunc.at(y, index, value)
    return y


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name: str):
    weights = np.array([0.3, -1.2, 2.0, 0.7])
    function = GRADIENTS[name]

    def loss(x, v):
        return np.sum(weights * np.sin(function(x, v)))

    x, v = np.array([0.5, -0.3, 1.1, 0.1]), np.array([0.4, -0.9, 0.8])
    for argument in (0, 1):
        for compared, plain in ((loss, loss), (_tangent(loss), _tangent(loss))):
            found = tm.grad(compared, argument)(x, v)
            np.testing.assert_allclose(found, differences(plain, [x, v], argument), rtol=1e-6, atol=1e-8)


def _tangent(loss):
    return lambda x, v: np.sum(np.cos(np.arange(4.0)) * tm.grad(loss)(x, v))


def differences(function, points, argument, h=1e-3):
    """The gradient by central differences of two steps, extrapolated."""

    def central(k, step):
        plus, minus = ([np.array(p) for p in points] for _ in range(2))
        plus[argument][k] += step
        minus[argument][k] -= step
        return (float(function(*plus)) - float(function(*minus))) / (2 * step)

    return np.array([(4 * central(k, h / 2) - central(k, h)) / 3 for k in range(points[argument].size)])


SHAPES = [
    (),
    (1,),
    (0,),
    (2,),
    (3,),
    (2, 0),
    (3, 0),
    (2, 3, 0),
    (0, 0),
    (1, 1),
    (1, 0),
    (0, 4),
    (3, 1),
    (1, 3),
    (2, 2),
    (3, 0, 1),
]
EMPTIES = ["[]", "..., []", "[], ...", ":, []", "[], []", "0, []", "1:, []", "0, [], None", "k[k > 5]", "..., k[k > 5]", "x > 5", "k > 5",
           "k[k > 5], k[k > 5]", ":0", "np.zeros(x.shape, bool)", "len(x)*[False]"]  # fmt: skip


@pytest.mark.share(5)
@pytest.mark.parametrize("index", EMPTIES)
def test_values_of_any_shape_into_no_elements(index: str):
    """Leading axes of any extent are dropped where NumPy drops them: no element goes anywhere."""
    for own in [(3, 1), (3,), (3, 0), (0,), (3, 4, 2)]:
        for given in SHAPES:
            for store in ("=", "+="):
                names = {"x": np.zeros(own), "v": np.ones(given), "k": np.arange(3)}
                expected, ours = in_numpy(f"x[{index}] {store} v", names), captured(f"x[{index}] {store} v", names)
                if isinstance(ours.error, CaptureError):
                    continue
                assert (ours.error is None) == (expected.error is None), (own, given, store, ours, expected)
