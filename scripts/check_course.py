"""Run the units of the course as a teacher would, and their exercises as students would: ``check_course.py [UNIT...] [--write]``.

Every unit runs in a process of its own, with solutions. At each exercise the empty answer and the wrong answers of the text come first:
the check has to fail with its words, and with no error of Python that says nothing to a student; then the solution has to pass.
``--figures FOLDER`` keeps what is drawn, ``--show`` prints what cells show, ``--write`` writes ``benchmarks/results/course.md``.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import importlib.metadata
import io
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "kernel"), str(ROOT / "scripts")]  # a checkout, not an installed copy

import course  # noqa: E402 (found by the line above)

PAGE = ROOT / "benchmarks" / "results" / "course.md"
PATIENCE = 300  # for a unit, wrong answers included
SECONDS = 60  # of the processor, for a unit
HEAD = """# The units of the course, and their exercises

Made by `python scripts/check_course.py --write`. Each unit runs in a process of its own, from its first cell to its last with solutions.
Seconds are of the processor, with the start of Python, all answers, and compiling.
At each exercise the empty answer and typical wrong answers come first. *Fail as they should*: the check failed, and said what the
text of the course says that it has to say; then the solution passed.

| unit | seconds of the processor | code cells | exercises | wrong and empty answers | fail as they should | solutions that pass |
|---|---|---|---|---|---|---|
"""


def check(text: str, run: Callable[[str], BaseException | None]) -> dict[str, Any]:
    """Run a unit with all of its answers.

    Parameters
    ----------
    text
        The unit, as in ``lessons/``.
    run
        Runs a cell and returns its error.

    Returns
    -------
    dict
        Counts, and ``faults``: sentences that tell what is not as it should be.
    """
    found: dict[str, Any] = {"cells": 0, "answers": 0, "failing": 0, "passing": 0, "faults": []}
    exercises = course.exercises(text)
    for piece in course.pieces(text):
        if piece.kind in {"prose", "teacher", "wrong"}:
            continue
        if piece.kind == "answer":
            for fault in tried(exercises[piece.of], run, found):
                found["faults"].append(f"exercise {piece.of}: {fault}")
        error = run(piece.text)
        found["cells"] += 1
        if type(error).__name__ == piece.raises:
            continue
        if error is not None or piece.raises:
            where = f"exercise {piece.of}, the solution's {piece.kind}" if piece.of else piece.text.splitlines()[0]
            found["faults"].append(f"{where}: {type(error).__name__}: {error}")
        elif piece.kind == "check":
            found["passing"] += 1
    return found


def tried(exercise: course.Exercise, run: Callable[[str], BaseException | None], found: dict[str, Any]) -> list[str]:
    """What is not as it should be with the answers of an exercise that are not right."""
    faults: list[str] = []
    empty = course.without_solution(exercise.answer, exercise.number)
    for answer, says in [(empty, ""), *exercise.wrong]:
        found["answers"] += 1
        first = run(answer)
        error = run(exercise.check)
        fault = misled(first, error, says)
        if fault:
            faults.append(f"{'empty answer' if answer == empty else answer.strip().splitlines()[-1]!r}: {fault}")
        else:
            found["failing"] += 1
    return faults


def misled(first: BaseException | None, error: BaseException | None, says: str) -> str:
    """What is not as it should be with the errors of a wrong answer and of its check; empty where all is."""
    if error is None:
        return "the check passes"
    told = f"{first or ''}\n{error}"
    kinds = {kind.__name__ for e in (first, error) if e is not None for kind in type(e).__mro__}
    if not isinstance(error, AssertionError | NotImplementedError) and "TensorError" not in kinds:
        return f"the check fails with {type(error).__name__}: {error}"
    if not says:
        return "" if re.search("your answer goes here", told) else f"the check says {error}"
    return "" if says in told and len(str(error)) > 20 else f"the check says {error}, and not {says}"


def shell_runner(figures: Path | None, show: bool) -> Callable[[str], BaseException | None]:
    """A function that runs cells in a shell of its own, as a kernel would."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt
    from IPython.core.interactiveshell import InteractiveShell  # noqa: TID251 (it is what runs notebooks)
    from IPython.utils.capture import capture_output  # noqa: TID251 (the same)
    from traitlets.config import Config

    warnings.simplefilter("error", UserWarning)  # a unit that warns without saying so is not what was meant
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell: Any = InteractiveShell.instance(config=config)
    drawn = 0

    def run(cell: str) -> BaseException | None:
        nonlocal drawn
        start = time.perf_counter()
        with capture_output() as captured, contextlib.redirect_stderr(io.StringIO()):
            result = shell.run_cell(cell, store_history=True)
            pictures = [plt.figure(number) for number in plt.get_fignums()]
        if show:
            texts = [output.data.get("text/plain", "") for output in captured.outputs]
            seconds = time.perf_counter() - start
            head = cell if len(cell) < 60 else cell[:60].replace("\n", " | ") + " ..."
            told = captured.stdout if result.success else captured.stdout[-300:]
            print(f">>> {head}  ({seconds:.2f} s)\n{told}{captured.stderr}", *texts, sep="\n", flush=True)
        for picture in pictures if figures else ():
            drawn += 1
            picture.savefig(str(figures) + f"-{drawn}.png", dpi=70, bbox_inches="tight")
        plt.close("all")
        return result.error_before_exec or result.error_in_exec

    return run


