"""Backpropagation in a browser: stepped by buttons and keys, moved by sliders; in JupyterLab exact values follow."""

from __future__ import annotations

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
SETUP = (
    "%load_ext tensormagic\nimport numpy as np, ipywidgets, tensormagic as tm\nx, w, b, target = 0.5, 1.5, 0.1, 1.0\n"
    "M, v = np.array([[0.4, -0.6], [0.3, 0.9]]), np.array([1.0, 2.0])"
)
CELLS = [
    SETUP,
    "%%tensor --show backprop\nz = x * w + b\na = 1 / (1 + np.exp(-z))\nloss = (a - target) ** 2\nloss",
    "def layer(scale):\n    h = np.tanh(M @ (v * scale))\n    return h @ h\nshown = tm.backprop(layer, 0.5)\nshown",
]
COUNT = "len([w for w in ipywidgets.widgets.widget._instances.values() if type(w).__name__ == 'BackpropView'])"


def ended(view: Any) -> Any:
    """A view at its last step: it begins at the first."""
    assert view.step == 0
    view.step = view.steps
    return view


def numbers(page: Page, part: str) -> list[str]:
    """The texts of one line of every node, from top to bottom of the program."""
    found = page.eval_on_selector_all(
        ".node",
        "(all, part) => all.map((one) => [+one.dataset.n, one.querySelector(`[data-p=${part}]`)?.textContent])",
        part,
    )
    return [text for _, text in sorted(found)]


def step(page: Page, count: int) -> str:
    """Step on by the key, and what is said then."""
    for _ in range(count):
        page.keyboard.press("ArrowRight")
    return page.locator(".tm-status").inner_text()


def test_keys_step_through_both_passes(opened: Any) -> None:
    page = opened(ended(tm.backprop(lambda x, w: np.sin(x * w) * x, 2.0, 0.5)))
    assert numbers(page, "value") == ["2", "0.5", "1", "0.84147", "1.6829"]
    assert numbers(page, "adjoint") == ["1.3818", "2.1612", "1.0806", "2", "1"]
    stage = page.get_by_role("application")
    stage.focus()
    assert stage.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    page.keyboard.press("Home")
    assert numbers(page, "value") == ["2", "0.5", "", "", ""]
    assert numbers(page, "adjoint") == [""] * 5
    assert step(page, 1) == "forward: x × w is 1"
    assert step(page, 2) == "forward: value = sin(x × w) × x is 1.6829"
    assert step(page, 1) == "backward begins: the adjoint of value = sin(x × w) × x is 1"
    assert step(page, 1) == "backward: sin(x × w) gets 1 × 2 = 2; its adjoint is 2"
    assert step(page, 1) == "backward: x gets 1 × 0.84147 = 0.84147; its adjoint so far: from 1 of 2 arrows"
    assert numbers(page, "sum")[0] == "= 0.8415 + …"
    assert numbers(page, "adjoint")[0] == "…"
    assert step(page, 2) == "backward: x gets 1.0806 × 0.5 = 0.5403; its adjoint is 1.3818"
    assert numbers(page, "sum")[0] == "= 0.8415 + 0.5403"
    assert page.locator(".card.tm-now").count() == 1
    assert page.locator(".way.tm-back").count() == 2
    assert violations(page, ".tm-backprop") == []
    page.keyboard.press("ArrowLeft")
    assert numbers(page, "adjoint")[0] == "…"
    page.keyboard.press("End")
    assert page.locator(".tm-status").inner_text() == (
        "Both passes are done, forward and backward. The gradient, with respect to x: 1.3818, w: 2.1612"
    )


def test_a_node_tells_its_numbers_its_line_and_what_it_got_through_which_node(opened: Any) -> None:
    page = opened(
        ended(
            tm.backprop(lambda A, v: np.sum((A @ v) ** 2), np.array([[1.0, 2.0], [-3.0, 4.0]]), np.array([1.0, -1.0]))
        )
    )
    page.get_by_role("application").focus()
    for _ in range(9):
        page.keyboard.press("ArrowUp")
    assert page.locator(".tm-details .tm-heading").inner_text() == "A"
    assert page.locator(".tm-heat td").all_inner_texts()[:4] == ["1", "2", "-3", "4"]
    details = page.locator(".tm-details").inner_text()
    assert "outer(adjoint, v)" in details
    assert violations(page, ".tm-backprop") == []
    page.locator(".tm-details li button").click()
    assert page.locator(".tm-details .tm-heading").inner_text() == "A @ v"
    assert page.locator(".tm-source li.on").inner_text().startswith("test_backprop.py line")
    page.keyboard.press("Escape")
    page.locator(".node").last.click()
    assert page.locator(".node.tm-chosen").count() == 1


