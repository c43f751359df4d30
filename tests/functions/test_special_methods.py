"""Constructors, properties and operators with data-dependent branches, in captured functions: values and slopes are Python's."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError


class Level:
    scale = 2.0

    def __init__(self, value):
        if value > 0:
            self.value, self.sign = value, 1.0
        else:
            self.value, self.sign = -value, -1.0

    @property
    def tax(self):
        rate = 0.1
        if self.value > 10:
            rate = 0.3
        return rate * self.value

    @functools.cached_property
    def capped(self):
        return self.value if self.value < 5 else 5.0

    @property
    def limited(self):
        return self.value

    @limited.setter
    def limited(self, value):
        while value > 100:
            value = value / 2
        self.value = value

    def __lt__(self, other):
        return self.value < other.value if self.sign == other.sign else self.sign < other.sign

    def __eq__(self, other):
        return self.value == other.value and self.sign == other.sign

    __hash__ = None

    def __add__(self, other):
        return Level(self.value * self.sign + (other.value if isinstance(other, Level) else other))

    def __neg__(self):
        return Level(-self.value * self.sign)

    def __abs__(self):
        return math.sqrt(self.value) if self.value > 1 else self.value

    def __contains__(self, value):
        return -self.value <= value <= self.value

    def __bool__(self):
        return self.value > 0.5

    def __getitem__(self, index):
        return self.value if index > 2 else self.value * index

    def __call__(self, value):
        return min(self.value, value) * self.scale

    def __float__(self):
        return float(self.value * self.sign)

    def __iter__(self):
        for k in range(3):
            yield self.value if k else self.sign

    def __enter__(self):
        if self.value > 7:
            self.value = 7.0
        return self

    def __exit__(self, *_):
        return False

    def __getattr__(self, name):
        if name == "half":
            return self.value / 2 if self.value > 2 else 0.0
        raise AttributeError(name)


@dataclass
class Span:
    low: float
    high: float

    def __post_init__(self):
        if self.low > self.high:
            self.low, self.high = self.high, self.low

    @property
    def width(self):
        return self.high - self.low


class Slots:
    __slots__ = ("first", "second")

    def __init__(self, value):
        if value > 1:
            self.first, self.second = value, 1.0
        else:
            self.first, self.second = 0.0, value * 3


def stored(value):
    level = Level(1.0)
    level.limited = value * 50
    return level.value


def inside(value):
    with Level(value) as level:
        return level.value * value


USES: dict[str, Any] = {
    "a constructor": lambda v: Level(v).value * Level(v).sign,
    "a property": lambda v: Level(v).tax,
    "a cached property": lambda v: Level(v).capped + Level(v).capped,
    "a setter": stored,
    "a comparison": lambda v: v if Level(v) < Level(3.0) else 2 * v,
    "equality": lambda v: 1.0 if Level(v) == Level(12.0) else v,
    "an operator": lambda v: (Level(v) + 1.0 + Level(2.0)).value,
    "a sign": lambda v: (-Level(v)).sign * v,
    "abs": lambda v: abs(Level(v)) + v,
    "in": lambda v: v if 3.0 in Level(v) else 0.0,
    "not in": lambda v: v if 3.0 not in Level(v) else 0.0,
    "a truth value": lambda v: v if Level(v) else 10.0,
    "bool": lambda v: 1.0 * v if bool(Level(v)) and bool(Level(v - 1)) else 2.0 * v,
    "not": lambda v: v if not Level(v) else -v,
    "an index": lambda v: Level(v)[v],
    "a call": lambda v: Level(v)(4.0),
    "float": lambda v: float(Level(v)) * v,
    "iterating": lambda v: sum(Level(v)),
    "with": inside,
    "an attribute that is asked for": lambda v: Level(v).half,
    "after a dataclass's constructor": lambda v: Span(v, 2.0).low + Span(v, 2.0).width * v,
    "slots": lambda v: Slots(v).first + 2 * Slots(v).second,
    "several of them": lambda v: sum(one.tax for one in [Level(v), Level(4.0), -Level(v)]),
}
VALUES = (3.5, -1.25, 0.25, 12.0, 250.0)


@pytest.mark.parametrize("name", USES)
def test_values_and_slopes_are_pythons(name):
    plain, function, slope = USES[name], tm.tensor(USES[name]), tm.grad(USES[name])
    for value in VALUES:
        if name == "several of them" and sys.version_info >= (
            3,
            12,
        ):  # whose sum of floats is more accurate (docs/limits.md)
            assert function(value) == pytest.approx(plain(value), rel=2**-52)
        else:
            assert function(value) == plain(value)
        step = 1e-6 * max(1.0, abs(value))
        expected = (plain(value + step) - plain(value - step)) / (2 * step)
        if not (name == "equality" and value == 12.0):
            np.testing.assert_allclose(slope(value), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", USES)
def test_classes_are_what_they_were(name):
    before = {n: v.__code__ for n, v in vars(Level).items() if hasattr(v, "__code__")}
    tm.tensor(USES[name])(3.0)
    with pytest.raises(ZeroDivisionError):
        tm.tensor(lambda v: USES[name](v) * (1 // 0))(3)
    assert {n: v.__code__ for n, v in vars(Level).items() if hasattr(v, "__code__")} == before
    assert vars(Level)["tax"].fget.__code__.co_filename == __file__


def test_one_of_two_objects_is_refused_with_a_way_out():
    with pytest.raises(CaptureError, match="an object of Level and an object of Level") as told:
        tm.tensor(lambda v: (Level(v) if v > 2 else Level(3.0)).value).graph(1.0)
    assert "make it a dataclass" in str(told.value)
    span = tm.tensor(lambda v: (Span(v, 2.0) if v > 2 else Span(3.0, v)).width)
    assert [span(5.0), span(1.0)] == [3.0, 2.0]


def test_a_changed_operator_is_followed(monkeypatch):
    function = tm.tensor(lambda v: (Level(v) + 1.0).value)
    assert function(2.0) == 3.0
    monkeypatch.setattr(Level, "__add__", lambda self, other: Level(self.value * 10 if self.value > 1 else other))
    assert [function(2.0), function(0.5)] == [20.0, 1.0]


def test_an_object_of_the_users_is_followed():
    level = Level(3.0)
    function = tm.tensor(lambda v: level.tax * v if level < Level(v) else v)
    assert [function(5.0), function(2.0)] == [level.tax * 5.0, 2.0]
    level.value = 20.0
    assert [function(50.0), function(2.0)] == [level.tax * 50.0, 2.0]


BRANCHES: dict[str, Any] = {
    "both": ("d['a'] = v", "d['a'] = -v"),
    "both, several": ("d['a'] = v\n        d['b'] = 1.0", "d['a'] = 2.0\n        d['b'] = v * v"),
    "one of them changed before": ("d['k'] = v\n        d['a'] = v", "d['a'] = 1.0"),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_both_branches_may_add_the_same_items(name):
    then, otherwise = BRANCHES[name]
    text = f"def f(v):\n    d = {{'k': 0.5}}\n    if v > 0:\n        {then}\n    else:\n        {otherwise}\n    return d, len(d)"
    plain = _function(text)
    function = tm.tensor(plain)
    for value in (2.0, -3.0, 0.0):
        assert function(value) == plain(value)
        assert list(function(value)[0]) == list(plain(value)[0])


@pytest.mark.parametrize("branches", [("d['a'] = v", "pass"), ("d['a'] = d['b'] = v", "d['b'] = d['a'] = v")])
def test_items_that_data_decide_are_refused(branches):
    text = (
        f"def f(v):\n    d = {{}}\n    if v > 0:\n        {branches[0]}\n    else:\n        {branches[1]}\n    return d"
    )
    with pytest.raises(CaptureError, match="a dict grows or shrinks"):
        tm.tensor(_function(text)).graph(1.0)


def _function(text: str) -> Any:
    import linecache

    name = f"<special {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    exec(compile(text, name, "exec"), space)
    return space["f"]


HANDED: dict[str, Any] = {
    "float": lambda x: list(map(float, x)),
    "abs": lambda x: list(map(abs, x)),
    "a function of math": lambda x: list(map(math.exp, x)),
    "max of several": lambda x: list(map(max, x, x[::-1])),
    "starmap": lambda x: list(itertools.starmap(min, zip(x, x[::-1], strict=True))),
    "reduce": lambda x: functools.reduce(max, x),
    "reduce from a number": lambda x: functools.reduce(min, x, 0.25),
    "reduce by an operator": lambda x: functools.reduce(operator.mul, x),
    "accumulate": lambda x: list(itertools.accumulate(x, max)),
    "sorted by a function of math": lambda x: sorted(x, key=math.cos),
    "max by abs": lambda x: max(x, key=abs),
    "a partial function": lambda x: list(map(functools.partial(max, 0.5), x)),
    "round": lambda x: list(map(round, x)),
    "int": lambda x: list(map(int, x)),
}


@pytest.mark.parametrize("name", HANDED)
def test_functions_of_pythons_are_handed_on(name):
    plain, function = HANDED[name], tm.tensor(HANDED[name])
    for given in ([1.5, -2.0, 0.75], [0.5, 0.25, 3.0], [1, -3, 2], np.array([2.0, -1.0, 0.5])):
        found, expected = function(given), plain(given)
        np.testing.assert_array_equal(found, expected)
        parts = zip(*((v if isinstance(v, list) else [v]) for v in (found, expected)), strict=True)
        assert all(type(a) is type(b) for a, b in parts)


class Stack(list):
    @property
    def top(self):
        return self[-1] if self[-1] > 0 else 0.0


def test_containers_of_the_users_are_looked_into():
    stacks = Stack([Level(3.0)])
    function = tm.tensor(lambda v: Stack([1.0, v]).top + stacks[0].tax)
    assert [function(2.0), function(-2.0)] == [2.0 + stacks[0].tax, stacks[0].tax]


class _Marked(str):
    __slots__ = ()


class _Told:
    def __str__(self):
        return _Marked("told")

    def __repr__(self):
        return _Marked("shown")


def test_a_text_of_one_piece_is_what_its_class_makes_of_it():
    def texts(x):
        told = _Told()
        return (
            f"{told}",
            f"{told!s}",
            f"{told} ",
            str(told),
            repr(told),
            f"{_Marked('a')}",
            "{}".format(told),  # noqa: UP032
            "%s" % told,  # noqa: UP031
            x,
        )

    for x in (1.0, np.ones(2)):
        expected, found = texts(x), tm.tensor(texts)(x)
        assert [(type(v), v) for v in found[:-1]] == [(type(v), v) for v in expected[:-1]]
