"""Calls of a library in pictures: one box each, called as it was written, where nothing else reads what it is made of."""

from __future__ import annotations

import pytest

from tensormagic.notebook.pictures.labels import placeholders
from tensormagic.notebook.pictures.shapes import mark, vertex_face

START = "X = np.random.default_rng(0).normal(size=(40, 3)); y = X[:, 0]; w = np.zeros(3); t = np.arange(40) % 3"
CELLS = {  # a cell's lines, and the boxes of the captured graph that compute
    "loss = np.mean((X @ w - y)**2)\nloss": ["@", "−", "· ** 2", "loss = mean"],
    "s = X.std(axis=0)\ns": ["s = std(·, axis=0)"],
    "c = np.clip(X @ w, -1, 1)\nc": ["@", "c = clip(·, -1, 1)"],
    "m = np.median(y) + np.average(y, weights=y**2) + np.linalg.norm(w)\nm": [
        *("median", "· ** 2", "average", "+", "norm", "m = · + ·"),
    ],
    # the mean that the standard deviation needs is that of the line, too
    "z = (X - X.mean(axis=0)) / X.std(axis=0)\nz": ["mean(·, axis=0)", "−", "std(·, axis=0)", "z = · / ·"],
    "v = np.var(y)\ns = np.std(y)\nv + s": ["v = var", "s = sqrt", "+"],
    # written out, the steps are the user's own
    "m = np.sum(y) / len(y)\nm": ["sum", "m = · / 40"],
    "from scipy.stats import norm\nd = norm.logpdf(y, 0, 2)\nd": ["d = logpdf(·, 0, 2)"],
    "def half(a):\n    return np.exp(a) / 2\nh = half(y)\nh": ["exp", "· / 2"],
    # a part of an array is one box, with the places that it is read from, or stored at
    "p = np.exp(X)\nloss = -np.mean(np.log(p[np.arange(40), t]))\nloss": [
        *("p = exp", "p[np.arange(40), t]", "log", "mean", "loss = − ·"),
    ],
    "q = y * 2\ns = np.sum(q[q > 0])\ns": ["q = · × 2", "· > 0", "q[q > 0]", "s = sum"],
    "k = np.argmax(y)\nd = y[k - 1]\nd": ["k = argmax", "d = y[k - 1]"],
    "m = np.zeros((3, 3))\nm[t[:3], t[:3]] += 1.0\nm[t] = 0.5\nm": [
        *("t[:3]", "[t[:3], t[:3]]", "m[t[:3], t[:3]]", "m = · + 1", "m[t[:3], t[:3]] = ·", "m[t] = ·"),
    ],
    "s = 0.0\nfor k in range(9):\n    s = s + np.mean(y * s)\ns": ["s = loop × 9"],
}


@pytest.mark.parametrize("cell", CELLS)
def test_a_call_is_one_box(notebook, cell):
    notebook.ok(START)
    report = notebook.ok(f"%%tensor\n{cell}").value.report
    view = report.portrait.scene(report.outcome.source).view("captured")
    boxes = [v.title for v in view.drawn.vertices if v.is_op]
    assert sorted(boxes) == sorted(CELLS[cell])
    assert view.ops == sum(v.is_op for v in view.drawn.everything())
    known = {v.id for v in view.drawn.vertices}
    assert all({edge.source, edge.target} <= known for edge in view.drawn.edges)


def test_each_round_of_a_loop_that_python_runs_has_boxes_of_its_own(notebook):
    notebook.ok(START)
    cell = "%%tensor\nparts = {}\nfor k in range(3):\n    parts[str(k)] = np.mean(y**k) + np.std(y + k)\nparts['0'] + parts['2']"
    drawn = _captured(notebook.ok(cell))
    assert [v.label for v in drawn.everything() if v.label in {"mean", "std"}].count("std") == 2
    cell = "%%tensor\nx, seen = y, {}\nfor k in range(3):\n    x = np.hypot(x, y)\n    seen[str(k)] = 1\nx"
    assert [v.label for v in _captured(notebook.ok(cell)).everything() if v.is_op] == ["hypot"] * 3


def _captured(ran):
    return ran.value.report.portrait.scene(ran.value.report.outcome.source).view("captured").drawn


def test_every_step_shows_what_a_call_became_and_its_time_is_that_of_all(notebook):
    notebook.ok(START)
    report = notebook.ok("%%tensor --grad w\nnp.std(X @ w - y)").value.report
    scene = report.portrait.scene(report.outcome.source)
    captured = scene.view("captured")
    (box,) = [v for v in captured.drawn.vertices if v.label == "std"]
    assert {"sum", "subtract", "multiply", "divide", "sqrt"} <= {v.label for v in captured.vertices}
    assert "all" in captured.groupings
    measured = scene.message(deep=True)["parts"][0][1]["measured"]
    assert box.number < 0
    assert {"seconds", "value"} <= measured[str(box.number)].keys()
    times = [scene.details.measured[part]["seconds"] for part in box.parts if "seconds" in scene.details.measured[part]]
    assert len(times) > 3
    assert measured[str(box.number)]["value"] == scene.details.measured[-box.number]["value"]


