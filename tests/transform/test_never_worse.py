"""Rewritten forms of drawn expressions are no less accurate than NumPy's text, whatever stands in them and whatever they are given."""

import numpy as np
import pytest

from tests.transform.never_worse import compared, texts

DRAWN = list(texts(400, 7))
"""The formulas as they stand, and as many with something else in their places."""


@pytest.mark.share(10)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("number", range(len(DRAWN)))
def test_forms_of_drawn_expressions_are_no_less_accurate(number, dtype):
    found = compared(*DRAWN[number], np.dtype(dtype), count=700, seed=number, most=25)
    assert (found.worse, found.lost) == ([], []), found.text
