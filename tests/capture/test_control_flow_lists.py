"""Lists that loops and comprehensions fill: one region with an array for what iterations append, and what Python gives."""

from __future__ import annotations

import linecache
import time
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import cell, check

SOURCE = """
def stacked(x):
    out = []
    for k in range(40):
        x = np.tanh(x) + k * 1e-3
        out.append(x)
    return np.stack(out)

def along_an_axis(x):
    out = [np.sin(x * k) for k in range(30)]
    return np.stack(out, axis=1), np.concatenate(out), np.array(out).T

def of_rows(x):
    rows = []
    for v in x:
        rows.append(v * x)
    t = 0.0
    for row in rows:
        t = t + row[0] * row[1]
    return t + len(rows) + rows[-1][2]

def summed(x):
    out = [np.exp(-x * k) for k in range(25)]
    return sum(out) + sum(x[k % 4] * k for k in range(20))

def extremes(x):
    return max(np.cos(x[0] * k) for k in range(30)) * min([x[k % 4] - k for k in range(12)])

def pairs(x):
    out, others = [], []
    for k, v in enumerate(np.linspace(0, 1, 16)):
        out.append((v * x[0], k))
        others.append(x * v)
        others.append(x - v)
    return np.array(out), np.stack(others)

def nested(x):
    out = []
    for k in range(12):
        inner = [x[j % 4] * k for j in range(10)]
        out.append(sum(inner))
    return np.array(out)

def already_there(x):
    out = [x * 0.5]
    for k in range(10):
        out.append(x * k)
    return np.stack(out) * len(out)

def zipped(x):
    return np.array([a * b for a, b in zip(np.concatenate([x, x, x]), np.arange(12.0))])
"""
LABEL = "<lists>"
linecache.cache[LABEL] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), LABEL)
SPACE: dict[str, Any] = {"np": np}
exec(compile(SOURCE, LABEL, "exec"), SPACE)
LOOPS = {
    "stacked": 1, "along_an_axis": 1, "of_rows": 2, "summed": 4, "extremes": 4, "pairs": 1, "nested": 1, "already_there": 1,
    "zipped": 1,
}  # fmt: skip
X = np.array([0.3, 0.7, -0.4, 1.1, 0.2, 0.9, -1.3, 0.5, 0.6, 0.8])


@pytest.mark.parametrize("name", LOOPS)
def test_value_regions_and_gradient(name):
    function = SPACE[name]
    x = X[:4] if name != "of_rows" else X
    expected = function(x)
    found = tm.tensor(function)(x)
    for ours, numpys in zip(*([v] if not isinstance(v, tuple) else v for v in (found, expected)), strict=True):
        assert np.asarray(ours).dtype == np.asarray(numpys).dtype
        np.testing.assert_allclose(ours, numpys, rtol=1e-12)
    graph = tm.trace(function, x)
    assert [n.op.name for n in graph.nodes].count("loop") == LOOPS[name]

    def total(v: Any) -> Any:
        result = function(v)
        parts = result if isinstance(result, tuple) else (result,)
        return sum(np.sum(p * p) for p in parts)

    gradient = tm.grad(lambda v: _total(tm.tensor(function)(v)))(x)
    for k in range(len(x)):
        step = np.zeros_like(x)
        step[k] = 1e-6
        difference = (total(x + step) - total(x - step)) / 2e-6
        np.testing.assert_allclose(gradient[k], difference, rtol=2e-6, atol=1e-7)


def _total(result: Any) -> Any:
    parts = result if isinstance(result, tuple) else (result,)
    found: Any = 0.0
    for part in parts:
        found = found + np.sum(part * part)
    return found


def test_ten_thousand_iterations_are_one_region():
    found = cell(
        "out = []\nv = x\nfor k in range(10000):\n    v = np.sin(v) + 0.5\n    out.append(v)\ny = np.stack(out)",
        {"x": X, "np": np},
    )
    assert found.capture.effort.unstaged == {}
    assert found.capture.effort.nodes < 50
    v, rows = X, []
    for _ in range(10000):
        v = np.sin(v) + 0.5
        rows.append(v)
    np.testing.assert_allclose(found.outputs["y"].numpy(), np.stack(rows), rtol=1e-12)


