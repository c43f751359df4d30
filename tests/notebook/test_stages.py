"""Views of a graph are stages of one computation, counted alike everywhere; operations that rules bring in say what they are."""

from __future__ import annotations

import re

import pytest

from tensormagic.notebook.pictures.labels import STAGES, changes
from tensormagic.notebook.pictures.scene import Scene, Vertex, View
from tensormagic.notebook.pictures.shapes import vertex_face
from tensormagic.ops.meaning import brought_in
from tensormagic.ops.op import registry

CELLS = {
    "a branch": "z = 0.0\nif x.sum() > -1:\n    z = np.log(1 + np.exp(x)).sum()\nz",
    "a loop": "h = x\nfor k in range(3):\n    h = np.log(1 + np.exp(h))\nh.sum()",
    "a product": "np.sum(np.einsum('ij,kj->ik', A, A) * 2)",
    "rows": "np.sum(np.log(np.sum(np.exp(A), axis=1)))",
    "a ratio": "e = np.exp(A)\nnp.sum((e / e.sum(axis=1, keepdims=True)) ** 2)",
    "nothing to rewrite": "np.sum(np.sin(x) * 2.0)",
}


@pytest.fixture
def there(notebook):
    notebook.ok("x, A = np.linspace(-1, 1, 4), np.arange(6.0).reshape(2, 3) / 5")
    return notebook


def scene_of(notebook, text, options=""):
    report = notebook.ok(f"%%tensor {options}\n{text}").value.report
    return report.portrait.scene(report.outcome.source)


@pytest.mark.parametrize("options", ["", "--grad x"])
@pytest.mark.parametrize("name", CELLS)
def test_the_line_the_tabs_and_the_pictures_count_alike(there, name, options):
    options = options.replace("x", "A") if "x" not in CELLS[name].replace("exp", "").replace("axis", "") else options
    scene = scene_of(there, CELLS[name], options)
    said = scene.summary.removeprefix("graph: ").split(" → ")
    assert len(said) == len(scene.views) == 3 + bool(options)
    for told, view, message in zip(said, scene.views, scene.message()["views"], strict=True):
        assert message["stage"] == STAGES[view.name]
        assert message["counted"].split()[0] == told.split()[0]
        assert told.endswith(STAGES[view.name]) or view.name == "kernels"


def test_a_scene_of_other_places_than_stages_has_a_summary():
    views = View("where it runs", (Vertex("a", "exp", "pointwise"),), ()), View("again", (), ())
    assert Scene("", "", views[:1]).summary == "graph: 1 op"
    assert Scene("", "", views).summary == "graph: 1 op → 0 again"


@pytest.mark.parametrize(
    ("name", "op", "words"),
    [
        ("a branch", "softplus", "log(1 + exp(x)), without overflow (np.logaddexp(x, 0))"),
        ("a loop", "softplus", "log(1 + exp(x)), without overflow (np.logaddexp(x, 0))"),
        ("rows", "logsumexp", "log(sum(exp(x))), without overflow (scipy.special.logsumexp)"),
        ("a ratio", "softmax", "exp(x) / sum(exp(x)), without overflow (scipy.special.softmax)"),
    ],
)
def test_an_operation_that_a_rule_brought_in_says_what_it_is(there, name, op, words):
    view = scene_of(there, CELLS[name]).view("rewritten")
    found = [v for v in view.drawn.everything() if v.label == op]
    assert found
    assert {v.meaning for v in found} == {words}


def test_what_the_user_wrote_is_not_explained(there):
    scene = scene_of(there, CELLS["rows"], "--grad A")
    told = {v.label: v.meaning for view in scene.views for v in view.drawn.everything()}
    assert told["sum"] == told["log"] == told["exp"] == ""
    own = scene_of(there, "from scipy.special import xlogy\nnp.sum(xlogy(x + 2, x + 3))")
    assert {v.meaning for v in own.view("captured").everything() if v.label == "xlogy"} == {""}


@pytest.mark.parametrize("grad", ["A", "x"])
def test_every_operation_of_a_gradient_that_has_no_sign_is_explained_or_written(there, grad):
    scene = scene_of(
        there, "w = A @ np.arange(3.0)\nnp.sum(np.log(1 + np.exp(w * np.sum(x))) ** 1.5)", f"--grad {grad}"
    )
    for view in scene.views:
        for v in view.drawn.everything():
            sign = "·" in v.title or "@" in v.title or not re.search(r"[a-z]{2}", v.title)
            written = re.search(rf"\b{re.escape(v.label)}\b", scene.source)
            assert not v.is_op or v.kind == "region" or v.meaning or sign or written, v


