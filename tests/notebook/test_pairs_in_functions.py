"""A loss over all pairs of rows in a function: said once below the cell that asks for its gradient."""

import numpy as np
import pytest

SAID = (
    "line 2: X @ v has shape (40, 1) and y has shape (40,), so X @ v - y has shape (40, 40): every row with every row. "
    "To pair them one by one, write y[:, None]."
)


@pytest.fixture
def fitted(notebook):
    notebook["y"], notebook["v"] = np.arange(40.0), np.zeros((3, 1))
    notebook.ok("import tensormagic as tm")
    notebook.ok("def loss(v):\n    return np.mean((X @ v - y) ** 2)")
    return notebook


@pytest.mark.parametrize(
    "ask", ["tm.grad(loss)(v)", "tm.value_and_grad(loss)(v)[0]", "step = tm.grad(loss)\nstep(v); step(v)"]
)
def test_it_is_said_with_the_cell_and_the_line(fitted, ask):
    assert SAID in fitted.ok(ask).out
    assert SAID not in fitted.ok(ask).out


@pytest.mark.parametrize(
    "text",
    [
        "np.mean((X @ v - y[:, None]) ** 2)",
        "np.mean(((X @ v)[:, 0] - y) ** 2)",
        "np.mean((X @ v[:, 0] - y) ** 2)",
        "np.sum((v[:, None] - v) ** 2)",
    ],
)
def test_what_pairs_rows_on_purpose_or_not_at_all_says_nothing(fitted, text):
    fitted.ok(f"def other(v):\n    return {text}")
    assert "every row" not in fitted.ok("tm.grad(other)(v)").out


def test_nothing_is_said_of_a_value_alone(fitted):
    assert "every row" not in fitted.ok("loss(v)").out
