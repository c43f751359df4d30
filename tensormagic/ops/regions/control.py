"""Region ops, all in one place: ``cond``, ``call``, ``checkpoint``, ``custom_gradient``, ``grad``, ``loop`` and ``while``."""

from __future__ import annotations

from tensormagic.ops.interpret import interpret
from tensormagic.ops.regions.branches import CALL, CHECKPOINT, COND, GRAD, call, checkpoint, cond, grad
from tensormagic.ops.regions.custom import CUSTOM, custom
from tensormagic.ops.regions.loops import LOOP, WHILE, loop, while_loop
from tensormagic.ops.regions.region import Derivatives, Region, install_derivatives

__all__ = [
    "CALL",
    "CHECKPOINT",
    "COND",
    "CUSTOM",
    "GRAD",
    "LOOP",
    "WHILE",
    "Derivatives",
    "Region",
    "call",
    "checkpoint",
    "cond",
    "custom",
    "grad",
    "install_derivatives",
    "interpret",
    "loop",
    "while_loop",
]
