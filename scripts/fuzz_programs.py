"""Hold N random programs against plain NumPy: ``python scripts/fuzz_programs.py N [SEED] [--compiled] [--write]``."""

from __future__ import annotations

import argparse
import collections
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensormagic as tm
from tests.programs.random_programs import compare_cell, compare_function, program


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--form", choices=["both", "cell", "function"], default="both")
    parser.add_argument("--quiet", action="store_true")
    options = parser.parse_args()
    tm.config.tier, tm.config.math = "numba" if options.compiled else "numpy", "exact"
    ended, refused = collections.Counter(), collections.Counter()
    start = time.time()
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError("20 seconds")))
    for seed in range(options.seed, options.seed + options.count):
        function = options.form == "function" or (options.form == "both" and seed % 2 == 1)
        seen: list[str] = []
        signal.alarm(20)
        made = program(seed, function=function)
        try:
            how = (compare_function if function else compare_cell)(made, seen, 1e-9 if options.compiled else 0.0)
        except Exception as error:
            how = "different"
            print(f"--- program {seed} {'function' if function else 'cell'}\n{made.helpers}{made.cell}\n    ==> {type(error).__name__}: {str(error)[:400]}", flush=True)
        ended[how] += 1
        refused.update(seen)
    print(f"{options.count} programs in {time.time() - start:.0f} s: " + ", ".join(f"{n} {how}" for how, n in sorted(ended.items())))
    for what, n in refused.most_common(40):
        print(f"{n:6d} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
