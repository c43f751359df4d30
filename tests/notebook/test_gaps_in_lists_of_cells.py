"""nan in lists of the notebook: a cell finds the very object that it has read under a name."""

from __future__ import annotations

import pytest

from tests.notebook.conftest import Notebook


@pytest.mark.parametrize(
    "text",
    [
        "n in L",
        "m in L",
        "L == [1.0, n]",
        "L == [1.0, m]",
        "(n, 1) in [(n, 1)]",
        "(L[1], n) == (n, L[1])",
        "n * 1 in L",
    ],
)
def test_a_cell_asks_for_the_notebooks_own(notebook: Notebook, text: str):
    notebook("n = float('nan'); m = float('nan'); L = [1.0, n]")
    expected = notebook(f"bool({text})").value
    assert notebook(f"%%tensor\nfound = {text}").error is None
    assert bool(notebook("bool(found)").value) is expected


def test_a_name_of_another_nan(notebook: Notebook):
    notebook("n = float('nan'); L = [1.0, n]")
    notebook("%%tensor\nfound = n in L")
    assert notebook("bool(found)").value
    notebook("n = float('nan')")
    notebook("%%tensor\nfound = n in L")
    assert not notebook("bool(found)").value
