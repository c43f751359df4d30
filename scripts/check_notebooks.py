"""Hold the cells of notebooks against plain IPython: ``check_notebooks.py NOTEBOOK... [--as NAME@COMMIT] [--keep FOLDER] [--write]``.

Each notebook runs three times, in processes of their own: twice as it is, and once with every cell as a ``%%tensor`` cell. Compared
are, cell by cell, the variables, the cell's value, what was printed, the figures, warnings, and errors. What differs between the two plain
runs (clocks, addresses, unseeded draws, and memory that nobody has written, which `np.empty` gives filled otherwise in the second
one) is not counted, nor is a cell that raises in both alike; one that is refused by name runs plainly afterwards.

A cell is called slow if capturing it took the processor more than three times what the quicker plain run took, and 0.3 s more.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime as dt
import functools
import importlib.metadata
import io
import json
import os
import pickle
import platform
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.notebook.sameness import difference, form, names_of, text_difference  # noqa: E402 (found by the line above)

PAGE = ROOT / "benchmarks" / "results" / "notebooks.md"
SECONDS = 60  # of the processor, for a cell
TIMES, MORE = 3, 0.3  # from which on a captured cell is slow: times what Python takes, and seconds more
PATIENCE = 1800  # for a notebook
KINDS = ("same", "digits", "refused", "different", "raise alike", "not determined")
_LEFT_OUT = ("%matplotlib", "%pylab", "%load_ext", "%timeit", "%time ", "%config", "%precision", "!", "%%")
_MOST_FIGURES = 12
_LINE = re.compile(r"( on line \d+)? \(<?[\w/.-]+>?, line \d+\)")  # of an error of syntax
_UNSET = re.compile(r"\bempty(_like)?\(")
_FILLED = 37  # what memory holds in the second plain run that nobody has written
_MARK = re.compile(r"^# %%.*\n", re.MULTILINE)
_BLOCK = re.compile(
    r"^```(?:\{code-cell\}|python)[^\n]*\n(?:---\n.*?---\n|(?::[^\n]*\n)+)?(.*?)^```", re.MULTILINE | re.DOTALL
)


class TooLong(BaseException):
    """A cell has taken longer than it may."""


# one run of one notebook, in a process of its own -----------------------------------------------------------------------


def cells_of(path: Path) -> list[str]:
    """The code cells of a notebook that are Python alone, or hold lines of a magic that is left out."""
    if path.suffix in {".md", ".py"}:  # notebooks as text: MyST, and cells between lines of "# %%"
        whole = path.read_text(encoding="utf-8")
        texts = [m[1] for m in _BLOCK.finditer(whole)] if path.suffix == ".md" else _MARK.split(whole)
        return [text for text in map(without_magics, texts) if text.strip()]
    book = json.loads(path.read_text(encoding="utf-8"))
    sheets = [book, *book.get("worksheets", [])]
    found = [c for s in sheets for c in s.get("cells", []) if c["cell_type"] == "code"]
    texts = ["".join(c.get("source", c.get("input", ""))) for c in found]
    return [text for text in map(without_magics, texts) if text.strip()]


def without_magics(text: str) -> str:
    """A cell less lines of magics that have to do with plots, clocks or the machine; nothing, where that is all of it."""
    if text.lstrip().startswith("%%"):
        return ""
    return "\n".join(_less(line) for line in text.splitlines())


def _less(line: str) -> str:
    """A line, unless it is left out: nothing then, and in a block what does nothing."""
    bare = line.lstrip()
    if not bare.startswith(_LEFT_OUT):
        return line
    return line[: len(line) - len(bare)] + "pass" if bare != line else ""


@contextlib.contextmanager
def alarm(seconds: int) -> Generator[None]:
    """Raise TooLong in the block after so many seconds of the processor."""

    def ring(*_: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def shell_of(captured: bool, math: str) -> Any:
    """A shell without history, with the extension, at a level of rules, where cells are captured."""
    from IPython.core.interactiveshell import InteractiveShell  # noqa: TID251 (it is what this compares with)
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell.instance(config=config)
    shell.displayhook.write_format_data = lambda *_, **__: None
    shell.displayhook.write_output_prompt = lambda: None
    shell.display_pub.publish = lambda *_, **__: None
    if captured:
        import tensormagic as tm

        tm.config.tier = "numpy"
        tm.config.math = math
        shell.run_line_magic("load_ext", "tensormagic")
    return shell


def fill_memory() -> None:
    """Have NumPy give arrays that are not written yet with other numbers in them than it happens to give."""

    def filled(make: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(make)
        def made(*args: Any, **options: Any) -> Any:
            array = make(*args, **options)
            if isinstance(array, np.ndarray) and array.dtype.kind in "biufc":
                array.fill(np.array(_FILLED).astype(array.dtype))
            return array

        return made

    space: Any = np
    space.empty, space.empty_like = filled(np.empty), filled(np.empty_like)


def figures() -> list[Any]:
    """What is drawn, small; then the figures are closed, as a notebook does."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    import matplotlib.pyplot as plt

    found: list[Any] = []
    for number in plt.get_fignums()[:_MOST_FIGURES]:
        figure: Any = plt.figure(number)
        figure.set_dpi(40)
        try:
            figure.canvas.draw()
            found.append(np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(np.int16))
        except Exception as error:  # noqa: BLE001 (whatever it is, it is the same in both runs, or told)
            found.append(f"{type(error).__name__}: {error}")
    plt.close("all")
    return found


