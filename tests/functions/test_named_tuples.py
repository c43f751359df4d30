"""Tuples with names: functions that are given some, or make some, change what else they are given, and are captured once."""

from __future__ import annotations

import math
import warnings
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest

import tensormagic as tm

Plain = namedtuple("Plain", "x y")  # noqa: PYI024 (both ways to make one are tested)


class Point(NamedTuple):
    x: Any
    y: Any = 2.0

    def norm(self):
        return math.hypot(self.x, self.y)

    @property
    def both(self):
        return self.x + self.y


def appended(p, log):
    log.append(p.x * p.y)
    return len(log)


def moved(p, log):
    log[:] = [p]
    return p._replace(x=p.x + 1), [*p], p._asdict()


def unpacked(p, log):
    x, y = p
    log.append(x)
    return type(p)(y, x) if x > y else p


def failing(p, log):
    log.append(p.y)
    if p.x > 0:
        raise ValueError(f"x is {p.x}")


def in_a_loop(p, log):
    for _ in range(3):
        p = Point(p.y, p.x + p.y)
        log.append(p.x)
    return p.both if isinstance(p, Point) else p


def sorted_ones(p, log):
    points = [Point(1, 2), Point(p.x, 4.0), Point(-1, 0)]
    log.extend(sorted(q.x for q in points))
    return sorted(points, key=Point.norm)[0], max(points, key=lambda q: q.norm())  # noqa: FURB192


PROGRAMS = [appended, moved, unpacked, failing, in_a_loop, sorted_ones]


def outcome(function: Any, made: Any) -> Any:
    p, log = made(), [0.0]
    try:
        result: Any = function(p, log)
    except ValueError as error:
        result = str(error)
    return repr(result), repr(log), repr(p)


@pytest.mark.parametrize("tier", ["numpy", "auto"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_calls(function, tier):
    captured = tm.tensor(function)
    with tm.config.using(tier=tier), warnings.catch_warnings(action="ignore", category=tm.PlainRunWarning):
        warnings.simplefilter("error", tm.RecaptureWarning)
        for made in (lambda: Point(3.0), lambda: Plain(1.0, 2.0), lambda: Point(-1.0, 5.0)):
            for _ in range(3):
                assert outcome(captured, made) == outcome(function, made)


def test_methods_that_change():
    class Own(NamedTuple):
        x: float

        def told(self):
            return self.x * 2

    captured = tm.tensor(lambda p: p.told() + 1)
    assert [captured(Own(1.0)) for _ in range(2)] == [3.0, 3.0]
    Own.told = lambda self: self.x * 10
    assert [captured(Own(1.0)) for _ in range(2)] == [11.0, 11.0]


def test_gradients():
    slope = tm.grad(lambda p: p.x**2 * p.y.sum() + Point(p.x, 3.0).both)
    for _ in range(2):
        found = slope(Plain(2.0, np.array([1.0, 2.0])))
        assert isinstance(found, Plain)
        assert found.x == 13.0
        assert list(found.y) == [4.0, 4.0]
