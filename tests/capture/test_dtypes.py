"""Promotion as NumPy 2 has it (NEP 50), for every pair of dtypes and every form of number, in captured code."""

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.inputs.door import check_dtype
from tests.capture.harness import check

DTYPES = [np.dtype(c) for c in "?bhilBHILfdFD"]
NUMBERS = [
    True,
    2,
    -3,
    300,
    70000,
    2**40,
    1.5,
    1e300,
    2j,
    np.int8(2),
    np.uint8(200),
    np.int64(-5),
    np.float32(0.5),
    np.float64(1.5),
    np.complex64(1j),
    np.bool_(True),
]
BINARY = (
    "x + y; x - y; x * y; x / y; x // y; x % y; x == y; x < y; np.maximum(x, y); "
    "np.where(x == y, x, y); np.arctan2(x, y); x & y; x << y; np.logaddexp(x, y)"
)


def sample(dtype: np.dtype) -> np.ndarray:
    values = [0, 1, 2, 3, 100, 5] if dtype.kind in "bu" else [0, -1, 2, -3, 100, 5]
    return np.array(values).astype(dtype)


def each(text: str) -> list[str]:
    return [t.strip() for t in text.split(";")]


@pytest.mark.parametrize("left", DTYPES, ids=str)
def test_pairs_of_arrays(left: np.dtype):
    for right, source in itertools.product(DTYPES, each(BINARY)):
        check(source, x=sample(left), y=sample(right)[::-1].copy())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arrays_and_numbers(dtype: np.dtype):
    for number, source in itertools.product(
        NUMBERS,
        each(
            "x + y; y - x; x * y; x / y; x // y; y % x; x == y; x < y; np.maximum(x, y); np.where(x > 0, x, y); x ** y"
        ),
    ):
        check(source, 1e-6 if "**" in source else 0.0, x=sample(dtype)[1:4], y=number)


@pytest.mark.parametrize(
    "source",
    each(
        "x + y; x - y; x * y; x / y; x // y; x % y; x == y; x < y; np.add(x, y); np.maximum(x, y); "
        "np.array(x) + y; x + np.array([y, y]); np.array([x, y])"
    ),
)
def test_pairs_of_numbers(source: str):
    for left, right in itertools.product(NUMBERS, NUMBERS):
        if type(left) is complex and type(right) is np.float64:
            continue  # complex.__add__ takes the scalar for the float that it inherits from, and gives a complex
        check(source, x=left, y=right)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_literals(dtype: np.dtype):
    for source in each(
        "x + 1; x * 2.5; x - 300; 70000 - x; x + 1j; x + True; x / 2; x // 2; 2 ** x; x ** 2; -x; "
        "abs(x); ~x; x + np.float32(1); x + np.int8(1); x + np.pi; x.sum() + 1; x[0] + 1; x[0] * 2.5; "
        "x[0] + 300; x[0] + x; x == 300; x < 1e300"
    ):
        check(source, 1e-6 if "**" in source else 0.0, x=sample(dtype)[1:4])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reductions(dtype: np.dtype):
    for source in each(
        "x.sum(); x.prod(); x.mean(); x.max(); x.min(); x.argmax(); x.any(); x.all(); x.cumsum(); "
        "x.cumprod(); x.var(); x.std(); x.sum(dtype=float); np.ptp(x); np.count_nonzero(x); "
        "np.median(x); np.sort(x); np.argsort(x); x.dot(x); x @ x; np.diff(x); np.linalg.norm(x); "
        "np.average(x)"
    ):
        if dtype.kind == "c" and ("median" in source or "dtype" in source):
            continue  # refused; NumPy warns
        check(source, 1e-6, x=sample(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_casts(dtype: np.dtype):
    for other in DTYPES:
        if dtype.kind == "c" and other.kind != "c":
            continue  # NumPy warns: the imaginary part is lost
        x = np.abs(sample(dtype)).astype(dtype)
        check(
            f"x.astype('{other.char}'); np.array(x, dtype='{other.char}'); y = np.zeros(6, '{other.char}'); y[:] = x",
            x=x,
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_in_place(dtype: np.dtype):
    for other, operator in itertools.product(DTYPES, ["+=", "*=", "-=", "/=", "//=", "&=", "**="]):
        check(
            f"y = x.copy()\ny {operator} z",
            1e-6 if operator == "**=" else 0.0,
            x=sample(dtype)[1:4],
            z=np.abs(sample(other)[1:4]).astype(other),
        )
    for number, operator in itertools.product([2, 2.5, 300, True, 1j], ["+=", "*=", "/=", "//="]):
        check(f"y = x.copy()\ny {operator} {number!r}", x=sample(dtype)[1:4])


@pytest.mark.parametrize(
    "source",
    [
        "x + 2**63",
        "x + 2**64",
        "x - 2**70",
        "x * 10**30",
        "np.int8(5) + 200",
        "x.astype(np.int8) + 128",
        "x == 2**70",
        "x < 2**64",
    ],
)
def test_integers_that_do_not_fit(source: str):
    check(source, x=np.arange(3))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([1, None], object), "x is an object array"),
        (np.zeros(3, np.longdouble), "x has dtype"),
        (np.zeros(3, ">f8"), "x has byte-swapped dtype"),
        (np.zeros(3, [("a", float)]), "x is a structured array"),
        (np.ma.masked_array([1.0, 2.0]), "x is a MaskedArray"),
    ],
)
def test_arrays_that_no_graph_holds(value: np.ndarray, message: str):
    """In a cell they stay NumPy's own; a function refuses them by name."""
    from tests.capture.harness import captured

    ran = captured("y = x", {"x": value})
    assert ran.error is None
    assert (type(ran.names["y"]), ran.names["y"].dtype) == (type(value), value.dtype)
    with pytest.raises(TypeError, match=message):
        tm.tensor(lambda x: x).graph(value)


