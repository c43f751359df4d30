"""Attributes that a refused capture has given an object, or taken from it, by its `__dict__`."""

import warnings

import numpy as np
import pytest

import tensormagic as tm


class Box:
    """Holds a number, a text and a list."""

    def __init__(self):
        self.z, self.name, self.items = 1.0, "a", [1.0]


def by_update(o, x):
    o.__dict__.update(u=x)
    return x * 2


def by_union(o, x):
    o.__dict__ |= {"u": x, "v": x + 1}
    return x * 2


def by_key(o, x):
    vars(o)["u"] = x
    return x * 2


def by_deleting(o, x):
    del o.z
    o.w = x
    return x * 2


def by_popping(o, x):
    z = o.__dict__.pop("z")
    o.__dict__["later"] = x
    return x * z


def by_another(o, x):
    o.__dict__ = {"only": x, "z": 5.0}
    return x * o.z


def in_a_branch(o, x):
    if x > 0:
        o.__dict__.update(u=x)
    return x * 2


PROGRAMS = [by_update, by_union, by_key, by_deleting, by_popping, by_another, in_a_branch]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    "ask",
    [
        lambda f, o: tm.compile(f, o, 1.0),
        lambda f, o: tm.vmap(f, (None, 0))(o, np.ones(3)),
    ],
)
def test_what_a_refused_capture_did_is_taken_back(program, ask):
    o = Box()
    before, items = dict(vars(o)), o.items
    with pytest.raises(tm.CaptureError):
        ask(program, o)
    assert vars(o) == before
    assert o.items is items


@pytest.mark.parametrize("program", PROGRAMS[:-1])
def test_derivatives_leave_what_python_leaves(program):
    o, own = Box(), Box()
    tm.grad(program, 1)(o, 1.0)
    program(own, 1.0)
    assert {n: v for n, v in vars(o).items() if n != "items"} == {n: v for n, v in vars(own).items() if n != "items"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_functions_leave_what_python_leaves(program):
    captured = tm.tensor(program)
    with warnings.catch_warnings(action="ignore", category=tm.PlainRunWarning):
        for x in (1.0, 2.0, 3, np.float64(4.0)):
            o, own = Box(), Box()
            assert captured(o, x) == program(own, x)
            assert list(vars(o).items()) == list(vars(own).items())
