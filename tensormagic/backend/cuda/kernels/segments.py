"""Scatter values into repeated places in a fixed order: sorted by place, then reduced piece by piece.

A thread goes through a piece of neighbours, in NumPy's order. It stores into places whose values all lie within the
piece; its first and its last place may continue in other pieces, and are left to the next launch, which has 32
times fewer values. No two threads store into one place and nothing is atomic, so that repeated runs give the same
bits.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tensormagic.backend.cuda.compiling import machine_code
from tensormagic.backend.cuda.compiling.compiler import compiled
from tensormagic.backend.cuda.device import Device, DeviceArray
from tensormagic.backend.cuda.kernels.launch import Count, Launch, Scratch
from tensormagic.ir.size import Symbol, apply, atom

PIECE = 64  # neighbouring values that one thread processes
THREADS = 256

STEPS = {  # sums, products, maxima and minima; nan wins both
    "+": "{0} + {1}",
    "*": "{0} * {1}",
    ">": "{1} if {1} > {0} or {1} != {1} else {0}",
    "<": "{1} if {1} < {0} or {1} != {1} else {0}",
}
_COUNT, _COLUMNS, _TAIL, _EXTENT, _PIECES = (
    atom(Symbol(name)) for name in ("count", "columns", "tail", "extent", "pieces")
)

_SOURCE = """def step(a, b):
    return {step}

def keep(target, key, total, base, tail, inside):
    at = (base + key) * tail + inside
    target[at] = np.{dtype}(step(target[at], total))

def kernel(target, keys, values, next_keys, next_values, count, columns, tail, extent, pieces):
    i = block() * {threads} + thread()
    if i < pieces * columns:
        piece = quotient(i, columns)
        column = rest(i, columns)
        base = quotient(column, tail) * extent
        inside = rest(column, tail)
        k = piece * {length}
        stop = k + {length}
        if stop > count:
            stop = count
        stop = stop - 1
        key = keys[k]
        total = values[k * columns + column]
        first = 1
        place = 2 * piece
        while k + 1 < stop:
            k = k + 1
            value = values[k * columns + column]
            if keys[k] == key:
                total = np.{dtype}(step(total, value))
            else:
                if first == 0 or pieces == 1:
                    keep(target, key, total, base, tail, inside)
                else:
                    next_values[place * columns + column] = total
                    if column == 0:
                        next_keys[place] = key
                first = 0
                key = keys[k]
                total = value
        if k < stop:
            value = values[stop * columns + column]
            last = keys[stop]
            if pieces == 1:
                if last == key:
                    value = np.{dtype}(step(total, value))
                else:
                    keep(target, key, total, base, tail, inside)
            elif last != key and first == 0:
                keep(target, key, total, base, tail, inside)
            elif first == 1:
                next_values[place * columns + column] = total
                if column == 0:
                    next_keys[place] = key
            else:
                value = np.{dtype}(step(total, value))
            place = place + 1
            key = last
            total = value
        if pieces == 1:
            keep(target, key, total, base, tail, inside)
        else:
            next_values[place * columns + column] = total
            if column == 0:
                next_keys[place] = key
"""


@cache
def folded(step: str, dtype: str) -> Launch:
    """Return the launch that reduces sorted values of a dtype by one of `STEPS`."""
    text = STEPS[step].format("a", "b")
    source = _SOURCE.format(step=text, dtype=dtype, threads=THREADS, length=PIECE)
    arrays = [Scratch(name, _COUNT, kind, written) for name, kind, written in _arrays(dtype)]
    counts = [Count(s) for s in (_COUNT, _COLUMNS, _TAIL, _EXTENT, _PIECES)]
    blocks = apply("floordiv", _PIECES * _COLUMNS + (THREADS - 1), THREADS)
    return Launch("segments", source, source, (*arrays, *counts), blocks, THREADS)


def _arrays(dtype: str) -> list[tuple[str, str, bool]]:
    return [
        ("target", dtype, True),
        ("keys", "int64", False),
        ("values", dtype, False),
        ("next_keys", "int64", True),
        ("next_values", dtype, True),
    ]


DTYPES = frozenset(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)) | {"float32", "float64"}
_loaded: WeakKeyDictionary[Any, dict[Launch, Any]] = WeakKeyDictionary()  # per device


def _kernel(device: Device, launch: Launch) -> Any:
    known = _loaded.setdefault(device, {})
    if launch not in known:
        code = compiled(launch, device.capability)
        known[launch] = machine_code.loaded(device, code)
    return known[launch]


def store(device: Device, step: str, target: DeviceArray, places: DeviceArray, values: DeviceArray, axis: int) -> None:
    """Reduce values into places along an axis of a C-ordered array, in place.

    Parameters
    ----------
    device
        Where the arrays are.
    step
        One of `STEPS`.
    target, values
        ``values`` has the axes of ``places`` in place of the axis; of another dtype, it is converted.
    places
        From 0 on, and inside.
    axis
        Of the target.

    Raises
    ------
    MissingCompilerError, UnsupportedError
        Where there is no compiler, or it refuses the kernel.
    """
    xp = device.library
    if values.dtype != target.dtype:
        values = values.astype(target.dtype)
    count, extent = places.size, target.shape[axis]
    head, tail = int(np.prod(target.shape[:axis])), int(np.prod(target.shape[axis + 1 :]))
    columns = head * tail
    flat = xp.reshape(places, (count,))
    order = xp.argsort(flat, kind="stable")
    keys = xp.take(flat, order)
    rows = xp.reshape(xp.moveaxis(xp.reshape(values, (head, count, tail)), 1, 0), (count, columns))
    rows = xp.take(rows, order, axis=0)
    launch = folded(step, target.dtype.name)
    kernel = _kernel(device, launch)
    while True:
        pieces = -(-count // PIECE)
        left = 2 * pieces - (count % PIECE == 1)
        next_keys, next_rows = xp.empty(max(left, 2), np.int64), xp.empty((max(left, 2), columns), target.dtype)
        sizes = [count, columns, tail, extent, pieces]
        grid = -(-pieces * columns // THREADS)
        arguments = [target, keys, rows, next_keys, next_rows, *map(np.int64, sizes)]
        device.launch(kernel, (grid,), (THREADS,), arguments)
        if pieces == 1:
            return
        count, keys, rows = left, next_keys, next_rows
