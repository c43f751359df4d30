"""Texts that functions make of objects that hold lazy values, and what methods of such texts give."""

from __future__ import annotations

import contextlib
import io
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

PROGRAMS: list[Callable[..., Any]] = []


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a program."""
    PROGRAMS.append(function)
    return function


@dataclass
class Point:
    x: float
    y: float = 2.0
    name: str = field(default="p", repr=False)


Pair = namedtuple("Pair", "a b")  # noqa: PYI024 (as it is written)


class Amount:
    def __init__(self, value):
        self.value = value

    def __str__(self):
        return f"amount {self.value:.2f}"

    def __repr__(self):
        return f"Amount({self.value})"


class Exact(Amount):
    def __format__(self, form):
        return format(self.value, form) if form else str(self)


class Chain:
    def __init__(self, value, rest=None):
        self.value, self.rest = value, rest

    def __repr__(self):
        return f"Chain({self.value!r}, {self.rest!r})"


@program
def of_records(x):
    p, q = Point(x[0], x[1]), Pair(x[0], [x[1], 2])
    print(p, q)
    print([p], {"q": q}, (q,))
    return str(p), repr(q), f"{[p]} {q!r}", "it is " + str(p)


@program
def of_methods(x):
    a, b = Amount(x[0]), Exact(x[1])
    print(a, b, [a, b], {"k": a})
    print("%s and %r" % (a, b), "{} {!r}".format(a, b))  # noqa: UP031, UP032 (texts are made in all ways)
    return f"{a} {b!r} {b:.3f} {b}", str(b), repr(a), format(b, ".1f"), format(x[0], "6.2f")


@program
def in_formats(x):
    a, b = Amount(x[0]), Exact(x[1])
    print("%12s|%-14r|%.3s" % (a, b, a), f"{a!s:>14}|{b!r:^20}|{a!r:*<18}")  # noqa: UP031
    return "%s" % a, "%20r" % b, "{!s:>9}".format(a), f"{[a]!s:>30}", "%s" % (a,), "%s %%" % [b]  # noqa: UP031, UP032


@program
def of_containers_by_percent(x):
    print("%s and %r" % ([x[0], Amount(x[1])], {"k": (x[0],)}))  # noqa: UP031
    return "%s" % [x[0]], "%r" % (Pair(x[0], x[1]),), "%30s|" % Point(x[0])  # noqa: UP031


@program
def in_a_loop_and_a_branch(x):
    for k in range(3):
        a = Amount(x[k])
        if x[k] > 1:
            print("%s at %d" % (a, k))  # noqa: UP031
        else:
            print("none: %r" % a)  # noqa: UP031
    return x.sum()


@program
def of_an_exception_by_percent(x):
    if x[0] > x[1]:
        raise ValueError("too much: %s, %9r" % (Amount(x[0]), Exact(x[1])))  # noqa: UP031
    return x.sum()


@program
def of_objects_in_objects(x):
    c = None
    for v in x:
        c = Chain(v, c)
    print(c)
    return f"{c}"


@program
def of_an_exception(x):
    a = Amount(x[0])
    if x[0] > x[1]:
        raise ValueError(f"too much: {a}")
    return x.sum()


@program
def of_arrays(x):
    return str(x), repr(x), repr(x[0]), str([x[0], 1]), repr({"a": x})


@program
def methods_of_texts(x):
    s = f"{x[0]:.2f}"
    lines = [f"{v:6.2f}".strip() for v in x]
    print("\n".join(lines).upper())
    return s.rjust(10, "*") + "|" + s.ljust(8) + "|" + s.center(9) + s.zfill(8), s.replace(".", ","), (s + " a").title()


@program
def a_text_that_grows(x):
    s = ""
    for v in x:
        s += f"{v:.1f} "
    return s.strip()


@program
def one_of_two_texts(x):
    label = f"big {x[0]:.1f}" if x[0] > 1 else f"small {x[0]:.1f}"
    print(label.upper())
    return label.strip(), label


def told(function: Callable[..., Any], *args: Any) -> tuple[Any, str]:
    """What a function gives, or raises, and what it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            found = function(*args)
        except ValueError as error:
            found = repr(error)
    return found, said.getvalue()


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_they_are_pythons(function: Callable[..., Any]):
    captured = tm.tensor(function)
    for x in ([1.0, 2.0, 4.0], [0.25, 3.5, -1.0], [7.0, 3.5, 1.0]):
        given = np.array(x)
        assert told(captured, given) == told(function, given)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda s: s[0], "a part of a text"),
        (lambda s: s.split("."), r"\.split of a text"),
        (len, "length of a text"),
        (lambda s: "1" in s, "`in` of a text"),
    ],
)
def test_what_hangs_on_the_letters_is_refused_by_name(ask: Any, said: str):
    with pytest.raises(CaptureError, match=said):
        tm.tensor(lambda x: ask(f"{x[0]}")).graph(np.ones(2))
