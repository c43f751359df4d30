"""Live views in a browser: without a kernel the sweep drives them, in JupyterLab exact values follow."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

import tensormagic as tm
from tests.browser.axe import violations
from tests.browser.lab import OpenNotebook

ASK = "(code) => jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.requestExecute({code}).done"
CELLS = [
    "%load_ext tensormagic\nimport numpy as np, ipywidgets, tensormagic as tm\nscale = 2.0",
    "%%tensor --live a=0:10\nloss = np.sin(a) * scale",
    "bowl = tm.live(lambda u, v: u**2 + u * v + v**2, u=(-1, 1), v=(-1, 1))\nbowl",
    "knob = ipywidgets.FloatSlider(min=-1, max=1, step=0.25)\nlink = ipywidgets.jslink((knob, 'value'), (bowl, 'u'))",
    "ipywidgets.VBox([knob])",
]
COUNT = "[w for w in ipywidgets.widgets.widget._instances.values() if type(w).__name__ == 'LiveView']"


def read(page: Page, scope: str = "") -> tuple[str, list[float]]:
    """What the view says: its sign of exactness, then the value and the slopes."""
    words = page.locator(f"{scope} .tm-readout").inner_text().replace("\N{MINUS SIGN}", "-")
    return ("=" if " = " in words else "≈"), [float(part.split()[-1]) for part in words.split(" · ")]


def drawn(page: Page) -> None:
    """Wait until what was done last has been drawn."""
    page.evaluate("() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))")


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
    assert slider.get_attribute("aria-valuetext").startswith("5.15, value ≈ -4.6")
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('.tm-number').textContent === '10'")
    assert read(page)[1][0] == pytest.approx(np.sin(10) * 10, rel=1e-5)


def test_the_dot_lies_on_the_curve_and_the_tangent_goes_through_it(opened: Any) -> None:
    page = opened(tm.live(lambda a: a**2, a=(0, 10)))
    box = page.locator(".tm-curve").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 100, steps=5)
    page.mouse.up()
    drawn(page)
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
    page.mouse.move(box["x"] + 106, box["y"] - 69, steps=4)
    page.mouse.up()
    drawn(page)
    page.wait_for_function("() => document.querySelector('.tm-number').textContent !== '0'")
    u, v = (float(text) for text in page.locator(".tm-number").all_inner_texts())
    assert u > 0.2
    assert v > 0.2
    expected = pytest.approx([u**2 + v**2, 2 * u, 2 * v], abs=2e-3)
    for _ in range(40):  # what is drawn last may come after the number that is dragged
        if read(page)[1] == expected:
            break
        page.wait_for_timeout(50)
    assert read(page)[1] == expected
    page.locator(".tm-plane").focus()
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


FORM = np.array([[1.0, 0.5, 0.0], [0.5, 2.0, 0.25], [0.0, 0.25, 3.0]])


def form(w: Any) -> Any:
    return w @ FORM @ w


def told(page: Page, k: int) -> tuple[float, float]:
    """What a screen reader hears of one number of a vector: where it is, and the slope along it."""
    words = page.locator(".tm-knob").nth(k).get_attribute("aria-valuetext").replace("\N{MINUS SIGN}", "-")
    value, _, slope = words.partition(", slope ")
    return float(value), float(slope)


def test_columns_are_dragged_and_moved_by_keys(opened: Any) -> None:
    page = opened(tm.live(form, w=(-np.ones(3), np.ones(3))))
    box = page.locator(".tm-knob").nth(1).bounding_box()
    page.mouse.move(box["x"] + 30, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 30, box["y"] + box["height"] / 4, steps=4)
    page.mouse.up()
    drawn(page)
    page.wait_for_function("() => document.querySelectorAll('.tm-knob')[1].ariaValueNow !== '0'")
    assert told(page, 1)[0] == pytest.approx(0.5, abs=0.02)
    page.keyboard.press("ArrowRight")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    page.keyboard.press("PageUp")
    page.wait_for_function("() => document.querySelectorAll('.tm-knob')[0].ariaValueNow === '0.1'")
    w = np.array([told(page, k)[0] for k in range(3)])
    assert w[[0, 2]].tolist() == [0.1, -0.03]
    # of a function of degree two the sweep tells value and gradient, wherever one goes
    assert read(page) == ("≈", pytest.approx([form(w)], rel=1e-5))
    assert [told(page, k)[1] for k in range(3)] == pytest.approx((2 * FORM @ w).tolist(), rel=1e-5)
    handle = page.locator(".handle").nth(1).evaluate("one => one.getBBox().y")
    track = page.locator(".track").nth(1).evaluate("one => [one.getBBox().y, one.getBBox().height]")
    assert handle == pytest.approx(track[0] + track[1] * (1 - w[1]) / 2, abs=0.1)
    assert page.locator(".bar").nth(1).evaluate("one => one.getBBox().height") > 1


def test_cells_of_a_matrix_are_chosen_and_moved(opened: Any) -> None:
    page = opened(tm.live(lambda W: np.sum(W**2), W=(-np.ones((2, 3)), np.ones((2, 3)))), color_scheme="dark")
    page.locator(".tm-knob").nth(0).focus()
    for key in ("ArrowRight", "ArrowDown", "-", "-", "ArrowLeft", "PageUp"):
        page.keyboard.press(key)
    page.wait_for_function("() => document.querySelectorAll('.tm-knob')[3].ariaValueNow === '0.1'")
    assert [told(page, k)[0] for k in range(6)] == [0, 0, 0, 0.1, -0.02, 0]
    assert read(page)[1] == pytest.approx([0.1**2 + 0.02**2])
    assert page.locator(".tm-cells .minus").count() == 2  # the number and the slope along it
    box = page.locator(".tm-knob").nth(2).bounding_box()
    page.mouse.move(box["x"] + 10, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 10, box["y"] - 50, steps=3)
    page.mouse.up()
    drawn(page)
    page.wait_for_function("() => document.querySelectorAll('.tm-knob')[2].ariaValueNow === '1'")


def test_a_line_follows_and_keys_choose_its_elements(opened: Any) -> None:
    x = np.linspace(0, 3, 30)
    page = opened(tm.live(lambda a: np.sin(a * x), a=(0, 2)))
    page.locator(".tm-elements").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.get_by_role("slider", name="a").press("PageUp")
    page.wait_for_function("() => document.querySelector('.tm-number').textContent !== '1'")
    a = float(page.locator(".tm-number").inner_text())
    assert page.locator(".tm-readout").inner_text().startswith("value[10] at the dot ≈ ")
    assert read(page)[1] == pytest.approx([np.sin(a * x[10]), x[10] * np.cos(a * x[10])], abs=0.02)
    assert page.locator(".ghost").is_visible()


def test_a_heat_map_follows_and_a_click_chooses_an_element(opened: Any) -> None:
    made = np.outer(np.arange(-2.0, 3), np.arange(4.0))
    page = opened(tm.live(lambda a: a * made, a=(0, 1)))
    box = page.locator(".tm-heat .chosen").first.bounding_box()
    page.mouse.click(box["x"] + 2.5 * box["width"], box["y"] + 4.5 * box["height"])
    page.wait_for_function("() => document.querySelector('.tm-readout').textContent.startsWith('value[4, 2]')")
    assert read(page) == ("=", [2.0, 4.0])
    page.get_by_role("slider", name="a").press("End")
    page.wait_for_function("() => document.querySelector('.tm-readout').textContent.includes('≈ 4 ')")
    # what is positive fills its square, what is negative a smaller one, in another colour
    painted = """([row, column]) => {
        const map = document.querySelector('.tm-elements canvas'), paint = map.getContext('2d'), side = map.height / 5;
        const at = (x, y) => Array.from(paint.getImageData(side * (column + x), side * (row + y), 1, 1).data);
        return [at(0.5, 0.5), at(0.05, 0.05)];
    }"""
    middle, corner = page.evaluate(painted, [4, 3])
    assert middle == corner
    assert middle[3] > 200
    middle, corner = page.evaluate(painted, [0, 3])
    assert middle[3] > 200
    assert middle[0] > middle[2]
    assert corner[3] == 0
    assert page.evaluate(painted, [2, 3])[0][3] == 0
    light, _ = page.evaluate(painted, [4, 3])
    page.emulate_media(color_scheme="dark")
    drawn(page)
    assert page.evaluate(painted, [4, 3])[0] != light


def test_descend_walks_down_and_reset_goes_back(opened: Any) -> None:
    page = opened(tm.live(lambda u, v: (u - 0.5) ** 2 + 2 * v**2, u=(-1, 1), v=(-1, 1)), reduced_motion="reduce")
    page.locator(".tm-plane").focus()
    for _ in range(30):
        page.keyboard.press("Shift+ArrowUp")
    page.get_by_role("spinbutton", name="rate of the descent").fill("0.2")
    page.get_by_role("button", name="go down along the gradient").click()
    page.wait_for_function("() => Math.abs(document.querySelector('.tm-number').textContent - 0.5) < 0.01")
    u, v = (float(text.replace("\N{MINUS SIGN}", "-")) for text in page.locator(".tm-number").all_inner_texts())
    assert (u, v) == pytest.approx((0.5, 0), abs=0.01)
    assert page.locator(".trail").first.get_attribute("d").count("L") > 10
    strip = page.locator(".tm-history")
    assert re.search(r"the value so far.*descent: \d+ steps, from left to right", strip.text_content())
    assert float(strip.locator("text.last").nth(1).text_content()) == pytest.approx(
        2.25, rel=0.02
    )  # where it began, and nothing before
    page.locator(".tm-plane").focus()
    for count in (2, 3, 4):  # one after the other: a busy page draws several moves at once
        page.keyboard.press("ArrowUp")
        page.wait_for_function(
            "(count) => document.querySelector('.tm-history').textContent.includes(`${count} values so far`)", arg=count
        )
    page.get_by_role("button", name="go back to where the view began").click()
    page.wait_for_function("() => document.querySelector('.tm-number').textContent === '0'")
    assert page.locator(".trail").first.get_attribute("d") == ""


def test_every_frame_of_a_drag_has_a_picture(opened: Any) -> None:
    page = opened(tm.live(form, w=(-np.ones(3), np.ones(3))))
    frames = """async () => {
        const view = document.querySelector('.tm-sweep'), knob = document.querySelector('.tm-knob'), box = knob.getBoundingClientRect();
        Element.prototype.setPointerCapture = () => {};
        const send = (type, share) => knob.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1, button: 0,
            clientX: box.left + 9, clientY: box.top + box.height * share }));
        await new Promise(requestAnimationFrame);
        const texts = new Set(), before = Number(view.dataset.drawn);
        send('pointerdown', 0.2);
        for (let k = 1; k <= 40; k += 1) {
            await new Promise(requestAnimationFrame);
            texts.add(document.querySelector('.tm-readout').textContent);
            for (let j = 0; j < 3; j += 1) send('pointermove', 0.2 + (3 * k + j) / 250);
        }
        return [Number(view.dataset.drawn) - before, texts.size];
    }"""
    pictures, values = page.evaluate(frames)
    assert 39 <= pictures <= 41
    assert values >= 35


def test_hostile_names_are_text_in_the_page(opened: Any) -> None:
    name = "<script>window.bad = 1</script>&\"'\u202eא🙂" + "x" * 10**5
    view = tm.live(form, w=(-np.ones(3), np.ones(3)))
    view._name = name
    view._scene = view._moving()
    view._picture = view._swept(view.point)["_picture"]
    page = opened(view)
    assert page.locator(".tm-readout").inner_text().startswith("<script>window.bad = 1</script>&\"'")
    assert page.evaluate("() => [window.bad, document.querySelectorAll('.tm-sweep script').length]") == [None, 0]
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize(
    ("function", "ranges"),
    [
        (lambda u, v: u * v, {"u": (-1, 1), "v": (-1, 1)}),
        (lambda w, c=1.0: c * form(w), {"w": (-np.ones(3), np.ones(3)), "c": (0, 2)}),
        (lambda W: np.sum(W**3), {"W": (-np.ones((2, 3)), np.ones((2, 3)), 0.25)}),
        (lambda a: a * np.arange(5.0), {"a": (0, 1)}),
        (lambda a: a * FORM, {"a": (0, 1)}),
    ],
    ids=["contours", "columns", "cells", "line", "heat map"],
)
def test_axe_finds_nothing_in_light_and_in_dark(opened: Any, function: Any, ranges: Any) -> None:
    page = opened(tm.live(function, **ranges))
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(50)
        assert violations(page, ".tm-sweep") == []


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


VECTOR = [
    "%load_ext tensormagic\nimport numpy as np, tensormagic as tm\nA = np.diag([1.0, 2.0, 3.0])",
    "def cost(w):\n    if w[0] > 0.9:\n        raise ArithmeticError('too large')\n    return w @ A @ w",
    "view = tm.live(cost, w=(-np.ones(3), np.ones(3)))\nview",
]
WAIT = "import time; end = time.time() + 20\nwhile not ({}) and time.time() < end: time.sleep(0.05)\nassert {}"


def test_in_jupyterlab_errors_pass_lines_are_renewed_and_descents_are_exact(
    notebook: Callable[[str, Path | list[str]], OpenNotebook],
) -> None:
    opened = notebook("vector", VECTOR)
    opened.run_all()
    page = opened.page
    status = "(text) => document.querySelector('.tm-sweep .tm-status').textContent === text"

    def ask(code: str) -> None:
        reply = page.evaluate(ASK, code)
        assert reply["content"]["status"] == "ok", reply["content"]

    page.locator(".tm-knob").nth(0).focus()
    for _ in range(10):
        page.keyboard.press("PageUp")
    page.wait_for_function(status, arg="ArithmeticError: too large")
    assert read(page)[1] == [pytest.approx(np.nan, nan_ok=True)]
    for _ in range(2):
        page.keyboard.press("PageDown")
    page.wait_for_function(status, arg="")
    page.wait_for_function("() => document.querySelector('.tm-sweep').dataset.exact === 'true'")
    assert read(page) == ("=", [pytest.approx(0.64)])
    ask(WAIT.format(*["view._shown.centre == view.point"] * 2))
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "w[1]"
    page.get_by_role("spinbutton", name="rate of the descent").fill("0.015")
    page.get_by_role("button", name="go down along the gradient").click()
    ask(WAIT.format(*["view.w[0] < 0.7 and len(view.history['value']) > 40"] * 2))
    page.wait_for_function("() => document.querySelector('.tm-sweep').dataset.exact === 'true'")
    ask("assert view._problem == '' and view.value == cost(np.array(view.w))")
    ask(WAIT.format(*["view._shown.centre == view.point"] * 2))
    assert page.get_by_role("spinbutton", name="rate of the descent").input_value() == "0.015"
    ask("A = np.eye(3)")
    page.wait_for_function("() => document.querySelector('.tm-history').classList.contains('tm-none')")
    ask("assert view.value == np.sum(np.array(view.w) ** 2)")
    assert opened.console_errors == []
    assert opened.offsite_requests == []
