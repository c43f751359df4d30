"""``%%tensor``: what it binds, and what each option does."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.ir.errors import ConstantGradientWarning, StaleGradientWarning

CELL = """%%tensor {options}
z = X @ w + b
loss = np.mean(np.log(1 + np.exp(-y * z)))
loss"""


def cell(options: str = "") -> str:
    return CELL.format(options=options)


def gradient(X, y, w, b):
    s = -y / (1 + np.exp(y * (X @ w + b)))
    return X.T @ s / len(y), s.mean()


def test_a_cell_binds_lazy_values_and_shows_the_last(notebook):
    ran = notebook.ok(cell())
    assert isinstance(notebook["loss"], tm.Tensor)
    assert isinstance(ran.value, tm.Tensor)
    assert float(ran.value) == pytest.approx(math.log(2))
    assert np.array_equal(notebook["z"].numpy(), notebook["X"] @ notebook["w"] + 0.0)
    assert float(notebook.ok("_ * 2").value) == pytest.approx(2 * math.log(2))


def test_gradients_are_bound_and_right(notebook):
    notebook["w"] = np.array([0.1, -0.2, 0.3])
    notebook["b"] = 0.5
    notebook.ok(cell("--grad w,b"))
    dw, db = gradient(*(notebook[n] for n in "Xywb"))
    assert notebook["grad_w"].numpy() == pytest.approx(dw, rel=1e-12)
    assert float(notebook["grad_b"]) == pytest.approx(db, rel=1e-12)


def test_gradient_of_another_name_and_of_an_assignment(notebook):
    notebook.ok("%%tensor --grad w\nq = np.sum(w ** 2) + np.sum(w)")
    assert notebook["grad_w"].tolist() == [1.0, 1.0, 1.0]
    notebook.ok("%%tensor --grad w --of q\nq = np.sum(w ** 2) + 3 * np.sum(w)\nq * 0")
    assert notebook["grad_w"].tolist() == [3.0, 3.0, 3.0]
    ran = notebook.ok("%%tensor --grad w --of q --check -t --show none\nu = 2 * w + 1\nq = np.sum(u ** 2)\nu")
    assert np.asarray(ran.value).tolist() == [1, 1, 1]
    assert notebook["grad_w"].tolist() == [4, 4, 4]
    assert ran.data["text/plain"].count("agrees") == 2


def test_gradient_through_lazy_values_of_earlier_cells(notebook):
    notebook.ok("%%tensor\nz = X @ w + b")
    notebook.ok("%%tensor --grad w,z\nnp.sum(z ** 2 + z)")
    assert notebook["grad_z"].numpy() == pytest.approx(np.ones(40))
    assert notebook["grad_w"].numpy() == pytest.approx(notebook["X"].sum(0))


def test_gradient_of_a_name_that_the_cell_binds(notebook):
    for _ in range(2):  # the second time z is a variable of the notebook, too
        notebook.ok("%%tensor --grad z\nz = X @ w + b\nnp.sum(3 * z)")
        assert notebook["grad_z"].numpy() == pytest.approx(3 * np.ones(40))


def test_gradient_warnings(notebook):
    notebook["grad_w"] = "mine"
    with pytest.warns(UserWarning, match="grad_w was a variable of the notebook"):
        notebook.ok(cell("--grad w"))
    with pytest.warns(ConstantGradientWarning, match="does not depend on w"):
        notebook.ok("%%tensor --grad w\nnp.sum(X)")
    assert notebook["grad_w"].tolist() == [0.0, 0.0, 0.0]


def test_a_stale_gradient_is_told_once(notebook):
    notebook.ok(cell("--grad w"))
    notebook.ok("w -= 0.1 * grad_w")
    with pytest.warns(StaleGradientWarning, match=r"grad_w belongs to the w that In\[1\] read") as told:
        notebook.ok("w -= 0.1 * grad_w")
    assert "value_and_grad" in str(told[0].message)
    assert (told[0].filename, told[0].lineno) == ("In[3]", 1)
    notebook.ok("w -= 0.1 * grad_w")  # once
    notebook.ok(cell("--grad w"))
    notebook.ok("print(grad_w)")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# grad_w is old\nprint(w)\nw = (w\n     - 0.1 * grad_w)", 4),
        ("for k in range(3):\n    w -= 0.1 * grad_w", 2),
        ("%%tensor --show none\nv = 1\nw = w - 0.1 * grad_w", 3),
    ],
)
def test_a_stale_gradient_is_told_where_it_is_used(notebook, text, line):
    notebook.ok(cell("--grad w"))
    notebook.ok("w -= 0.1 * grad_w")
    with pytest.warns(StaleGradientWarning) as told:
        notebook.ok(text)
    assert (told[0].filename, told[0].lineno) == ("In[3]", line)


def test_a_stale_gradient_names_the_function_that_the_cell_is(notebook):
    notebook.ok("w = np.ones(3)")
    notebook.ok("%%tensor objective --grad w\nloss = ((X @ w - y) ** 2).mean()\nloss")
    with pytest.warns(
        StaleGradientWarning,
        match=r"Compute the gradient in every step:\n *step = tm.value_and_grad\(objective, .*\n *for k in range\(3\):\n",
    ):
        notebook.ok("for k in range(3):\n    w = w - 0.1 * grad_w")


@pytest.mark.parametrize(
    ("use", "warns"),
    [
        ("for k in range(3):\n    w -= 0.1 * grad_w", True),
        ("w = w - 0.1 * grad_w\nprint(grad_w)", True),
        ("w[0] = 1.0\nv = grad_w + 1", True),
        ("np.add(w, 1.0, out=w)\ngrad_w", True),
        ("w -= 0.1 * grad_w", False),
        ("v = grad_w * 2\nw = v", False),
        ("w = w.copy()", False),
        ("grad_w = 1\nw = 2\nprint(grad_w)", False),
    ],
)
def test_where_a_gradient_is_stale(notebook, use, warns):
    notebook.ok(cell("--grad w"))
    if warns:
        with pytest.warns(StaleGradientWarning):
            notebook.ok(use)
    else:
        notebook.ok(use)


def test_an_equal_value_makes_no_gradient_stale(notebook):
    notebook.ok(cell("--grad w,b"))
    notebook.ok("w = w.copy(); b = float(b)")
    notebook.ok("print(grad_w, grad_b)")


def test_the_cell_as_a_function(notebook):
    notebook.ok(cell("objective"))
    value = notebook.ok("objective(w=np.ones(3))").value
    X, y = notebook["X"], notebook["y"]
    assert value == pytest.approx(np.mean(np.log(1 + np.exp(-y * X.sum(1)))), rel=1e-12)
    assert isinstance(value, np.floating)
    assert notebook["objective"].parameters == ("X", "w", "b", "y")
    notebook.ok(cell("objective"))
    assert notebook["objective"].parameters == ("X", "w", "b", "y")  # z is the cell's own, also the second time
    assert notebook.ok(cell("-n cost -q")).value is None
    assert float(notebook.ok("cost()").value) == pytest.approx(math.log(2))


def test_the_training_cells(notebook):
    notebook["w"], notebook["b"], notebook["lr"], notebook["history"] = np.zeros(3), 0.0, 0.5, []
    notebook.ok(cell("objective --grad w,b"))
    notebook.ok(
        """step = tm.value_and_grad(objective, ("w", "b"))
