"""Pictures on narrow pages: text of 12 pixels or more, and where a picture goes on beyond its frame, that is seen and said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import tensormagic as tm
from tensormagic.notebook.display.other_objects import as_html
from tensormagic.notebook.pictures.html import to_html
from tests.browser.axe import violations
from tests.notebook import demo_scenes

# the least height of letters on the screen, of all texts in a picture
LEAST = """(one) => Math.min(...[...one.querySelectorAll('text')].filter((t) => t.textContent && t.checkVisibility())
    .map((t) => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a))"""
INSIDE = """(stage) => { const frame = stage.getBoundingClientRect();
    return [...stage.querySelectorAll('.tm-boxes > g')].every((one) => { const box = one.getBoundingClientRect();
        return box.left >= frame.left - 6 && box.right <= frame.right + 6
            && box.top >= frame.top - 6 && box.bottom <= frame.bottom + 6;
    });
}"""


class Scene:
    """A scene as a view that writes its page."""

    def __init__(self, scene: Any) -> None:
        self.scene = scene

    def to_html(self, path: Path) -> None:
        path.write_text(to_html(self.scene), encoding="utf-8")

    def close(self) -> None:
        """A scene holds nothing."""


def at(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(200)


def said(view: Locator) -> str:
    return view.locator(".tm-beyond span").inner_text()


@pytest.mark.parametrize("width", [1200, 640, 390])
@pytest.mark.parametrize("name", ["logistic", "nested"])
def test_a_graph_is_readable_and_says_where_it_goes_on(opened, width, name):
    page = opened(Scene(getattr(demo_scenes, name)()))
    at(page, width)
    page.reload()
    stage = page.locator(".tm-stage")
    assert stage.evaluate(LEAST) >= 12
    whole = stage.evaluate(INSIDE)
    assert (said(page.locator(".tm-graph")) == "") is whole
    page.get_by_role("button", name="fit the graph into the view").click()
    page.wait_for_timeout(100)
    assert stage.evaluate(INSIDE)
    assert said(page.locator(".tm-graph")) == ""


# how far the picture ends within its frame at the left and at the right; less than 0 where it goes on
SIDES = """(stage) => { const frame = stage.getBoundingClientRect();
    const boxes = [...stage.querySelectorAll('.tm-boxes > g')].map((one) => one.getBoundingClientRect());
    return [Math.min(...boxes.map((b) => b.left)) - frame.left, frame.right - Math.max(...boxes.map((b) => b.right))]; }"""


@pytest.mark.parametrize("name", ["logistic", "softmax", "nested", "turning"])
def test_no_side_is_empty_where_the_other_one_is_cut(opened, name):
    """The inputs of a loop, at one of its sides, stood in the middle, and the loop was cut at the other one."""
    page = opened(Scene(getattr(demo_scenes, name)()))
    for width in (700, 640, 520, 450, 390, 320):
        at(page, width)
        page.reload()
        page.locator(".tm-stage").wait_for()
        left, right = page.locator(".tm-stage").evaluate(SIDES)
        assert min(left, right) > 0 or max(left, right) < 30, (width, left, right)


def test_the_stages_stand_in_several_lines(opened):
    """Below a cell that shows no value they are the line itself: it was cut at the edge of the page."""
    page = opened(Scene(demo_scenes.logistic()))
    at(page, 390)
    header = page.locator(".tm-header")
    assert header.inner_text().startswith("graph: ")
    assert header.locator(".tm-more").evaluate("(one) => one.getBoundingClientRect().right <= innerWidth")


# how many lines each word stands in
LINES = """() => [...document.querySelectorAll('.tm-line span')].flatMap((one) => [...one.firstChild.data.matchAll(/\\S+/g)].map((word) => {
    const range = document.createRange();
    range.setStart(one.firstChild, word.index);
    range.setEnd(one.firstChild, word.index + word[0].length);
    return range.getClientRects().length;
}))"""


@pytest.mark.parametrize("width", [640, 390, 320, 280])
def test_a_line_without_a_graph_breaks_between_words(browser, width):
    """A number was cut in two: ``0.029`` and ``25``."""
    page = browser.new_page()
    page.set_viewport_size({"width": width, "height": 300})
    page.set_content(as_html("1 · float64 · grad_w = [-1.888213, -0.266979, 0.02925] · grad_b = -0.268573"))
    assert set(page.evaluate(LINES)) == {1}
    page.close()


def test_the_sides_follow_the_pointer(opened):
    page = opened(Scene(demo_scenes.logistic()))
    at(page, 390)
    page.reload()
    cover, stage = page.locator(".tm-beyond"), page.locator(".tm-stage")
    for _ in range(3):
        page.get_by_role("button", name="zoom in").click()
    expect(cover).to_have_class(re.compile("tm-left.*tm-right|tm-right.*tm-left"))
    assert said(page.locator(".tm-graph")) == "drag to see the rest, or press fit"
    box = stage.bounding_box()
    assert box is not None
    for _ in range(12):
        page.mouse.move(box["x"] + 20, box["y"] + 100)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] - 20, box["y"] + 100, steps=3)
        page.mouse.up()
    expect(cover).not_to_have_class(re.compile("tm-left"))


@pytest.mark.parametrize("width", [1200, 640, 390])
def test_backpropagation_is_readable_and_says_where_it_goes_on(opened, width):
    x = np.linspace(0, 1, 40)
    page = opened(tm.backprop(lambda a, b: np.mean((a * x + b - 3 * x) ** 2), 0.5, 0.25))
    at(page, width)
    stage = page.locator(".tm-stage")
    assert stage.evaluate(LEAST) >= 12
    wide = stage.evaluate("(one) => one.scrollWidth > one.clientWidth + 6")
    assert ("or press fit" in said(page.locator(".tm-backprop"))) is wide
    page.get_by_role("button", name="all of the picture, as wide as there is room").click()
    assert stage.evaluate("(one) => one.scrollWidth <= one.clientWidth + 6")
    assert "fit" not in said(page.locator(".tm-backprop"))


LIVE = {
    "a curve": (lambda a: np.sin(a) * a, {"a": (0, 10)}),
    "a plane": (lambda u, v: (1 - u) ** 2 + 2 * (v - u**2) ** 2, {"u": (-2, 2), "v": (-1, 3)}),
    "a line": (lambda a: np.sin(a * np.linspace(0, 6, 80)), {"a": (0, 5)}),
    "columns": (lambda w: np.sum(w**2), {"w": (-np.ones(6), np.ones(6))}),
    "cells": (lambda W: np.sum(W**3) - W[0, 1], {"W": (-np.ones((2, 3)), np.ones((2, 3)))}),
    "many cells": (lambda W: np.sum(W**3) - W[0, 1], {"W": (-np.ones((5, 5)), np.ones((5, 5)))}),
    "a heat map": (lambda a: a * np.arange(12.0).reshape(3, 4), {"a": (0, 1)}),
    "bars": (lambda a, b, c: a * b + np.sin(c), {"a": (0, 1), "b": (0, 2), "c": (0, 3)}),
}
# texts of a picture that are seen, and stand beyond its frame
CUT = """() => [...document.querySelectorAll('.tm-sweep .tm-picture')].flatMap((one) => {
    const frame = one.getBoundingClientRect();
    return [...one.querySelectorAll('text')].filter((t) => t.textContent && t.checkVisibility())
        .filter((t) => { const box = t.getBoundingClientRect(); return box.left < frame.left - 2 || box.right > frame.right + 2; })
        .map((t) => t.textContent);
})"""


def test_backpropagation_says_what_its_squares_are_where_it_has_some(opened):
    x = np.linspace(0, 1, 40)
    for view, told in (
        (tm.backprop(lambda a: np.mean((a * x - 3 * x) ** 2), 0.5), True),
        (tm.backprop(np.sin, 0.5), False),
    ):
        legend = opened(view).locator(".tm-backprop .tm-legend")
        expect(legend).to_contain_text("with respect to a box, passed back up the orange arrows")
        assert ("negative ones are blue and drawn smaller" in legend.inner_text()) is told


@pytest.mark.parametrize(("width", "is_open"), [(1200, True), (640, False), (390, False)])
def test_the_words_of_backpropagation_are_a_click_away_on_a_narrow_page(opened, width, is_open):
    page = opened(tm.backprop(lambda a, b: (a + np.sin(b)) ** 2, 0.5, 0.2))
    at(page, width)
    page.reload()
    words = page.locator(".tm-backprop .tm-legend p")
    if not is_open:
        expect(words).to_be_hidden()
        page.locator(".tm-backprop .tm-legend summary").click()
    expect(words).to_be_visible()
    expect(words).to_contain_text("A dashed box: what the box below it passes")


def test_backpropagation_opens_at_the_top_of_a_picture_that_is_wider_than_its_frame(opened):
    page = opened(tm.backprop(lambda a, b, c, d: (a + np.sin(b + np.sin(c + np.exp(d)))) ** 2, 0.5, 0.2, 0.1, 0.3))
    at(page, 390)
    page.reload()
    stage = page.locator(".tm-backprop .tm-stage")
    page.wait_for_function("() => document.querySelector('.tm-backprop .tm-stage').scrollLeft > 0")
    frame = stage.bounding_box()
    first = min((box.bounding_box() for box in page.locator(".tm-backprop [data-n]").all()), key=lambda box: box["y"])
    assert first["x"] >= frame["x"]
    assert first["x"] + first["width"] <= frame["x"] + frame["width"]
    page.get_by_role("button", name="one step on").click()
    assert stage.evaluate("(one) => one.scrollWidth > one.clientWidth + 6")


def test_what_stands_beside_backpropagation_goes_below_a_picture_that_needs_the_room(opened):
    x = np.linspace(0, 1, 40)
    page = opened(tm.backprop(lambda a, b: np.mean((a * x + b - 3 * x) ** 2), 0.5, 0.25))
    natural = page.locator(".tm-backprop svg").first.evaluate("one => one.viewBox.baseVal.width || one.clientWidth")
    for width, below in ((natural + 500, False), (natural + 120, True)):
        at(page, int(width))
        stage, side = (page.locator(f".tm-backprop {part}").bounding_box() for part in (".tm-stage", ".tm-side"))
        assert (side["y"] >= stage["y"] + stage["height"]) is below
        assert page.locator(".tm-backprop .tm-stage").evaluate("one => one.scrollWidth <= one.clientWidth + 6")


@pytest.mark.parametrize("width", [1200, 640, 390, 290])  # the last one is what JupyterLab leaves of a phone
@pytest.mark.parametrize("name", LIVE)
def test_live_views_are_readable_and_whole(opened, width, name):
    function, ranges = LIVE[name]
    page = opened(tm.live(function, **ranges))
    at(page, width)
    stage = page.locator(".tm-sweep .tm-stage")
    assert stage.evaluate(LEAST) >= 12
    assert page.evaluate(CUT) == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_phone(opened, scheme):
    x = np.linspace(0, 1, 40)
    made = [
        Scene(demo_scenes.nested()),
        tm.backprop(lambda a: np.mean((a * x - 3 * x) ** 2), 0.5),
        *(tm.live(function, **ranges) for function, ranges in LIVE.values()),
    ]
    for view in made:
        page = opened(view, color_scheme=scheme, reduced_motion="reduce")
        at(page, 390)
        page.reload()
        page.wait_for_timeout(200)
        assert violations(page, "html") == []


# how many boxes are whole where a picture opens, and the most that are at any other place at which the topmost is
WHOLE = """(stage) => { const frame = stage.getBoundingClientRect(), from = stage.scrollLeft;
    const boxes = [...stage.querySelectorAll('.node')].map((one) => one.getBoundingClientRect());
    const ends = boxes.map((b) => [b.left - frame.left + from, b.right - frame.left + from]);
    const whole = (x) => ends.filter(([left, right]) => left >= x - 1 && right <= x + stage.clientWidth + 1).length;
    const first = ends[boxes.reduce((best, b, k) => (b.top < boxes[best].top ? k : best), 0)];
    const places = Array.from({ length: stage.scrollWidth - stage.clientWidth + 1 }, (_, x) => x);
    const fit = places.filter((x) => first[0] >= x && first[1] <= x + stage.clientWidth);
    return [whole(from), Math.max(...fit.map(whole))]; }"""


@pytest.mark.parametrize(("width", "least"), [(640, 5), (390, 5), (320, 1)])
def test_backpropagation_opens_where_most_boxes_are_whole(opened, width, least):
    """At 390 pixels one box was whole: the topmost stood in the middle, and all others were cut, beside an empty half."""
    rng = np.random.default_rng(0)
    data, signs = rng.normal(size=(50, 3)), np.ones(50)

    def loss(w: Any, b: Any) -> Any:
        z = data @ w + b
        return np.mean(np.log(1 + np.exp(-signs * z)))

    page = opened(tm.backprop(loss, np.zeros(3), 0.0))
    at(page, width)
    page.reload()
    page.wait_for_timeout(500)
    here, most = page.locator(".tm-stage").evaluate(WHOLE)
    assert here == most
    assert here >= least


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_that_a_reader_forces_hold_in_both_schemes(opened, scheme):
    """The page's own dark colours were stronger than them."""
    page = opened(Scene(demo_scenes.logistic()), forced_colors="active", color_scheme=scheme)
    kinds = [f"--tm-{name}" for name in ("pointwise", "fold", "kernel")]
    asked = "(one, names) => names.map((name) => getComputedStyle(one).getPropertyValue(name).trim())"
    assert page.locator(".tm-graph").evaluate(asked, kinds) == ["Canvas"] * len(kinds)
