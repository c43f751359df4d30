"""Lines of cells that are not captured: in displays, in warnings, and in errors of functions that they call."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.python import usercode


def test_lazy_values_of_plain_cells_name_their_cell(notebook):
    notebook.ok("%%tensor -q\nz = X @ w")
    notebook.ok("q = z * 2")
    assert repr([notebook["q"]]) == "[Tensor(float64[40], from In[2] line 1, not computed yet)]"
    shown = notebook.ok("q = z + 1\nq[1:3]").data["text/plain"]
    assert "In[3] line 2" in shown.splitlines()[0]
    assert "  line 1  q = z + 1" in shown
    assert "<ipython" not in shown


def test_a_plain_cell_that_runs_again_has_its_new_count(notebook):
    notebook.ok("%%tensor -q\nz = X @ w")
    for count in (2, 3):
        notebook.ok("q = z * 2")
        assert f"In[{count}] line 1" in repr([notebook["q"]])


def test_functions_of_plain_cells_have_lines(notebook):
    notebook.ok("def grown(a):\n    return np.log(1 + a)")
    shown = notebook.ok("%%tensor --show rewrites\nnp.sum(grown(X * X))").data["text/plain"]
    rows = [line for line in shown.splitlines() if "log1p(" in line]
    assert len(rows) == 2  # log1p, and what it is where the square runs over
    assert all("In[1] line 2" in row for row in rows)


def test_unloading_forgets_the_names_of_files(notebook):
    before = len(usercode.namers)
    notebook.shell.run_line_magic("unload_ext", "tensormagic")
    assert len(usercode.namers) == before - 1
    notebook.shell.run_line_magic("load_ext", "tensormagic")


def test_an_error_of_a_function_shows_the_users_lines_alone(notebook):
    notebook.ok("inverse = tm.tensor(lambda x: np.linalg.inv(x) + 1)")
    ran = notebook("y = 1\ninverse(np.zeros((2, 2)))")
    assert isinstance(ran.error, np.linalg.LinAlgError)
    assert ran.out.splitlines()[:4] == [
        "Cell In[1], line 1",
        "    inverse = tm.tensor(lambda x: np.linalg.inv(x) + 1)",
        "                                  ^^^^^^^^^^^^^^^^",
        "LinAlgError: Singular matrix",
    ]
    assert "asked for in Cell In[2], line 2" in ran.out
    assert "tensormagic/" not in ran.out


def test_an_error_of_syntax_names_its_own_cell(notebook):
    notebook.ok("a = 1")
    for cell, first in (("%%tensor\nz = X @@ w", "Cell In[2], line 2"), ("%tensor X +", "Cell In[3], line 1")):
        assert notebook(cell).out.splitlines()[0] == first


def test_the_function_of_a_cell_says_what_it_is(notebook):
    notebook.ok("%%tensor objective -q\nloss = np.sum((X @ w + b) ** 2)")
    f = notebook["objective"]
    assert repr(f) == "<captured function objective(X, w, b)>"
    assert repr(tm.grad(f, "w")) == "<captured function grad(objective)(X, w, b)>"
    shown = notebook.ok("objective?").out
    assert "objective(X=X, w=w, b=b)" in shown  # left out, each is the variable of that name
    assert "loss = np.sum((X @ w + b) ** 2)" in shown


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("w", "the cell reads w, and a function of that name would replace it"),
        ("--grad w b", "for several gradients write --grad w,b"),
        ("y", "y is a variable of the notebook, and a function of that name would replace it"),
        ("--grad w y", "for several gradients write --grad w,y"),
        ("lazy", "lazy is a variable of the notebook"),
    ],
)
def test_a_name_that_the_cell_reads_or_that_holds_data_is_kept(notebook, line, told):
    notebook.ok("%%tensor -q\nlazy = w + 1")
    before = {name: notebook[name] for name in ("w", "b", "y", "lazy")}
    ran = notebook(f"%%tensor {line}\nnp.sum(X @ w + b)")
    assert told in ran.out
    assert all(notebook[name] is value for name, value in before.items())


def test_a_function_may_give_way_to_a_cell_of_its_name(notebook):
    notebook.ok("def cost(w):\n    return 0.0")
    for _ in range(2):
        notebook.ok("%%tensor cost\nnp.sum(X @ w + b)")


def test_variables_that_are_told_are_those_that_are_read(notebook):
    notebook.ok("%%tensor -q\nz = X + 1")
    out = notebook("%%tensor\nz = 1 / 0").out
    assert "ZeroDivisionError" in out
    assert "float64" not in out


def test_the_page_of_a_value_shows_its_cell(notebook, tmp_path):
    notebook.ok("%%tensor -q\nz = X @ w")
    notebook["z"].to_html(tmp_path / "z.html")
    assert '"z = X @ w"' in (tmp_path / "z.html").read_text(encoding="utf-8")


def test_a_value_in_a_container_says_the_cell_that_has_made_it_last(notebook):
    """An equal value of an earlier cell is the same node."""
    notebook.ok("%%tensor -q\nfirst = X * 2")
    notebook.ok("%%tensor -q\n\nsecond = X * 2")
    assert "from In[2] line 3" in repr([notebook["second"]])
