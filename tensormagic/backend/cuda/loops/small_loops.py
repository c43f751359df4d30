"""Which loops one thread of the device runs, as one kernel: those of which a step takes it less time than a launch takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tensormagic.backend.cuda.device import Device
from tensormagic.backend.cuda.plan import plan_alone
from tensormagic.backend.cuda.planned import Compute, Execution, Planned
from tensormagic.backend.planning.lower import Stage
from tensormagic.backend.planning.purpose import without_library
from tensormagic.backend.planning.schedule import Kernel, Nest, Region
from tensormagic.backend.running.thread_warnings import tell_once
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, rebuild
from tensormagic.ir.size import Size, Symbol, evaluate
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.op import Value
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.region import graph_over, stand_in

LAUNCH = 1.5e-6  # seconds that a launch of a recording is taken for
STEP = 5e-9  # seconds that one thread is taken for to do an operation
HEAVY = 2e-7  # seconds that it is taken for to compute a function, a logarithm say
READ = 2e-8  # seconds that it is taken for to read or store an element
LONGEST = 0.5  # seconds: a kernel cannot be interrupted
UNKNOWN = 8  # what an integer is taken for that data decide, or the iteration
ITERATIONS = 1 << 16  # how many a loop on data is taken for


Known = Mapping[Any, int]  # the numbers of symbols, and of integers that the host has


class Alone:
    """A loop as one kernel.

    Parameters
    ----------
    node
        The loop.

    Attributes
    ----------
    planned
        Its plan.
    given
        The numbers of the operands that its graph has as parameters, in order.

    Raises
    ------
    LookupError
        Where it has things that no thread does.
    """

    def __init__(self, node: Node) -> None:
        self.given = [k for k, a in enumerate(node.args) if a.op is not CONSTANT or a.type.shape]
        own = {k: stand_in(f"p{k}", node.args[k].type) for k in self.given}
        made = rebuild(node, [own.get(k, a) for k, a in enumerate(node.args)])
        results = items(made) if len(made.types) > 1 else (made,)
        with without_library():  # what is known of the same nodes in launches is something else
            self.planned = Planned(graph_over([own[k] for k in self.given], results), plan=plan_alone)
        (step,) = self.planned.plan.steps
        if not isinstance(step, Kernel) or self.planned.launches[step] is None:
            raise LookupError
        (self.region,) = step.regions

    @property
    def graph(self) -> Graph:
        """What is run."""
        return self.planned.plan.graph

    def run(
        self, device: Device, compute: Compute, symbols: dict[Symbol, int], values: list[Value]
    ) -> list[Value] | None:
        """What the loop leaves; None where only the library can say."""
        with without_library():
            return Execution(self.planned, device, compute).run(symbols, values)

    def pays(self, count: int | None, symbols: dict[Symbol, int], values: Sequence[Value] = ()) -> bool:
        """Whether one thread is quicker than launches, and quick enough for so many iterations; None: that is not known."""
        given = zip(self.graph.parameters, values, strict=False)
        alone, launched = _iteration(self.region, {**symbols, **{p: int(v) for p, v in given if is_integer(v)}})
        return alone < launched and alone * (ITERATIONS if count is None else count) <= LONGEST


@lru_cache(maxsize=128)
def alone(node: Node) -> Alone | None:
    """A loop as one kernel; None where it has things that no thread does."""
    try:
        return Alone(node)
    except (LookupError, ValueError):
        return None
    except Exception as error:  # noqa: BLE001 (it runs as launches, or by the library)
        tell_once(f"a loop has no kernel of its own for the device: {type(error).__name__}: {error}")
        return None


def _iteration(region: Region, symbols: Known) -> tuple[float, float]:
    """Seconds that an iteration takes one thread, and that its launches take; both sides of a branch are launched."""
    alone = launched = 0.0
    for block in region.blocks.values():
        for part in block.parts:
            if isinstance(part, Nest):
                alone += sum(_stage(stage, symbols) for stage in part.stages)
                launched += LAUNCH
            elif isinstance(part, Region):
                often = _often(part, symbols)
                inner = _iteration(part, symbols)
                alone, launched = alone + often * inner[0], launched + often * inner[1]
    return alone, launched


def _often(region: Region, symbols: Known) -> float:
    """How often a region inside is run in an iteration of what is around it."""
    if "body" not in region.blocks:
        return 1
    count = None if region.head is None else as_size(region.head)
    return UNKNOWN if count is None else _number(count, symbols)


def _stage(stage: Stage, symbols: Known) -> float:
    elements = math.prod(_number(size, symbols) for size in stage.domain)
    return elements * (stage.ops * STEP + stage.heavy * HEAVY + (1 + len(stage.reads)) * READ)


def is_integer(value: Value) -> bool:
    """Whether a value is an integer of the host."""
    return isinstance(value, int | np.integer) or (
        isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "iu"
    )


def _number(size: Size, symbols: Known) -> int:
    return size if isinstance(size, int) else evaluate(size, lambda a: symbols.get(a, UNKNOWN))
