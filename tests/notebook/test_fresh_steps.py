"""The cell that a warning of a stale gradient offers: run, it is the descent that was meant."""

from __future__ import annotations

import html
import itertools
import json
import re
import warnings

import numpy as np
import pytest

from tensormagic.ir.errors import StaleGradientWarning
from tensormagic.notebook.cells.fresh_steps import fresh

RATE, STEPS = 0.05, 7
BEGINS = {
    "for": "for k in range(7):\n",
    "while": "k = 0\nwhile k < 7:\n    k += 1\n",
    "condition": "k = 0\nwhile np.linalg.norm({g}) > 1e-300 and k < 7:\n    k += 1\n",
    "break": "k = 0\nwhile True:\n    if k == 7 or np.linalg.norm({g}) < 1e-300:\n        break\n    k += 1\n",
    "nested": "for epoch in range(1):\n  for k in range(7):\n",
    "branch": "for k in range(7):\n    if k >= 0:\n",
    "with": "with np.errstate(all='ignore'):\n  for k in range(7):\n",
}
STEP_TEXTS = {
    "anew": "w = w - 0.05 * grad_w\nb = b - 0.05 * grad_b",
    "in place": "w -= 0.05 * grad_w\nb -= 0.05 * grad_b",
    "by a name": "g = 0.05 * grad_w\nw, b = w - g, b - 0.05 * grad_b",
    "out": "np.subtract(w, 0.05 * grad_w, out=w)\nb = b - 0.05 * grad_b",
    "elements": "for i in range(3):\n    w[i] -= 0.05 * grad_w[i]\nb -= 0.05 * grad_b",
    "items": "for i, g in enumerate(grad_w):\n    w[i] -= 0.05 * g\nb -= 0.05 * grad_b",
    "on one line": "w -= 0.05 * grad_w; b -= 0.05 * grad_b",
    "with a comment": "# downhill\nw -= (0.05\n      * grad_w)  # along the slope\nb -= 0.05 * grad_b",
}
CELL = "%%tensor {name}--grad w,b\nloss = np.mean((X @ w + b - y) ** 2)\nloss"


def descended(notebook) -> tuple[np.ndarray, float]:
    """What seven steps along the formula's own gradient come to."""
    X, y, w, b = notebook["X"], notebook["y"], np.array(notebook["w"], float), float(notebook["b"])
    for _ in range(STEPS):
        error = X @ w + b - y
        w, b = w - RATE * 2 * X.T @ error / len(y), b - RATE * 2 * error.mean()
    return w, b


def indented(text: str, head: str) -> str:
    last = head.rstrip("\n").rpartition("\n")[2]
    depth = len(last) - len(last.lstrip()) + (4 if last.rstrip().endswith(":") else 0)
    return "".join(" " * depth + line + "\n" for line in text.splitlines())


def offered(notebook, cell: str) -> str:
    """The text that the warning of a cell offers; the notebook stays as it was."""
    kept = {name: np.array(notebook[name]) for name in ("w", "b")}
    with pytest.warns(StaleGradientWarning):
        shown = notebook.ok(cell).displays
    for name, value in kept.items():
        notebook[name] = value if value.ndim else float(value)
    return texts(shown)[-1]


def texts(displays) -> list[str]:
    """What a page without widgets shows behind a click."""
    (page,) = [data["text/html"] for data in displays if "The cell, rewritten" in data.get("text/html", "")]
    return [html.unescape(text) for text in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)]


@pytest.mark.parametrize(("begin", "step"), list(itertools.product(BEGINS, STEP_TEXTS)))
def test_the_cell_that_is_offered_goes_downhill(notebook, begin, step):
    head = BEGINS[begin].format(g="grad_w")
    cell = head + indented(STEP_TEXTS[step], head)
    notebook.ok(CELL.format(name="objective "))
    expected = descended(notebook)
    better = offered(notebook, cell)
    with warnings.catch_warnings(action="error"):
        notebook.ok(CELL.format(name="objective "))
        notebook.ok(better)
    np.testing.assert_allclose(np.asarray(notebook["w"], float), expected[0], rtol=1e-12, atol=1e-14)
    assert float(notebook["b"]) == pytest.approx(expected[1], rel=1e-12, abs=1e-14)


