"""All views in one notebook, in both front ends, light and dark: accessible, dragged, searched, used by keyboard alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.acts import FOCUSABLE, drag, look, search, work_by_keys
from tests.browser.axe import violations
from tests.browser.conftest import BOTH
from tests.browser.lab import OpenNotebook
from tests.browser.views import LIVE, VIEWS

USUAL = {"width": 1280, "height": 900}
ALL = {"width": 1280, "height": 9000}  # what lies outside of the window is neither drawn nor judged
FITS = "() => jupyterapp.shell.currentWidget.node.getBoundingClientRect().bottom <= innerHeight"
TO_TOP = """() => document.querySelectorAll('.jp-WindowedPanel-outer, .jp-Cell-outputArea').forEach((one) => one.scrollTo(0, 0))"""
# every element that can have the focus, by a number; and those that look as if they could be clicked, and no focus leads to
MARK = """([scope, focusable]) => {
    const seen = (one) => one.checkVisibility({ checkVisibilityCSS: true }) && !one.disabled;
    const roots = [...document.querySelectorAll(scope)];
    const all = roots.flatMap((root) => [...root.querySelectorAll(focusable)]).filter((one) => seen(one) && one.tabIndex >= 0);
    all.forEach((one, k) => { one.dataset.focus = k; });
    const mouse = roots.flatMap((root) => [...root.querySelectorAll('*')]).filter((one) => seen(one)
        && getComputedStyle(one).cursor === 'pointer' && !one.closest('[data-focus], label') && !one.querySelector('[data-focus]'));
    return [all.length, mouse.map((one) => one.outerHTML.slice(0, 120))];
}"""

# in high contrast, the shapes and the words that are drawn in the colour of the ground: nobody sees them. Grounds are, and what is
# only there to be dragged
UNSEEN = """() => {
    const probe = document.body.appendChild(document.createElement('div'));
    probe.style.backgroundColor = 'Canvas';
    const ground = getComputedStyle(probe).backgroundColor;
    probe.remove();
    const pale = (colour) => colour === 'none' || colour === ground || /^rgba.*, 0\\)$/.test(colour);
    const drawn = [...document.querySelectorAll('.jp-OutputArea-output svg :is(path, rect, circle, line, text)')].filter((one) =>
        one.checkVisibility({ checkVisibilityCSS: true }) && !one.closest('defs, clipPath') && one.getBoundingClientRect().width > 0);
    const found = drawn.filter((one) => {
        const { fill, stroke, strokeWidth } = getComputedStyle(one);
        return pale(fill) && (one.tagName === 'text' || pale(stroke) || parseFloat(strokeWidth) === 0)
            && !one.matches('.ground, .warn-ground, .halo, .tm-knob');
    });
    return [drawn.length, [...new Set(found.map((one) => `${one.closest('svg').getAttribute('class')}: ${one.outerHTML.slice(0, 120)}`))]];
}"""


def open_views(notebook: Callable[[str, Path | list[str]], OpenNotebook]) -> OpenNotebook:
    opened = notebook("views", VIEWS)
    opened.page.set_viewport_size(ALL)
    errors = [output for output in opened.run_all() if output["output_type"] == "error"]
    assert [error["ename"] for error in errors] == ["ShapeError"], errors
    for header in opened.page.locator(".tm-graph .tm-header").all():
        assert header.get_attribute("aria-expanded") == "true"  # these cells ask for it: `--show graph`
    opened.page.locator(".tm-boxes > g").first.wait_for()
    opened.page.locator(".tm-sweep").nth(LIVE - 1).wait_for()
    return opened


def reached(page: Page, count: int) -> set[str]:
    """What the tabulator key comes to, from the first element on."""
    page.evaluate("() => document.querySelector('[data-focus=\"0\"]').focus()")
    found: set[str] = set()
    for _ in range(2 * count):
        found.add(page.evaluate("() => document.activeElement.dataset.focus ?? ''"))
        if len(found - {""}) == count:
            break
        page.keyboard.press("Tab")
    return found - {""}


@pytest.mark.parametrize("notebook", BOTH, indirect=True)
def test_every_view(request: pytest.FixtureRequest, notebook) -> None:
    opened = open_views(notebook)
    page = opened.page
    assert page.evaluate("() => window.hacked") is None
    assert page.locator(".jp-OutputArea-output script").count() == 0
    assert "<script>" in page.locator(".tm-graph .tm-header").last.inner_text()
    assert max(len(text) for text in page.locator(".jp-OutputArea-output").all_inner_texts()) < 20_000
    count, mouse_only = page.evaluate(MARK, [".jp-OutputArea-output", FOCUSABLE])
    assert count > 20
    assert mouse_only == []
    assert len(reached(page, count)) == count
    cells = page.locator(".jp-Cell").count()
    for theme in ("light", "dark"):
        opened.use_theme(theme)
        page.set_viewport_size(ALL)
        page.evaluate(TO_TOP)
        page.wait_for_timeout(300)
        assert violations(page) == []
        look(page, dark=theme == "dark")
        page.set_viewport_size(USUAL)
        page.wait_for_function(FITS)
        drag(page, back=theme == "dark")
        search(page, "exp")
        work_by_keys(page)
        opened.screenshot(f"views-{request.node.callspec.id}-{theme}")
    assert page.locator(".jp-Cell").count() == cells
    assert opened.console_errors == []
    assert opened.offsite_requests == []


def test_high_contrast(notebook) -> None:
    opened = open_views(notebook)
    page = opened.page
    for theme in ("light", "dark"):
        opened.use_theme(theme)
        page.emulate_media(forced_colors="active", color_scheme=theme)
        page.evaluate(TO_TOP)
        page.wait_for_timeout(300)
        assert page.evaluate("() => matchMedia('(forced-colors: active)').matches")
        assert violations(page) == []
        drawn, unseen = page.evaluate(UNSEEN)
        assert drawn > 200
        assert unseen == []
        pressed, other = (
            page.locator(f".tm-graph button[aria-pressed='{is_on}']").first.evaluate(
                "(one) => getComputedStyle(one).backgroundColor"
            )
            for is_on in ("true", "false")
        )
        assert pressed != other
        opened.screenshot(f"contrast-{theme}")


def test_the_checker_sees_what_is_wrong(browser) -> None:
    page = browser.new_page()
    page.set_content(
        "<style>body { overflow: hidden; height: 0 }</style>"
        "<main class=jp-OutputArea-output><button></button><p style='color:#eee;background:#fff'>pale</p></main>"
    )
    assert {found.split(":")[0] for found in violations(page)} == {"button-name", "color-contrast"}
    page.close()
