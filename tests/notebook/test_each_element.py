"""Functions that ``np.vectorize`` calls for each element: run as they are written where they have no effect, else one call at a time."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tensormagic.capture.staging.calls import each_element
from tests.notebook.sameness import difference, form

START = """import math
x = np.array([0.5, 1.0, 2.5, 4.0]); n = np.arange(4); made = []; table = {'low': np.array([1.0, 2.0]), 'high': [3.0, np.float32(4)]}
def half(v):
    print('half of', v)
    return v / 2
def away(v):
    made.append(v)
    return v
"""
AS_WRITTEN = {
    "a table of arrays": "def f(v):\n    t = table['low' if v < 2 else 'high']\n    print(f'{v:.1f}', t[0])\n    return t[1] * v + X[0, 0]",
    "what is not bound": "def f(v):\n    if v < 5:\n        c = v * 2\n    else:\n        print('large')\n    return c - 1",
    "a helper, that prints": "def f(v):\n    return half(v) + w.sum()",
    "itself": "def f(v):\n    print(v)\n    return 1.0 if v < 1 else v * f(v - 1)",
    "a loop": "def f(v):\n    k = 0\n    while v > 0.1:\n        v = v / 2\n        k += 1\n    print(k)\n    return k",
    "texts": "def f(v):\n    return 'hi' if v > 1 else 'lo'",
    "functions of NumPy and math": "def f(v):\n    print(np.floor(v), math.exp(v))\n    return np.where(v > 1, y[0], math.pi)",
    "a closure": "def maker(a):\n    def f(v):\n        print(a)\n        return v * a[1]\n    return f\nf = maker(w)",
    "a default": "def f(v, a=table['low']):\n    print(a)\n    return v * a[1]",
    "an error of its own": "def f(v):\n    print(v)\n    if v > 2:\n        raise ValueError(f'{v} is too large')\n    return v",
    "a name that is not there": "def f(v):\n    print(v)\n    return v if v < 2 else math.sqrt(-v)",
}
CALLED = {
    "an effect": "def f(v):\n    print(v)\n    made.append(v * 1)\n    return v",
    "an effect of a helper": "def f(v):\n    print(v)\n    return away(v)",
    "a store": "def f(v):\n    print(v)\n    w[0] = v\n    return v",
    "a store by an operator": "def f(v):\n    t = table['low']\n    t += v\n    print(v)\n    return t[0]",
    "a store by a function": "def f(v):\n    print(v)\n    np.copyto(w, v)\n    return v",
    "a store into an argument": "def f(v, t):\n    print(v)\n    t += 1\n    return v",
    "a name of the notebook": "def f(v):\n    global last\n    last = v\n    print(v)\n    return v",
    "an object": "class Unit:\n    k = 2.0\nu = Unit()\ndef f(v):\n    print(v)\n    return v * u.k",
    "draws": "def f(v):\n    np.random.seed(3)\n    print(v)\n    return v + np.random.rand()",
    "a function in a name": "def f(v):\n    g = made.append\n    g(v * 1)\n    return v",
}


def run(notebook, cell):
    """The variables that a cell may have changed; what it prints and raises."""
    ran = notebook(cell)
    printed = re.split("-----|Cell In", ran.out)[0].split("\n")  # before an error is told
    held = form([notebook.shell.user_ns.get(name) for name in ("r", "w", "table", "made", "last")])
    return held, [line for line in printed if line], type(ran.error), str(ran.error)


def both(notebook, definition, call):
    """A call in a cell and plainly, in notebooks that are alike otherwise."""
    found = []
    for magic in ("", "%%tensor -q\n"):
        notebook.ok(START)
        notebook.ok("r = last = None; w = np.array([1.5, 2.5, 0.0])")
        notebook.ok(definition)
        found.append(run(notebook, magic + call))
    return found


@pytest.mark.parametrize("what", AS_WRITTEN)
def test_functions_without_effects_run_as_they_are_written(notebook, monkeypatch, what):
    made = []
    own = each_element.as_written
    monkeypatch.setattr(each_element, "as_written", lambda *args: made.append(own(*args)) or made[-1])
    (plain, *told), (captured, *also) = both(notebook, AS_WRITTEN[what], "r = np.vectorize(f)(x * 1)")
    assert list(difference(plain, captured)) == []
    assert told == also
    assert all(f is not None for f in made)


@pytest.mark.parametrize("what", CALLED)
def test_functions_with_effects_do_what_python_does(notebook, what):
    call = f"r = np.vectorize(f)(x * 1{', n * 1.0' if 'argument' in what else ''})"
    (plain, *told), (captured, *also) = both(notebook, CALLED[what], call)
    assert list(difference(plain, captured)) == []
    assert told == also


def test_reading_for_each_element_takes_no_graph_for_each(notebook):
    notebook.ok(START)
    notebook.ok(AS_WRITTEN["what is not bound"])
    notebook.ok("%%tensor -q\nt = np.linspace(0, 4, 20_000)\nr = np.vectorize(f)(t)")
    assert np.array_equal(notebook["r"], np.linspace(0, 4, 20_000) * 2 - 1)


def test_what_a_gradient_leaves_out_is_said(notebook):
    notebook.ok(START)
    notebook.ok("def f(v):\n    print(v)\n    return v * w[0]")
    with pytest.warns(match="a number that depends on w was read here"):
        notebook.ok("%%tensor --grad w\nr = np.vectorize(f)(x)\n(r * w[1]).sum()")
    assert np.array_equal(notebook["grad_w"], [0, notebook["r"].sum(), 0])