for k in range(100):
    value, (gw, gb) = step(w=w, b=b)
    w -= lr * gw
    b -= lr * gb
    history.append(value)"""
    )
    history, w, b = notebook["history"], notebook["w"], notebook["b"]
    assert len(history) == 100
    assert np.all(np.diff(history) < 0)
    assert isinstance(w, np.ndarray)
    v, c = np.zeros(3), 0.0
    for _ in range(100):
        dv, dc = gradient(notebook["X"], notebook["y"], v, c)
        v, c = v - 0.5 * dv, c - 0.5 * dc
    assert w == pytest.approx(v, rel=1e-9)
    assert b == pytest.approx(c, rel=1e-9)


def test_training_in_one_cell(notebook):
    notebook["w"], notebook["b"], notebook["lr"] = np.zeros(3), 0.0, 0.5
    begin = time.perf_counter()
    ran = notebook.ok(
        """%%tensor -o w,b,history
def cost(w, b): return np.mean(np.log(1 + np.exp(-y * (X @ w + b))))
history = np.zeros(100)
for k in range(100):
    history[k], (gw, gb) = tm.value_and_grad(cost, (0, 1))(w, b)
    w -= lr * gw
    b -= lr * gb"""
    )
    assert time.perf_counter() - begin < 30
    history = notebook["history"].numpy()
    assert np.all(np.diff(history) < 0)
    v, c = np.zeros(3), 0.0
    for _ in range(100):
        dv, dc = gradient(notebook["X"], notebook["y"], v, c)
        v, c = v - 0.5 * dv, c - 0.5 * dc
    assert isinstance(notebook["w"], np.ndarray)  # stored into, so it is the notebook's array still
    assert notebook["w"] == pytest.approx(v, rel=1e-9)
    assert float(notebook["b"]) == pytest.approx(c, rel=1e-9)
    assert "gw" not in notebook
    assert "stored into w" in ran.data["text/plain"]


def test_stores_are_committed_together_or_not_at_all(notebook):
    notebook["a"], notebook["c"] = np.zeros(3), np.zeros((2, 2))
    failed = notebook("%%tensor\na[0] = 5\nc[:] = np.linalg.inv(c)\na")
    assert isinstance(failed.error, np.linalg.LinAlgError)
    assert notebook["a"].tolist() == [0, 0, 0]
    assert "z" not in notebook
    kept = notebook["a"]
    notebook.ok("%%tensor\na[0] = 5\nc += a[0]\nc.sum()")
    assert notebook["a"] is kept
    assert kept.tolist() == [5, 0, 0]
    assert notebook["c"].tolist() == [[5, 5], [5, 5]]


def test_a_failed_cell_takes_back_stores_into_lazy_values(notebook):
    notebook.ok("%%tensor\nz = X @ w + b")
    assert notebook("%%tensor\nz[0] = 7\nz + np.ones(9)").error is not None
    assert notebook["z"].numpy()[0] == 0.0
    notebook.ok("%%tensor\nz[1] = 8\nz[1]")
    assert notebook["z"].numpy()[:2].tolist() == [0.0, 8.0]


def test_inputs_are_those_of_the_run(notebook):
    notebook.ok("%%tensor\nz = X @ np.ones(3)")
    expected = notebook["X"].sum(1)
    notebook.ok("X[:] = 0")
    assert notebook["z"].numpy() == pytest.approx(expected)


def test_outputs_and_inputs_that_are_named(notebook):
    notebook.ok("%%tensor -o loss\nz = X @ w\nloss = z.sum()")
    assert "loss" in notebook
    assert "z" not in notebook
    notebook.ok("%%tensor objective -i w\nnp.sum(X @ w)")
    assert notebook["objective"].parameters == ("w",)
    assert notebook.ok("objective(np.ones(3))").value == pytest.approx(notebook["X"].sum())


def test_a_cell_binds_names_with_underscores_counters_and_modules_as_python_does(notebook):
    notebook.ok("%%tensor\nimport math\n_t = X.sum()\ndef f(v): return 2 * v\nfor k in range(3):\n    u = f(_t)\nu")
    assert float(notebook["_t"]) == notebook["X"].sum()
    assert notebook["k"] == 2
    assert type(notebook["k"]) is int
    assert notebook["math"] is math
    assert notebook["f"](2) == 4


def test_dtype(notebook):
    notebook.ok(cell("--dtype float32 --grad w"))
    assert notebook["loss"].dtype == np.float32
    assert notebook["grad_w"].numpy().dtype == np.float32
    assert notebook["w"].dtype == np.float64
    notebook.ok("%%tensor --dtype float32\nw[0] = 1 / 3\nw.sum()")
    assert notebook["w"].dtype == np.float64
    assert notebook["w"][0] == np.float32(1 / 3)


def test_themes_are_left_out(notebook):
    notebook.ok("small = np.array([1e-18, 1e-9])")
    notebook.ok("%%tensor --without stability\nq = np.log(1 + small)\nq")
    assert notebook["q"].numpy()[0] == 0
    notebook.ok("%%tensor\nr = np.log(1 + small)\nr")
    assert notebook["r"].numpy()[0] == 1e-18
    notebook.ok("%%tensor --without stability -q\ns = np.log(1 + small) * 2.0")
    assert notebook["s"].numpy()[0] == 0  # demanded later, and still without
    wrong = notebook("%%tensor --without algebr\nq").error
    assert "can be left out, not" in str(wrong)
    assert "not 'algebr'" in str(wrong)


def test_math(notebook):
    text = "%%tensor --math {}\np = np.log(1 + np.exp(big))\np.sum()"
    notebook["big"] = np.array([1000.0, 2000.0])
    with pytest.warns(RuntimeWarning, match="overflow encountered in exp"):
        assert math.isinf(float(notebook.ok(text.format("exact")).value))
    assert math.isinf(notebook["p"].numpy()[0])  # demanded later, and still this cell's level
    notebook["big"] = np.array([1000.0, 2001.0])
    assert float(notebook.ok(text.format("stable")).value) == 3001.0
    assert tm.config.math == "stable"


def test_plain(notebook):
    ran = notebook.ok("%%tensor --plain --grad w\nprint(type(w).__name__)\nq = np.sum((w - 1) ** 2)\nq")
    assert ran.out.count("ndarray") == 1
    assert isinstance(notebook["q"], np.floating)
    assert notebook["grad_w"].tolist() == [-2, -2, -2]
    assert ran.data["text/plain"] == "3 · grad_w = [-2., -2., -2.]"


def test_plain_by_setting(notebook, monkeypatch):
    monkeypatch.setattr(tm.config, "plain", True)
    ran = notebook.ok("%%tensor\nq = w + 1\nif q.sum() > 0:\n    q = -q\nq")
    assert isinstance(ran.value, np.ndarray)
    assert notebook["q"].tolist() == [-1, -1, -1]


def test_quiet_semicolon_and_none(notebook):
    assert notebook.ok(cell("-q")).displays == []
    assert notebook.ok(cell() + ";").displays == []
    assert "image/svg+xml" not in notebook.ok(cell("--show none")).data
    assert notebook.ok("%%tensor -q\nv = X.sum()").displays == []
    assert not tm.session.kept.values.here().get(notebook["v"].node) if hasattr(tm, "session") else True


def test_force_computes_again(notebook):
    notebook.ok("%%tensor\ns = X.sum()\ns")
    node = notebook["s"].node
    first = session.kept.values.here()[node]
    notebook.ok("%%tensor\ns = X.sum()\ns")
    assert session.kept.values.here()[node] is first
    notebook.ok("%%tensor -f\ns = X.sum()\ns")
    assert session.kept.values.here()[node] is not first


def test_line_magic(notebook):
    assert float(notebook.ok("%tensor np.sum(w + 1)").value) == 3.0
    notebook.ok("v = %tensor w + 1")
    assert isinstance(notebook["v"], tm.Tensor)
    notebook.ok("%tensor u = w + 2")
    assert notebook["u"].tolist() == [2, 2, 2]


def test_braces_and_dollars_are_not_expanded(notebook):
    ran = notebook.ok("%%tensor\nd = {'w': w}\ns = f\"{len(d)}$w\"\nd['w'].sum()")
    assert float(ran.value) == 0.0
    assert notebook["s"] == "1$w"


def test_other_lines_of_a_notebook(notebook):
    notebook.ok("# a comment\n\n%%tensor\n# another\n%precision 3\nfiles = !echo hello\nnp.sum(w)")
    assert notebook["files"] == ["hello"]
    for line in ("%time np.sum(w)", "%%time"):
        ran = notebook(f"%%tensor\n{line}\nnp.sum(w)")
        assert type(ran.error).__name__ == "UsageError"
        assert line.split()[0] in ran.out


@pytest.mark.parametrize("line", ["%whos", "%who", "names = %who_ls"])
def test_what_tells_of_variables_is_refused_where_the_cell_binds_some(notebook, line):
    notebook.ok("a = 1.0")
    assert type(notebook(f"%%tensor\na = 2.0\n{line}").error).__name__ == "UsageError"
    assert notebook["a"] == 1.0
    if not line.startswith("names"):
        notebook.ok(f"%%tensor\n{line}")


def test_verbose_tells(notebook):
    out = notebook.ok(cell("--verbose --grad w")).out
    assert "reads X float64[40, 3], w float64[3], b float, y float64[40]; binds z, loss, grad_w" in out


def test_values_of_any_kind(notebook):
    pair = notebook.ok("%%tensor\n(X.sum(), X.shape[0])").value
    assert float(pair[0]) == pytest.approx(notebook["X"].sum())
    assert notebook.ok("%%tensor\n3 + 4").data["text/plain"] == "7 · int · a number of Python's own, no graph"
    assert notebook.ok("%%tensor\nNone").displays == []
