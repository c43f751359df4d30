"""Numbers that a plain cell computes from lazy values: a later gradient by way of them says what it leaves out, and only then."""

import warnings

import pytest

from tensormagic.ir.errors import ConstantGradientWarning

START = """
import json, math, statistics
import numpy as np
from scipy import optimize
w = np.array([0.3, 1.7, 0.9])
b = 0.7
c = 2.5
class Run: pass
def cost(): return math.exp(m)
"""
LAZY = "%%tensor -q\nz = np.exp(w) * b\nm = z.mean()"
COMPUTED = {
    "a function of math": ("u = math.exp(z[0])", "u"),
    "a number and arithmetic": ("u = float(m) ** 2 + 1", "u"),
    "few digits": ("u = math.floor(float(m)) / 2 + 0 * float(m)", "u"),
    "NumPy's own arithmetic": ("u = np.asarray(z) * 3", "u"),
    "the value": ("u = z.numpy() + 1", "u"),
    "a list": ("u = [float(v) ** 2 for v in z]", "u[1]"),
    "a mean of a list": ("u = np.mean(z.tolist())", "u"),
    "statistics": ("u = statistics.fmean(z.tolist())", "u"),
    "a loop": ("u = 1.0\nfor v in z:\n    u *= math.sqrt(v)", "u"),
    "an iteration that reads the one before": ("u = t = 0.0\nfor v in z:\n    u += t\n    t = math.log(v)", "u"),
    "another name": ("t = float(m)\nu = 2 * t", "u"),
    "appended": ("u = []\nfor v in z.tolist():\n    u.append(v * 2)", "u[2]"),
    "in a dictionary": ("u = {'a': 1.0}\nu['b'] = float(m)", "u['b']"),
    "an attribute": ("u = Run()\nu.best = math.sin(m)", "u.best"),
    "stored into": ("u = np.zeros(3)\nfor i in range(3):\n    u[i] = math.exp(z[i])", "u"),
    "a function that reads it": ("u = cost()", "u"),
    "a function of the cell": ("def f(k):\n    return k * math.cos(m)\nu = f(2)", "u"),
    "several at once": ("t, u = 1, float(m) / 3", "u"),
    "a name within an expression": ("if (u := math.tan(m)) > 0:\n    pass", "u"),
    "a library": ("u = optimize.brentq(lambda t: t ** 3 - float(m), 0, 5)", "u"),
    "text": ("u = json.loads(json.dumps(float(m)))", "u"),
    "a timed cell": ("%%time\nu = math.exp(m)", "u"),
    "a timed line": ("%time u = math.exp(m)", "u"),
    "a cell that is captured by name only": ("%%tensor --plain\nu = math.exp(m)", "u"),
    "a branch": ("if m > 0:\n    u = math.exp(m)\nelse:\n    u = 0.0", "u"),
    "a value of two": ("u = math.exp(m) if m > 0 else 0.0", "u"),
}


@pytest.mark.parametrize("further", [False, True])
@pytest.mark.parametrize("wrt", ["w", "b"])
@pytest.mark.parametrize("name", COMPUTED)
def test_a_later_gradient_says_what_it_leaves_out(notebook, name, wrt, further):
    plain, use = COMPUTED[name]
    notebook.ok(START)
    notebook.ok(LAZY)
    notebook.ok(plain)
    if further:
        notebook.ok(f"q = {use} * 2 + 1")
        use = "q"
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        notebook.ok(f"%%tensor -q --grad {wrt}\n(({use}) * w).sum() + b")
    (said,) = [f for f in found if f.category is ConstantGradientWarning]
    assert f"{use} was computed here from numbers of lazy values, with what depends on {wrt}" in str(said.message)
    assert said.filename == f"In[{3 + further}]"
    assert use in ("q = u" if further else plain.splitlines()[said.lineno - 1]) or "[" in use
    notebook.ok(f"%%tensor -q --grad {wrt}\n(({use}) * w).sum() + b")  # told once


