"""Formulas of lazy values: what they say is what NumPy computes, and they are written as mathematics is."""

# tests named elsewhere

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.notebook.formulas.equations import formula_of
from tensormagic.notebook.formulas.latex import Name, Number, Power, Product, Quotient, latex, name_in_latex
from tests.notebook.formula_values import line_value

# Each is a cell over X (40, 3), y (40), w (3), b and A (3, 3); value is what it ends in.
CELLS = [
    "X @ w + b",
    "X.T @ y",
    "w @ A @ w",
    "A @ A.T - A",
    "np.outer(w, w + 1)",
    "X - X.mean(axis=0)",
    "(X - X.mean(axis=0)) / X.std(axis=0)",
    "2 * w - y[:3] / 4",
    "np.exp(w - w.max()) / np.exp(w - w.max()).sum()",
    "w[1:] - w[:-1]",
    "w[::-1] * w",
    "X[::2, 1] + y[1::2]",
    "w[:, None] * y[None, :4]",
    "np.where(w > 0, w, -w) + np.abs(b)",
    "np.cumsum(w * w)",
    "np.linalg.solve(A, w)",
    "np.linalg.inv(A) @ w",
    "2 * X.T",
    "np.einsum('ij,jk,ik->i', X, A, X)",
    "np.einsum('ij,ij->j', X, X)",
    "X.max(axis=1) - X.min(axis=1)",
    "X[np.array([3, 1, 4])] @ w",
    "X[np.array([3, 1, 4]), np.array([2, 0, 2])]",
    "A[np.array([0, 2])[:, None], np.array([1, 2])] + b",
    "A[np.arange(3), np.array([2, 0, 2])] * w",
    "X[np.arange(len(X)), np.argmax(X, axis=1)]",
    "np.argmax(X, axis=1) + 0.0",
    "1 / (1 + np.exp(-(X @ w)))",
    "np.maximum(X @ w, 0)",
    "np.sqrt((X**2).sum(axis=1))",
    "np.log1p(np.exp(y)) - np.expm1(b) + np.cbrt(w[0])",
    "np.arange(3) * w",
    "np.linspace(0, 1, 3) + w",
    "np.linalg.norm(X, axis=1)",
    "np.floor(w * 3) % 2",
    "(w > 0) & (w < 1)",
    "np.prod(w) - np.sum(w) / np.max(w)",
    "np.tanh(X @ A) @ w",
]
SLOPES = [
    "np.mean(np.log(1 + np.exp(-y * (X @ w + b))))",
    "((X @ w + b - y) ** 2).sum() / len(y)",
    "w @ A @ w / 2 + b * w.sum()",
    "np.linalg.norm(A @ w) + b",
    "(w[1:] * w[:-1]).sum() * b",
    "np.sum(np.where(w > 0, w * np.log(np.abs(w)), 0)) + b**3",
    "np.log(np.exp(A @ w + b).sum())",
    "np.var(w) + np.sin(b) * w[0]",
    "(np.tanh(X @ w + b) * y).mean()",
    "np.sum(1 / (1 + np.exp(-w)) - b / w)",
    "np.sum(w[np.array([0, 2, 2])] ** 2) * b",
    "np.sum((A * w)[np.array([1, 1, 0]), np.array([2, 0, 2])]) * b",
    "np.mean(np.exp(A * w)[np.arange(3), np.array([1, 1, 0])]) + b",
    "np.sum((A + w)[np.arange(3), np.array([2, 0, 2])] ** 2) - b",
]


@pytest.fixture
def data(notebook):
    random = np.random.default_rng(7)
    notebook["A"] = random.normal(size=(3, 3)) + 3 * np.eye(3)
    notebook["w"] = np.array([0.7, -0.4, 1.3])
    notebook["b"] = 0.25
    return notebook


def names_of(notebook) -> dict[str, object]:
    return {n: notebook[n] for n in ("X", "y", "w", "b", "A")}


@pytest.mark.parametrize("cell", CELLS)
def test_a_formula_says_what_is_computed(data, cell):
    data.ok(f"%%tensor --show none\nvalue = {cell}\nvalue")
    formula = formula_of(data["value"], "value")
    expected = data["value"].numpy()
    found = line_value(formula, "value", np.shape(expected), names_of(data))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert "…" not in str(formula)


