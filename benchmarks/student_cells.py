"""Cells as students write them, plainly and captured: the same result, and the CPU time: ``python benchmarks/student_cells.py [NAME ...]``.

The cells are those of ``tests/notebook/student_cells.py`` and of ``tests/notebook/course_cells.py``. A time is that of capture
and of all that is computed; compilation, which goes on in another process, is not in it. Writes
``benchmarks/results/student_cells.md`` where no name is given.
"""

from __future__ import annotations

import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from IPython.core.interactiveshell import InteractiveShell  # noqa: TID251 (cells are what is measured)

ROOT = Path(__file__).parents[1]
RUNS = 3
QUICK = 0.25  # seconds


def plain(value: Any) -> Any:
    """A result as Python's own numbers and texts, with the kinds of what it is made of."""
    value = value.numpy() if hasattr(value, "numpy") else value
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), plain(value.tolist())]
    return (
        f"{type(value).__name__} {value:.10g}"
        if isinstance(value, float | np.floating)
        else (type(value).__name__, value)
    )


def seconds(shell: InteractiveShell, start: str, cell: str) -> tuple[float, Any]:
    """The median CPU time of some runs, each from the same variables, and what is in ``h``."""
    times: list[float] = []
    for _ in range(RUNS):
        shell.run_cell(start)
        begun = time.process_time()
        ran = shell.run_cell(cell)
        times.append(time.process_time() - begun)
        if ran.error_before_exec or ran.error_in_exec:
            raise SystemExit(f"{cell}\nfailed")
    return statistics.median(times), plain(shell.user_ns.pop("h"))


def main() -> None:
    """Measure, and write the table."""
    sys.path.insert(0, str(ROOT))
    from tests.notebook import course_cells, student_cells

    cells = {name: (student_cells.START, cell) for name, cell in student_cells.CELLS.items()}
    cells |= {name: (course_cells.START, cell) for name, cell in course_cells.CELLS.items()}
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "tensormagic")
    shell.run_cell(student_cells.START)
    shell.run_cell("%%tensor --quiet\nx.sum()")
    rows: list[tuple[str, float, float, bool]] = []
    for name in sys.argv[1:] or cells:
        start, cell = cells[name]
        (ours, found), (pythons, wanted) = (seconds(shell, start, magic + cell) for magic in ("%%tensor --quiet\n", ""))
        rows.append((name, pythons, ours, found == wanted))
        sys.stdout.write(
            f"{name:18} {pythons * 1e3:8.1f} {ours * 1e3:8.1f} ms  {'same' if found == wanted else 'DIFFERENT'}\n"
        )
    if sys.argv[1:]:
        return
    (ROOT / "benchmarks" / "results" / "student_cells.md").write_text(report(rows))


def report(rows: Sequence[tuple[str, float, float, bool]]) -> str:
    """The page."""
    ours, ratios = [o for _, _, o, _ in rows], [o / p for _, p, o, _ in rows]
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    versions = f"CPython {platform.python_version()}, numpy {np.__version__}"
    told = (
        f"CPU time in milliseconds, the median of {RUNS} runs of the cells of `tests/notebook/student_cells.py` and `course_cells.py`,",
        "as plain Python and as `%%tensor` cells, captured anew at each run.",
        f"{sum(same for *_, same in rows)} of {len(rows)} give the same.",
        f"Captured: median {statistics.median(ours) * 1e3:.0f} ms, worst {max(ours) * 1e3:.0f} ms;",
        f"{sum(s < QUICK for s in ours)} take less than {QUICK * 1e3:.0f} ms;",
        f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.1f} times Python's time.",
    )
    table = [f"| {n} | {p * 1e3:.1f} | {o * 1e3:.1f} | {'yes' if same else 'NO'} |" for n, p, o, same in rows]
    head = [
        "# Cells as students write them",
        "",
        f"{datetime.now(UTC).date()}, {machine}, {versions}.",
        "",
        " ".join(told),
        "",
    ]
    return "\n".join([*head, "| cell | Python | captured | the same |", "|---|---|---|---|", *table, ""])


if __name__ == "__main__":
    main()
