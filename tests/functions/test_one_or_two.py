"""Which arguments of a function are one object: what ``is`` says of them, and what ``copy.deepcopy`` makes of them, call by call."""

import copy
import random
from types import SimpleNamespace

import numpy as np
import pytest

import tensormagic as tm

HELD = np.ones(2)


def one(a, b):
    return a is b, a is not b, a[:] is b, a is a[:], (a + b).sum()


def held(a, containers):
    first, second = containers
    return a is HELD, first is second, first["x"] is a, first["x"] is second["x"]


def copied(tree, k):
    made = copy.deepcopy(tree)
    made["p"]["x"] += k
    made["q"]["l"].append(k)
    return made, made["p"] is made["q"], made["p"]["l"] is made["q"]["l"], made["p"]["x"] is made["q"]["x"]


def pair(rng):
    arrays = [np.zeros(2), np.zeros(2)]
    lists = [[1.0], [1.0]]
    dicts = [{"x": rng.choice(arrays), "l": rng.choice(lists)} for _ in range(2)]
    return {"p": rng.choice(dicts), "q": rng.choice(dicts)}


def same(one, other):
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def test_is_between_arguments_is_asked_at_every_call():
    captured = tm.tensor(one)
    x, y = np.ones(2), np.ones(2)
    for a, b in [(x, x), (x, y), (y, y), (x, x[:]), (y, x), (x, x)]:
        assert captured(a, b) == one(a, b)


def test_two_views_of_the_same_memory_are_not_told_apart():
    x = np.ones(2)
    with pytest.raises(tm.CaptureError, match="arguments of a function"):
        tm.tensor(one).graph(x, x[:])


def test_is_between_arguments_and_what_is_read():
    captured = tm.tensor(held)
    x, c, d = np.ones(2), {"x": HELD}, {"x": HELD}
    calls = [(x, [c, c]), (HELD, [c, d]), (HELD, [c, c]), (x, [d, {"x": x}]), (x, [{"x": x}, {"x": x}])]
    for a, containers in calls * 2:
        assert captured(a, containers) == held(a, containers)


@pytest.mark.parametrize("seed", range(30))
def test_deepcopy_keeps_what_is_held_twice(seed):
    captured, rng = tm.tensor(copied), random.Random(seed)
    for call in range(4):
        tree = pair(rng)
        mine, theirs = copy.deepcopy(tree), copy.deepcopy(tree)
        assert same(captured(mine, float(call)), copied(theirs, float(call)))
        assert same(mine, theirs)


def test_deepcopy_of_objects_beside_arguments():
    def function(box, given, k):
        mine, theirs = copy.deepcopy((box, given))
        theirs["l"].append(k)
        mine.w += k
        return mine.l, theirs["l"], mine.l is theirs["l"], mine.w is theirs["w"], theirs["w"]

    captured = tm.tensor(function)
    for shared in (True, False, True):
        w, l = np.zeros(2), [1.0]
        box = SimpleNamespace(w=w, l=l)
        given = {"w": w if shared else w.copy(), "l": l if shared else [1.0]}
        assert same(captured(box, given, 2.0), function(box, given, 2.0))
