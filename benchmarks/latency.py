"""What somebody waits for: new cells beside plain NumPy's, a session's first cell in a kernel, calls, `tensormagic doctor`.

``python benchmarks/latency.py [FILE.md]``
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from IPython.core.interactiveshell import InteractiveShell  # noqa: TID251 (cells are what is measured)
from IPython.utils.capture import capture_output  # noqa: TID251
from jupyter_client.manager import KernelManager

import tensormagic as tm

CELLS = {
    "logistic loss, 569 x 30": "np.mean(np.log(1 + np.exp(-y * (X @ w + {k}))))",
    "softmax, 1000 x 1000": "np.exp(S - S.max(1, keepdims=True) + {k}) / np.exp(S - S.max(1, keepdims=True)).sum(1, keepdims=True)",
    "cross entropy, 10^6": "np.mean(np.log(1 + np.exp(-abs(u))) + np.maximum(u, 0) - u * t + {k})",
    "least squares, 500 x 40": "np.linalg.norm(np.linalg.solve(A.T @ A + {k} * np.eye(40), A.T @ a) - np.ones(40))",
}
GRADIENT = "%%tensor --grad w\nnp.mean(np.log(1 + np.exp(-y * (X @ w + {k}))))"
RUNS = 7
SESSIONS = 5
SMALL = "np.mean(np.log(1 + np.exp(-y * (X @ w + {k}))))"
SETUP = """import numpy as np
rng = np.random.default_rng(0)
X, w, y = rng.normal(size=(569, 30)), rng.normal(size=30), np.sign(rng.normal(size=569))"""


def notebook() -> InteractiveShell:
    """A shell with data and the extension."""
    shell = InteractiveShell.instance()
    rng = np.random.default_rng(0)
    shell.push(
        {
            "np": np,
            "X": rng.normal(size=(569, 30)),
            "w": rng.normal(size=30),
            "y": np.sign(rng.normal(size=569)),
            "S": rng.normal(size=(1000, 1000)),
            "u": rng.normal(size=10**6),
            "t": rng.normal(size=10**6),
            "A": rng.normal(size=(500, 40)),
            "a": rng.normal(size=500),
        }
    )
    shell.run_line_magic("load_ext", "tensormagic")
    return shell


def seconds(shell: InteractiveShell, text: str) -> float:
    """The time that a cell takes, with its display."""
    with capture_output():
        start = time.perf_counter()
        shell.run_cell(text, store_history=True).raise_error()
        return time.perf_counter() - start


def first_results(shell: InteractiveShell) -> list[str]:
    """Rows: each run is a cell that was never seen, since its constant is new."""
    seconds(shell, "%%tensor\nw * 2.0")  # the display's own imports, as the notebook's first cell pays them
    rows = []
    cells = {name: (text, f"%%tensor\n{text}") for name, text in CELLS.items()}
    cells["logistic loss with gradient (beside the loss alone)"] = (CELLS["logistic loss, 569 x 30"], GRADIENT)
    for name, (plain, captured) in cells.items():
        ours, theirs = [], []
        for k in range(RUNS):
            theirs.append(seconds(shell, plain.format(k=k + 1.5)))
            ours.append(seconds(shell, captured.format(k=k + 1.5)))
        a, b = statistics.median(theirs) * 1e3, statistics.median(ours) * 1e3
        rows.append(f"| {name} | {a:.1f} | {b:.1f} | {b - a:.1f} | {max(ours) * 1e3 - a:.1f} |")
    return rows


def asked(client: Any, pid: int, text: str) -> np.ndarray:
    """Milliseconds from a request to the end of its answer, with all that a page is sent: by the clock, and of the kernel's own thread."""
    start, worked = time.perf_counter(), processor(pid)
    answer = client.execute_interactive(text, output_hook=lambda _message: None, timeout=60)
    if answer["content"]["status"] != "ok":
        raise RuntimeError(answer["content"])
    return np.array([time.perf_counter() - start, processor(pid) - worked]) * 1e3


