"""Stores into what is one of several arrays, by data-dependent choice: each is as in NumPy, for the arguments too, or refused by name."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tests.programs.growing import Program
from tests.programs.joined import ends, joined
from tests.programs.storing import storing


def after_a_loop_in_a_branch(x, s):
    if s > 0:
        pass
    else:
        for i in range(2):
            x[i] += 1.0
            if s > 9:
                x = np.tanh(x)
    x[::-1][1:] = 0.0
    return x.sum()


def after_loops_in_both_branches(x, s):
    if s > 0:
        for i in range(2):
            x[i] += 1.0
            if s > 3:
                x = np.tanh(x)
    else:
        for i in range(2):
            x[i] -= 1.0
            if s > 9:
                x = np.tanh(x)
            if s < -3:
                x = x * 2
    x[1:] = 0.0
    return x.sum()


@pytest.mark.parametrize("f", [after_a_loop_in_a_branch, after_loops_in_both_branches])
def test_what_branches_within_a_branch_may_leave_is_stored_into_the_argument(f: Any):
    captured = tm.tensor(f)
    for s in (1.0, -1.0, 5.0, -5.0):
        ours, numpys = np.arange(1.0, 5.0), np.arange(1.0, 5.0)
        assert captured(ours, s) == f(numpys, s), s
        assert np.array_equal(ours, numpys), s


@pytest.mark.parametrize(
    ("draw", "first", "count", "least"),
    [(joined, 0, 32, 0.7), (joined, 32, 32, 0.7), (storing, 0, 10, 0.3), (storing, 10, 10, 0.3)],
)
def test_stores_behind_joins(
    draw: Callable[[int], Program], first: int, count: int, least: float, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tm.config, "math", "exact")
    monkeypatch.setattr(tm.config, "tier", "numpy")
    ended: Counter[str] = Counter()
    for seed in range(first, first + count):
        ended += ends(draw(seed), 2)
    assert ended["same"] > least * ended.total(), ended
