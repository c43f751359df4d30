"""Live views in a browser: without a kernel the sweep drives them, in JupyterLab exact values follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page

import tensormagic as tm
from tests.browser.lab import OpenNotebook

pytestmark = pytest.mark.browser

ASK = "(code) => jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.requestExecute({code}).done"
CELLS = [
    "%load_ext tensormagic\nimport numpy as np, ipywidgets, tensormagic as tm\nscale = 2.0",
    "%%tensor --live a=0:10\nloss = np.sin(a) * scale",
    "bowl = tm.live(lambda u, v: u**2 + u * v + v**2, u=(-1, 1), v=(-1, 1))\nbowl",
    "knob = ipywidgets.FloatSlider(min=-1, max=1, step=0.25)\nlink = ipywidgets.jslink((knob, 'value'), (bowl, 'u'))",
    "ipywidgets.VBox([knob])",
]
COUNT = "[w for w in ipywidgets.widgets.widget._instances.values() if type(w).__name__ == 'LiveView']"


@pytest.fixture
def opened(browser: BrowserContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Open the page of a view; at the end nothing may have gone wrong."""
    monkeypatch.setattr(tm.config, "tier", "numpy")
    pages: list[Page] = []
    wrong: list[str] = []

    def open_view(view: Any, **media: Any) -> Page:
        path = tmp_path / f"view{len(pages)}.html"
        path.write_text(view.page(), encoding="utf-8")
        view.close()
        page = browser.new_page()
        pages.append(page)
        page.emulate_media(**media)
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith("file:") else None)
        page.goto(path.as_uri())
        return page

    yield open_view
    for page in pages:
        page.close()
    assert wrong == []


def read(page: Page, scope: str = "") -> tuple[str, list[float]]:
    """What the view says: its sign of exactness, then the value and the slopes."""
    words = page.locator(f"{scope} .tm-readout").inner_text().replace("\N{MINUS SIGN}", "-")
    return ("=" if " = " in words else "≈"), [float(part.split()[-1]) for part in words.split(" · ")]


def test_keys_move_the_slider_and_the_sweep_answers(opened: Any) -> None:
    page = opened(tm.live(lambda a: np.sin(a) * a, a=(0, 10)))
    slider = page.get_by_role("slider", name="a")
    assert read(page) == ("=", pytest.approx([np.sin(5) * 5, np.sin(5) + 5 * np.cos(5)], rel=1e-5))
    slider.focus()
    assert slider.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    a = 5.15
    page.wait_for_function("() => document.querySelector('.tm-number').textContent === '5.15'")
    sign, (value, slope) = read(page)
    assert sign == "≈"
    assert value == pytest.approx(np.sin(a) * a, abs=1e-5)
    assert slope == pytest.approx(np.sin(a) + a * np.cos(a), abs=0.01)
    assert slider.get_attribute("aria-valuetext").startswith("5.15, value ≈ −4.6")
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('.tm-number').textContent === '10'")
    assert read(page)[1][0] == pytest.approx(np.sin(10) * 10, rel=1e-5)


def test_the_dot_lies_on_the_curve_and_the_tangent_goes_through_it(opened: Any) -> None:
    page = opened(tm.live(lambda a: a**2, a=(0, 10)))
    box = page.locator(".tm-picture").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 100, steps=5)
    page.mouse.up()
    page.wait_for_function("() => document.querySelector('.tm-number').textContent !== '5'")
    distance = """() => {
        const dot = document.querySelector('.dot'), x = +dot.getAttribute('cx'), y = +dot.getAttribute('cy');
        const far = (path) => Math.min(...Array.from({ length: 4001 }, (_, k) => path.getPointAtLength(path.getTotalLength() * k / 4000))
            .map((p) => Math.hypot(p.x - x, p.y - y)));
        return ['.curve', '.tangent'].map((one) => far(document.querySelector(one)));
    }"""
    assert max(page.evaluate(distance)) < 0.5
    a = float(page.locator(".tm-number").inner_text())
    assert read(page)[1] == pytest.approx([a**2, 2 * a], abs=1e-3)


