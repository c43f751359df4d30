"""Functions of the user's that SciPy calls back: those that change nothing are Python's own while the call lasts, the others as before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from tensormagic.capture import names
from tensormagic.capture.staging.calls import calls_back
from tests.notebook.conftest import Notebook
from tests.notebook.test_sessions import differences

pytest.importorskip("scipy")
START = """
import math
import numpy as np
from scipy import integrate, optimize
from numpy import sin
g, L, k = 9.81, 1.0, 0.1
A = np.array([[0.0, 1.0], [-2.0, -0.5]])
table = {'rate': 0.5, 'at': [1.0, 2.0]}
def helper(v): return np.array([v[1], -g / L * np.sin(v[0])])
"""
QUICK = {
    "a list": "def f(t, y):\n    a, b = y\n    return [b, -k * b - g / L * np.sin(a)]",
    "a store into a new array": "def f(t, y):\n    d = np.zeros_like(y)\n    d[0] = y[1]\n    d[1] = -g * sin(y[0])\n    return d",
    "stores in a loop": "def f(t, y):\n    d = np.empty(2)\n    for i in range(2):\n        d[i] = A[i] @ y\n    d *= 0.5\n    return d",
    "a helper and a default": "def f(t, y, k=k * 2):\n    return helper(y) - k * y",
    "a lambda over a lambda": "inner = lambda y, c: A @ y * c\nf = lambda t, y: inner(y, table['rate'])",
    "a comprehension": "def f(t, y):\n    return [sum(a * b for a, b in zip(row, y)) + g for row in A]",
    "a branch and math": "def f(t, y):\n    a = math.exp(-t) if t < 1 else 0.0\n    return np.linalg.norm(y) * np.array([y[1], a - y[0]])",
    "an error that is caught": "def f(t, y):\n    try:\n        c = A[5]\n    except IndexError:\n        c = 2\n    return -c * y",
    "a closure": "def make(c):\n    def f(t, y):\n        return -c * y\n    return f\nf = make(A.sum())",
    "a function within": "def f(t, y):\n    at = sorted(y, key=lambda v: -v * g)\n    return np.array([at[0] - y[0], -y[1]])",
    "a lazy matrix": "B = A * 2 - np.eye(2)\ndef f(t, y): return B.dot(y)",
}
AS_BEFORE = {
    "counts": "n = 0\ndef f(t, y):\n    global n\n    n += 1\n    return -y",
    "appends": "at = []\ndef f(t, y):\n    at.append(t)\n    return A @ y",
    "stores into an array of the cell": "last = np.zeros(2)\ndef f(t, y):\n    last[:] = y\n    return -y",
    "stores by a method": "last = np.zeros(2)\ndef f(t, y):\n    last.fill(t)\n    return -y",
    "stores into a part": "last = np.zeros(2)\ndef f(t, y):\n    d = last[:]\n    d[0] = t\n    return -y",
    "an operator in place on a part": "last = np.zeros(2)\ndef f(t, y):\n    d = last.reshape(2)\n    d += 1\n    return -y",
    "a ufunc into an array": "last = np.zeros(2)\ndef f(t, y):\n    np.add(last, 1, last)\n    return -y",
    "draws": "rng = np.random.default_rng(0)\ndef f(t, y): return -y * rng.random()",
    "an object": "class P:\n    n = 0\n    def rhs(self, t, y):\n        self.n += 1\n        return -2.0 * y\np = P()\nf = p.rhs",
    "a list that it keeps": "held = [0.0]\ndef f(t, y):\n    held[0] = t\n    return -y",
}
CALLS = (
    "s = integrate.solve_ivp(f, (0, 0.5), [0.3, 0.1])\nr = s.y[:, -1], s.nfev",
    "r = integrate.odeint(f, [0.3, 0.1], [0, 0.2, 0.4], tfirst=True)",
)


def called(notebook: Notebook, monkeypatch: pytest.MonkeyPatch, cells: list[str]) -> tuple[list[str], list[bool]]:
    """How cells differ from plain ones, and whether the functions of each call were Python's own."""
    quick: list[bool] = []
    own = calls_back.CallbackScope.written

    def written(self: calls_back.CallbackScope, functions: Iterable[Any]) -> dict[int, Any]:
        found = own(self, functions)
        quick.append(bool(found))
        return found

    monkeypatch.setattr(calls_back.CallbackScope, "written", written)
    return differences(notebook, [(None, START), *(("", c) for c in cells)]), quick


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", QUICK)
def test_functions_that_change_nothing_are_pythons_own(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, name: str, call: str
) -> None:
    found, quick = called(notebook, monkeypatch, [f"{QUICK[name]}\n{call}", call, "r"])
    assert found == []
    assert quick
    assert all(quick)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", AS_BEFORE)
