"""Choose the loops that one thread of the device runs as a single kernel: those whose steps take less time than a launch."""

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

LAUNCH = 1.5e-6  # estimated seconds of a launch in a recording
STEP = 5e-9  # estimated seconds of an operation in one thread
HEAVY = 2e-7  # estimated seconds of a function, such as a logarithm, in one thread
READ = 2e-8  # estimated seconds of a load or store in one thread
LONGEST = 0.5  # seconds that such a kernel may take: it cannot be interrupted
UNKNOWN = 8  # assumed for an integer that depends on data or on the iteration
ITERATIONS = 1 << 16  # iterations assumed for a data-dependent loop


Known = Mapping[Any, int]  # the numbers of symbols, and of integers known to the host


class Alone:
    """A loop as one kernel of a single thread.

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
        with without_library():  # facts known of the same nodes for launches do not apply
            self.planned = Planned(graph_over([own[k] for k in self.given], results), plan=plan_alone)
        (step,) = self.planned.plan.steps
        if not isinstance(step, Kernel) or self.planned.launches[step] is None:
            raise LookupError
        (self.region,) = step.regions

    @property
    def graph(self) -> Graph:
        """Return the graph that is run."""
        return self.planned.plan.graph

    def run(
        self, device: Device, compute: Compute, symbols: dict[Symbol, int], values: list[Value]
    ) -> list[Value] | None:
        """Return the results of the loop, or None where the library has to run it."""
        with without_library():
            return Execution(self.planned, device, compute).run(symbols, values)

    def pays(self, count: int | None, symbols: dict[Symbol, int], values: Sequence[Value] = ()) -> bool:
        """Return whether one thread is faster than launches, and fast enough for ``count`` iterations (None if unknown)."""
        given = zip(self.graph.parameters, values, strict=False)
        alone, launched = _iteration(self.region, {**symbols, **{p: int(v) for p, v in given if is_integer(v)}})
        return alone < launched and alone * (ITERATIONS if count is None else count) <= LONGEST


@lru_cache(maxsize=128)
def alone(node: Node) -> Alone | None:
    """Return a loop as one kernel of a single thread, or None where it contains what no thread can do."""
    try:
        return Alone(node)
    except (LookupError, ValueError):
        return None
    except Exception as error:  # noqa: BLE001 (it runs as launches, or by the library)
        tell_once(f"a loop has no kernel of its own for the device: {type(error).__name__}: {error}")
        return None


def _iteration(region: Region, symbols: Known) -> tuple[float, float]:
    """Return the seconds of an iteration in one thread, and of its launches, which include both sides of a branch."""
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
    """Return how often an inner region runs in an iteration of what is around it."""
    if "body" not in region.blocks:
        return 1
    count = None if region.head is None else as_size(region.head)
    return UNKNOWN if count is None else _number(count, symbols)


def _stage(stage: Stage, symbols: Known) -> float:
    elements = math.prod(_number(size, symbols) for size in stage.domain)
    return elements * (stage.ops * STEP + stage.heavy * HEAVY + (1 + len(stage.reads)) * READ)


def is_integer(value: Value) -> bool:
    """Return whether a value is an integer on the host."""
    return isinstance(value, int | np.integer) or (
        isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "iu"
    )


def _number(size: Size, symbols: Known) -> int:
    return size if isinstance(size, int) else evaluate(size, lambda a: symbols.get(a, UNKNOWN))
