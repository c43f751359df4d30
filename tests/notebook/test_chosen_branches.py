"""Branches of which a graph holds the side that was taken: a line above the graph says so; others are drawn with both sides."""

from __future__ import annotations

import pytest

from tensormagic.notebook.display.shown import Report

ONE = "so the graph has that side alone"
EACH = "and the graph has the side that was taken each time"
START = "X, w = np.linspace(-1, 1, 18).reshape(6, 3), 0.1 * np.ones(3)"
CELLS = {
    "a number of Python's on the other side": (
        "h = np.tanh(X[5] * w)\nif h.sum() > 0:\n    r = h @ h\nelse:\n    r = 0.0\nr",
        [f"line 3, if h.sum() > 0: true here, {ONE}"],
    ),
    "the other side of it": (
        "h = np.tanh(X[0] * w)\nif h.sum() > 0:\n    r = 0.0\nelse:\n    r = h @ h\nr",
        [f"line 3, if h.sum() > 0: false here, {ONE}"],
    ),
    "behind a loop": (
        "h = X[5]\nfor k in range(20):\n    h = np.tanh(8 * w * h + 0.1)\nif h.sum() > 0:\n    r = h @ h\nelse:\n    r = 0.0\nr",
        [f"line 5, if h.sum() > 0: true here, {ONE}"],
    ),
    "elif": (
        "h = X[0] * w\nif h.sum() > 0:\n    r = 'up'\nelif h[0] > 9:\n    r = 'down'\nelse:\n    r = h @ h\nr",
        [f"line 3, if h.sum() > 0: false here, {ONE}", f"line 5, if h[0] > 9: false here, {ONE}"],
    ),
    "an expression": (
        "r = (w * 2).sum() if w.sum() > 0 else 'none'\nr",
        [f"line 2, if w.sum() > 0: true here, {ONE}"],
    ),
    "in iterations that Python runs": (
        "h, q = X[5], []\nfor k in range(9):\n    h = np.tanh(8 * w * h)\n    if h.sum() > 0.1:\n        q.append(np.sort(h)[0])\nsum(q)",
        [f"line 5, if h.sum() > 0.1: true 9 of 9 times here, {EACH}"],
    ),
    "both sides are drawn": ("h = X[5] * w\nif h.sum() > 0:\n    r = h @ h\nelse:\n    r = h @ w\nr", []),
    "both sides are drawn in a loop": (
        "h = X[5]\nfor k in range(9):\n    h = np.tanh(8 * w * h)\n    if h.sum() > 0.1:\n        h = h * 0.5\nh.sum()",
        [],
    ),
    "known without data": ("r = X @ w\nif X.ndim > 1:\n    r = r + 1\nr.sum()", []),
}


@pytest.mark.parametrize("options", ["", "--grad w"])
@pytest.mark.parametrize("name", CELLS)
def test_a_graph_says_of_which_branches_it_has_one_side(notebook, monkeypatch, name, options):
    made: list[Report] = []
    bundle = Report.bundle
    monkeypatch.setattr(Report, "bundle", lambda self: (made.append(self), bundle(self))[1])
    notebook.ok(START)
    cell, said = CELLS[name]
    notebook.ok(f"%%tensor {options}\n{cell}")
    scene = made[-1].portrait.scene(made[-1].outcome.source)
    assert list(scene.chosen) == said
    assert scene.message()["chosen"] == said
    assert all(text in scene.told for text in said)
    titles = {v.title for view in scene.views[:1] for v in view.drawn.everything()}
    assert any("branch" in title for title in titles) == ("both sides" in name)
