"""Loops over what is computed of pandas' columns and tables: elements by their places, and names of columns."""

import pytest

pd = pytest.importorskip("pandas")

START = """
import numpy as np, pandas as pd
s = pd.Series([1.0, 2.0, 3.0], index=['a', 'b', 'c'])
w = pd.Series(np.arange(100.0), index=np.arange(100)[::-1])
df = pd.DataFrame({'q': [1.0, 2.0], 'r': [4.0, 5.0]})
"""
CELLS = {
    "t = 0.0\nfor v in s * 2: t += v": "float(t)",
    "t = [v for v in s * 2]": "[float(v) for v in t]",
    "t = 0.0\nfor v in w * 2:\n  if v > 20: t += v": "float(t)",
    "t = [float(k * v) for k, v in enumerate(w + 1)][:5]": "t",
    "t = [c for c in df * 2]\nfor c in df + 1: t.append(float((df + 1)[c].sum()))": "t",
}


@pytest.mark.parametrize("cell", CELLS)
def test_iterations_over_tables(notebook, cell):
    space: dict[str, object] = {}
    exec(f"{START}\n{cell}", space)
    notebook.ok(START)
    notebook.ok(f"%%tensor -q\n{cell}")
    assert notebook.ok(CELLS[cell]).value == eval(CELLS[cell], space)
