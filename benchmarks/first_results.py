"""The first result of a program, and the NumPy tier's own time, against plain NumPy: ``python benchmarks/first_results.py [NAME ...]``.

The programs are those of ``tests/programs`` at their large sizes. Each runs in a process of its own: what Python takes, what the first
call of the captured function takes (capture, rewriting, run by NumPy), and what the second one does. CPU time of the process;
compilation, which goes on in another one, is not in it. Writes ``benchmarks/results/first_results.md`` where no name is given.
"""

from __future__ import annotations

import copy
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIMIT = 300.0  # seconds for one program
ENOUGH = 0.3  # seconds of repetitions


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


def times_of(name: str) -> tuple[float, float, float]:
    """Seconds of plain NumPy, of the first call, and of the second one by NumPy."""
    import numpy as np

    import tensormagic as tm

    found = programs()

    program = found[name]
    given = program.make(program.large)
    tm.config.tier = "numpy"
    tm.tensor(lambda v: v + 1)(np.ones(3))
    with np.errstate(all="ignore"):
        plain = again(lambda: program.function(*copy.deepcopy(given)))
        captured = tm.tensor(program.function)
        arguments = copy.deepcopy(given)
        first = cpu(lambda: captured(*arguments))
        return plain, first, again(lambda: captured(*copy.deepcopy(given)))


def row(name: str) -> tuple[float, float, float] | None:
    """The times of a program, in a process of its own; None where that takes too long."""
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--one", name], stdout=subprocess.PIPE, timeout=LIMIT, check=True, cwd=ROOT
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    return tuple(json.loads(done.stdout))


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def report(rows: dict[str, tuple[float, float, float] | None]) -> str:
    """The table."""
    import numpy as np

    lines = [
        "# First results, and the NumPy tier", "",
        f"{datetime.now(UTC).date()}, {platform.machine()}, CPython {platform.python_version()}, numpy {np.__version__}.",
        f"CPU milliseconds, on {os.cpu_count()} processors with a load of {os.getloadavg()[0]:.0f}.", "",
        "| program | NumPy | first call | second, by NumPy | first / NumPy | second / NumPy |", "|---|---:|---:|---:|---:|---:|",
    ]  # fmt: skip
    for name, found in rows.items():
        if found is None:
            lines.append(f"| {name} | | | | not in {LIMIT:g} s | |")
            continue
        plain, first, second = found
        lines.append(
            f"| {name} | {plain * 1e3:.3g} | {first * 1e3:.3g} | {second * 1e3:.3g} | {first / plain:.2f} | {second / plain:.2f} |"
        )
    there = [found for found in rows.values() if found is not None]
    firsts, seconds = [f / p for p, f, _ in there], [s / p for p, _, s in there]
    first = f"first {mean(firsts):.2f} times NumPy (worst {max(firsts):.1f})"
    second = f"second {mean(seconds):.2f} (worst {max(seconds):.1f})"
    return "\n".join([*lines, "", f"Geometric mean over {len(there)}: {first}, {second}.", ""])


def main() -> None:
    """Measure, and write the table."""
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] == ["--one"]:
        sys.stdout.write(json.dumps(times_of(sys.argv[2])))
        return
    found = programs()

    names = sys.argv[1:] or list(found)
    rows: dict[str, tuple[float, float, float] | None] = {}
    for name in names:
        rows[name] = row(name)
        sys.stderr.write(f"{name} {rows[name]}\n")
    text = report(rows)
    sys.stdout.write(text)
    if not sys.argv[1:]:
        (ROOT / "benchmarks" / "results" / "first_results.md").write_text(text)


if __name__ == "__main__":
    main()
