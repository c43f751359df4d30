"""Loops and branches in pictures: the way of a value into the next iteration, and the side of a branch that ran."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from tensormagic.notebook.pictures.picture import Picture
from tensormagic.notebook.pictures.returning import lane, lanes_width, way
from tests.notebook.test_loops_in_pictures import START, captured, views

LOOPS = {  # a cell, and the values that go into the next iteration: what gives them, and what they are there
    "one value": ("s = x.sum()\nfor k in range(5):\n    s = s * 0.5 + 1\ns", {("s = · + 1", "s")}),
    "a while": ("z = x.sum()\nwhile abs(z * z - r) > 1e-9:\n    z = (z + r / z) / 2\nz", {("z = · / 2", "z")}),
    "two values": (
        "a, b = x.sum(), y.sum()\nfor k in range(5):\n    a = a * 0.5\n    b = b + a\nb * 1.0",
        {("a = · × 0.5", "a"), ("b = · + ·", "b")},
    ),
    "values that change places": (
        "a, b = x.sum(), y.sum()\nfor k in range(5):\n    a, b = b, a + b\na * 1.0",
        {("a", "a"), ("b = · + ·", "b")},
    ),
    "what a branch gives": (
        (
            "h = image[0]\nfor k in range(9):\n    h = np.tanh(h)\n    if h.sum() > 3:\n        h = h / 2\n    else:\n"
            "        h = h + 0.1\nh @ h"
        ),
        {("h = branch", "h")},
    ),
    "what a loop inside gives": (
        "s = x.sum()\nfor i in range(3):\n    for j in range(4):\n        s = s + np.sin(i * s + j)\ns * 1.0",
        {("s = loop × 4", "s"), ("s = · + ·", "s")},
    ),
    "stores": (
        "p = np.zeros(20)\ns = x.sum()\nfor k in range(20):\n    s = s * 0.9\n    p[k] = s\np",
        {("p[k] = ·", "p"), ("s = · × 0.9", "s")},
    ),
}


def ways_of(picture: Picture) -> set[tuple[str, str]]:
    """The ways back of a picture and of all inside it, by what stands in their boxes."""

    def said(number: int) -> str:
        vertex = picture.boxes[number].vertex
        return vertex.title if vertex is not None else picture.boxes[number].key

    found = {(said(end), said(begin)) for end, begin in picture.returns}
    inner = [box.inside.picture for box in picture.boxes if box.inside is not None]
    return found.union(*map(ways_of, inner))


@pytest.fixture
def started(notebook):
    notebook.ok(START)
    return notebook


@pytest.mark.parametrize("name", LOOPS)
def test_a_new_value_goes_back_to_where_the_next_iteration_begins(started, name):
    cell, ways = LOOPS[name]
    assert ways_of(captured(started, cell).picture) == ways


def test_what_no_iteration_reads_goes_nowhere(started):
    drawn = captured(started, "s = x.sum()\nfor k in range(5):\n    t = np.sin(k * y)\n    s = t.sum()\nt * 1.0")
    assert ways_of(drawn.picture) == set()


def test_ways_stand_beside_all_boxes_and_end_above_their_input(started):
    drawn = captured(started, LOOPS["two values"][0])
    (body,) = [box.inside.picture for box in drawn.picture.boxes if box.is_open]
    assert body.width == body.edge + lanes_width(2) > lane(body.edge, 1)
    assert all(box.x + box.width / 2 <= body.edge for box in body.boxes)
    for _, begin in body.returns:
        assert body.rows[body.boxes[begin].row].top > 11
    made = way((10, 50), 60, lane(body.edge, 0), 20, (30, 22))
    assert made.startswith("M10 50V61Q")
    assert made.endswith("V22m-3.5 -5.5l3.5 5.5l3.5 -5.5")


def still(notebook, cell: str) -> ET.Element:
    """The picture of a cell that needs neither a kernel nor a script."""
    return ET.fromstring(notebook.ok(f"%%tensor\n{cell}").data["image/svg+xml"])


def classes(page: ET.Element, first: str) -> list[str]:
    """The classes of all elements of one kind."""
    return [found for e in page.iter() if (found := e.get("class", "")).split()[:1] == [first]]


def headings(page: ET.Element) -> list[str]:
    """What stands above open frames."""
    return [e.text or "" for e in page.iter() if e.get("class") == "heading"]


@pytest.mark.parametrize("name", LOOPS)
def test_a_still_picture_has_them(started, name):
    cell, ways = LOOPS[name]
    assert classes(still(started, cell), "edge").count("edge back") == len(ways)


BRANCHES = {  # a cell, and what the frames of its branch say when it has run
    "one side": (
        "s = x.sum()\nif s > 1:\n    r2 = s * 2\nelse:\n    r2 = -s\nr2 + 1",
        {"then": "ran", "else": "did not run"},
    ),
    "the other one": (
        "s = x.sum()\nif s < 1:\n    r2 = s * 2\nelse:\n    r2 = -s\nr2 + 1",
        {"then": "did not run", "else": "ran"},
    ),
    "both, in a loop": (
        "s = x.sum()\nfor k in range(6):\n    if s > 5:\n        s = s / 2\n    else:\n        s = s + 1.0\ns * 1.0",
        {"then": "ran 2 times", "else": "ran 4 times"},
    ),
    "one, in a loop": (
        "s = x.sum()\nfor k in range(6):\n    if s < 0:\n        s = s / 2\n    else:\n        s = s + 1.0\ns * 1.0",
        {"then": "did not run", "else": "ran 6 times"},
    ),
    "iterations of a while": ("z = x.sum()\nwhile z > 1:\n    z = z / 2\nz * 1.0", {"": "4 iterations"}),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_a_still_picture_says_what_ran(started, name):
    cell, said = BRANCHES[name]
    page = still(started, cell)
    for side, told in said.items():
        assert [t for t in headings(page) if t.startswith(side) and t.endswith(f" · {told}")], headings(page)
    kinds = classes(page, "frame")
    assert kinds.count("frame idle") == list(said.values()).count("did not run")
    assert kinds.count("frame ran") == sum(told.startswith("ran") for told in said.values())


IN_OTHER_PLACES = {  # a cell, and what its frames say
    "a branch in a branch": (
        "s = x.sum()\nif s > 1:\n    if s > 100:\n        q = s * 2\n    else:\n        q = s * 3\nelse:\n    q = -s\nq + 1",
        {"then: 4 ops · ran", "else: 1 op · did not run", "then: 1 op · did not run", "else: 1 op · ran"},
    ),
    "after a loop": (
        "s = x.sum()\nfor k in range(3):\n    s = np.sin(s)\nif s > 5:\n    q = s * 2\nelse:\n    q = -s\nq + 1",
        {"then: 1 op · did not run", "else: 1 op · ran"},
    ),
    "a while in a loop": (
        (
            "s = x.sum()\nfor k in range(3):\n    s = s + 5.0\n    while s > 2:\n        s = s / 2\n    s = s + 0.1\ns * 1.0"
        ),
        {"s = while: 2 ops inside · 7 iterations"},
    ),
    "an expression": (
        "s = x.sum()\n(s * 2 if s > 50 else s * 3) + 1",
        {"then: 1 op · did not run", "else: 1 op · ran"},
    ),
}


@pytest.mark.parametrize("name", IN_OTHER_PLACES)
def test_a_still_picture_says_it_in_other_places(started, name):
    cell, said = IN_OTHER_PLACES[name]
    assert said <= set(headings(still(started, cell)))


@pytest.mark.parametrize("grad", ["", " --grad r"])
def test_a_still_picture_of_a_gradient_says_it(started, grad):
    page = started.ok(f"%%tensor{grad}\nq = r * x.sum()\nif q > 1:\n    q = q * q\nelse:\n    q = -q\nq * 2")
    assert "then: 1 op · ran" in headings(ET.fromstring(page.data["image/svg+xml"]))


@pytest.mark.parametrize(
    "cell",
    [
        "s = x.sum()\nfor k in range(2000):\n    if s > 5:\n        s = s / 2\n    else:\n        s = s + 1.0\ns * 1.0",
        "s = np.float64(1e9) + x.sum()\nwhile s > 1:\n    s = s - 1e4\ns * 1.0",
        "A = np.ones((900, 900)) * r\ns = np.sum(A @ A @ A)\nif s > 1:\n    q = s * 2\nelse:\n    q = -s\nq + 1",
    ],
)
def test_a_still_picture_makes_no_claim_where_that_would_take_long(started, cell):
    page = still(started, cell)
    assert not [t for t in headings(page) if " ran" in t or "did not" in t or "iterations" in t]
    assert set(classes(page, "frame")) == {"frame"}


@pytest.mark.parametrize("name", BRANCHES)
def test_frames_say_what_ran(started, name):
    from tensormagic.notebook.display.shown import Report

    cell, said = BRANCHES[name]
    scenes = []
    bundle = Report.bundle

    def note(self):
        scenes.append(self.portrait.scene(self.outcome.source))
        return bundle(self)

    Report.bundle = note
    try:
        started.ok(f"%%tensor\n{cell}")
    finally:
        Report.bundle = bundle
    went = [told["went"] for told in scenes[-1].details.measured.values() if "went" in told]
    assert said in went


def test_a_frame_has_room_for_what_it_says(started):
    drawn = captured(started, BRANCHES["one side"][0])
    (branch,) = [box for box in drawn.picture.boxes if box.is_open]
    for box in branch.inside.picture.boxes:
        assert re.match("then|else", box.inside.title)
        assert box.width >= 7 * len(f"{box.inside.title} · did not run")


def test_views_inside_keep_their_ways_when_folded(started):
    inside = views(captured(started, LOOPS["values that change places"][0]))[1]
    ids = {v.id for v in inside.vertices}
    assert inside.returns
    assert {one for pair in inside.returns for one in pair} <= ids
