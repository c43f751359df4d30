"""Sizes that nobody meets every day: ``python scripts/endurance.py [--only NAME] [--cells 10000] [--write]``."""

from __future__ import annotations

import argparse
import os
import queue
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import pages  # noqa: E402 (found by the line above)
from tests.kernel.running import MEMORY, RESIDENT, Ran, Running, running  # noqa: E402 (found by the line above)

PAGE = ROOT / "benchmarks" / "results" / "endurance.md"
LONGEST = 1500.0
HEAD = """# Sizes that nobody meets every day

Made by `python scripts/endurance.py --write`. Each scenario has a kernel of its own, driven over Jupyter's protocol as a notebook
drives it.

The seconds are those of the whole cell; *bar*: seconds until the page was told that it takes long. After each cell, each interrupt
and each error a small cell has to compute what is right (*usable*). An interrupt is wrong where the cell ends later than a second.
"""
SETUP = "import gc, numpy as np, tensormagic as tm\ncheck = np.linspace(0.0, 1.0, 50)"
CHECK = "%%tensor --quiet\nchecked = np.sum(check * check) + check[0]"
CHECKED = "print(abs(float(checked) - float(np.sum(check * check))) < 1e-9)"


@dataclass(frozen=True)
class Scenario:
    """A cell, what comes before it, the same with an error at its end, and what is to be true of its result."""

    cell: str
    true: str
    before: str = "pass"
    error: str = "\nnp.zeros(3)[7]"
    stops: tuple[float, ...] = (0.3, 1.0, 2.5, 6.0)


SCENARIOS = {
    "2e8 elements": Scenario(
        "%%tensor --show none\nt = np.sum(np.sin(x) * 0.5 + x)",
        "abs(float(t) / (0.5 * np.sin(1.0) + 1.0) / 200_000_000 - 1) < 1e-9",
        "x = np.ones(200_000_000)",
    ),
    "2e8 elements, gradient": Scenario(
        "%%tensor --grad x --show none\nt = np.sum(np.sin(x) * 0.5)",
        "abs(float(grad_x[7]) - 0.5 * np.cos(1.0)) < 1e-12",
        "x = np.ones(200_000_000)",
    ),
    "1e6 iterations, gradient, NumPy": Scenario(
        "%%tensor --grad w --show none\ns = w * 1.0\nfor k in range(1_000_000):\n    s = np.sin(s) + 0.5 * w\ns = s.sum()",
        "np.isfinite(float(grad_w[1]))",
        "tm.config.tier = 'numpy'\nw = np.linspace(0.1, 0.9, 3)",
        stops=(0.3, 2.5, 10.0, 20.0),
    ),
    "1e6 iterations, gradient, compiled": Scenario(
        "%%tensor --grad w --show none\ns = w * 1.0\nfor k in range(1_000_000):\n    s = np.sin(s) + 0.5 * w\ns = s.sum()",
        "np.isfinite(float(grad_w[1]))",
        "tm.config.tier = 'numba'\nw = np.linspace(0.1, 0.9, 3)",
        stops=(0.3, 1.0),
    ),
    "1e5 nodes, a number": Scenario(
        "v = tm.tensor(0.5)\nfor k in range(50_000):\n    v = v * 0.999 + 0.001\nt = float(v)",
        "abs(t - 1) < 1e-9",
    ),
    "1e5 nodes, a gradient": Scenario(
        "u = tm.tensor(np.full(3, 0.5))\nv = u\nfor k in range(50_000):\n    v = v * 0.9999 + 0.001\nt = np.asarray(v.sum().grad(u))",
        "abs(float(t[0]) / 0.9999**50_000 - 1) < 1e-9",
    ),
    "1e5 nodes in a function": Scenario(
        "@tm.tensor\ndef f(x):\n    for k in [*range(50_000)]:\n        x = x * 0.999 + 0.001\n    return x\nt = float(f(0.5))",
        "abs(t - 1) < 1e-9",
    ),
    "recursion, 1000 deep": Scenario(
        "%%tensor --grad x --show none\ndef deep(v, n):\n    return v if n == 0 else np.sin(deep(v, n - 1)) + v\nt = deep(x, 1000).sum()",
        "np.isfinite(float(grad_x[0]))",
        "x = np.linspace(0.1, 0.9, 3)",
    ),
    "recursion in a function, 1000 deep": Scenario(
        "@tm.tensor\ndef deep(v, n):\n    return v if n == 0 else np.sin(deep(v, n - 1)) + v\nt = float(deep(0.5, 1000))\n"
        "g = float(tm.grad(lambda v: deep(v, 1000))(0.5))",
        "np.isfinite(g)",
    ),
}


@dataclass
class Found:
    """What came out of a scenario."""

    rows: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def note(self, ok: bool, what: str) -> None:
        """Say something, as wrong or not."""
        (self.rows if ok else self.wrong).append(what)


