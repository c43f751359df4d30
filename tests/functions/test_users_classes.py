"""Classes of the user's in captured functions: they are called as the user calls them, and have attributes of any name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

X = np.array([3.0, 1.0])
NAMES = (
    "lazy", "stacks", "node", "type", "place", "graph", "dtype", "shape", "T", "numpy", "values", "buffer", "size", "op", "args",
    "items", "keys", "copy", "grad", "value", "code", "data", "columns", "index", "whole", "rest", "parts", "level", "real", "item",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_attribute_has_any_name(name: str):
    class Holder:
        def __init__(self, v: Any) -> None:
            setattr(self, name, v)

    def f(o: Any, x: Any) -> Any:
        made = Holder(x[0] * 2), Holder("text"), Holder(x * 1), Holder([x[0], 2])
        return getattr(o, name) * x, made

    captured = tm.tensor(f)
    for _ in range(2):
        want, got = f(Holder(1.5), X), captured(Holder(1.5), X)
        np.testing.assert_array_equal(got[0], want[0])
        for a, b in zip(want[1], got[1], strict=True):
            assert type(b) is Holder
            assert repr(getattr(a, name)) == repr(getattr(b, name))


def test_an_object_that_has_every_attribute_is_no_array():
    class Everything:
        a: Any

        def __getattr__(self, name: str) -> str:
            return name.upper()

    def f(x: Any) -> Any:
        made = Everything()
        made.a = x[0]
        return made

    got = tm.tensor(f)(X)
    assert (got.a, got.b) == (3.0, "B")


def test_what_a_function_defines_is_called_as_in_python():
    def f(x: Any) -> Any:
        @dataclass
        class Point:
            a: float

        class Inner:
            class Deeper:
                pass

        def g(v: Any) -> Any:
            return v

        def around() -> Any:
            def h() -> Any:
                return x

            return h

        return Point(x[0]), Inner.Deeper, g.__qualname__, around().__qualname__, (lambda: 1).__qualname__, Inner

    want, got = f(X), tm.tensor(f)(X)
    assert repr(got[0]) == repr(want[0])
    assert got[1].__qualname__ == want[1].__qualname__
    assert got[2:5] == want[2:5]
    assert repr(got[5]) == repr(want[5])


CONNECTED = {
    "and": lambda x, flag: (x[0] > 1) and flag,
    "or": lambda x, flag: (x[0] > 1) or flag,
    "chain": lambda x, flag: x[0] > 1 > flag,
    "literal": lambda x, flag: (x[0] > 1) and True,
    "three": lambda x, flag: (x[0] > 1) and (x[1] > 0) and flag,
    "added": lambda x, flag: ((x[0] > 1) and True) + True,
    "inverted": lambda x, flag: ~((x[0] > 1) or (x[1] > 0)),
    "of one class": lambda x, flag: (x[0] > 1) and (x[1] > 0),
}


@pytest.mark.parametrize("name", CONNECTED)
def test_and_and_or_give_an_operand_of_its_class(name: str):
    f = CONNECTED[name]
    captured = tm.tensor(f)
    for x in (X, -X, np.array([3.0, -1.0]), np.array([0.0, 1.0])):
        for flag in (True, False):
            want, got = f(x, flag), captured(x, flag)
            assert (type(got), repr(got)) == (type(want), repr(want)), (x, flag)