@contextlib.contextmanager
def heard(row: dict[str, Any]) -> Generator[None]:
    """Keep in ``row`` which warnings come in the block, each once; ours say what Python does not, and are left out."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        yield
    ours = [w for w in record if not w.category.__module__.startswith("tensormagic")]
    row["warned"] = sorted({*row.get("warned", []), *(f"{w.category.__name__}: {w.message}" for w in ours)})


def run_cell(shell: Any, text: str) -> dict[str, Any]:
    """What a cell gave."""
    row: dict[str, Any] = {}
    with heard(row):
        row |= _run(shell, text)
    return row


def _run(shell: Any, text: str) -> dict[str, Any]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            with alarm(SECONDS):
                result = shell.run_cell(text, store_history=True)
        except TooLong:
            return {"error": ("TooLong", "", False, ["TooLong"])}
    error = result.error_before_exec or result.error_in_exec
    told = None
    if error is not None:
        kinds = [kind.__name__ for kind in type(error).__mro__]  # ours are NumPy's, too
        refused = not {"CaptureError", "UsageError", "DTypeError"}.isdisjoint(kinds)
        told = (kinds[0], _LINE.sub("", str(error)), refused, kinds)
        return {"error": told, "printed": out.getvalue().partition("------")[0]}
    return {"error": told, "printed": out.getvalue(), "value": result.result}


def form_or_error(value: Any) -> Any:
    """A value to be compared; one that does not let itself be computed is a difference."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return form(value)
    except Exception as error:  # noqa: BLE001 (whatever it is, it is told)
        return ("atom", type(error).__name__, str(error))


def one(path: Path, kind: str, out: Path, math: str) -> None:
    """Run a notebook, plainly or captured, and keep what its cells gave."""
    os.environ["MPLBACKEND"] = "agg"
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 (what notebooks draw from)
    shell = shell_of(kind not in {"plain", "filled"}, math)
    if kind == "filled":
        fill_memory()
    first = set(shell.user_ns)
    os.chdir(path.parent)
    sys.path.insert(0, str(path.parent))
    rows: list[dict[str, Any]] = []
    for number, text in enumerate(cells_of(path)):
        captured = kind == "tensor" or (kind == "alternate" and number % 2 == 1)
        begun, clock = time.process_time(), time.perf_counter()
        row = run_cell(shell, f"%%tensor\n{text}" if captured else text)
        row["seconds"] = time.process_time() - begun, time.perf_counter() - clock
        if row["error"] is not None and captured:
            figures()
            row["again"] = run_cell(shell, text)["error"]
        with heard(row):  # of what is computed now
            row["value"] = form_or_error(row.get("value"))
            row["space"] = {n: form_or_error(v) for n, v in names_of(shell.user_ns, first).items()}
        row["figures"] = figures()
        rows.append({"text": text, **row})
        with out.open("wb") as file:
            pickle.dump(rows, file)
        if row["error"] is not None and row["error"][0] == "TooLong":
            break


# the comparison ---------------------------------------------------------------------------------------------------------


