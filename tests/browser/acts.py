"""What a user sees of each view and does with it: drags it, works it by keys alone, searches in it. Each act checks what it has changed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import views

FOCUSABLE = "button, input, select, textarea, summary, a[href], [tabindex='0']"
Place = tuple[float, float]
# where a live view is held, and two places as shares of what is held
GRIPS: dict[str, tuple[str, Place, Place]] = {
    "slow": (".tm-curve", (0.3, 0.5), (0.6, 0.5)),
    "plane": (".tm-plane", (0.4, 0.6), (0.6, 0.3)),
    "columns": (".tm-knob >> nth=1", (0.5, 0.3), (0.5, 0.6)),
    "cells": (".tm-knob >> nth=2", (0.5, 0.2), (0.5, 0.8)),
    "line": (".tm-elements", (0.3, 0.5), (0.6, 0.5)),
    "heat": (".tm-elements", (0.1, 0.5), (0.3, 0.8)),
}
KEYED = {  # what of it has the focus, and the keys of which one at least changes something
    "slow": ("input[type=range]", ("ArrowRight",)),
    "plane": (".tm-plane", ("ArrowUp",)),
    "columns": (".tm-knob[tabindex='0']", ("ArrowRight", "ArrowUp")),
    "cells": (".tm-knob[tabindex='0']", ("ArrowDown", "+")),
    "line": (".tm-elements", ("ArrowRight",)),
    "heat": (".tm-elements", ("ArrowUp", "ArrowRight")),
}
DRAWN = [
    *(".tm-graph .tm-boxes > g.input", ".tm-sweep .tm-picture", ".tm-backprop .node", ".tm-lines summary"),
    *(
        ".tm-panel .run .long",
        "svg[aria-label*='do not fit']",
        ".tm-panel .line .strip",
        "mjx-container",
    ),
    *("strong:text('rewrites')", "table:has-text('never less accurate')", "summary:text('kernel 1')", ".tm-banner"),
]
WRITTEN = [".tm-lines code", ".tm-sweep .tm-readout", ".tm-backprop .tm-title", ".tm-graph .tm-header"]
EXACT = "([one, was]) => one.dataset.exact === 'true' && one.querySelector('.tm-readout').textContent !== was"
POINT = """(one) => [...[...one.querySelectorAll('.tm-knob')].map((knob) => knob.ariaValueNow),
    ...[...one.querySelectorAll('.tm-row .tm-number')].map((number) => number.textContent)]"""
# how often the tabulator key has to be pressed at least, until an element has the focus
BETWEEN = f"""(wanted) => [...document.querySelectorAll("{FOCUSABLE}")].filter((one) => one.tabIndex >= 0 && !one.disabled
    && one.closest('.jp-OutputArea-output') && one.checkVisibility({{ checkVisibilityCSS: true }})
    && document.activeElement.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING
    && (one === wanted || one.compareDocumentPosition(wanted) & Node.DOCUMENT_POSITION_FOLLOWING)).length"""


def look(page: Page, *, dark: bool) -> None:
    """Every view is there, in the colours of the theme."""
    for selector in DRAWN:
        box = page.locator(selector).first.bounding_box()
        assert box is not None, selector
        assert min(box["width"], box["height"]) > 8, selector
    for selector in WRITTEN:
        ink = page.locator(selector).first.evaluate("(one) => getComputedStyle(one).color")
        shade = [float(part) for part in re.findall(r"[\d.]+", ink)][:3]
        assert (sum(shade) > 384) == dark, (selector, ink)


def live(page: Page, name: str) -> Locator:
    """The live view of what has a name."""
    return page.locator(".tm-sweep", has=page.locator(".tm-readout", has_text=re.compile(rf"^{name}\b")))


def number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


def follows(view: Locator, name: str, was: str) -> None:
    """Wait until the kernel has told the value at another point, and hold it against NumPy's."""
    view.page.wait_for_function(EXACT, arg=[view.element_handle(), was])
    point = [number(text) for text in view.evaluate(POINT)]
    words = view.locator(".tm-readout").inner_text()
    _, index, told = re.match(r"(\w+)(?:\[([\d, ]+)\] (?:at the dot|in the frame))? = (\S+)", words).groups()
    truth: Any = {
        "slow": lambda: 2 * np.sin(point[0]),
        "plane": lambda: views.plane(*point),
        "columns": lambda: views.columns(np.array(point[:3]), point[3]),
        "cells": lambda: views.cells(np.array(point).reshape(2, 3)),
        "line": lambda: views.line(point[0]),
        "heat": lambda: views.heat(point[0]),
    }[name]()
    expected = truth[tuple(map(int, index.split(", ")))] if index else truth
    assert number(told) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def pull(part: Locator, start: Place, end: Place) -> None:
    """Press the pointer on a part of a view, move it, and let go."""
    part.evaluate("(one) => one.scrollIntoView({ block: 'center' })")
    box = part.bounding_box()
    (x, y), (to_x, to_y) = [(box["x"] + box["width"] * u, box["y"] + box["height"] * v) for u, v in (start, end)]
    page = part.page
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(to_x, to_y, steps=4)
    page.mouse.up()


