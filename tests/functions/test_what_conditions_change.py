"""Conditions of comprehensions and ``filter`` that draw, count, store or print: each is asked once, in Python's order."""

# ruff: noqa: C417 (`map` is what is tested)

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError


class Asked:
    """What asks, and has been asked."""

    def __init__(self) -> None:
        self.n, self.values, self.store = 0, [], np.zeros(2)
        self.rng = np.random.default_rng(5)

    def counted(self, v):
        self.n += 1
        return v > 0

    def noted(self, v):
        self.values.append(v)
        return v > 0

    def stored(self, v):
        self.store[0] += 1
        return v > 0

    def drawn(self, v):
        return self.rng.random() < 0.6

    def moved(self, v):
        self.n += 1
        return v + self.n

    def noise(self, v):
        return v + self.rng.normal()

    @property
    def left(self):
        return self.n, self.values, self.store, self.rng.random()


def listed(x, a):
    return [v for v in x if a.drawn(v)], [v for v in x if a.counted(v)], [v for v in x if a.stored(v)]


def noted(x, a):
    return [v * 2 for v in x if a.noted(v)]


def summed(x, a):
    return sum(v for v in x if a.drawn(v)), max(v for v in x if a.counted(v)), len([v for v in x if a.stored(v)])


def several(x, a):
    return [v for v in x if a.counted(v) and a.counted(v - 1)], [v for v in x if v > 0 if a.drawn(v)]


def in_dictionary(x, a):
    d = {"n": 0}

    def ask(v):
        d["n"] += 1
        return v > 0

    return np.array([v for v in x if ask(v)]), d


def by_name(x, a):
    n = 0

    def ask(v):
        nonlocal n
        n += 1
        return v > 0

    return [v for v in x if ask(v)], n


def one_by_one(x, a):
    chosen, total = (v for v in x if a.counted(v)), 0
    for v in chosen:
        total += v * a.n
    return total


def filtered(x, a):
    return list(filter(a.drawn, map(a.noise, x))), list(filter(a.stored, x)), list(filter(a.counted, map(a.moved, x)))


def left_early(x, a):
    found = None
    for v in filter(a.counted, x):
        found = v
        if v > 1:
            break
    return found


def twice(x, a):
    return list(filter(a.counted, filter(a.drawn, x)))


def read_by_the_source(x, a):
    return list(filter(a.counted, map(lambda v: v + a.n, x)))


def printed(x, a):
    return list(filter(lambda v: print("asked", v) or v > 0, map(lambda v: print("made", v) or v * 2, x)))


def printed_by_one(x, a):
    return list(filter(lambda v: print("asked", v) or v > 0, map(lambda v: v * 2, x)))


PROGRAMS = [
    listed, noted, summed, several, in_dictionary, by_name, one_by_one, filtered, left_early, twice, read_by_the_source,
    printed, printed_by_one,
]  # fmt: skip
VALUES: dict[str, Any] = {"array": np.array([3.0, -1.0, 2.0, 0.5]), "list": [3.0, -1.0, 2.0, 0.5]}


def outcome(function: Any, values: Any) -> Any:
    asked, told = Asked(), io.StringIO()
    with contextlib.redirect_stdout(told), warnings.catch_warnings(action="ignore"):
        result = function(values.copy(), asked)
    return repr((result, asked.left)), told.getvalue()


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_calls(function, values):
    captured = tm.tensor(function)
    with tm.config.using(tier="numpy"):
        for _ in range(3):
            assert outcome(captured, VALUES[values]) == outcome(function, VALUES[values])


@pytest.mark.parametrize("function", [listed, in_dictionary, one_by_one, filtered], ids=lambda f: f.__name__)
def test_later_calls(function):
    captured = tm.tensor(function)
    for values in [*VALUES.values(), np.array([-1.0, -2.0]), np.array([4.0])]:
        assert outcome(captured, values) == outcome(function, values)


def of_counted(x):
    n = np.zeros(())

    def ask(v):
        n[()] += 1
        return v > 0

    return sum(v * v for v in x if ask(v)) * n


def of_made(x):
    return sum(v * v for v in filter(lambda v: v > 0.5, map(lambda v: v * v, x)))


def of_left(x):
    c = {"n": 0.0}

    def ask(v):
        c["n"] += v
        return v > 0

    return sum([v for v in x if ask(v)]) * c["n"]


@pytest.mark.parametrize("function", [of_counted, of_made, of_left], ids=lambda f: f.__name__)
@pytest.mark.parametrize("values", [np.array([3.0, -1.0, 2.0, 0.5]), [3.0, -1.0, 2.0, 0.5]], ids=["array", "list"])
def test_gradients(function, values):
    steps = np.eye(4) * 1e-6
    at = lambda x: function(list(x) if isinstance(values, list) else x)  # noqa: E731
    numeric = [(at(np.array(values) + s) - at(np.array(values) - s)) / 2e-6 for s in steps]
    assert np.allclose(tm.grad(function)(values), numeric, rtol=1e-6)
    assert np.isclose(tm.compile(function, values)(values), function(values))


def test_what_needs_the_graph_refuses_by_name():
    def drawing(x):
        rng = np.random.default_rng(0)
        return sum(filter(lambda v: v > rng.random(), map(lambda v: v + rng.normal(), x)))

    with pytest.raises(CaptureError, match=r"choosing among values .* draws or changes something"):
        tm.grad(drawing)(np.array([1.0, 2.0]))
