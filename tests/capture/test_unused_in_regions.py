"""What branches and iterations compute and do not use may fail: Python computes it, and so its errors are errors of the call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.graph import Graph

FAILING = {  # lines that may fail, for v and for k, and whose results nobody reads
    "a division": "1 / (v - 1)",
    "a root": "math.sqrt(v - 1.5)",
    "a logarithm": "u = math.log(v - 1.5)",
    "an index": "u = x[k + 5]",
    "an integer": "int(math.nan if v > 2 else v)",
    "a remainder": "u = k % (k - 3)",
    "an inverse": "u = np.linalg.inv(np.array([[v - 1.0, 0.0], [0.0, 1.0]]))",
    "two of them": "u = 1 / (v - 1)\n{0}w = math.sqrt(v - 1.5)",
    "one behind the other": "u = math.sqrt(v - 1.5)\n{0}w = 1 / u",
}
AROUND = {  # {0} is a line, behind {1}
    "nothing": "def f(x, v, k):\n    {0}\n    return v * 2\n",
    "a branch": "def f(x, v, k):\n    if v > 0.5:\n        {0}\n    return v * 2\n",
    "the other branch": "def f(x, v, k):\n    if v < 0.5:\n        v = v + 1\n    else:\n        {0}\n    return v * 2\n",
    "a branch that returns": "def f(x, v, k):\n    if v > 0.5:\n        {0}\n        return v\n    return -v\n",
    "one within one": "def f(x, v, k):\n    if v > 0.5:\n        if k > 0:\n            {0}\n        v = v + 1\n    return v\n",
    "a loop": "def f(x, v, k):\n    s = 0.0\n    for e in x:\n        {0}\n        s += e\n    return s\n",
    "a while": "def f(x, v, k):\n    while v > 0.5:\n        {0}\n        v = v - 1\n    return v\n",
    "in an iteration": "def f(x, v, k):\n    s = 0.0\n    for e in x:\n        if e > 0:\n            {0}\n        s += 1\n    return s\n",
    "a function in a branch": "def h(x, v, k):\n    {0}\ndef f(x, v, k):\n    if v > 0.5:\n        h(x, v, k)\n    return v\n",
    "a loop in a branch": "def f(x, v, k):\n    if v > 0.5:\n        for e in x:\n            {0}\n    return v\n",
}
MOVED = {  # two checks that no iteration changes are made before the loop, in either order: decision 0198
    ("a loop", "two of them"), ("a loop in a branch", "two of them"),
}  # fmt: skip
CALLS = [
    (np.array([1.0, -2.0, 3.0]), v, k) for v, k in ((0.25, 1), (2.75, -1), (1.0, -4), (1.25, 0), (2.25, 3), (0.75, 9))
]


def _function(text: str) -> Any:
    import linecache

    name = f"<unused {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"math": math, "np": np}
    exec(compile(text, name, "exec"), space)
    return space["f"]


def _of(function: Any, *args: Any) -> Any:
    """What a call gives, or the class of its error."""
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001 (what is compared)
        return next(k for k in (ZeroDivisionError, IndexError, ValueError, type(error)) if isinstance(error, k))


@pytest.mark.share(2)
@pytest.mark.parametrize("line", FAILING)
@pytest.mark.parametrize("around", AROUND)
def test_errors_are_pythons(around: str, line: str) -> None:
    text = AROUND[around]
    margin = next(row for row in text.splitlines() if "{0}" in row).partition("{")[0]
    plain = _function(text.format(FAILING[line].format(margin)))
    function = tm.tensor(plain)
    for x, v, k in CALLS:
        expected = _of(plain, x, v, k)
        found = _of(function, x, v, k)
        if (around, line) in MOVED and expected is ZeroDivisionError:
            assert found in {ZeroDivisionError, ValueError}
        else:
            assert found == expected, (v, k)


def test_slopes_where_nothing_fails() -> None:
    def f(v: Any) -> Any:
        if v > 0.5:
            1 / (v - 1)
            v = v * v
        return 3 * v

    slope = tm.grad(f)
    assert [slope(2.0), slope(0.25)] == [12.0, 3.0]
    with pytest.raises(ZeroDivisionError):
        slope(1.0)
    assert tm.vmap(f)(np.array([2.0, 0.25])).tolist() == [12.0, 0.75]


def test_what_is_used_is_computed_once() -> None:
    def f(x: Any) -> Any:
        s = 0.0
        for e in x:
            if e > 0:
                s = s + 1 / e
        return s

    assert "after" not in str(tm.trace(f, "float64[n]"))


def inverse_first(x, numbers):
    y = np.linalg.inv(x)
    total = 0.0
    for i in range(numbers.shape[0]):
        total = total + y[0, 0] * numbers[i]
    return total


def inverse_before_a_while(x, numbers):
    y = np.linalg.inv(x)
    k = 0
    while k < numbers.sum():
        k = k + y[0, 0]
    return k


def inverse_before_loops_in_a_loop(x, numbers):
    total = 0.0
    for k in range(2):
        y = np.linalg.inv(x + k)
        for i in range(numbers.shape[0]):
            for j in range(numbers.shape[0]):
                if numbers[j] > 0:
                    total = total + y[0, 0] * numbers[i]
    return total


@pytest.mark.parametrize("function", [inverse_first, inverse_before_a_while, inverse_before_loops_in_a_loop])
def test_what_was_there_before_a_loop_is_computed_once(function):
    x, numbers = np.eye(2) + 0.25, np.array([1.0, -2.0, 4.0])
    graph = tm.compile(function, x, numbers).graph
    depths = list(_depths(graph, "inv"))
    assert depths == [1 if function is inverse_before_loops_in_a_loop else 0]
    captured = tm.tensor(function)
    for given in (numbers, numbers[:0], numbers[::-1]):
        np.testing.assert_allclose(captured(x, given), function(x, given), rtol=1e-14)
    with pytest.raises(np.linalg.LinAlgError):
        captured(np.ones((2, 2)), numbers[:0])


def _depths(graph, name, depth=0):
    """In how many loops and branches each node of an op stands."""
    for node in graph.nodes:
        if node.op.name == name:
            yield depth
        for value in node.params.values():
            if isinstance(value, Graph):
                yield from _depths(value, name, depth + 1)
