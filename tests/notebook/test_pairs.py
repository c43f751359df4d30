"""The note under a cell whose loss is summed over all pairs of rows: where it is said, and where it is not."""

from __future__ import annotations

import pytest

DATA = """rng = np.random.default_rng(0)
X = rng.normal(size=(100, 3))
y = X @ np.array([1.0, -2.0, 0.5])
Y, s, x = y[:, None], np.sign(y), X[:, :1]
w, v, a, b = np.zeros((3, 1)), np.zeros(3), 1.0, 0.0"""
PAIRED = [
    (
        "w",
        "pred = X @ w\nloss = np.mean((pred - y)**2)\nloss",
        (
            "line 3: pred has shape (100, 1) and y has shape (100,), so pred - y has shape (100, 100): every row with every row. "
            "To pair them one by one, write y[:, None]."
        ),
    ),
    (
        "v",
        "np.mean((X @ v - Y)**2)",
        (
            "line 2: Y has shape (100, 1) and X @ v has shape (100,), so X @ v - Y has shape (100, 100): every row with every row. "
            "To pair them one by one, write Y[:, 0]."
        ),
    ),
    ("a,b", "e = y - (a * x + b)\nnp.sum(e**2) / len(y)", "so y - (a * x + b) has shape (100, 100)"),
    ("w", "np.mean(np.log(1 + np.exp(-s * (X @ w))))", "To pair them one by one, give both the same shape."),
    (
        "w",
        "np.mean(np.abs(np.subtract(X @ w, y)))",
        "the left operand has shape (100, 1) and the right operand has shape (100,), so the",
    ),
    ("w", "p = 1 / (1 + np.exp(-(X @ w)))\n-np.mean(s * np.log(p) + (1 - s) * np.log(1 - p))", "write s[:, None]."),
    ("v", "np.mean((np.sum(X * v, axis=1, keepdims=True) - y)**2)", "write y[:, None]."),
]
MEANT = [
    ("w", "np.mean((X @ w - Y)**2)"),
    ("v", "np.mean((X @ v - y)**2)"),
    ("a", "np.sum(np.exp(-a * (y[:, None] - y)**2))"),  # pairs, of what does not depend on a
    ("a", "np.sum(np.exp(-(a * y[:, None] - y)))"),  # an axis that was written
    ("w", "np.mean(np.log(np.sum(np.exp(-((X @ w - y)**2)), axis=1)))"),  # summed along one axis: densities
    ("w", "np.mean((X[:50] @ w - y)**2)"),  # 50 with 100: no pairs of rows
    ("w", "np.mean((X[:1] @ w - y[:1])**2)"),
    ("a,b", "np.mean((a * x - b * y)**2)"),  # both depend on a variable
]


@pytest.mark.parametrize(("variables", "cell", "told"), PAIRED)
def test_a_loss_over_all_pairs_is_told(notebook, variables, cell, told):
    notebook.ok(DATA)
    rows = notebook.ok(f"%%tensor --grad {variables}\n{cell}").data["text/plain"].splitlines()
    (found,) = [row for row in rows if "every row with every row" in row]
    assert told in found


@pytest.mark.parametrize(("variables", "cell"), MEANT)
def test_pairs_that_are_meant_are_not(notebook, variables, cell):
    notebook.ok(DATA)
    assert "every row" not in notebook.ok(f"%%tensor --grad {variables}\n{cell}").data["text/plain"]