def compared(plain: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """How a cell differs between two runs."""
    if plain["error"] or other["error"]:
        return _errors(plain["error"], other["error"])
    found = list(text_difference(plain["printed"], other["printed"]))
    found += difference(plain["value"], other["value"], "value")
    for name in sorted({*plain["space"], *other["space"]}):
        missing = ("missing", name)
        found += difference(plain["space"].get(name, missing), other["space"].get(name, missing), f"`{name}`")
    if plain["warned"] != other["warned"]:
        found.append("warnings: {} | {}".format(*(str(run["warned"])[:120] for run in (plain, other))))
    return [*found, *_drawn(plain["figures"], other["figures"])]


def _errors(plain: Any, other: Any) -> list[str]:
    alike = plain and other and plain[0] in other[3] and plain[1] == other[1]
    return [] if alike else [f"error: {_short(plain)} | {_short(other)}"]


def _short(error: Any) -> str:
    return "none" if error is None else f"{error[0]}: {error[1][:160]}"


def _drawn(left: list[Any], right: list[Any]) -> list[str]:
    if len(left) != len(right):
        return [f"figures: {len(left)} | {len(right)}"]
    for a, b in zip(left, right, strict=True):
        if isinstance(a, str) or isinstance(b, str):
            if isinstance(a, str) != isinstance(b, str) or a != b:
                return [f"figure: {a if isinstance(a, str) else 'drawn'} | {b if isinstance(b, str) else 'drawn'}"]
        elif a.shape != b.shape or np.mean(np.abs(a - b) > 8) > 0.002:
            return [f"figure: {a.shape} | {b.shape}"]
    return []


def verdict(
    plain: dict[str, Any], again: dict[str, Any], tensor: dict[str, Any], before: set[str]
) -> tuple[str, list[str]]:
    """What became of a cell; ``before`` are differences of variables that cells above have left."""
    noise = {d.partition(":")[0].removeprefix("digits ") for d in compared(plain, again)}
    if "error" in noise or (plain["error"] and plain["error"][0] == "TooLong"):
        return "not determined", []
    found = compared(plain, tensor)
    if plain["error"] and tensor["error"]:
        return ("raise alike" if not found else "different"), found
    if tensor["error"] and tensor["error"][2]:
        return "refused", found
    known = {d.partition(":")[0].removeprefix("digits ") for d in found}
    found = [d for d in found if d.partition(":")[0].removeprefix("digits ") not in {*noise, *before}]
    before.clear()
    before |= {n for n in known if n.startswith("`")}
    if found and _UNSET.search(plain["text"]) and all(d.partition(":")[0].partition("[")[0] == "value" for d in found):
        return "not determined", []  # memory that nobody has written
    if noise and not found:
        return ("not determined" if noise & {"text", "value"} else "same"), []
    if not found:
        return "same", []
    return ("digits" if all(d.startswith("digits") for d in found) else "different"), found


def is_slow(plain: float, captured: float) -> bool:
    """Whether a captured cell took much longer than a plain one."""
    return captured > TIMES * plain and captured > plain + MORE


def check(
    path: Path, keep: Path | None = None, captured: str = "tensor", math: str = "stable"
) -> list[tuple[str, str, list[str], tuple[float, float]]]:
    """The text of each cell, what became of it, its differences, and the seconds of the processor that it took plainly and captured.

    ``keep`` is where plain runs are kept for a next time.

    The third run captures every cell (``"tensor"``) or every other one (``"alternate"``).
    """
    with tempfile.TemporaryDirectory() as folder:
        runs: list[list[dict[str, Any]]] = []
        for number, kind in enumerate(("plain", "filled", captured)):
            out = Path(folder) / f"{number}.pickle"
            if keep is not None and kind in {"plain", "filled"}:
                out = keep / f"{'+'.join(path.resolve().parts[-4:])}.{number if kind == 'plain' else kind}.pickle"
                if out.exists():
                    runs.append(pickle.loads(out.read_bytes()))  # noqa: S301 (written by this script)
                    continue
            command = [sys.executable, __file__, "--one", kind, "--out", str(out), "--math", math, str(path)]
            environment = {**os.environ, "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"}
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    command,
                    check=False,
                    timeout=PATIENCE,
                    env=environment,
                    stderr=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                )
            runs.append(pickle.loads(out.read_bytes()) if out.exists() else [])  # noqa: S301 (written above)
    before: set[str] = set()
    length = min(len(runs[0]), len(runs[1]))
    rows: list[tuple[str, str, list[str], tuple[float, float]]] = []
    for k in range(length):
        if k >= len(runs[2]):
            rows.append((runs[0][k]["text"], "different", ["the captured run ended"], (0.0, 0.0)))
            break
        seconds = [run[k].get("seconds", (0.0, 0.0))[0] for run in runs]
        kind, found = verdict(runs[0][k], runs[1][k], runs[2][k], before)
        rows.append((runs[0][k]["text"], kind, found, (min(seconds[:2]), seconds[2])))
    return rows


