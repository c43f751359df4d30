"""How much work steps of kernels are, counted before they run."""

from __future__ import annotations

from tensormagic.backend.cpu import EIGHTHS
from tensormagic.backend.kinds import is_product
from tensormagic.backend.lower import Stage
from tensormagic.backend.steps import Region
from tensormagic.ir.node import as_size
from tensormagic.ir.size import Size, nodes_of, product
from tensormagic.ops.regions.control import COND

LONG = 160_000_000  # eighths of an operation, about 20 ms: what takes longer runs beside the main thread, which stays interruptible


def work_of(step: Stage | Region) -> Size:
    """About how many eighths of an operation a step is; a data-dependent number of repetitions is taken for long."""
    if isinstance(step, Stage):
        domain = [s for s in step.domain if not nodes_of(s)]
        return product(tuple(domain)) * (1 if is_product(step.root) else EIGHTHS * (step.ops + 1))
    inner: Size = 1
    for block in step.blocks.values():
        inner = inner + sum((work_of(s) for s in block.steps if isinstance(s, (Stage, Region))), 0)
    if step.root.op is COND:
        return inner
    iterations = None if step.head is None else as_size(step.head)
    return inner * iterations if iterations is not None and not nodes_of(iterations) else inner * LONG