def test_a_point_is_dragged_over_contours_and_moved_by_keys(opened: Any) -> None:
    page = opened(tm.live(lambda w: np.sum(w**2), w=(-np.ones(2), np.ones(2))))
    box = page.locator(".dot").bounding_box()
    page.mouse.move(box["x"] + 6, box["y"] + 6)
    page.mouse.down()
    page.mouse.move(box["x"] + 86, box["y"] - 54, steps=4)
    page.mouse.up()
    page.wait_for_function("() => document.querySelector('.tm-number').textContent !== '0'")
    u, v = (float(text) for text in page.locator(".tm-number").all_inner_texts())
    assert u > 0.2
    assert v > 0.2
    assert read(page)[1] == pytest.approx([u**2 + v**2, 2 * u, 2 * v], abs=2e-3)
    page.locator(".tm-stage").focus()
    page.keyboard.press("ArrowUp")
    page.wait_for_function("(v) => document.querySelectorAll('.tm-number')[1].textContent > v", arg=str(v))
    assert float(page.locator(".tm-number").nth(1).inner_text()) == pytest.approx(v + 0.01)


def test_slopes_of_three_numbers_are_bars(opened: Any) -> None:
    page = opened(tm.live(lambda a, b, c: a + 2 * b - 3 * c, a=(0, 1), b=(0, 1), c=(0, 1)), color_scheme="dark")
    assert page.locator(".bar").count() == 3
    widths = page.eval_on_selector_all(".bar", "all => all.map((one) => +one.getAttribute('width'))")
    assert widths == [120, 120, 120]
    left = page.eval_on_selector_all(".bar", "all => all.map((one) => +one.getAttribute('x'))")
    assert left == [250, 250, 130]


def test_a_pole_is_a_gap_and_names_are_text(opened: Any) -> None:
    page = opened(tm.live(lambda a: np.log(a), a=(-1, 1)))
    page.get_by_role("slider").press("Home")
    page.wait_for_function("() => document.querySelector('.tm-readout').textContent.includes('nan')")
    assert not page.locator(".dot").is_visible()


def test_in_jupyterlab_the_exact_value_follows(notebook: Callable[[str, Path | list[str]], OpenNotebook]) -> None:
    opened = notebook("live", CELLS)
    outputs = opened.run_all()
    assert {"image/svg+xml", "text/plain"} <= set(outputs[0]["data"])
    page = opened.page
    page.locator(".tm-sweep").nth(1).wait_for()
    slider = page.get_by_role("slider", name="a", exact=True)
    slider.focus()
    cells = page.locator(".jp-Cell").count()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    first = ".tm-sweep >> nth=0 >>"
    exact = """([k, text]) => {
        const view = document.querySelectorAll('.tm-sweep')[k];
        return view.dataset.exact === 'true' && view.querySelector('.tm-number').textContent === text;
    }"""
    page.wait_for_function(exact, arg=[0, "5.2"])
    assert read(page, first) == ("=", pytest.approx([2 * np.sin(5.2), 2 * np.cos(5.2)], rel=1e-5))
    assert page.locator(".jp-Cell").count() == cells
    reply = page.evaluate(ASK, "scale = 3.0")
    assert reply["content"]["status"] == "ok"
    page.wait_for_function("() => document.querySelector('.tm-readout').textContent.includes('2.65')")
    assert read(page, first)[1] == pytest.approx([3 * np.sin(5.2), 3 * np.cos(5.2)], rel=1e-5)
    page.get_by_role("button", name="set a in the notebook").click()
    code = "import time; end = time.time() + 20\nwhile 'a' not in globals() and time.time() < end: time.sleep(0.05)\nassert a == 5.2"
    reply = page.evaluate(ASK, code)
    assert reply["content"]["status"] == "ok", reply["content"]
    page.evaluate(ASK, "bowl.u, bowl.v = 0.5, -0.25")
    page.wait_for_function(exact, arg=[1, "0.5"])
    for theme in ("light", "dark"):
        opened.use_theme(theme)
        page.locator(".tm-sweep").first.scroll_into_view_if_needed()
        page.wait_for_timeout(400)
        opened.screenshot(f"live-{theme}")
    handle = page.locator(".noUi-handle")
    handle.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(exact, arg=[1, "0.75"])
    assert page.evaluate(ASK, "assert bowl.u == 0.75 and bowl.value == 0.4375")["content"]["status"] == "ok"
    opened.run_all()
    page.wait_for_function(exact, arg=[1, "0"])
    reply = page.evaluate(ASK, f"assert len({COUNT}) == 2")
    assert reply["content"]["status"] == "ok", reply["content"]
    page.evaluate(ASK, "bowl.close()")
    page.wait_for_function("() => document.querySelectorAll('.tm-sweep').length === 1")
    assert opened.console_errors == []
    assert opened.offsite_requests == []