OTHERS = {
    "what decides a branch": "u = 0.1 if m > 1 else 0.5",
    "a comparison": "u = 2.0 * bool(m > 1)",
    "a length": "u = 1.0 / len(z)",
    "a shape": "u = z.shape[0] / 2",
    "a class": "u = 1.5 if isinstance(m, float) else 2.5",
    "beside it": "print(float(m))\nhistory = [float(m)]\nu = 3.5",
    "another part": "d = {'u': 1.5}\nd['m'] = float(m)\nu = d['u']\nu = 1.5",
    "bound anew": "u = float(m)\nu = 4.5",
    "all of it stored into": "u = np.zeros(3)\nu[:] = z\nu[:] = 1.5",
    "which element": "table = [0.25, 0.5, 0.75]\nu = table[int(m) % 3]",
    "another input": "t = float(m)\nu = c * 2",
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_move_with_it_is_not_told(notebook, name):
    notebook.ok(START)
    notebook.ok(LAZY)
    notebook.ok(OTHERS[name])
    notebook.ok("%%tensor -q --grad w,b\n(u * w).sum() + b")


def test_other_variables_are_not_told(notebook):
    notebook.ok(START)
    notebook.ok(LAZY)
    notebook.ok("u = math.exp(m)")
    notebook.ok("%%tensor -q --grad c\nu * c")
    notebook.ok("w = w * 2\nb = 0.9")  # others than it was made of
    notebook.ok("%%tensor -q --grad w,b\nu * w.sum() * b")


def test_the_same_number_bound_anew_is_another(notebook):
    notebook.ok(START)
    notebook.ok("%%tensor -q\nz = b * 0 + 2")
    notebook.ok("u = float(z) * 1.5")
    with pytest.warns(ConstantGradientWarning, match="u was computed here"):
        notebook.ok("%%tensor -q --grad b\nu * b")
    notebook.ok("u = 3.0")
    notebook.ok("%%tensor -q --grad b\nu * b + 1")


def test_parts_of_a_container_that_did_not_change_are_not_told(notebook):
    notebook.ok(START)
    notebook.ok(
        "run = Run()\nrun.scale, run.loss = np.array([0.5, 0.25, 0.125]), 0.0\nparts = {'k': 1.25, 'loss': 0.0}"
    )
    notebook.ok(LAZY)
    notebook.ok("run.loss = float(m)\nparts['loss'] = math.exp(m)")
    notebook.ok("%%tensor -q --grad w\n(run.scale * w).sum() * parts['k']")
    with pytest.warns(ConstantGradientWarning, match=r"run\.loss was computed here"):
        notebook.ok("%%tensor -q --grad w\nrun.loss * w.sum()")


def test_descent_by_plain_steps_is_not_told(notebook):
    """Nobody asks for the derivative of a step."""
    notebook.ok(START)
    notebook.ok("x, y, losses, m, lr = np.linspace(0, 1, 5), np.linspace(1, 3, 5), [], 0.0, 0.1\na = 0.2")
    for step in range(3):
        notebook.ok("%%tensor -q --grad a,b\nloss = ((a * x + b - y) ** 2).mean()\nloss")
        notebook.ok(
            "losses.append(float(loss))\nm = 0.9 * m + float(grad_a)\na = a - lr * m\nb -= lr * float(grad_b)\n"
            "if len(losses) > 1 and losses[-1] > losses[-2]:\n    lr = lr / 2\nbest = min(losses)"
        )
        notebook.ok(f"print({step}, losses[-1], best)")


def test_one_coordinate_after_the_other_is_not_told(notebook):
    notebook.ok(START)
    for name in "bcbc":
        notebook.ok(f"%%tensor -q --grad {name}\n(b * c - 1) ** 2 + b ** 2")
        notebook.ok(f"{name} = {name} - 0.1 * float(grad_{name})")
