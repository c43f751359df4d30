"""Control flow at the top level of cells: regions where they can be, Python where it has to be, and never another meaning."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture import limits
from tensormagic.capture.cell import with_users_code
from tensormagic.capture.staging.syntax.source import is_part
from tensormagic.ir import site
from tests.capture.harness import captured, cell, check

X = np.arange(12.0).reshape(3, 4)

STAGED = {
    "branch": ("if x.sum() > 0:\n    y = x * 2\nelse:\n    y = x - 1", {"cond": 1}),
    "branch that is not taken": ("y = x\nif x.sum() < 0:\n    y = np.linalg.solve(x[:, :3] * 0, x)", {"cond": 1}),
    "loop": ("t = 0.0\nfor k in range(5):\n    t = t + x[0, 1] * k", {"loop": 1}),
    "loop over rows": ("t = np.zeros(4)\nfor row in x:\n    t = t + row ** 2", {"loop": 1}),
    "store": ("y = x.copy()\nfor k in range(3):\n    y[k] = y[k] * 2 + k", {"loop": 1}),
    "while": ("v = x[1].copy()\nwhile v.sum() < 1000:\n    v = v * 2", {"while": 1}),
    "while in place": ("v = x[1].copy()\nw = v\nwhile v.sum() < 1000:\n    v *= 2", {"while": 1}),
    "while True": (
        "z = s\nwhile True:\n    d = (z * z - 2) / (2 * z)\n    z = z - d\n    if abs(d) < 1e-9:\n        break",
        {"while": 1},
    ),
    "greatest": ("best = -np.inf\nfor v in x[:, 1]:\n    if v > best:\n        best = v", {"loop": 1}),
    "continue": ("c = 0\nfor row in x:\n    if row.sum() < 10:\n        continue\n    c += 1", {"loop": 1}),
    "else": (
        "for k in range(10):\n    if x[0, 1] * k > 4:\n        break\nelse:\n    k = 100\nw = k",
        {"while": 1, "cond": 1},
    ),
    "function": (
        "def f(v):\n    if v.sum() > 6:\n        return v / 2\n    return v\ny = x[1]\nfor _ in range(3):\n    y = f(y)",
        {"loop": 1},
    ),
    "lambda": ("f = lambda v: v if v.sum() > 0 else -v\ny = f(x) + 1", {"cond": 1}),
    "recurrence": ("h = np.zeros(4)\nfor t in range(20):\n    h = np.tanh(0.1 * x.T @ x @ h + x[0])", {"loop": 1}),
    "power": ("p = np.eye(3)\nfor _ in range(x.shape[0]):\n    p = p @ (x @ x.T) / 100", {"loop": 1}),
    "item of a dictionary": ("d = {'a': x[0]}\nfor _ in range(4):\n    d['a'] = d['a'] * 2\ny = d['a']", {"loop": 1}),
    "annotated": ("y: float = 0.0\nfor k in range(3):\n    z: float = x[k, 0]\n    y += z", {"loop": 1}),
    "walrus": ("y = x[0, 1]\nif (z := y * 2) > 1:\n    y = z", {"cond": 1}),
    "nested loops": (
        "c = np.zeros((3, 3))\nfor i in range(3):\n for j in range(3):\n  for k in range(4):\n   c[i, j] += x[i, k] * x[j, k]",
        {"loop": 1},
    ),
}


def regions(found: Any) -> dict[str, int]:
    nodes = {n for v in found.outputs.values() if isinstance(v, tm.Tensor) for n in v.graph.nodes}
    kinds: dict[str, set[str]] = {}
    for node in nodes:
        if node.op.kind == "region":  # the same region is closed once for each name
            kinds.setdefault(node.op.name, set()).add(str(site.of(node)))
    return {name: len(places) for name, places in kinds.items()}


@pytest.mark.parametrize("name", STAGED)
def test_staged(name):
    source, expected = STAGED[name]
    check(source, close=1e-12, x=X, s=1.5)
    found = cell(source, {"x": X, "s": 1.5, "np": np})
    assert found.capture.effort.unstaged == {}
    assert regions(found) == expected


PYTHON = {
    "list append": "out = []\nfor k in range(3):\n    out.append(x[k] * k)\ny = np.stack(out)",
    "list append of floats": "out = []\nfor k in range(3):\n    out.append(float(x[k].sum()))",
    "list extended before": "out = [1]\nfor k in range(3):\n    out += [k]\ny = x * sum(out)",
    "text": "out = ''\nfor k in range(3):\n    out = out + f'{k}:'\ny = x * len(out)",
    "dictionary grows": "out = {}\nfor k in range(3):\n    out[k] = x[k] + 1\ny = out[2]",
    "set": "out = set()\nfor k in range(3):\n    out.add(k)\ny = x * len(out)",
    "axis": "y = x\nfor k in range(2):\n    y = y.sum(axis=0, keepdims=True)\n    y = y.reshape((1,) * k + y.shape)",
    "array that grows": "y = x[0]\nfor k in range(3):\n    y = np.concatenate([y, x[k]])",
    "whole numbers": "n = 1\nfor k in range(3):\n    n = n * 2\ny = x.reshape(n // 4, -1, 2)",
    "raise that is not met": "if x.sum() < 0:\n    raise ValueError('negative')\ny = x",
    "raise": "if x.sum() > 0:\n    raise ValueError('positive')\ny = x",
    "raise in a loop": "for k in range(3):\n    if x[k].sum() > 7:\n        raise KeyError(k)",
    "not implemented": "def f(x):\n    raise NotImplementedError()\nfor k in range(3):\n    y = f(x)",
    "try": "y = 0.0\nfor k in range(5):\n    try:\n        y = y + x[k, 0]\n    except IndexError:\n        y = y + 100",
    "try around a branch": "try:\n    if x.sum() > 0:\n        y = x @ x\nexcept ValueError:\n    y = x",
    "generator": "y = sum(x[k, k] for k in range(3))",
    "strings": "name = 'big' if x.sum() > 3 else 'small'\ny = x",
    "exchange of views": "y = x.copy()\na, b = y[0], y[1]\nfor k in range(3):\n    a += 1\n    a, b = b, a",
    "store, then bound anew": "w = x.copy()\nv = w\nfor k in range(3):\n    w -= 0.5\n    w = w * 2",
    "list items exchanged": "l = [x[0], x[1], 3]\nfor k in range(2):\n    l[k] = l[k + 1]\ny = l[0]",
    "del": "y = x\nfor k in range(3):\n    z = y + 1\n    y = z\n    del z",
    "shapes that depend on data": "z = x.ravel()\nfor k in range(9):\n    if not len(z):\n        break\n    z = z[z > 4 * k]",
    "assert": "assert x.sum() > 0, 'positive'\ny = x",
    "assert that fails": "assert x.sum() < 0, 'negative'\ny = x",
}


@pytest.mark.parametrize("name", PYTHON)
def test_python_runs_it(name):
    source = PYTHON[name]
    try:
        exec(source, {"x": X.copy(), "np": np})
    except (KeyError, NotImplementedError, AssertionError) as error:
        expected = error
    except Exception:  # noqa: BLE001 (compared below, like what is no error)
        expected = None
    else:
        expected = None
    if expected is None:
        check(source, close=1e-12, x=X)
        return
    found = captured(source, {"x": X}).error
    assert type(found) is type(expected)
    assert found.args == expected.args


def test_prints_come_once_and_in_order():
    source = "y = x[0]\nfor k in range(3):\n    y = y * 2\n    print(k, y.sum())\nif y.sum() > 40:\n    print('large')"
    with redirect_stdout(io.StringIO()) as ours:
        found = cell(source, {"x": X, "np": np})
    with redirect_stdout(io.StringIO()) as pythons:
        exec(source, {"x": X, "np": np})
    assert ours.getvalue() == pythons.getvalue()
    assert [str(place).partition(" ")[2] for place in found.capture.effort.unstaged] == ["line 2", "line 5"]
    assert all("print()" in why for why in found.capture.effort.unstaged.values())


def test_what_was_tried_out_leaves_no_trace():
    notebook = {"x": X, "np": np, "seen": [], "count": {"n": 0}}
    source = "for k in range(3):\n    seen.append(k)\n    count['n'] += 1\n    y = x[k] * k\n    print(end='')"
    cell(source, notebook)
    assert notebook["seen"] == [0, 1, 2]
    assert notebook["count"] == {"n": 3}


def test_an_array_that_nobody_else_knows_is_stored_into_after_a_branch():
    source = "z = x + 1\nif x[0, 1] > 0:\n    z = z * 2\nz[1] = 5\nz *= 2"
    check(source, x=X)
    assert regions(cell(source, {"x": X})) == {"cond": 1}
    for sign in "<>":
        check(f"z = x + 1\nw = z\nif x[0, 1] {sign} 0:\n    z = z * 2\nz[1] = 5", x=X)


def test_inputs_that_a_loop_stores_into():
    check("for k in range(1, 3):\n    x[k] += x[k - 1]", x=X)
    check("for row in x:\n    row[0] = row.sum()", x=X)
    check("v = x[1:]\nfor k in range(2):\n    v[k] *= 2\nif x[0, 1] > 0:\n    x[0] = -1", x=X)


def test_a_function_of_the_notebook():
    def settle(v):
        while v.sum() > 1:
            v = v / 2
        return v

    space = {"x": X, "settle": settle, "np": np}
    found = cell("y = settle(x)", space)
    np.testing.assert_allclose(found.outputs["y"].numpy(), settle(X))
    assert regions(found) == {"while": 1}


def test_a_function_that_is_handed_back_is_as_it_was_written():
    source = (
        "def f(v):\n    for k in range(3):\n        if v > 1:\n            v = v / 2\n    return v\n"
        "g = lambda v: v if v > 1 else -v; h = lambda v: not v"
    )
    found = cell(source, {"x": X})
    for name in "fgh":
        home = with_users_code(found.outputs[name], {})
        assert not any("tensormagic" in str(c) for c in home.__code__.co_consts)
        assert home(8.0) == {"f": 1.0, "g": 8.0, "h": False}[name]
    assert with_users_code(found.outputs["g"], {})(0.5) == -0.5


def test_errors_are_at_the_line_of_the_iteration():
    source = "y = 0.0\nfor k in range(3):\n    if x.sum() > 0:\n        y = y + x @ x\n"
    with pytest.raises(ValueError, match=r"matmul|shapes") as error:
        cell(source, {"x": X, "np": np})
    assert error.value.tensor_site.line == 4
    assert error.value.__context__ is None
    assert error.value.__cause__ is None


def test_nodes_are_at_the_line_of_the_iteration():
    found = cell("y = x\nfor k in range(3):\n    y = np.sin(y)\n", {"x": X, "np": np})
    (loop,) = [n for n in found.outputs["y"].graph.nodes if n.op.name == "loop"]
    (sine,) = [n for n in loop["body"].nodes if n.op.name == "sin"]
    assert {s.line for s in site.of(loop)} == {2}
    cells = {s.cell for s in site.of(loop)}
    own = [s for s in site.of(sine) if s.cell in cells]  # another program's equal node would be the same
    assert [(s.line, s.column, s.end_column) for s in own] == [(3, 8, 17)]


def test_a_loop_that_python_runs_has_a_limit(monkeypatch):
    monkeypatch.setattr(limits, "LIMIT", 500)
    source = "out = []\nfor k in range(10_000):\n    out = [*out, x + k]"
    with pytest.raises(tm.TensorError, match=r"unrolls to more than 500 operations .*gives out 1 value and 2 values"):
        cell(source, {"x": X, "np": np})
    found = cell("y = x\nfor k in range(10_000):\n    y = y + k", {"x": X, "np": np})
    assert regions(found) == {"loop": 1}


def test_frames_made_here_are_marked():
    found = cell("for k in range(3):\n    y = x * k\n", {"x": X})
    iteration = found.values["__tensor_iteration__"]
    assert is_part(iteration.__code__)


def test_recursion_where_values_are_there():
    source = (
        "def fib(n):\n    if n < 2:\n        return n\n    return fib(n - 1) + fib(n - 2)\ny = fib(x[0, 3] + 2)\n"
        "def fact(r, x):\n    return r if x <= 1 else fact(r * x, x - 1)\nz = fact(1.0, x[1, 1])"
    )
    check(source, x=X)
    assert regions(cell(source, {"x": X})) == {"while": 1}


def test_returns_of_different_numbers_of_values_are_those_of_the_branch():
    def several(x):
        if x[0] > 0:
            return x, x
        return x, x, x

    def named(x):
        if x[0] > 0:
            pair = (x, None)
        else:
            x = x + 1
            pair = x, x
        return pair

    for function in (several, named):
        captured = tm.tensor(function)
        for x in (np.ones(2), -np.ones(2)):
            expected, found = function(x), captured(x)
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                assert one is other is None or np.array_equal(one, other)