def watched(kernel: Running, cell: str) -> tuple[Ran, float]:
    """Run a cell; also the seconds until a bar was shown, or inf."""
    sent = kernel.begin(cell)
    begin, seen, bar = time.monotonic(), list[dict[str, Any]](), float("inf")
    while True:
        message = kernel.client.get_iopub_msg(timeout=LONGEST)
        if message["parent_header"].get("msg_id") == sent or message["msg_type"] in {"display_data", "comm_open"}:
            seen.append(message)
        if message["msg_type"] == "display_data":
            bar = min(bar, time.monotonic() - begin)
        idle = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
        if idle and message["parent_header"].get("msg_id") == sent:
            break
    while (reply := kernel.client.get_shell_msg(timeout=LONGEST))["parent_header"].get("msg_id") != sent:
        pass
    return Ran(reply["content"], seen, time.monotonic() - begin), bar


def usable(kernel: Running) -> bool:
    """Whether the notebook computes what is right."""
    return kernel.run(CHECK).status == "ok" and kernel.run(CHECKED).text == "True\n"


def run(scenario: Scenario) -> Found:
    """One scenario in a kernel of its own."""
    found = Found()
    with running() as kernel:
        kernel.run(SETUP)
        before = kernel.run(scenario.before, timeout=LONGEST)
        found.note(before.status == "ok", f"before: {before.status}")
        ran, bar = watched(kernel, scenario.cell)
        what = f"{ran.seconds:.1f} s"
        found.note(
            ran.status == "ok",
            f"{what} {'' if ran.status == 'ok' else ran.status + ': ' + str(ran.reply.get('evalue', ''))[:300]}",
        )
        if ran.seconds > 3:
            found.note(bar < 3, f"bar after {bar:.1f} s")
        if ran.status == "ok":
            right = kernel.run(f"print({scenario.true})", timeout=LONGEST).text
            found.note(right == "True\n", f"right: {right.strip()}")
        again, _ = watched(kernel, scenario.cell)
        found.note(again.status == ran.status, f"again {again.seconds:.1f} s")
        found.note(usable(kernel), "usable")
        failed, _ = watched(kernel, scenario.cell + scenario.error)
        found.note(
            failed.status in {"IndexError", "BoundsError"}, f"error: {failed.status} after {failed.seconds:.1f} s"
        )
        found.note(usable(kernel), "usable after an error")
        found.note(True, f"peak {kernel.number(MEMORY):.0f} MB, then {kernel.number(RESIDENT):.0f} MB")
    for after in scenario.stops:
        if after < ran.seconds:
            _stop(scenario, after, found)
    return found


def _stop(scenario: Scenario, after: float, found: Found) -> None:
    with running() as kernel:
        kernel.run(SETUP)
        kernel.run(scenario.before, timeout=LONGEST)
        try:
            ran, seconds, needed = kernel.interrupted(scenario.cell, after, patience=60.0)
        except TimeoutError:
            found.note(False, f"interrupt at {after} s: not in three minutes")
            return
        except queue.Empty:
            found.note(False, f"interrupt at {after} s: lost")
            return
        good = ran.status == "ok" or (ran.status == "KeyboardInterrupt" and seconds < 1.0 and needed == 1)
        found.note(
            good,
            f"interrupted at {after} s: {ran.status} after {seconds:.2f} s{f', {needed} interrupts' * (needed > 1)}",
        )
        found.note(usable(kernel), "usable after that")


def cells(count: int) -> Found:
    """Many small cells in one kernel, of which no two are alike."""
    found = Found()
    with running() as kernel:
        kernel.run(SETUP)
        begin, memory, times = time.monotonic(), list[float](), list[float]()
        for k in range(count):
            if k % (count // 5) == 0:
                kernel.run("%reset -f out\nget_ipython().history_manager.outputs.clear()\n_ = gc.collect()")
                memory.append(kernel.number(RESIDENT))
                times.append(time.monotonic() - begin)
            ran = kernel.run(f"%%tensor --quiet\nv{k % 50} = np.sum(np.sin(check * {k}.5) + {k})")
            if ran.status != "ok":
                found.note(False, f"cell {k}: {ran.status}")
        spans = [b - a for a, b in zip(times, [*times[1:], time.monotonic() - begin], strict=True)]
        found.note(
            True, f"{count} cells, milliseconds each, by fifths: {', '.join(f'{5000 * s / count:.0f}' for s in spans)}"
        )
        growth = memory[-1] - memory[1]
        found.note(growth < 0.02 * count, f"memory before each fifth: {', '.join(f'{m:.0f}' for m in memory)} MB")
        found.note(usable(kernel), "usable")
    return found


def main() -> int:
    """Run the scenarios; 1 where something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="scenarios whose name holds this text")
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    arguments = parser.parse_args()
    lines: list[str] = []
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        install = [sys.executable, "-m", "tensormagic_kernel", "install", "--prefix", folder]
        subprocess.run(install, check=True, capture_output=True, cwd=ROOT)
        os.environ["JUPYTER_PATH"] = str(Path(folder, "share/jupyter"))
        for name in (*SCENARIOS, "many cells"):
            if arguments.only not in name:
                continue
            found = cells(arguments.cells) if name == "many cells" else run(SCENARIOS[name])
            failed |= bool(found.wrong)
            told = [*found.rows, *(f"**wrong**: {text}" for text in found.wrong)]
            print(name, *told, sep="\n  ", flush=True)
            lines += [
                f"\n## {name}\n",
                *([f"```python\n{SCENARIOS[name].cell}\n```\n"] if name in SCENARIOS else []),
                *(f"- {text}" for text in told),
            ]
    if arguments.write:
        pages.write(PAGE, HEAD, lines)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
