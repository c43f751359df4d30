"""The speed view, the lines of a cell and the drawing of an error in JupyterLab: light and dark, opened by keys, no script."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.lab import OpenNotebook

pytestmark = pytest.mark.browser

CELLS = [
    """%load_ext tensormagic
import numpy as np
rng = np.random.default_rng(0)
X, y = rng.normal(size=(20000, 30)), np.sign(rng.normal(size=20000))
w, b = rng.normal(size=30), 0.1""",
    "%%tensor -t --show none\nz = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss",
    """%%tensor -a --show none
u = np.linalg.solve(X.T @ X, w)
for k in range(20):
    u = u - 0.1 * np.sin(u)
np.sum(X @ u)""",
    "%%tensor\nX @ y",
]


def test_speed_lines_and_errors(notebook: Callable[[str, Path | list[str]], OpenNotebook]) -> None:
    opened = notebook("speed", CELLS)
    outputs = opened.run_all()
    assert [output["output_type"] for output in outputs] == ["execute_result"] * 2 + ["display_data", "error"]
    page = opened.page
    lines = page.locator(".tm-lines details")
    lines.first.wait_for()
    first = lines.first.locator("summary")
    first.focus()
    page.keyboard.press("Enter")
    code = lines.first.locator("pre").first
    code.wait_for(state="visible")
    for theme in ("light", "dark"):
        opened.use_theme(theme)
        for name, part in (("speed", "svg[aria-label*='times NumPy']"), ("lines", ".tm-lines")):
            page.locator(part).first.scroll_into_view_if_needed()
            opened.screenshot(f"{name}-{theme}")
        ink = page.evaluate("() => getComputedStyle(document.querySelector('.tm-lines code')).color")
        shade = [float(part) for part in re.findall(r"[\d.]+", ink)][:3]
        assert (sum(shade) > 384) == (theme == "dark")
        page.locator("svg[aria-label*='do not fit']").scroll_into_view_if_needed()
        opened.screenshot(f"misfit-{theme}")
    first.focus()
    page.keyboard.press("Enter")
    code.wait_for(state="hidden")
    assert opened.console_errors == []
    assert opened.offsite_requests == []
