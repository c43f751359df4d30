"""The cases of ops on bits, for tests/ops/cases.py."""

import numpy as np

from tensormagic.ir.node import make
from tensormagic.ops import bits
from tensormagic.ops.indices import sorting
from tests.ops.cases import case


def _between(x):
    """Numbers away from powers of two, where a fraction jumps: differences do not cross one."""
    fraction, exponent = np.frexp(x)
    return (np.ldexp(np.copysign(0.45 + 0.4 * np.abs(fraction), x), exponent % 4).astype(x.dtype),)


for _shape, _axis in [((9,), 0), ((3, 4), 1)]:
    case(
        "packbits",
        lambda x, axis=_axis: bits.packbits(x, axis, "big"),
        lambda x, axis=_axis: np.packbits(x, axis),
        _shape,
        label=f"{_shape}",
        dtypes="?bhilBHIL",
        derivative=False,
    )
    case(
        "unpackbits",
        lambda x, axis=_axis: bits.unpackbits(x, axis, "little"),
        lambda x, axis=_axis: np.unpackbits(x, axis, bitorder="little"),
        _shape,
        label=f"{_shape}",
        dtypes="B",
        derivative=False,
    )
for _other in "lL":
    case(
        "reinterpret",
        lambda x, other=_other: bits.reinterpret(x, np.dtype(other)),
        lambda x, other=_other: x.view(other),
        (3, 4),
        label=_other,
        dtypes="d",
        derivative=False,
    )
case(
    "frexp",
    lambda x: bits.frexp(x)[0],
    lambda x: np.frexp(x)[0],
    (3, 4),
    prepare=_between,
    dtypes="fd",
)
case(
    "ldexp",
    lambda x: bits.ldexp(x, bits.frexp(x)[1]),
    lambda x: np.ldexp(x, np.frexp(x)[1]),
    (3, 4),
    prepare=_between,
    dtypes="fd",
)
case(
    "row_order",
    lambda x: make(sorting.ROW_ORDER, (x,)),
    lambda x: np.lexsort(x.T[::-1]),
    (5, 2),
    dtypes="bhilBHILfd",
    derivative=False,
)
