"""Loops in pictures: what is read is drawn, by the user's names, and joined to what reads it."""

from __future__ import annotations

import random

import pytest

from tensormagic.notebook.pictures.needed import needed
from tensormagic.notebook.pictures.scene import View

START = "x = np.linspace(0, 1, 20); y = 3 * x; r = 3.7; angle = 0.7; kernel, image = np.ones((3, 3)), np.ones((9, 9))"
PROGRAMS = {  # a cell's lines, what its boxes say, and what none of them says
    "numbers that become NumPy's": (
        (
            "m, c = 0.0, 0.0\nfor k in range(50):\n    error = m * x + c - y\n    m = m - 0.02 * np.mean(error * x)\n"
            "    c = c - 0.02 * np.mean(error)\nm, c"
        ),
        {"m, c = loop × 50", "error = · − ·", "m = · − ·", "c = · − ·"},
        {"step", "int"},
    ),
    "a loop in a loop": (
        (
            "out = np.zeros((7, 7))\nfor i in range(3):\n    for j in range(3):\n"
            "        out += kernel[i, j] * image[i:i + 7, j:j + 7]\nsharp = np.sum(out**2)\nsharp"
        ),
        {"out = loop × 3", "kernel[i, j]", "image[i:i + 7, j:j + 7]", "out = · + ·", "· ** 2", "sharp = sum"},
        {"bool", "3 − 1"},
    ),
    "a condition before each iteration": (
        (
            "vx, vy, px, py = 3 * np.cos(angle), 3 * np.sin(angle), 0.0, 0.0\nwhile py >= 0:\n    vy = vy - 9.81 * 0.01\n"
            "    px = px + vx * 0.01\n    py = py + vy * 0.01\npx"
        ),
        {"px = while", "· >= 0", "py = · + ·"},
        {"int"},
    ),
    "what is kept of each iteration": (
        (
            "pop = 0.2\nhistory = np.zeros(20)\nfor year in range(20):\n    pop = r * pop * (1 - pop)\n"
            "    history[year] = pop\nhistory"
        ),
        {"history = loop × 20", "pop = · × ·", "history[year] = ·"},
        set(),
    ),
    "a list of each iteration": (
        (
            "pop = 0.2\nhistory = []\nfor year in range(20):\n    pop = r * pop * (1 - pop)\n    history.append(pop)\n"
            "history = np.array(history)\nhistory"
        ),
        {"history = loop × 20", "pop = · × ·"},
        set(),
    ),
    "only what is shown": (
        "pop = 0.2\nhistory = []\nfor year in range(20):\n    pop = r * pop * (1 - pop)\n    history.append(pop)\npop",
        {"pop = loop × 20", "pop = · × ·", "1 − ·"},
        {"set", "year"},
    ),
    "a part that has a name": (
        "h = image[0]\nfor k in range(4):\n    h = np.tanh(h)\nh.sum()",
        {"h = image[0]", "h = loop × 4", "h = tanh"},
        {"slice", "image[0]"},
    ),
    "a branch": (
        "s = x.sum()\nif s > 1:\n    a, b = s * 2, s * 3\nelse:\n    a, b = s, -s\na + 1",
        {"a = branch", "s = sum"},
        {"b = · × 3", "b = − ·"},
    ),
}
NAMELESS = ("carried", "operand", "next", "result", "index", "item")


def views(view: View) -> list[View]:
    """A view, and all inside it."""
    return [view, *(one for bodies in view.inner.values() for body in bodies for one in views(body))]


def captured(notebook, cell) -> View:
    """The captured view of a cell's value, as it is drawn."""
    from tensormagic.notebook.display.shown import Report

    made: list[View] = []
    bundle = Report.bundle

    def note(self):
        made.append(self.portrait.scene(self.outcome.source).view("captured").drawn)
        return bundle(self)

    Report.bundle = note
    try:
        notebook.ok(f"%%tensor\n{cell}")
    finally:
        Report.bundle = bundle
    return made[-1]


