"""Estimate the work of the steps of kernels before they run."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.backend.planning.kinds import is_product
from tensormagic.backend.planning.lower import Stage
from tensormagic.backend.planning.steps import Region
from tensormagic.backend.printing.kernel_source import EIGHTHS
from tensormagic.ir.node import as_size
from tensormagic.ir.size import Size, nodes_of, product
from tensormagic.ops.regions.control import COND

LONG = 160_000_000  # eighths of an operation, 20 ms at most: what may take longer runs beside the main thread, which stays interruptible
_LITTLE = 0.01  # seconds
_MORE = 2  # times the work whose time is known


class Pace:
    """How much work of a plan is known to take little time: vectorised code may be a hundred times faster than assumed.

    Attributes
    ----------
    most
        Eighths of an operation that are known to take little time.
    """

    def __init__(self) -> None:
        self.most: float = LONG

    def note(self, work: int, seconds: float) -> None:
        """Record that an amount of work took this long."""
        self.most = max(self.most, work * min(_LITTLE / seconds, _MORE))


def is_counted(step: Stage | Region) -> bool:
    """Return whether the work of a step follows from sizes."""
    if isinstance(step, Stage):
        return not any(nodes_of(s) for s in step.domain)
    return (step.root.op is COND or _iterations(step) is not None) and all(map(is_counted, _steps(step)))


def work_of(step: Stage | Region) -> Size:
    """Return the estimated work of a step in eighths of an operation; a data-dependent number of iterations counts as long."""
    if isinstance(step, Stage):
        domain = [s for s in step.domain if not nodes_of(s)]
        return product(tuple(domain)) * (1 if is_product(step.root) else EIGHTHS * (step.ops + 1))
    inner: Size = sum(map(work_of, _steps(step)), 1)
    if step.root.op is COND:
        return inner
    iterations = _iterations(step)
    return inner * (LONG if iterations is None else iterations)


def _steps(region: Region) -> Iterator[Stage | Region]:
    """Return the steps inside a region whose work counts."""
    return (s for block in region.blocks.values() for s in block.steps if isinstance(s, (Stage, Region)))


def _iterations(region: Region) -> Size | None:
    """Return the number of iterations of a loop, if it follows from sizes, or None."""
    found = None if region.head is None else as_size(region.head)
    return None if found is None or nodes_of(found) else found