def test_what_the_gradient_reads_of_a_call_has_its_own_boxes(notebook):
    notebook.ok(START)
    report = notebook.ok("%%tensor --grad w\nnp.std(X @ w - y)").value.report
    view = report.portrait.scene(report.outcome.source).view("gradient")
    assert "std" not in {v.label for v in view.drawn.vertices}  # what is centred goes into the gradient


def test_a_loop_holds_calls(notebook):
    notebook.ok(START)
    report = notebook.ok("%%tensor\ns = 0.0\nfor k in range(9):\n    s = s + np.mean(y * s)\ns").value.report
    (bodies,) = report.portrait.scene(report.outcome.source).view("captured").drawn.inner.values()
    assert [v.title for v in bodies[0].vertices if v.is_op] == ["×", "mean", "s = · + ·"]


def test_indices_that_a_gradient_reads_have_a_box_of_their_own(notebook):
    notebook.ok(START)
    cell = "%%tensor --grad X\np = np.exp(X)\n-np.mean(np.log(p[np.arange(40), t]))"
    report = notebook.ok(cell).value.report
    scene = report.portrait.scene(report.outcome.source)
    rewritten, gradient = (scene.view(name).drawn for name in ("rewritten", "gradient"))
    assert {v.title: v.type for v in rewritten.vertices}["p[np.arange(40), t]"] == "float64[40]"
    titles = {v.id: v.title for v in gradient.vertices}
    assert "logical_and" not in titles.values()
    given = {title: [titles[e.source] for e in gradient.edges if e.target == key] for key, title in titles.items()}
    assert given["[np.arange(40), t]"] == ["t"]
    assert "[np.arange(40), t]" in given["p[np.arange(40), t]"]
    assert "[np.arange(40), t]" in given["·[…] += ·"]


@pytest.mark.parametrize(
    "cell",
    [
        "x[1] - x[0] ** 2",
        "np.sum((x[1:] - x[:-1]) ** 2)",
        "np.sum(x[i] ** 2)",
        "s = 0.0\nfor k in range(3):\n    s = s + x[k] ** 2\ns",
        "y = x * 2\ny[0] = x[1]\nnp.sum(y ** 2)",
        "np.sum(x[::2]) if x[0] > 0 else np.sum(x[1:] ** 3)",
    ],
)
def test_no_box_has_the_name_of_a_store_that_nobody_has_written(notebook, cell):
    notebook.ok("x, i = np.arange(1.0, 5.0), np.array([0, 2, 2])")
    report = notebook.ok(f"%%tensor --grad x\n{cell}").value.report
    titles = [v.title for view in report.portrait.scene(report.outcome.source).views for v in view.drawn.everything()]
    assert not [t for t in titles if "add_at" in t or "scatter" in t or t == "set"]
    assert any("[…] += ·" in t for t in titles) or "for" in cell or "if" in cell


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("f(p, x)", {"q['W']", "q['b']"}),
        ("g(L, x)", {"rows[0]", "rows[1]"}),
        ("h(pair, x)", {"a", "b"}),
        ("of(model, x)", {"m.w"}),
        ("f({'W': p['W'], 'b': np.zeros(4)}, x)", {"p['W']"}),
    ],
)
def test_arrays_in_containers_have_the_names_they_are_reached_by(notebook, text, names):
    notebook.ok(
        "x = np.arange(4.0)\np = {'W': np.ones((4, 4)), 'b': np.ones(4)}\nL = [np.ones(4), np.full(4, 2.0)]\n"
        "pair = (np.full(4, 3.0), np.full(4, 4.0))\n"
        "class Model: pass\nmodel = Model()\nmodel.w = np.full(4, 5.0)\n"
        "def f(q, x):\n    return np.sum(np.tanh(x @ q['W'] + q['b']))\n"
        "def g(rows, x):\n    return np.sum(x * rows[0] + rows[1])\n"
        "def h(two, x):\n    a, b = two\n    return np.sum(x * a + b)\n"
        "def of(m, x):\n    return np.sum(x * m.w)"
    )
    report = notebook.ok(f"%%tensor\n{text}").value.report
    found = {v.title for v in report.portrait.scene(report.outcome.source).views[0].drawn.vertices}
    assert not [t for t in found if t.startswith("array")]
    assert names <= found


def test_a_name_keeps_its_type_whatever_a_later_line_makes_of_it(notebook):
    notebook.ok(START)
    drawn = _captured(notebook.ok("%%tensor\np = np.exp(X)\nq = p.reshape(120)\nnp.sum(q * 2)"))
    assert {v.title: v.type for v in drawn.vertices}["p = exp"] == "float64[40, 3]"


def test_a_function_with_several_names_is_called_as_the_user_calls_it(notebook):
    cell = "%%tensor\na = 2.0\nz = a\nwhile abs(z * z - a) > 1e-12:\n    z = (z + a / z) / 2\nnp.abs(z) + np.absolute(-z) + np.asin(z / 9)"
    drawn = _captured(notebook.ok(cell))
    named = {"abs", "absolute", "asin", "arcsin"}
    assert [v.label for v in drawn.vertices if v.label in named] == ["abs", "absolute", "asin"]
    (bodies,) = drawn.inner.values()
    test = next(body for body in bodies if body.name == "test")
    boxes = [v.label for v in test.vertices if v.kind in {"output", "pointwise"}]
    assert boxes == ["multiply", "subtract", "abs", "· > 1e-12", "goes on"]