@pytest.fixture
def started(notebook):
    notebook.ok(START)
    return notebook


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_read_is_drawn_by_its_names(started, name):
    cell, said, unread = PROGRAMS[name]
    drawn = captured(started, cell)
    titles = [v.title for v in drawn.everything()]
    assert said <= set(titles)
    assert not unread & {*titles, *(v.type for v in drawn.everything() if v.kind == "output")}
    assert [t for t in titles if t.startswith(NAMELESS)] == []
    for view in views(drawn)[1:]:
        inputs = [v for v in view.vertices if v.kind == "input"]
        assert {v.id for v in inputs} <= {e.source for e in view.edges}, [v.title for v in inputs]


@pytest.mark.parametrize("seed", range(12))
def test_loops_over_several_variables(started, seed):
    """Some of the variables are read afterwards; those of which nothing that is read is made are not drawn."""
    draw = random.Random(seed)
    names = draw.sample(["aa", "bb", "cc", "dd", "ee", "ff"], 4)
    reads = {one: draw.sample(names, draw.randint(0, 2)) for one in names}
    shown = draw.choice(names)
    starts = {one: draw.choice(["0.0", "1.5", "x.sum()"]) for one in names} | {shown: "x.sum()"}
    lines = [f"{one} = {one} * 0.5 + {' + '.join([f'np.sin({o})' for o in reads[one]] or ['0.25'])}" for one in names]
    cell = "\n".join(
        [f"{n} = {s}" for n, s in starts.items()] + ["for k in range(7):"] + [f"    {line}" for line in lines]
    )
    live = {shown}
    while more := {o for n in live for o in reads[n]} - live:
        live |= more
    drawn = captured(started, f"{cell}\n{shown} * x")
    inside = views(drawn)[1]
    assert {v.title for v in inside.vertices if v.kind == "input"} == live
    assert {v.name for v in inside.vertices if v.name} == live


def test_what_results_need_of_a_loop(started):
    started.ok(
        "%%tensor --show none\na = b = x.sum()\nfor k in range(4):\n    a = a * 0.5\n    b = b + a\nz = b * 2\ny2 = a * 2"
    )
    for name, ends in (("z", 2), ("y2", 1)):
        graph = started[name].graph
        (loop,) = [n for n in graph.nodes if n.op.name == "loop"]
        found = needed(graph, [0])
        assert len(found.ends[loop]) == ends
        assert len(found.results[loop]) == 1
        assert set(found.nodes) <= set(graph.nodes)


def test_a_later_cell_shows_the_names_of_an_earlier_one(started):
    started.ok(
        "%%tensor --show none\nout = np.zeros((7, 7))\nfor i in range(3):\n    for j in range(3):\n"
        "        out += kernel[i, j] * image[i:i + 7, j:j + 7]\nout"
    )
    started.ok("x + 1")
    drawn = captured(started, "dict(mean=out.mean(), whole=out, again=out.max())")
    titles = {v.title for v in drawn.everything()}
    assert {"out = loop × 3", "kernel[i, j]", "image[i:i + 7, j:j + 7]", "out = · + ·", "i", "j"} <= titles
    assert not any(title.startswith(NAMELESS) for title in titles)


@pytest.mark.parametrize(
    ("last", "called"),
    [
        ("dict(mean=x.mean(), most=x.max())", {"mean", "most"}),
        ("x.mean(), x.max()", {"x.mean()", "x.max()"}),
        ("a = x.sum()\nb = x.min()\na, b * 2", {"a", "b * 2"}),
        ("dict(mean=x.mean(), name='x', most=[x.max(), 2])", {"mean", "most[0]"}),
        ("x.mean(), 3, [x.max(), x.min()]", {"x.mean()", "value[2][0]", "value[2][1]"}),
    ],
)
def test_results_are_called_as_in_the_rows_above(started, last, called):
    drawn = captured(started, last)
    names = {v.name or v.label for v in drawn.vertices if v.id in drawn.outputs or v.kind == "output"}
    assert called <= names | {v.title.partition(" = ")[0] for v in drawn.vertices}


