"""The cases of what goes along a sequence, for tests/ops/cases.py: running extremes, places among sorted elements, convolution, checks."""

import numpy as np

from tensormagic.ir.node import make
from tensormagic.ops import convolution, fold
from tensormagic.ops.effects import checks, raising, telling
from tensormagic.ops.indices import sorting
from tensormagic.ops.scalars import scalar
from tests.ops.cases import ALL, case

REAL = "?bhilBHILfd"

for _shape, _axis in [((5,), 0), ((3, 4), 0), ((2, 3, 4), 1)]:
    for _name, _ufunc in {"cummax": np.maximum, "cummin": np.minimum}.items():
        case(
            _name,
            lambda x, name=_name, axis=_axis: fold.row(getattr(fold, name.upper()), x, (axis,)),
            lambda x, ufunc=_ufunc, axis=_axis: ufunc.accumulate(x, axis),
            _shape,
            label=f"{_shape}-{_axis}",
            dtypes=REAL,
        )
case(
    "cummax",
    lambda x: fold.row(fold.CUMMAX, x, (0,)),
    np.maximum.accumulate,
    np.array([1.0, np.nan, 3.0]),
    label="nan",
    derivative=False,
)

for _side in ("left", "right"):
    for _shape in [(), (4,), (2, 3)]:
        case(
            "searchsorted",
            lambda rows, x, side=_side: sorting.searchsorted(rows, x, side),
            lambda rows, x, side=_side: np.searchsorted(rows, x, side),
            (5,),
            _shape,
            label=f"{_side}-{_shape}",
            prepare=lambda rows, x: (np.sort(rows), x),
            derivative=False,
            dtypes=REAL,
        )

for _sizes in [((5,), (3,)), ((2,), (4,)), ((1,), (1,))]:
    case("convolve", convolution.convolve, np.convolve, *_sizes, tags=frozenset({"rounds"}), dtypes=ALL)


def _checked(x):
    if (x <= -9).any():
        raise ValueError
    return x


case("require", lambda x: checks.in_range(x, -9, 10**6, "out of range"), _checked, (3,), dtypes="d")
case(
    "require",
    lambda x: checks.in_range(x, -8, 10**6, "out of range"),
    _checked,
    np.array([-9.0]),
    label="fails",
    derivative=False,
    dtypes="d",
)
case("fixed", lambda x, y: make(checks.FIXED, (x, y)), lambda x, _y: x, (3,), (2,), derivative=False, dtypes="d")
case(
    "check",
    lambda x: raising.check(x, scalar.greater(x, -9), ValueError, [("value", "low")]),
    _checked,
    (3,),
    dtypes="d",
)
case("after", lambda x: raising.after(scalar.greater(x, 0), x * 2), lambda x: x * 2, (3,), dtypes="d")
case("tell", lambda x: telling.tell(x, [("value", "said")], end=""), lambda x: x, (3,), dtypes="d")
