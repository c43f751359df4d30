"""Gradients with respect to objects of the user's classes, and to what is at a path of attributes and items."""

import warnings

import numpy as np
import pytest

from tensormagic.capture.foreign.rebuilt_containers import Gradient
from tensormagic.ir.errors import ConstantGradientWarning

START = """
import numpy as np
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
rng = np.random.default_rng(0)
X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
class Linear:
    def __init__(self): self.w, self.b, self.n, self.name = np.array([0.5, -1.0, 2.0]), 0.25, 3, "linear"
    def __call__(self, x): return x @ self.w + self.b
class Layer:
    def __init__(self, i, o): self.W, self.b = rng.normal(size=(i, o)), np.zeros(o)
    def __call__(self, x): return np.tanh(x @ self.W + self.b)
class Net:
    def __init__(self):
        self.layers, self.scale, self.calls, self.seen = [Layer(3, 4), Layer(4, 1)], 1.5, 0, []
    def __call__(self, x):
        self.calls += 1
        for layer in self.layers: x = layer(x)
        return (self.scale * x)[:, 0]
class Slots:
    __slots__ = ("a", "b")
    def __init__(self): self.a, self.b = 2.0, np.ones(3)
class Scaled(Linear):
    factor = 2.0
    def __init__(self):
        super().__init__(); self.inner = Linear(); self.inner.outer = self
    @property
    def size(self): return self.w @ self.w
    def __call__(self, x): return self.factor * super().__call__(x) + self.inner(x) * self.size
@dataclass
class Config:
    rate: float; net: object
def loss(m): return np.mean((m(X) - y) ** 2)
m, net, slots, scaled, config = Linear(), Net(), Slots(), Scaled(), Config(0.5, Linear())
space = SimpleNamespace(a=1.5, b=np.arange(3.0), inner=SimpleNamespace(c=np.float32(2)))
cfg = {"lr": 0.1, "w": [np.ones(3), [1.0, 2.0]], "models": [Linear(), Linear()]}
"""
CELLS = {  # the cell, and for each gradient the place of what it is with respect to
    "m": ("np.mean((m(X) - y) ** 2)", ["m.w", "m.b"]),
    "m.w": ("loss(m)", ["m.w"]),
    "m.w,m.b": ("loss(m) + m.n", ["m.w", "m.b"]),
    "net": ("loss(net)", ["net.layers[0].W", "net.layers[0].b", "net.layers[1].W", "net.scale"]),
    "net.layers[1]": ("loss(net)", ["net.layers[1].W", "net.layers[1].b"]),
    "slots": ("slots.a * (slots.b ** 2).sum()", ["slots.a", "slots.b"]),
    "scaled": ("loss(scaled)", ["scaled.w", "scaled.b", "scaled.inner.w", "scaled.inner.b"]),
    "space": ("space.a * (space.b ** 2).sum() * space.inner.c", ["space.a", "space.b"]),
    "config": ("config.rate * loss(config.net)", ["config.rate", "config.net.w"]),
    "cfg['lr']": ("cfg['lr'] ** 2 * cfg['w'][0].sum()", ["cfg['lr']"]),
    "cfg['w']": ("(cfg['w'][0] ** 2).sum() * cfg['w'][1][0]", ["cfg['w'][0]"]),
    "cfg['models'][1].b": ("sum(loss(k) for k in cfg['models'])", ["cfg['models'][1].b"]),
    "m.b": ("v = 0.0\nwhile v < 4.99:\n    v = v + m.b * m.b\nv * m.w.sum()", ["m.b"]),
}


def at(notebook, text):
    """What an expression is in the notebook."""
    return eval(text, notebook.shell.user_ns)


def numeric(notebook, cell, place):
    """A central difference of the cell's value, by Python, for the first element of what is at ``place``."""
    found = []
    old = at(notebook, place)
    for step in (1e-6, -1e-6):
        new = old + step if np.ndim(old) == 0 else np.array(old, copy=True)
        if np.ndim(old):
            new.flat[0] += step
        notebook.shell.user_ns["_new"] = new
        notebook.ok(f"{place} = _new")
        notebook.ok(f"{cell.rpartition(chr(10))[0]}\n_found = {cell.rpartition(chr(10))[2]}")
        found.append(float(notebook["_found"]))
    notebook.shell.user_ns["_new"] = old
    notebook.ok(f"{place} = _new")
    return (found[0] - found[1]) / 2e-6