def test_a_product_says_which_operand_is_transposed(notebook):
    notebook.ok(START)
    notebook.ok("W = np.zeros((3, 4)); a_name_of_many_letters = np.zeros((40, 4))")
    report = notebook.ok(
        "%%tensor --grad W\nlogits = X @ W\nnp.sum((logits - a_name_of_many_letters) ** 3)"
    ).value.report
    scene = report.portrait.scene(report.outcome.source)
    found = {
        name: [v.title for v in scene.view(name).drawn.vertices if v.kind == "contract"]
        for name in ("captured", "gradient")
    }
    assert found == {"captured": ["logits = · @ ·"], "gradient": ["logits = · @ ·", "X.T @ ·"]}
    report = notebook.ok("%%tensor\nX.T @ a_name_of_many_letters").value.report
    view = report.portrait.scene(report.outcome.source).view("rewritten").drawn
    assert "X.T @ ·" in [v.title for v in view.vertices]


def test_the_legend_has_what_is_drawn_and_rules_say_that_their_letters_are_none_of_the_cells(notebook):
    notebook.ok(START)
    report = notebook.ok("%%tensor --grad w\nnp.mean(np.log(1 + np.exp(-y * (X @ w))))").value.report
    message = report.portrait.scene(report.outcome.source).message()
    assert message["ruled"].startswith("more accurate: ")
    assert report.line.endswith("more accurate in line 2: log1p, then softplus")
    assert [kind for kind, *_ in message["legend"] if kind] == ["input", "pointwise", "fold", "contract", "output"]
    assert any(told.startswith("∂") for *_, told in message["legend"])
    lines = [
        text.text for v in report.portrait.scene("").view("gradient").drawn.vertices for text in vertex_face(v).texts
    ]
    assert "for\N{NO-BREAK SPACE}any\N{NO-BREAK SPACE}x,\N{NO-BREAK SPACE}p" in lines  # the cell has a y
    told = " ".join(lines)
    assert "product(-x, p)" in told
    assert "einsum" not in told
    assert message["ruled"].endswith(": 2 rules")
    assert placeholders("exp(v) / sum(exp(v), axes) -> softmax(v, axes)", "{}") == "v"
    assert placeholders("sqrt(sum(x**2)) -> sqrt(sum((c * x)**2)) / c for a power of two c", "{}") == "x, c"
    assert placeholders("f(a) - f(b) -> by a - b where both are near", "{}") == "a, b"


def test_what_rules_have_made_for_a_gradient_alone_is_marked_as_its(notebook):
    notebook.ok(START)
    report = notebook.ok("%%tensor --grad w\nnp.mean(np.log(1 + np.exp(-y * (X @ w))))").value.report
    scene = report.portrait.scene(report.outcome.source)
    for name in ("gradient", "kernels"):
        drawn = scene.view(name).drawn
        given = {v.id: {e.source for e in drawn.edges if e.target == v.id} for v in drawn.vertices}
        needed, stack = set(), [v.id for v in drawn.vertices if v.kind == "output" and v.label == "value"]
        stack += list(drawn.outputs[:1])
        while stack:
            key = stack.pop()
            needed.add(key)
            stack += given[key] - needed
        assert all((mark(v) == "∂") is (v.id not in needed) for v in drawn.vertices if v.is_op)
        assert sum(mark(v) == "∂" for v in drawn.vertices) > 3


@pytest.mark.parametrize(
    ("cell", "named"),
    [
        ("c = X - X.mean(0)\ns = X.std(0)\nz = c / np.where(s > 0, s, 1.0)\nz", {"c = · − ·", "s = std(·, 0)"}),
        ("c = y - y.mean()\nv = y.var()\nz = c / v\nz", {"c = · − ·", "v = var"}),
        ("v = np.var(X, axis=0)\nc = X - X.mean(axis=0)\nz = np.sum(c / v)\nz", {"c = · − ·", "v = var(·, axis=0)"}),
        ("m = y.mean()\nz = (y - m) / y.std()\nz", {"m = mean", "std"}),
        ("e = np.exp(y)\nd = np.log(np.sum(np.exp(y)))\nz = e - d\nz", {"e = exp", "d = log"}),
        ("n = np.abs(y)\nz = n / np.linalg.norm(y, 1)\nz", {"n = abs"}),
    ],
)
def test_names_are_the_same_where_an_earlier_cell_has_the_same_code(notebook, cell, named):
    """A part of what a cell shares with an earlier one had a name of its own, which then stood at the whole."""
    notebook.ok(START)
    once, again = (
        {v.title for v in _captured(notebook.ok(f"%%tensor\n{before}{cell}")).vertices if v.is_op}
        for before in ("", "# again\n\n")
    )
    assert named <= once
    assert named <= again
