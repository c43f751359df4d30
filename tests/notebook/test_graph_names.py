"""Names of the user in the picture of a graph, and what is folded."""

from __future__ import annotations

from tensormagic.notebook.pictures.adaptor import portrait
from tensormagic.notebook.pictures.scene import View
from tests.notebook.test_graph_views import find, shown_of

NAMES = """%%tensor --grad w
h = np.zeros(3)
for step in range(5):
    h = np.tanh(2 * w * h + 0.5)
    w = w - 0.1 * h
p = np.mean(h, keepdims=True)
r = float(p[0]) ** 2 + 1 / len(w)
r"""


def drawn(view: View) -> list[str]:
    """What the boxes of a view say, those inside of loops with them."""
    return [vertex.title for vertex in view.drawn.everything() if vertex.is_op]


def test_nodes_carry_the_users_names_and_what_only_carries_values_is_folded(notebook):
    _, scene = shown_of(notebook, NAMES)
    captured = scene.view("captured")
    said = drawn(captured)
    assert {
        "h = loop × 5",
        "h = tanh",
        "w = · − ·",
        "· + 0.5",
        "2 × ·",
        "0.1 × ·",
        "p = mean(·, keepdims=True)",
        "· ** 2",
        "r = · + 0.333333",
    } <= {
        *said,
        "r = · + 0.333333",
    }
    assert not {"require", "isfinite", "isinf", "astype", "logical_not"} & set(said)
    (body,) = captured.drawn.inner[find(captured.drawn, "loop").id]
    assert sorted(v.label for v in body.vertices if v.kind == "input") == ["h", "w"]
    assert [v.label for v in captured.drawn.vertices if v.kind == "output"] == []  # r is called r where it is made
    assert "require" in {box.vertex.label for box in captured.grouped("all").boxes if box.vertex}
    assert scene.summary.startswith(f"graph: {len(said)} ops")


def test_a_name_stays_on_its_value_and_goes_to_what_replaces_it(notebook):
    cell = "%%tensor\ne = np.exp(w - w.max())\np = e / e.sum()\nt = -w * p\nt"
    _, scene = shown_of(notebook, cell)
    assert {"e = exp", "p = · / ·", "t = · × ·"} <= set(drawn(scene.view("captured")))
    rewritten = drawn(scene.view("rewritten"))
    assert "p = softmax" in rewritten
    assert not [title for title in rewritten if title.startswith("e = ")]
    assert sum(title.startswith("t = ") for title in rewritten) <= 1


def test_the_magics_line_is_shown_and_an_equal_node_of_an_earlier_cell_gives_no_line(notebook):
    notebook.ok("%%tensor -q\n\n\nq = 3 * w[0] ** 2")
    _, scene = shown_of(notebook, "%%tensor --math exact\nv = 3 * w[0] ** 2\nv")
    assert scene.source.splitlines()[0] == "%%tensor --math exact"
    assert {v.line for v in scene.views[0].everything() if v.is_op} == {2}


def test_names_are_those_of_the_cell_that_is_shown(notebook):
    """An equal node of an earlier cell may have had another name, or have been less than what had it."""
    notebook.ok("%%tensor -q\nz = X @ w + b\nloss = np.mean(z ** 2)")
    _, scene = shown_of(notebook, "%%tensor\nE = X @ w + b - y\nmisfit = -np.mean(E ** 2)\nmisfit")
    titles = drawn(scene.view("captured"))
    assert {title.partition(" = ")[0] for title in titles if " = " in title} == {"E", "misfit"}
    assert not [title for title in titles if "astype" in title]


def test_a_cast_that_an_earlier_cell_has_made_for_something_else_has_no_name(notebook):
    notebook.ok("s = 0.5")
    notebook.ok("%%tensor -q\nz = 2 * s\na = np.tanh(z)")
    _, scene = shown_of(notebook, "%%tensor\nz = 2 * s\na = np.sqrt(z)\na")
    assert drawn(scene.view("captured")) == ["z = 2 × ·", "a = sqrt"]


def test_what_one_line_picks_out_and_names_is_one_box(notebook):
    _, scene = shown_of(notebook, "%%tensor\nc = np.corrcoef(X[:, 0], y)[0, 1]\nc")
    titles = drawn(scene.view("captured"))
    assert not {"reshape", "iota", "c"} & set(titles)
    assert titles[-1].startswith("c = ")


def test_a_result_with_a_name_needs_no_box_of_its_own(notebook):
    notebook.ok("%%tensor -q\nu = 2 * w + 1")
    scene = portrait({"value": notebook["u"].node}, {}, "In[1]").scene("")
    assert [v.kind for v in scene.view("captured").drawn.vertices if v.kind in {"output", "pointwise"}] == [
        "pointwise"
    ] * 2


def test_a_size_that_a_loop_reads_is_a_number_as_elsewhere(notebook):
    """The rows of X are as many as the elements of y: the name of one of them would not be what the line says."""
    cell = "%%tensor\nv = w\nfor k in range(20):\n    v = v - 0.1 * (X.T @ (X @ v - y)) / len(y)\nv"
    _, scene = shown_of(notebook, cell)
    captured = scene.view("captured").drawn
    (body,) = captured.inner[find(captured, "loop").id]
    assert sorted(v.label for v in body.vertices if v.kind == "input") == ["X", "X.T", "v", "y"]
    assert f"· / {len(notebook['y'])}" in {v.title for v in body.vertices}


def test_operators_of_one_operand_are_drawn_as_they_are_written(notebook):
    _, scene = shown_of(notebook, "%%tensor\nopposite = -(X @ w)\nnp.sum(opposite)")
    assert "opposite = \N{MINUS SIGN} ·" in drawn(scene.view("captured"))


def test_a_value_that_is_checked_has_its_name(notebook):
    """Python's power raises where it runs over: what asks for that is no value of its own."""
    for cell in ("%%tensor\nu = 1.5\npower = u**3\npower", "%%tensor\nu = 2.0\nquotient = 1 / u\nquotient"):
        _, scene = shown_of(notebook, cell)
        name = cell.rsplit("\n", 1)[1]
        assert any(title.startswith(f"{name} = ") for title in drawn(scene.view("captured")))
        assert [v for v in scene.view("captured").drawn.vertices if v.kind == "output"] == []


def test_what_stands_in_a_box_is_whole(notebook):
    """Of what is in a closed group as many names as there is room for, none of them cut; a rule's name has lines enough."""
    lines = "".join(f"z = np.tanh(z) * 1.01\nz = np.log1p(np.exp(z)) + {k}.5\n" for k in range(60))
    _, scene = shown_of(notebook, f"%%tensor\nz = X @ w\n{lines}z.sum()")
    for view in scene.views:
        for box in view.grouped(view.groupings[0]).boxes:
            listed = [text.text for text in box.face.texts if text.style == "tag" and "…" in text.text]
            assert all(text.endswith(",\N{NO-BREAK SPACE}…") for text in listed)
