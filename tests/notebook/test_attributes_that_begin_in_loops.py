"""Loops whose first iteration gives an object an attribute, or a dictionary a key: that one stands alone, the others are one loop."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import tensormagic as tm

TIMES = np.linspace(0.0, 1.0, 60)


class Tank:
    """Has no ``flow`` before its first step."""

    def __init__(self, level):
        self.level = level
        self.parts = {}

    def step(self, t):
        self.flow = 0.5 * np.sqrt(self.level) + t
        self.level = self.level - 0.01 * self.flow


class Filter:
    """Holds an object of a library's that holds arrays."""

    def __init__(self):
        self.system = scipy.signal.lti([1.0, 2.0], [3.0, 1.0]).to_ss()
        self.state = np.zeros((1, 1))

    def step(self, t):
        self.output = (self.system.C.dot(self.state) + self.system.D.dot(t))[0, 0]
        self.state = self.state + 0.01 * (self.system.A.dot(self.state) + self.system.B.dot(t))


def attribute(tank):
    for t in TIMES:
        tank.step(t)
    return tank.flow + tank.level


def several(tank):
    found = []
    for t in TIMES:
        tank.step(t)
        tank.seen = tank.flow * 2
        found.append(tank.seen)
    return np.array(found)


def key(tank):
    for t in TIMES:
        tank.parts["last"] = tank.level * t
        tank.level = tank.level * 0.99 + tank.parts["last"]
    return tank.level


def nested(tank):
    for t in TIMES:
        for k in range(12):
            tank.flow = tank.level * t + k
            tank.level = tank.level - 0.001 * tank.flow
    return tank.level


def counted_loop(tank):
    k = 0
    while k < 60:
        tank.step(0.01 * k)
        k += 1
    return tank.level


def new_each_time(tank):
    for k in range(12):
        tank.parts[k] = tank.level * k
        tank.level = tank.level * 0.9
    return tank.parts[11]


LOOPS = [attribute, several, key, nested, counted_loop, new_each_time]


@pytest.mark.parametrize("loop", LOOPS)
def test_values_and_objects_are_those_of_python(loop):
    captured = tm.tensor(loop)
    for level in (1.0, 4.0, np.float32(2), 4.0):
        plain, given = Tank(level), Tank(level)
        for _ in range(2):  # the second call finds what the first one has left
            wanted, found = loop(plain), captured(given)
            np.testing.assert_allclose(found, wanted, rtol=1e-6 if isinstance(level, np.float32) else 1e-13)
            assert type(found) is type(wanted)
            assert list(vars(given)) == list(vars(plain))
            assert list(given.parts) == list(plain.parts)
            assert [type(v) for v in vars(given).values()] == [type(v) for v in vars(plain).values()]


@pytest.mark.parametrize("loop", [attribute, several, key])
def test_the_others_are_one_loop(loop, monkeypatch):
    def length(count):
        monkeypatch.setitem(globals(), "TIMES", np.linspace(0.0, 1.0, count))
        return len(list(tm.trace(lambda level: loop(Tank(level)), 4.0).nodes))

    assert length(60) == length(300)


def test_arrays_that_an_object_of_a_library_holds_are_read_in_a_loop(notebook):
    notebook["Filter"] = Filter
    notebook.ok("f = Filter()\nts = np.linspace(0.0, 1.0, 60)")
    notebook.ok("%%tensor\nfor t in ts:\n    f.step(t)\nout = f.output * np.ones(2)")
    plain = Filter()
    for t in TIMES:
        plain.step(t)
    np.testing.assert_allclose(notebook["out"], plain.output * np.ones(2), rtol=1e-13)
    np.testing.assert_allclose(notebook["f"].state, plain.state, rtol=1e-13)
    assert len(notebook["out"].graph.nodes) < 100