def counted(results: Iterable[tuple[str, str, Any, Any]]) -> collections.Counter[str]:
    """How many cells became what."""
    return collections.Counter(kind for _, kind, _, _ in results)


def row_of(name: str, books: int, counts: collections.Counter[str]) -> str:
    """A row of the table."""
    judged = sum(counts[k] for k in KINDS[:4])
    same = counts["same"] + counts["digits"]
    share = f"{100 * same / judged:.1f} %" if judged else "–"
    return f"| {name} | {books} | {judged} | {' | '.join(str(counts[k]) for k in KINDS)} | {share} |"


def versions() -> str:
    """What it ran with."""
    names = ("numpy", "scipy", "matplotlib", "pandas", "scikit-learn", "ipython")
    parts: list[str] = []
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            parts.append(f"{name} {importlib.metadata.version(name)}")
    return f"Python {platform.python_version()}, {', '.join(parts)}"


HEAD = """# Public notebooks, cell by cell, against plain IPython

Made by `python scripts/check_notebooks.py NOTEBOOK... --as NAME@COMMIT --write`, one row a repository: every code cell runs plainly
and as a `%%tensor` cell; variables (type, dtype, shape, value), the cell's value, printed text, figures and errors are compared.
*Digits*: equal but for last digits. *Refused*: a CaptureError or a DTypeError with the line, or a UsageError. *Raise alike*: the same
error, type and text, in both (files and packages that are not there, wrong calls that a text shows); *not determined*: two plain
runs differ. These two are not among the cells that are judged. Cells with a cell magic are left out, and so are lines of `%matplotlib`,
`%timeit`, `%time` and `!`.

| repository | notebooks | cells judged | same | digits | refused | different | raise alike | not determined | same or digits |
|---|---|---|---|---|---|---|---|---|---|
"""


def written(row: str) -> None:
    """Put a row into the page, in place of that of the same name."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else HEAD
    name = row.split("|")[1]
    rows = [line for line in text.splitlines() if line and line.split("|")[1:2] != [name]]
    body = "\n".join([*rows, row])
    PAGE.write_text(HEAD + body.partition("|---|---|---|---|---|---|---|---|---|---|\n")[2] + "\n", encoding="utf-8")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--as", dest="name", default="", help="what the row is called: repository@commit")
    parser.add_argument("--most", type=int, default=0, help="stop after so many judged cells")
    parser.add_argument("--keep", type=Path, help="a folder where plain runs are kept, and taken from")
    parser.add_argument("--alternate", action="store_true", help="capture every other cell only")
    parser.add_argument("--math", default="stable", choices=("exact", "stable"), help="the level of rules of cells")
    parser.add_argument("--write", action="store_true", help="put the row into benchmarks/results/notebooks.md")
    options = parser.parse_args()
    if options.one:
        one(options.notebooks[0].resolve(), options.one, options.out, options.math)
        return
    total: collections.Counter[str] = collections.Counter()
    books = slow = 0
    for path in options.notebooks:
        results = check(path, options.keep, "alternate" if options.alternate else "tensor", options.math)
        counts = counted(results)
        total += counts
        books += 1
        print(f"== {path}: {dict(counts)}", flush=True)
        for text, kind, found, seconds in results:
            if kind in {"different", "refused"}:
                print(f"-- {kind}: {text!r:.700}\n     " + "\n     ".join(d[:300] for d in found[:4]), flush=True)
            if is_slow(*seconds):
                slow += 1
                print("-- slow: {:.2f} s, plainly {:.2f} s: {!r:.700}".format(*reversed(seconds), text), flush=True)
        if options.most and sum(total[k] for k in KINDS[:4]) >= options.most:
            break
    row = row_of(options.name or "all", books, total)
    print(row)
    print(f"{slow} slow; {versions()}, {dt.datetime.now(dt.UTC).date()}")
    if options.write:
        written(row)


if __name__ == "__main__":
    main()
