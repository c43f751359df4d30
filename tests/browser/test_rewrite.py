"""The button under a warning of a stale gradient: one click rewrites the cell, one more takes it back; without a notebook it copies."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tensormagic.notebook.widgets.strips import Rewrite
from tests.browser.axe import violations
from tests.browser.conftest import BOTH
from tests.browser.lab import OpenNotebook

START = "w = np.zeros(3)"
SETUP = (
    "%load_ext tensormagic\nimport numpy as np\nimport tensormagic as tm\ntm.config.tier = 'numpy'\n"
    "X = np.random.default_rng(0).normal(size=(40, 3))\ny = X @ [1.0, -2.0, 0.5]"
)
CELL = "%%tensor --grad w --show none\nloss = np.mean((X @ w - y) ** 2)\nloss"
LOOP = "for k in range(200):\n    w = w - 0.1 * grad_w  # downhill\nprint(np.round(w, 3))"
SOURCES = "() => jupyterapp.shell.currentWidget.content.model.sharedModel.cells.map(cell => cell.getSource())"
RUN = """async cell => {
    jupyterapp.shell.currentWidget.content.activeCellIndex = cell;
    await jupyterapp.commands.execute('notebook:run-cell');
}"""


@pytest.mark.parametrize("notebook", BOTH, indirect=True)
@pytest.mark.parametrize("name", ["", "objective "], ids=["without a name", "named"])
def test_one_click_rewrites_the_cell(notebook: Callable[[str, Path | list[str]], OpenNotebook], name: str):
    cells = [SETUP, START, CELL.replace("--grad", f"{name}--grad"), LOOP]
    opened = notebook(f"rewrite{len(name)}", cells)
    page = opened.page
    for cell in range(4):
        page.evaluate(RUN, cell)
    strip = page.locator(".tm-rewrite")
    expect(strip).to_contain_text("computed in every step")
    strip.scroll_into_view_if_needed()
    for theme in ("light", "dark"):
        opened.use_theme(theme)
        assert violations(page, ".tm-rewrite") == []
        opened.screenshot(f"rewrite-{name}-{theme}")
    button = strip.get_by_role("button")
    expect(button).to_have_text("Rewrite the cell" if name else "Rewrite the cells")
    button.click()
    expect(strip).to_contain_text("Set w back to np.zeros(3)")
    found = page.evaluate(SOURCES)
    assert found[2] == CELL.replace("--grad", "objective --grad")
    assert found[3].splitlines() == [
        'step = tm.value_and_grad(objective, "w")',
        "for k in range(200):",
        "    value, grad_w = step(w=w)",
        "    w = w - 0.1 * grad_w  # downhill",
        "print(np.round(w, 3))",
    ]
    button.press("Enter")
    expect(button).to_have_text("Rewrite the cell" if name else "Rewrite the cells")
    assert page.evaluate(SOURCES) == cells
    button.click()
    for cell in (1, 2, 3):
        page.evaluate(RUN, cell)
    expect(page.locator(".jp-Cell").nth(3).locator(".jp-OutputArea-output").last).to_contain_text("[ 1.  -2.   0.5]")
    assert page.locator(".tm-rewrite").count() == 0
    assert not opened.console_errors
    assert not opened.offsite_requests


COPIED = """async ([words, cells]) => {
    const view = (await import('/script.js')).default, state = { words, cells };
    view.render({ model: { get: (name) => state[name] }, el: document.body });
    document.querySelector('button').click();
    await new Promise((resolve) => setTimeout(resolve, 300));
    return [document.body.innerText, await navigator.clipboard.readText()];
}"""


def test_a_page_without_a_notebook_copies_the_text(browser: BrowserContext):
    page, site = browser.new_page(), "http://127.0.0.1:9"
    page.route(f"{site}/", lambda route: route.fulfill(content_type="text/html", body="<!doctype html><body>"))
    page.route(f"{site}/script.js", lambda route: route.fulfill(content_type="text/javascript", body=Rewrite._esm))
    page.goto(f"{site}/")
    browser.grant_permissions(["clipboard-read", "clipboard-write"])
    cells = [{"cell": "a", "now": "x", "better": "y = 1"}, {"cell": "b", "now": "", "better": "z"}]
    shown, copied = page.evaluate(COPIED, ["in every step", cells])
    browser.clear_permissions()
    page.close()
    assert copied == "y = 1\n\nz"
    assert shown == "CopyCopied."