@pytest.mark.parametrize("cell", SLOPES)
def test_the_formula_of_a_gradient_says_what_is_computed(data, cell):
    data.ok(f"%%tensor --grad w,b --show none\nvalue = {cell}\nvalue")
    formula = formula_of(data["value"], "value", wrt=("w", "b"))
    for name in ("w", "b"):
        expected = data[f"grad_{name}"].numpy()
        known = {**names_of(data), "value": data["value"].numpy()}
        found = line_value(formula, f"d value/d {name}", np.shape(expected), known)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_parts_appear_by_their_names(data):
    data.ok("%%tensor --show none\nz = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))")
    formula = data["loss"].formula(wrt="w")
    assert str(formula).splitlines() == [
        "loss = 1/n * sum_{i<n} log(1 + exp(-y[i] * z[i]))",
        "z = X @ w + b",
        "d loss/d w = -X.T @ (1/n * σ(-y * z) * y)",
        "    where n = 40, indices from 0, σ(x) = 1/(1 + exp(-x))",
    ]
    assert r"\mathrm{loss} &= \frac{1}{n}\,\sum_{i \lt n} \log\left(1 + e^{-y_{i}\,z_{i}}\right)" in formula.latex
    assert r"\frac{\partial\,\mathrm{loss}}{\partial\,w} &= -X^{\top}\," in formula.latex


def test_a_name_that_is_bound_anew_is_told_from_what_it_was(data):
    data.ok("%%tensor --show none\nw = w - 0.1 * w\ns = w.sum()")
    lines = str(data["s"].formula()).splitlines()
    assert lines[:2] == ["s = sum_{i<n} w′[i]", "w′ = w - 0.1 * w"]


def test_a_loop_is_a_named_block(data):
    data.ok("%%tensor --show none\nfor k in range(100):\n    w = np.sin(w) + k\ns = w.sum()")
    text = str(data["s"].formula())
    assert "w′ = loop_1(w)" in text
    assert "w ← sin(w) + k" in text
    assert "loop 1 is the loop at In[1] line 2, 100 times" in text
    assert r"\operatorname{loop}_{1}\left(w\right)" in data["s"].formula().latex


def test_an_iteration_of_a_loop_over_numbers_is_written(data):
    """In the order of the code: a line uses what the lines before have made."""
    cell = "v, z = 1.0, b\nfor k in range(50):\n    v = v - 0.1 * np.sin(z) / len(w)\n    z = z + k * v\nend = z**2 + v"
    data.ok(f"%%tensor --show none\n{cell}")
    formula = data["end"].formula()
    lines = str(formula).splitlines()
    assert lines[:5] == [
        "end = z**2 + v",
        "z = loop_1(1, b)[1]",
        "v = loop_1(1, b)[0]",
        "v ← v - 0.1 * sin(z)/3",
        "z ← z + k * v",
    ]
    assert r"v &\leftarrow v - " in formula.latex
    assert "←" in formula._repr_svg_()


@pytest.mark.parametrize(
    "body",
    [
        "u = u + 0.1 * v\n    v = v - 0.1 * u",
        "o = u\n    u = u + 0.1 * v\n    v = v - 0.1 * o",
        "u, v = v, u * 0.9 + v",
        "v = v * np.exp(-k * u) + b\n    u = u / (1 + v**2)",
        "m = u * v\n    u = m - v\n    v = np.where(m > 0, m, -u)",
        "if u > v:\n        u = u - v\n    else:\n        v = v - 0.5 * u",
        "u += k\n    v = np.sqrt(abs(u)) - v\n    u = u * 0.5 + v",
        "v = y[k] * u\n    u = u - 0.01 * v",
    ],
)
def test_lines_of_an_iteration_run_in_order_give_the_loops_value(data, body):
    data.ok(f"%%tensor --show none\nu, v = b, 0.3\nfor k in range(7):\n    {body}\nend = 2 * u + v")
    lines = [row.split(" ← ") for row in str(data["end"].formula()).splitlines() if " ← " in row]
    space = {name: getattr(np, name) for name in ("exp", "sqrt", "abs", "where")}
    space |= {"b": data["b"], "y": data["y"], "u": data["b"], "v": 0.3}
    for k in range(7):
        space["k"] = k
        for left, right in lines:
            exec(f"{left} = {right}", space)
    if lines:
        assert 2 * space["u"] + space["v"] == pytest.approx(float(data["end"]), rel=1e-12)
    else:  # a branch has no line of its own
        assert "if " in body or "u, v = v" in body