def test_the_steps_say_what_is_new_in_them(there):
    steps = scene_of(there, CELLS["rows"]).details.steps["rewritten"]
    told = [r for step in steps for r in step.rewrites]
    assert any("logsumexp is log(sum(exp(x))), without overflow" in r.meant for r in told)
    assert {r.level for r in told} <= {"same digits", "never less accurate"}


def test_every_rule_text_that_brings_in_an_operation_finds_its_doc():
    found = brought_in(
        ["log(sum(exp(v), axes)) -> logsumexp(v, axes)", "exp(x) - 1 -> expm1(x)", "x * 2 -> x + x", "softplus"]
    )
    assert [*found] == ["logsumexp", "expm1", "softplus"]
    assert all(found.values())
    assert all(op.doc for op in registry.values() if op.kind in {"pointwise", "fold", "contract", "opaque"})


def test_the_table_of_rules_has_words_for_strangers(there):
    there.ok(f"%%tensor\n{CELLS['rows']}")
    data = there.ok("%tensor_rules").data
    head = data["text/plain"].splitlines()[1]
    assert re.split(r"  +", head) == ["rule", "what may change", "your line", "rule written in", "gain and cost"]
    assert changes("stable") in data["text/plain"]
    assert data["text/html"].count("<th ") == data["text/html"].count(" title=") == 5
    assert data["text/plain"].splitlines()[-1].startswith("logsumexp: log(sum(exp(x)))")
    assert not re.search(r"\b(stable|exact)\b", data["text/plain"])


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("np.sum(np.log(1 + np.exp(x)))", "more accurate in line 2: log1p, then softplus"),
        (
            "z = x * 2\nu = np.log(1 + np.exp(z))\nnp.sum(u + np.log(1 + z ** 2 * 1e-9))",
            "more accurate in lines 3, 4: ",
        ),
        (
            "h = x\nfor k in range(3):\n    h = np.log(1 + np.exp(h))\nh.sum()",
            "more accurate in line 4: log1p, then softplus",
        ),
        ("np.log(np.sum(np.exp(A)))", "more accurate in line 2: logsumexp"),
        ("np.sum(x * 3)", ""),
    ],
)
def test_the_word_under_a_cell_names_the_line_and_what_stands_there(there, cell, words):
    line = there.ok(f"%%tensor\n{cell}").data["text/plain"].splitlines()[0]
    assert (words in line) if words else ("more accurate" not in line)


def test_formulas_of_a_gradient_are_not_named_under_the_cell(notebook):
    notebook.ok("X = np.arange(12.0).reshape(4, 3) / 10; W = np.ones((3, 2)) / 3; t = np.arange(4.0)")
    line = (
        notebook.ok("%%tensor --grad W\nh = np.tanh(X @ W)\nfit = np.mean((h.sum(1) - t) ** 2)\nfit")
        .data["text/plain"]
        .splitlines()[0]
    )
    assert "exp(" not in line
    if "more accurate" in line:
        assert "more accurate in the gradient of line 2" in line


@pytest.mark.parametrize(
    "line",
    [
        "log_chances = scores - np.log(np.sum(np.exp(scores)))",
        "hidden = np.maximum(0, scores)",
        "cross_entropy = np.mean(scores)",
        "squared_error = (scores - 1.0) ** 2",
        "probability_of_rain = scores / 40",
        "standardised = np.clip(scores, 0, 1)",
    ],
)
def test_names_of_usual_length_are_not_cut_in_boxes(notebook, line):
    notebook.ok("scores = np.linspace(0, 2, 30)")
    report = notebook.ok(f"%%tensor\n{line}\nnp.sum({line.partition(' = ')[0]})").value.report
    scene = report.portrait.scene(report.outcome.source)
    for view in scene.views:
        for vertex in view.drawn.everything():
            assert not [text for text in vertex_face(vertex).texts if text.text.endswith("…")]


@pytest.mark.parametrize("options", ["", " --grad w", " --grad w,x", " --show none", " --grad x"])
def test_no_line_of_a_picture_ends_in_a_sign_between_parts(notebook, options):
    notebook.ok("w, x = 2.0, np.linspace(0, 5, 60)")
    notebook.ok(f"%%tensor{options}\nloss = np.sum(np.log(1 + np.exp(w * x)))\nloss")
    picture = notebook.ok("loss").data.get("image/svg+xml", "")
    assert not re.search(r"·\s*</text>", re.sub(r'<text class="(name|op|symbol)[^<]*</text>', "", picture))
