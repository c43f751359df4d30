"""Kernels' text as LLVM's language in one pass: the same kinds and the same bits as by Numba's front end, which the text was made for."""

from __future__ import annotations

import operator
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import types
from numba.core.registry import cpu_target

import tensormagic
from tensormagic.backend.compiling.messages import Code, Request
from tensormagic.backend.cpu.by_numba import lowered_by_numba
from tensormagic.backend.cpu.code import optimise
from tensormagic.backend.cpu.kinds import KINDS, UnknownTextError, arithmetic, comparison
from tensormagic.backend.cpu.loader import load
from tensormagic.backend.cpu.target import target_machine
from tensormagic.backend.cpu.text import SYMBOL, module_of

NUMBAS = {name: types.boolean if name == "bool" else getattr(types, name) for name in KINDS}


@pytest.mark.parametrize(("ours", "theirs"), [(arithmetic, operator.add), (comparison, operator.eq)])
def test_kinds_are_numbas(ours, theirs) -> None:
    """Integers are compared in a kind that has both: Numba takes the smallest."""
    cpu_target.typing_context.refresh()
    for a, left in NUMBAS.items():
        for b, right in NUMBAS.items():
            signature = cpu_target.typing_context.resolve_function_type(theirs, (left, right), {})
            wanted = str(signature.return_type if theirs is operator.add else signature.args[0])
            found = ours(a, b)
            if theirs is operator.eq and {found[:3], wanted[:3]} <= {"int", "uin"}:
                assert all(np.can_cast(k, found) for k in (a, b, wanted))
            else:
                assert found == wanted, (a, b)


EVERYTHING = """
def kernel(table):
    f = array(table, 1, "float64", 0)
    k = array(table, 2, "int64", 1)
    out = array(table, 3, "float64", 2)
    small = array(table, 4, "float32", 3)
    true = array(table, 5, "bool", 4)
    room = scratch(8, "float64", 5)
    n = table[6]
    c = real(table, 7)
    last = 0
    best = 0
    for i in range(0, n - n % 2, 2):
        if stopped(table):
            return
        last = i + np.int64(float(k[i]) + float(small[i]) * 0)
        x = f[i] * c - k[i] / 3
        best = x if x > best or (x != x and best == best) else best
        y = x if 0 <= k[i] < 64 else f[i + 1] / 2.0
        room[i % 8] = exp(y) + sin(c)
        out[i] = room[i % 8] + (k[i] // -7 + k[i] % 5 - (k[i] << 2) + (k[i] >> 1) + (~k[i] ^ 3 | 8 & k[i]))
        out[i + 1] = abs(-y) + sqrt(abs(x)) + floor(x) + np.int64(np.int8(k[i])) + (1 if not x < 0 else 2)
        true[i + 1] = remainder(f[i], y) < fmod(c, f[i + 1]) or floor_divide(y, f[i]) == floor_divide(c, x)
        small[i] = np.float32(x) * small[i] + np.float32(0.1)
        true[i] = bool((x > 0) & (y < 1)) or k[i] == 0
    w = 0
    while True:
        if w >= n or f[w] > 3.0:
            break
        w += 1
        if w == 5:
            out[n] = complex_divide(complex(f[0], c), complex(c, f[1])).imag
        elif w > 5:
            out[n + 1] = (complex(c, f[2]) * complex(f[1], 2.0)).real
        else:
            pass
    out[n + 2] = best + last + w
"""


def bits(module, symbol: str) -> list[bytes]:
    optimise(module)
    kernel = load(Code(symbol, target_machine().emit_object(module), 0.0))
    rng, n = np.random.default_rng(3), 1001
    arrays = [rng.normal(size=n + 1), rng.integers(-90, 90, n + 1), np.zeros(n + 3)]
    arrays += [rng.normal(size=n).astype("f4"), np.zeros(n, bool)]
    flag, unused = np.zeros(8, np.uint8), np.zeros(8, np.int64)
    (number,) = struct.unpack("<q", struct.pack("<d", 1.7))
    kernel(unused.ctypes.data, unused.ctypes.data, struct.pack("8q", flag.ctypes.data, *map(id, arrays), n, number))
    return [a.tobytes() for a in arrays]


def test_the_bits_are_numbas() -> None:
    from llvmlite import binding

    assert bits(binding.parse_assembly(module_of(EVERYTHING)), SYMBOL) == bits(*lowered_by_numba(EVERYTHING))


@pytest.mark.parametrize(
    "line", ["print(1)", "x = [1]", "y = z", "for i in range(3, 0, -1):\n        pass", "x = 1.5 // 2.0"]
)
def test_what_is_not_known_is_said(line: str) -> None:
    with pytest.raises(UnknownTextError):
        module_of(f"def kernel(table):\n    {line}\n")


def test_a_name_that_widens_is_wide_from_the_start() -> None:
    text = module_of("def kernel(table):\n    x = 1\n    for i in range(3):\n        x = x + 0.5\n")
    assert "alloca double" in text


def test_the_worker_imports_neither_numba_nor_numpy() -> None:
    """Nor the package: a process that compiles is there in a fifth of a second."""
    script = Path(tensormagic.__file__).parent / "backend" / "compiling" / "worker.py"
    message = Request("def kernel(table):\n    pass\n").message("k")
    code = f"""
import runpy, sys
worker = runpy.run_path({str(script)!r})
worker["_stand_in"](); worker["_warm"]()
assert worker["answer"]({message!r})["error"] == ""
print([name for name in ("numba", "numpy", "tensormagic.ir", "tensormagic.config") if name in sys.modules])
"""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
