"""The bar of a cell in the background in JupyterLab: it fills, cancels, and leaves the line of what came of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.browser.lab import OpenNotebook

SETUP = "%load_ext tensormagic\nimport numpy as np\nx = np.linspace(0.0, 1.0, 1000)"
LONG = "%%tensor --async\nh = x\nfor k in range(1_000_000_000):\n    h = np.sin(h) + h.mean() * 0.5\nh.sum()"
AFTER = "%%tensor --async\nu = h * 2\nu.sum()"


def test_the_bar_fills_and_cancels(notebook: Callable[[str, Path | list[str]], OpenNotebook]) -> None:
    opened = notebook("background", [SETUP, LONG, AFTER, "x[:3].sum()"])
    opened.run_all()
    page = opened.page
    first, second = page.locator(".tm-bar").first, page.locator(".tm-bar").nth(1)
    first.get_by_text("of 1,000,000,000").wait_for()
    second.get_by_text("waits for its inputs").wait_for()
    bar = first.locator("progress")
    before = bar.evaluate("e => e.value")
    page.wait_for_function("([e, v]) => e.value > v", arg=[bar.element_handle(), before])
    assert second.locator("progress").get_attribute("value") is None
    opened.screenshot("background-bar")
    for one in (second, first):
        one.get_by_role("button", name="Cancel").click()
        page.get_by_text("cancelled: it is computed when it is used").first.wait_for()
    first.wait_for(state="detached")
    opened.screenshot("background-cancelled")
    assert opened.console_errors == []
    assert opened.offsite_requests == []