def test_functions_that_change_something_are_called_as_before(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    found, quick = called(notebook, monkeypatch, [f"{AS_BEFORE[name]}\n{CALLS[0]}", CALLS[0], "r"])
    assert found == []
    assert not any(quick)


KEPT = [
    "amp = 1.0\nr = integrate.ode(lambda t, y: amp * y).set_initial_value([1.0])\nr.integrate(1)\namp = 2.0\nout = r.integrate(2)[0]",
    "amp = 1.0\nstep = integrate.RK45(lambda t, y: amp * y, 0, [1.0], 2, max_step=0.1)\nstep.step()\namp = 5.0\nstep.step()\nout = step.y",
    "m = 1.0\ndef f(x): return (x[0] - m) ** 2\ndef c(x):\n    global m\n    m *= 1.1\nout = optimize.minimize(f, [0.0], callback=c).x, m",
    "at = []\nout = optimize.minimize(lambda x: ((x - A[1]) ** 2).sum(), [1.0, 0.0], callback=lambda x: at.append(x.copy())).x, len(at)",
    "s = np.zeros(1)\ndef f(x): return (x[0] - s[0]) ** 2\ndef cb(x): s[0] = 1.0\nout = optimize.minimize(f, [3.0], callback=cb).x",
    "def f(x):\n    print('at', x > 0)\n    return x - 0.3\nout = optimize.brentq(f, -1, 1)",
    "def f(x):\n    if x > 0.5:\n        raise ValueError('too large')\n    return x\nout = integrate.quad(f, 0, 1)",
    "def f(x):\n    return missing + x\nout = integrate.quad(f, 0, 1)",
    "def f(x, a, b): return a * np.exp(-b * x)\nx = np.linspace(0, 2, 9)\nout = optimize.curve_fit(f, x, f(x, 2.0, 1.5))[0]",
    "out = optimize.least_squares(lambda p: A @ p - table['at'], [0.0, 0.0], jac=lambda p: A).x",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cell", KEPT)
def test_what_libraries_keep_and_call_in_between(notebook: Notebook, cell: str) -> None:
    assert differences(notebook, [(None, START), ("", cell), (None, "out")]) == []


def test_names_like_that_of_a_solver_are_looked_for_once(notebook: Notebook, monkeypatch: pytest.MonkeyPatch):
    """A solver that a loop calls runs on values each time; what an error would say of it is not made anew."""
    words: list[str] = []
    monkeypatch.setattr(names, "alike", lambda word, _: words.append(word) or [])
    names._near.cache_clear()
    notebook.ok("import numpy as np, scipy.optimize as opt\nx = np.array([1.0, 2.0])")
    notebook.ok("def root(a): return opt.root(lambda v: v * v - a, 1.0).x[0]")
    notebook.ok("%%tensor\nfound = [root(a * x[0]) for a in range(1, 6)]")
    np.testing.assert_allclose([float(f) for f in notebook["found"]], np.sqrt(np.arange(1.0, 6.0)))
    assert len(words) == len(set(words))
    names._near.cache_clear()
