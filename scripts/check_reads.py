"""Programs that change Python's state between calls, against Python: ``python scripts/check_reads.py [SEED [COUNT]]``.

Prints what differs and what is refused, and ends with the counts; the exit status is 1 where anything differs.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.functions import state_programs as states
from tests.functions.drawn import Program, count_faults


def drawn(rng: random.Random) -> Program:
    """A program whose state changes between its calls."""
    program = states.draw(rng)
    return program.told, lambda: states.fault(program)


if __name__ == "__main__":
    sys.exit(count_faults(drawn, "followed"))
