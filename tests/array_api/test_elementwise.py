"""Element-wise functions: every data type, broadcasting, Python numbers, and the special values of the standard's tables."""

import itertools
import math

import numpy as np
import pytest

import tensormagic.numpy as xp
from tests.array_api.oracle import DTYPES, SHAPES, agree, data, values

ONE = str.split(
    """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log
    log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh
    trunc
    """
)
TWO = str.split(
    """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
    floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum
    minimum multiply nextafter not_equal pow remainder subtract
    """
)
NAN, INF, PI = math.nan, math.inf, math.pi
SPECIAL = [
    NAN,
    INF,
    -INF,
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    3.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -1.5,
    1e308,
    -1e308,
    5e-324,
    PI,
    710.0,
    -745.0,
]
PARTS = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5, 710.0]


def second(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A second operand: shifts are by less than the width."""
    found = data(shape, dtype, 1)
    return found % found.dtype.type(7) if "shift" in name and dtype.kind in "iu" else found


@pytest.mark.parametrize("name", ONE)
def test_one_operand_of_every_type_and_shape(name: str):
    for dtype, shape in itertools.product(DTYPES, SHAPES):
        agree(name, data(shape, dtype))


@pytest.mark.parametrize("name", TWO)
def test_two_operands_of_every_type_and_shape(name: str):
    for dtype in DTYPES:
        for left, right in [((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 0)), ((2,), (3,))]:
            agree(name, data(left, dtype), second(name, right, dtype))


@pytest.mark.parametrize("name", TWO)
def test_two_operands_of_two_types(name: str):
    for one, other in itertools.permutations(DTYPES, 2):
        agree(name, data((2,), one), second(name, (2,), other))


@pytest.mark.parametrize("name", TWO)
def test_python_numbers_take_the_type_of_the_array(name: str):
    for dtype in DTYPES:
        number = {"b": True, "i": 2, "u": 2, "f": 1.5, "c": 1.5}[dtype.kind]
        agree(name, data((3,), dtype), number)
        agree(name, number, second(name, (3,), dtype))


@pytest.mark.parametrize("name", [n for n in ONE if "bitwise" not in n])
def test_special_values(name: str):
    for dtype in ("float32", "float64"):
        agree(name, np.array(SPECIAL).astype(dtype))
    agree(name, np.array([complex(x, y) for x in PARTS for y in PARTS]))


@pytest.mark.parametrize("name", [n for n in TWO if "bitwise" not in n])
def test_pairs_of_special_values(name: str):
    for dtype in ("float32", "float64"):
        left, right = (v.ravel() for v in np.meshgrid(*[np.array(SPECIAL).astype(dtype)] * 2))
        agree(name, left, right)


# Rows of the standard's own tables, which do not ask NumPy.
ROWS = [
    ("abs", (-0.0,), 0.0), ("abs", (-INF,), INF), ("acos", (1.0,), 0.0), ("acos", (1.5,), NAN), ("acosh", (0.5,), NAN),
    ("acosh", (INF,), INF), ("asin", (-0.0,), -0.0), ("asin", (2.0,), NAN), ("asinh", (-INF,), -INF), ("atan", (INF,), PI / 2),
    ("atanh", (1.0,), INF), ("atanh", (-1.0,), -INF), ("atanh", (2.0,), NAN), ("ceil", (-0.5,), -0.0), ("cos", (INF,), NAN),
    ("cos", (0.0,), 1.0), ("cosh", (-INF,), INF), ("exp", (-INF,), 0.0), ("exp", (INF,), INF), ("expm1", (-INF,), -1.0),
    ("expm1", (-0.0,), -0.0), ("floor", (-0.0,), -0.0), ("log", (-1.0,), NAN), ("log", (-0.0,), -INF), ("log", (1.0,), 0.0),
    ("log1p", (-1.0,), -INF), ("log1p", (-2.0,), NAN), ("log2", (1.0,), 0.0), ("log10", (0.0,), -INF), ("round", (0.5,), 0.0),
    ("round", (1.5,), 2.0), ("round", (2.5,), 2.0), ("round", (-0.5,), -0.0), ("sign", (-0.0,), 0.0), ("sign", (NAN,), NAN),
    ("sin", (-0.0,), -0.0), ("sin", (INF,), NAN), ("sinh", (-INF,), -INF), ("sqrt", (-0.0,), -0.0), ("sqrt", (-1.0,), NAN),
    ("tan", (INF,), NAN), ("tanh", (INF,), 1.0), ("trunc", (-0.5,), -0.0), ("reciprocal", (-0.0,), -INF),
    ("add", (INF, -INF), NAN), ("add", (-0.0, -0.0), -0.0), ("add", (-0.0, 0.0), 0.0), ("add", (1.0, -1.0), 0.0),
    ("atan2", (0.0, -0.0), PI), ("atan2", (-0.0, -0.0), -PI), ("atan2", (INF, -INF), 3 * PI / 4), ("atan2", (1.0, 0.0), PI / 2),
    ("divide", (INF, INF), NAN), ("divide", (0.0, 0.0), NAN), ("divide", (-1.0, 0.0), -INF), ("divide", (1.0, -INF), -0.0),
    ("floor_divide", (0.0, 0.0), NAN), ("floor_divide", (1.0, INF), 0.0), ("floor_divide", (-1.0, INF), -1.0),
    ("hypot", (INF, NAN), INF), ("hypot", (NAN, 1.0), NAN), ("logaddexp", (NAN, 1.0), NAN), ("maximum", (NAN, 1.0), NAN),
    ("minimum", (1.0, NAN), NAN), ("multiply", (INF, 0.0), NAN), ("multiply", (-INF, 2.0), -INF), ("multiply", (0.0, -1.0), -0.0),
    ("nextafter", (NAN, 1.0), NAN), ("pow", (NAN, 0.0), 1.0), ("pow", (1.0, NAN), 1.0), ("pow", (-1.0, INF), 1.0),
    ("pow", (0.5, -INF), INF), ("pow", (-INF, 3.0), -INF), ("pow", (-0.0, -1.0), -INF), ("pow", (-0.0, 3.0), -0.0),
    ("pow", (-2.0, 0.5), NAN), ("remainder", (1.0, 0.0), NAN), ("remainder", (INF, 1.0), NAN), ("remainder", (1.0, INF), 1.0),
    ("remainder", (-1.0, INF), INF), ("remainder", (-0.0, 1.0), 0.0), ("subtract", (INF, INF), NAN),
    ("copysign", (1.0, -0.0), -1.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "operands", "want"), ROWS, ids=lambda v: str(v).replace(" ", ""))
def test_rows_of_the_standard(name: str, operands: tuple[float, ...], want: float):
    got = float(values(getattr(xp, name)(*(xp.asarray([x]) for x in operands)))[0])
    assert math.isnan(got) if math.isnan(want) else got == pytest.approx(want, rel=1e-15, abs=0)
    assert math.isnan(want) or math.copysign(1, got) == math.copysign(1, want)


def test_clip_between_numbers_arrays_and_nothing():
    for dtype in (d for d in DTYPES if d.kind in "iuf"):
        for shape in SHAPES:
            x = data(shape, dtype)
            agree("clip", x, 1, 50)
            agree("clip", x, min=x, max=x)
            agree("clip", x, max=3)
            agree("clip", x)
