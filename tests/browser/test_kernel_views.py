"""What the kernel says in both front ends: Shift-Tab, formulas, the bar of a long computation, the banner of `%tensor_default`."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.axe import violations
from tests.browser.conftest import BOTH
from tests.browser.lab import OpenNotebook

SETUP = """\
%load_ext tensormagic
import numpy as np
import tensormagic as tm
tm.config.tier = 'numpy'
X = np.random.default_rng(0).normal(size=(40, 3))
y = np.sign(X[:, 0])
w, b = np.zeros(3), 0.5"""
CELLS = [
    SETUP,
    "%%tensor --grad w,b --show none\nz = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss",
    "%tensor_formula loss",
    "loss",
    "%tensor_default on",
    "import tensormagic as tm\ns = (X @ w).sum()\nprint(isinstance(s, tm.Tensor))",
    "%%tensor --show none\nu = w * 1.0\nfor k in range(50_000_000):\n    u = np.sin(u) + 0.1\nu.sum()",
]
SELECT = """([cell, end]) => {
    const notebook = jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = cell;
    notebook.mode = 'edit';
    const editor = notebook.activeCell.editor;
    editor.focus();
    editor.setCursorPosition(editor.getPositionAt(end));
}"""
RUN = """async cell => {
    jupyterapp.shell.currentWidget.content.activeCellIndex = cell;
    await jupyterapp.commands.execute('notebook:run-cell');
}"""
START = """cell => {
    jupyterapp.shell.currentWidget.content.activeCellIndex = cell;
    jupyterapp.commands.execute('notebook:run-cell');
}"""
BOX = ".jp-Tooltip-content > *"  # what is ours in the box of Shift-Tab: its frame is the front end's
METADATA = "() => jupyterapp.shell.currentWidget.context.model.getMetadata('tensormagic')"
SAVE = "() => jupyterapp.commands.execute('docmanager:save')"
RESTART = """async () => {
    const session = jupyterapp.shell.currentWidget.context.sessionContext.session;
    await session.kernel.restart();
    await session.kernel.info;
}"""


@pytest.fixture
def shown(notebook: Callable[[str, Path | list[str]], OpenNotebook]) -> OpenNotebook:
    opened = notebook("kernel_views", CELLS)
    for cell in range(len(CELLS) - 1):
        opened.page.evaluate(RUN, cell)
    return opened


@pytest.mark.parametrize("notebook", BOTH, indirect=True)
def test_what_the_kernel_says(request: pytest.FixtureRequest, shown: OpenNotebook):
    page, frontend = shown.page, request.node.callspec.id
    formula = page.locator(".jp-Cell").nth(2).locator("mjx-container")
    expect(formula.first).to_be_visible(timeout=30_000)
    banner = page.locator(".tm-banner")
    expect(banner).to_contain_text("Cells without a magic are captured from here on")
    expect(page.locator(".jp-Cell").nth(5).locator(".jp-OutputArea-output").first).to_contain_text("True")
    assert page.evaluate(METADATA) == {"default": True}

    for theme in ("light", "dark"):
        shown.use_theme(theme)
        banner.scroll_into_view_if_needed()
        expect(formula.first).to_be_visible()
        assert violations(page) == []
        shown.screenshot(f"formula-and-banner-{frontend}-{theme}")
        page.evaluate(SELECT, [3, 4])
        page.keyboard.press("Shift+Tab")
        tooltip = page.locator(".jp-Tooltip")
        expect(tooltip).to_contain_text("lazy float64")
        expect(tooltip.locator("mjx-container").first).to_be_visible()
        expect(tooltip).to_contain_text("0.7365769842")
        assert violations(page, BOX) == []
        shown.screenshot(f"shift-tab-{frontend}-{theme}")
        page.keyboard.press("Escape")

        page.evaluate(START, len(CELLS) - 1)
        bar = page.locator(".tm-bar")
        expect(bar).to_contain_text(re.compile(r"computing for \d+ s · iteration [\d,]+ of 50,000,000 · by NumPy"))
        assert 0 < float(bar.get_by_role("progressbar", name="Computation").get_attribute("value") or 0) < 1
        page.wait_for_timeout(500)
        bar.scroll_into_view_if_needed()
        assert violations(page, ".tm-bar") == []
        shown.screenshot(f"computing-{frontend}-{theme}")
        bar.get_by_role("button", name="Interrupt").press("Enter")
        expect(bar).to_have_count(0)
        expect(page.locator(".jp-Cell").nth(len(CELLS) - 1)).to_contain_text("KeyboardInterrupt")

    page.evaluate(SAVE)
    page.evaluate(RESTART)
    page.evaluate(RUN, 0)
    first = page.locator(".jp-Cell").nth(0).locator(".tm-banner")
    expect(first).to_contain_text("This notebook has %tensor_default on.")
    page.evaluate(RUN, 5)
    expect(page.locator(".jp-Cell").nth(5).locator(".jp-OutputArea-output").first).to_contain_text("True")

    first.get_by_role("button", name="Turn %tensor_default off").press("Enter")
    expect(first).to_contain_text("Cells run as they are written")
    assert page.evaluate(METADATA) == {"default": False}
    page.evaluate(RUN, 5)
    expect(page.locator(".jp-Cell").nth(5).locator(".jp-OutputArea-output").first).to_contain_text("False")
    assert not [e for e in shown.console_errors if "KeyboardInterrupt" not in e]
    assert not shown.offsite_requests