CELLS = {
    "alias of a list": "out = []\nother = out\nfor k in range(20):\n    out.append(x * k)\ny = other[3] + len(out)",
    "read in the iteration": "out = [x[0]]\nfor k in range(20):\n    out.append(out[-1] * x[1])\ny = out[-1]",
    "stored into after": "out = []\nfor k in range(20):\n    out.append(x * k)\nout[3][1] = 7\ny = np.stack(out) + out[3]",
    "item replaced": "out = [x * k for k in range(20)]\nout[2] = x\ny = np.stack(out)\nz = sum(out)",
    "shorter": "out = [x * k for k in range(20)]\nout.pop()\ny = np.stack(out)\nw = out[-1]",
    "the same array": "out = []\nv = x.copy()\nfor k in range(20):\n    v += 1\n    out.append(v)\ny = np.stack(out)",
    "stored into in the next iteration": (
        "out = []\nv = x * 1\nfor k in range(20):\n    v[0] = k\n    v = v * 0.5\n    out.append(v)\ny = np.stack(out)"
    ),
    "views": "out = []\nfor k in range(10):\n    out.append(x[k:])\ny = out[3] * 2\nout[2][0] = 5.0\nz = x * 1",
    "whole numbers": "out = []\nfor k in range(20):\n    out.append(k)\ny = x * sum(out)",
    "texts": "out = [f'{k}' for k in range(20)]\ny = x * len(''.join(out))",
    "floats": "out = [float(x[0]) * k for k in range(20)]\ny = x * out[3]",
    "any and all": "y = any(v > 1 for v in x)\nz = all(v > -9 for v in x)\nw = any([v > 99 for v in x])",
    "types": "y = sum(x[k].astype(np.float32) for k in range(10))\nz = [x[k] > 0 for k in range(10)]",
    "generator that stays one": "g = (x[k] for k in range(10))\ny = next(g) + next(g)\nz = sum(g)",
    "index error": "y = [x[k] for k in range(20)]",
    "condition": "y = sum(x[k] for k in range(10) if k % 3)\nz = [k for k in range(20) if k % 2]",
    "in a function that reads it": (
        "out = []\ndef last():\n    return len(out)\nt = 0\nfor k in range(20):\n"
        "    out.append(x * k)\n    t = t + last()\ny = x * t"
    ),
    "of two kinds": "out = []\nfor k in range(20):\n    out.append(x if k % 2 else 1.0)\ny = out[1] + out[2]",
    "kept name": "out = []\nfor k in range(20):\n    v = x * k\n    out.append(v)\ny = v + out[-1]",
}


@pytest.mark.parametrize("name", CELLS)
def test_cells(name):
    check(CELLS[name], close=1e-12, x=X)


PLAIN = {
    "sum": "s = 0\nfor k in range(3000):\n    s += k",
    "branches": (
        "s = 0\nfor k in range(50):\n    if k % 3 == 0 and k > 4:\n        s += abs(k)\n"
        "    elif 5 < k < 9:\n        s -= k\ny = x * s"
    ),
    "break within": (
        "s = 0\nfor k in range(9):\n    for j in range(9):\n        if j > k:\n"
        "            break\n        s += j\n    else:\n        s += 100"
    ),
    "break": "s = 0\nfor k in range(50):\n    if k > 7:\n        break\n    s += k\nelse:\n    s = -1",
    "while within": (
        "s = 0\nfor k in range(9):\n    j = k\n    while j > 2:\n        j -= 2\n"
        "        if j == 3:\n            continue\n        s += j"
    ),
    "append": "out = []\nfor k in range(30):\n    out.append(k * k)\ny = x * out[3]",
    "in a function": "def f(n):\n    s, k = 0, 5\n    for k in range(n):\n        s += k\n    return s, k\ny = f(20), f(0)",
    "closure": (
        "def f(n):\n    s = 0\n    def add(v):\n        nonlocal s\n        s += v\n"
        "    for k in range(n):\n        s += k\n        s *= 2\n    add(3)\n    return s\ny = f(20)"
    ),
    "lazy behind": "s = 0\nfor k in range(20):\n    s += k\ns = s + x\nfor k in range(20):\n    s = s + k",
    "arrays": "s = 0.0\nfor k in range(10):\n    if x[k] > 0:\n        s += x[k]",
    "an item": "d = [1] * 20\nfor k in range(2, 20):\n    d[k] = d[k - 1] + d[k - 2]\ny = x * d[9]",
}


@pytest.mark.parametrize("name", PLAIN)
def test_loops_over_pythons_own_numbers(name):
    check(PLAIN[name], close=1e-12, x=X)


def test_a_loop_over_pythons_own_numbers_is_as_quick_as_python():
    trace = "s = 0\nfor k in range(200000):\n    s += k"
    ours, plain = [], []
    for _ in range(3):
        start = time.perf_counter()
        cell(trace, {"np": np})
        middle = time.perf_counter()
        exec(compile(trace, "<plain>", "exec"), {})
        ours.append(middle - start)
        plain.append(time.perf_counter() - middle)
    assert min(ours) < 3 * min(plain)


KEPT = {
    "lambdas": "fs = [lambda v: v + k for k in range(3)]\ny = [f(x) for f in fs]",
    "arguments": "fs = [lambda v, k=k: v + k for k in range(3)]\ny = [f(x) for f in fs]",
    "nested": "fs = [[lambda: x * (i + 10 * j) for j in range(2)] for i in range(3)]\ny = [f() for r in fs for f in r]",
    "generators": "gs = [(x * k * i for i in range(3)) for k in range(4)]\ny = [v for g in gs for v in g]",
    "a generator of lambdas": "fs = list((lambda: v * 2) for v in x)\ny = [f() for f in fs]",
    "as they are made": "y = [f(x) for f in (lambda v: v + z for z in range(3))]",
    "by name": "fs = [dict(f=lambda: x + k) for k in range(3)]\ny = [d['f']() for d in fs]",
    "called": "y = [(lambda: v * 2)() for v in x]",
    "used up": "y = [sum(v * i for i in range(3)) for v in x]",
    "sorted": "y = [sorted([1, 3, 2], key=lambda v: -v * k) for k in (1, -1)]",
    "a condition": "fs = [lambda: k for k in range(6) if k % 2]\ny = [x * f() for f in fs]",
}


@pytest.mark.parametrize("name", KEPT)
def test_functions_made_in_a_comprehension_share_its_names(name):
    check(KEPT[name], close=1e-12, x=X)
