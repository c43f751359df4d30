"""Functions of ``tm.tensor`` that print in loops, called in cells: in order, at once, and with a graph for gradients."""

import numpy as np
import pytest

DEFINED = """
import numpy as np
import tensormagic as tm
@tm.tensor
def fit(X, y, w, n):
    for k in range(n):
        r = X @ w - y
        w = w - 0.1 * (X.T @ r) / len(y)
        if k % 200 == 0:
            print("step", k)
    return w
"""


@pytest.fixture
def defined(notebook):
    draw = np.random.default_rng(0)
    notebook.ok(DEFINED)
    notebook["X"], notebook["y"], notebook["w"] = draw.random((20, 3)), draw.random(20), np.ones(3)
    return notebook


def expected(notebook, n):
    w = notebook["w"].copy()
    for _ in range(n):
        w = w - 0.1 * (notebook["X"].T @ (notebook["X"] @ w - notebook["y"])) / 20
    return w


def test_it_prints_between_the_other_prints_of_a_cell(defined):
    ran = defined.ok("%%tensor\nprint('before')\nq = fit(X, y, w, 600)\nprint('behind')\nq.sum()")
    lines = ran.out.splitlines()
    assert lines[:5] == ["before", "step 0", "step 200", "step 400", "behind"]
    np.testing.assert_allclose(np.asarray(defined["q"]), expected(defined, 600))
    assert len(defined["q"].graph.nodes) < 30
    assert "step" not in defined.ok("q.sum()").out
    assert "step" not in defined.ok("%%tensor\nq * 2").out


def test_a_gradient_goes_through_its_loop(defined):
    ran = defined.ok("%%tensor --grad w\nloss = (fit(X, y, w * 2, 3) ** 2).sum()\nloss")
    assert ran.out.count("step") == 1
    step = np.eye(3) - 0.1 * defined["X"].T @ defined["X"] / 20
    moved = np.linalg.matrix_power(step, 3)
    end = defined["w"] * 2
    for _ in range(3):
        end = end - 0.1 * (defined["X"].T @ (defined["X"] @ end - defined["y"])) / 20
    np.testing.assert_allclose(np.asarray(defined["grad_w"]), 4 * moved.T @ end)


def test_a_plain_cell_hands_it_what_is_lazy(defined):
    defined.ok("%%tensor\ns = w * 0.5\ns")
    assert defined.ok("q = fit(X, y, s, 600)").out.count("step") == 3
    assert "step" not in defined.ok("print(q.sum())").out


def test_functions_and_loops_around_it_print_in_their_turn(defined):
    ran = defined.ok("%%tensor\nq = w\nfor i in range(2):\n    q = fit(X, y, q, 300)\n    print('pass', i)\nq.sum()")
    lines = ran.out.splitlines()
    assert lines[:6] == ["step 0", "step 200", "pass 0", "step 0", "step 200", "pass 1"]
    np.testing.assert_allclose(np.asarray(defined["q"]), expected(defined, 600))
