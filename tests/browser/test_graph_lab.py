"""The graph widget and its kernel in JupyterLab: each hears what the other changes, and it closes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.lab import OpenNotebook

ROOT = Path(__file__).parents[2]
SHOW = f"""import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.notebook import demo_scenes
from tensormagic.notebook.widgets.graph import GraphView
graph = GraphView(demo_scenes.logistic())
graph"""
READ = "(code) => jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.requestExecute({code}).done"


def test_the_kernel_hears_what_is_shown_and_closes(notebook: Callable[[str, Path | list[str]], OpenNotebook]) -> None:
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
    page.get_by_role("button", name="as compiled", exact=True).click()
    page.locator(".tm-stage").focus()
    page.keyboard.press("/")
    page.keyboard.type("sigmoid")
    page.keyboard.press("Enter")
    state = "assert (graph.selected, graph.expanded, graph.view) == ('sigma', True, 'kernels')"
    for _ in range(20):  # what the page says of itself goes to the kernel beside the code that asks for it
        reply = page.evaluate(READ, state)
        if reply["content"]["status"] == "ok":
            break
        page.wait_for_timeout(250)
    assert reply["content"]["status"] == "ok", reply["content"]
    page.evaluate(READ, "graph.close()")
    header.wait_for(state="detached")
    assert opened.console_errors == []
    assert opened.offsite_requests == []


CELL = """%%tensor --grad w
z = X @ w
loss = np.mean(np.log(1 + np.exp(-y * z)))
loss"""
SETUP = f"""import sys
sys.path.insert(0, {str(ROOT)!r})
import numpy as np
%load_ext tensormagic
rng = np.random.default_rng(0)
X, w, y = rng.normal(size=(40, 5)), np.ones(5), np.sign(rng.normal(size=40))
v = w"""
LARGE = "%%tensor\n" + "v = np.tanh(v * 1.01)\n" * 150 + "v.sum()"


def test_the_kernel_answers_what_a_graph_asks(notebook: Callable[[str, Path | list[str]], OpenNotebook]) -> None:
    opened = notebook("asking", [SETUP, CELL, LARGE])
    opened.run_all()
    page = opened.page
    shown = page.locator(".tm-graph").first
    shown.locator(".tm-header").click()
    shown.get_by_role("button", name="after rewriting", exact=True).click()
    slider = shown.get_by_role("slider", name="step of rewriting")
    slider.wait_for()
    slider.focus()
    page.keyboard.press("Home")
    shown.get_by_text("as it was written").first.wait_for()
    shown.locator(".tm-boxes > g.pointwise", has_text="log").first.wait_for()
    page.keyboard.press("End")
    shown.locator(".tm-boxes > g.pointwise", has_text="softplus").click()
    shown.locator(".tm-details", has_text="in NumPy").wait_for()
    assert shown.locator(".tm-details .tm-bars rect").count() == 16
    assert "log1p" in shown.locator(".tm-details").inner_text()
    with page.expect_download() as download:
        shown.get_by_role("button", name="save as HTML").click()
    assert Path(download.value.path()).read_text(encoding="utf-8").startswith("<!doctype html>")
    large = page.locator(".tm-graph").nth(1)
    large.locator(".tm-header").click()
    large.locator(".tm-boxes > g.group").first.click()
    page.keyboard.press("Enter")
    said = large.locator("[aria-live]")
    expect(said).to_have_text("lines 2–4: 6 ops, open")
    large.get_by_role("searchbox").fill("line 150")  # in a group that nobody has opened
    expect(said).to_contain_text("2 found", timeout=30_000)
    large.get_by_role("searchbox").press("Enter")
    expect(said).to_contain_text("1 of 2: ", timeout=30_000)
    assert "line 150" in large.locator(".tm-details").inner_text()
    large.get_by_role("button", name="as compiled", exact=True).click()
    large.locator(".tm-boxes > g.group", has_text="kernel 1").first.wait_for()
    assert opened.console_errors == []
    assert opened.offsite_requests == []
