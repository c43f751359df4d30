"""Notebooks as pages and as PDF, without widget state and without a network: every view is there as a picture."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Route

from tests.browser.views import BACKPROPS, FORMULAS, GRAPHS, LIVE, VIEWS

# nbconvert's own scripts come from a network, where they are not left out: formulas, and widgets that have a state
NO_SCRIPTS = [
    f"--HTMLExporter.{name}_url=" for name in ("require_js", "mathjax", "jquery", "mermaid_js", "mermaid_layout_elk_js")
]
# the code of the cells is nbconvert's to print, and lines of 100,000 letters take it most of a minute
NO_CODE = "() => document.querySelectorAll('.jp-InputArea').forEach((one) => one.remove())"
COLOURS = """() => [...document.querySelectorAll('.tm-panel, .tm-panel *')].map((one) => getComputedStyle(one))
    .map((style) => [style.color, style.backgroundColor].join()).join('|')"""
READY = "() => [...document.images].every((one) => one.complete && one.naturalWidth > 20 && one.naturalHeight > 10)"


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page that `jupyter nbconvert --execute` makes of a notebook with all views."""
    import nbformat

    folder = tmp_path_factory.mktemp("converted")
    cells = [nbformat.v4.new_code_cell(cell) for cell in VIEWS]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / "views.ipynb")
    convert = [sys.executable, "-m", "nbconvert"]
    execute = ["--to", "notebook", "--execute", "--allow-errors", "--NotebookClient.store_widget_state=False"]
    for command in (
        [*execute, "views.ipynb", "--output", "ran.ipynb"],
        ["--to", "html", "ran.ipynb", "--output", "views.html", *NO_SCRIPTS],
    ):
        ran = subprocess.run(
            [*convert, *command], cwd=folder, capture_output=True, text=True, env=os.environ, check=False
        )
        assert ran.returncode == 0, ran.stderr
    return folder / "views.html"


# the least height of letters in the panels, pictures in them included, and the least width of a line of code
LETTERS = """() => Math.min(...[...document.querySelectorAll('.tm-panel *')]
    .filter((one) => [...one.childNodes].some((t) => t.nodeType === 3 && t.textContent.trim()) && one.checkVisibility())
    .map((one) => parseFloat(getComputedStyle(one).fontSize) * (one.getScreenCTM ? one.getScreenCTM().a : 1)))"""
CODE = "() => Math.min(...[...document.querySelectorAll('.tm-lines summary > code, .tm-lines .bare > code')].map((c) => c.offsetWidth))"


@pytest.mark.parametrize("template", ["lab", "classic"])
def test_panels_are_readable_in_nbconverts_pages(
    browser: BrowserContext, converted: Path, screenshots: Path, template: str
) -> None:
    target = converted
    if template == "classic":
        target = converted.with_name("classic.html")
        command = [
            sys.executable,
            "-m",
            "nbconvert",
            "--to",
            "html",
            "--template",
            template,
            "--output",
            target.name,
            *NO_SCRIPTS,
        ]
        ran = subprocess.run([*command, "ran.ipynb"], cwd=converted.parent, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
    page = browser.new_page()
    page.route(
        "**/*", lambda route: route.continue_() if route.request.url.startswith(("file:", "data:")) else route.abort()
    )
    page.goto(target.as_uri())
    page.evaluate("() => document.querySelectorAll('.tm-panel details').forEach((one) => { one.open = true; })")
    for width in (1100, 640, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(100)
        assert page.evaluate(LETTERS) >= 12
        assert page.evaluate(CODE) >= min(150, width // 4)
    page.close()


def test_every_view_is_a_picture_without_a_network(browser: BrowserContext, converted: Path, screenshots: Path) -> None:
    page = browser.new_page()
    asked: list[str] = []
    wrong: list[str] = []

    def guard(route: Route) -> None:
        if route.request.url.startswith(("file:", "data:")):
            route.continue_()
        else:
            asked.append(route.request.url)
            route.abort()

    page.route("**/*", guard)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(converted.as_uri())
    page.wait_for_function(READY)
    assert asked == []
    assert wrong == []
    assert page.evaluate("() => window.hacked") is None
    assert page.locator("img[src^='data:image/svg']").count() == GRAPHS + LIVE + BACKPROPS + FORMULAS
    for panel in ("speed", "lines", "profile", "rewrites"):
        assert page.get_by_text(panel).count() >= 1
    looks: set[str] = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=screenshots / f"converted-{scheme}.png")
        looks.add(page.evaluate(COLOURS))
    assert len(looks) == 1  # the page is light, whatever the reader's system prefers
    page.evaluate(NO_CODE)
    page.emulate_media(media="print")
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 50_000
    (screenshots / "converted.pdf").write_bytes(pdf)
    page.close()
