"""Logarithms of 1 less a quotient or a root, of each base and negated, keep their digits where that is small, and near 1."""

import numpy as np
import pytest

import tensormagic as tm
from tests.transform.kept_digits import lost, lost_by_arrays, lost_by_numbers, lost_compiled, number

PARTS = (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9)
POINTS = [(x, x * p) for x in (0.5, 2.0, 10.0) for p in PARTS]
TEXTS = {
    "natural": "np.log(1 - y / x)",
    "negated": "np.log(-(y / x - 1))",
    "to 2": "np.log2(1 - y / x)",
    "to 10": "np.log10(1 - y / x)",
    "to 10, negated": "np.log10(-(y / x - 1))",
    "with a factor": "x * np.log10(1 - y / x)",
    "of a root": "np.log2(1 - np.sqrt(y / x))",
    "of a root, negated": "np.log(-(np.sqrt(y / x) - 1))",
}
each = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


@each
def test_arrays(text):
    assert max(lost_by_arrays(text, POINTS)) < 2
    assert max(lost_compiled(text, POINTS)) < 3


@pytest.mark.parametrize("form", [float, np.float64, np.array])
@each
def test_numbers(text, form):
    assert max(lost_by_numbers(form, text, POINTS)) < 2


@each
def test_ends_are_numpys(text):
    ends = np.array([0.0, 1.0, 2.0, -1.0, np.inf, -np.inf, np.nan])
    x, y = np.meshgrid(ends, ends)
    with np.errstate(all="ignore"):
        expected = number(text, 2)(x, y)
    np.testing.assert_allclose(np.asarray(tm.tensor(number(text, 2))(x, y)), expected, rtol=1e-14)


def test_loops_and_branches():
    x, y = np.array(POINTS).T

    @tm.tensor
    def f(x, y, times):
        total = x * 0
        for _ in range(times):
            total = total + np.log2(1 - y / x)
        return total if times > 1 else -total

    assert max(lost("3 * np.log2(1 - y / x)", POINTS, f(x, y, 3))) < 2.5
