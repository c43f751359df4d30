"""Uniform draws on the device, with NumPy's own bits: of PCG64, the generator of ``np.random.default_rng``.

Its states follow each other by one product and one sum of 128 bits, so that a thread begins anywhere: it leaps to its first number, and
from each to its next one, as many on as there are threads. What takes a number of words that depends on them (normal numbers, integers),
and other generators, the host draws.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tensormagic.backend.cuda.compiler import Codes
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.launch import Count, Launch, Number, Scratch
from tensormagic.config import config
from tensormagic.ir.node import Node
from tensormagic.ir.size import Symbol, atom
from tensormagic.ops.draws.state import KINDS
from tensormagic.ops.op import Value

FEWEST = 1 << 14  # numbers from which on a launch is quicker than to draw and to copy
THREADS = 256
MOST_BLOCKS = 1024
_EACH = 4  # numbers a thread, where there are fewer than all threads take
_WORD = (1 << 64) - 1
_ALL = (1 << 128) - 1
_FACTOR = 0x2360ED051FC65DA44385DF649FCCF645
_METHODS = frozenset({"random", "uniform"})
_STATE = ("high", "low", "more_high", "more_low", "leap_high", "leap_low", "add_high", "add_low")

_SOURCE = f"""def kernel(out, count, {", ".join(_STATE)}, begin, width):
    i = block() * {THREADS} + thread()
    if i < count:
        zero = np.uint64(0)
        a = (zero, np.uint64(1))
        b = (zero, zero)
        m = (np.uint64({_FACTOR >> 64}), np.uint64({_FACTOR & _WORD}))
        c = (more_high, more_low)
        k = i + 1
        while k > 0:
            if k & 1 == 1:
                a = leap(a[0], a[1], m[0], m[1], zero, zero)
                b = leap(b[0], b[1], m[0], m[1], c[0], c[1])
            c = leap(c[0], c[1], m[0], m[1], c[0], c[1])
            m = leap(m[0], m[1], m[0], m[1], zero, zero)
            k = k >> 1
        state = leap(high, low, a[0], a[1], b[0], b[1])
        while i < count:
            out[i] = begin + width * unit_of_pcg(state[0], state[1])
            state = leap(state[0], state[1], leap_high, leap_low, add_high, add_low)
            i = i + blocks() * {THREADS}
"""


@lru_cache(1)
def launch() -> Launch:
    """The launch that draws."""
    count = atom(Symbol("count"))
    word, real = Number(np.uint64(0)), Number(np.float64(0))
    parameters = (Scratch("out", count, "float64", True), Count(count), *[word] * len(_STATE), real, real)
    return Launch("draws", _SOURCE, _SOURCE, parameters, 1, THREADS)


@lru_cache(1)
def _codes() -> Codes:
    return Codes([launch()], whole=True)


def may_be_here(node: Node) -> bool:
    """Whether a draw is the device's, where its generator is PCG64 and there are enough numbers."""
    types = node.types[1]
    plain = node["method"] in _METHODS and not node["legacy"] and set(node["options"]) <= {("dtype", "float64")}
    numbers = all(not a.type.shape and a.type.dtype.kind in "fiub" for a in node.args[1:])
    return plain and numbers and types.dtype == np.float64 and bool(types.shape)


def drawn(device: Device, node: Node, given: list[Value], size: Any) -> tuple[Value, Value] | None:
    """The next state, on the host, and the sample, on the device; None where the host has to draw."""
    if config.tier == "numpy" or not may_be_here(node):
        return None
    words, shape = np.asarray(given[0]), tuple(map(size, node.types[1].shape))
    count = int(np.prod(shape))
    if count < FEWEST or KINDS[int(words[0])] != "PCG64":
        return None
    codes = _codes()
    codes.start(device.capability)
    if config.tier == "numba":
        codes.wait()
    if not codes.ready():
        return None
    options = dict(zip(node["names"], map(float, given[1:]), strict=True))
    begin, end = (options.get("low", 0.0), options.get("high", 1.0)) if node["method"] == "uniform" else (0.0, 1.0)
    if not np.isfinite(end - begin) or end < begin:
        return None
    out = device.library.empty(shape, np.float64)
    blocks = min(-(-count // (THREADS * _EACH)), MOST_BLOCKS)
    state, more = (int(words[1 + k]) << 64 | int(words[2 + k]) for k in (0, 2))
    factor, term = _leap(more, blocks * THREADS)
    numbers = [np.uint64(w) for v in (state, more, factor, term) for w in (v >> 64, v & _WORD)]
    arguments = [out, np.int64(count), *numbers, np.float64(begin), np.float64(end - begin)]
    device.launch(codes.loaded(device, launch()), (blocks,), (THREADS,), arguments)
    factor, term = _leap(more, count)
    state = (state * factor + term) & _ALL
    after = words.copy()
    after[1:3] = state >> 64, state & _WORD
    return after, out


def _leap(more: int, count: int) -> tuple[int, int]:
    """By what a state is multiplied, and what is added to it, in so many steps."""
    factor, term, once, plus = 1, 0, _FACTOR, more
    while count:
        if count & 1:
            factor, term = factor * once & _ALL, (term * once + plus) & _ALL
        plus = (plus * once + plus) & _ALL
        once = once * once & _ALL
        count >>= 1
    return factor, term


__all__ = ["FEWEST", "drawn", "launch", "may_be_here"]