def test_what_a_loop_carries_is_not_called_as_what_it_starts_with(started):
    """In the gradient rules have rewritten the step, and z had the name of a; comparisons have a type of their own."""
    started.shell.user_ns["a"] = 2.0
    started.ok("%%tensor --grad a\nz = a\nwhile abs(z * z - a) > 1e-12:\n    z = (z + a / z) / 2\nz")
    drawn = captured(started, "grad_a + np.sum((x > 0) - x)")
    inputs = {v.label for v in drawn.everything() if v.kind == "input"}
    assert {"z", "a", "count"} <= inputs
    assert sum(v.label == "z" for v in drawn.everything() if v.kind == "input") == 2  # in the test, and in the body
    assert next(v.type for v in drawn.everything() if v.title == "· > 0").startswith("bool[")


def test_a_loop_has_its_name_though_an_equal_number_is_part_of_the_gradient(started):
    """The gradient divides by 2 as the branch does, and multiplies by 0.5."""
    step = "    h = np.tanh(0.5 * h + r)\n    if h.sum() > 1:\n        h = h / 2\n"
    report = started.ok(f"%%tensor --grad x\nh = x\nfor k in range(20):\n{step}h @ h").value.report
    drawn = report.portrait.scene(report.outcome.source).view("captured").drawn
    titles = {v.title for v in drawn.everything()}
    assert {"h = loop × 20", "h = branch", "h = tanh"} <= titles


BOTH_PASSES = {  # of cells with a gradient: what the parameters of the loops are called that no line of the cell has
    "h = x\nfor k in range(20):\n    h = np.tanh(h * r)\nh.sum()": {
        "tape of h",
        "tape",
        "adjoint of h",
        "index",
        "grad_r",
    },
    "z = r\nwhile abs(z * z - r) > 1e-12:\n    z = (z + r / z) / 2\nz": {
        *("count", "tape of z", "tape", "adjoint of z", "adjoint", "index"),
    },
    "s = 0.0\nfor i in range(len(y)):\n    s = s + r * y[i]\ns": {"grad_r"},
    "p, v = 1.0, 0.0\nfor k in range(50):\n    v = v - 0.1 * r * p\n    p = p + 0.1 * v\np**2": {
        *("tape of p", "adjoint 1", "adjoint 2", "adjoint 3"),
    },
}


@pytest.mark.parametrize("cell", BOTH_PASSES)
def test_what_loops_carry_for_gradients_says_what_it_is(started, cell):
    report = started.ok(f"%%tensor --grad r\n{cell}").value.report
    drawn = report.portrait.scene(report.outcome.source).view("gradient").drawn
    bodies = [body for views in drawn.inner.values() for body in views]
    inside = {v.label for body in bodies for v in body.vertices if v.kind == "input"}
    assert {name for name in inside if name not in {*"hzspvxyrki"}} - {"0.1 × r"} == BOTH_PASSES[cell]


def test_an_operand_that_is_stretched_before_a_loop_has_not_the_name_of_the_loops_value(started):
    drawn = captured(started, "p = x.copy()\nfor i in range(20):\n    p = p * np.exp(-r * 0.1)\np.sum()")
    assert "p = broadcast" not in {v.title for v in drawn.vertices}
    (body,) = [body for views in drawn.inner.values() for body in views]
    assert sorted(v.label for v in body.vertices if v.kind == "input") == ["np.exp(-r * 0.1)", "p"]


def test_a_loop_over_the_elements_of_an_array_says_how_many(started):
    assert "s = loop × 20" in {
        v.title for v in captured(started, "s = 0.0\nfor i in range(len(y)):\n    s = s + y[i]\ns").vertices
    }
