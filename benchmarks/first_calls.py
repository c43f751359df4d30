"""The first call of a gradient, in a process of its own with empty caches: seconds until there is a result, and compiled code.

``python benchmarks/first_calls.py PROGRAM`` prints the seconds for one program; ``benchmarks/derivatives.py`` runs it for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

WARM_UP = 5.0  # seconds for the compiler to start, as between loading the extension and the first cell
LIMIT = 300.0


def of_tensormagic(name: str) -> tuple[float, float, float]:
    """Seconds until the first result, until compiled code is ready, and of one more call with it."""
    from derivative_programs import data, tensormagic_function

    import tensormagic as tm
    from tensormagic import session

    tm.config.tier = "auto"
    moving, fixed = data()[name]
    session.prepare()
    time.sleep(WARM_UP)
    both = tm.value_and_grad(tensormagic_function(name), tuple(range(len(moving))))
    start = time.perf_counter()
    both(*moving, *fixed)
    result = time.perf_counter() - start
    tm.config.tier = "numba"  # waits for what has been begun
    both(*moving, *fixed)
    ready = time.perf_counter() - start
    return result, ready, _again(lambda: both(*moving, *fixed))


def of_jax(name: str) -> tuple[float, float, float]:
    """The same of jax.jit, which gives no result before it has compiled."""
    import jax
    from derivative_programs import PEERS

    both = PEERS["jax.jit"][1]()[name][1]
    jax.block_until_ready(jax.jit(lambda x: x + 1)(1.0))
    start = time.perf_counter()
    both()
    ready = time.perf_counter() - start
    return ready, ready, _again(both)


def _again(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


WAYS = {"tensormagic": of_tensormagic, "jax.jit": of_jax}


def rows(names: list[str], peers: list[str]) -> list[str]:
    """A row for each program and each of those that take part."""
    found: list[str] = []
    for name in names:
        for peer in (p for p in WAYS if p in peers):
            with tempfile.TemporaryDirectory() as folder:
                run = subprocess.run(
                    [sys.executable, __file__, name, peer],
                    env={**os.environ, "TENSORMAGIC_CACHE_FOLDER": folder},
                    stdout=subprocess.PIPE,
                    timeout=LIMIT,
                    check=True,
                )
            result, ready, again = json.loads(run.stdout)
            found.append(f"| {name} | {peer} | {result:.2f} | {ready:.2f} | {again * 1e3:.3g} |")
    return found


if __name__ == "__main__":
    print(json.dumps(WAYS[sys.argv[2] if len(sys.argv) > 2 else "tensormagic"](sys.argv[1])))
