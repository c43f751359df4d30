"""Check the derivatives of every case of every op, at orders 1 to 3 in both modes and over stacks: ``check_derivatives.py [NAME ...]``.

The tests take one case of each op; this takes them all, or those whose names begin as given, and prints what fails.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.ops.test_derivatives import check
from tests.ops.test_higher_derivatives import check_stack, items, pulled, pushed


def main(names: list[str]) -> int:
    """Check the cases that are asked for; how many fail."""
    failed, start = 0, time.process_time()
    for name, function, points in items():
        if names and not name.startswith(tuple(names)):
            continue
        try:
            with np.errstate(all="ignore"):
                check("reference", function, points)
                for mode in (pushed, pulled):
                    check("reference", mode(function), points, twice=False)
                    check("reference", mode(mode(function)), points, twice=False)
                if not name.startswith("tell-"):
                    check_stack("reference", function, points)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is told)
            failed += 1
            sys.stdout.write(f"{name}: {type(error).__name__}: {str(error)[:300]}\n")
    sys.stdout.write(f"{failed} failed, {time.process_time() - start:.0f} s\n")
    return failed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