def test_comments_and_layout_stay():
    text = "# ours\nfor k in range(9):  # nine\n\n    w -= (0.1  # rate\n          * grad_w)\n\nprint(w)"
    assert fresh(text, {"grad_w": "w"}, set(), "loss", package="tm") == (
        '# ours\nstep = tm.value_and_grad(loss, "w")\nfor k in range(9):  # nine\n\n'
        "    value, grad_w = step(w=w)\n    w -= (0.1  # rate\n          * grad_w)\n\nprint(w)"
    )


def test_names_that_are_in_use_are_left_alone():
    better = fresh("step = 0.1\nfor k in range(9):\n    w -= step * grad_w", {"grad_w": "w"}, set(), "loss", {"value"})
    assert "step_now = tm.value_and_grad(loss" in better
    assert "value_now, grad_w = step_now(w=w)" in better
    assert better.splitlines()[1] == "import tensormagic as tm"


@pytest.mark.parametrize(
    "text", ["while abs(grad_w) > 1:\n    w -= grad_w\n    if w > 3:\n        continue\n    w += 0", "print(w)"]
)
def test_where_no_place_is_simple_nothing_is_offered(text):
    assert fresh(text, {"grad_w": "w"}, {"w"}, "loss") == ""


@pytest.mark.parametrize(
    "text", ["for i in range(3):\n    w[i] -= 0.1 * grad_w[i]", "for i, g in enumerate(grad_w):\n    w[i] -= 0.1 * g"]
)
def test_a_loop_over_the_elements_is_one_step(notebook, text):
    notebook.ok(CELL.format(name=""))
    with warnings.catch_warnings(action="error"):
        notebook.ok(text)


def test_a_cell_without_a_name_gets_one(notebook):
    notebook["objective"] = "the notebook's own"
    notebook.ok(CELL.format(name=""))
    with pytest.warns(StaleGradientWarning, match=r"Name that cell \(%%tensor objective_now --grad") as told:
        shown = notebook.ok("for k in range(3):\n    w = w - 0.1 * grad_w\n    b = b - 0.1 * grad_b").displays
    assert len(told) == 1
    assert str(told[0].message).startswith(
        "grad_w and grad_b belong to the w and b that In[1] read; w and b have changed"
    )
    first, second = texts(shown)
    assert first.startswith("%%tensor objective_now --grad w,b\nloss =")
    assert "step = " in second
    notebook.ok(first)
    notebook.ok(second)
    assert notebook["objective"] == "the notebook's own"


def test_a_captured_cell_is_offered_as_a_captured_cell(notebook):
    notebook.ok(CELL.format(name="objective "))
    expected = descended(notebook)
    cell = "%%tensor -q\nfor k in range(7):\n    w = w - 0.05 * grad_w\n    b = b - 0.05 * grad_b"
    better = offered(notebook, cell)
    assert better.startswith("%%tensor -q\n")
    notebook.ok(better)
    np.testing.assert_allclose(np.asarray(notebook["w"], float), expected[0], rtol=1e-12)


def test_the_button_knows_the_cells(notebook):
    from tensormagic.notebook.widgets.strips import Rewrite

    notebook.ok(CELL.format(name="objective "))
    with pytest.warns(StaleGradientWarning):
        notebook.ok("for k in range(3):\n    w = w - 0.1 * grad_w")
    live = notebook.shell._tensormagic.magics.views._live
    (strip,) = [view for views in live.values() for view in views if isinstance(view, Rewrite)]
    assert [each["now"] for each in strip.cells] == ["for k in range(3):\n    w = w - 0.1 * grad_w"]
    assert "step(w=w)" in strip.cells[0]["better"]
    assert "Set w back to np.zeros(3)" in strip.after
    assert strip.words.startswith("Changes the text of this cell, as above")
    assert "Undo takes it back" in strip.words
    assert json.dumps(strip.cells)
