"""Loops of Python's own numbers are Python's, as they are written; where they reach anything lazy, they are captured."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.staging import runtime
from tensormagic.ir.node import topological
from tests.capture.harness import cell, check

X = np.arange(6.0)

PLAIN = {
    "while": "s, k = 0.0, 0\nwhile k < 100:\n    s += math.sin(k) * 0.5\n    k += 1",
    "while with break": "k = 0\nwhile True:\n    k += 7\n    if k > 200:\n        break\nelse:\n    k = -1",
    "while with else": "k = 0\nwhile k < 60:\n    k += 7\nelse:\n    k = -k",
    "for with break": (
        "found = None\nfor k in range(2, 200):\n    if 221 % k == 0:\n        found = k\n        break\n"
        "else:\n    found = 0"
    ),
    "for with else": "for k in range(2, 60):\n    if 61 % k == 0:\n        break\nelse:\n    k = 'prime'",
    "continue": "s = 0\nfor k in range(90):\n    if k % 3:\n        continue\n    s += k",
    "loops in loops": (
        "p = []\nfor n in range(2, 90):\n    for d in p:\n        if n % d == 0:\n            break\n"
        "    else:\n        p.append(n)"
    ),
    "functions": (
        "def g(v):\n    return math.sqrt(v) + 1\ndef f(v):\n    if v > 30:\n        return g(v)\n"
        "    for j in range(3):\n        v += j\n        if v > 9:\n            break\n    return v\n"
        "s = 0.0\nfor k in range(80):\n    s += f(k)"
    ),
    "a function that calls itself": (
        "def f(n):\n    return 1 if n < 2 else f(n - 1) + f(n - 2)\nout = []\nfor k in range(9):\n    out.append(f(k))"
    ),
    "a lambda": "f = lambda v: abs(v - 40) + math.pi\nout = []\nfor k in range(90):\n    out.append(f(k))",
    "lists": "a = [1] * 50\ni = 0\nwhile i < 50:\n    a[i] = a[i - 1] + a[i]\n    i += 1\nb = a[3:7]",
    "over a text": "n = 0\nfor c in 'banana' * 9:\n    n = n * 2 + (c == 'a')\n    n %= 1000",
    "over a list of tuples": "s = 0\nfor a, b in [(1, 2.5), (3, 4)] * 20:\n    s += a * b",
    "names after it": "k = 5\nfor k in range(40):\n    last = k * k",
    "no iteration": "for k in range(0):\n    last = k\nwhile False:\n    last = 1",
    "no iteration of a while": "k = 3\nwhile k < 0:\n    k += 1",
    "numpy's functions": "t, v = 0.0, 1.0\nfor k in range(90):\n    v = v + 0.01 * (np.sin(t) - v) * np.pi\n    t += 0.01",
    "numpy's functions in a while": "v, k = 1.0, 0\nwhile np.abs(np.cos(v) - v) > 1e-3 and k < 99:\n    v = np.cos(v)\n    k += 1",
    "numpy's types": "v, n = np.float32(1), np.int8(3)\nfor k in range(80):\n    v = np.float32(v / n) + np.sqrt(k)\n    b = np.bool_(v)",
    "numpy's functions of one's own": (
        "def f(v):\n    return np.exp(-v ** 2)\ns, h = 0.0, 0.01\nfor i in range(100):\n    s += f(i * h) * h"
    ),
    "names of numpy's": "from numpy import sin, cos as c, clip\nv = 0.1\nfor k in range(60):\n    v = clip(sin(v) + c(k), 0.1, 0.5)",
    "a list of numpy's numbers": "out, v = [], 0.0\nfor k in range(80):\n    v = np.sin(v) + 0.1\n    out.append(v)",
    "by keyword": "v = 0.0\nfor k in range(60):\n    v = round(v * 0.9 + 1, ndigits=3) + np.round(k, decimals=1)",
    "formatted": "out = ''\nfor k in range(60):\n    if k % 7 == 0:\n        out += f'{k}: {np.sqrt(k):.3f} '",
    "extremes": "out = []\nfor k in range(40):\n    out.append(np.minimum(np.maximum(k, 3), np.float64(9)))",
    "a list that is written": "out = [np.sin(k * 0.1) * k for k in range(60)]",
    "a list of some": "def f(n):\n    return n % 3 == 0\nout = [np.sqrt(k) for k in range(60) if f(k) and k != 6]",
    "a list of tuples' items": "out = [a * np.pi + b for a, b in [(1, 2.5), (3, 4)] * 20]",
    "ends in an error": "k = 90\nwhile k >= 0:\n    k -= 1\n    r = 1 / k",
}

LAZY = {
    "a function that makes arrays": "def f(v):\n    return np.sin(v)\ns = 0.0\nfor k in range(5):\n    s = s + f(k) * x",
    "a function of an array": "def f(v):\n    return v * x[1]\ns = 0.0\nfor k in range(5):\n    s += f(k)",
    "an array in a list": "held = [x]\ns = 0.0\nfor k in range(5):\n    s += held[0][k]",
    "an array in a default": "def f(v, held=[x]):\n    return v * held[0][2]\ns = 0.0\nk = 0\nwhile k < 5:\n    s += f(k)\n    k += 1",
    "an array in a closure": (
        "def make(v):\n    def f(k):\n        return v[k] * 2\n    return f\nf = make(x)\ns = 0.0\n"
        "for k in range(5):\n    s += f(k)"
    ),
    "a name of Python's": "def abs(v):\n    return np.maximum(v, x[2])\ns = 0.0\nfor k in range(5):\n    s += abs(k)",
    "a list of an array's items": "out = [np.sin(k) * v for k, v in zip(range(6), x)]",
    "a list beside an array": "out = [np.sin(k) * x for k in range(6)]",
    "an argument": "def f(v):\n    return v + 1\ny = x[3]\nfor k in range(5):\n    y = f(y)",
}


@pytest.fixture
def calls(monkeypatch):
    """What staged code has called."""
    found: list[Any] = []
    own = runtime.called

    def called(function):
        found.append(function)
        return own(function)

    monkeypatch.setattr(runtime, "called", called)
    return found


@pytest.mark.parametrize("name", PLAIN)
def test_a_cell_leaves_what_python_leaves(name, calls):
    check(PLAIN[name], math=math)
    assert len(calls) < 12  # what stands before and behind the loop


@pytest.mark.parametrize("name", LAZY)
def test_what_is_lazy_is_captured(name):
    check(LAZY[name], x=X)


def test_what_is_captured_has_gradients():
    got = cell(LAZY["an array in a default"], {"x": X, "np": np})
    assert isinstance(got.outputs["s"], tm.Tensor)
    x = tm.tensor(X)
    s = cell(LAZY["a function of an array"], {"x": x}).outputs["s"]
    np.testing.assert_array_equal(s.grad(x).numpy(), [0, 10, 0, 0, 0, 0])


def test_functions_are_captured_again_behind_the_loop():
    source = "def f(v):\n    if v > 2:\n        return v * 2\n    return v\nfor k in range(50):\n    f(k)\ny = f(x[4])"
    y = cell(source, {"x": X}).outputs["y"]
    assert isinstance(y, tm.Tensor)
    assert y == 8
    source = "def f(v):\n    return 1 / v if v > 2 else 1 / (v - 1)\n"
    source += "try:\n    for k in range(50):\n        f(k)\nexcept ZeroDivisionError:\n    y = f(x[4])"
    assert isinstance(cell(source, {"x": X}).outputs["y"], tm.Tensor)


def digits(n: int) -> int:
    """A function of Python's own numbers."""
    found = 0
    while n:
        n //= 10
        found += 1
    return found


