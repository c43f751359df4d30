"""Programs over what objects hold, against Python: ``python scripts/check_objects.py [SEED [COUNT]]``.

Prints what differs and what is refused, and ends with the counts; the exit status is 1 where anything differs.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.functions import object_programs as objects
from tests.functions.drawn import Program, count_faults


def drawn(rng: random.Random) -> Program:
    """A program over what objects hold."""
    told, text = objects.draw(rng)
    return told, lambda: objects.fault(text)


if __name__ == "__main__":
    sys.exit(count_faults(drawn, "the same"))
