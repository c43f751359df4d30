"""Formulas in the page that nbconvert makes, read without a network: MathJax does not come, and they are there."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from PIL import Image
from playwright.sync_api import BrowserContext, Route

import tensormagic as tm


def formulas() -> list[object]:
    """A loss with its gradients, and what has matrices, fractions, cases, Greek letters, roots and sums."""
    X, w, theta = (tm.tensor(np.ones(shape)) for shape in ((4, 3), 3, 3))
    A = tm.tensor(np.eye(3))
    loss = np.mean(np.log(1 + np.exp(-(X @ w))))
    form = w @ A @ theta / 2 + np.sqrt(np.sum(np.where(theta > 0, theta**2, 0))) + np.prod(np.floor(w))
    return [loss.formula("loss"), form.formula("rho")]


@pytest.fixture
def page_of_formulas(tmp_path: Path) -> Path:
    import nbformat
    from nbconvert import HTMLExporter

    cells = []
    for shown in formulas():
        data, _ = DisplayFormatter().format(shown)
        output = nbformat.v4.new_output("display_data", data)
        cells.append(nbformat.v4.new_code_cell("value.formula()", outputs=[output]))
    made, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    path = tmp_path / "formulas.html"
    path.write_text(made, encoding="utf-8")
    return path


def test_they_are_there_without_a_network(browser: BrowserContext, page_of_formulas: Path, screenshots: Path) -> None:
    def guard(route: Route) -> None:
        route.continue_() if route.request.url.startswith(("file:", "data:")) else route.abort()

    page = browser.new_page()
    page.route("**/*", guard)
    page.goto(page_of_formulas.as_uri(), wait_until="domcontentloaded")
    outputs = page.locator(".jp-OutputArea-output")
    assert outputs.count() == 2
    assert "".join(outputs.all_inner_texts()).strip() == ""  # no LaTeX, which only MathJax would typeset
    for output in outputs.locator("img").all():
        assert output.evaluate("(one) => one.decode().then(() => one.naturalWidth > 100 && one.naturalHeight > 40)")
    paper, ink = 255, 26  # of nbconvert's light page, whatever the reader's system prefers
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=screenshots / f"formulas-{scheme}.png")
        picture = Image.open(BytesIO(outputs.locator("img").last.screenshot())).convert("L")
        counts = picture.histogram()
        darkest, _ = picture.getextrema()
        assert abs(counts.index(max(counts)) - paper) <= 2
        assert abs(darkest - ink) <= 40
    page.close()
