"""Streams of a device in random orders: ``python scripts/order_streams.py``; no card is needed.

Each program of tests/backend/cuda/streamed.py is run once on a device whose streams note what they are given, and then in 1,000 orders
that the events allow, which have to give the same values. Then each wait is left out, one by one: it has to be reported, and the
orders that give other values are counted.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.backend.cuda.streamed import PROGRAMS, traced  # noqa: E402


def main() -> int:
    """Write the table; the number of programs for which something is not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=1000)
    orders: int = parser.parse_args().orders
    begin, bad = time.perf_counter(), 0
    lines = [
        "| program | steps | orders with the same values | waits | reported when left out | orders with other values, for each wait |"
    ]
    lines.append("|---|---:|---:|---:|---:|---|")
    for name, program in PROGRAMS.items():
        device = traced(program)
        same = sum(device.orders(orders, seed=1)) if not device.races() else 0
        waits = device.waits()
        reported = sum(bool(device.races(one)) for one in waits)
        others = [sum(not s for s in device.orders(orders, seed=2, without=one)) for one in waits]
        bad += same != orders or reported != len(waits)
        counts = ", ".join(f"{one.stream} {n:,}" for one, n in zip(waits, others, strict=True))
        lines.append(
            f"| {name} | {len(device.steps)} | {same:,} of {orders:,} | {len(waits)} | {reported} | {counts} |"
        )
    versions = f"CPython {platform.python_version()}, NumPy {np.__version__}, no card"
    text = f"""# Streams of a device in random orders

`python scripts/order_streams.py`, {datetime.now(UTC):%Y-%m-%d}, {versions}: a device in NumPy.
Its streams are `in` (copies to it), `compute` and `out`.
{orders:,} orders that the events allow, drawn at random, for each program, and for each wait that is left out.

"""
    text += "\n".join([*lines, ""])
    (ROOT / "benchmarks" / "results" / "streams.md").write_text(text, encoding="utf-8")
    print(text, f"{time.perf_counter() - begin:.1f} s", sep="\n")
    return bad


if __name__ == "__main__":
    sys.exit(main())