@pytest.mark.parametrize("asked", CELLS)
@pytest.mark.parametrize("plain", ["", " --plain"])
def test_gradients_are_those_of_differences(notebook, asked, plain):
    notebook.ok(START)
    cell, places = CELLS[asked]
    root = places[0].partition(".")[0].partition("[")[0]
    before = at(notebook, f"repr(vars({root}) if hasattr({root}, '__dict__') else {root})") if root != "net" else ""
    notebook.ok(f"%%tensor -q{plain} --grad {asked}\n{cell}")
    if root != "net":  # which counts its calls
        assert at(notebook, f"repr(vars({root}) if hasattr({root}, '__dict__') else {root})") == before
    for place in places:
        slope = np.asarray(at(notebook, f"grad_{place}"))
        assert slope.shape == np.shape(at(notebook, place))
        np.testing.assert_allclose(slope.flat[0], numeric(notebook, cell, place), rtol=1e-5, atol=1e-8)


def test_the_gradient_of_an_object_has_its_attributes(notebook):
    notebook.ok(START)
    ran = notebook("%%tensor --grad net\nloss(net)")
    lines = ran.data["text/plain"].splitlines()  # many gradients have a row each
    assert [line.partition(" ")[0] for line in lines if line.startswith("grad_")] == [
        *(f"grad_net.layers[{k}].{name}" for k in (0, 1) for name in ("W", "b")),
        "grad_net.scale",
    ]
    found = notebook["grad_net"]
    assert type(found) is Gradient
    assert sorted(vars(found)) == ["layers", "scale"]
    assert at(notebook, "net.calls") == 1


def test_what_the_cell_changes_in_the_object_stays(notebook):
    notebook.ok(START)
    notebook.ok("%%tensor -q --grad m\nm.w -= 0.5\nm.b = m.b * 2\nm.w.sum() * m.b")
    np.testing.assert_array_equal(at(notebook, "m.w"), [0.0, -1.5, 1.5])
    assert float(at(notebook, "m.b")) == 0.5
    assert float(at(notebook, "grad_m.b")) == 0.0
    np.testing.assert_array_equal(at(notebook, "grad_m.w"), [0.5, 0.5, 0.5])


def test_an_error_leaves_the_object_as_it_was(notebook):
    notebook.ok(START)
    ran = notebook("%%tensor --grad m\nloss(m) + np.zeros(7) @ m.w")
    assert ran.error is not None
    assert type(at(notebook, "m.b")) is float
    assert type(at(notebook, "m.w")) is np.ndarray


@pytest.mark.parametrize(
    ("asked", "said"),
    {
        "m.q": "there is no m.q\nHint: There are derivatives with respect to m.w, m.b.",
        "m.n": "m.n is int: there is no derivative with respect to it",
        "m.name": "m.name is str: there is no derivative with respect to it",
        "cfg['models'][5]": "there is no cfg['models'][5]",
        "own.w": "there is no own before the cell runs\nHint: Make own in an earlier cell.",
        "np": "np is a module: there is no derivative with respect to it",
        "whole": "Hint: Make it an array of floats: whole = np.array(whole, dtype=float).",
        "m.w[i]": "'m.w[i]' is neither a variable nor a path like net.layers[0].w",
        "cfg['models'][-1]": "is neither a variable nor a path",
        "1": "'1' is neither a variable nor a path",
        "k": "Hint: Write 3.0 for 3, or k = float(k).",
    }.items(),
)
def test_what_has_no_derivative_is_refused_by_name(notebook, asked, said):
    notebook.ok(f"{START}\nk = 3\nwhole = [[1, 2], [3, 4]]")
    ran = notebook(f"%%tensor --grad {asked}\nown = Linear()\nloss(m) * k")
    assert ran.error is not None
    assert said in ran.out
    assert "np.astype" not in ran.out


def test_a_zero_gradient_names_the_path(notebook):
    notebook.ok(START)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        notebook.ok("%%tensor -q --grad m.b,m.w\n(m.w ** 2).sum()")
    (said,) = [w for w in found if w.category is ConstantGradientWarning]
    assert "does not depend on m.b: grad_m.b is zero" in str(said.message)


def test_training_moves_the_object(notebook):
    notebook.ok(START)
    notebook.ok("before = float(loss(m))")
    for _ in range(4):
        notebook.ok("%%tensor -q --grad m.w,m.b\nvalue = loss(m)\nvalue")
        notebook.ok("m.w = m.w - 0.05 * grad_m.w; m.b = m.b - 0.05 * grad_m.b")
    assert float(notebook["value"]) < notebook["before"]
