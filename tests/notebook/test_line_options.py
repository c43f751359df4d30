"""Options of ``%tensor`` lines, and which value a closer look takes."""

import numpy as np
import pytest
from IPython.core.error import UsageError

from tensormagic.notebook.options import of_line


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("X.sum()", ("", "X.sum()")),
        ("--math exact X.sum()", ("--math exact", "X.sum()")),
        ("--grad w, b --check np.sum(w)", ("--grad w, b --check", "np.sum(w)")),
        ("--dtype=float32 -q -x", ("--dtype=float32 -q", "-x")),
        ("-t * 2", ("", "-t * 2")),
        ("--t - 1", ("", "--t - 1")),
        ("-x", ("", "-x")),
        ("--shwo code X", ("--shwo", "code X")),
        ("", ("", "")),
    ],
)
def test_where_the_expression_begins(line, parts):
    assert of_line(line, {"t": 1, "x": 2}) == parts


def test_options_before_the_expression(notebook):
    ran = notebook.ok("%tensor --grad w --show rewrites np.sum((X @ w - 1) ** 2)")
    X = notebook["X"]
    assert notebook["grad_w"].numpy() == pytest.approx(-2 * X.sum(axis=0))
    assert "rewrites" in ran.data["text/plain"]
    assert notebook.ok("%tensor --dtype float32 X.sum()").value.dtype == np.float32
    notebook["q"] = 3.0
    assert float(notebook.ok("%tensor -q + X.sum()").value) == pytest.approx(X.sum() - 3)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "%tensor takes one expression"),
        ("--math exact", "%tensor takes one expression"),
        ("--math exakt X", "did you mean exact"),
        ("--chekc X.sum()", "did you mean --check"),
    ],
)
def test_what_is_no_line(notebook, line, told):
    ran = notebook(f"%tensor {line}")
    assert isinstance(ran.error, UsageError)
    assert told in ran.out


def test_a_look_takes_the_last_lazy_value(notebook):
    notebook.ok("%%tensor\nloss = np.sum(X)\nloss")
    notebook.ok("1 + 1")
    for magic in ("%tensor_graph", "%tensor_profile", "%tensor_rules", "%tensor_nan"):
        assert "np.sum(X)" in notebook.ok(magic).data["text/plain"] or magic in {"%tensor_rules", "%tensor_nan"}
    assert "did you mean loss?" in notebook("%tensor_graph los").out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%tensor --ma", ["--math"]),
        ("%tensor --math ", ["exact", "real", "stable"]),
        ("%tensor --math=s", ["stable"]),
        ("v = %tensor --dtype float3", ["float32"]),
        ("%tensor --show graph,re", ["rewrites"]),
        ("%tensor --check X.me", ["X.mean"]),
        ("%tensor_graph lo", ["long_name", "loss"]),
        ("%tensor_cache --", ["--clear"]),
        ("%%rewrite --", ["--math", "--test"]),
        ("%%rewrite --math ", ["exact", "real", "stable"]),
    ],
)
def test_completion_of_lines(notebook, text, expected):
    notebook.ok("%%tensor -q\nloss = np.sum(X)\nlong_name = loss * 2")
    assert sorted(notebook.completions(text)) == expected


def test_gradients_of_another_name_say_so(notebook):
    ran = notebook.ok("%%tensor --of z --grad w\nz = np.sum(X @ w)\nq = z * 3")
    assert "q = 0 · float64 · grad_w of z = [" in ran.data["text/plain"]
    notebook.ok("W = np.ones((3, 2))")
    assert (
        "grad_W of z, shape (3, 2), norm"
        in notebook.ok("%%tensor --of z --grad W\nz = np.sum(X @ W)\nq = z * 3").data["text/plain"]
    )
    assert " of " not in notebook.ok("%%tensor --of q --grad w\nq = np.sum(X @ w)").data["text/plain"].splitlines()[0]


def test_no_warning_beside_an_error(notebook):
    ran = notebook("%%tensor --grad w\nX")
    assert "a gradient is of one number" in ran.out
    assert "ConstantGradientWarning" not in ran.out


@pytest.mark.parametrize(
    "cell", ["%%tensor -h", "%%tensor name --help\nX.sum()", "%tensor -h", "# why\n%tensor_graph --help"]
)
def test_help_is_asked_as_on_command_lines(notebook, cell):
    """A magic with nothing below it is an empty cell to IPython, which refuses it."""
    assert "Example" in notebook.ok(cell).out


def test_a_minus_before_a_variable_is_no_question(notebook):
    notebook["h"] = 3.0
    assert float(notebook.ok("%tensor -h").value) == -3
