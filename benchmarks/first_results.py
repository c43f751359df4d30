"""The first result of a program, and the NumPy tier's own time, against plain NumPy: ``python benchmarks/first_results.py [NAME ...]``.

The programs are those of ``tests/programs`` at their large sizes, one after the other in processes. In three, as users call them: what
Python takes, and what the first call takes, which Python itself may run, the least of the three, as all times are the least of some
(threads of BLAS that wait for each other count, too). In another one, pinned to NumPy: a call that captures (capture,
rewriting, run by NumPy), and a later one. CPU time of the process; compilation, which goes on in another one, is not in it. Writes
``benchmarks/results/first_results.md`` where no name is given.

``--beside CHECKOUT [NAME ...]`` measures first calls in turn here and in another checkout, as on a machine that does other work at the same
time, and writes ``benchmarks/results/first_results_beside.md``.
"""

from __future__ import annotations

import copy
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
ENOUGH = 0.3  # seconds of repetitions
PROCESSES = 3  # in which first calls are measured


def cpu(call: Callable[[], Any]) -> float:
    """CPU seconds of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def again(call: Callable[[], Any]) -> float:
    """The least CPU seconds of some calls."""
    times = [cpu(call)]
    while sum(times) < ENOUGH and len(times) < 20:
        times.append(cpu(call))
    return min(times)


def programs() -> dict[str, Any]:
    """The collection, by name."""
    return import_module("tests.programs.test_programs").PROGRAMS


def times_of(name: str, tier: str) -> tuple[float, float, float]:
    """Seconds of plain NumPy, of the first call, and of a later one, on a tier."""
    import numpy as np

    import tensormagic as tm

    found = programs()

    program = found[name]
    given = program.make(program.large)
    tm.config.tier = "numpy"
    tm.tensor(lambda v: v + 1)(np.ones(3))
    if tier == "auto":
        tm.config.tier = "auto"
    with np.errstate(all="ignore"):
        plain = again(lambda: program.function(*copy.deepcopy(given)))
        captured = tm.tensor(program.function)
        arguments = copy.deepcopy(given)
        first = cpu(lambda: captured(*arguments))
        return plain, first, again(lambda: captured(*copy.deepcopy(given))) if tier == "numpy" else 0.0


def rows_of(names: list[str], tier: str, root: Path = ROOT) -> dict[str, tuple[float, float, float]]:
    """The times of programs on a tier, in a process of its own, of a checkout."""
    command = [sys.executable, str(root / "benchmarks" / "first_results.py"), "--on", tier, *names]
    paths = {"PYTHONPATH": os.pathsep.join((str(root), str(root / "kernel")))}
    with tempfile.TemporaryDirectory() as folder:  # what earlier processes have found out about texts is not known
        own = os.environ | paths | {"TENSORMAGIC_CACHE_FOLDER": folder}
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=root, env=own)
    return {name: tuple(times) for name, times in json.loads(done.stdout).items()}


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def report(rows: dict[str, tuple[float, float, float, float]]) -> str:
    """The table."""
    import numpy as np

    lines = [
        "# First results, and the NumPy tier", "",
        f"{datetime.now(UTC).date()}, {platform.machine()}, CPython {platform.python_version()}, numpy {np.__version__}.",
        f"CPU milliseconds, on {os.cpu_count()} processors with a load of {os.getloadavg()[0]:.0f}.", "",
        "*First*: the first call, as users get it; Python itself runs the function where that gives the same (decision 0107).",
        "*Capturing*: a call that captures, pinned to NumPy; *later*: one after it.", "",
        "| program | NumPy | first | capturing | later, by NumPy | first / NumPy | capturing / NumPy | later / NumPy |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for name, found in rows.items():
        plain = found[0]
        times = " | ".join(f"{t * 1e3:.3g}" for t in found)
        lines.append(f"| {name} | {times} | {' | '.join(f'{t / plain:.2f}' for t in found[1:])} |")
    there = list(rows.values())
    told = [
        f"{what} {mean(ratios):.2f} times NumPy (median {sorted(ratios)[len(ratios) // 2]:.2f}, worst {max(ratios):.1f})"
        for k, what in enumerate(("first", "capturing", "later"), 1)
        for ratios in ([found[k] / found[0] for found in there],)
    ]
    return "\n".join([*lines, "", f"Geometric mean over {len(there)}: {', '.join(told)}.", ""])


def beside(names: list[str], other: Path) -> str:
    """The table of first calls here and in another checkout, in turn."""
    pairs = [(rows_of(names, "auto", other), rows_of(names, "auto")) for _ in range(PROCESSES)]
    load = f"on {os.cpu_count()} processors with a load of {os.getloadavg()[0]:.0f}"
    lines = [
        "# First results, beside those of another checkout", "",
        f"{datetime.now(UTC).date()}, {platform.machine()}, CPython {platform.python_version()}.",
        f"CPU milliseconds, the least of {PROCESSES} processes each in turn, {load}.", "",
        "| program | NumPy | there | here | there / NumPy | here / NumPy |", "|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    ratios: list[tuple[float, float]] = []
    for name in names:
        plain = min(found[name][0] for pair in pairs for found in pair)
        there, here = (min(pair[k][name][1] for pair in pairs) for k in range(2))
        ratios.append((there / plain, here / plain))
        times = " | ".join(f"{t * 1e3:.3g}" for t in (plain, there, here))
        lines.append(f"| {name} | {times} | {there / plain:.2f} | {here / plain:.2f} |")
    told = [
        f"{what} {mean(list(found)):.2f} times NumPy (median {sorted(found)[len(found) // 2]:.2f}, worst {max(found):.1f})"
        for what, found in zip(("there", "here"), zip(*ratios, strict=True), strict=True)
    ]
    return "\n".join([*lines, "", f"Geometric mean over {len(names)}: {', '.join(told)}.", ""])


def main() -> None:
    """Measure, and write the table."""
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] == ["--on"]:
        sys.stdout.write(json.dumps({name: times_of(name, sys.argv[2]) for name in sys.argv[3:]}))
        return
    if sys.argv[1:2] == ["--beside"]:
        names = sys.argv[3:] or list(programs())
        text = beside(names, Path(sys.argv[2]).resolve())
        sys.stdout.write(text)
        if not sys.argv[3:]:
            (ROOT / "benchmarks" / "results" / "first_results_beside.md").write_text(text)
        return
    names = sys.argv[1:] or list(programs())
    firsts, later = [rows_of(names, "auto") for _ in range(PROCESSES)], rows_of(names, "numpy")
    rows = {
        n: (min(found[n][0] for found in (*firsts, later)), min(found[n][1] for found in firsts), *later[n][1:])
        for n in names
    }
    text = report(rows)
    sys.stdout.write(text)
    if not sys.argv[1:]:
        (ROOT / "benchmarks" / "results" / "first_results.md").write_text(text)


if __name__ == "__main__":
    main()
