"""Stores into arrays that containers and objects hold: ``self.w -= g`` in a captured function changes what it would in Python."""

import contextlib
import linecache
import textwrap
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

G = np.array([1.0, 2.0, 3.0])
PROGRAMS = {
    "a dictionary": "p['w'] -= g",
    "a rate beside it": "m.lr *= 0.5\nm.w -= m.lr * g",
    "every entry": "for k in p: p[k] -= lr",
    "a list": "for i in range(2): q[i] -= lr",
    "a list by zip": "for a, b in zip(q, [g, g[:2]]): a -= lr * b",
    "nested": "n['a'][0][1:] -= g[1:]",
    "by another name": "w = m.w\nw -= g",
    "out=": "np.subtract(m.w, g, out=m.w)",
    "at": "np.add.at(p['w'], [0, 0], g[0])",
    "a branch": "if g[0] > 5: p['w'] -= g\nelse: p['w'][0] = 9.0",
    "a loop by data": "while m.w.sum() > -9: m.w -= g",
    "read before and after": "x = m.w\nm.w -= g\np['new'] = x + 1",
    "bound anew": "m.w = m.w * 2\nm.w -= g",
    "exchanged": "p['w'], m.w = m.w, p['w']\np['w'] -= g",
    "a count before": "m.n = getattr(m, 'n', 0) + 1\nm.w -= g / m.n",
    "momentum": "if not hasattr(m, 'v'):\n    m.v = np.zeros(3)\n    m.u = m.v[1:]\nm.v *= 0.9\nm.v += g\nm.w[1:] -= m.u",
    "a gradient": "m.w -= lr * tm.grad(lambda w: ((w - g) ** 2).sum())(m.w)",
}
BY_HAND = {"a gradient": "m.w -= lr * 2 * (m.w - g)"}
STATE = ("p", "q", "m", "n", "w0", "m0", "q0")


def state():
    p, q, m = (
        {"w": np.arange(3.0), "b": np.ones(2)},
        [np.arange(3.0), np.ones(2)],
        SimpleNamespace(w=np.ones(3), lr=1.0),
    )
    n = {"a": [np.arange(3.0)]}
    return {"np": np, "tm": tm, "p": p, "q": q, "m": m, "n": n, "w0": p["w"], "m0": m.w, "q0": q[0]}


def shown(value):
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [shown(v) for v in value]
    return shown(vars(value)) if isinstance(value, SimpleNamespace) else np.asarray(value).tolist()


def function(text, space):
    lines = f"def f(g, lr=0.25):\n{textwrap.indent(text, '    ')}\n    return g.sum()\n"
    name = f"/inside/{abs(hash(text))}.py"
    linecache.cache[name] = len(lines), None, lines.splitlines(keepends=True), name
    exec(compile(lines, name, "exec"), space)
    return space["f"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_stored(name):
    ours, pythons = state(), state()
    captured = tm.tensor(function(PROGRAMS[name], ours))
    plain = function(BY_HAND.get(name, PROGRAMS[name]), pythons)
    for _ in range(3):
        assert captured(G) == plain(G)
        assert {k: shown(ours[k]) for k in STATE} == {k: shown(pythons[k]) for k in STATE}


def test_values_around_a_store_are_not_captured_again():
    space = state()
    captured = tm.tensor(function("p['w'] -= g", space))
    for _ in range(3):
        captured(G)
    (known,) = captured._exact.values()
    captured(G)
    assert captured._exact[next(iter(captured._exact))] is known
    space["p"]["w"] = np.zeros(3)
    captured(G)
    assert space["p"]["w"].tolist() == (-G).tolist()
    assert space["w0"].tolist() == (np.arange(3.0) - 4 * G).tolist()


def test_derivatives_store_as_the_function_does():
    p = {"w": np.zeros(3)}

    def f(x):
        p["w"] -= x
        return np.sum(p["w"] * x**2)

    value, slope = tm.value_and_grad(f)(2.0)
    assert (value, slope) == (-24.0, -36.0)
    assert p["w"].tolist() == [-2.0] * 3


UNCAPTURED = {
    "t[0][:] -= g": "stores into an array that is neither an argument",
    "m.w -= g\no.kept = m.w": "keeps it, or a part of it, in another object",
}


@pytest.mark.parametrize("text", UNCAPTURED)
def test_what_no_graph_does_is_pythons_in_a_call(text):
    space, expected = ({**state(), "t": (np.zeros(3),), "o": SimpleNamespace()} for _ in range(2))
    captured, own = tm.tensor(function(text, space)), function(text, expected)
    with pytest.raises(CaptureError):
        tm.vmap(captured)(np.ones((2, 3)))
    assert shown(space["p"]) == shown(state()["p"])
    for k in range(3):
        with contextlib.nullcontext() if k else pytest.warns(tm.PlainRunWarning, match=UNCAPTURED[text]):
            captured(G)
        own(G)
        assert [shown(space[n]) for n in (*STATE, "t", "o")] == [shown(expected[n]) for n in (*STATE, "t", "o")]
    assert "kept" not in text or space["o"].kept is space["m"].w


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_a_store_into_an_array_that_a_name_has_too_is_pythons():
    found, expected = state(), state()
    captured, own = tm.tensor(function("p['w'] -= w0", found)), function("p['w'] -= w0", expected)
    for _ in range(3):
        captured(G)
        own(G)
        assert shown(found["p"]) == shown(expected["p"])


INDEXED = {
    "rows": "return self.X[rows].sum(0)",
    "rows and columns": "return self.X[rows, 1] * self.y[rows]",
    "an item": "return self.d['X'][rows].mean() + self.L[0][rows].sum()",
    "a computed place": "i = np.argmax(rows); return self.X[i], self.L[0][i, 0]",
    "a slice": "return self.X[:np.max(rows)].sum()",
    "a loop": "t = 0.0\nfor i in self.perm:\n    t = t + self.X[i] * rows[0]\nreturn t",
    "chosen numbers": "r = np.flatnonzero(self.y > rows[0]); return self.X[r].sum()",
    "a store": "self.X[rows] = 7.0; return self.X.sum()",
}


@pytest.mark.parametrize("use", INDEXED)
def test_elements_that_data_choose_of_arrays_in_objects(use: str) -> None:
    """A method that takes rows of an attribute by an array: over calls between which the attributes change."""
    body = textwrap.indent(INDEXED[use].replace("; ", "\n"), " " * 8)
    text = f"""class Data:
    def __init__(self):
        self.X = np.arange(12.0).reshape(6, 2)
        self.y, self.d, self.L = np.arange(6.0), {{"X": self.X.copy()}}, [self.X + 1]
        self.perm = np.array([3, 1, 0])
    def step(self, rows):
{body}
"""
    space: dict[str, Any] = {"np": np, "__name__": "indexed"}
    linecache.cache["<indexed>"] = len(text), None, text.splitlines(keepends=True), "<indexed>"
    exec(compile(text, "<indexed>", "exec"), space)
    plain, data = space["Data"](), space["Data"]()
    step = tm.tensor(space["Data"].step)
    for k, rows in enumerate([[0, 5], [1, 2], [3, 3], [1, 0], [2, 4]]):
        expected, found = plain.step(np.array(rows)), step(data, np.array(rows))
        for e, f in zip(*[(v if isinstance(v, tuple) else (v,)) for v in (expected, found)], strict=True):
            np.testing.assert_array_equal(f, e)
        np.testing.assert_array_equal(data.X, plain.X)
        if k == 2:
            for one in (plain, data):
                one.X, one.perm = one.X * 2, one.perm[::-1].copy()
                one.y[2] = 9.0
