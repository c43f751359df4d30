"""Hold N random programs of stores and views against plain NumPy, on the NumPy tier: ``python scripts/fuzz_stores.py N [FIRST]``."""

from __future__ import annotations

import collections
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensormagic as tm
from tests.capture.store_programs import compare, grow


def main(count: int, first: int = 0) -> int:
    """Run programs number ``first`` to ``first + count - 1``; prints what differs, and how many ended how."""
    tm.config.tier, tm.config.math = "numpy", "exact"
    ended: collections.Counter[str] = collections.Counter()
    for seed in range(first, first + count):
        source = grow(seed)
        try:
            ended[compare(seed, source)] += 1
        except Exception as error:  # noqa: BLE001 (any difference is reported)
            ended["different"] += 1
            print(f"--- program {seed}\n{source}\n    {type(error).__name__}: {str(error)[:300]}")
    print(f"{count} programs: " + ", ".join(f"{n} {how}" for how, n in sorted(ended.items())))
    return ended["different"]


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