def drag(page: Page, *, back: bool) -> None:
    """Drag every view that can be dragged, there or back."""
    ends = slice(None, None, -1 if back else 1)
    for name, (grip, *places) in GRIPS.items():
        view = live(page, name)
        was = view.locator(".tm-readout").inner_text()
        pull(view.locator(grip), *places[ends])
        follows(view, name, was)
    for name in ("slow", "columns"):
        view = live(page, name)
        was = view.locator(".tm-readout").inner_text()
        pull(view.locator("input[type=range]"), *[(0.25, 0.5), (0.8, 0.5)][ends])
        follows(view, name, was)
    backprop = page.locator(".tm-backprop")
    was = backprop.locator(".tm-status").inner_text()
    pull(backprop.get_by_role("slider", name="step"), *[(0.9, 0.5), (0.3, 0.5)][ends])
    expect(backprop.locator(".tm-status")).not_to_have_text(was)
    was = backprop.locator(".tm-title").inner_text()
    pull(backprop.get_by_role("slider", name="b", exact=True), *[(0.5, 0.5), (0.8, 0.5)][ends])
    expect(backprop.locator(".tm-title")).not_to_have_text(was)
    expect(backprop).to_have_attribute("data-exact", "true")
    graph = page.locator(".tm-graph").first
    was = graph.locator(".tm-world").get_attribute("transform")
    # by its middle: Notebook 7 shows what is long through a window with a scroll bar
    pull(graph.locator(".tm-stage"), *[(0.1, 0.5), (0.2, 0.6)][ends])
    expect(graph.locator(".tm-world")).not_to_have_attribute("transform", was)
    graph.get_by_role("button", name="after rewriting", exact=True).click()
    pull(graph.get_by_role("slider", name="step of rewriting"), *[(0.95, 0.5), (0.05, 0.5)][ends])
    expect(graph.locator(".tm-live")).to_have_text(re.compile(r"^step [1-9]" if back else r"^step 0 of \d+: as it was"))


def search(page: Page, word: str) -> None:
    """Look for a word in a graph."""
    graph = page.locator(".tm-graph").first
    box = graph.get_by_role("searchbox")
    box.click()
    page.keyboard.type(word)
    said = graph.locator(".tm-live")
    expect(said).to_have_text(re.compile(r"^[1-9]\d* found, Enter goes to the next$"))
    page.keyboard.press("Enter")
    expect(said).to_have_text(re.compile(rf"^1 of \d+: .*{word}"))
    expect(graph.locator(".tm-details")).to_contain_text(word)
    page.keyboard.press("Escape")
    assert box.input_value() == ""


def come_to(part: Locator) -> None:
    """Press the tabulator key until a part of a view has the focus."""
    page, wanted = part.page, part.element_handle()
    while between := wanted.evaluate(BETWEEN):
        for _ in range(between):
            page.keyboard.press("Tab")
    assert wanted.evaluate("(one) => one === document.activeElement")


def flip(page: Page, summary: Locator) -> None:
    """Open what is closed or close what is open, and back."""
    come_to(summary)
    opened = summary.locator("xpath=..")
    was = opened.evaluate("(one) => one.open")
    for now in (not was, was):
        page.keyboard.press("Enter")
        assert opened.evaluate("(one) => one.open") is now


def work_graph(page: Page) -> None:
    graph = page.locator(".tm-graph").first
    said = graph.locator(".tm-live")
    header = graph.locator(".tm-header")
    come_to(header)
    for wide in ("false", "true"):
        page.keyboard.press("Enter")
        assert header.get_attribute("aria-expanded") == wide
    come_to(graph.get_by_role("button", name="after rewriting", exact=True))
    page.keyboard.press("Enter")
    slider = graph.get_by_role("slider", name="step of rewriting")
    come_to(slider)
    page.keyboard.press("Home")
    expect(said).to_have_text(re.compile(r"^step 0 of \d+: as it was"))
    page.keyboard.press("End")
    come_to(graph.locator(".tm-stage"))
    for key in ("Escape", "ArrowDown", "ArrowDown", "b", "x"):  # b and x add and cut cells where a notebook hears them
        page.keyboard.press(key)
    expect(said).to_have_text(re.compile("float64"))
    page.keyboard.press("/")
    page.keyboard.type("log")
    page.keyboard.press("Enter")
    expect(said).to_have_text(re.compile(r"^1 of \d+: .*log"))
    page.keyboard.press("Escape")
    outline = graph.locator(".tm-outline summary")
    come_to(outline)
    page.keyboard.press("Enter")
    come_to(graph.locator("[role=treeitem][tabindex='0']"))
    was = said.inner_text()
    page.keyboard.press("End")
    expect(said).not_to_have_text(was)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert not outline.locator("xpath=..").evaluate("(one) => one.open")


def work_live(page: Page, name: str) -> None:
    view = live(page, name)
    part, keys = KEYED[name]
    come_to(view.locator(part).first)
    was = view.locator(".tm-readout").inner_text()
    for key in keys:
        page.keyboard.press(key)
    follows(view, name, was)


def work_backprop(page: Page) -> None:
    view = page.locator(".tm-backprop")
    said = view.locator(".tm-status")
    come_to(view.get_by_role("button", name="to the start: inputs alone"))
    page.keyboard.press("Enter")
    expect(said).to_have_text(re.compile("^The inputs are known"))
    slider = view.get_by_role("slider", name="b", exact=True)
    come_to(slider)
    was = slider.get_attribute("aria-valuetext")
    page.keyboard.press("ArrowRight")
    expect(slider).not_to_have_attribute("aria-valuetext", was)
    come_to(view.locator(".tm-stage"))
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text(re.compile("^forward: X @ w"))
    page.keyboard.press("End")
    expect(said).to_have_text(re.compile("^Both passes are done"))


def work_by_keys(page: Page) -> None:
    """Work every view from the first to the last, without a pointer."""
    page.locator(".jp-OutputArea-output summary").first.focus()
    flip(page, page.locator("summary", has_text="kernel 1").first)
    flip(page, page.locator(".tm-lines summary").first)
    flip(page, page.locator("summary", has_text="first result, memory"))
    work_graph(page)
    work_live(page, "slow")
    work_backprop(page)
    for name in ("plane", "columns", "cells", "line", "heat"):
        work_live(page, name)
