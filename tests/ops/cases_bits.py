"""The cases of ops on bits, for tests/ops/cases.py."""

import numpy as np

from tensormagic.ir.node import make
from tensormagic.ops import bits
from tensormagic.ops.indices import sorting
from tests.ops.cases import case

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
case("frexp", lambda x: bits.frexp(x)[0], lambda x: np.frexp(x)[0], (3, 4), dtypes="fd", derivative=False)
case(
    "ldexp",
    lambda x: bits.ldexp(x, bits.frexp(x)[1]),
    lambda x: np.ldexp(x, np.frexp(x)[1]),
    (3, 4),
    dtypes="fd",
    derivative=False,
)
case(
    "row_order",
    lambda x: make(sorting.ROW_ORDER, (x,)),
    lambda x: np.lexsort(x.T[::-1]),
    (5, 2),
    dtypes="bhilBHILfd",
    derivative=False,
)
