"""What a kernel has to survive: many cells, interrupts at any time, restarts with live views open, two frontends at once.

Each scenario takes a kernel that runs and says what came out; how long each goes on is for the caller to say.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

from tests.kernel.running import RESIDENT, Ran, Running

SETUP = """\
import gc, numpy as np, ipywidgets, tensormagic as tm
random = np.random.default_rng(0)
X, y = random.normal(size=(200, 5)), random.normal(size=200)
w, b = np.zeros(5), 0.0
x = np.linspace(0.0, 1.0, 50)"""
# {k} is another number at every round: values differ, texts of cells do not
CELLS = (
    "w = w + 0.001 * random.normal(size=5)",
    "%%tensor objective --grad w,b\nz = X @ w + b\nloss = np.mean((z - y) ** 2)\nloss",
    "w -= 0.01 * grad_w",
    "loss",
    "%%tensor\ns = x * 1.0\nfor k in range(20):\n    s = np.sin(s) + loss\ns.sum()",
    "step = tm.value_and_grad(objective, ('w', 'b'))\nvalue, (gw, gb) = step(w=w, b=b)\nvalue",
    "%tensor np.sum(w * w) + b",
    "%tensor_graph loss",
    "%tensor_formula loss",
    "%%tensor --live a=0:10\nnp.sum((x - a) ** 2)",
    "%%tensor --quiet\nt = np.exp(-x) @ np.outer(x, x)\nt.max()",
    "float(t.max())",
    "%%tensor\nbad = X @ x",
    "print(np.asarray(s)[:3])",
    "%%tensor --show rewrites\np = np.log(1 + np.exp(x)) * x / x\np",
)
FAILS = "%%tensor\nbad = X @ x"
# IPython itself keeps the last thousand results, and the data of each display
FORGET = "%reset -f out\nget_ipython().history_manager.outputs.clear()\n_ = gc.collect()"
OPEN_WIDGETS = "len(ipywidgets.widgets.widget._instances)"


@dataclass
class Cells:
    """What many cells have cost: memory in MB after each part, and the widgets that were open."""

    cells: int = 0
    seconds: float = 0.0
    memory: list[float] = field(default_factory=list)
    widgets: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def many_cells(kernel: Running, rounds: int, parts: int = 4) -> Cells:
    """Run the cells of a notebook again and again."""
    out = Cells()
    begin = time.monotonic()
    kernel.run(SETUP)
    for _ in range(parts):
        for _ in range(rounds // parts):
            for cell in CELLS:
                ran = kernel.run(cell)
                out.cells += 1
                if ran.status != ("ShapeError" if cell == FAILS else "ok"):
                    out.wrong.append(f"{cell!r}: {ran.status} {ran.reply.get('evalue', '')}")
        kernel.run(FORGET)
        out.memory.append(kernel.number(RESIDENT))
        out.widgets.append(int(kernel.number(OPEN_WIDGETS)))
    out.seconds = time.monotonic() - begin
    return out


LONG = {
    "a compiled loop": (
        "tm.config.tier = 'numba'",
        "%%tensor --show none\nu = x * 1.0\nfor k in range(100_000_000):\n    u = np.sin(u) + 0.1\nu.sum()",
    ),
    "a loop in NumPy": (
        "tm.config.tier = 'numpy'",
        "%%tensor --show none\nu = x * 1.0\nfor k in range(10_000_000):\n    u = np.sin(u) + 0.1\nu.sum()",
    ),
    "many steps of a function": (
        "tm.config.tier = 'auto'",
        "step = tm.value_and_grad(objective, 'w')\nv = w\nfor k in range(10_000_000):\n    _, g = step(w=v)\n    v = v - 0.01 * g",
    ),
    "many cells' worth of captures": (
        "tm.config.tier = 'auto'",
        "for k in range(10_000_000):\n    float((tm.tensor(x) * k).sum())",
    ),
}
CHECK = "%%tensor --quiet\nchecked = np.sum(x * x) + X[0, 0] * 0"
CHECKED = "print(abs(float(checked) - float(np.sum(x * x))) < 1e-9, len(gc.get_objects()) > 0)"


@dataclass
class Stops:
    """How long each interrupted cell took to stop, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    finished: int = 0
    again: int = 0  # interrupts that had no effect, so that another one was sent
    wrong: list[str] = field(default_factory=list)


