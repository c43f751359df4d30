"""Functions and items that data choose: the one that is chosen runs, and what it changes is changed."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import tensormagic as tm


def functions(x, y):
    out = []
    f = (lambda: out.append(1.0)) if x > 0 else (lambda: out.append(2.0))
    f()
    return out


def methods(x, y):
    a, b = [], []
    f = a.append if x > 0 else b.append
    f(1.0)
    return a, b


def counters(x, y):
    n = 0

    def more():
        nonlocal n
        n += 1

    def less():
        nonlocal n
        n -= 1

    for v in y:
        step = more if v > 0 else less
        step()
    return n


def functions_of_a_dictionary(x, y):
    state = {"n": 0.0}

    def up():
        state["n"] += 1

    def down():
        state["n"] -= 2

    acts = {"pos": up, "neg": down}
    acts["pos" if x > 0 else "neg"]()
    return state


def items(x, y):
    found = {"a": [1.0], "b": [2.0]}
    found["a" if x > 0 else "b"].append(x)
    return found


def items_of_items(x, y):
    groups = {"pos": {"n": 0}, "neg": {"n": 0}}
    for v in y:
        groups["pos" if v > 0 else "neg"]["n"] += 1
    return groups


def numbers(x, y):
    rates = {"a": 1.5, "b": 2.5}
    return rates["a" if x > 0 else "b"] * x


PROGRAMS = [functions, methods, counters, functions_of_a_dictionary, items, items_of_items, numbers]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_what_is_chosen_is_done_and_nothing_else(program):
    captured = tm.tensor(program)
    for x in (2.0, -1.5, 3.0):
        y = np.array([x, -x, 2 * x])
        with warnings.catch_warnings(action="ignore"):
            assert captured(x, copy.copy(y)) == program(x, y)


def test_a_number_by_a_key_that_data_choose_stays_in_the_graph():
    assert tm.tensor(numbers).graph(2.0, np.ones(3)) is not None
    assert float(tm.grad(numbers)(2.0, np.ones(3))) == 1.5
