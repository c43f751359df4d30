"""Drawn programs, counted: what scripts do with many of them, and the suite with a few."""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable

import tensormagic as tm

Program = tuple[str, Callable[[], str]]


def count_faults(draw: Callable[[random.Random], Program], fine: str) -> int:
    """Draw programs, run them, print what differs and what is refused, and count; 1 where anything differs, else 0.

    Parameters
    ----------
    draw
        Gives what is told of a program, and what runs it: that gives how it differs from Python, empty where it does not.
    fine
        What a program is called that does not differ.
    """
    seed, count = (int(a) for a in (*sys.argv[1:], *["0", "2000"][len(sys.argv) - 1 :]))
    tm.config.tier = "numpy"
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    for _ in range(count):
        told, fault_of = draw(rng)
        try:
            fault = fault_of()
        except Exception:  # noqa: BLE001 (an error of ours is a difference)
            fault = traceback.format_exc(limit=-2)
        kind = fine if not fault else "refused" if fault.startswith("refused") else "different"
        found[kind] += 1
        if fault:
            print(f"{told}: {fault}")
    print(f"seed {seed}, {count} programs: " + ", ".join(f"{n} {kind}" for kind, n in found.items()))
    return int(bool(found["different"]))