class float8:  # noqa: N801 (as the dtype of another library is called)
    """What NumPy knows of a number that another library has made a dtype of."""


def test_dtypes_of_other_libraries():
    stands = SimpleNamespace(kind="V", type=float8)
    with pytest.raises(TypeError, match=r"x has dtype .* of tests; captured code") as caught:
        check_dtype(stands, "x")  # type: ignore[arg-type]
    assert ".astype(np.float32)" in str(caught.value)


def test_narrower_floats():
    library = pytest.importorskip("ml_dtypes")
    x = np.arange(4).astype(library.float8_e5m2)
    wanted = "has dtype float8_e5m2 of ml_dtypes; captured code computes with NumPy's own dtypes, and bfloat16"
    for call in (tm.tensor(lambda x: x + 1), tm.grad(lambda x: (x * x).sum()), lambda x: tm.tensor(x) + 1):
        with pytest.raises(TypeError, match=wanted):
            call(x)
    with pytest.raises(TypeError, match=wanted):
        tm.tensor(lambda y: y.astype(library.float8_e5m2))(np.ones(3))


def test_a_dtype_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(TypeError, match="of the package ml_dtypes, which is not installed") as caught:
        tm.compile(lambda x: x * 2, "bfloat16[n]")
    assert "pip install ml_dtypes" in str(caught.value)


@pytest.mark.parametrize("text", ["bfloat8[n]", "float128[n, 3]", "int7[4]", "complex32[]"])
def test_types_that_are_none(text: str):
    for makes in (tm.trace, tm.compile):
        with pytest.raises(TypeError, match=rf"{text.partition('[')[0]} is no dtype that captured code has"):
            makes(lambda x: x * 2, text)


@pytest.mark.parametrize(
    "source", ["y = np.array([(1, 2.0)], dtype=[('a', int), ('b', float)])", "y = np.array([x[0], None])"]
)
def test_such_arrays_are_made_by_numpy(source: str):
    from tests.capture.harness import captured, plain

    names = {"x": np.arange(3)}
    found, expected = captured(source, names).names["y"], plain(source, names).names["y"]
    assert (type(found), found.dtype) == (np.ndarray, expected.dtype)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    "source",
    [
        "y = x.astype('M8[D]')",
        "y = np.arange('2020-01', '2020-04', dtype='M8[M]')",
        "y = np.arange(np.datetime64('2020-01'), np.datetime64('2020-04'))",
        "y = days[x[1] :] - days[0]",
        "y = texts[x > 0]",
    ],
)
def test_texts_and_dates_are_numpys_own(source: str):
    """A cell computes with them as NumPy does, on values; a function has none, and refuses them."""
    from tests.capture.harness import captured, plain

    names = {
        "x": np.arange(3),
        "days": np.arange("2020-01-01", "2020-01-04", dtype="M8[D]"),
        "texts": np.array(list("abc")),
    }
    found, expected = captured(source, names).names["y"], plain(source, names).names["y"]
    assert (type(found), found.dtype) == (np.ndarray, expected.dtype)
    assert np.array_equal(found, expected)
    with pytest.raises(TypeError, match="is an array of"):
        tm.tensor(lambda v: v)(expected)
