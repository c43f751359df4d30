"""Cells whose sizes depend on data are shown like any other: with the sizes of this run, on every panel."""

import numpy as np
import pytest

CELL = """%%tensor {options}
chosen = y[y > 0]
k = X[:, 0].argmax()
total = (chosen ** 2).sum() + X[:k].sum() * X[k, 1]
{last}"""


@pytest.mark.parametrize(
    "options", ["", "--grad X", "--show graph", "--show profile", "--show annotate", "--show code", "--show rewrites"]
)
def test_panels(notebook, options):
    ran = notebook.ok(CELL.format(options=options, last="total"))
    assert "float64" in ran.data["text/plain"]


def test_an_array_with_a_size_of_data(notebook):
    ran = notebook.ok(CELL.format(options="", last="chosen * 2"))
    count = int((notebook.shell.user_ns["y"] > 0).sum())
    assert f"[{count}]" in ran.data["text/plain"]
    again = notebook.ok("%%tensor\nchosen.sum() / chosen.shape[0]")
    assert "float64" in again.data["text/plain"]
    assert notebook.ok("chosen.shape").value == (count,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("u + a", "sizes do not fit: 5 and 4"),
        ("np.dot(a, u)", "sizes do not fit: 4 and 5"),
        ("b = a.copy()\nb[:] = u; b", "could not broadcast input array from shape (5,) into shape (4,)"),
        ("b = a.copy()\nb[2:] = u[u > 1]; b", "could not broadcast input array from shape (3,) into shape (2,)"),
    ],
)
def test_an_error_of_a_size_tells_the_number_at_the_line_that_asks_for_it(notebook, text, said):
    """It named the size by what computes it, or stood at the line where that is."""
    notebook["v"], notebook["a"] = np.array([1.0, 0.0, 2.0, 3.0, 4.0, 4.0]), np.ones(4)
    notebook.ok("%%tensor\nu = np.unique(v)")
    ran = notebook(f"%%tensor\n{text}")
    assert said in str(ran.error)
    assert f"Cell In[2], line {text.count(chr(10)) + 2}" in ran.out