def one(path: Path, figures: Path | None, show: bool) -> dict[str, Any]:
    """Check a unit in this process."""
    return check(path.read_text(encoding="utf-8"), shell_runner(figures, show))


def apart(path: Path, arguments: list[str]) -> dict[str, Any]:
    """Check a unit in a process of its own."""
    command = [sys.executable, __file__, "--one", str(path), *arguments]
    before = children()
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE, env={**os.environ})
    text, _, last = ran.stdout.rpartition("\n@@@")
    if text:
        print(text)
    nothing = {"faults": [ran.stderr[-2000:]], "cells": 0, "answers": 0, "failing": 0, "passing": 0}
    return {**(json.loads(last) if last else nothing), "seconds": children() - before}


def children() -> float:
    """The processor's seconds of the processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row_of(path: Path, found: dict[str, Any]) -> str:
    """A row of the table."""
    count = len(course.exercises(path.read_text(encoding="utf-8")))
    cells = [path.stem, f"{found['seconds']:.0f}", found["cells"], count]
    return "| " + " | ".join(map(str, [*cells, found["answers"], found["failing"], found["passing"]])) + " |"


def about() -> str:
    """When, where and with what it ran."""
    names = ("numpy", "scipy", "numba", "matplotlib", "scikit-learn", "ipython")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    machine = f"{platform.machine()}, {platform.system()}, {os.cpu_count()} cores"
    return f"Measured {dt.datetime.now(dt.UTC).date()} ({machine}): Python {platform.python_version()}, {versions}."


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("units", nargs="*", help="01, 02 … (default: all)")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--figures", type=Path, help="a folder for what is drawn")
    parser.add_argument("--show", action="store_true", help="print what cells show")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    if options.one:
        prefix = options.figures / options.one.stem if options.figures else None
        print("\n@@@" + json.dumps(one(options.one, prefix, options.show)))
        return 0
    if options.figures:
        options.figures.mkdir(parents=True, exist_ok=True)
    passed = ["--show"] * options.show + (["--figures", str(options.figures.resolve())] if options.figures else [])
    rows: list[str] = []
    faults: list[str] = []
    for path in course.units():
        if options.units and path.name[:2] not in options.units:
            continue
        found = apart(path, passed)
        if found["seconds"] > SECONDS:
            found["faults"].append(f"{found['seconds']:.0f} s, and {SECONDS} are allowed")
        rows.append(row_of(path, found))
        print(rows[-1], *(f"    {fault}" for fault in found["faults"]), sep="\n", flush=True)
        faults += found["faults"]
    if options.write:
        PAGE.write_text(HEAD + "\n".join(rows) + "\n\n" + about() + "\n", encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
