"""Measure this machine on one core: floating-point operations and bytes per second, kept in the cache folder.

Two short programs: many fused multiply-adds on few numbers, and ``a = b + 3 * c`` over arrays (the triad of
McCalpin's STREAM) that fit in the cache, and that do not.
"""

from __future__ import annotations

import hashlib
import json
import platform
import struct
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from tensormagic.backend.compiling import cache, native
from tensormagic.backend.planning.plan import Plan
from tensormagic.backend.running.runtime import IDLE, UNUSED
from tensormagic.config import config

_CHAIN = 16  # multiply-adds on a number before it is stored
_FEW, _ITERATIONS = 256, 4_000
_SMALL, _LARGE = 8_000, 4_000_000  # elements of each of three arrays: 192 kB, and 96 MB
_REPEATS = 7
_WAIT = 30.0

Triad = Callable[[Any, Any, Any], None]


@dataclass(frozen=True)
class Machine:
    """What one core can do, in a second.

    Parameters
    ----------
    flops
        Floating-point operations.
    cached, memory
        Bytes, of arrays that fit in the cache, and of large ones.
    by
        What was measured: ``"compiled code"`` or ``"NumPy"``.
    """

    flops: float
    cached: float
    memory: float
    by: str


_known: dict[tuple[str, str], Machine] = {}


def measured() -> Machine:
    """Measure this machine once; later calls return the same result.

    Compiled code is measured if the cell is compiled, else NumPy: its product of small matrices and its triad.
    """
    compiles = config.tier != "numpy" and find_spec("numba") is not None
    key = (str(config.cache_folder), "compiled code" if compiles else "NumPy")
    found = _known.get(key)
    if found is None:
        file = f"machine-{_name(compiles)}.json"
        try:
            found = Machine(**json.loads(cache.read_text(file)))
        except (ValueError, TypeError):
            found = _by_machine_code() if compiles else None
            found = found or _by_numpy()
            cache.write_text(file, json.dumps(asdict(found)))
        _known[key] = found
    return found


def _name(compiles: bool) -> str:
    """Return a digest that distinguishes machines which share a folder."""
    parts = [platform.node(), platform.machine(), platform.processor(), np.__version__]
    if compiles:
        from tensormagic.backend.cpu.loader import machine

        parts += machine().values()
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _best(action: Callable[[], Any]) -> float:
    """Return the seconds of the fastest of a few runs, as disturbances only make a run slower."""
    times: list[float] = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def _streams(triad: Triad) -> tuple[float, float]:
    """Return bytes per second of a triad, cached and from memory: two arrays read and one written."""
    found: list[float] = []
    for count in (_SMALL, _LARGE):
        a, b, c = np.zeros(count), np.ones(count), np.ones(count)
        found.append(3 * 8 * count / _best(lambda a=a, b=b, c=c: triad(a, b, c)))
    return found[0], found[1]


def _by_numpy() -> Machine:
    side = 64  # so small that BLAS stays on one core
    left = np.full((side, side), 0.5)
    out = np.empty_like(left)

    def products() -> None:
        for _ in range(20):
            np.matmul(left, left, out=out)

    cached, memory = _streams(lambda a, b, c: np.add(b, c, out=a))
    return Machine(20 * 2 * side**3 / _best(products), cached, memory, "NumPy")


_FMA = (
    "def kernel(table):\n    n = table[1]\n"
    '    a = array(table, 2, "float64", 0)\n    b = array(table, 3, "float64", 1)\n'
    f"    for iteration in range(n):\n        for i in range({_FEW}):\n            x = a[i]\n            y = b[i]\n"
    + "            x = multiply_add(x, y, y)\n" * _CHAIN
    + "            a[i] = x\n"
)
_TRIAD = (
    "def kernel(table):\n    n = table[1]\n"
    '    a = array(table, 2, "float64", 0)\n    b = array(table, 3, "float64", 1)\n    c = array(table, 4, "float64", 2)\n'
    "    for i in range(n):\n        a[i] = b[i] + 3.0 * c[i]\n"
)


class _Programs:
    """The two sources, compiled as a plan's kernels are."""

    sources = (_FMA, _TRIAD)
    grows = False

    def __init__(self) -> None:
        self.functions: list[Any] = []

    def compile(self, functions: list[Any]) -> Callable[..., Any]:
        """Keep the machine code."""
        self.functions = functions
        return self.call

    def call(self, number: int, count: int, *arrays: Any) -> None:
        """Run one of them: its table holds the stop flag, a number, and arrays."""
        self.functions[number](UNUSED, UNUSED, struct.pack(f"{2 + len(arrays)}q", IDLE, count, *map(id, arrays)))


def _by_machine_code() -> Machine | None:
    """Return measurements by machine code, or None where there is no compiler."""
    programs = _Programs()
    handle = native.start(cast("Plan", programs))
    if not handle.wait(_WAIT) or None in programs.functions:
        return None
    few, factor = np.full(_FEW, 0.5), np.full(_FEW, 0.5)
    seconds = _best(lambda: programs.call(0, _ITERATIONS, few, factor))
    cached, memory = _streams(lambda a, b, c: programs.call(1, len(a), a, b, c))
    return Machine(2 * _CHAIN * _FEW * _ITERATIONS / seconds, cached, memory, "compiled code")
