"""The graph widget in JupyterLab: its keys are its own, its themes follow, and it closes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.lab import OpenNotebook

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
SHOW = f"""import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.notebook import demo_scenes
from tensormagic.notebook.widgets.graph import GraphView
graph = GraphView(demo_scenes.logistic())
graph"""
READ = "(code) => jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.requestExecute({code}).done"


def test_it_is_used_by_keys_and_pointer_and_closed(notebook: Callable[[str, Path | list[str]], OpenNotebook]) -> None:
    opened = notebook("graph", [SHOW])
    (output,) = opened.run_all()
    assert output["data"]["text/plain"].startswith("In[3], graph: 8 ops")
    assert output["data"]["image/svg+xml"].startswith("<svg")
    page = opened.page
    header = page.locator(".tm-graph .tm-header")
    header.wait_for()
    header.focus()
    page.keyboard.press("Enter")
    page.locator(".tm-boxes > g").first.wait_for()
    page.get_by_role("button", name="kernels", exact=True).click()
    for theme in ("light", "dark"):
        opened.use_theme(theme)
        page.locator(".tm-stage").scroll_into_view_if_needed()
        page.wait_for_timeout(600)
        opened.screenshot(f"graph-{theme}")
    stage = page.locator(".tm-stage")
    stage.focus()
    before = page.locator(".jp-Cell").count()
    for key in ("ArrowDown", "ArrowDown", "b", "x", "/"):  # b and x add and cut cells where JupyterLab hears them
        page.keyboard.press(key)
    page.keyboard.type("sigmoid")
    page.keyboard.press("Enter")
    assert page.locator(".tm-live").inner_text().startswith("1 of 1: sigmoid")
    assert page.locator(".jp-Cell").count() == before
    reply = page.evaluate(READ, "assert (graph.selected, graph.expanded, graph.view) == ('sigma', True, 'kernels')")
    assert reply["content"]["status"] == "ok", reply["content"]
    page.evaluate(READ, "graph.close()")
    header.wait_for(state="detached")
    assert opened.console_errors == []
    assert opened.offsite_requests == []
