"""Strides and flags in functions: those of the arguments that a trace is for, another for others; Python's where not known."""

import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, PlainRunWarning

READS = {
    "strides": lambda x: x.sum() * x.strides[0],
    "strides of a result": lambda x: (x * 2).strides[0] * x,
    "strides of a view": lambda x: x.T.strides[0] * x,
    "contiguous": lambda x: x.sum() if x.flags.c_contiguous else -x.sum(),
    "by its letter": lambda x: x * x.flags["F"],
    "writeable": lambda x: x * x.flags.writeable,
    "own data": lambda x: x * x.flags.owndata,
    "in a loop": lambda x: sum((x[k] * x.strides[0] for k in range(len(x))), 0.0),
}


REFUSED = {"writeable", "own data"}  # which arrays of one layout differ in, too


@pytest.mark.parametrize("name", READS)
def test_what_memory_decides_is_of_the_call_or_pythons(name):
    f = tm.tensor(READS[name])
    for _ in range(2):
        for x in (np.ones((2, 3)), np.asfortranarray(np.ones((4, 5))), np.ones((4, 10))[:, ::2]):
            if name in REFUSED or (name == "strides of a result" and x.flags.f_contiguous):
                with pytest.raises(CaptureError, match="the memory layout of an array"):
                    f.graph(x)
            with warnings.catch_warnings(action="ignore", category=PlainRunWarning):
                assert np.array_equal(f(x), READS[name](x))


def test_arrays_that_are_not_lazy_have_their_own():
    held = np.ones((3, 4), order="F")
    outside = held.strides[0], held.flags.f_contiguous
    assert tm.tensor(lambda x: x * outside[0] if outside[1] else x)(2.0) == 16.0
    x = tm.tensor(np.ones((2, 3)))
    assert (x * 2).strides == (24, 8)
    assert (x * 2).T.flags.f_contiguous
