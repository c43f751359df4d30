"""What runs at once: a graph as kernels and library calls, with their sources. Compiles nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tensormagic.backend.cpu import print_kernel
from tensormagic.backend.driver import Driver
from tensormagic.backend.kernel_text import Printed
from tensormagic.backend.lower import is_base, is_inline_move, is_library, is_map, lower, stripped
from tensormagic.backend.schedule import Kernel, Step, schedule
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological


@dataclass(frozen=True, eq=False)
class PlannedKernel:
    """A kernel of a plan, for display.

    Parameters
    ----------
    kernel
        The stages.
    printed
        Its text.
    nodes
        Every node that it computes, operands first.
    """

    kernel: Kernel
    printed: Printed
    nodes: tuple[Node, ...]

    @property
    def source(self) -> str:
        """The text with the user's names and lines."""
        return self.printed.readable


@dataclass(frozen=True, eq=False)
class Plan:
    """How a graph is run on the CPU.

    Parameters
    ----------
    graph
        What was planned.
    steps
        Kernels and library calls, in order.
    kernels
        The kernels, in order.
    library_steps
        The nodes that NumPy computes.
    driver
        What prints the function that runs them.
    """

    graph: Graph
    steps: tuple[Step, ...]
    kernels: tuple[PlannedKernel, ...]
    library_steps: tuple[Node, ...]
    driver: Driver

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """What has to be compiled: each different kernel once."""
        return tuple(dict.fromkeys(k.printed.source for k in self.kernels))

    def compile(self, functions: Sequence[Callable[..., None]]) -> Callable[..., list[object]]:
        """``run(sizes, *values)``, given a function for each of ``sources``."""
        of = dict(zip(self.sources, functions, strict=True))
        return self.driver.compile([of[k.printed.source] for k in self.kernels])


def plan_graph(graph: Graph) -> Plan:
    """The plan of a closed graph."""
    lowered = lower(graph)
    steps = schedule(lowered)
    roots = {s.root for step in steps if isinstance(step, Kernel) for s in step.stages}
    needed = _needed(steps, lowered.results)
    names = dict(zip(graph.parameters, graph.names, strict=False))

    def stored(node: Node) -> bool:
        return node in roots or is_base(node) or is_library(node)

    planned: list[PlannedKernel] = []
    for step in steps:
        if isinstance(step, Kernel):
            outside = needed[step]
            printed = print_kernel(step, stored, lambda n, outside=outside: bool(n.type.shape) or n in outside, names)
            planned.append(PlannedKernel(step, printed, _nodes_of(step, stored)))
    library = tuple(s for s in steps if isinstance(s, Node))
    return Plan(
        graph,
        tuple(steps),
        tuple(planned),
        library,
        Driver(graph, lowered, steps, [k.printed.entries for k in planned]),
    )


def _needed(steps: Sequence[Step], results: Sequence[Node]) -> dict[Kernel, set[Node]]:
    """For each kernel the nodes that something else needs."""
    needed: dict[Kernel, set[Node]] = {s: set() for s in steps if isinstance(s, Kernel)}
    home = {stage.root: kernel for kernel in needed for stage in kernel.stages}

    def use(node: Node, by: Step | None) -> None:
        kernel = home.get(node)
        if kernel is not None and kernel is not by:
            needed[kernel].add(node)

    for r in results:
        use(r, None)
    for step in steps:
        reads = (
            [stripped(a) for a in step.args] if isinstance(step, Node) else [n for s in step.stages for n, _ in s.reads]
        )
        for node in reads:
            use(node, step)
    return needed


def _nodes_of(kernel: Kernel, stored: Callable[[Node], bool]) -> tuple[Node, ...]:
    roots = [s.root for s in kernel.stages]
    own = set(roots)
    order = topological(roots, stop=lambda n: stored(n) and n not in own)
    return tuple(n for n in order if n in own or is_map(n) or is_inline_move(n))
