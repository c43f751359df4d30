"""All that somebody waits for, in one go, held against its limits: cells, `tensormagic doctor`, live views, the graph.

``python benchmarks/waiting.py [--write] [--busy]``: about three minutes. The wall times mean something on an idle machine alone, so on
another one it stops at once, unless it is told ``--busy``: then cells and ``tensormagic doctor`` are held to their limits by the time
of the processor, which others do not lengthen much. ``--write`` keeps the pages in ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
IDLE = 0.5  # load of the last minute, above which others compute too
PAGES = {"latency.py": "latency.md", "live_view.py": "live_view.md", "graph_view.py": "graph_view.md"}
# what is said of it, the page, the row, which number of it (the first is 0), which is the processor's time, the limit
LIMITS = (
    (
        "first small %%tensor cell, more than plainly, ms, at worst",
        "latency.md",
        "the first `%%tensor` cell",
        1,
        3,
        300.0,
    ),
    ("a later one, more, ms, at worst", "latency.md", "a later one (`%%tensor`)", 1, 3, 50.0),
    ("a later one with a gradient, more, ms, at worst", "latency.md", "a later one (`%%tensor --grad w`)", 1, 3, 50.0),
    ("tensormagic doctor, s, at worst", "latency.md", "`tensormagic doctor`", 1, 2, 3.0),
    ("live view, first change, ms, 95 %", "live_view.md", "| np.sin(a) * a", 1, 1, 50.0),
    ("live view, exact value, ms, 95 %", "live_view.md", "| np.sin(a) * a", 5, 5, 200.0),
    ("the same of 100,000 x 30, first change", "live_view.md", "| logistic loss, 100000 x 30", 1, 1, 50.0),
    ("the same of 100,000 x 30, exact value", "live_view.md", "| logistic loss, 100000 x 30", 5, 5, 200.0),
)


def number(page: str, row: str, place: int) -> float:
    """A number of a row of a page, after what the row is called."""
    line = next(line for line in page.splitlines() if row in line)
    rest = line[line.index(row) + len(row) :]
    return [float(found) for found in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*[a-z]\w)", rest)][place]


def measured(script: str, page: Path) -> str:
    """The page that a script writes."""
    to = ["--output", str(page)] if script == "graph_view.py" else [str(page)]
    command = [sys.executable, str(HERE / script), *to]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd=HERE.parent)
    return page.read_text(encoding="utf-8")


def main() -> int:
    """Measure, print the table, and say by the exit status whether all limits are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the pages in benchmarks/results")
    parser.add_argument(
        "--busy",
        action="store_true",
        help="measure though others compute too: by the processor's time",
    )
    options = parser.parse_args()
    load = os.getloadavg()[0]
    if load > IDLE and not options.busy:
        print(f"The load is {load:.1f}: wait until it is below {IDLE}, or say --busy.")
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = HERE / "results" if options.write else Path(temporary)
        pages = {name: measured(script, folder / name) for script, name in PAGES.items()}
    kept, how = True, ", so by the time of the processor" if load > IDLE else ""
    print(
        f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after{how}\n\n| what | measured | limit | |\n|---|---:|---:|---|"
    )
    for told, name, row, place, busy, limit in LIMITS:
        found = number(pages[name], row, busy if load > IDLE else place)
        kept = kept and found <= limit
        print(f"| {told} | {found:g} | {limit:g} | {'kept' if found <= limit else 'NOT kept'} |")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
