"""The views of a captured graph: what is inside loops and branches, what moves where, steps of rewriting, values."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.notebook.pictures import measure as measuring
from tensormagic.notebook.pictures.adaptor import Portrait, portrait
from tensormagic.notebook.pictures.details import Details
from tensormagic.notebook.pictures.html import to_html
from tensormagic.notebook.pictures.measure import measure, summary
from tensormagic.notebook.pictures.message import part
from tensormagic.notebook.pictures.scene import Scene, View
from tensormagic.notebook.widgets.graph import GraphView
from tensormagic.transform.rewriting.replay import replayed
from tests.notebook import demo_scenes

LOGISTIC = "%%tensor --grad w\nz = X @ w + b\nnp.mean(np.log(1 + np.exp(-y * z)))"
CONTROL = """%%tensor
def half(a):
    return a / 2
v = half(w)
for k in range(5):
    v = half(v) + np.exp(-v)
s = v.sum()
if s > 1:
    s = s * 2
else:
    s = s - 1
while s < 100:
    s = s + s ** 2 + 1
s"""


def shown_of(notebook, cell) -> tuple[Portrait, Scene]:
    """Run a cell; return what can be shown of its value, and its pictures."""
    report = notebook.ok(cell).value.report
    return report.portrait, report.portrait.scene(report.outcome.source)


def find(view: View, label: str):
    """Return the first vertex of a label that starts so."""
    return next(vertex for vertex in view.vertices if vertex.label.startswith(label))


def test_loops_and_branches_hold_their_graphs(notebook):
    _, scene = shown_of(notebook, CONTROL)
    captured = scene.view("captured")
    (body,) = captured.inner[find(captured, "loop × 5").id]
    assert body.name == "body"
    assert [v.label for v in body.vertices if v.is_op] == ["divide", "negative", "exp", "add"]
    assert {v.line for v in body.vertices if v.label == "exp"} == {6}
    assert {v.function for v in body.vertices if v.label == "divide"} == {"half"}
    assert {v.type for v in body.vertices if v.label == "v"} == {"float64[3]"}
    assert {part.name for part in captured.inner[find(captured, "branch").id]} == {"then", "else"}
    assert {part.name for part in captured.inner[find(captured, "while").id]} == {"body", "test"}
    ids = [v.id for view in (captured, *(b for parts in captured.inner.values() for b in parts)) for v in view.vertices]
    assert len(ids) == len(set(ids))


def test_regions_are_open_boxes_in_the_picture_that_stands_alone(notebook):
    picture = notebook.ok(CONTROL).data["image/svg+xml"]
    for title in ("v = loop × 5: 4 ops inside", "then: 1 op", "else: 1 op", "test: "):
        assert f">{title}" in picture


def test_nested_loops_stand_inside_each_other(notebook):
    cell = "%%tensor\nv = w\nfor i in range(3):\n    for j in range(4):\n        v = np.sin(v) + i\nv"
    _, scene = shown_of(notebook, cell)
    outer = scene.views[0].inner[find(scene.views[0], "loop × 3").id][0]
    inner = outer.inner[find(outer, "loop × 4").id][0]
    assert "sin" in {v.label for v in inner.vertices}


def test_what_a_rewrite_leaves_and_what_it_puts_in_a_place_keep_their_ids(notebook):
    _, scene = shown_of(notebook, LOGISTIC)
    captured, rewritten, gradient, kernels = scene.views
    assert find(rewritten, "softplus").id == find(captured, "log").id
    assert find(rewritten, "sum").id == find(captured, "sum").id  # another node: its operand has changed
    assert find(rewritten, "multiply").id == find(captured, "multiply").id  # other operands, in the same place
    assert find(gradient, "divide").id == find(kernels, "divide").id == find(captured, "divide").id
    for view in scene.views:
        assert len({vertex.id for vertex in view.vertices}) == len(view.vertices)


def test_nodes_are_grouped_by_function(notebook):
    cell = "%%tensor\ndef f(a):\n    b = np.exp(a)\n    return b * 2\ng = f(w)\nh = np.sin(g) + np.cos(g)\nh"
    _, scene = shown_of(notebook, cell)
    captured = scene.view("captured")
    assert captured.groupings == ("none", "line", "function", "all")
    titles = [box.inside.title for box in captured.grouped("function").boxes if box.inside]
    assert titles == ["function f: 2 ops"]
    lines = [box.inside.title for box in captured.grouped("line").boxes if box.inside]
    assert lines == ["line 6: 3 ops"]


def test_a_function_of_another_cell_is_named(notebook):
    notebook.ok("%%tensor -q\ndef f(a):\n    return np.exp(a) * 2")
    _, scene = shown_of(notebook, "%%tensor\nnp.sum(f(w))")
    assert find(scene.views[0], "exp").function == "f"


def test_what_a_rule_or_the_compiler_writes_in_simpler_parts_is_in_its_kernel_too(notebook):
    _, scene = shown_of(notebook, LOGISTIC)
    computed = [v for v in scene.view("kernels").vertices if v.is_op]
    assert {"softplus", "sum", "sigmoid"} <= {v.label for v in computed}
    assert {v.label for v in computed if v.kernel is None} == set()


def test_sizes_are_as_the_user_would_write_them(notebook):
    _, scene = shown_of(notebook, LOGISTIC)
    assert find(scene.view("captured"), "@").symbolic == "float64[len(y)]"


def test_kernels_can_be_grouped_by_line_too(notebook):
    _, scene = shown_of(notebook, LOGISTIC)
    assert scene.view("kernels").groupings == ("kernel", "none", "line", "all")
    with pytest.raises(KeyError, match="there are: none, line"):
        part(scene, ["picture", 0, "kernel"])


# steps of rewriting ---------------------------------------------------------------------------------------------------


def test_each_step_of_a_rewriting_is_a_graph_of_the_same_value(notebook):
    shown, _ = shown_of(notebook, LOGISTIC)
    primal, first = shown.primal, shown.first
    expected = evaluate_graph(primal, shown.values)[0]
    steps = list(replayed(primal, first.fired, first.graph))
    assert len(steps) >= 2
    assert steps[-1][1].results == first.graph.results
    told = [firing for fired, _ in steps for firing in fired]
    assert told == first.notable
    for _, graph in steps:
        assert evaluate_graph(graph, shown.values)[0] == pytest.approx(expected, rel=1e-12)
        assert graph.parameters == primal.parameters


def test_steps_name_rules_levels_and_lines_and_what_is_new(notebook):
    _, scene = shown_of(notebook, LOGISTIC)
    steps = scene.details.steps["rewritten"]
    assert steps[0].rewrites == ()
    rewrites = [rewrite for step in steps for rewrite in step.rewrites]
    soft = next(r for r in rewrites if "softplus" in r.rule)
    assert (soft.level, soft.where) == ("never less accurate", "In[1] line 3")
    assert soft.source.startswith("rule written in tensormagic's explog.py:")
    for step in steps[1:]:
        assert set(step.made) <= {vertex.id for vertex in step.view.vertices}
    assert any(step.made for step in steps)
    assert "gradient" in scene.details.steps


def test_rewrites_inside_a_loop_are_steps(notebook):
    shown, scene = shown_of(notebook, "%%tensor\nv = w\nfor k in range(9):\n    v = -(-np.sin(v))\nv.sum()")
    assert [r.rule for step in scene.details.steps["rewritten"] for r in step.rewrites]
    made = [key for step in scene.details.steps["rewritten"] for key in step.made]
    assert any("/body/" in key for key in made)
    *_, (_, last) = replayed(shown.primal, shown.first.fired, shown.first.graph)
    assert last.results == shown.first.graph.results


def test_long_rewritings_are_told_in_steps_of_several(notebook):
    _, scene = shown_of(notebook, "%%tensor\nv = w\n" + "v = np.log(1 + np.exp(-v))\n" * 80 + "v.sum()")
    steps = scene.details.steps["rewritten"]
    assert len(steps) <= 121
    assert max(len(step.rewrites) for step in steps) > 1
    assert sum(len(step.rewrites) for step in steps) >= 160


# values ---------------------------------------------------------------------------------------------------------------


def test_values_are_those_of_numpy(notebook):
    _, scene = shown_of(notebook, LOGISTIC)
    measured = scene.details.measured
    view = scene.view("captured")
    z = notebook["X"] @ notebook["w"] + notebook["b"]
    told = measured[find(view, "log").number]
    values = np.log(1 + np.exp(-notebook["y"] * z))
    assert (told["min"], told["max"]) == (f"{values.min():.4g}", f"{values.max():.4g}")
    assert told["bytes"] == 320
    assert told["seconds"] > 0
    assert measured[find(view, "X").number]["bytes"] == 40 * 3 * 8
    assert "seconds" not in measured[find(view, "X").number]
    numbers = [vertex.number for vertex in scene.view("rewritten").vertices if vertex.is_op]
    assert set(numbers) <= set(measured)


def test_summary_of_numbers():
    told = summary(np.array([np.nan, np.inf, 1.0, 3.0, -np.inf, 2.0]))
    assert (told["nan"], told["inf"], told["min"], told["max"], told["mean"]) == (1, 2, "1", "3", "2")
    assert sum(told["bars"]) == 3
    assert told["heat"] == [1, 6, "....00ff..80"]
    assert summary(np.arange(4096.0)).keys() >= {"bars"}
    assert "heat" not in summary(np.arange(4096.0))
    assert summary(np.array([1 + 1j, 0]))["max"] == "1.414"
    assert summary(np.float64("nan")) == {"bytes": 8, "value": "nan", "nan": 1}
    assert summary(np.zeros((0, 3))) == {"bytes": 0}
    assert summary(np.full(3, 7)) == {
        "bytes": 24,
        "value": "[7, 7, 7]",
        "nan": 0,
        "inf": 0,
        **dict.fromkeys(("min", "max", "mean"), "7"),
        "same": "all equal to",
    }
    assert summary(np.array([0.5, 0.5 + 1e-9]))["same"] == "all equal to four digits,"
    assert summary(np.array([0.5, 0.5, np.nan]))["heat"][2] == "8080.."
    assert "bars" not in summary(np.array([-1e308, 1e308]))
    assert summary(np.array([True, False, True]))["mean"] == "0.6667"
    assert json.loads(json.dumps(told)) == told


def test_large_values_are_sampled_and_say_so():
    told = summary(np.arange(3_000_000.0))
    assert told["of"] == 1_000_000
    assert sum(told["bars"]) == 1_000_000
    assert told["bytes"] == 24_000_000


def test_looking_prints_nothing_and_raises_nothing(notebook, capsys):
    _, scene = shown_of(
        notebook, "%%tensor\nq = np.exp(w)\nfor k in range(2):\n    q = q + k\n    print(q[0])\nq.sum()"
    )
    capsys.readouterr()
    assert isinstance(scene.details, Details)
    assert capsys.readouterr().out == ""


def test_what_takes_long_is_not_computed(notebook, monkeypatch):
    shown, _ = shown_of(notebook, LOGISTIC)
    monkeypatch.setattr(measuring, "LONGEST", -1.0)
    found, note = measure([shown.primal], dict(zip(shown.graph.parameters, shown.values, strict=True)), shown.number)
    assert set(found) <= set(shown.graph.parameters)
    assert "not computed" in note


def test_a_value_that_cannot_be_had_is_missing_and_the_rest_is_told(notebook):
    notebook["A"] = np.zeros((3, 3))
    notebook.ok("%%tensor -q\nq = np.linalg.solve(A, w) + np.exp(w)")
    node = notebook["q"].node
    details = portrait({"q": node}, {}, "In[1]").scene("q = …").details
    assert "LinAlgError" in details.note
    assert any("seconds" in told for told in details.measured.values())


# messages -------------------------------------------------------------------------------------------------------------


def test_a_page_without_a_kernel_holds_what_it_could_ask_for(notebook):
    _, scene = shown_of(notebook, LOGISTIC)
    message = scene.message(deep=True)
    asked = [tuple(name) for name, _ in message["parts"]]
    assert ("details",) in asked
    assert ("picture", 1, "step 0") in asked
    assert ("picture", 3, "line") in asked
    assert json.loads(json.dumps(message)) == message
    assert '["picture",1,"step 0"]' in to_html(scene)


def test_parts_are_what_was_asked_for():
    scene = demo_scenes.random_graph(300)
    message = scene.message()
    closed = next(box for box in message["views"][0]["picture"]["boxes"] if "g" in box)
    assert closed["g"] == {
        "title": closed["g"]["title"],
        "open": False,
        "picture": None,
        "ask": 1,
        "l": [1],
        "n": 150.0,
    }
    answer = part(scene, ["group", 0, "line", closed["k"]])
    assert answer["part"] == ["group", 0, "line", closed["k"]]
    inside = [box for box in answer["content"]["picture"]["boxes"] if "v" in box]
    assert len(inside) == len(answer["vertices"]) == 12
    assert [box["v"] for box in inside] == list(range(12))
    with pytest.raises(KeyError, match="no group 'line 99'"):
        part(scene, ["group", 0, "line", "line 99"])
    found = part(scene, ["search", 0, "MATMUL"])["content"]
    assert found == [vertex.id for vertex in scene.views[0].vertices if vertex.label == "matmul"]
    assert part(scene, ["search", 0, "line 25"])["content"]
    assert part(scene, ["way", 0, "line", "n299"])["content"] == ["line 25"]
    assert part(scene, ["way", 0, "line", "a0"])["content"] == []
    with pytest.raises(KeyError, match="no vertex 'nobody'"):
        part(scene, ["way", 0, "line", "nobody"])


def test_the_way_to_what_is_deep_inside():
    scene = demo_scenes.nested()
    way = part(scene, ["way", 0, "none", "loop/cond/else/op"])["content"]
    assert way == ["loop", "loop/cond", "loop/cond/else"]
    assert part(scene, ["search", 0, "log"])["content"] == ["loop/cond/else/op"]
    lines = demo_scenes.random_graph(3000, lines=1000)
    first, second = part(lines, ["way", 0, "line", "n2999"])["content"]
    assert second.startswith(f"{first}/line")


def test_many_lines_stand_in_groups_of_several_lines():
    picture = demo_scenes.random_graph(3000, lines=1000).views[0].picture
    groups = [box for box in picture.boxes if box.inside]
    assert 40 <= len(groups) <= 130
    inner = [box.key for box in groups[0].inside.picture.boxes if box.inside]
    assert inner
    assert all(key.startswith(f"{groups[0].key}/line") for key in inner)


class Page:
    """What a widget sent to its page."""

    def __init__(self, graph: GraphView, monkeypatch) -> None:
        self.graph = graph
        self.sent: list[dict] = []
        monkeypatch.setattr(graph, "send", lambda content, buffers=None: self.sent.append(content))

    def ask(self, *asked):
        self.graph._handle_custom_msg({"ask": list(asked)}, None)
        return self.sent[-1]


def test_the_widget_answers_its_page(notebook, monkeypatch):
    _, scene = shown_of(notebook, LOGISTIC)
    graph = GraphView(scene)
    page = Page(graph, monkeypatch)
    assert page.ask("details")["content"]["steps"].keys() == {"rewritten", "gradient"}
    assert page.ask("picture", 1, "step 1")["content"]["boxes"]
    assert page.ask("html")["content"].startswith("<!doctype html>")
    assert "KeyError" in page.ask("picture", 0, "nonsense")["error"]
    assert "error" in page.ask("picture", 77, "none")
    assert "error" in page.ask("picture")
    graph._handle_custom_msg({"other": 1}, None)
    graph._handle_custom_msg("text", None)
    assert len(page.sent) == 6
    graph.close()
    assert graph._scene.later is None


# every kind of cell ---------------------------------------------------------------------------------------------------

CELLS = {
    "loop": ("w", "v = w\nfor k in range(7):\n    v = np.sin(v) * w\nv.sum()"),
    "branch in a loop": (
        "w",
        "v = w\nfor k in range(7):\n    if v.sum() > 0:\n        v = v - np.exp(-v)\n    else:\n        v = v * 2\nv.sum()",
    ),
    "while": ("w", "v = w\ns = v.sum()\nwhile s < 100:\n    s = s * 1.5 + 1\n    v = v * 1.01\n(v * s).sum()"),
    "several results": ("", "q, r = np.linalg.qr(X)\nu, s, vt = np.linalg.svd(X)\n(q @ r).sum() + s"),
    "sizes of data": ("", "m = X > 0\nX[m].sum() + np.sort(w)[::-1][0] + np.unique(np.round(X)).size"),
    "stores": ("w", "x = w.copy()\nx[1:] = x[:-1] * 2\nx[0] += 3\n(x ** 2).sum()"),
    "random numbers": ("", "g = np.random.default_rng(3)\ng.normal(size=3) + w"),
    "recursion": ("w", "def f(a, n):\n    return a if n == 0 else np.tanh(f(a, n - 1))\nf(w, 4).sum()"),
    "stored in a loop": (
        "w",
        "h = np.zeros(9)\nx = w\nfor k in range(9):\n    x = x * 0.9 + np.cos(x)\n    h[k] = x.sum()\nh.sum()",
    ),
    "effects": ("", "if w.sum() < -9:\n    raise ValueError('small')\nassert w.size == 3\nprint('sum')\nw * 2"),
    "jacobian": ("", "tm.jacobian(lambda a: np.sin(a) * a[0])(w)"),
    "nothing": ("", "e = np.zeros((0, 3))\ne.sum(axis=0) + w"),
}


@pytest.mark.parametrize("name", CELLS)
def test_every_kind_of_cell_is_drawn(notebook, name):
    gradient, cell = CELLS[name]
    _, scene = shown_of(notebook, f"%%tensor {f'--grad {gradient}' if gradient else ''}\n{cell}")
    for view in scene.views:
        assert len({vertex.id for vertex in view.vertices}) == len(view.vertices)
        for grouping in view.groupings:
            assert view.grouped(grouping).boxes
    message = scene.message(deep=True)
    assert json.loads(json.dumps(message)) == message
    assert scene.details.note == ""
    assert scene.details.measured
