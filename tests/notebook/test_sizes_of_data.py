"""Cells whose sizes depend on data are shown like any other: with the sizes of this run, on every panel."""

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
