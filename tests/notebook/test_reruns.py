"""Cells that run again and again on what they have computed: each run starts from a value, and gradients go all the way back."""

import gc

import numpy as np

from tensormagic import session
from tensormagic.capture.values import live_values


def test_runs_of_a_cell_start_from_values(notebook, run_sizes, monkeypatch):
    monkeypatch.setattr(live_values, "LONG", 30)
    notebook.ok("import numpy as np\nX, w = np.eye(3) + 1, np.zeros(3)")
    for _ in range(15):
        notebook.ok("%%tensor --grad w --show none\nloss = np.mean((X @ w - 1) ** 2)\nloss")
        notebook.ok("w = w - 0.01 * grad_w\nprint(float(loss))")
    assert max(run_sizes) < 50
    matrix, w = np.eye(3) + 1, np.zeros(3)
    for _ in range(15):
        w = w - 0.01 * 2 / 3 * matrix.T @ (matrix @ w - 1)
    np.testing.assert_allclose(notebook["w"], w, rtol=1e-12)


def test_what_one_cell_computes_on_the_way_stays_fused(notebook, monkeypatch):
    monkeypatch.setattr(live_values, "LONG", 1)
    notebook.ok("%%tensor --show none\nz = np.sin(w + 1) * w\nloss = (z * z).sum()\nloss")
    assert not session.is_computed(notebook["z"].node)
    notebook.ok("%%tensor --show none --math real\n(z * 3).sum()")
    assert not session.is_computed(notebook["z"].node)  # its value is not that of another level
    notebook.ok("%%tensor --show none\n(z * 2).sum()")
    assert session.is_computed(notebook["z"].node)


def test_a_gradient_goes_back_through_what_was_let_go(notebook, monkeypatch):
    monkeypatch.setattr(live_values, "SEARCH_BYTES", 0)
    monkeypatch.setattr(live_values, "LARGE", 8)
    notebook.ok("import numpy as np\nx = np.array([1.0, 2.0])")
    notebook.ok("%%tensor --show none\ny = x * x")
    for _ in range(6):
        notebook.ok("y = y * y * 0.9\nprint(y)")
    notebook.ok("%%tensor --grad x --show none\ntotal = y.sum()\ntotal")
    x = np.array([1.0, 2.0])
    factor = 0.9**63
    np.testing.assert_allclose(notebook["grad_x"], 128 * x**127 * factor, rtol=1e-12)


def test_what_is_left_of_bodies_that_were_tried_is_in_nobodys_way(notebook):
    notebook.ok("import numpy as np\nx = np.arange(3.0)")
    notebook.ok("def h(x):\n    for i in range(3):\n        if x.sum() > i:\n            x = x + 2\n    return x")
    collects = gc.isenabled()
    gc.disable()  # a body that was tried holds itself
    try:
        for _ in range(4):
            notebook.ok("%%tensor --show none\nz = h(x)\nz")
    finally:
        if collects:
            gc.enable()
    np.testing.assert_array_equal(notebook["z"], [6.0, 7.0, 8.0])