def processor(pid: int) -> float:
    """Seconds that the thread which runs a kernel's cells has computed; what else the machine does is not in them."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def sessions() -> list[str]:
    """Rows: cells of new kernels, over Jupyter's protocol; each cell is one that was never seen."""
    found: dict[str, list[np.ndarray]] = {}
    for _ in range(SESSIONS):
        manager: Any = KernelManager(kernel_name="python3")
        manager.start_kernel()
        client = manager.client()
        client.start_channels()
        client.wait_for_ready()
        try:
            pid = manager.provisioner.pid
            asked(client, pid, SETUP)
            plain = np.median([asked(client, pid, SMALL.format(k=k)) for k in range(5)], axis=0)
            found.setdefault("`%load_ext tensormagic`", []).append(asked(client, pid, "%load_ext tensormagic"))
            for options in ("", " --grad w"):
                cells = [asked(client, pid, f"%%tensor{options}\n{SMALL.format(k=k + 0.5)}") - plain for k in range(8)]
                if not options:
                    found.setdefault("the first `%%tensor` cell, more than plainly", []).append(cells[0])
                found.setdefault(f"a later one (`%%tensor{options}`), more", []).append(np.median(cells[1:], axis=0))
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    rows = {name: (*np.median(ms, axis=0), *np.max(ms, axis=0)) for name, ms in found.items()}
    return [
        f"| {name} | {wall:.0f} | {worst:.0f} | {own:.0f} | {most:.0f} |"
        for name, (wall, own, worst, most) in rows.items()
    ]


COMMAND = "import tensormagic_command; tensormagic_command.main()"  # what the installed script does


def doctor() -> str:
    """Seconds of `tensormagic doctor`: by the clock, and of the processors."""
    clock: list[float] = []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(SESSIONS):
        start = time.perf_counter()
        command = [sys.executable, "-c", COMMAND, "doctor"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        clock.append(time.perf_counter() - start)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / SESSIONS
    return f"`tensormagic doctor`: {statistics.median(clock):.1f} s (at worst {max(clock):.1f} s), {cpu:.1f} s of processor time."


def call_cost() -> float:
    """Microseconds of a call with three arrays of three elements, the best of five times ten thousand."""
    tm.config.tier = "numba"
    function = tm.tensor(lambda x, y, z: np.exp(x) * y + z)
    x, y, z = np.ones(3), np.full(3, 2.0), np.zeros(3)
    function(x, y, z)
    best = min(_timed(function, x, y, z) for _ in range(5))
    tm.config.tier = "auto"
    return best


def _timed(function: tm.Function, *args: np.ndarray) -> float:
    start = time.perf_counter()
    for _ in range(10_000):
        function(*args)
    return (time.perf_counter() - start) * 100


def main() -> None:
    """Measure and print."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "numba", "ipython"))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}"
    page = "\n".join(
        [
            "# First results, and calls",
            "",
            f"Made by `python benchmarks/latency.py`, {dt.datetime.now(dt.UTC).date()}; {machine}, {versions}.",
            "",
            f"Wall milliseconds of a cell with its display, median of {RUNS}; each run is a cell that was never seen before.",
            "",
            "| cell | NumPy | `%%tensor` | more | more, at worst |",
            "|---|---:|---:|---:|---:|",
            *first_results(notebook()),
            "",
            f"A call of a compiled function with three small arrays: {call_cost():.1f} µs.",
            "",
            f"Milliseconds in a kernel, from the request until the page has all of the answer; {SESSIONS} new kernels, and in each",
            "(but for the first cell) the median of seven cells that were never seen before. The plain cell is the loss alone.",
            "By the clock, and of the processor: the thread that runs the cells, which is what somebody waits for on an idle machine.",
            "",
            "| | median | worst | of the processor, median | worst |",
            "|---|---:|---:|---:|---:|",
            *sessions(),
            "",
            doctor(),
            "",
        ]
    )
    print(page)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page)


if __name__ == "__main__":
    main()
