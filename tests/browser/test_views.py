"""All views in one notebook, in JupyterLab and in Notebook 7: accessible, by keyboard alone, whatever names and strings there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.axe import violations
from tests.browser.conftest import BOTH
from tests.browser.lab import OpenNotebook

pytestmark = pytest.mark.browser

SCRIPT = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\"'&"
LONG = "long" * 25_000
HEBREW = "\N{HEBREW LETTER SHIN}\N{HEBREW LETTER LAMED}"
TURNED = "\N{GRINNING FACE}\N{RIGHT-TO-LEFT OVERRIDE}"
START = f"""%load_ext tensormagic
import numpy as np, tensormagic as tm
tm.config.tier = "numpy"
X, w, b, y = np.arange(12.0).reshape(4, 3), np.zeros(3), 0.0, np.array([1.0, -1.0, 1.0, 1.0])
script = {SCRIPT!r}
hostile = {{script: np.ones(3), "{TURNED}": np.ones(3)}}
{LONG} = 2.0"""
VIEWS = [
    START,
    (
        "%%tensor objective --grad w,b --show graph,rewrites,code,annotate,profile,speed\n"
        "z = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss"
    ),
    "%%tensor --live a=0:10\nslow = np.sin(a) * 2.0",
    "%%tensor --grad w --show backprop\nsquares = np.sum((X @ w - y) ** 2)\nsquares",
    (
        "%%tensor --grad hostile --show graph,annotate,profile\n"
        f"{HEBREW} = hostile[script] * {LONG}  # {SCRIPT}\n"
        f"total = np.sum({HEBREW} ** 2) + np.sum(hostile['{TURNED}'])\ntotal"
    ),
    f"%%tensor --live {LONG}=0:3 --grad w\nnp.sum(np.exp(w)) * {LONG}",
    "%tensor_profile",
    "%tensor_rules",
    "%tensor_formula squares",
    "tm.live(lambda u, v: u[0] ** 2 + np.sum(u * v), u=(-np.ones(2), np.ones(2)), v=(-1, 1))",
    "%%tensor\nmisfit = X @ y",
    "%tensor_default on",
]
FOCUSABLE = "button, input, select, textarea, summary, a[href], [tabindex='0']"
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


def open_views(notebook: Callable[[str, Path | list[str]], OpenNotebook]) -> OpenNotebook:
    opened = notebook("views", VIEWS)
    opened.page.set_viewport_size({"width": 1280, "height": 5000})
    errors = [output["ename"] for output in opened.run_all() if output["output_type"] == "error"]
    assert errors == ["ShapeError"]
    for header in opened.page.locator(".tm-graph .tm-header").all():
        header.click()
    opened.page.locator(".tm-boxes > g").first.wait_for()
    opened.page.locator(".tm-sweep").nth(1).wait_for()
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


def come_to(page: Page, selector: str) -> None:
    """Press the tabulator key until the focus is there."""
    for _ in range(200):
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(selector)


def work_by_keys(page: Page) -> None:
    """Open a panel, walk over a graph, move a slider, and step through a backward pass, without a pointer."""
    page.evaluate("() => document.querySelector('.jp-OutputArea-output summary').focus()")
    before = page.locator("details[open]").count()
    page.keyboard.press("Enter")
    assert abs(page.locator("details[open]").count() - before) == 1
    come_to(page, ".tm-graph .tm-stage")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator(".tm-graph .tm-live").first.inner_text()
    come_to(page, ".tm-sweep input[type=range]")
    was = page.locator(".tm-sweep .tm-number").first.inner_text()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("(was) => document.querySelector('.tm-sweep .tm-number').textContent !== was", arg=was)
    come_to(page, ".tm-backprop button")
    at = page.locator(".tm-backprop input[type=range]").input_value()
    page.keyboard.press("Enter")
    page.wait_for_function("(at) => document.querySelector('.tm-backprop input[type=range]').value !== at", arg=at)


@pytest.mark.parametrize("notebook", BOTH, indirect=True)
def test_every_view(request: pytest.FixtureRequest, notebook) -> None:
    opened = open_views(notebook)
    page = opened.page
    for theme in ("light", "dark"):
        opened.use_theme(theme)
        page.wait_for_timeout(300)
        assert violations(page) == []
        opened.screenshot(f"views-{request.node.callspec.id}-{theme}")
    assert page.evaluate("() => window.hacked") is None
    assert page.locator(".jp-OutputArea-output script").count() == 0
    assert "<script>" in page.locator(".tm-graph .tm-header").last.inner_text()
    assert max(len(text) for text in page.locator(".jp-OutputArea-output").all_inner_texts()) < 20_000
    count, mouse_only = page.evaluate(MARK, [".jp-OutputArea-output", FOCUSABLE])
    assert count > 20
    assert mouse_only == []
    assert len(reached(page, count)) == count
    work_by_keys(page)
    assert opened.console_errors == []
    assert opened.offsite_requests == []


def test_the_checker_sees_what_is_wrong(browser) -> None:
    page = browser.new_page()
    page.set_content(
        "<main class=jp-OutputArea-output><button></button><p style='color:#eee;background:#fff'>pale</p></main>"
    )
    assert {found.split(":")[0] for found in violations(page)} == {"button-name", "color-contrast"}
    page.close()
