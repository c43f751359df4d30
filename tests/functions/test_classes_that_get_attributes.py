"""What an object lacks when a function is captured, and its class, or a base of that, gets later: the next call knows it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def has(x, o):
    return x + (10 if hasattr(o, "late") else 0)


def gets(x, o):
    return x + getattr(o, "late", 2.0)


def tries(x, o):
    try:
        return x + o.late
    except AttributeError:
        return x - 1


def calls(x, o):
    return x + (1 if callable(o) else 0)


def is_true(x, o):
    return x + (1 if o else 5)


def is_equal(x, o):
    return x + (1 if o == 3 else 5)


def of_the_class(x, o):
    return x + hasattr(type(o), "late")


def names(x, o):
    return x + sum(1 for name in dir(o) if name == "late")


def in_a_method(x, o):
    return o.told(x)


LATE: list[tuple[str, Any]] = [
    ("late", 7.0),
    ("late", lambda self: 3.0),
    ("__call__", lambda self: 1),
    ("__bool__", lambda self: False),
    ("__len__", lambda self: 0),
    ("__eq__", lambda self, other: True),
]


def made() -> SimpleNamespace:
    class Base:
        def told(self, x):
            return x + (self.late if hasattr(self, "late") and not callable(self.late) else 1)

    class Middle(Base):
        pass

    class Own(Middle):
        pass

    return SimpleNamespace(base=Base, middle=Middle, own=Own, one=Own())


def outcome(function: Any, *values: Any) -> Any:
    try:
        return repr(function(*values))
    except TypeError:
        return "TypeError"


@pytest.mark.parametrize("where", ["base", "middle", "own"])
@pytest.mark.parametrize(
    "function", [has, gets, tries, calls, is_true, is_equal, of_the_class, names, in_a_method], ids=lambda f: f.__name__
)
def test_an_argument(function, where):
    captured = tm.tensor(function)
    for name, value in LATE:
        there, beside = made(), made()
        for x in (2.0, np.array([1.0, 2.0])):
            for step in range(3):
                assert outcome(captured, x, there.one) == outcome(function, x, beside.one), (name, step)
                if step == 0:
                    setattr(getattr(there, where), name, value)
                    setattr(getattr(beside, where), name, value)
                if step == 1:
                    delattr(getattr(there, where), name)
                    delattr(getattr(beside, where), name)


THERE = made()


def of_a_name(x):
    return x * (THERE.one.scale() if hasattr(THERE.one, "scale") else 1.0)


def test_a_method_that_is_added_to_the_class_of_a_global_object():
    captured, slope, batch = tm.tensor(of_a_name), tm.grad(of_a_name), tm.vmap(of_a_name)
    assert (captured(2.0), slope(2.0), list(batch(np.ones(2)))) == (2.0, 1.0, [1.0, 1.0])
    THERE.base.scale = lambda self: 3.0
    assert (captured(2.0), slope(2.0), list(batch(np.ones(2)))) == (6.0, 3.0, [3.0, 3.0])
    THERE.own.scale = lambda self: 4.0
    assert (captured(2.0), slope(2.0), list(batch(np.ones(2)))) == (8.0, 4.0, [4.0, 4.0])
    del THERE.base.scale, THERE.own.scale
    assert (captured(2.0), slope(2.0), list(batch(np.ones(2)))) == (2.0, 1.0, [1.0, 1.0])
