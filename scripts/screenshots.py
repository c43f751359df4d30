"""Makes the pictures of docs/images anew: every view in JupyterLab, in its light and its dark theme.

    python scripts/screenshots.py [NAME ...]

It needs what the browser tests need: the `test` extra, and Chromium ($CHROMIUM, or `chromium` on the path). Look at what it has made.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import BrowserContext, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.lab import CHROMIUM_FLAGS, Lab, open_notebook, running_lab  # noqa: E402 (after the path is set)

IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 120_000
SETTLED = 1200  # milliseconds until moving things have come to rest

START = (
    "%load_ext tensormagic\nimport numpy as np\nimport tensormagic as tm\ntm.config.tier = 'numpy'\n"
    "from tensormagic.notebook.pictures import adaptor, inside, measure\n"
    "inside.LONGEST = measure.LONGEST = adaptor.MEASURING = 60.0  # no picture says how busy the machine was"
)
DATA = (
    "rng = np.random.default_rng(0)\nX, y = rng.normal(size=(6, 3)), np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])\n"
    "w, b = 0.1 * np.ones(3), 0.0"
)
SLIDER = ".tm-sweep input[type=range]"
LOSS = "z = X @ w + b\nloss = np.mean(np.log(1 + np.exp(-y * z)))\nloss"


Act = Callable[[Page], None]


def as_it_is(_page: Page) -> None:
    """Nothing is done to the view."""


def after(*acts: Act) -> Act:
    """One after the other."""

    def act(page: Page) -> None:
        for one in acts:
            one(page)
            page.wait_for_timeout(300)

    return act


def press(selector: str, *keys: str) -> Act:
    """Give an element the focus, and press keys."""

    def act(page: Page) -> None:
        page.locator(selector).first.focus()
        for key in keys:
            page.keyboard.press(key)

    return act


def click(selector: str, *, number: int = 0, has: str | None = None) -> Act:
    """Click on an element, and move the pointer away."""

    def act(page: Page) -> None:
        page.locator(selector, has_text=has).nth(number).click()
        page.mouse.move(5, 5)

    return act


def there(selector: str) -> Act:
    """Wait until something is seen."""
    return lambda page: page.locator(selector).last.wait_for(state="visible")


def button(name: str) -> Act:
    """Press a button."""
    return lambda page: page.get_by_role("button", name=name, exact=True).last.click()


def fill(selector: str, text: str) -> Act:
    """Write a number."""
    return lambda page: page.locator(selector).first.fill(text)


def read_beside(page: Page) -> None:
    """Ask with Shift-Tab for what the cursor stands behind, in the last cell."""
    page.locator(".jp-Cell .cm-content").last.click()
    page.keyboard.press("End")
    page.keyboard.press("Shift+Tab")


@dataclass(frozen=True)
class Shot:
    """One picture: the cells, the element that is taken, what is done before that, and whether to wait for the cells to end."""

    cells: tuple[str, ...]
    taken: str
    act: Act = as_it_is
    ends: bool = True


def live(expression: str, *acts: Act, cell: str = "") -> Shot:
    """A picture of a live view."""
    return Shot((GRIDS, f"{cell}\n{expression}".strip()), ".tm-sweep", after(*acts))


NODE = ".tm-boxes > g"
BACK = ".tm-backprop input[type=range]"
LONG = "%%tensor --show none\ntotal = 0.0\nfor k in range(600):\n    total += float(np.sum(np.sort(rng.normal(size=2_000_000))))\ntotal"
LOOPS = (
    "%%tensor --grad w\nh = X[0]\nfor k in range(20):\n    h = np.tanh(8 * w * h + 0.1)\n"
    "    if h.sum() > 1:\n        h = h / 2\n    else:\n        h = h + 0.1\nr = h @ h\nr"
)
CHAIN = [f"a{k} = np.cos(a{k - 1 if k else 'a'}) * {k}.5 / 1250" for k in range(1250)]
MANY = "%%tensor --show graph\n" + "\n".join(CHAIN) + "\na1249.sum()"
GRAPH = (DATA, f"%%tensor --grad w,b\n{LOSS}")
CLUSTER = """from distributed import Client, LocalCluster
def loss(x, y, w):
    misfit = x @ w - y
    return np.sum(misfit**2)
