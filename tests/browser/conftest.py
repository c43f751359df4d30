"""One server and one Chromium for all browser tests, and `notebook`, which opens a notebook in JupyterLab, or in Notebook 7."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

import tensormagic as tm
from tests.browser.lab import CHROMIUM_FLAGS, Lab, OpenNotebook, open_notebook, running_lab

expect.set_options(
    timeout=30_000
)  # as long as for clicks: where much else runs, a kernel does not answer in the usual 5 s
BOTH = ("lab", pytest.param("notebook", marks=pytest.mark.share(5)))  # what differs is the page around the views


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's path. `scripts/test.sh` installs it and calls its absence an error."""
    for candidate in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        if candidate and (path := shutil.which(candidate)):
            return path
    if os.environ.get("TENSORMAGIC_REQUIRE_BROWSER") or os.environ.get("CI"):
        pytest.fail("Chromium was not found (apt-get install chromium)")
    pytest.skip("Chromium was not found (apt-get install chromium)")


@pytest.fixture(scope="session")
def browser(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    profile = tmp_path_factory.mktemp("chromium")
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=chromium,
            headless=True,
            args=CHROMIUM_FLAGS,
            viewport={"width": 1280, "height": 900},
        )
        yield context
        context.close()


@pytest.fixture(scope="session")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running_lab(tmp_path_factory.mktemp("jupyterlab")) as running:
        yield running


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the pictures go: $TENSORMAGIC_SCREENSHOTS, or pytest's folder for this run."""
    chosen = os.environ.get("TENSORMAGIC_SCREENSHOTS")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def notebook(
    request: pytest.FixtureRequest, browser: BrowserContext, lab: Lab, screenshots: Path
) -> Iterator[Callable[[str, Path | list[str]], OpenNotebook]]:
    """`notebook(name, source)` opens a notebook file, or a list of cells, in a page of its own.

    In JupyterLab; a test that is parametrised with `BOTH`, indirectly, runs in Notebook 7 too.
    """
    frontend = getattr(request, "param", "lab")
    opened: list[OpenNotebook] = []

    def open_it(name: str, source: Path | list[str]) -> OpenNotebook:
        address = lab.add(f"{name}-{frontend}.ipynb", source, frontend)
        opened.append(open_notebook(browser, lab, address, screenshots))
        return opened[-1]

    yield open_it
    for one in opened:
        one.page.evaluate("() => jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
        one.page.close()


@pytest.fixture
def opened(browser: BrowserContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Open the page of a view; at the end nothing may have gone wrong."""
    monkeypatch.setattr(tm.config, "tier", "numpy")
    pages: list[Page] = []
    wrong: list[str] = []

    def open_view(view: Any, **media: Any) -> Page:
        path = tmp_path / f"view{len(pages)}.html"
        view.to_html(path)
        view.close()
        page = browser.new_page()
        pages.append(page)
        page.emulate_media(**media)
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith("file:") else None)
        page.goto(path.as_uri())
        return page

    yield open_view
    for page in pages:
        page.close()
    assert wrong == []
