"""Draw uniform numbers on the device, with the same bits as NumPy's PCG64 (``np.random.default_rng``), PCG64DXSM and Philox.

Each number takes one word of the generator, so that a thread can begin anywhere (``generators.py``). The host draws
what takes a number of words that depends on them (normal numbers, integers), and from generators that cannot skip
ahead (SFC64, MT19937).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tensormagic.backend.cuda.compiling.compiler import Codes
from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.kernels import generators
from tensormagic.backend.cuda.kernels.generators import GENERATORS
from tensormagic.config import config
from tensormagic.ir.node import Node
from tensormagic.ops.draws.state import KINDS
from tensormagic.ops.op import Value

FEWEST = 1 << 14  # numbers from which a launch is faster than to draw on the host and copy
_METHODS = frozenset({"random", "uniform"})


@lru_cache(len(GENERATORS))
def _codes(kind: str) -> Codes:
    return Codes([GENERATORS[kind].launch], whole=True)


def may_be_here(node: Node) -> bool:
    """Return whether a draw can run on the device: its generator has a kernel, and enough numbers are drawn."""
    types = node.types[1]
    count = math.prod(s for s in types.shape if isinstance(s, int)) if types.shape else 0
    if count < FEWEST and all(isinstance(s, int) for s in types.shape):
        return False
    plain = node["method"] in _METHODS and not node["legacy"] and set(node["options"]) <= {("dtype", "float64")}
    numbers = all(not a.type.shape and a.type.dtype.kind in "fiub" for a in node.args[1:])
    return plain and numbers and types.dtype == np.float64


def drawn(device: Device, node: Node, operands: list[Value], size: Any) -> tuple[Value, Value] | None:
    """Return the next state, on the host, and the sample, on the device, or None where the host has to draw."""
    if config.tier == "numpy" or not may_be_here(node):
        return None
    words, shape = np.asarray(operands[0]), tuple(map(size, node.types[1].shape))
    count = math.prod(shape)
    kind = KINDS[int(words[0])]
    if count < FEWEST or kind not in GENERATORS:
        return None
    generator, codes = GENERATORS[kind], _codes(kind)
    codes.start(device.capability)
    if config.tier == "numba":
        codes.wait()
    if not codes.ready():
        return None
    options = dict(zip(node["names"], map(float, operands[1:]), strict=True))
    begin, end = (options.get("low", 0.0), options.get("high", 1.0)) if node["method"] == "uniform" else (0.0, 1.0)
    if not np.isfinite(end - begin) or end < begin:
        return None
    out = device.library.empty(shape, np.float64)
    blocks, given = generator.call(words, count)
    arguments = [out, *given, np.float64(begin), np.float64(end - begin)]
    device.launch(codes.loaded(device, generator.launch), (blocks,), (generators.THREADS,), arguments)
    return generator.after(words, count), out
