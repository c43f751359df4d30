"""The first cell with gradients says, on a page, that their names are variables: once in a notebook, and whenever that cell runs."""

from __future__ import annotations

import re

import pytest

SAID = " of the notebook now"


def page(ran) -> str:
    """What a page shows of a cell's value."""
    markup = ran.data.get("image/svg+xml", "") + ran.data.get("text/html", "")
    return " ".join(re.sub(r"<[^>]*>", " ", markup).replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.mark.parametrize(
    ("setup", "cell", "said"),
    [
        ("a = 2.0", "%%tensor --grad a\na * a", "grad_a is a variable"),
        ("a, b = 2.0, 1.0", "%%tensor --grad a,b\nloss = a * b\nloss", "grad_a and grad_b are variables"),
        ("w = np.ones(9)", "%%tensor --grad w\nnp.sum(w * w)", "grad_w is a variable"),
        ("p = {'w': np.ones(3), 'b': 0.5}", "%%tensor --grad p\nnp.sum(p['w']) * p['b']", "grad_p is a variable"),
        ("a = 2.0", "%%tensor --grad a\ns = a\nfor k in range(9):\n    s = s * a\ns", "grad_a is a variable"),
        ("a = 2.0", "%%tensor --grad a\nif a > 1:\n    s = a * a\nelse:\n    s = a\ns", "grad_a is a variable"),
        ("a, b, c = 1.0, 2.0, 3.0", "%%tensor --grad a,b,c\na * b * c", "grad_a, grad_b and grad_c are variables"),
    ],
)
def test_names_of_gradients_are_said_to_be_variables_once(notebook, setup, cell, said):
    notebook.ok(setup)
    first = notebook.ok(cell)
    assert said + SAID in page(first)
    assert SAID not in first.data["text/plain"]
    for name in said.replace(",", " ").split():
        assert not name.startswith("grad_") or name in notebook.shell.user_ns
    notebook.ok("z = 3.0")
    assert SAID not in page(notebook.ok("%%tensor --grad z\nz ** 3"))


def test_a_cell_without_gradients_says_nothing(notebook):
    notebook.ok("a = 2.0")
    assert SAID not in page(notebook.ok("%%tensor\na * a"))
    assert SAID in page(notebook.ok("%%tensor --grad a\na * a"))


def test_nothing_is_said_where_nothing_is_shown(notebook):
    notebook.ok("a = 2.0")
    notebook.ok("%%tensor --grad a --quiet\na * a")
    assert SAID in page(notebook.ok("%%tensor --grad a\na * a"))
