"""Two results of equal expressions are two arrays, whatever is checked between them."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm


def sorted_between(x):
    return np.sin(x), sorted(x), np.sin(x)


def checked_between(x):
    first = np.sin(x)
    if x[0] > 5:
        raise ValueError(f"{x[0]} is large")
    return first, np.sin(x)


def alone(x):
    return np.sin(x), np.sin(x)


@pytest.mark.parametrize("program", [sorted_between, checked_between, alone], ids=lambda f: f.__name__)
def test_results_of_equal_expressions_share_no_memory(program, tier):
    captured = tm.tensor(program)
    x = np.arange(4.0)
    for _ in range(2):
        first, *_, last = captured(x)
        assert not np.shares_memory(first, last)
        np.testing.assert_array_equal(first, last)