def scaled(x, n):
    """A loop of numbers beside arrays."""
    total, k = 0, 1
    for k in range(1, n):
        if k % 7 == 0:
            total += digits(k)
        if total > 40:
            break
    return x * total + k


def test_functions_of_numbers_in_a_captured_function(calls):
    f = tm.tensor(scaled)
    np.testing.assert_array_equal(f(X, 200), scaled(X, 200))
    assert len(calls) < 12
    np.testing.assert_array_equal(tm.grad(lambda x: f(x, 200).sum())(X), np.full(6, 42.0))


MEMBERS = {
    "tuple": "v in (2, 3)",
    "list": "v in [2.5, 4]",
    "set": "k in {1, 3}",
    "none of them": "v not in (2, 3)",
    "truth values": "k in (True, False)",
    "chained": "1 < v in (2, 3)",
    "nan": "v in (2, math.nan)",
    "text": "k in (1, 'a')",
    "nothing": "k in ()",
}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_number_among_known_ones(name):
    test = MEMBERS[name]
    check(
        f"n = 0\nfor k, v in enumerate(x):\n    if {test}:\n        n += 1\n    else:\n        n += 100", x=X, math=math
    )
    check(
        f"v, k = x[3], i[1]\nfound = {test}\nother = {test.replace('v', '(v + 0.5)')}", x=X, i=np.arange(3), math=math
    )


