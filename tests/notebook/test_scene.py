"""The scene: layout, groups, labels and the message to the page."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensormagic.notebook.pictures.grouping import groups
from tensormagic.notebook.pictures.labels import clean, shorten, symbol, width
from tensormagic.notebook.pictures.layout import GAP, Link, layered, topological_order
from tensormagic.notebook.pictures.message import WHOLE_BELOW
from tensormagic.notebook.pictures.picture import Box, Picture
from tensormagic.notebook.pictures.scene import COLLAPSE_ABOVE, Edge, Scene, Vertex, View
from tests.notebook import demo_scenes

SCENES = {
    "logistic": demo_scenes.logistic,
    "softmax": demo_scenes.softmax,
    "chain": demo_scenes.chain,
    "random": demo_scenes.random_graph,
    "hostile": demo_scenes.hostile,
}


def pictures(picture: Picture) -> list[Picture]:
    """Return the picture and those inside its groups."""
    inner = [box.inside.picture for box in picture.boxes if box.inside]
    return [picture, *(deep for one in inner for deep in pictures(one))]


def by_row(picture: Picture) -> dict[int, list[Box]]:
    """Return the boxes of each row from left to right."""
    rows: dict[int, list[Box]] = defaultdict(list)
    for box in sorted(picture.boxes, key=lambda box: box.x):
        rows[box.row].append(box)
    return rows


@pytest.mark.parametrize("name", SCENES)
def test_boxes_of_a_row_stand_apart_and_links_go_down(name: str) -> None:
    for view in SCENES[name]().views:
        for picture in pictures(view.picture):
            for row in by_row(picture).values():
                for left, right in pairwise(row):
                    assert right.x - left.x >= (left.width + right.width) / 2 + GAP - 0.2
            for route in picture.routes:
                source, target = picture.boxes[route.source], picture.boxes[route.target]
                assert target.row > source.row
                assert len(route.bends) == target.row - source.row - 1


@pytest.mark.parametrize("name", SCENES)
def test_bends_pass_beside_boxes(name: str) -> None:
    for view in SCENES[name]().views:
        for picture in pictures(view.picture):
            rows = by_row(picture)
            for route in picture.routes:
                for row, x in enumerate(route.bends, picture.boxes[route.source].row + 1):
                    assert all(abs(box.x - x) >= box.width / 2 for box in rows[row])


def test_inputs_on_top_and_outputs_at_the_bottom() -> None:
    picture = demo_scenes.logistic().view("gradient").picture
    rows = {box.vertex.kind: set[int]() for box in picture.boxes if box.vertex}
    for box in picture.boxes:
        if box.vertex:
            rows[box.vertex.kind].add(box.row)
    assert rows["input"] == {0}
    assert rows["output"] == {len(picture.gaps)}


def test_operands_arrive_in_order_where_order_matters() -> None:
    vertices = [Vertex(name, name, "input") for name in "abcd"] + [Vertex("-", "subtract", "pointwise")]
    view = View("v", tuple(vertices), (Edge("c", "-", 0), Edge("a", "-", 1)))
    picture = view.picture
    first, second = picture.routes
    assert first.enters < second.enters
    assert picture.boxes[first.source].x < picture.boxes[second.source].x


def test_equal_scenes_are_drawn_equally() -> None:
    assert json.dumps(demo_scenes.random_graph().message()) == json.dumps(demo_scenes.random_graph().message())


def test_views_share_the_keys_of_what_survived() -> None:
    captured, rewritten, *_ = demo_scenes.logistic().views
    before = {box.key for box in captured.picture.boxes}
    after = {box.key for box in rewritten.picture.boxes}
    assert {"X", "z", "u", "mean", "log"} <= before & after
    assert "e" in before - after


def test_kernels_are_open_groups_and_large_views_start_closed() -> None:
    kernels = demo_scenes.logistic().view("kernels").picture
    titles = [box.inside.title for box in kernels.boxes if box.inside and box.inside.is_open]
    assert titles == ["kernel 1: 1 op", "kernel 2: 10 ops", "kernel 3: 1 op"]
    large = demo_scenes.random_graph(COLLAPSE_ABOVE + 1).views[0].picture
    assert all(box.is_closed for box in large.boxes if box.inside)
    assert any(box.key == "line 3" for box in large.boxes)
    assert all(box.inside is None for box in demo_scenes.random_graph(COLLAPSE_ABOVE - 9).views[0].picture.boxes)


def test_every_vertex_of_a_large_view_is_in_it_once() -> None:
    view = demo_scenes.random_graph(700).views[0]
    found = [box.vertex.id for picture in pictures(view.picture) for box in picture.boxes if box.vertex]
    assert sorted(found) == sorted(vertex.id for vertex in view.vertices)


def test_scalar_constants_stand_beside_each_user() -> None:
    vertices = (
        Vertex("x", "x", "input"),
        Vertex("one", "1", "constant", "int64"),
        Vertex("a", "add", "pointwise"),
        Vertex("b", "multiply", "pointwise"),
    )
    edges = (Edge("x", "a", 0), Edge("one", "a", 1), Edge("a", "b", 0), Edge("one", "b", 1))
    keys = [box.key for box in View("v", vertices, edges).grouped("all").boxes]
    assert keys == ["x", "one", "a", "b", "one~1"]


@pytest.mark.parametrize(("count", "limit"), [(1000, 1.0), (5000, 3.0)])
def test_layout_is_quick(count: int, limit: float) -> None:
    view = demo_scenes.random_graph(count).views[0]
    start = time.process_time()
    assert view.picture.height > 0
    assert time.process_time() - start < limit


@pytest.mark.parametrize(("count", "limit"), [(1000, 1.0), (5000, 3.0)])
def test_layout_of_ungrouped_boxes_is_quick(count: int, limit: float) -> None:
    pick = random.Random(3)
    links = [Link(max(0, k - pick.randint(1, 60)), k) for k in range(1, count) for _ in range(2)]
    start = time.process_time()
    placement = layered([80.0] * count, links)
    assert time.process_time() - start < limit
    assert all(placement.rows[link.source] < placement.rows[link.target] for link in links)


def test_a_long_chain_is_straight_and_does_not_recurse() -> None:
    placement = layered([50.0] * 20_000, [Link(k, k + 1) for k in range(19_999)])
    assert len(set(placement.x)) == 1
    assert placement.rows[-1] == 19_999


def test_a_view_too_large_for_a_page_keeps_its_groups_closed() -> None:
    message = demo_scenes.chain(WHOLE_BELOW + 1).message(deep=True)
    groups = [box["g"] for box in message["views"][0]["picture"]["boxes"] if "g" in box]
    assert all(group["picture"] is None and group["ask"] for group in groups)
    whole = demo_scenes.chain(300).message(deep=True)
    assert all(box["g"]["picture"] for box in whole["views"][0]["picture"]["boxes"] if "g" in box)


def test_a_circle_is_drawn_and_not_refused() -> None:
    view = View("v", (Vertex("a", "f", "region"), Vertex("b", "g", "region")), (Edge("a", "b"), Edge("b", "a")))
    assert {box.row for box in view.picture.boxes} == {0, 1}


def test_empty_views_and_scenes() -> None:
    view = View("captured", (), ())
    assert (view.picture.width, view.picture.height) == (0.0, 0.0)
    assert Scene("", "", ()).summary == "graph: nothing"
    assert Scene("", "", ()).message()["views"] == []


graphs = st.integers(1, 40).flatmap(
    lambda count: st.tuples(
        st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=count, max_size=count),
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=120),
    )
)


@given(graphs, st.integers(1, 10))
@settings(max_examples=150, deadline=None)
def test_groups_never_feed_each_other_in_a_circle(
    drawn: tuple[list[int | None], list[tuple[int, int]]], most: int
) -> None:
    keys, pairs = drawn
    pairs = [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]
    found = groups(keys, pairs, most)
    owner = {index: number for number, group in enumerate(found) for index in group.members}
    assert sum(len(group.members) for group in found) == len(owner)
    assert all(len(group.members) <= most for group in found)
    assert {index for index, key in enumerate(keys) if key is not None} <= set(owner)
    unit = [owner.get(index, len(found) + index) for index in range(len(keys))]
    between = [(unit[source], unit[target]) for source, target in pairs if unit[source] != unit[target]]
    order = topological_order(len(found) + len(keys), between)
    place = {index: position for position, index in enumerate(order)}
    assert all(place[source] < place[target] for source, target in between)


def test_lines_that_do_not_feed_each_other_in_a_circle_stay_whole() -> None:
    found = groups([1, 1, 2, 2, 2, None], [(0, 1), (1, 2), (2, 3), (1, 4), (4, 5)])
    assert [set(group.members) for group in found] == [{0, 1}, {2, 3, 4}]


@given(graphs)
@settings(max_examples=100, deadline=None)
def test_any_graph_is_laid_out(drawn: tuple[list[int | None], list[tuple[int, int]]]) -> None:
    keys, pairs = drawn
    links = [Link(*pair) for pair in pairs if pair[1] != 0]
    placement = layered([30.0 + 10 * k for k in range(len(keys))], links, frozenset({0}))
    assert len(placement.x) == len(placement.rows) == len(keys)
    assert placement.rows[0] == 0
    assert min(placement.x) >= 0


def test_the_message_is_json_without_empty_fields() -> None:
    message = demo_scenes.logistic().message()
    assert json.loads(json.dumps(message)) == message
    assert (
        message["summary"] == "graph: 8 ops as written → 6 after rewriting → 13 with the gradient → 3 compiled kernels"
    )
    assert message["source"][0] == "z = X @ w + b"
    first = message["vertices"][0]
    assert first == {
        "id": "X",
        "label": "X",
        "kind": "input",
        "type": "float64[569, 30]",
        "symbolic": "float64[n, p]",
        "cell": "In[3]",
        "preview": "[0.12, -1.4, …]",
    }
    assert len(message["vertices"]) < sum(len(view.vertices) for view in demo_scenes.logistic().views)


def test_the_text_names_lines_and_ops() -> None:
    text = demo_scenes.logistic().text()
    assert text.splitlines()[:3] == [
        "In[3], graph: 8 ops as written → 6 after rewriting → 13 with the gradient → 3 compiled kernels",
        "  line 1  z = X @ w + b",
        "    @, +: float64[569]",
    ]
    assert len(demo_scenes.random_graph().text().splitlines()) == 1 + 2 * 12 + 1


def test_an_unknown_view_is_named() -> None:
    with pytest.raises(KeyError, match="no view 'x' in this scene; there are: kernels"):
        demo_scenes.softmax().view("x")


@given(st.text(max_size=60))
def test_clean_text_fits_xml_and_one_line(text: str) -> None:
    kept = clean(text)
    assert kept.isprintable() or all(c.isprintable() or c.isspace() for c in kept)
    assert "\n" not in kept
    assert "\x00" not in kept
    assert "\u202e" not in kept


@given(st.text(max_size=200), st.floats(20, 300), st.booleans())
def test_shortened_text_fits(text: str, most: float, bold: bool) -> None:
    assert width(shorten(text, most, 12, bold=bold), 12, bold=bold) <= most + 1e-9


def test_symbols() -> None:
    assert [symbol(name) for name in ("add", "-", "*", "matmul", "exp")] == ["+", "−", "×", "@", "exp"]
