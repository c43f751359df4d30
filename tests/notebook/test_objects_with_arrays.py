"""Objects of the user's classes that take the arrays of a cell and store into them later: as in NumPy, by captured and plain cells."""

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.notebook.conftest import Notebook

CLASS = """
import numpy as np
class Wave:
    def __init__(self, ys, rate=4.0):
        self.ys = {taken}
        self.rate = rate
    def window(self): self.ys *= np.hamming(len(self.ys))
    def clip(self): self.ys[self.ys > 0.5] = 0.5
    def shift(self, by): self.ys += by
    def __add__(self, other): return Wave(self.ys + np.asarray(other.ys))
    def __getitem__(self, key): return np.asanyarray(self.ys)[key]
    def __setitem__(self, key, value): np.asarray(self.ys)[key] = value
    @property
    def times(self): return np.asarray(np.arange(len(self.ys)) / self.rate)
    @property
    def peak(self):
        if self.ys.max() > 0.5: return np.asarray(self.ys).max()
        return 0.5
"""
TAKEN = {
    "asarray": "np.asarray(ys)",
    "asanyarray": "np.asanyarray(ys)",
    "array without a copy": "np.array(ys, copy=None)",
    "at least": "np.atleast_1d(np.asarray(ys))",
    "as it is": "ys",
}
MADE = "x = np.linspace(0, 1, 6)\nw = Wave(np.sin(x))\nv = Wave(x * 3)"
CELLS = [
    "w.window()\na = w.ys.sum()",
    "w.clip(); w.shift(0.25)\nb = w[1:3] * 2",
    "u = w + v\nu.window()\nc = u.ys.max() + u.peak",
    "w[0] = 7.0\nd = w.peak + w.times.sum()",
    "ws = [Wave(k * x) for k in range(3)]\nfor one in ws: one.shift(1.0)\ne = sum(one.ys.sum() for one in ws)",
]
NAMES = "abcde"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where a module of the user's is written."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path / "waves_of_tests.py"
    sys.modules.pop("waves_of_tests", None)


@pytest.mark.parametrize("plain", ["all captured", "stores in plain cells"])
@pytest.mark.parametrize("taken", TAKEN)
def test_arrays_that_constructors_take(notebook: Notebook, taken: str, plain: str):
    text = CLASS.format(taken=TAKEN[taken])
    magic = itertools.cycle(["", "%%tensor\n"]) if plain != "all captured" else itertools.repeat("%%tensor\n")
    notebook.ok(text)
    notebook.ok("%%tensor\n" + MADE)
    for cell in CELLS:
        notebook.ok(next(magic) + cell)
    space: dict[str, object] = {}
    exec(text + MADE + "\n" + "\n".join(CELLS), space)
    for name in NAMES:
        np.testing.assert_allclose(np.asarray(notebook[name]), np.asarray(space[name]), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(notebook["w"].ys), np.asarray(getattr(space["w"], "ys")), rtol=1e-12)  # noqa: B009


def test_classes_that_a_cell_imports(notebook: Notebook, module: Path):
    module.write_text(CLASS.format(taken="np.asarray(ys)"))
    notebook.ok("%%tensor\nimport numpy as np\nfrom waves_of_tests import *\n" + MADE + "\nw.window()")
    notebook.ok("w.shift(1.0)")
    notebook.ok("%%tensor\nimport waves_of_tests\nz = waves_of_tests.Wave(w.ys)\nz.window()\nq = w.ys.sum()")
    x = np.linspace(0, 1, 6)
    expected = ((np.sin(x) * np.hamming(6) + 1.0) * np.hamming(6)).sum()  # z has the array of w
    np.testing.assert_allclose(float(notebook["q"]), expected, rtol=1e-12)


def test_a_gradient_goes_through_a_constructor(notebook: Notebook):
    notebook.ok(CLASS.format(taken="np.asarray(ys)") + "\nx = np.linspace(0, 1, 6)")
    notebook.ok("%%tensor --grad x\nw = Wave(np.sin(x))\nw.window()\n(w.ys ** 2).sum() + w.peak")
    x = np.linspace(0, 1, 6)
    slope = 2 * np.sin(x) * np.cos(x) * np.hamming(6) ** 2
    place = (np.sin(x) * np.hamming(6)).argmax()
    slope[place] += np.cos(x[place]) * np.hamming(6)[place]
    np.testing.assert_allclose(np.asarray(notebook["grad_x"]), slope, rtol=1e-12)


def test_classes_are_as_they_were_written_after_a_cell(notebook: Notebook):
    notebook.ok(CLASS.format(taken="np.asarray(ys)"))
    before = {name: getattr(f, "__code__", None) for name, f in vars(notebook["Wave"]).items()}
    notebook.ok("%%tensor\n" + MADE)
    ran = notebook("%%tensor\nw + v\n1 / 0")
    assert isinstance(ran.error, ZeroDivisionError)
    assert before == {name: getattr(f, "__code__", None) for name, f in vars(notebook["Wave"]).items()}


IMPORTING = """
def f(x):
    import numpy as np
    from math import pi as half, exp
    if exp(0.0) == 1.0:
        from scipy.special import expit as squash
    return squash(np.asarray(x)).sum() + half + np.linalg.norm(x)
class K:
    import numpy as inside
    def m(self, v):
        import numpy as np, os.path
        return np.tanh(v) + self.inside.pi * len(os.path.sep)
"""


@pytest.mark.parametrize("magic", ["", "%%tensor\n"])
def test_functions_of_a_cell_that_import(notebook: Notebook, magic: str):
    notebook.ok("%%tensor\nimport numpy as np\nx = np.arange(3.0)\n" + IMPORTING + "first = f(x), K().m(x)")
    notebook.ok(magic + "later = f(x), K().m(x)")
    space: dict[str, object] = {}
    exec("import numpy as np\nx = np.arange(3.0)\n" + IMPORTING + "later = f(x), K().m(x)", space)
    for name in ("first", "later"):
        for found, expected in zip(notebook[name], space["later"], strict=True):  # type: ignore[call-overload]
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
