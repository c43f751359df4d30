"""The quickstart in JupyterLab, as a user runs it: all cells, the graph drawn, nothing fetched, no complaint."""

from pathlib import Path

QUICKSTART = Path(__file__).parents[2] / "notebooks" / "quickstart.ipynb"


def test_it_runs_and_draws_its_graphs(notebook):
    opened = notebook("quickstart", QUICKSTART)
    outputs = opened.run_all()
    assert [output for output in outputs if output["output_type"] == "error"] == []
    opened.page.evaluate("() => document.querySelector('.jp-NotebookPanel .jp-WindowedPanel-outer')?.scrollTo(0, 0)")
    header = opened.page.locator(".tm-graph .tm-header").first
    header.wait_for(state="attached", timeout=30_000)
    header.scroll_into_view_if_needed()
    opened.screenshot("quickstart-closed")
    header.click()
    graph = opened.page.locator(".tm-graph svg").first
    graph.wait_for(state="attached", timeout=30_000)
    for theme in ("light", "dark"):
        opened.use_theme(theme)
        graph.scroll_into_view_if_needed()
        opened.screenshot(f"quickstart-{theme}")
        box = graph.bounding_box()
        assert box is not None
        assert box["width"] > 50
        assert box["height"] > 20
    assert graph.locator("text").count() > 0
    assert opened.console_errors == []
    assert opened.offsite_requests == []
