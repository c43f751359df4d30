"""Branches that each append to a list: what is appended is of Python's class, and is computed where Python computes it."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

FORMS: dict[str, Any] = {}


def form(function: Any) -> Any:
    FORMS[function.__name__] = function
    return function


@form
def one_each(d):
    out = []
    if d == 0:
        out.append(-1)
    else:
        out.append(1 / d)
    return out


@form
def in_a_loop(d):
    out = ["begins"]
    for v in (d, d + 1):
        if v == 0:
            out.append(-1)
            continue
        t = 1 / v
        out.append(t if t < 1 else 2.5)
    return out


@form
def two_each(d):
    out = [0]
    if d > 1:
        out.append(d)
        out.append("large")
    else:
        out += [1, "small"]
    out[0] = out[1] * 2
    return out, len(out)


@form
def nested(d):
    out: list[Any] = []
    for k in range(3):
        if d > k:
            out.append((k, d))
        elif d < 0:
            out.append((k, -1))
        else:
            out.append((0, 0.5))
    return out, out[-1][1]


@form
def and_a_name(d):
    out, last = [], None
    if d > 0:
        out.append([d])
        last = out[-1]
    else:
        out.append([2])
        last = out[-1]
    last.append(7)
    return out, last is out[0]


@form
def guarded(d):
    if d == 0:
        return None
    t = 1 / d
    if t < 0:
        return "negative"
    return t


@form
def guarded_root(d):
    if d < 0:
        return "no root", None
    t = math.sqrt(d)
    if t < 1:
        return "small", t
    return t, d


@pytest.mark.parametrize("name", FORMS)
def test_as_in_python(name):
    plain = FORMS[name]
    function = tm.tensor(plain)
    values = [2.0, 0.0, -1.0, 0.5, 4.0, 0, 3]
    random.Random(name).shuffle(values)
    for d in values:
        try:
            expected: Any = plain(d)
        except ArithmeticError as error:
            expected = str(error)
        try:
            found: Any = function(d)
        except ArithmeticError as error:
            found = str(error)
        except CaptureError:
            continue
        assert repr(found) == repr(expected), d
