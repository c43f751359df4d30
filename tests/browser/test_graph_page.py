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
from tests.browser.axe import violations
from tests.notebook import demo_scenes


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
    assert (
        header.inner_text() == "graph: 8 ops as written → 6 after rewriting → 13 with the gradient → 3 compiled kernels"
    )
    assert header.get_attribute("aria-expanded") == "false"
    assert shown.page.locator(".tm-stage").count() == 0
    header.click()
    assert header.get_attribute("aria-expanded") == "true"
    assert len(shown.boxes()) == 13
    header.press("Enter")
    assert shown.page.locator(".tm-stage").count() == 0


def test_a_click_shows_details_and_marks_the_line(opened: Any) -> None:
    shown = opened(demo_scenes.logistic(), view="rewritten")
    shown.page.locator('.tm-boxes [data-key="log"]').click()
    details = shown.page.locator(".tm-details").inner_text().split("\n")
    assert details[0] == "logaddexp(0, ·)"
    for told in ("float64[569]", "float64[n]", "rewritten by softplus", "softplus", "In[3] line 2"):
        assert any(told in line for line in details)
    assert shown.page.locator(".tm-source li.on").inner_text().startswith("loss = np.mean")
    assert shown.page.locator(".tm-edges .on").count() == 2
    assert shown.said() == "logaddexp(0, ·), float64[569], rewritten by softplus, In[3] line 2"


def test_views_share_elements_so_that_nodes_move(opened: Any) -> None:
    shown = opened(demo_scenes.logistic(), reduced_motion="no-preference")
    page = shown.page
    page.evaluate("window.kept = document.querySelector('.tm-boxes [data-key=mean]')")
    before = page.evaluate("window.kept.style.transform")
    page.get_by_role("button", name="after rewriting", exact=True).click()
    assert page.evaluate(
        "window.kept.isConnected && window.kept === document.querySelector('.tm-boxes [data-key=mean]')"
    )
    assert page.evaluate("window.kept.style.transform") != before
    assert page.evaluate("getComputedStyle(window.kept).transitionDuration") == "0.4s, 0.2s"
    assert shown.said().startswith("after rewriting: 6 ops; ")
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
        assert b"prefers-color-scheme" not in start
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


# steps of rewriting, values, groups, files ----------------------------------------------------------------------------


def test_a_slider_goes_through_the_rewriting_and_nodes_move(opened: Any) -> None:
    shown = opened(demo_scenes.measured(), reduced_motion="no-preference")
    page = shown.page
    slider = page.get_by_role("slider", name="step of rewriting")
    assert slider.count() == 0  # nothing led to what was captured
    page.get_by_role("button", name="after rewriting", exact=True).click()
    assert (slider.input_value(), slider.get_attribute("max")) == ("2", "2")
    page.evaluate("window.kept = document.querySelector('.tm-boxes [data-key=log]')")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    assert shown.said() == "step 1 of 2: log(1 + x) -> log1p(x) · stable · In[3] line 2 · explog.py:31"
    assert slider.get_attribute("aria-valuetext").startswith("1 of 2: log(1 + x)")
    assert page.evaluate("window.kept.isConnected && window.kept.textContent.startsWith('log1p')")
    assert page.evaluate("window.kept.classList.contains('made')")
    assert "exp" in page.locator('.tm-boxes [data-key="e"]').text_content()
    page.keyboard.press("Home")
    assert shown.said() == "step 0 of 2: as it was written"
    assert "s" in shown.boxes()
    page.locator(".tm-stage").focus()
    page.keyboard.press("]")
    page.keyboard.press("]")
    assert shown.said().startswith("step 2 of 2: log1p(exp(x)) -> softplus(x)")
    assert page.locator('.tm-boxes [data-key="log"]').text_content().startswith("logaddexp")
    page.get_by_text("Rules of this stage, in order (2)").click()
    assert page.locator(".tm-rules li").count() == 3
    page.locator(".tm-rules li button").nth(1).click()
    assert slider.input_value() == "1"
    page.keyboard.press("1")  # on a button of the list: no key of the stage
    page.locator(".tm-stage").focus()
    page.keyboard.press("1")
    assert shown.said() == "as written: 8 ops; nothing is changed yet"
    assert slider.count() == 0