def interrupts(kernel: Running, count: int, seed: int, latest: float = 1.0) -> Stops:
    """Interrupt long cells at random times; after each one the kernel has to compute what is right."""
    out = Stops()
    chance = random.Random(seed)
    kernel.run(SETUP)
    kernel.run(CELLS[1])
    for k in range(count):
        name = list(LONG)[k % len(LONG)]
        before, cell = LONG[name]
        kernel.run(before)
        ran, seconds, needed = kernel.interrupted(cell, chance.uniform(0.0, latest), patience=10.0)
        out.again += needed - 1
        out.seconds.setdefault(name, []).append(seconds)
        if ran.status == "ok":
            out.finished += 1
        elif ran.status != "KeyboardInterrupt":
            out.wrong.append(f"{name}: {ran.status} {ran.reply.get('evalue', '')}")
        out.wrong += _checked(kernel, f"after an interrupt of {name}")
    kernel.run("tm.config.tier = 'auto'")
    return out


def _checked(kernel: Running, when: str) -> list[str]:
    first, second = kernel.run(CHECK), kernel.run(CHECKED)
    right = first.status == second.status == "ok" and second.text == "True True\n"
    return [] if right else [f"{when}: {first.status} {second.status} {second.text!r} {second.reply.get('evalue', '')}"]


LIVE = "%%tensor --live a=0:10\nnp.sum((x - a) ** 2)"
WIDGET = "application/vnd.jupyter.widget-view+json"


def _view(ran: Ran) -> str:
    """The id of the widget that a cell shows."""
    return next(data[WIDGET]["model_id"] for data in ran.displays if WIDGET in data)


def drag(kernel: Running, client: object, view: str, state: dict[str, object]) -> None:
    """Send what a page sends when a slider moves."""
    del kernel
    content = {"comm_id": view, "data": {"method": "update", "state": state, "buffer_paths": []}}
    message = client.session.msg("comm_msg", content)  # type: ignore[attr-defined]
    client.shell_channel.send(message)  # type: ignore[attr-defined]


def restarts(kernel: Running, count: int) -> list[str]:
    """Restart while a live view is open and dragged; afterwards the cells run again, and old views are nobody's."""
    wrong: list[str] = []
    for k in range(count):
        kernel.run(SETUP)
        view = _view(kernel.run(LIVE))
        kernel.run(CELLS[1])
        for step in range(5):
            drag(kernel, kernel.client, view, {"a": float(step)})
        kernel.restart()
        drag(kernel, kernel.client, view, {"a": 1.0})  # a page that has not noticed
        if kernel.run(SETUP).status != "ok" or kernel.run(LIVE).status != "ok":
            wrong.append(f"restart {k}: the cells do not run again")
        wrong += _checked(kernel, f"after restart {k}")
    return wrong


def two_frontends(kernel: Running, rounds: int) -> list[str]:
    """Two frontends run cells and drag the same view at once; each gets its own results."""
    wrong: list[str] = []
    kernel.run(SETUP)
    view = _view(kernel.run(LIVE))
    with kernel.second_client() as other:
        for k in range(rounds):
            drag(kernel, kernel.client, view, {"a": float(k % 10)})
            drag(kernel, other, view, {"a": float((k + 1) % 10)})
            mine = kernel.begin(f"%%tensor --quiet\nmine = np.sum(x) + {k}")
            theirs = kernel.begin(f"%%tensor --quiet\ntheirs = np.sum(x) * {k}", other)
            first, second = kernel.wait(mine), kernel.wait(theirs, other)
            shown = kernel.run("print(float(mine), float(theirs))")
            again = kernel.run("print(float(mine), float(theirs))", other)
            expected = f"{25.0 + k} {25.0 * k}"
            got = [[round(float(v), 6) for v in ran.text.split()] for ran in (shown, again)]
            if {first.status, second.status} != {"ok"} or got != [[float(v) for v in expected.split()]] * 2:
                wrong.append(f"round {k}: {first.status} {second.status} {got}")
    return wrong
