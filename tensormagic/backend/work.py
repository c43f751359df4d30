"""How much work steps of kernels are, counted before they run."""

from __future__ import annotations

from tensormagic.backend.cpu import EIGHTHS
from tensormagic.backend.kinds import is_product
from tensormagic.backend.lower import Stage
from tensormagic.backend.steps import Region
from tensormagic.ir.node import as_size
from tensormagic.ir.size import Size, nodes_of, product
from tensormagic.ops.regions.control import COND

LONG = 160_000_000  # eighths of an operation, 20 ms at most: what may take longer runs beside the main thread, which stays interruptible
_LITTLE = 0.01  # seconds
_MORE = 2  # times the work whose time is known


class Pace:
    """How much work of a plan takes little time: vectorized code does it up to a hundred times as fast as is taken for granted.

    Attributes
    ----------
    most
        Eighths of an operation that are known to take little time.
    """

    def __init__(self) -> None:
        self.most: float = LONG

    def note(self, work: int, seconds: float) -> None:
        """That so much work took so long."""
        self.most = max(self.most, work * min(_LITTLE / seconds, _MORE))


def is_counted(step: Stage | Region) -> bool:
    """Whether sizes decide how much work a step is."""
    if isinstance(step, Stage):
        return not any(nodes_of(s) for s in step.domain)
    iterations = None if step.head is None else as_size(step.head)
    if step.root.op is not COND and (iterations is None or nodes_of(iterations)):
        return False
    inner = (s for block in step.blocks.values() for s in block.steps)
    return all(is_counted(s) for s in inner if isinstance(s, (Stage, Region)))


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