def test_details_tell_values_time_memory_and_the_rules_so_far(opened: Any) -> None:
    shown = opened(demo_scenes.measured(), view="rewritten")
    page = shown.page
    page.locator('.tm-boxes [data-key="log"]').click()
    details = page.locator(".tm-details")
    told = details.inner_text()
    for part in ("12.5 µs in NumPy", "4.55 kB", "min 0, max 1, mean 0.5", "nan or inf\nnone", "One value is missing."):
        assert part in told
    assert "1. log(1 + x) -> log1p(x) (stable, In[3] line 2)" in told
    assert "2. log1p(exp(x)) -> softplus(x) (stable, In[3] line 2)" in told
    arrows = details.locator(".tm-arrow").evaluate_all("(all) => all.map((one) => one.getClientRects().length)")
    assert arrows
    assert set(arrows) == {1}  # no line ends within one
    assert details.get_by_role("img", name="histogram from 0 to 1").locator("rect").count() == 16
    page.locator('.tm-boxes [data-key="X"]').click()
    heat = details.get_by_role("img", name="heat map of 3 by 4 values from 0 to 11, those that are nan crossed out")
    assert heat.locator("rect").count() == 11
    assert heat.locator("path.none").count() == 1
    assert "1 nan" in details.inner_text()


def test_the_pointer_tells_and_marks_the_line(opened: Any) -> None:
    shown = opened(demo_scenes.measured())
    page = shown.page
    page.locator('.tm-boxes [data-key="log"]').hover()
    tip = page.locator(".tm-tip")
    assert "12.5 µs in NumPy" in tip.inner_text()
    assert tip.locator("rect").count() == 16
    assert page.locator(".tm-source li.at").inner_text().startswith("loss = np.mean")
    page.locator(".tm-search, input[type=search]").hover()
    assert tip.is_hidden()
    assert page.locator(".tm-source li.at").count() == 0


def test_boxes_in_boxes_open_and_close_by_keys(opened: Any) -> None:
    shown = opened(demo_scenes.nested())
    page = shown.page
    assert {"loop/v", "loop/test", "loop/cond/then/op", "loop/cond/else/op"} <= set(shown.boxes())
    inner = page.locator(".tm-frames rect[data-group='loop/cond']").bounding_box()
    outer = page.locator(".tm-frames rect[data-group='loop']").bounding_box()
    assert outer["x"] < inner["x"]
    assert outer["x"] + outer["width"] > inner["x"] + inner["width"]
    assert outer["y"] < inner["y"]
    assert outer["y"] + outer["height"] > inner["y"] + inner["height"]
    stage = page.locator(".tm-stage")
    page.locator('.tm-boxes [data-key="loop/cond/then/op"]').click()
    stage.focus()
    page.keyboard.press("Enter")  # closes the branch that it is in, then what is around it
    assert "loop/cond/then/op" not in shown.boxes()
    page.locator('.tm-boxes [data-key="loop/test"]').click()
    page.keyboard.press("Enter")
    assert "loop" in shown.boxes()
    assert "loop/test" not in shown.boxes()
    assert shown.said() == "loop × 3: 4 ops inside, closed"
    page.keyboard.press("/")
    page.keyboard.type("log,")
    page.keyboard.press("Enter")
    assert shown.said().startswith("1 of 1: log, float64[569]")
    assert "loop/cond/else/op" in shown.boxes()


def test_the_outline_nests_as_the_boxes_do(opened: Any) -> None:
    shown = opened(demo_scenes.nested())
    page = shown.page
    page.get_by_text("Outline", exact=True).click()
    loop = page.locator("[role=treeitem][data-key='loop']")
    loop.focus()
    page.keyboard.press("ArrowRight")
    cond = page.locator("[role=treeitem][data-key='loop/cond']")
    cond.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert shown.said() == "group then: 1 op"
    assert loop.get_attribute("aria-expanded") == "true"


def test_nodes_are_grouped_by_choice(opened: Any) -> None:
    shown = opened(demo_scenes.nested())
    choice = shown.page.get_by_role("combobox", name="group the nodes")
    assert choice.locator("option").all_inner_texts() == ["groups: none", "groups: by line", "groups: by function"]
    choice.select_option("function")
    assert "− function wave: 2 ops" in shown.page.locator(".tm-headings text").all_text_contents()
    choice.select_option("none")
    assert "first" in shown.boxes()
    many = opened(demo_scenes.logistic(), view="kernels")
    many.page.get_by_role("combobox", name="group the nodes").select_option("line")
    titles = many.page.locator(".tm-headings text").all_text_contents()
    assert any("line 2" in title for title in titles)
    assert any("gradient" in title for title in titles)


