# ruff: noqa: PERF401 (loops that append are what is tested)
"""Elements of lists whose length data decide, or that long loops fill: which are one object, and what else they are, is Python's."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tests.functions.stored_after import runs_in_python, same_after_stores

MANY = 300
CALLS = [lambda v=v: (np.array(v),) for v in ([1.0, 2.0, -1.0], [-1.0, 2.0, 3.0], [1.0, 1.0, 1.0])]


def asked_whether_they_are_one(x):
    found, s = [], x * 2
    for _ in range(MANY):
        found.append(s)
    return found[0] is s, found[0] is found[-1]


def two_that_are_one(x):
    found, s = [], x * 2
    for _ in range(MANY):
        found.append(s)
    return found[0], found[5], len(found)


def the_argument(x):
    found = []
    for v in x:
        if v > 0:
            found.append(x)
    return found


def parts_of_the_argument(x):
    found = []
    for v in x:
        if v > 0:
            found.append(x[:2])
    return found


def rows_of_it(x):
    a, found = np.outer(x, x), []
    for k in range(len(x)):
        if x[k] > 0:
            found.append(a[k])
    return found, a


def in_tuples(x):
    found, s = [], x * 2
    for v in x:
        if v > 0:
            found.append((s, v))
    return found


def in_dictionaries(x):
    found = []
    for v in x:
        if v > 0:
            found.append({"p": x * v, "q": x})
    return found


def of_a_comprehension(x):
    return [x for v in x if v > 0]


def the_last_one_has_a_name(x):
    w = x * 1.0
    path = [w]
    while np.abs(w).max() > 0.5 and len(path) < 9:
        w = w - 0.5 * w
        path.append(w)
    return w, path


def before_it_changes(x):
    w, path = x, []
    while np.abs(w).max() > 0.5 and len(path) < 9:
        path.append(w)
        w = w - 0.5 * w
    return path


def in_two_lists(x):
    a, b = [], []
    for v in x:
        t = x * v
        if v > 0:
            a.append(t)
            b.append(t)
    return a, b


def once_for_each_of_an_inner_loop(x):
    found = []
    for v in x:
        t = x * v
        for u in x:
            if u > 0:
                found.append(t)
    return found


def a_part_of_the_list(x):
    found = []
    for v in x:
        if v > 0:
            found.append(x * v)
    return found[1:], found


def the_list_twice(x):
    found = []
    for v in x:
        if v > 0:
            found.append(v)
    return {"a": found, "b": [found, 1]}


def elements_of_another_list(x):
    found = []
    for v in x:
        if v > 0:
            found.append(x * v)
    return [a for a in found], found[::-1]  # noqa: C416 (each is appended)


def is_the_last_one(x):
    w, path = x * 1, []
    while np.abs(w).max() > 0.5 and len(path) < 9:
        w = w * 0.5
        path.append(w)
    return path[-1] is w, w


SHARED = [
    asked_whether_they_are_one,
    two_that_are_one,
    the_argument,
    parts_of_the_argument,
    rows_of_it,
    in_tuples,
    in_dictionaries,
    of_a_comprehension,
    the_last_one_has_a_name,
    before_it_changes,
    in_two_lists,
    once_for_each_of_an_inner_loop,
    a_part_of_the_list,
    the_list_twice,
    elements_of_another_list,
    is_the_last_one,
]


def new_ones(x):
    found = []
    for v in x:
        if v > 0:
            found.append(x * v)
    return found


def copies(x):
    w, path = x.copy(), [x.copy()]
    while np.abs(w).max() > 0.5 and len(path) < 9:
        w = w - 0.5 * w
        path.append(w.copy())
    return w, path


def numbers(x):
    w, losses = x * 1, []
    while np.abs(w).max() > 0.5 and len(losses) < 9:
        w = w - 0.5 * w
        losses.append(w.sum())
    return w, losses


def two_lists(x):
    a, b = [], []
    for v in x:
        if v > 0:
            a.append(x * v)
            b.append(x + v)
    return a, b


def one_element(x):
    found = []
    for v in x:
        if v > 0:
            found.append(x * v)
    return found[-1], len(found)


def of_an_inner_loop(x):
    found = []
    for v in x:
        for u in x:
            t = x * v
            if u > 0:
                found.append(t)
    return found


def as_an_array(x):
    w, path = x * 1, []
    while np.abs(w).max() > 0.5 and len(path) < 9:
        w = w * 0.5
        path.append(w)
    return np.array(path), w


def computed_of_them(x):
    found = []
    for v in x:
        if v > 0:
            found.append(x * v)
    return [a + 1 for a in found], sum(found)


OWN = [new_ones, copies, numbers, two_lists, one_element, of_an_inner_loop, as_an_array, computed_of_them]


@pytest.mark.parametrize("program", [*SHARED, *OWN])
def test_stores_of_the_caller_are_seen_where_python_shows_them(program):
    same_after_stores(program, *CALLS)


@pytest.mark.parametrize("program", OWN)
def test_the_graph_gives_arrays_that_the_list_alone_has(program):
    assert not runs_in_python(program, CALLS[0]())


def test_derivatives_concern_values():
    x = np.array([1.0, 2.0, -1.0])
    np.testing.assert_allclose(tm.grad(lambda x: sum(the_argument(x)).sum())(x), [2.0, 2.0, 2.0])
    found = tm.compile(in_two_lists, "float64[3]")(x)
    np.testing.assert_allclose(found[1][1], x * 2)