def among(x):
    """A function that asks for members."""
    count = 0
    for v in x:
        if v in (2, 3) or v not in [1, 2, 4, 5]:
            count += 1
    return count


def test_members_in_a_captured_function():
    assert tm.tensor(among)(X) == among(X) == 3


CONVERTED = {
    "index": "counts = np.zeros(6)\nfor v in x:\n    counts[int(v)] += 1",
    "integers": "crc = 0\nfor v in x:\n    crc ^= int(v) << 4\n    if crc & 16:\n        crc = crc >> 1",
    "truth": "n = 0\nfor v in x:\n    n += bool(v > 2)",
    "rounded": "n = 0\nfor v in x:\n    n += round(v * 0.7)",
    "more than 64 bits": "n = 1\nfor v in x:\n    n = n * (int(v) + 10**12)",
    "no number": "n = 0\nfor v in x:\n    n += int(np.inf - v)",
    "a large float": "n = 0\nfor v in x:\n    n += int(v * 1e30)",
    "behind it": "n = 0\nfor v in x:\n    n += int(v)\ny = [0] * n\nm = n % 7",
}


@pytest.mark.parametrize("name", CONVERTED)
def test_conversions_in_the_loops_of_a_cell(name):
    check(CONVERTED[name], x=X)
    check(CONVERTED[name], x=X.astype(int))


def test_a_loop_with_conversions_is_a_region():
    got = cell(CONVERTED["integers"], {"x": X.astype(int), "np": np})
    assert isinstance(got.outputs["crc"], tm.Tensor)


MADE = {  # arrays that are made of Python's numbers alone
    "linspace": "np.linspace(0.0, 1.0, {n} + 1)",
    "arange": "np.arange({n} + 1) * 0.5",
    "array": "np.array([1.5, 2.5, -3.0] * {n})",
    "of a function": "np.cos(np.ones({n} + 2) / 3)",
}
SUMS = {
    "a sum": "s = 0.0\nfor k in range({n}):\n    s += np.sin(a[k]) * 0.5",
    "of a function of one's own": "f = lambda v: np.exp(-v * v)\ns = 0.0\nfor k in range(1, {n}):\n    s += (f(a[k]) + f(a[k - 1])) / 2",
    "a largest": "s = a[0]\nfor v in a[:{n}]:\n    s = max(s, v)",
    "a step": "s, c = 1.0, a.sum()\nfor k in range({n}):\n    s = s + 0.01 * (c - s)",
    "arrays": "s = a\nfor k in range({n}):\n    s = s * 0.99 + a[::-1]",
    "a while": "s, k = 0.0, 0\nwhile k < {n}:\n    s, k = s + a[k] ** 2, k + 1",
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("n", [3, 60])
def test_arrays_of_known_numbers(name, made, n):
    check(f"a = {MADE[made]}\n{SUMS[name]}".format(n=n), close=1e-13)


@pytest.mark.parametrize("name", SUMS)
def test_loops_over_arrays_of_known_numbers_are_regions(name):
    sizes = []
    for n in (60, 120):
        got = cell(f"a = {MADE['linspace']}\n{SUMS[name]}".format(n=n), {"np": np}).outputs["s"]
        sizes.append(len(topological([got.node])))
    assert sizes[1] < sizes[0] + 3


def test_loops_in_a_loop_over_resolutions_are_regions():
    text = (
        "e, d = np.empty(6), np.empty(6)\nfor j, n in enumerate(range(50, 350, 50)):\n    a = np.linspace(0.0, 1.0, n + 1)\n"
        "    d[j] = a[1] - a[0]\n    s = 0.0\n    for k in range(n):\n        s += np.sin(a[k]) * d[j]\n    e[j] = abs(s - 0.4597)"
    )
    check(text, close=1e-12)
    assert len(topological([cell(text, {"np": np}).outputs["e"].node])) < 300