@pytest.mark.parametrize(("kind", "ending"), [("HTML", "html"), ("DOT", "dot"), ("Mermaid", "mmd")])
def test_texts_are_saved(opened: Any, tmp_path: Path, kind: str, ending: str) -> None:
    shown = opened(demo_scenes.nested())
    with shown.page.expect_download() as download:
        shown.page.get_by_role("button", name=f"save as {kind}").click()
    path = tmp_path / "saved.html"
    download.value.save_as(path)
    assert download.value.suggested_filename == f"In_5__captured.{ending}"
    text = path.read_text(encoding="utf-8")
    if kind == "HTML":
        shown.page.goto(path.as_uri())
        assert "loop/test" in shown.boxes()
        assert shown.page.locator(".tm-stage").count() == 1
    else:
        link = " -> " if kind == "DOT" else " --> "
        names = dict(re.findall(r'(n\d+) ?[\[({\\/]+(?:label=)?"([a-z]+)', text))
        links = {(names.get(a), names.get(b)) for a, b in re.findall(rf"(n\d+){link}(n\d+)", text)}
        assert {("x", "sin"), ("sin", "cos")} <= links
        assert text.count("subgraph") == 4
        assert text.startswith('digraph "In[5]" {' if kind == "DOT" else "flowchart TD")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(opened: Any, scheme: str) -> None:
    for scene, view in ((demo_scenes.measured(), "rewritten"), (demo_scenes.nested(), "captured")):
        shown = opened(scene, view=view, color_scheme=scheme, reduced_motion="reduce")
        page = shown.page
        page.locator(".tm-boxes > g").nth(2).click(force=True)
        page.get_by_text("Outline", exact=True).click()
        if view == "rewritten":
            page.locator(".tm-rules summary").click()
        assert violations(page, "html") == []


def test_hostile_names_are_quoted_in_texts(opened: Any) -> None:
    shown = opened(demo_scenes.hostile())
    found: dict[str, str] = {}
    for kind in ("DOT", "Mermaid"):
        with shown.page.expect_download() as download:
            shown.page.get_by_role("button", name=f"save as {kind}").click()
        found[kind] = Path(download.value.path()).read_text(encoding="utf-8")
    for line in found["DOT"].splitlines():
        assert len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) % 2 == 0
    assert not re.search(r"<(?!br>)", found["Mermaid"])
    assert all(line.count('"') in {0, 2} for line in found["Mermaid"].splitlines())


def test_a_large_graph_is_drawn_on_a_canvas_and_used_alike(opened: Any, tmp_path: Path) -> None:
    shown = opened(demo_scenes.random_graph(700, lines=7), reduced_motion="reduce")
    page = shown.page
    canvas = page.locator(".tm-canvas")
    assert canvas.is_hidden()
    page.get_by_role("button", name="open or close all groups").click()
    assert canvas.is_visible()
    assert page.locator(".tm-picture").is_hidden()
    painted = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
        const canvas = document.querySelector('.tm-canvas');
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        done(data.filter((value, k) => k % 4 === 3 && value).length);
    })))"""
    assert page.evaluate(painted) > 10_000
    stage = page.locator(".tm-stage")
    stage.focus()
    page.keyboard.press("ArrowDown")
    key = page.evaluate("""() => { const said = document.querySelector('.tm-live').textContent; return said; }""")
    assert re.match(r"a\d, float64", key)
    page.keyboard.press("/")
    page.keyboard.type("matmul")
    page.keyboard.press("Enter")
    assert shown.said().startswith("1 of ")
    found = page.locator(".tm-details .tm-title").inner_text()
    assert found == "matmul"
    box = stage.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)  # what was found is in the middle
    assert shown.said().startswith("matmul, ")
    with page.expect_download() as download:
        page.get_by_role("button", name="save as SVG").click()
    assert Path(download.value.path()).read_text(encoding="utf-8").count('class="box') == 700 + 8 + 1
    page.get_by_role("button", name="open or close all groups").click()
    assert canvas.is_hidden()
    assert page.locator(".tm-boxes > g").count() < 30
