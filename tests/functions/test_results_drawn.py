# ruff: noqa: SIM108 (as users write it)
"""Results that data decide are the arrays that Python gives: a caller who stores into them finds what it would. By hand, and drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.functions.results_drawn import program
from tests.functions.stored_after import runs_in_python, same_after_stores

A = np.arange(9.0).reshape(3, 3) - 2
B = np.arange(9.0)[::-1].reshape(3, 3) / 2 + 1
SCORES = [np.array(v) for v in ([1.0, 3.0, -2.0], [-4.0, -1.0, 2.5], [0.5, 0.25, -1.0])]
CALLS = [lambda s=s: (A.copy(), s.copy()) for s in SCORES]


def of_a_loop_and_of_data(a, s):
    b = a - 1
    r = b[0]
    for i in range(3):
        r = b[:, i]
        s[0] = 1.0
    return b[np.argmax(s)], r


def of_a_branch_and_fixed(a, s):
    b = a * 2
    r = b[0] if s[0] > 0 else b[1]
    return r, b[1]


def a_row_or_a_column(a, s):
    b = a * 2
    if s[0] > 0:
        r = b[:, 0]
    else:
        r = b[0]
    return [r, b[:2]]


def both_of_a_branch(a, s):
    b = a * 2
    if s[0] > 0:
        r, q = b[0], b[1]
    else:
        r, q = b[1], b[0]
    return r, q


def both_of_a_loop(a, s):
    b = a * 2
    r, q = b[0], b[1]
    for v in s:
        if v > 0:
            r = b[2]
        else:
            q = b[2]
    return {"r": r, "q": q}


def with_the_whole(a, s):
    b = a * 2
    r = b[0]
    for v in s:
        if v > 0:
            r = b[2]
    return r, b


def of_another_array(a, s):
    b, c = a * 2, a + 3
    r = b[0] if s[0] > 0 else c[1]
    return r, c[1], a


def two_of_one_of_several(a, s):
    c = a.copy()
    b = a if s[0] > s[1] else c
    return b[np.argmax(s)], b[:, 1], c


PARTS = [
    two_of_one_of_several,
    of_a_loop_and_of_data,
    of_a_branch_and_fixed,
    a_row_or_a_column,
    both_of_a_branch,
    both_of_a_loop,
    with_the_whole,
    of_another_array,
]


def of_two_arrays(a, s):
    b, c = a * 2, a + 3
    r = b[0] if s[0] > 0 else b[1]
    return r, c[1], a


def alone(a, s):
    b = a * 2
    return b[0] if s[0] > 0 else b[1]


def exchanged(a, s):
    u, v = a * 1, a * 2
    for k in range(len(s)):
        if s[k] > 0:
            u, v = v, u
        u[0] += 1
    return u, v


OWN = [of_two_arrays, alone, exchanged]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [*PARTS, *OWN])
def test_parts_of_a_computed_array_share_what_they_share_in_python(function):
    same_after_stores(function, *CALLS)


@pytest.mark.parametrize("function", OWN)
def test_the_graph_gives_what_shares_nothing(function):
    assert not runs_in_python(function, CALLS[0]())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(80))
def test_drawn_programs(seed: int, tmp_path: Path):
    text = program(seed)
    (tmp_path / "drawn.py").write_text(text)
    space = {"np": np}
    exec(compile(text, str(tmp_path / "drawn.py"), "exec"), space)
    same_after_stores(space["f"], *(lambda s=s: (A.copy(), B.copy(), s.copy()) for s in SCORES))
