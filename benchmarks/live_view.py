"""How often a live view draws while one drags, and when the exact value follows.

``python benchmarks/live_view.py [FILE.md]``; JupyterLab and Chromium are needed, as for the tests in a browser.
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
from playwright.sync_api import BrowserContext, CDPSession, Page, sync_playwright

import tensormagic as tm
from tests.browser.lab import CHROMIUM_FLAGS, Lab, open_notebook, running_lab

SECONDS = 3.0  # of a drag
MOVES = 30
LIMITS = 50, 200  # milliseconds until the first change, and until the exact value
rng = np.random.default_rng(0)
X, y = rng.normal(size=(569, 16)), np.sign(rng.normal(size=569))
grid = np.linspace(-2, 2, 32)


def loss(w: Any) -> Any:
    """Logistic loss of 569 examples."""
    return np.mean(np.log(1 + np.exp(-y * (X @ w))))


# a view, and which element of its page is dragged
VIEWS: dict[str, tuple[Callable[[], Any], str]] = {
    "curve of one number": (lambda: tm.live(lambda a: np.sin(a) * a, a=(0, 10)), ".tm-curve"),
    "contours of two": (lambda: tm.live(lambda u, v: (1 - u) ** 2 + 5 * (v - u**2) ** 2, u=(-2, 2), v=(-1, 3)), ".tm-plane"),
    "vector of 16": (lambda: tm.live(loss, w=(-np.ones(16), np.ones(16))), ".tm-columns"),
    "matrix of 8 by 8": (lambda: tm.live(lambda W: np.sum(np.tanh(W @ W.T)), W=(-np.ones((8, 8)), np.ones((8, 8)))), ".tm-cells .tm-knob"),
    "line of 200 elements": (lambda: tm.live(lambda a: np.sin(a * np.linspace(0, 6, 200)), a=(0, 3)), "input"),
    "heat map of 32 by 32": (lambda: tm.live(lambda a: np.sin(a * grid[:, None]) * np.cos(a * grid), a=(0, 3)), "input"),
}  # fmt: skip

# one move in each frame, as a mouse makes them; a picture is counted where the view has drawn
DRAG = """async ([selector, seconds]) => {
    const element = document.querySelector(selector), view = document.querySelector('.tm-sweep');
    const box = element.getBoundingClientRect(), drawn = () => Number(view.dataset.drawn);
    const send = (type, share) => {
        if (element.tagName === 'INPUT') {
            element.value = Number(element.max) * (0.5 + 0.4 * Math.sin(7 * share));
            element.dispatchEvent(new Event('input', { bubbles: true }));
            return;
        }
        const up = 0.4 + 0.1 * Math.sin(9 * share);
        const place = { clientX: box.left + box.width * (0.5 + 0.003 * share), clientY: box.top + box.height * up };
        element.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1, button: 0, ...place }));
    };
    Element.prototype.setPointerCapture = () => {};
    await new Promise(requestAnimationFrame);
    const frames = [], begin = performance.now(), before = drawn();
    send('pointerdown', 0);
    for (let now = begin; now - begin < seconds * 1000;) {
        now = await new Promise(requestAnimationFrame);
        frames.push(now);
        send('pointermove', (now - begin) / 1000);
    }
    send('pointerup', 0);
    const gaps = frames.slice(1).map((at, k) => at - frames[k]).sort((a, b) => a - b);
    return { pictures: (drawn() - before) / seconds, frames: frames.length / seconds, gap: gaps[Math.floor(gaps.length * 0.95)] };
}"""

# a move, and how long until the page has drawn another point, and until the view says `=` for it
FOLLOW = """async (key) => {
    const view = document.querySelector('.tm-sweep'), input = view.querySelector('input[type=range]');
    const number = view.querySelector('.tm-number'), old = number.textContent, begin = performance.now();
    input.value = Number(input.value) + (key % 2 ? 7 : -6);
    const drawn = Number(view.dataset.drawn);
    input.dispatchEvent(new Event('input', { bubbles: true }));
    while (number.textContent === old || Number(view.dataset.drawn) === drawn) {
        await new Promise(requestAnimationFrame);
        if (performance.now() - begin > 5000) throw new Error('no change');
    }
    const first = performance.now() - begin;
    while (number.textContent === old || view.dataset.exact !== 'true') {
        await new Promise((next) => setTimeout(next, 1));
        if (performance.now() - begin > 5000) throw new Error('no exact value');
    }
    return [first, performance.now() - begin];
}"""

CELLS = {
    "np.sin(a) * a": ["%%tensor --live a=0:10\nnp.sin(a) * a"],
    "logistic loss, 569 x 30": ["%%tensor --live a=0:10\nnp.mean(np.log(1 + np.exp(-y * (X @ w * a))))"],
    "logistic loss, 100000 x 30": ["%%tensor --live a=0:10\nnp.mean(np.log(1 + np.exp(-many * (large @ w * a))))"],
}
SETUP = """%load_ext tensormagic
import numpy as np
rng = np.random.default_rng(0)
X, y, w = rng.normal(size=(569, 30)), np.sign(rng.normal(size=569)), rng.normal(size=30)
large, many = rng.normal(size=(100_000, 30)), np.sign(rng.normal(size=100_000))"""


def busy(session: CDPSession) -> float:
    """Seconds of processor time that the page's thread has used for tasks."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))


