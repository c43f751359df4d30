"""NumPy's number types called on captured values stay in the graph; exact numbers of Python's are made of values."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import check

KINDS = [
    np.dtype(c).type for c in sorted("?bhilBHILfdFD")
]  # other packages have types of their own, with these letters
VALUES = {
    "array": np.array([0.0, 1.5, 100.25]),
    "integers": np.array([[0, 1], [100, 7]]),
    "truth": np.array([True, False]),
    "number": np.float32(3.75),
    "no axes": np.array(5.5),
    "complex": np.array([1.0, 0.0]) + 0j,
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", VALUES)
def test_of_arrays_and_numbers(kind, name):
    value = VALUES[name]
    if np.iscomplexobj(value) and np.dtype(kind).kind not in "cb":
        return  # NumPy warns that the imaginary part is lost: tests/capture/test_dtypes.py
    f = tm.tensor(lambda x: kind(x))
    ours, numpys = f(value), kind(value)
    assert type(ours) is type(numpys)
    np.testing.assert_array_equal(ours, numpys, strict=True)


CELLS = [
    "r = np.float64(x.sum()) * 2",
    "r = np.int64(x.sum())",
    "r = np.float32(x[1]) + np.float32(x[0])",
    "r = np.int64([x[0], x[1], 3])",
    "r = np.bool_(x.sum())",
    "r = np.complex128(x.sum()) * 1j",
    "r = x.dtype.type(x.max())",
    "r = np.uint8(np.int64(x.sum() * 100))",
    "r = np.float64(3), np.int64('7'), np.float64()",
    "r = np.int8(float(x.max()))",
    "r = [np.int64(v) for v in x]",
    "r = np.float64(x.mean())\nif r > 0:\n    r = np.float32(r)\nelse:\n    r = np.float32(-r)",
]


@pytest.mark.parametrize("source", CELLS)
def test_programs(source):
    for sign in (1, -1):
        check(source, x=np.array([0.5, 1.25, 2.75]) * sign)


@pytest.mark.parametrize(
    ("convert", "given", "error"),
    [
        (lambda x: np.int8(int(x.sum())), 300.0, OverflowError),
        (lambda x: np.uint8(int(x.sum())), -1.0, OverflowError),
        (lambda x: np.uint64(int(x.sum())), -1.0, OverflowError),
        (lambda x: np.int64(float(x.sum())), np.nan, ValueError),
        (lambda x: np.int32(float(x.sum())), np.inf, OverflowError),
    ],
)
def test_python_numbers_that_do_not_fit(convert, given, error):
    with pytest.raises(error):
        convert(np.array([given]))
    with pytest.raises(error):
        tm.tensor(convert)(np.array([given]))
    assert tm.tensor(convert)(np.array([7.0])) == convert(np.array([7.0]))


def test_gradients_pass():
    assert tm.grad(lambda x: np.float64((x**2).sum()))(np.ones(2)).tolist() == [2.0, 2.0]
    assert tm.grad(lambda x: np.float32(x) * 3.0)(2.0) == 3.0


def test_where_a_loop_waits_for_data():
    def count(x):
        total = np.int64(0)
        while np.float64(x.sum()) > 1:
            x = x / 2
            total = np.int64(total + 1)
        return total

    assert tm.tensor(count)(np.array([100.0])) == count(np.array([100.0])) == 7


@pytest.mark.parametrize("exact", [Decimal, Fraction])
def test_exact_numbers_are_made_of_values(exact):
    check(f"r = str({exact.__name__}(x.sum()))", x=np.array([0.5, 0.25]), **{exact.__name__: exact})
    with pytest.raises(CaptureError, match=f"{exact.__name__}\\(\\) needs a value"):
        tm.tensor(lambda x: exact(x.sum())).graph(np.ones(2))


@pytest.mark.parametrize("kind", [np.float64, np.int32, np.bool_, np.complex128], ids=lambda t: t.__name__)
def test_a_lazy_scalar_has_the_methods_of_numpys_alone(kind):
    lazy = tm.tensor(np.ones(3).astype(kind))[1]
    names = [name for name in dir(np.ndarray) if not name.startswith("_") and callable(getattr(np.ndarray, name))]
    assert [n for n in names if hasattr(lazy, n)] == [n for n in names if hasattr(kind(1), n)]