ARRAYS = {  # loops over arrays: the cell, and the lines of an iteration
    "an element by its indices": (
        "h = u\nfor k in range(20):\n    h = np.tanh(M @ h + Q[k])\nend = np.sum(h)",
        ["h[i] ← tanh((M @ h)[i] + Q[k, i])"],
    ),
    "one after the other": (
        "p, q = u, 2 * u\nfor k in range(20):\n    p = p - 0.1 * (M @ p) * q\n    q = q + 0.1 * p\nend = np.sum(p * q)",
        ["p ← p - 0.1 * (M @ p) * q", "q ← q + 0.1 * p"],
    ),
    "a number beside an array, and sizes of their own": (
        "t, p = 0.0, u\nfor k in range(20):\n    p = p * 0.5\n    t = t + np.sum(p) * np.sum(long)\nend = t",
        ["p ← p * 0.5", "t ← t + (sum_{i<m} p[i]) * sum_{i<n} long[i]"],
    ),
    "parts that are stored": ("v = u.copy()\nfor k in range(9):\n    v[1:] = v[1:] + v[:-1]\nend = np.sum(v)", []),
    "an array without a name": ("v = u\nfor k in range(9):\n    v = v * np.exp(M @ u)\nend = np.sum(v)", []),
    "arrays that are changed at once": (
        "p, q = u, 2 * u\nfor k in range(9):\n    p, q = q, p + q\nend = np.sum(p)",
        [],
    ),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_iteration_of_a_loop_over_arrays_is_written(data, name):
    cell, lines = ARRAYS[name]
    data.shell.user_ns |= {"u": np.ones(4), "M": np.eye(4) / 3, "Q": np.ones((20, 4)), "long": np.ones(7)}
    data.ok(f"%%tensor --show none\n{cell}")
    told = str(data["end"].formula())
    assert [row for row in told.splitlines() if " ← " in row] == lines
    if name.startswith("a number"):
        assert "n = 7" in told
        assert "m = 4" in told
    if not lines and "stored" not in name:  # which needs nothing else
        assert ", " in next(row for row in told.splitlines() if "loop_1(" in row)  # with all that it has from outside


def test_an_iteration_of_a_while_that_is_the_value_itself(data):
    data.ok("%%tensor --show none\nz = b\nwhile z * z - b > 1e-12:\n    z = (z + b / z) / 2\nroot = z")
    assert str(data["root"].formula()).splitlines()[:2] == ["z = while_1(b)", "z ← (z + b/z)/2"]


def test_iterations_that_change_what_later_lines_need_are_left_out(data):
    """``p`` of the iteration before is needed after ``p`` was changed: no order of lines says that."""
    data.ok(
        "%%tensor --show none\np, q = b, 1.0\nfor k in range(9):\n    o = p\n    p = p + q\n    q = q * o\ns = p + q"
    )
    told = str(data["s"].formula())
    assert "p ← p + q\nq ←" not in told
    assert "(p, q) ← (p + q, q * p)" in told


def test_a_branch_is_a_named_block(data):
    data.ok("%%tensor --show none\nif w.sum() > 0:\n    q = w * 2\nelse:\n    q = w\nq")
    assert "branch 1 is the branch at In[1] line 2" in str(data["q"].formula())


def test_a_long_one_is_cut(data):
    data.ok("%%tensor --show none\nx = w\n" + "x = np.sin(x) * x + np.cos(x)\n" * 40 + "s = x.sum()")
    del data.shell.user_ns["x"]
    formula = data["s"].formula(wrt="w")
    assert "…" in str(formula)
    assert len(str(formula)) < 4_000
    assert len(formula.latex) < 10_000


def test_it_computes_nothing(data):
    data.ok("%%tensor --quiet\ns = np.exp(X @ w).sum()")
    from tensormagic import session

    data["s"].formula(wrt="w")
    assert not session.is_computed(data["s"].node)


def test_names_that_are_no_inputs_are_refused(data):
    data.ok("%%tensor --show none\ns = (X @ w).sum()\nv = X @ w")
    with pytest.raises(tm.DifferentiationError, match="'q' is not an input"):
        data["s"].formula(wrt="q")
    with pytest.raises(tm.DifferentiationError, match="a gradient is that of a real number"):
        data["v"].formula(wrt="w")


def test_outside_notebooks():
    x = tm.tensor([1.0, 2.0])
    assert str((x**2).sum().formula("y")).splitlines()[0].endswith("= sum_{i<n} array1[i]**2")


def test_the_page_gets_latex_and_text(data):
    shown = data.ok("%%tensor --show none\ns = w.sum()\ns").value
    made, _ = data.shell.display_formatter.format(shown.formula())
    assert made["text/plain"].startswith("s = sum_{i<n} w[i]")
    assert made["text/latex"].startswith("$\\displaystyle \\begin{aligned}s &= \\sum_{i \\lt n} w_{i}")


def test_the_magic(data):
    data.ok("%%tensor --grad w --show none\nloss = (w @ w) / b\nloss")
    text = data.ok("%tensor_formula").data["text/plain"]
    assert text.splitlines()[:2] == ["loss = w.T @ w/b", "d loss/d w = 2/b * w"]
    assert "d loss/d b" in data.ok("%tensor_formula loss --wrt b").data["text/plain"]
    assert "loss has no floating input q" in data("%tensor_formula loss --wrt q").out
    assert "takes the name of a lazy value; there is no variable nothing" in data("%tensor_formula nothing").out


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("w", "w"),
        ("loss", r"\mathrm{loss}"),
        ("grad_w", r"\mathrm{grad\_w}"),
        ("x_1", "x_{1}"),
        ("theta2", r"\theta_{2}"),
        ("µ", "µ"),
        (
            'a<script>alert("x")</script>',
            r"\mathrm{a{\lt}script{\gt}alert({\prime\prime}x{\prime\prime}){\lt}/sc\ldots }",
        ),
        (r"\input{secret}$", r"\mathrm{\backslash input\{secret\}\$}"),
        ("x" * 100_000, r"\mathrm{" + "x" * 23 + r"\ldots }"),
        ("a\u202eb\nc", r"\mathrm{ab\ c}"),
        ("🎉 %#&~^", r"\mathrm{🎉\ \%\#\&{\sim}{\wedge}}"),
    ],
)
def test_names_stay_names(name, expected):
    assert name_in_latex(name) == expected


