"""The graph as a page in a browser: keys, pointer, views, files, and names that must stay text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from tensormagic.notebook.pictures.html import to_html
from tensormagic.notebook.pictures.scene import Scene
from tests.notebook import demo_scenes

pytestmark = pytest.mark.browser


class Opened:
    """A page that shows a scene, and what went wrong on it."""

    def __init__(self, browser: BrowserContext, path: Path, **media: Any) -> None:
        self.page = browser.new_page()
        self.page.emulate_media(**media)
        self.wrong: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrong.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked(request.url))
        self.page.goto(path.as_uri())

    def asked(self, url: str) -> None:
        if not url.startswith(("file:", "data:", "blob:")):
            self.wrong.append(f"request {url}")

    def boxes(self) -> list[str]:
        """Return the keys of the boxes on the stage."""
        return self.page.eval_on_selector_all(".tm-boxes > g", "all => all.map((one) => one.dataset.key)")

    def said(self) -> str:
        """Return what the status line says."""
        return self.page.locator(".tm-live").inner_text()


@pytest.fixture
def opened(browser: BrowserContext, tmp_path: Path) -> Iterator[Any]:
    """Open a scene as a page; at the end nothing may have gone wrong."""
    pages: list[Opened] = []

    def open_scene(scene: Scene, *, expanded: bool = True, view: str | None = None, **media: Any) -> Opened:
        path = tmp_path / f"scene{len(pages)}.html"
        path.write_text(to_html(scene, expanded=expanded, view=view), encoding="utf-8")
        pages.append(Opened(browser, path, **media))
        return pages[-1]

    yield open_scene
    for page in pages:
        assert page.wrong == []
        page.page.close()


def test_it_opens_on_click_and_on_enter(opened: Any) -> None:
    shown = opened(demo_scenes.logistic(), expanded=False)
    header = shown.page.locator(".tm-header")
    assert header.inner_text() == "graph: 8 ops → 3 kernels"
    assert header.get_attribute("aria-expanded") == "false"
    assert shown.page.locator(".tm-stage").count() == 0
    header.click()
    assert header.get_attribute("aria-expanded") == "true"
    assert len(shown.boxes()) == 14
    header.press("Enter")
    assert shown.page.locator(".tm-stage").count() == 0


def test_a_click_shows_details_and_marks_the_line(opened: Any) -> None:
    shown = opened(demo_scenes.logistic(), view="rewritten")
    shown.page.locator('.tm-boxes [data-key="log"]').click()
    details = shown.page.locator(".tm-details").inner_text().split("\n")
    assert details[0] == "logaddexp"
    for told in ("float64[569]", "float64[n]", "rewritten by softplus", "softplus", "In[3] line 2"):
        assert any(told in line for line in details)
    assert shown.page.locator(".tm-source li.on").inner_text().startswith("loss = np.mean")
    assert shown.page.locator(".tm-edges .on").count() == 3
    assert shown.said() == "logaddexp, float64[569], rewritten by softplus, In[3] line 2"


def test_views_share_elements_so_that_nodes_move(opened: Any) -> None:
    shown = opened(demo_scenes.logistic(), reduced_motion="no-preference")
    page = shown.page
    page.evaluate("window.kept = document.querySelector('.tm-boxes [data-key=mean]')")
    before = page.evaluate("window.kept.style.transform")
    page.get_by_role("button", name="rewritten", exact=True).click()
    assert page.evaluate(
        "window.kept.isConnected && window.kept === document.querySelector('.tm-boxes [data-key=mean]')"
    )
    assert page.evaluate("window.kept.style.transform") != before
    assert page.evaluate("getComputedStyle(window.kept).transitionDuration") == "0.4s, 0.2s"
    assert shown.said() == "rewritten: 6 ops"
    still = opened(demo_scenes.logistic(), reduced_motion="reduce")
    assert still.page.evaluate("getComputedStyle(document.querySelector('.tm-boxes > g')).transitionDuration") == "0s"


def test_keys_follow_links_open_groups_and_search(opened: Any) -> None:
    shown = opened(demo_scenes.chain())
    page = shown.page
    stage = page.locator(".tm-stage")
    stage.focus()
    page.keyboard.press("ArrowDown")
    assert shown.said() == "x, float64[569]"
    page.keyboard.press("ArrowDown")
    assert shown.said() == "group lines 2–4 (1 of 3): 100 ops"
    page.keyboard.press("Enter")
    assert shown.said() == "lines 2–4 (1 of 3): 100 ops, open"
    assert len(shown.boxes()) == 4 + 100
    page.keyboard.press("/")
    page.keyboard.type("tanh")
    assert shown.said().startswith("100 found")
    page.keyboard.press("Enter")
    assert shown.said() == "1 of 100: tanh, float64[569], In[9] line 4"
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    assert shown.said() == "sin, float64[569], In[9] line 2"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert len(shown.boxes()) == 5


def test_arrows_follow_links_through_the_border_of_an_open_kernel(opened: Any) -> None:
    shown = opened(demo_scenes.logistic(), view="kernels")
    shown.page.locator('.tm-boxes [data-key="m"]').click()
    shown.page.locator(".tm-stage").focus()
    shown.page.keyboard.press("ArrowDown")
    assert shown.said().startswith("add, float64[569], In[3] line 1, kernel 2")


def test_open_groups_do_not_cover_their_neighbours(opened: Any) -> None:
    shown = opened(demo_scenes.random_graph(300, lines=6))
    shown.page.get_by_role("button", name="open or close all groups").click()
    assert len(shown.boxes()) == 309
    boxes = shown.page.evaluate(
        """() => [...document.querySelectorAll('.tm-boxes > g')].map((one) => {
            const [x, y] = one.style.transform.match(/-?[\\d.]+/g).map(Number);
            const path = one.querySelector('path').getBBox();
            return [x + path.x, y + path.y, path.width, path.height];
        })"""
    )
    boxes.sort()
    for k, (x, y, wide, tall) in enumerate(boxes):
        for other_x, other_y, _, other_tall in boxes[k + 1 :]:
            if other_x >= x + wide:
                break
            assert other_y >= y + tall or other_y + other_tall <= y


def test_the_outline_is_a_tree_for_screen_readers(opened: Any) -> None:
    shown = opened(demo_scenes.chain())
    page = shown.page
    page.get_by_text("Outline", exact=True).click()
    tree = page.get_by_role("tree", name="nodes of the graph")
    tree.get_by_role("treeitem").first.wait_for()  # it grows when it is first opened
    assert tree.get_by_role("treeitem").count() == 5
    tree.get_by_role("treeitem").first.focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    assert page.locator("[role=treeitem][aria-expanded=true] li").count() == 100
    page.keyboard.press("ArrowDown")
    assert shown.said() == "tanh, float64[569], In[9] line 4"


def test_zoom_and_pan(opened: Any) -> None:
    shown = opened(demo_scenes.logistic())
    page = shown.page

    def world() -> tuple[float, float, float]:
        x, y, k = map(float, re.findall(r"-?[\d.]+", page.locator(".tm-world").get_attribute("transform")))
        return x, y, k

    x, y, k = world()
    stage = page.locator(".tm-stage").bounding_box()
    page.mouse.move(stage["x"] + 20, stage["y"] + 400)
    page.mouse.wheel(0, -100)
    assert world() == (x, y, k)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    page.wait_for_function(
        "(k) => !document.querySelector('.tm-world').getAttribute('transform').includes(k)", arg=f"({k})"
    )
    zoomed = world()
    assert zoomed[2] > k
    page.mouse.down()
    page.mouse.move(stage["x"] + 60, stage["y"] + 430, steps=4)
    page.mouse.up()
    assert world() == pytest.approx((zoomed[0] + 40, zoomed[1] + 30, zoomed[2]))
    page.get_by_role("button", name="fit the graph into the view").click()
    assert world()[2] == pytest.approx(k, rel=0.2)


@pytest.mark.parametrize("ending", ["SVG", "PNG"])
def test_pictures_are_saved(opened: Any, tmp_path: Path, ending: str) -> None:
    shown = opened(demo_scenes.logistic(), view="kernels")
    with shown.page.expect_download() as download:
        shown.page.get_by_role("button", name=f"save as {ending}").click()
    path = tmp_path / "saved"
    download.value.save_as(path)
    assert download.value.suggested_filename == f"In_3__kernels.{ending.lower()}"
    start = path.read_bytes()
    if ending == "PNG":
        assert start.startswith(b"\x89PNG")
        assert len(start) > 10_000
    else:
        assert start.startswith(b"<svg")
        assert b"logaddexp" in start
        assert b"prefers-color-scheme" in start
        assert b"tm-new" not in start


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_fits_its_box_in_this_browsers_face(opened: Any, scheme: str) -> None:
    for scene in (demo_scenes.logistic(), demo_scenes.hostile()):
        shown = opened(scene, color_scheme=scheme)
        wider = shown.page.evaluate(
            """() => [...document.querySelectorAll('.tm-boxes > g')].flatMap((box) => {
                const room = box.querySelector('path').getBBox();
                return [...box.querySelectorAll(':scope > text')]
                    .filter((text) => text.getBBox().width > room.width - 4)
                    .map((text) => text.textContent);
            })"""
        )
        assert wider == []


def test_hostile_names_are_only_text(opened: Any) -> None:
    shown = opened(demo_scenes.hostile())
    assert shown.page.locator("script").count() == 2
    assert shown.page.locator("#tm-root img").count() == 0
    for key in shown.boxes():
        shown.page.locator(f'.tm-boxes [data-key="{key}"]').dispatch_event("click")
    shown.page.get_by_text("Outline", exact=True).click()
    assert shown.page.locator("#tm-root script").count() == 0
