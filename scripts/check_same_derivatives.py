"""Differentiate drawn functions at drawn points in every way: ``check_same_derivatives.py FIRST LAST [--write]``.

Each is held against differences. Ways are forward and reverse mode, in loops, ``while`` loops, branches and batches, by
``tm.vjp``, and by compiled code for one in ``--compiled``; second derivatives by each order of modes. What is refused by name is
no error.
"""

from __future__ import annotations

import argparse
import datetime as dt
import platform
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import tensormagic as tm  # noqa: E402 (found by the line above)
from tests.functions import drawn_derivatives as drawn  # noqa: E402 (likewise)

PAGE = ROOT / "benchmarks" / "results" / "same_derivatives.md"


def main() -> int:
    """Check, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument(
        "--compiled", type=int, default=0, help="each how manieth function is compiled too; none where 0"
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="after which nothing new is begun")
    parser.add_argument("--write", action="store_true", help="write the page of results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tm.config.tier = "numpy"
    start, wrong, kinds = time.monotonic(), [], Counter[str]()
    seed = options.first
    while seed < options.last and time.monotonic() - start < options.seconds:
        compiled = bool(options.compiled) and seed % options.compiled == 0
        try:
            found = drawn.compared(seed, (*drawn.WAYS, drawn.compiled) if compiled else drawn.WAYS)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is told)
            found = [f"{seed}: {drawn.draw(seed)}: {type(error).__name__}: {error}"]
        one = drawn.draw(seed)
        if found is not None and one is not None:
            kinds[str(one.at.dtype)] += 1
            kinds["compiled"] += compiled
            kinds["empty"] += not one.at.size
            wrong += found
            sys.stdout.writelines(f"{line[:400]}\n" for line in found)
            sys.stdout.flush()
        seed += 1
    total = sum(kinds[k] for k in ("float64", "float32", "complex128"))
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    lines = [
        "# Derivatives that are the same in every way",
        "",
        f"`scripts/check_same_derivatives.py {options.first} {seed}`: drawn functions at drawn points, ties, zeros and empty arrays",
        "among them; first derivatives by nine ways and second ones by four, each held against differences wherever these say that",
        "there is a derivative.",
        f"{dt.datetime.now(tz=dt.UTC).date()}; {platform.machine()}, {versions}.",
        "",
        f"{total} functions: " + ", ".join(f"{n} {k}" for k, n in kinds.items() if n) + f". {len(wrong)} differ.",
        "",
        *(f"- {line.replace('|', '/')[:400]}" for line in wrong),
    ]
    text = "\n".join(lines).rstrip() + "\n"
    sys.stdout.write(text)
    if options.write:
        PAGE.write_text(text, "utf-8")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
