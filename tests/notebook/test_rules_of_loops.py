"""The table of rules, and the steps of a graph, name what is done to loops."""

import pytest

CELL = """%%tensor {}
import numpy as np
x = np.linspace(0.1, 1, 300)
y = np.zeros(300)
for k in range(300):
    y[k] = np.exp(x[k])
y
"""
RECURRENCE = """%%tensor {}
import numpy as np
x = np.linspace(0.1, 1, 300)
y = np.zeros(300)
for k in range(1, 300):
    y[k] = 0.9 * y[k - 1] + x[k]
y
"""


@pytest.mark.parametrize(
    ("cell", "name"),
    [(CELL, "y[k] = f(x[k]) at each k -> y = f(x)"), (RECURRENCE, "y[k - 1] is read -> v is handed on")],
)
def test_the_table_names_it_with_its_line(notebook, cell, name):
    notebook.ok(cell.format("-q"))
    told = notebook.ok("%tensor_rules y").data["text/plain"]
    (row,) = [line for line in told.splitlines() if name in line]
    assert "line 6" in row or "line 5" in row, row
    assert "tensormagic's loop_rules.py" in row
    if cell is CELL:
        assert "300 fewer iterations of loops" in row


@pytest.mark.parametrize("cell", [CELL, RECURRENCE])
def test_the_theme_can_be_left_out(notebook, cell):
    notebook.ok(cell.format("--without loops"))
    assert "loop_rules.py" not in notebook.ok("%tensor_rules y").data["text/plain"]