rng = np.random.default_rng(0)
x = rng.normal(size=(10_000, 4))
y, w = x @ [1.0, -2.0, 0.5, 0.0], np.zeros(4)
client = Client(LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"))
step, shards = tm.distribute(tm.value_and_grad(loss, argnums=2), client), (tm.shard(x, rows=1000), tm.shard(y))
step(*shards, w)
value, slope = step(*shards, w)"""
NUMBERS = "%%tensor --show backprop\nz = x * w + b\na = 1 / (1 + np.exp(-z))\nloss = (a - target) ** 2\nloss"
SOFTMAX = "e = np.exp(X - X.max(axis=1, keepdims=True))\np = e / e.sum(axis=1, keepdims=True)\np.sum(axis=0)"
ROWS = "X = np.random.default_rng(0).normal(size=(2000, 64))"
GRIDS = (
    "t, g, rng = np.linspace(0, 6, 80), np.linspace(-2, 2, 24), np.random.default_rng(0)\n"
    "X = rng.normal(size=(200, 8))\ny = X @ np.linspace(-1, 1, 8)"
)
SHOTS = {
    "a-cell": Shot(
        (
            "rng = np.random.default_rng(0)\nX = rng.normal(size=(50, 3))\ny, w, b = np.sign(X[:, 0]), np.zeros(3), 0.0",
            f"%%tensor --grad w,b\n{LOSS}",
        ),
        ".jp-Cell",
        after(click(".tm-header"), button("after rewriting"), click(NODE, has="softplus")),
    ),
    "graph-view-steps-of-rewriting": Shot(
        GRAPH,
        ".tm-graph",
        after(
            click(".tm-header"),
            button("after rewriting"),
            there(".tm-rules"),  # what is measured comes later
            press(".tm-steps input", "ArrowLeft"),
            click(NODE, has="log1p"),
        ),
    ),
    "graph-view-kernels-and-values": Shot(
        GRAPH, ".tm-graph", after(click(".tm-header"), button("as compiled"), click(f"{NODE}.input", has="X"))
    ),
    "graph-view-loops-and-branches": Shot(
        (DATA, LOOPS),
        ".tm-graph",
        after(
            click(".tm-header"),
            click(NODE, has="/ 2"),
            there(".tm-iterations input"),
            press(".tm-iterations input", "ArrowLeft", "ArrowLeft"),
        ),
    ),
    "graph-view-many-nodes-in-groups": Shot(("aa = np.ones(3)", MANY), ".tm-graph"),
    "graph-view-over-a-cluster": Shot((CLUSTER, "step.report"), ".tm-graph"),
    "backprop-of-numbers": Shot(
        ("x, w, b, target = 0.5, 1.5, 0.1, 1.0", NUMBERS), ".tm-backprop", press(BACK, "Home", *["ArrowRight"] * 15)
    ),
    "backprop-of-arrays": Shot(
        (DATA, f"%%tensor --show backprop\n{LOSS}"), ".tm-backprop", press(BACK, "Home", *["ArrowRight"] * 17)
    ),
    "live-curve": live("tm.live(lambda a: np.sin(a) * a, a=(0, 10))", press(SLIDER, *["ArrowRight"] * 27)),
    "live-contours-descent": live(
        "tm.live(lambda u, v: (1 - u) ** 2 + 2 * (v - u**2) ** 2, u=(-2, 2), v=(-1, 3))",
        press(SLIDER, *["ArrowLeft"] * 60),
        fill(".tm-sweep input[type=number]", "0.02"),
        click(".tm-sweep button", has="descend"),
    ),
    "live-vector-columns": live(
        "tm.live(lambda w: np.mean((X @ w - y) ** 2), w=(-2 * np.ones(8), 2 * np.ones(8)))",
        press(".tm-knob", *["PageUp"] * 4),
    ),
    "live-matrix-cells": live(
        "tm.live(lambda W: np.sum(np.tanh(W @ W.T)), W=(-np.ones((3, 4)), np.linspace(1, 1.6, 12).reshape(3, 4)))",
        press(".tm-knob", *["PageUp"] * 4),
    ),
    "live-array-line": live(
        "tm.live(lambda a, k=0.4: np.exp(-k * t) * np.sin(a * t), a=(0, 5), k=(0, 1))",
        press(SLIDER, *["ArrowRight"] * 27),
        press(".tm-elements", *["ArrowRight"] * 14),
    ),
    "live-array-heat-map": live(
        "tm.live(lambda a, b=1.0: np.sin(a * g[:, None]) * np.cos(b * g + a), a=(0, 3), b=(0, 3))",
        press(SLIDER, *["ArrowRight"] * 27),
        press(".tm-elements", *["ArrowRight"] * 14),
    ),
    "speed-view": Shot(
        (f"tm.config.tier = 'numba'\n{ROWS}", f"%%tensor -t --show none\n{SOFTMAX}"),
        ".jp-OutputArea-output:has(.tm-panel)",
    ),
    "annotated-lines": Shot(
        (DATA, f"%%tensor -a --show none --grad w,b\n{LOSS}"), ".tm-lines", click(".tm-lines summary", number=1)
    ),
    "shapes-that-do-not-fit": Shot((DATA, "%%tensor\nX @ y"), "div.tm-panel"),
    "formula": Shot((DATA, f"%%tensor --grad w,b --show none\n{LOSS}", "%tensor_formula loss"), ".jp-RenderedLatex"),
    "shift-tab": Shot((DATA, f"%%tensor --grad w,b --show none\n{LOSS}", "loss"), ".jp-Tooltip", read_beside),
    "long-computation": Shot((DATA, LONG), ".tm-bar", ends=False),
    "default-banner": Shot(("%tensor_default on",), ".tm-banner"),
}


def take(browser: BrowserContext, lab: Lab, name: str, shot: Shot, folder: Path) -> None:
    """Run a notebook and save its view in both themes."""
    opened = open_notebook(browser, lab, lab.add(f"{name}.ipynb", [START, *shot.cells]), folder)
    page = opened.page
    try:
        if shot.ends:
            opened.run_all()
        else:
            page.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells'); }")
        if shot.act is not read_beside:
            page.locator(shot.taken).last.wait_for(state="attached")
        page.wait_for_timeout(SETTLED)
        shot.act(page)
        for theme in ("light", "dark"):
            opened.use_theme(theme)
            page.wait_for_timeout(SETTLED)
            path = folder / f"{name}-{theme}.png"
            page.locator(shot.taken).last.screenshot(path=path)
            save(path, IMAGES / path.name)
    finally:
        page.evaluate("() => jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
        page.close()


def save(source: Path, target: Path) -> None:
    """Save a picture with as many colours as a file of a fair size can have."""
    with Image.open(source) as picture:
        whole = picture.convert("RGB")
        for colours in (256, 128, 64):
            with_most_frequent(whole, colours).save(target, optimize=True)
            if target.stat().st_size <= MOST_BYTES:
                print(
                    f"{target.relative_to(ROOT)}: {target.stat().st_size // 1000} kB, {picture.width} x {picture.height}"
                )
                return
    message = f"{target} is larger than {MOST_BYTES} bytes"
    raise ValueError(message)


def with_most_frequent(picture: Image.Image, colours: int) -> Image.Image:
    """The picture with its most frequent colours as they are: areas, so that two tiles of a heat map never become one."""
    pixels = np.asarray(picture)
    found, places, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    kept = found[np.argsort(-counts)[:colours]].astype(int)
    nearest = np.array([((kept - colour) ** 2).sum(axis=1).argmin() for colour in found.astype(int)], np.uint8)
    made = Image.fromarray(nearest[places.reshape(pixels.shape[:2])], "P")
    made.putpalette(kept.astype(np.uint8).tobytes())
    return made


def main(names: list[str]) -> int:
    """Make the pictures that are named, or all."""
    unknown = set(names) - set(SHOTS)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if unknown or chromium is None:
        print(
            f"no such picture: {', '.join(sorted(unknown))}; there are {', '.join(SHOTS)}" if unknown else "no Chromium"
        )
        return 2
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, running_lab(Path(scratch)) as lab, sync_playwright() as playwright:
        browser = playwright.chromium.launch_persistent_context(
            Path(scratch, "profile"),
            executable_path=chromium,
            headless=True,
            args=CHROMIUM_FLAGS,
            viewport={"width": 1200, "height": 2100},
        )
        for name in names or SHOTS:
            take(browser, lab, name, SHOTS[name], Path(scratch))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
