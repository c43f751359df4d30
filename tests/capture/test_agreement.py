"""Data-dependent sizes that have to be equal: who is told one without the values meets the error, and no wrong number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import cell, check
from tests.programs.growing import compiled

TOLD = (
    "len(v + w)",
    "(v + w).shape[0] * 2",
    "(v * w).size",
    "np.zeros_like(v + w)",
    "np.ones_like(np.maximum(v, w))",
    "np.full_like(v + w, 3)",
    "np.zeros((v + w).shape)",
    "np.full_like(x[k[k > 1], k[k > 0]], 2)",
    "len(np.sqrt(v + w)[::-1])",
)
STORED = (
    "r.fill(2)",
    "r[...] = 2",
    "r[:] = 2",
    "r[...] = y[0]",
    "r.fill(2)\n    r = r + 1",
    "r[...] = 2\n    r = len(r)",
)
PROGRAMS = (*(f"r = {told}" for told in TOLD), *(f"r = v + w\n    {line}" for line in STORED))


@pytest.mark.parametrize("lines", PROGRAMS)
def test_who_is_told_a_size_waits_for_the_check(lines: str, tier: str):
    """One element is not stretched, and no size is taken for another one, also where nobody reads the values."""
    source = f"def f(x, y, z, k):\n    v = y[k[k > 0]]\n    w = z[k[k > 1]]\n    {lines}\n    return r\n"
    space: dict[str, Any] = {"np": np}
    exec(compiled(source, f"sizes {hash(lines)}"), space)
    plain, ours = space["f"], tm.tensor(space["f"])
    x, y = np.arange(16.0).reshape(4, 4), np.arange(4.0)
    for k in ([2, 3], [0, 0], [3, 2, -1]):  # as many of one as of the other
        np.testing.assert_array_equal(ours(x, y, y + 1, np.array(k)), plain(x, y, y + 1, np.array(k)), strict=True)
    for k in ([1, 2, 1], [1, 1, 2, 2]):  # one beside several, which Python runs, and two beside four
        try:
            expected = plain(x, y, y + 1, np.array(k))
        except (ValueError, IndexError):
            with pytest.raises(
                (CaptureError, ValueError, IndexError), match=r"not broadcast|do not fit|broadcast together"
            ):
                ours(x, y, y + 1, np.array(k))
        else:
            np.testing.assert_array_equal(ours(x, y, y + 1, np.array(k)), expected, strict=True)
            with pytest.raises(
                (CaptureError, ValueError, IndexError), match=r"not broadcast|do not fit|broadcast together"
            ):
                tm.compile(plain, x, y, y + 1, np.array([2, 3])).run(x, y, y + 1, np.array(k))


def test_iterations_over_what_does_not_fit():
    """A loop over an array is told its length, too."""
    source = "v = y[y > 2]\nw = y[y > 1]\nn = 0\nfor _ in v + w:\n    n = n + 1"
    check(source, y=np.array([0.0, 3.0, 4.0]))
    with pytest.raises((CaptureError, ValueError), match="not broadcast"):
        cell(source, {"np": np, "y": np.array([0.0, 2.0, 3.0])}).outputs["n"].numpy()


def test_a_size_that_fits_anyway_is_itself():
    """No check is made where the sizes are one: the graph of a length is as small as it was."""
    found = cell("v = y[y > 1]\nw = v * 2 + v\nn = len(w)\nm = len(v)", {"np": np, "y": np.arange(4.0)}).outputs
    assert found["n"] == found["m"] == 2


def triangle(x, y, count):
    out = np.zeros((4, 4))
    for i in range(count):
        out[i:4, i] = x[i:4] + y[i:]
    return out


def test_parts_that_differ_by_sizes_of_arrays_alone_are_stored_as_they_are():
    x, y = np.arange(4.0), np.arange(4.0) * 2
    assert not tm.compile(triangle, x, y, 4).graph.ops & {"gather", "require"}
    captured = tm.tensor(triangle)
    for sizes in ((4, 4, 4), (6, 4, 3), (5, 5, 2), (2, 4, 3), (4, 2, 2), (3, 3, 2), (4, 4, 0), (4, 5, 0), (6, 4, 4)):
        given = np.arange(sizes[0] * 1.0), np.arange(sizes[1]) * 2.0, sizes[2]
        try:
            expected = triangle(*given)
        except ValueError:
            with pytest.raises(ValueError, match="could not"):
                captured(*given)
        else:
            for _ in range(2):
                np.testing.assert_array_equal(captured(*given), expected)
