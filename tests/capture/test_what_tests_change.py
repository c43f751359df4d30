"""Cells whose ``while`` changes something by its test: as often as in Python."""

import numpy as np
import pytest

from tests.capture.harness import check

CELLS = [
    "rng = np.random.default_rng(3)\nn = 0\nwhile rng.random() > x[0]:\n    n += 1\nr = rng.random()",
    "np.random.seed(1)\nn = 0\nwhile np.random.rand() > x[0]:\n    n += 1\nr = np.random.rand()",
    "y = x.copy()\nn = 0\ndef halved():\n    y[:] = y * 0.5\n    return y.max()\nwhile halved() > 0.01:\n    n += 1",
    "n = 0\ndef far(v):\n    print('asked')\n    return v.max() > 0.01\nz = x * 1\nwhile far(z):\n    z = z * 0.5\n    n += 1",
]


@pytest.mark.parametrize("cell", CELLS)
def test_tests_are_asked_as_often_as_in_python(cell):
    check(cell, x=np.array([0.1, 0.2, 0.3]))
