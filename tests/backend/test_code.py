"""Object code of kernels: what Numba writes is optimised once, linked with what it calls, and needs no Numba."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tensormagic.backend.cpu import by_numba
from tensormagic.backend.cpu.by_numba import lowered_by_numba
from tensormagic.backend.cpu.code import compile_source
from tensormagic.backend.cpu.loader import load

ROOM = np.zeros(8, np.int64)
UNUSED = ROOM.ctypes.data
ROOT = Path(__file__).parents[2]


def run(source: str, *arrays: np.ndarray) -> None:
    flag = np.zeros(8, np.uint8)
    table = struct.pack(f"{len(arrays) + 1}q", flag.ctypes.data, *map(id, arrays))
    load(compile_source(source))(UNUSED, UNUSED, table)


def test_a_kernel_computes() -> None:
    x, out = np.linspace(-3, 3, 1001), np.empty(1001)
    source = """
def kernel(table):
    a = array(table, 1, "float64", 0)
    b = array(table, 2, "float64", 1)
    for i in range(1001):
        b[i] = exp(a[i])
"""
    run(source, x, out)
    np.testing.assert_array_max_ulp(out, np.exp(x), 2)


def test_what_numba_compiles_apart_is_part_of_the_object() -> None:
    x, out = np.array([3, 5, 2]), np.empty(1, np.int64)
    source = """
def kernel(table):
    a = array(table, 1, "int64", 0)
    b = array(table, 2, "int64", 1)
    b[0] = a[0] ** a[1] + a[2]
"""
    run(source, x, out)
    assert out[0] == 3**5 + 2


def test_code_that_needs_numba_is_refused() -> None:
    with pytest.raises(RuntimeError, match="the code needs"):
        compile_source("def kernel(table):\n    print(table[0])\n")


def test_a_call_is_typed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
def kernel(table):
    a = array(table, 1, "float64", 0)
    for i in range(4):
        a[i] = {}
"""
    lowered_by_numba(source.format("a[i] * a[i]"))
    asked = []
    context = by_numba._typing._context
    usual = context.resolve_function_type
    monkeypatch.setattr(context, "resolve_function_type", lambda *call: asked.append(call[0]) or usual(*call))
    lowered_by_numba(source.format("a[i] * a[i] * a[i]"))
    assert not asked
    lowered_by_numba(source.format("a[i] // (a[i] - 1.5)"))
    assert asked


def test_a_name_may_be_assigned_again() -> None:
    x, out = np.array([3.0, -5.0, 2.0, 8.0]), np.empty(2)
    source = """
def kernel(table):
    a = array(table, 1, "float64", 0)
    b = array(table, 2, "float64", 1)
    best = a[0]
    total = 0.0
    for i in range(4):
        k = i
        if a[i] > best:
            best = a[i]
        k = k + 1
        total = total + k * a[i]
    for i in range(4):
        k = i
        total = total - k
    b[0] = best
    b[1] = total
"""
    run(source, x, out)
    assert out.tolist() == [8, 1 * 3 - 2 * 5 + 3 * 2 + 4 * 8 - 6]


APART = """
import mmap, random, sys
from tensormagic.backend.cpu.loader import load
from tensormagic.backend.compiling.messages import Code
code = Code(sys.argv[1], sys.stdin.buffer.read(), 0.0)
r, room, holes = random.Random(0), [], []
for _ in range(200):  # address space in small pieces, gigabytes apart
    room.append(mmap.mmap(-1, 3 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000))  # MAP_NORESERVE
    holes.append(mmap.mmap(-1, 4096 * r.choice([1, 2, 4, 8, 16]), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
r.shuffle(holes)
for _ in range(60):
    load(code)
    for _ in range(3):
        holes.pop().close()
print("loaded")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sets memory apart without reserving it")
def test_kernels_load_where_memory_is_in_pieces() -> None:
    """The parts of a kernel lie near each other: else the linker would end the process."""
    code = compile_source("""
def kernel(table):
    a = array(table, 1, "float64", 0)
    for i in range(1001):
        a[i] = exp(a[i]) + sin(a[i])
""")
    ran = subprocess.run(
        [sys.executable, "-c", APART, code.symbol], input=code.data, capture_output=True, check=False, cwd=ROOT
    )
    assert ran.stdout.decode().strip() == "loaded", ran.stderr.decode()