def test_without_a_kernel_one_slider_moves_at_a_time(opened: Any) -> None:
    page = opened(ended(tm.backprop(lambda x, w: x**2 * w, 2.0, 0.5, x=(0, 4), w=(0, 1))), color_scheme="dark")
    first, second = page.get_by_role("slider", name="x"), page.get_by_role("slider", name="w")
    first.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.tm-number').textContent === '2.4'")
    assert (
        page.locator(".tm-title").inner_text() == "backprop of value ≈ 2.88"
    )  # on the grid, however many points it has
    assert numbers(page, "adjoint") == ["2.4", "0.5", "5.76", "1"]
    second.focus()
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelectorAll('.tm-number')[1].textContent === '1'")
    assert numbers(page, "value") == ["2", "4", "1", "4"]
    assert numbers(page, "adjoint") == ["4", "1", "4", "1"]


def test_hostile_names_are_text(opened: Any) -> None:
    names = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(2)>", "n" * 100_000, "\u202egnp.exe", "🦊"]

    def total(p: dict[str, float]) -> Any:
        return sum(v * v for v in p.values())

    page = opened(tm.backprop(total, dict.fromkeys(names, 1.0)))
    shown = page.locator(".node text.heading").all_text_contents()
    assert "p['<script>alert(1)</sc…" in shown
    assert any("🦊" in text for text in shown)
    assert page.locator("img, script:not([type])").count() == 0


def test_in_jupyterlab_values_and_adjoints_follow_the_slider(
    notebook: Callable[[str, Path | list[str]], OpenNotebook],
) -> None:
    opened = notebook("backprop", CELLS)
    outputs = opened.run_all()
    assert {"image/svg+xml", "text/plain"} <= set(outputs[0]["data"])
    page = opened.page
    page.locator(".tm-backprop").nth(1).wait_for()
    view = page.locator(".tm-backprop").first
    view.scroll_into_view_if_needed()
    cells = page.locator(".jp-Cell").count()
    view.locator(".tm-stage").focus()
    page.keyboard.press("Home")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    assert view.locator(".tm-status").inner_text().startswith("backward: a − target gets")
    page.keyboard.press("End")
    slider = view.get_by_role("slider", name="w", exact=True)
    box = slider.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2, steps=8)
    page.mouse.up()
    moved = """() => {
        const view = document.querySelector('.tm-backprop');
        return view.dataset.exact === 'true' && view.querySelectorAll('.tm-number')[1].textContent !== '1.5';
    }"""
    page.wait_for_timeout(200)  # the last move is drawn and sent in the next frame
    page.wait_for_function(moved)
    w = float(view.locator(".tm-row .tm-number").nth(1).inner_text())
    assert w > 2
    a = 1 / (1 + np.exp(-(0.5 * w + 0.1)))
    gradient = 2 * (a - 1) * a * (1 - a) * 0.5
    told = view.locator(".node.input", has_text="w").locator("[data-p=adjoint]").text_content().replace("−", "-")
    assert float(told) == pytest.approx(gradient, rel=1e-4)
    assert page.locator(".jp-Cell").count() == cells
    page.evaluate(ASK, "shown.point = [1.0]; shown.step = 4")
    page.wait_for_function(
        "() => document.querySelectorAll('.tm-backprop')[1].querySelector('.tm-number').textContent === '1'"
    )
    reply = page.evaluate(ASK, "assert shown.step == 4 and shown.adjoints['scale'] != 0")
    assert reply["content"]["status"] == "ok", reply["content"]
    page.evaluate(ASK, "M = np.eye(2)")  # the view reads it
    title = f"backprop of layer = {np.sum(np.tanh([1.0, 2.0]) ** 2):.4f}"
    page.wait_for_function("(title) => document.querySelectorAll('.tm-title')[1].textContent === title", arg=title)
    opened.run_all()
    reply = page.evaluate(ASK, f"assert {COUNT} == 2, {COUNT}")
    assert reply["content"]["status"] == "ok", reply["content"]
    assert opened.console_errors == []
    assert opened.offsite_requests == []
