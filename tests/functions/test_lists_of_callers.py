"""Lists that a caller has, and that change places in a function: what is stored into them is there after the call."""

from __future__ import annotations

import copy
import warnings

import pytest

import tensormagic as tm


def swapped(p, q):
    if p[0] > q[0]:
        p, q = q, p
    p[0] += 2.0


def swapped_and_grown(p, q):
    if p[0] > q[0]:
        p, q = q, p
    q[0] = p[0] * 3
    p.append(1.0)


def swapped_in_a_loop(p, q):
    for i in range(2):
        p, q = q, p
        p[0] += p[0] * i


def one_of_two(p, q):
    c = p if p[0] > q[0] else q
    c[0] += 2.0


def another_name(p, q):
    if p[0] > q[0]:
        p = q
    p[0] += 2.0


def by_a_key(p, q):
    if p["k"] > q["k"]:
        p, q = q, p
    p["k"] += 2.0


def by_min(p, q):
    pair = [p, q]
    for _ in range(2):
        least = min(pair, key=lambda v: v[0])
        least[0] += 1.5


def by_sort(p, q):
    pair = [p, q]
    pair.sort()
    pair[0][0] += 1.5


def by_max(p, q):
    max([p, q]).append(1.0)


def left_at_the_first(p, q):
    for v in (p, q, [9.0]):
        if v[0] > 1.5:
            v[0] = 0.0
            break


def left_by_a_return(p, q):
    for v in [p, q]:
        if v[0] > 1.5:
            v.append(0.5)
            return


CHANGE_PLACES = [swapped, swapped_and_grown, swapped_in_a_loop, one_of_two, another_name, by_a_key]
ORDERED = [by_min, by_sort, by_max]
LEFT = [left_at_the_first, left_by_a_return]


@pytest.mark.parametrize("program", [*CHANGE_PLACES, *ORDERED, *LEFT], ids=lambda f: f.__name__)
@pytest.mark.parametrize("start", [3.0, 1.0])
def test_stores_reach_the_caller(program, start):
    captured = tm.tensor(program)
    for _ in range(3):
        given = ({"k": start}, {"k": 2.0}) if program is by_a_key else ([start], [2.0])
        expected = copy.deepcopy(given)
        program(*expected)
        with warnings.catch_warnings(action="ignore"):
            captured(*given)
        assert given == expected
