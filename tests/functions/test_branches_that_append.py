"""Branches that each append to a list: what is appended is of Python's class, and is computed where Python computes it."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.functions.test_first_looks import of

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


ARGUMENTS = {
    "a list": ("if a > 1: held.append(a)\n    return a", [0.5]),
    "a list that is given back": ("if a > 1: held.append(a)\n    return held, len(held)", [0.5]),
    "in a loop of Python's": ("for k in range(3):\n        if a > k: held.append(a)\n    return len(held)", [0.5]),
    "in a dictionary": ("if a > 1: held['log'].append(a)\n    return held['log']", {"log": [0.5]}),
    "by another name": ("rows = held['log']\n    if a > 1: rows.append(a)\n    return len(rows)", {"log": [0.5]}),
    "by both branches": ("if a > 1: held.append(a)\n    else: held.append(-1)\n    return held", [0.5]),
    "several in one branch": ("if a > 1:\n        for v in (a, a + 1): held.append(v)\n    return held", [0.5]),
    "two of which one is called": ("add = held.append\n    if a > 1: add(a)\n    return held", [0.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")  # what is refused gives what Python does
def test_lists_that_the_caller_has_grow_or_are_refused_by_name(name, tmp_path):
    body, given = ARGUMENTS[name]
    plain = of(f"def f(held, a):\n    {body}\n", tmp_path / "given.py")
    function = tm.tensor(plain)
    one, other = copy.deepcopy(given), copy.deepcopy(given)
    for a in (2.0, 0.0, 3.0, 2.0):
        try:
            found = copy.deepcopy(function(other, a))
        except CaptureError as error:
            assert "grows" in str(error)  # noqa: PT017 (a refusal is as good)
            assert other == one
            return
        assert repr(found) == repr(plain(one, a))
        assert repr(other) == repr(one)


CLASSES = {
    "begins with a number of Python's": "out = [0.5, 2]\n    for v in x:\n        if v > 1: out.append(v)\n    return out",
    "begins with a list": "out = list(held)\n    for v in x:\n        if v > 1: out.append(v)\n    return out",
    "whole numbers among floats": (
        "out = []\n    for v in x:\n        if v > 1: out.append(v)\n        if v > 2: out.append(1)\n    return out"
    ),
    "Python's and NumPy's": "out = []\n    for v in x:\n        if v > 1: out.append(v)\n        if v < 0: out.append(0.5)\n    return out",
    "pairs": "out = [(0, 0.5)]\n    for k, v in enumerate(x):\n        if v > 1: out.append((k, v))\n    return out",
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_numbers_of_lists_that_grow_are_of_pythons_class(name, tmp_path):
    plain = of(f"def f(x, held):\n    {CLASSES[name]}\n", tmp_path / "given.py")
    function = tm.tensor(plain)
    for x in ([0.5, 2.0, 3.0], [-1.0, 0.0, 5.0], [0.5, 0.5, 0.5]):
        try:
            found = function(np.array(x), [0.25, 1])
        except CaptureError as error:
            assert "different classes" in str(error)  # noqa: PT017 (a refusal is as good)
            return
        assert repr(found) == repr(plain(np.array(x), [0.25, 1]))


METHODS = {
    "append": ("out = []\n    go = out.append\n    if a > 1: go(a)\n    return out", True),
    "append, in both branches": ("out = []\n    go = out.append\n    if a > 1: go(a)\n    else: go(-1.0)\n    return out", False),
    "in a loop": ("out = []\n    go = out.append\n    for v in np.array([a, 2.0]):\n        if v > 1: go(v)\n    return out", True),
    "reverse": ("out = [3.0, 1.0]\n    go = out.reverse\n    if a > 1: go()\n    return out", False),
    "update": ("out = {'k': 1.0}\n    go = out.update\n    if a > 1: go(k=a)\n    return out", False),
    "appendleft": ("out = deque([1.0])\n    go = out.appendleft\n    if a > 1: go(a)\n    return list(out)", True),
    "add": ("out = set()\n    go = out.add\n    if a > 1: go('large')\n    return sorted(out)", True),
    "in a dictionary": ("out = []\n    acts = {'go': out.append}\n    if a > 1: acts['go'](a)\n    return out", True),
    "partial": ("out = [1.0, 2.0]\n    go = partial(out.__setitem__, 0)\n    if a > 1: go(a)\n    return out", False),
    "handed on": ("out = []\n    def each(go, v):\n        if v > 1: go(v)\n    each(out.append, a)\n    return out", True),
    "an iterator": ("it = iter([1.0, 2.0, 3.0])\n    go = it.__next__\n    if a > 1: go()\n    return list(it)", True),
    "of an array": ("out = np.zeros(2)\n    go = out.fill\n    if a > 1: go(3.0)\n    return out", False),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")  # what is refused gives what Python does
def test_bound_methods_of_pythons_own_containers(name, tmp_path):
    body, may_be_refused = METHODS[name]
    plain = of(
        f"import numpy as np\nfrom collections import deque\nfrom functools import partial\ndef f(a):\n    {body}\n",
        tmp_path / "given.py",
    )
    function = tm.tensor(plain)
    for a in (2.0, 0.0, 3.0, 0.5):
        try:
            found = function(a)
        except CaptureError:
            assert may_be_refused
            return
        assert repr(found) == repr(plain(a))
