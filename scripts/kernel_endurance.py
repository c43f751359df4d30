"""Drive one kernel for long: ``python scripts/kernel_endurance.py [--rounds 70] [--interrupts 200] [--seed 0] [--write]``."""

from __future__ import annotations

import argparse
import collections
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import pages  # noqa: E402 (found by the line above)
from tests.kernel import endurance  # noqa: E402 (found by the line above)
from tests.kernel.running import Running, running  # noqa: E402 (as above)

PAGE = ROOT / "benchmarks" / "results" / "kernel.md"
HEAD = """# What the kernel has survived

Made by `python scripts/kernel_endurance.py --write`. One TensorMagic kernel, driven over Jupyter's protocol as a notebook drives
it.

*Cells*: the fifteen cells of `tests/kernel/endurance.py` again and again: gradients, loops, displays with widgets, live views,
looks, errors; memory is what the process holds (resident set) after the results and the displays that IPython keeps were dropped.
*Interrupts*: sent at a random time up to a second after a long cell began; the time is that until the cell had stopped, and after
each one the kernel had to compute what is right. *Frontends*: two clients run cells and move the same slider at once. *Restarts*:
with a live view open and its slider moving.
"""


def cells(kernel: Running, arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Many cells."""
    out = endurance.many_cells(kernel, arguments.rounds, parts=5)
    memory = ", ".join(f"{m:.0f}" for m in out.memory)
    told = [
        f"{out.cells} cells in {out.seconds:.0f} s ({1000 * out.seconds / max(out.cells, 1):.0f} ms each, displays included)",
        f"memory after each fifth of them: {memory} MB; from the first to the last {out.memory[-1] - out.memory[0]:+.1f} MB",
        f"open widgets after each fifth: {', '.join(map(str, out.widgets))}",
    ]
    return told, out.wrong


def interrupts(kernel: Running, arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Interrupts at random times."""
    out = endurance.interrupts(kernel, arguments.interrupts, arguments.seed)
    told = [f"{arguments.interrupts} interrupts, seed {arguments.seed}; cells that ended before theirs: {out.finished}"]
    told.append(f"interrupts that had no effect within ten seconds, so that another one was sent: {out.again}")
    for name, times in out.seconds.items():
        told.append(
            f"{name}: stopped after {1000 * statistics.median(times):.0f} ms (median), {1000 * max(times):.0f} ms (longest)"
        )
    return told, out.wrong


def restarts(kernel: Running, arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Restarts with live views open."""
    return [f"{arguments.restarts} restarts"], endurance.restarts(kernel, arguments.restarts)


def frontends(kernel: Running, arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Two frontends."""
    return [f"{arguments.pairs} pairs of cells at once"], endurance.two_frontends(kernel, arguments.pairs)


SCENARIOS: dict[str, Callable[[Running, Any], tuple[list[str], list[str]]]] = {
    "Cells": cells,
    "Interrupts": interrupts,
    "Frontends": frontends,
    "Restarts": restarts,
}


def main() -> int:
    """Run the scenarios in one kernel; 1 where something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option, number in (
        ("--rounds", 70),
        ("--interrupts", 200),
        ("--restarts", 10),
        ("--pairs", 100),
        ("--seed", 0),
    ):
        parser.add_argument(option, type=int, default=number)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    arguments = parser.parse_args()
    lines: list[str] = []
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        install = [sys.executable, "-m", "tensormagic_kernel", "install", "--prefix", folder]
        subprocess.run(install, check=True, capture_output=True, cwd=ROOT)
        os.environ["JUPYTER_PATH"] = str(Path(folder, "share/jupyter"))
        with running() as kernel:
            for name, scenario in SCENARIOS.items():
                begin = time.monotonic()
                told, wrong = scenario(kernel, arguments)
                failed |= bool(wrong)
                counted = collections.Counter(wrong)
                told += [f"**wrong**, {n} times: {text}" for text, n in counted.items()] or ["nothing went wrong"]
                print(f"{name} ({time.monotonic() - begin:.0f} s)", *told, sep="\n  ", flush=True)
                lines += [f"\n## {name}\n", *(f"- {text}" for text in told)]
    if arguments.write:
        pages.write(PAGE, HEAD, lines)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
