"""How long the graph view takes: from the scene to the picture in the browser, and how fluidly it is moved about.

``python benchmarks/graph_view.py [--browser chromium] [--output benchmarks/results/graph_view.md]``
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Page, sync_playwright  # noqa: E402 (the tests' scenes are found first)

from tensormagic.notebook.pictures import svg  # noqa: E402
from tensormagic.notebook.pictures.html import page as html_page  # noqa: E402
from tensormagic.notebook.widgets.graph_files import SCRIPT, STYLE  # noqa: E402
from tests.browser.lab import CHROMIUM_FLAGS  # noqa: E402
from tests.notebook import demo_scenes  # noqa: E402

SIZES = (100, 1000, 5000)
ROUNDS = 5
FRAMES = """(count) => new Promise((done) => {
    const stage = document.querySelector('.tm-stage'), box = stage.getBoundingClientRect(), times = [];
    const send = (type, k) => stage.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1,
        clientX: box.left + 300 + 3 * k, clientY: box.top + 200 + 2 * k }));
    stage.setPointerCapture = () => {};
    send('pointerdown', 0);
    let k = 0, last = performance.now();
    const step = () => {
        const now = performance.now();
        times.push(now - last);
        last = now;
        if (++k > count) { send('pointerup', k); done(times.slice(2)); return; }
        send('pointermove', k);
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})"""
SHOWN = """async () => {
    const click = performance.now();
    document.querySelector('.tm-header').click();
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return performance.now() - click;
}"""
OPENED = """async () => {
    const click = performance.now();
    document.querySelector('[title="open or close all groups"]').click();
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return performance.now() - click;
}"""


def python_times(count: int) -> dict[str, float]:
    """Return how long Python takes for the first message and for the picture that stands alone."""
    scene = demo_scenes.random_graph(count)
    start = time.perf_counter()
    text = json.dumps(scene.message())
    message = time.perf_counter() - start
    start = time.perf_counter()
    svg.render(scene)
    return {"message": message, "svg": time.perf_counter() - start, "bytes": len(text)}


def page_file(count: int, folder: Path) -> Path:
    """Write a page whose graph is closed until its header is clicked; it holds what its groups hold."""
    scene = demo_scenes.random_graph(count)
    state = {"scene": scene.message(deep=True), "expanded": False, "view": "captured", "selected": ""}
    path = folder / f"graph{count}.html"
    path.write_text(html_page("graph", STYLE, SCRIPT, state, ""), encoding="utf-8")
    return path


def browser_times(page: Page, path: Path, *, is_large: bool) -> dict[str, Any]:
    """Return what the browser takes to show the graph, to open all of its groups, and for each frame while one drags."""
    page.goto(path.as_uri())
    page.locator(".tm-header").wait_for()
    found: dict[str, Any] = {"shown": page.evaluate(SHOWN) / 1000}
    if is_large:
        found["opened"] = page.evaluate(OPENED) / 1000
    found["near"] = page.evaluate(FRAMES, 60)
    page.get_by_role("button", name="fit the graph into the view").click()
    found["whole"] = page.evaluate(FRAMES, 60)
    return found


def rows(browser: str) -> list[str]:
    """Return the rows of the table."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=browser, args=CHROMIUM_FLAGS)
        page = running.new_page(viewport={"width": 1280, "height": 900})
        for count in SIZES:
            python = [python_times(count) for _ in range(ROUNDS)]
            path = page_file(count, Path(folder))
            seen = [browser_times(page, path, is_large=count > 200) for _ in range(ROUNDS)]
            message, picture = (statistics.median(one[key] for one in python) for key in ("message", "svg"))
            shown = statistics.median(one["shown"] for one in seen)
            opened = statistics.median(one["opened"] for one in seen) if count > 200 else None
            near, whole = ([t for one in seen for t in one[key]] for key in ("near", "whole"))
            found.append(
                f"| {count:,} | {message:.3f} s ({python[0]['bytes'] / 1000:,.0f} kB) | {shown:.3f} s | **{message + shown:.3f} s** "
                f"| {picture:.3f} s | {'–' if opened is None else f'{opened:.3f} s'} | {_frames(near)} | {_frames(whole)} |"
            )
        version = running.version
        running.close()
    return [version, *found]


def _frames(times: list[float]) -> str:
    times = sorted(times)
    return f"{statistics.median(times):.0f} ms, {times[int(0.95 * len(times))]:.0f} ms"


def main() -> None:
    """Measure, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--browser", default=os.environ.get("CHROMIUM") or shutil.which("chromium") or "chromium")
    parser.add_argument("--output", type=Path)
    chosen = parser.parse_args()
    begin = os.getloadavg()[0]
    version, *table = rows(shutil.which(chosen.browser) or chosen.browser)
    text = f"""# The graph view

{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, headless Chromium {version}
(drawing in software, no GPU), 1280 × 900. Load of the machine when this began: {begin:.1f}. Medians of {ROUNDS} rounds;
a frame's time is given as median and 95th percentile of all frames while the graph is dragged, where 17 ms is what the screen allows.
Random graphs; those above 200 nodes start as closed groups of lines. The frames are those of graphs with all groups open.

| nodes | layout, message | click to picture | together | static SVG | opening all groups | a frame, dragged | a frame, all in sight |
|---|---|---|---|---|---|---|---|
"""
    text += "\n".join(table) + "\n"
    if chosen.output:
        chosen.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
