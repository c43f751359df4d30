"""What a reader of pictures asked: how many ops are the rules', what a number belongs to, and what is said where there is no graph."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.notebook.pictures.adaptor import Portrait
from tensormagic.notebook.pictures.labels import width
from tensormagic.notebook.pictures.picture import Picture
from tensormagic.notebook.pictures.scene import Scene

START = (
    "x = np.linspace(0, 1, 20); x1, w = 0.7, 0.5; X, V = np.ones((50, 3)), np.zeros(3); y = 3 * x\n"
    "def f(w):\n    return np.tanh(w * x1) ** 2"
)


@pytest.fixture
def started(notebook):
    notebook.ok(START)
    return notebook


def scene_of(notebook, cell: str, options: str = "--grad w") -> Scene:
    """What the picture of a cell is drawn from."""
    report = notebook.ok(f"%%tensor {options}\n{cell}").value.report
    shown: Portrait = report.portrait
    return shown.scene(report.outcome.source)


def groups_of(picture: Picture) -> dict[str, bool]:
    """The titles of the groups, and whether each is open."""
    return {box.inside.title: box.inside.is_open for box in picture.boxes if box.inside is not None}


MADE = {  # a cell, the ops of its value, those that the gradient adds, and whether rules have made more than all others
    "a number": ("r = np.tanh(w * x1) ** 2\nr", True),
    "an array": ("r = np.sum(np.tanh(w * x) ** 2)\nr", True),
    "a function": ("r = f(w)\nr", True),
    "two of them": ("r = np.sum(np.tanh(w * x) ** 2 + np.tanh(2 * w * x) ** 2)\nr", True),
    "with a branch": ("if x1 > 0:\n    r = np.tanh(w * x1) ** 2\nelse:\n    r = w\nr", True),
    "a product": ("r = np.sum(w * x)\nr", False),
    "a logistic loss": ("r = np.mean(np.log(1 + np.exp(-w * x)))\nr", False),
    "a polynomial": ("r = np.sum((w * x - y) ** 2)\nr", False),
}


@pytest.mark.parametrize("name", MADE)
def test_what_rules_have_made_is_one_closed_group_where_it_is_most(started, name):
    cell, many = MADE[name]
    scene = scene_of(started, cell)
    view = scene.view("gradient")
    made = sum(v.derived for v in view.drawn.vertices)
    said = re.search(r"(\d+) with the gradient(?:, (\d+) of them made by rules)?", scene.summary)
    assert said is not None
    assert int(said[1]) == view.ops
    groups = {title: is_open for title, is_open in groups_of(view.picture).items() if title.startswith("made by rules")}
    if not many:
        assert said[2] is None
        assert not groups
        return
    assert int(said[2]) == made > view.ops / 2
    assert view.counted == f"{view.ops} ops, {made} of them made by rules"
    assert groups
    assert not any(groups.values())
    assert sum(int(re.search(r": (\d+) ops?$", title)[1]) for title in groups) == made


def test_the_rest_of_the_gradient_is_what_one_would_write(started):
    view = scene_of(started, MADE["a number"][0]).view("gradient")
    alone = [box.vertex.title for box in view.picture.boxes if box.vertex is not None and box.vertex.is_op]
    assert sorted(alone) == sorted(["×", "tanh", "r = · ** 2", "2 × ·", "×", "×"])
    assert max(len(title) for title in alone) < 12


def test_steps_of_rewriting_show_all_boxes(started):
    scene = scene_of(started, MADE["a number"][0])
    for step in scene.details.steps["gradient"]:
        assert not [title for title in groups_of(step.view.picture) if title.startswith("made by rules")]


WORDS = {"exact": "same digits", "stable": "never less accurate", "real": "equal for real numbers"}


@pytest.mark.parametrize(
    ("compute", "level", "word"),
    [
        (lambda x: np.log(1 + x), None, WORDS["stable"]),
        (lambda x: (x * 1 - 0) * 2, None, WORDS["exact"]),
        (lambda x: (x + 1) - 1, "real", WORDS["real"]),
        (lambda x: np.log(1 + np.exp(x)), None, WORDS["stable"]),
        (lambda x: np.sum(np.exp(x) / np.sum(np.exp(x))), None, WORDS["stable"]),
        (lambda x: 1 / (1 + np.exp(-x)), None, WORDS["stable"]),
    ],
)
def test_explanations_and_pictures_have_one_wording(compute, level, word):
    x = tm.tensor(np.linspace(0.1, 1, 9))
    said = tm.tensor(compute, math=level)(x).explain() if level else compute(x).explain()
    assert re.search(rf"^\d+\. {word}: ", said, re.MULTILINE)
    assert not re.search(r"^\d+\. (exact|stable|real): ", said, re.MULTILINE)


BARE = {
    "an array": "X",
    "a number": "w",
    "another name": "z = X\nz",
    "a value that is computed": "X * 2",
    "with a line before": "q = X.sum()\nX",
}


@pytest.mark.parametrize("name", BARE)
def test_a_cell_that_computes_nothing_says_why_there_is_no_graph(started, name):
    line = started.ok(f"%%tensor\n{BARE[name]}").data["text/plain"].splitlines()[0]
    computed = "*" in BARE[name]
    assert line.endswith("nothing is computed here, so there is no graph") is not computed


def test_nothing_is_said_where_no_graph_was_asked_for(started):
    assert "no graph" not in started.ok("%%tensor --show none\nX").data["text/plain"]
    started.ok("%tensor_default on")
    assert "no graph" not in started.ok("X").out


def boxes_of(shapes) -> list[tuple[float, float, float, float]]:
    """Where the numbers on lines stand."""
    found = []
    for one in shapes:
        if one["tag"] == "text" and "halo" in one["class"]:
            half = width(one["text"], 12) / 2
            x, y = float(one["x"]), float(one["y"])
            found.append((x - half, y - 11, x + half, y + 3))
    return found


def meet(one, other) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


FIELDS = [
    lambda u, v: (1 - u) ** 2 + 2 * (v - u**2) ** 2,
    lambda u, v: 1e-4 * (u + 0.3 * v) ** 2,
    lambda u, v: 123456 * u * v,
    lambda u, v: np.exp(3 * u + v),
    lambda u, v: np.sin(5 * u) * np.cos(4 * v) / 1000,
    lambda u, v: (u**2 + 100 * v**2) * 1e5,
]


@pytest.mark.parametrize("field", range(len(FIELDS)))
def test_numbers_on_contours_do_not_stand_over_each_other(field):
    view = tm.live(FIELDS[field], u=(-2, 2), v=(-1, 3))
    page = ET.fromstring(view.svg())
    view.close()
    texts = [e for e in page.iter() if e.tag.endswith("text") and "halo" in (e.get("class") or "")]
    shapes = [{"tag": "text", "class": e.get("class"), "text": e.text, "x": e.get("x"), "y": e.get("y")} for e in texts]
    found = boxes_of(shapes)
    assert len(found) > 2
    assert not [pair for pair in combinations(found, 2) if meet(*pair)]