def test_columns_of_hostile_names(data):
    import pandas as pd

    data["df"] = pd.DataFrame({"<b>$x$</b>": [1.0, 2.0], "\\evil{}": [3.0, 4.0]})
    data.ok('%%tensor --show none\ns = (df["<b>$x$</b>"] * df["\\\\evil{}"]).sum()\ns')
    made = data["s"].formula().latex
    assert "<b>" not in made
    assert "$" not in made.replace(r"\$", "")


def test_what_is_written_has_its_brackets():
    x, n = Name("x"), Name("n")
    assert latex(Power(Quotient(Number(1), n), Number(2))) == r"\left(\frac{1}{n}\right)^{2}"
    assert latex(Product((Number(2), Number(3)))) == r"2 \cdot 3"
    assert latex(Power(Number(-1.0), x)) == r"\left(-1\right)^{x}"
    assert latex(Number(1e-5)) == "10^{-5}"
    assert latex(Power(Number(1e-5), x)) == r"\left(10^{-5}\right)^{x}"
    assert latex(Number(float("-inf"))) == r"-\infty"


def test_what_letters_mean_stands_in_rows_that_fit_narrow_pages(notebook):
    notebook.ok("%%tensor -q\nloss = np.mean(np.log(1 + np.exp(-y * (X @ w + b))))")
    formula = notebook.ok("%tensor_formula loss --wrt w").value
    *_, gradient, counted, sigmoid, each = formula.latex.removesuffix("\\end{aligned}").split(r" \\[2pt] ")
    assert "&= " in gradient
    assert counted == r"&n = 40,\ \ \text{indices from 0}"
    assert (sigmoid, each) == (r"&\sigma(x) = 1 / (1 + e^{-x})", r"&\odot\text{ elementwise}")


@pytest.mark.parametrize(
    ("cell", "wrt", "slope"),
    [
        ("37 * np.log(t) + 63 * np.log(1 - t)", "t", "37/t - 63/(1 - t)"),
        ("np.log(1 + np.exp(t))", "t", "σ(t)"),
        (
            "0.25 * np.log(1 / (1 + np.exp(-t))) + 0.75 * np.log(1 - 1 / (1 + np.exp(-t)))",
            "t",
            "-0.75 * σ(t) + 0.25 * σ(-t)",
        ),
        (
            "np.sum(np.sqrt((y - t) ** 2 + 1) - np.sqrt(y**2 + 1))",
            "t",
            "-(sum_{i<n} 2 * (y[i] - t) * (0.5/sqrt((y[i] - t)**2 + 1)))",
        ),
        ("-np.sum(((y - t) / 2) ** 2)", "t", "sum_{i<n} 0.5 * (y[i] - t)"),
    ],
)
def test_formulas_of_gradients_have_no_cases_that_rules_have_made(notebook, cell, wrt, slope):
    """A rule that keeps digits may tell cases apart; as mathematics they are one."""
    notebook.ok("t = 0.3")
    notebook.ok(f"%%tensor -q --grad {wrt}\nvalue = {cell}")
    (line,) = [row for row in str(notebook["value"].formula("v", wrt)).splitlines() if row.startswith("d v/d")]
    assert line == f"d v/d {wrt} = {slope}"


def test_cases_of_the_users_own_stay_in_formulas_of_gradients(notebook):
    notebook.ok("%%tensor -q --grad w\nvalue = np.sum(np.where(w > 0, w**2, 0.0))")
    assert "where(" in str(notebook["value"].formula("v", "w"))
