"""Programs over what objects hold, against Python: ``python scripts/check_objects.py [SEED [COUNT]]``.

Prints what differs and what is refused, and ends with the counts; the exit status is 1 where anything differs.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tensormagic as tm
from tests.functions import object_programs as objects


def main() -> int:
    """Draw, run, and count."""
    seed, count = (int(a) for a in (*sys.argv[1:], *["0", "2000"][len(sys.argv) - 1 :]))
    tm.config.tier = "numpy"
    rng = random.Random(seed)  # noqa: S311 (programs)
    found: Counter[str] = Counter()
    for _ in range(count):
        told, text = objects.draw(rng)
        try:
            fault = objects.fault(text)
        except Exception:  # noqa: BLE001 (an error of ours is a difference)
            fault = traceback.format_exc(limit=-2)
        kind = "the same" if not fault else "refused" if fault.startswith("refused") else "different"
        found[kind] += 1
        if fault:
            print(f"{told}: {fault}")
    print(f"seed {seed}, {count} programs: " + ", ".join(f"{n} {kind}" for kind, n in found.items()))
    return int(bool(found["different"]))


if __name__ == "__main__":
    sys.exit(main())
