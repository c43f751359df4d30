"""Which line, which cell: labels, carets, `%` lines, and warnings that are not false."""

import re
import warnings

import numpy as np
import pytest

from tensormagic.ir.errors import ConstantGradientWarning, DifferentiationError, ShapeError, StaleGradientWarning


def lines_of(notebook, cell: str) -> list[str]:
    ran = notebook(cell)
    assert ran.error is not None
    return ran.out.splitlines()


def test_a_line_magic_names_its_line(notebook):
    assert lines_of(notebook, "%tensor X @ y")[:3] == ["Cell In[1], line 1", "    X @ y", "    ^^^^^"]
    told = lines_of(notebook, "a = 1\nif a:\n    v = %tensor X @ y")
    assert told[:3] == ["Cell In[2], line 3", "    X @ y", "    ^^^^^"]
    ran = notebook("%tensor X @")
    assert isinstance(ran.error, SyntaxError)
    assert ran.out.splitlines()[:3] == ["Cell In[3], line 1", "    X @", "       ^"]
    notebook.ok("c = 1\n%tensor u = X @ w")
    assert "In[4] line 2" in repr(notebook["u"])


@pytest.mark.parametrize(
    ("options", "body", "told"),
    [
        ("--grad w", "z = 1\nX @ w", ["Cell In[1], line 3", "    X @ w", "    ^^^^^", "a gradient is of one number"]),
        ("--grad w", "z = 1\nq = X @ w + z", ["Cell In[1], line 3", "    q = X @ w + z", "        ^^^^^^^^^"]),
        ("--grad w --of q", "q = X @ w\nz = q.sum()", ["Cell In[1], line 2", "    q = X @ w", "    ^"]),
        ("--grad n", "z = 2 * n\nz * w.sum()", ["Cell In[1], line 2", "    z = 2 * n", "            ^", "n is int"]),
        (
            "--grad w",
            "z = 1\nw.sum() > 0",
            ["Cell In[1], line 3", "    w.sum() > 0", "    ^^^^^^^^^^^", "a real float"],
        ),
    ],
)
def test_errors_of_gradients_name_the_line(notebook, options, body, told):
    notebook["n"] = 3
    ran = notebook(f"%%tensor {options}\n{body}")
    assert isinstance(ran.error, DifferentiationError)
    for line, part in zip(ran.out.splitlines(), told, strict=False):
        assert part in line
        assert "^" not in part or part == line


@pytest.mark.parametrize(
    ("value", "op"),
    [
        ("np.round(X @ w).sum()", "rint"),
        ("np.sign(w).sum() * 2.0", "sign"),
        ("np.where(w > 0, 1.0, 2.0).sum()", "greater"),
        ("float((w > 0).sum())", "greater"),
        ("X[np.argmax(w), 0]", "argmax"),
    ],
)
def test_a_gradient_that_is_zero_since_steps_are_between_says_which(notebook, value, op):
    with pytest.warns(ConstantGradientWarning, match=rf"only through {op} \(In\[1\] line 2\).*: grad_w is zero"):
        notebook.ok(f"%%tensor --grad w\nz = {value}\nz")
    assert not notebook["grad_w"].numpy().any()


@pytest.mark.parametrize("value", ["(np.round(w) * w).sum()", "w[np.argmax(w)] * 1.0", "np.where(w > 0, w, 1.0).sum()"])
def test_a_gradient_that_goes_beside_steps_is_no_matter_of_warnings(notebook, value):
    with warnings.catch_warnings(action="error", category=ConstantGradientWarning):
        notebook.ok(f"%%tensor --grad w\n{value}")


def test_a_gradient_that_is_zero_names_the_line(notebook):
    with pytest.warns(ConstantGradientWarning) as told:
        notebook.ok("%%tensor --grad w\nz = 1\nq = np.sum(X)")
    assert told[0].lineno == 3
    assert str(told[0].message).splitlines()[1:] == ["Cell In[1], line 3", "    q = np.sum(X)", "        ^^^^^^^^^"]


@pytest.mark.parametrize(("cell", "column"), [("z = (X @", 5), ("z = X +", 7), ("z = [1,\n", 4)])
def test_a_caret_at_the_end_of_a_line(notebook, cell, column):
    told = lines_of(notebook, f"%%tensor\n{cell}")
    assert told[0] == "Cell In[1], line 2"
    assert told[2].startswith(" " * (4 + column - 1)) or told[2].index("^") >= 4
    assert "^" in told[2]
    assert len(told[2].rstrip()) <= len(told[1]) + 1


