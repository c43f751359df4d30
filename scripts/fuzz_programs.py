"""Hold N random programs against plain NumPy: ``fuzz_programs.py N [SEED] [--compiled | --interpreted] [--words sizes] [--write]``."""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime as dt
import functools
import gc
import platform
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tensormagic as tm  # noqa: E402 (found by the line above)
from tests.backend.interpreted import interpreted  # noqa: E402 (as above)
from tests.programs.calls import call  # noqa: E402 (as above)
from tests.programs.drawn import PLACES, SIZES, drawn  # noqa: E402 (as above)
from tests.programs.growing import Program  # noqa: E402 (as above)
from tests.programs.random_programs import compare_cell, compare_function, program  # noqa: E402 (as above)

DRAWN: dict[str, Callable[[int], Program]] = {  # short programs, drawn from tables
    "sizes": functools.partial(drawn, words=SIZES),
    "places": functools.partial(drawn, words=PLACES),
    "calls": call,
}
PAGE = ROOT / "benchmarks" / "results" / "fuzz.md"
SECONDS = 60  # of the processor, for one program
PATIENCE = 900  # seconds of the clock, for a program that waits for a compiler
HEAD = """# Random programs against NumPy

Made by `python scripts/fuzz_programs.py N SEED [--compiled | --interpreted] --write` (*interpreted*: the compiled tier's plans, whose
kernels Python runs, and looks at each access). Programs with even numbers are run as cells, those with odd ones
as functions, at four sizes of their arguments. *Errors*: both raise, alike, or each the first that it meets of
several errors: here shapes and dtypes are looked at before there are values. *Promoted*: equal values, of which some are of the
wider of two dtypes, since data choose between two numbers of different dtypes; or an attribute, or an index, that a number of Python's
own has not, and a lazy one has.
*Digits*: equal but for the sign of a zero or last digits, in programs with powers, sums, `abs`, `clip` or `median`, which NumPy computes
otherwise by how an array lies in memory ("–": not told apart in that run). *Untaken*: an error in code that is traced and that Python
does not run with these arguments. *Unread*: NumPy raises where a value is made that nobody reads, and that is not computed: an index
out of bounds, a name that is not bound, an empty list that is stacked, rows of several lengths, a number that does not fit a dtype,
operands that do not fit, a fold or a new shape of too few elements, a part of an array that is stored over.
Forms *of sizes* and *of places* are short programs drawn from the tables of `tests/programs/drawn.py` (`--words`), which need not run;
*of calls* are single calls, stores and reads, drawn from those of `tests/programs/calls.py`, and equal to rounding.

{columns}
{rule}
"""
COLUMNS = [
    "date",
    "machine",
    "versions",
    "tier",
    "form",
    "programs",
    "first",
    "equal",
    "promoted",
    "errors",
    "refused",
    "digits",
    "untaken",
    "unread",
    "slow",
    "different",
]


class LateError(BaseException):
    """A program takes too long: nothing that it runs catches that."""


def _late(*_: Any) -> None:
    raise LateError


def one(seed: int, options: argparse.Namespace, refused: collections.Counter[str], rounding: float) -> str:
    """How one program ends; prints what differs."""
    function = options.form == "function" or (options.form == "both" and seed % 2 == 1)
    seen: list[str] = []
    made = DRAWN[options.words](seed) if options.words else program(seed, function=function)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(PATIENCE)
    try:
        how = (compare_function if function else compare_cell)(made, seen, rounding)
    except LateError:
        how = "slow"
        print(f"--- program {seed}: more than {SECONDS} seconds", flush=True)
    except Exception as error:  # noqa: BLE001 (any difference is reported)
        if options.words and getattr(error, "both", False):  # what need not run may have several errors
            return "error"
        how = "different"
        text = f"{made.helpers}{made.cell}\n    ==> {type(error).__name__}: {str(error)[:400]}"
        print(f"--- program {seed} {'function' if function else 'cell'}\n{text}", flush=True)
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
    refused.update(seen)
    return how


def write(tier: str, options: argparse.Namespace, ended: collections.Counter[str]) -> None:
    """Add a line to the table."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    counts = [
        ended[how]
        for how in ("same", "promoted", "error", "refused", "digits", "untaken", "unread", "slow", "different")
    ]
    cells = [
        dt.datetime.now(tz=dt.UTC).date(),
        platform.machine(),
        versions,
        tier,
        f"{options.form} of {options.words}" if options.words else options.form,
        options.count,
        options.seed,
    ]
    text = (
        PAGE.read_text(encoding="utf-8")
        if PAGE.exists()
        else HEAD.format(columns=f"| {' | '.join(COLUMNS)} |", rule="|---" * len(COLUMNS) + "|")
    )
    PAGE.write_text(text + "| " + " | ".join(map(str, [*cells, *counts])) + " |\n", encoding="utf-8")


def main() -> int:
    """Run programs; prints what differs, how many ended how, and what was refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--compiled", action="store_true", help="on the Numba tier, to rounding")
    parser.add_argument("--interpreted", action="store_true", help="as compiled, with kernels that Python runs")
    parser.add_argument("--form", choices=["both", "cell", "function"], default="both")
    parser.add_argument("--words", choices=list(DRAWN), help="short programs, drawn from a table")
    parser.add_argument("--write", action="store_true", help=f"add a line to {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    compiled = options.compiled or options.interpreted
    tm.config.tier, tm.config.math = "numba" if compiled else "numpy", "exact"
    ended: collections.Counter[str] = collections.Counter()
    refused: collections.Counter[str] = collections.Counter()
    signal.signal(signal.SIGALRM, _late)
    signal.signal(signal.SIGPROF, _late)
    gc.freeze()  # what has been imported stays
    gc.set_threshold(200_000, 20, 20)
    start = time.monotonic()
    with interpreted() if options.interpreted else contextlib.nullcontext():
        for seed in range(options.seed, options.seed + options.count):
            ended[one(seed, options, refused, 1e-9 if compiled or options.words == "calls" else 0.0)] += 1
    taken = time.monotonic() - start
    print(f"{options.count} programs in {taken:.0f} s: " + ", ".join(f"{n} {how}" for how, n in sorted(ended.items())))
    for what, n in refused.most_common(40):
        print(f"{n:6d} {what}")
    if options.write:
        write("interpreted" if options.interpreted else tm.config.tier, options, ended)
    return int(ended["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
