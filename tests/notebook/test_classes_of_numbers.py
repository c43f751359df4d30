"""Numbers of a data-dependent class are in a cell of the class that Python gives; errors that code catches are NumPy's."""

import numpy as np
import pytest

from tests.notebook.conftest import Notebook
from tests.notebook.sameness import difference, form

CELLS = {
    "branches": (
        "a, b, c = 2, True, np.int32(4)\nif x[0] > 5:\n    a = 2.5\nif x[0] > 5:\n    b = 1\nif x[0] < 5:\n    c = 7\nfound = a, b, c"
    ),
    "expressions": "found = (x[0] if x[1] > 1 else 0, 0 if x[1] > 1 else x[0], x.any() or 3, [1 if v > 1 else v for v in x])",
    "a loop of single precision": "t = 0.0\nfor v in np.sin(np.arange(30)).astype(np.float32):\n    if v > 0:\n        t += v\nfound = t",
    "a grid": "lo, hi = x[0], x[1]\nfound = np.mgrid[lo:hi:0.25], np.r_[lo:hi:0.5], np.arange(lo, hi, 0.1)",
    "an error": "try:\n    x @ np.ones(3)\nexcept ValueError as e:\n    found = type(e).__name__, repr(e), e.args, str(e)",
    "names of functions": "fs = [lambda: k for k in range(2)]\nwhile x[0] > 0:\n    x = x - 1\n    g = lambda: 0\nfound = fs[0], g",
    "a callable that is gone over": (
        "class C:\n    def __iter__(self): return iter(x)\n    def __call__(self): return 0\nfound = list(map(float, C()))"
    ),
    "one line of the shell": "    found = 1\n    y = found + 1",
}


@pytest.mark.parametrize("name", CELLS)
def test_cells(notebook: Notebook, name: str):
    found = []
    for magic in ("%%tensor -q\n", ""):
        notebook["np"], notebook["x"] = np, np.array([1.0, 2.0])
        notebook.ok(magic + CELLS[name])
        found.append(form(notebook["found"]))
    assert list(difference(*reversed(found))) == []


def test_a_magic_without_its_sign(notebook: Notebook):
    here = notebook.ok("pwd").value
    assert notebook.ok("%%tensor\npwd").value == here


def test_tables_are_printed_as_tables(notebook: Notebook):
    """With labels and names, and with columns whose names lazy arrays have for something else."""
    pytest.importorskip("pandas")
    notebook.ok("import pandas as pd\ndf = pd.DataFrame({'level': [1.0, 2.0], 'labels': [4.0, 5.0]}, index=['x', 'y'])")
    cell = "s, t = df.level * 2, df.level + df.labels\nprint(df, s, t, df.mean(), df[df.labels > 4], s.name, t.name, df.labels)"
    assert notebook.ok(f"%%tensor -q\n{cell}").out == notebook.ok(cell).out