def test_percent_lines_are_shown_as_written(notebook):
    notebook.ok("%%tensor -q --verbose\n%precision 3\nq = np.sum(w)")
    data = notebook.ok("%%tensor --show graph,annotate\n%precision 3\nfiles = !echo a\nnp.sum(w + 1)").displays
    assert "%precision 3" in data[0]["text/plain"]
    assert "files = !echo a" in data[0]["text/plain"]
    assert not any("get_ipython" in str(page) for shown in data for page in shown.values())
    assert lines_of(notebook, "%%tensor\n%precision 3\nX @ y")[1] == "    X @ y"


def test_no_gradient_is_stale_after_a_cast(notebook):
    notebook.ok("%%tensor --grad w,b --dtype float32\nnp.sum((X @ w + b - y) ** 2)")
    notebook.ok("print(grad_w, grad_b)")
    notebook.ok("w -= 0.1 * grad_w")
    with pytest.warns(StaleGradientWarning):
        notebook.ok("print(grad_w)")


def test_no_gradient_is_stale_where_the_same_code_makes_it_anew(notebook):
    notebook.ok("%%tensor --grad w\nnp.sum(w ** 2 + w)")
    with warnings.catch_warnings(action="error", category=StaleGradientWarning):
        notebook.ok("w = w - 1; get_ipython().run_cell_magic('tensor', '-q --grad w', 'np.sum(w ** 2)'); print(grad_w)")
        notebook.ok(
            "for k in range(3):\n    get_ipython().run_cell_magic('tensor', '-q --grad w', 'np.sum(w ** 2)')\n"
            "    w = w - 0.1 * grad_w.numpy()"
        )
    assert notebook["w"] == pytest.approx(-np.ones(3) * 0.8**3)


def test_a_setting_that_does_not_exist_is_refused(notebook, caplog):
    notebook("%config TensorMagics.show = 'bogus'")
    assert "rewrites, code, annotate, profile, speed, none, not 'bogus'" in caplog.text
    assert notebook.shell.magics_manager.registry["TensorMagics"].show == "graph"
    notebook.ok("%config TensorMagics.show = 'graph, rewrites'")
    assert notebook.ok("%%tensor\nnp.log(1 + w)").displays[0]["text/plain"].startswith("rewrites")


def test_completion_after_comments(notebook):
    assert notebook.completions("# one\n\n# two\n%%tensor --gr") == ["--grad"]
    assert "loss_of_this" in notebook.completions("# one\n%%tensor\nloss_of_this = X @ w\nlo")
    assert "--grad" not in notebook.completions("x = 1\n%%tensor --gr")


@pytest.mark.parametrize("name", ["λ", "µ", "ϵ", "θ_1"])
def test_gradients_of_symbols(notebook, name):
    notebook.ok(f"{name} = 2.0")
    ran = notebook.ok(f"%%tensor --grad {name}\nnp.sum({name} ** 2 * X[0, 0] ** 0)")
    assert f"{4.0:.5g}" in ran.data["text/plain"]
    notebook.ok(f"assert float(grad_{name}) == 4.0")


def test_cells_that_are_not_counted_have_labels_of_their_own(notebook):
    shell = notebook.shell
    for text in ("%%tensor\nz = X @ w", "%%tensor\nq = X.T @ y"):
        assert shell.run_cell(text, store_history=False).success
    places = [repr(notebook[name]).split("In")[1] for name in ("z", "q")]
    assert places == ["[1] line 2, not computed yet)", "[1.2] line 2, not computed yet)"]
    told = lines_of(notebook, "%%tensor\nz + X")
    assert told[0] == "Cell In[1.3], line 2"
    assert notebook("%%tensor\nz + X").out.splitlines()[0] == "Cell In[2], line 2"
    assert isinstance(notebook("%%tensor\nz + X").error, ShapeError)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_lines_in_loops_are_those_of_the_run_that_is_shown(notebook):
    """What was rewritten in a loop is shared by the runs of equal cells, and says where it stood in the first one."""
    notebook.ok("start, rate = np.array([3.0]), 0.5")
    for between in ("", "", "\n"):
        cell = f"u = start{between}\nfor k in range(20):\n    u = u - rate * u * u * u\nlast = u.sum()\nlast"
        ran = notebook("%%tensor -a\n" + cell)
        number = 4 + len(between)
        told = "".join(display.get("text/plain", "") for display in ran.displays)
        row = next(line for line in told.splitlines() if f" {number}     u = u" in line)
        assert "× (3), −" in row
        assert f"line {number}, iteration 8" in notebook.ok("%tensor_nan last").data["text/plain"]
        profile = notebook.ok("%tensor_profile last").data["text/plain"]
        assert re.search(rf"[µm]s\s+{number}     u = u", profile)