def dragged(browser: BrowserContext, folder: Path) -> list[str]:
    """Rows: pictures a second of pages without a kernel."""
    rows: list[str] = []
    tm.live(lambda a: np.cos(a), a=(0, 1)).close()  # what the first view imports is not part of the others
    for name, (make, element) in VIEWS.items():
        begin = time.perf_counter()
        view = make()
        seconds = time.perf_counter() - begin
        path = folder / "view.html"
        view.to_html(path)
        size = len(view.page())
        view.close()
        page = browser.new_page()
        page.goto(path.as_uri())
        page.wait_for_function("() => Number(document.querySelector('.tm-sweep').dataset.drawn) > 0")
        session = browser.new_cdp_session(page)
        session.send(
            "Performance.setTimeDomain", {"timeDomain": "threadTicks"}
        )  # what the load of the machine does not touch
        session.send("Performance.enable")
        before = busy(session)
        found = page.evaluate(DRAG, [element, SECONDS])
        each = (busy(session) - before) / (found["pictures"] * SECONDS) * 1e3
        page.close()
        numbers = (
            f"{seconds * 1e3:.0f} | {size / 1e3:.0f} | {each:.1f} | {found['frames']:.0f} | {found['pictures']:.0f}"
        )
        rows.append(f"| {name} | {numbers} | {found['gap']:.1f} |")
    return rows


def followed(browser: BrowserContext, lab: Lab, folder: Path) -> list[str]:
    """Rows: milliseconds until the exact value is there, in JupyterLab."""
    rows: list[str] = []
    for k, (name, cells) in enumerate(CELLS.items()):
        opened = open_notebook(browser, lab, lab.add(f"live{k}.ipynb", [SETUP, *cells]), folder)
        opened.run_all()
        page: Page = opened.page
        page.locator(".tm-sweep").wait_for()
        page.wait_for_timeout(500)
        moves = [page.evaluate(FOLLOW, move) for move in range(MOVES)]
        parts = [name]
        for times, limit in zip(zip(*moves, strict=True), LIMITS, strict=True):
            worst = sorted(times)[int(0.95 * MOVES)]
            within = sum(t <= limit for t in times)
            parts += [f"{statistics.median(times):.0f}", f"{worst:.0f}", f"{within} of {MOVES}"]
        rows.append(f"| {' | '.join(parts)} |")
        page.evaluate("() => jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
        page.close()
    return rows


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        chromium = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch_persistent_context(
            folder / "profile", executable_path=chromium, headless=True, args=CHROMIUM_FLAGS,
            viewport={"width": 1280, "height": 900},
        )  # fmt: skip
        pictures = dragged(browser, folder)
        with running_lab(folder / "lab") as lab:
            exact = followed(browser, lab, folder)
        version = browser.browser.version if browser.browser else ""
        browser.close()
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "numba", "jupyterlab"))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    made = f"Made by `python benchmarks/live_view.py`, {dt.datetime.now(dt.UTC).date()}; {machine}, "
    made += f"Python {platform.python_version()}, {versions}, headless Chromium {version} without a GPU."
    how = f"A page without a kernel, dragged for {SECONDS:g} s with one move in each frame: the view made in Python (first call "
    how += "and sweep), the size of the page, the processor time of the page's thread for each picture (script, style, layout, "
    how += "paint), frames and pictures a second, and the 95th percentile of the time between frames. Sixty pictures a second "
    how += "leave 16.7 ms for each."
    lines = ["# Live views", "", made, "", how, ""]
    lines.append("| view | made, ms | page, kB | a picture, ms | frames/s | pictures/s | between frames, ms |")
    lines.append("|---|---:|---:|---:|---:|---:|---:|")
    lines += [*pictures, ""]
    about = "until the page has drawn a change (first), and until the exact value is on the page (exact)"
    lines += [f"In JupyterLab, milliseconds from a move of the slider {about}: {MOVES} moves.", ""]
    first, then = LIMITS
    lines.append(f"| cell | first, median | 95 % | within {first} ms | exact, median | 95 % | within {then} ms |")
    lines += ["|---|---:|---:|---:|---:|---:|---:|", *exact, ""]
    text = "\n".join(lines)
    print(text)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text)


if __name__ == "__main__":
    main()
