"""``assert`` and ``raise`` on data: the graph raises what Python raises, where Python raises it, and nothing removes that."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import captured, cell, check

SOURCE = """
class Own(Exception):
    pass

def asserted(x):
    assert x.sum() > 0, f"sum {x.sum():.2f} of {x[0]!r}"
    return x * x

def bare(x):
    assert x[0] > 0
    return x * 2

def raised(x):
    if x.sum() < 0:
        raise ValueError(f"negative: {x[0]}", 3)
    return x**3

def in_a_loop(x):
    t = 0.0
    for k in range(x.shape[0]):
        if x[k] < 0:
            raise KeyError(k)
        t = t + np.sqrt(x[k])
    return t

def in_a_while(x):
    y, n = x[0], 0
    while y > 1:
        y = y / 2
        n += 1
        assert n < 6, "too long"
        if n > 3:
            if x[0] > 100:
                raise Own("big")
            raise Own("four", n, y)
    return y * n

def in_branches(x):
    if x[0] > 0:
        if x[0] > 10:
            raise ValueError("large")
        y = x * 2
    else:
        assert x[0] > -5, "small"
        y = -x
    return y

def _held(x):
    if x[0] > 10:
        raise TypeError("held")
    return x * 3

def in_an_expression(x):
    return _held(x) if x[0] > 0 else -x

def _checked(x):
    if x[0] < 0:
        raise ArithmeticError("first")

def in_a_helper(x):
    _checked(x)
    if x[1] < 0:
        raise LookupError("second")
    return x + 1

def first_of_two(x):
    if x[0] < 0:
        raise ValueError("first")
    if x[0] < 1:
        raise KeyError("second")
    return x

def way_with_two(x):
    y = x * 3
    if x[0] > 0:
        if x[1] > 0:
            raise KeyError("both")
        raise ValueError("one")
    return y

def stored(x):
    y = x.copy()
    for k in range(3):
        y[k] = y[k] * 2
        assert y[k] < 50, k
    return y
"""
LABEL = "<raising>"
linecache.cache[LABEL] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), LABEL)
SPACE: dict[str, Any] = {"np": np}
exec(compile(SOURCE, LABEL, "exec"), SPACE)
FUNCTIONS = [
    n for n, f in SPACE.items() if getattr(getattr(f, "__code__", None), "co_filename", "") == LABEL and n[0] != "_"
]
V = np.array([1.5, 2.0, 3.0, 4.0])
ARGUMENTS = [V, -V, V * 8, V * 100, np.array([0.5, -1.0, 2.0, 3.0]), np.array([7.0, -1.0, -2.0, 3.0]), -9 * V]


def outcome(function: Any, *args: Any) -> tuple[Any, Any, int | None]:
    """What a function gives; or the class, the arguments and the line of what it raises."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(function(*args)), None, None
    except Exception as error:  # noqa: BLE001 (errors are what is compared)
        sites = getattr(error, "tensor_sites", None)
        trace, line = error.__traceback__, None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == LABEL:
                line = trace.tb_lineno
            trace = trace.tb_next
        return type(error), error.args, sites[0].line if sites else line


@pytest.mark.parametrize("name", FUNCTIONS)
def test_raises_what_python_raises_where_it_does(name):
    function = SPACE[name]
    ours = tm.tensor(function)
    kinds = set()
    for x in ARGUMENTS:
        expected, found = outcome(function, x), outcome(ours, x)
        kinds.add(expected[1] is None)
        if expected[1] is None:
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-13)
        else:
            assert found == expected
    assert kinds == {True, False}  # both have been tried


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_go_through_and_raise(name):
    function = SPACE[name]
    gradient = tm.grad(lambda x: tm.tensor(function)(x).sum())
    for x in ARGUMENTS:
        expected = outcome(function, x)
        found = outcome(gradient, x)
        if expected[1] is not None:
            assert found[:2] == expected[:2]
            continue
        for k in range(len(x)):
            step = np.zeros_like(x)
            step[k] = 1e-6
            difference = (np.sum(function(x + step)) - np.sum(function(x - step))) / 2e-6
            np.testing.assert_allclose(found[0][k], difference, rtol=1e-6, atol=1e-8)


def test_a_loop_with_a_check_is_one_region():
    graph = tm.trace(SPACE["in_a_loop"], "float64[n]")
    assert [n.op.name for n in graph.nodes].count("loop") == 1
    assert "check" in str(graph)
    assert "check" in str(tm.rewrite(graph, "real"))
    assert tm.parse(str(graph)) == graph


def test_batches_raise_what_the_first_element_that_fails_raises():
    batch = tm.vmap(SPACE["in_branches"])
    np.testing.assert_array_equal(batch(np.stack([V, -V])), np.stack([2 * V, V]))
    assert outcome(batch, np.stack([V, 10 * V]))[:2] == (ValueError, ("large",))
    told = tm.vmap(SPACE["asserted"])
    assert outcome(told, np.stack([V, -V]))[:2] == (AssertionError, ("sum -10.50 of -1.5",))


def test_within_try_it_is_caught():
    source = "def f(x):\n    try:\n        assert x > 0\n    except AssertionError:\n        return -x\n    return x\n"
    linecache.cache["<try>"] = (len(source), None, source.splitlines(keepends=True), "<try>")
    space: dict[str, Any] = {}
    exec(compile(source, "<try>", "exec"), space)
    captured = tm.tensor(space["f"])
    assert [captured(x) for x in (2.0, -3.0, 4.0, -5.0)] == [2.0, 3.0, 4.0, 5.0]


def test_a_function_that_only_checks():
    source = "def f(x):\n    assert x > 0, 'negative'\n\ndef g(x):\n    f(x)\n    return x * 2\n"
    linecache.cache["<only>"] = (len(source), None, source.splitlines(keepends=True), "<only>")
    space: dict[str, Any] = {}
    exec(compile(source, "<only>", "exec"), space)
    assert tm.tensor(space["g"])(2.0) == 4.0
    assert outcome(tm.tensor(space["g"]), -2.0)[:2] == (AssertionError, ("negative",))


CELLS = {
    "loop": "t = 0.0\nfor k in range(4):\n    assert x[k] < {limit}, k\n    t = t + x[k]",
    "gradient": "import tensormagic as tm\ndef f(v):\n    assert v.sum() < {limit}, 'sum'\n    return (v * v).sum()\ng = tm.grad(f)(x)",
    "try around a loop": (
        "n = 0\ntry:\n    for k in range(4):\n        if x[k] > {limit}:\n"
        "            raise ValueError(k)\n        n += 1\nexcept ValueError as error:\n    n = -n"
    ),
    "while": "v, n = x[0], 0\nwhile v < 100:\n    v = v * 2\n    n += 1\n    if v > {limit}:\n        raise OverflowError('v')",
}


@pytest.mark.parametrize("limit", [3.5, 1000])
@pytest.mark.parametrize("name", [n for n in CELLS if n != "gradient"])
def test_cells(name, limit):
    source = CELLS[name].format(limit=limit)
    check(source, close=1e-13, x=V)


def test_the_loop_of_a_cell_with_a_check_is_staged():
    found = cell(CELLS["loop"].format(limit=1000), {"x": V, "np": np})
    assert found.capture.effort.unstaged == {}


def test_a_gradient_in_a_cell_raises():
    assert captured(CELLS["gradient"].format(limit=1000), {"x": V}).error is None
    assert isinstance(captured(CELLS["gradient"].format(limit=3), {"x": V}).error, AssertionError)
