"""What a cell shows: the one line, the graph beside it, panels; the same for the same cell."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import DifferentiationError
from tensormagic.notebook.display.shown import with_heading
from tensormagic.notebook.display.value_texts import value_text
from tensormagic.notebook.pictures.labels import width

WIDGET = "application/vnd.jupyter.widget-view+json"
CELL = """%%tensor {options}
z = X @ w + b
loss = np.mean(np.log(1 + np.exp(-y * z)))
loss"""


def cell(options: str = "") -> str:
    return CELL.format(options=options)


def first_line(ran) -> str:
    return ran.data["text/plain"].splitlines()[0]


def test_one_line_and_the_graph(notebook):
    data = notebook.ok(cell("--grad w,b --show graph")).data
    assert set(data) == {WIDGET, "text/plain", "image/svg+xml"}
    line, *rest = data["text/plain"].splitlines()
    parts = line.split(" · ")
    assert parts[:2] == ["0.6931471806", "float64"]
    assert re.fullmatch(r"grad_w = \[(-?0\.\d+, ){2}-?0\.\d+\]", parts[2])
    assert parts[3].startswith("grad_b = 0.")
    assert parts[4:] == ["more accurate in line 3: log1p, then softplus"]
    assert re.fullmatch(
        r"graph: 8 ops as written → 6 after rewriting → 14 with the gradient → 1 compiled kernel", rest[0]
    )
    assert rest[1] == "  line 2  z = X @ w + b"
    assert "@, z = · + ·" in rest[2]
    assert "  never less accurate: log(1 + x) -> log1p(x)" in rest
    ET.fromstring(data["image/svg+xml"])
    assert "0.6931471806 · float64" in data["image/svg+xml"]


def test_what_does_not_break_is_not_cut_in_a_picture(notebook):
    """An item of a container is wider than the two boxes of its graph."""
    data = notebook.ok("%%tensor\ndict(mean=X.mean(), spread=X.std(axis=0)[:3], other=X.sum(axis=0)[:3])").data
    root = ET.fromstring(data["image/svg+xml"])
    rows = [(float(t.get("x", 0)), t.text or "") for t in root.findall("{http://www.w3.org/2000/svg}text")]
    assert max(x + width(text, 14, bold=True) for x, text in rows) <= float(root.get("width", 0))


def test_the_widget_shows_the_line_and_when_it_is_opened_every_stage(notebook):
    data = notebook.ok(cell("--grad w")).data
    assert data["text/plain"].splitlines()[1] == "graph: 8 ops as written"
    (views,) = notebook.shell.magics_manager.registry["TensorMagics"].views._live.values()
    (view,) = views
    assert [v["name"] for v in view.scene["views"]] == ["captured"]
    assert (view.expanded, view.scene["begun"]) == (False, True)
    sent = []
    view.send = sent.append
    view._answer(None, {"ask": ["whole"]}, None)
    (reply,) = sent
    whole = reply["content"]
    assert whole["summary"] == "graph: 8 ops as written → 6 after rewriting → 12 with the gradient → 1 compiled kernel"
    assert [v["name"] for v in whole["views"]] == ["captured", "rewritten", "gradient", "kernels"]
    assert [v["picture"] is None for v in whole["views"]] == [True, False, False, False]
    assert whole["more"]
    vertices = [*view.scene["vertices"], *reply["vertices"]]
    names = {v["label"] for v in vertices}
    assert {"X", "w", "b", "y", "exp", "softplus", "sigmoid", "grad_w"} <= names
    roles = {v.get("role", "value") for v in vertices}
    assert "adjoint" in roles
    assert any("softplus" in role for role in roles)
    assert {v["line"] for v in vertices if "line" in v} == {2, 3}
    assert all(v.get("cell") == "In[1]" for v in vertices if "line" in v)
    assert {v.get("kernel") for v in vertices} - {None}
    types = {v["label"]: v["type"] for v in vertices if v["kind"] == "input"}
    assert types["X"] == "float64[40, 3]"


def test_who_asks_for_the_graph_gets_it_open(notebook):
    notebook.ok(cell("--show graph"))
    ((view,),) = notebook.shell.magics_manager.registry["TensorMagics"].views._live.values()
    assert view.expanded


def test_the_text_is_the_same_again(notebook):
    texts = []
    for _ in range(2):
        notebook.shell.execution_count = 1
        data = notebook.ok(cell("objective --grad w,b --show graph,rewrites,annotate")).displays
        texts.append([d["text/plain"] for d in data] + [data[-1]["image/svg+xml"]])
    assert texts[0] == texts[1]


def test_lines_are_those_of_this_run(notebook):
    notebook.shell.execution_count = 501  # labels that no other test has used
    notebook.ok(cell("--grad w"))
    text = notebook.ok("%%tensor --grad w --show annotate,rewrites\n\n" + cell().partition("\n")[2]).data["text/plain"]
    assert "In[501]" not in text
    assert "log1p" in text
    assert "In[502] line 4" in text
    row = next(line for line in text.splitlines() if line.strip().startswith("4 loss"))
    assert "softplus" in row


def test_an_assignment_is_not_computed(notebook):
    ran = notebook.ok("%%tensor\nz = X @ w")
    assert first_line(ran).startswith("z = float64[40], from In[1] line 2, not computed")
    assert "not computed" in repr(notebook["z"])


def test_panels(notebook):
    panels = notebook.ok(cell("--grad w --show rewrites,code,annotate,profile")).data
    assert WIDGET not in panels
    text, page = panels["text/plain"], panels["text/html"]
    for part in (
        "rule",
        "log1p(exp(x)) -> softplus(x)",
        "explog.py:",
        "kernel 1\ndef kernel(",
        "rewritten graph\ngraph(",
        "  2 z = X @ w + b",
        "profile: ",
    ):
        assert part in text
    assert "<script" not in page
    ET.fromstring(f"<root>{page}</root>")


def test_annotate_marks_what_stays_in_numpy(notebook):
    notebook["A"] = np.eye(3)
    data = notebook.ok("%%tensor -a --show annotate\nz = X @ w\nu = np.linalg.solve(A, w)\nu.sum() + z.sum()").data
    rows = data["text/plain"].splitlines()
    assert [row.startswith("*") for row in rows if "np.linalg.solve" in row] == [True]
    assert [row.startswith("*") for row in rows if "X @ w" in row] == [False]
    assert data["text/html"].count('<details class="yellow">') == 1


def test_rules_that_are_withheld_are_told(notebook):
    with np.errstate(all="ignore"):
        text = notebook.ok("%%tensor --show rewrites\nu = 1 + w\nnp.sum(w * np.log(u) / (u - 1))").data["text/plain"]
    assert "withheld" in text
    assert "has another use" in text


def test_speed(notebook):
    text = notebook.ok(cell("-t --show none")).data["text/plain"]
    assert "NumPy, the cell as it is" in text
    assert "tensormagic, on NumPy" in text
    row = next(
        line
        for line in text.splitlines()
        if line.startswith("largest relative difference") or line == "the results are equal to the last digit"
    )
    assert row == "the results are equal to the last digit" or float(row.split(": ")[1].split()[0]) < 1e-12


def test_speed_of_compiled_code(notebook, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "auto")
    notebook["v"] = np.linspace(-3, 3, 1000)
    rows = notebook.ok("%%tensor -t --show none\nnp.sum(np.log(1 + np.exp(v)))").data["text/plain"].splitlines()
    assert any(row.startswith("tensormagic, compiled") for row in rows)
    assert any(
        row.startswith("compiling took ") and (" pays off after " in row or " does not pay" in row) for row in rows
    )
    row = next(
        row
        for row in rows
        if row.startswith("largest relative difference") or row == "the results are equal to the last digit"
    )
    assert row == "the results are equal to the last digit" or float(row.split(": ")[1].split()[0]) < 1e-12


def test_speed_leaves_everything_as_it_was(notebook):
    notebook["g"], notebook["a"] = np.random.default_rng(3), np.ones(3)
    state, legacy = notebook["g"].bit_generator.state, np.random.get_state()[2]  # noqa: NPY002 (a cell may draw from it)
    notebook.ok("%%tensor -t --check --show none\na[0] = 2\nnp.sum(a * w)")
    assert notebook["a"].tolist() == [2, 1, 1]
    assert notebook["g"].bit_generator.state == state
    assert np.random.get_state()[2] == legacy  # noqa: NPY002 (as above)
    text = notebook.ok("%%tensor --check --show none\na[0] += 1\nnp.sum(a)").data["text/plain"]
    assert notebook["a"].tolist() == [3, 1, 1]
    assert "agrees" in text


def test_check(notebook):
    notebook["w"] = np.array([0.3, -0.1, 2.0])
    text = notebook.ok(cell("--grad w,b --check --show none")).data["text/plain"]
    rows = [line for line in text.splitlines() if "against" in line]
    assert len(rows) == 3
    assert all(row.endswith("agrees") for row in rows)
    notebook["big"] = np.array([1000.0, 1.0])
    text = notebook.ok("%%tensor --check --show none\nnp.sum(np.log(1 + np.exp(big)))").data["text/plain"]
    assert "differs; " in text
    assert "digits in place of 15, the captured value is right" in text


@pytest.mark.parametrize(
    "cell", ["(a - 1.0) ** 2", "np.abs(a - 1.0)", "np.cos(a - 1.0) + 7", "np.sum((w - w) ** 2) * a"]
)
def test_check_of_a_gradient_that_is_zero(notebook, cell):
    """At the least value the difference was that of rounding, over 1e-30: ``differs``, by 3.3e+12."""
    notebook["a"] = 1.0
    text = notebook.ok(f"%%tensor --check --grad a\n{cell}").displays[0]["text/plain"]
    assert text.count("agrees") == 2


def test_check_says_which_operation_and_line_have_a_wrong_derivative(notebook):
    notebook["w"] = np.array([0.3, -0.1, 2.0])
    text = notebook.ok(
        "%%tensor --grad w --check --show none\nu = np.exp(w)\nnp.sum(tm.stop_gradient(w ** 2) * u)"
    ).data["text/plain"]
    (row,) = [line for line in text.splitlines() if "against finite differences" in line]
    assert "differs: the forward derivative of stop_gradient" in row
    assert row.endswith("line 3")


def test_a_lazy_value_alone(notebook):
    notebook.ok("%%tensor\nz = X @ w + b\nq = z.sum()")
    data = notebook.ok("q").data
    assert data["text/plain"].splitlines()[:2] == [
        "0 · float64 · from In[1] line 3",
        "graph: 3 ops as written",
    ]
    assert WIDGET in data
    assert "image/svg+xml" in data
    alone = notebook.ok("v = tm.tensor(np.arange(3.0))\nv").data
    assert set(alone) == {"text/plain", "text/html"}
    assert alone["text/plain"] == "[0., 1., 2.] · float64[3]"
    assert notebook.ok("[q]").data["text/plain"] == "[np.float64(0.0)]"  # as in a list of NumPy's numbers
    assert "array([" in notebook.ok("[z]").data["text/plain"]


def test_widgets_of_a_cell_that_runs_again_are_closed(notebook):
    import ipywidgets

    held = ipywidgets.widgets.widget._instances
    before = set(held)
    notebook.ok(cell("--grad w"))
    first = set(held) - before
    assert first
    notebook.ok(cell("--grad w"))
    second = set(held) - before
    assert len(second) == len(first)
    assert not first & second
    notebook.ok(cell("--show none"))
    assert set(held) - before == second  # another cell


def test_a_large_graph_is_drawn_in_groups_of_lines(notebook):
    data = notebook.ok("%%tensor --show graph\nv = w\n" + "v = np.tanh(v + 1.5)\n" * 700 + "v.sum()").data
    assert "lines 3–" in data["image/svg+xml"]
    assert len(data["image/svg+xml"]) < 200_000
    assert re.search(r"14\d\d ops as written → ", data["text/plain"])


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%%tensor\nv = r * 2\nv", "3 ops as written, 2 of them in In[1]"),
        ("%%tensor\nt + r.sum()", "6 ops as written, 4 of them in earlier cells"),
        ("r", "2 ops as written"),
        ("%%tensor\nnp.exp(r)", "3 ops as written, 2 of them in In[1]"),
        ("%%tensor\nh(w) + 2", "3 ops as written, 2 of them in In[3]"),
        ("%%tensor\nnp.exp(w) * 2", "2 ops as written"),
        ("%%tensor\nu * 2", "4 ops as written, 3 of them in In[4]"),
    ],
)
def test_ops_of_other_cells_are_counted_apart(notebook, cell, said):
    """A cell of one operation had thirty."""
    notebook.ok("%%tensor --show none\nr = np.tanh(w) + 1")
    notebook.ok("%%tensor --show none\nt = np.cos(w).sum()")
    notebook.ok("h = lambda v: np.sin(v) * 1")
    notebook.ok("%%tensor --show none\nu = w\nfor k in range(50):\n    u = np.tanh(u) * 0.9")
    assert f"graph: {said}" in notebook.ok(cell).data["text/plain"].splitlines()


def test_groups_of_other_cells_are_called_as_these(notebook):
    """They were *no line*."""
    notebook.ok(f"%%tensor --show none\nr = {'np.tanh(' * 15}w{' + 1)' * 15}")
    notebook.ok(f"%%tensor --show none\ns = {'np.cos(' * 15}r{' + 1)' * 15}")
    picture = notebook.ok("%%tensor\nu = s * 2\nu + 1").data["image/svg+xml"]
    assert {"In[1]", "In[2]"} <= set(re.findall(r">([^<>]*)</text>", picture))
    assert "no line" not in picture


@pytest.mark.parametrize("gradients", ["a", "a,b", "a,b,c"])
def test_no_row_of_a_heading_ends_in_the_sign_between_two_parts(notebook, gradients):
    notebook["a"], notebook["b"], notebook["c"] = 1.2345678, 2.3456789, 3.4567891
    picture = notebook.ok(f"%%tensor --grad {gradients}\nnp.sin(a) * b * c").data["image/svg+xml"]
    rows = re.findall(r'<text class="view" x="16"[^>]*>([^<]*)</text>', picture)
    assert len(rows) > 1
    assert not [row for row in rows if row.rstrip().endswith("·")]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("p = np.exp(X) / np.sum(np.exp(X), axis=1)", "np.exp(X) / np.sum(np.exp(X), axis=1, keepdims=True)"),
        ("s = np.sum(X, axis=1)\ns @ X @ X", "np.sum(X, axis=1, keepdims=True)"),
        ("m = np.mean(X, axis=1)\nX - m", "X - np.mean(X, axis=1, keepdims=True)"),
    ],
)
def test_what_a_failed_cell_has_built_is_the_next_cells(notebook, wrong, right):
    """Parts that both have in common were told to be of the failed one, and a mean of them was a quotient."""
    fresh = notebook.ok(f"%%tensor\n{right}").data["text/plain"]
    notebook["X"] = np.array(notebook["X"])  # another input: nothing is known of it
    assert not notebook(f"%%tensor\n{wrong}").result.success
    assert notebook.ok(f"%%tensor\n{right}").data["text/plain"] == fresh


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 / 3, "0.3333333333"),
        (np.float32(0.5), "0.5"),
        (3, "3"),
        (True, "True"),
        (np.bool_(False), "False"),
        (float("nan"), "nan"),
        (1e300, "1e+300"),
        (2 + 1j, "2+1j"),
        (np.arange(3), "[0, 1, 2]"),
        (np.arange(100.0), "[0., 1., 2., …, 97., 98., 99.]"),
        (np.zeros((2, 0)), "[]"),
        (np.array(1.5), "1.5"),
        ("text", "'text'"),
    ],
)
def test_value_text(value, text):
    assert value_text(value) == text


def test_a_matrix_stays_on_one_line():
    assert "\n" not in value_text(np.zeros((50, 50)))
    assert len(value_text(np.random.default_rng(0).normal(size=(50, 50)))) <= 72


def test_the_heading_is_escaped():
    size = 'width="10" height="20" viewBox="0 0 10 20"'
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" style="max-width:100%;height:auto">\n</svg>\n'
    made = with_heading(picture, "a < b & c")
    root = ET.fromstring(made)
    assert "a < b & c" in "".join(root.itertext())
    assert float(root.get("height")) == 48


def test_a_profile_times_the_lines_inside_a_loop(notebook):
    notebook.ok(
        "%%tensor\nh = X[0]\nfor k in range(50):\n    h = h + np.sort(h)\n    if h.sum() > 0:\n        h = h / 2\nt = h.sum()\nt"
    )
    rows = notebook.ok("%tensor_profile").data["text/plain"].splitlines()
    timed = [int(row.rpartition("s  ")[2].split()[0]) for row in rows if " %  " in row]
    assert {4, 5, 6, 7} <= set(timed)


def test_a_closer_look(notebook):
    notebook.ok(cell("--grad w"))
    data = notebook.ok("%tensor_graph loss").data
    assert WIDGET in data
    assert data["text/plain"].startswith("loss\ngraph: ")
    assert "log1p(exp(x)) -> softplus(x)" in notebook.ok("%tensor_rules loss").data["text/plain"]
    notebook.ok("loss")
    assert "  2 z = X @ w + b" in notebook.ok("%tensor_profile").data["text/plain"]
    assert " files, " in notebook.ok("%tensor_cache").out
    assert "there is no variable los" in notebook("%tensor_graph los").out
    assert "X is ndarray" in notebook("%tensor_rules X").out


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("np.log(1 + np.exp(w)).sum()", "more accurate in line 2: log1p, then softplus"),
        ("X.T @ X", "rewritten in line 2"),
        ("(-X).sum()", "rewritten in line 2"),
        ("np.std(w)", "more accurate in line 2: sqrt(sum(x**2))"),
        ("np.sqrt(2 + w**2) - np.sqrt(1 + w**2)", "more accurate in line 2: f(a) - f(b), sqrt(1 + x * x)"),
        ("np.mean(w**2) - np.mean(w)**2", "more accurate in line 2: mean(x**2) - mean(x)**2"),
        ("np.sum(X + 1)", ""),
    ],
)
def test_the_word_says_what_rules_were_there_for(notebook, text, word):
    """A product of a transposed matrix is no formula that loses digits: it was called more accurate."""
    line = notebook.ok(f"%%tensor\n{text}").data["text/plain"].splitlines()[0]
    assert line.rpartition(" · ")[2] == word or (not word and line.rpartition(" · ")[2].startswith("float64"))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("np.sum(np.tanh(w))", "more accurate in the gradient of line 2"),
        ("np.mean(np.tanh(X @ w) ** 2)", "more accurate in the gradient of line 2"),
        ("t = 1.0\nnp.sum(np.tanh(w) * t)", "more accurate in the gradient of line 3"),
        (
            "if w[0] > 9:\n    s = np.sum(w)\nelse:\n    s = np.tanh(w).sum()\ns",
            "more accurate in the gradient of line 5",
        ),
        ("np.sum(np.log(1 + np.exp(w)) + np.tanh(w))", "more accurate in line 2: log1p, then softplus"),
        ("np.sum(w ** 2)", "grad_w"),
    ],
)
def test_what_rules_have_changed_in_a_gradient_alone_is_said_of_it(notebook, text, word):
    """The formulas are none that the user wrote: the derivative of tanh was told by names of its own."""
    line = notebook.ok(f"%%tensor --grad w\n{text}").data["text/plain"].splitlines()[0]
    assert line.rpartition(" · ")[2].startswith(word)


def test_a_terminal_gets_text_alone(notebook, monkeypatch):
    monkeypatch.setattr(type(notebook.shell.magics_manager.registry["TensorMagics"]), "rich", False)
    data = notebook.ok(cell("--show graph,rewrites")).data
    assert list(data) == ["text/plain"]
    assert data["text/plain"].splitlines()[1] == "rewrites"
    assert "x, y in a rule: whatever stands there" in data["text/plain"].splitlines()


def test_rules_say_of_what_they_are_and_what_their_units_mean(notebook):
    notebook.ok(cell())
    title, *lines = notebook.ok("%tensor_rules").data["text/plain"].splitlines()
    assert title == "rewrites of loss"
    (unit,) = [
        line
        for line in lines
        if line.startswith("a unit in the last place is the distance from the result to the next float")
    ]
    assert re.search(
        "; of the 15.7 digits that a float64 has, an error of [0-9.]+ of them leaves 1[0-9.]+$|errors below 1 differ little$",
        unit,
    )
    assert any(
        line.startswith("the error of a row is that of its step alone, with exact numbers put in") for line in lines
    )


def test_containers_have_a_row_for_each_item_and_numbers_keep_their_sign(notebook):
    notebook.ok("u, x0 = np.arange(2.0), 1.0")
    assert notebook.ok("%%tensor --grad x0 --show none\n-x0 ** 2").data["text/plain"] == "-1 · float · grad_x0 = -2"
    text = notebook.ok("%%tensor --show none\ns = u.sum()\n(u * 2, s, 3)").data["text/plain"]
    assert text.splitlines() == ["u * 2 = [0., 2.] · float64[2]", "s = 1 · float64", "[2] = 3"]
    text = notebook.ok("%%tensor --show none\n{'a': u + 1, 7: (u.sum(), 'no')}").data["text/plain"]
    assert text.splitlines() == ["['a'] = [1., 2.] · float64[2]", "[7] = (1, 'no')"]
    text = notebook.ok("%%tensor --show none\n[u[0] + k for k in range(25)]").data["text/plain"].splitlines()
    assert len(text) == 21
    assert text[-1] == "… 5 more"


def test_items_of_a_tuple_are_called_as_they_are_written(notebook):
    ran = notebook.ok(
        "%%tensor\nz = X @ w + b\n(z.mean(), z.std() * 1, z[:2], z.sum() + z.max() + z.min() + np.median(z) + 1)"
    )
    rows = [row.partition(" = ")[0] for row in ran.data["text/plain"].splitlines()[:4]]
    assert rows == ["z.mean()", "z.std() * 1", "z[:2]", "[3]"]


@pytest.mark.parametrize("shape", [(5,), (40,), (2, 3), (40, 10), (3, 4, 5), (2, 2, 2, 2, 2), (0, 3), (1, 200)])
def test_arrays_on_a_line_end_as_they_begin(shape):
    """At every size: as many elements of each end as there is room for, with no second ellipsis in the middle of a number."""
    value = np.random.default_rng(0).normal(size=shape)
    text = value_text(value)
    assert len(text) <= 72
    assert "…,…" not in text
    assert text.count("[") == text.count("]")


def test_gradients_of_containers_are_refused_in_plain_words(notebook):
    ran = notebook("%%tensor --grad w\nz = X @ w\n(z.mean(), z)")
    assert isinstance(ran.error, DifferentiationError)
    assert "a gradient is of one number, but the cell's value is a tuple" in ran.out
    assert "Hint: End the cell with the number, or name it: --of loss." in ran.out
    ran = notebook("%%tensor --grad w\nz = X @ w\nfar, near = z.max(), z.min()\nz, near, far")
    assert "Hint: End the cell with the number, or name it: --of near." in ran.out


def test_an_option_without_its_value_says_so(notebook):
    assert "%%tensor --grad needs a value" in notebook("%%tensor --grad\nX.sum()").out


def test_check_moves_what_an_earlier_cell_computed_from_the_variable(notebook):
    notebook["w"], notebook["b"] = np.array([0.3, -0.1, 2.0]), 0.25
    notebook.ok(cell("--grad w,b"))
    notebook.ok("w = w - 0.1 * grad_w\np = w[:2] * b")
    text = notebook.ok("%%tensor --grad w,b,p --check --show none\np @ p + b * np.sum(X @ w)").data["text/plain"]
    rows = [" ".join(line.split()) for line in text.splitlines() if "against finite" in line]
    assert [row.partition("agrees")[2] for row in rows] == [
        "; through p, too, which an earlier cell computed from w",
        "; through w, p, too, which an earlier cell computed from b",
        "",
    ]


def test_a_gradient_is_from_its_cell_and_not_from_the_line_that_uses_it(notebook):
    notebook.ok("k, c = 1.0, 2.0")
    notebook.ok("%%tensor -q --grad k,c\nnp.mean((k * w + c - 1) ** 2)")
    notebook.ok("k -= 0.5 * grad_k\nq = 3 * grad_c")
    for name in ("grad_k", "grad_c"):
        assert " · from In[2] line 2" in first_line(notebook.ok(name))
