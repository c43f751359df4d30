"""Cells that close to equal graphs: each shows its own lines."""

import numpy as np
import pytest

FIRST = "%%tensor {}\n\n\nz = X @ w + b\n\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss"
SECOND = "%%tensor {}\nz = V @ u + c; loss = np.mean(np.log(1 + np.exp(-t * z)))\n\n\nloss"


@pytest.fixture
def twice(notebook):
    """The same computation over other variables, so that the graphs are equal and the inputs are not."""
    for name, other in {"X": "V", "w": "u", "b": "c", "y": "t"}.items():
        notebook[other] = notebook[name] + 1
    return notebook


def test_panels_show_the_lines_of_their_own_cell(twice):
    twice.ok(FIRST.format("--grad w,b"))
    for show in ("rewrites", "annotate"):
        data = twice.ok(SECOND.format(f"--grad u,c --show {show}")).data["text/plain"]
        assert "In[1]" not in data
        assert "line 4" not in data
        assert "line 6" not in data
    text = twice.ok(SECOND.format("--grad u,c --show annotate")).data["text/plain"]
    marked = [row for row in text.splitlines() if "softplus" in row and row.startswith("  2 ")]
    assert len(marked) == 1
    shown = twice.ok(FIRST.format("--grad w,b --show rewrites")).data["text/plain"]
    assert "In[5] line 6" in shown
    assert "In[2]" not in shown


@pytest.mark.parametrize(
    "later", [FIRST, SECOND.replace("V", "X").replace("t *", "y *").replace("u", "w").replace("c;", "b;")]
)
def test_parts_that_both_cells_share_are_told_at_the_lines_of_the_one_that_is_shown(notebook, later):
    """X and y are the same, w and b new: what is made of y and of numbers alone was there before."""
    notebook.ok(FIRST.format("--grad w,b"))
    notebook.ok("w = w + 0.5\nb = b + 0.5")
    told = notebook.ok(later.format("--grad w,b --show rewrites")).data["text/plain"]
    assert told.count("In[3] line") >= 5
    assert "In[1]" not in told


def test_lines_of_one_cell_that_holds_both(twice):
    text = twice.ok("%%tensor --show rewrites\na = np.log(1 + X**2).sum()\nq = np.log(1 + V**2).sum()\na + q").data[
        "text/plain"
    ]
    assert "line 2" in text
    assert "line 3" in text


def test_values_name_their_own_lines(twice):
    twice.ok(FIRST.format("-q"))
    first = twice["loss"]
    twice.ok(SECOND.format("-q"))
    assert "In[2] line 2" in twice["loss"].explain()
    assert "In[1]" not in twice["loss"].explain()
    assert "In[1] line 6" in first.explain()
    assert "In[2]" not in first.explain()


def test_errors_name_their_own_lines(twice):
    twice.shell.push({"A": np.zeros((3, 3)), "B": np.zeros((3, 3))})
    twice.ok("%%tensor -q\n\np = np.linalg.solve(A, w)")
    twice.ok("%%tensor -q\nq = np.linalg.solve(B, u)")
    assert twice("print(p)").out.splitlines()[:2] == ["Cell In[1], line 3", "    p = np.linalg.solve(A, w)"]
    assert twice("print(q)").out.splitlines()[:2] == ["Cell In[2], line 2", "    q = np.linalg.solve(B, u)"]
    assert "A: float64[3, 3]" in twice("print(p)").out


def test_rules_that_only_the_gradient_needs_say_so(notebook):
    """Nobody has written ``x * 1`` there."""
    notebook.ok("p, q = 0.5, 1.0")
    cell = "%%tensor --show rewrites --grad p\na = 1 / (1 + np.exp(-p))\n-(q * np.log(a) + (1 - q) * np.log(1 - a))"
    rows = notebook.ok(cell).data["text/plain"].splitlines()
    assert "line 3, gradient" in next(row for row in rows if row.startswith("x * 1 -> x"))
    assert "gradient" not in next(row for row in rows if row.startswith("1 / (1 + exp(-x))"))
