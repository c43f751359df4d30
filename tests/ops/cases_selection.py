"""The cases of what data selects, for tests/ops/cases.py: positions, places where a mask is true, different values."""

import numpy as np

from tensormagic.ir.node import make
from tensormagic.ir.size import atom
from tensormagic.ops.indices import position, selection
from tests.ops.cases import case


def _counted(x, extent):
    wrong = (x < -extent) | (x >= extent)
    if wrong.any():
        raise IndexError
    return np.where(x < 0, x + extent, x).astype(np.int64)


for _indices in (np.array([0, 2, -1, -3]), np.array([3]), np.array([-4]), np.array([], np.int64), np.array(1)):
    case(
        "position",
        lambda i: make(position.POSITION, (i,), extent=3, number=0),
        lambda i: _counted(i, 3),
        _indices,
        label=str(_indices.tolist()),
        derivative=False,
        dtypes="d",
    )


def places(mask):
    """The op itself, also where the mask is known."""
    return make(selection.PLACES, (mask,), length=atom(selection.count_true(mask)))


for _mask in (np.array([True, False, True]), np.array([False]), np.array([True]), np.zeros(0, bool)):
    case("places", places, np.flatnonzero, _mask, label=str(_mask.tolist()), derivative=False, dtypes="d")

for _values in (np.array([2.0, 1.0, 2.0]), np.array([np.nan, 0.0, np.nan, -0.0]), np.zeros(0), np.array([3, 3])):
    _label = str(_values.tolist())
    case(
        "count_unique",
        lambda x: make(selection.DISTINCT, (x,), equal_nan=True),
        lambda x: np.int64(np.unique(x).size),
        _values,
        label=_label,
        derivative=False,
        dtypes="d",
    )
    case(
        "unique",
        lambda x: selection.unique(x),
        lambda x: np.unique(x, True, True, True)[1:],
        _values,
        label=_label,
        derivative=False,
        dtypes="d",
    )
