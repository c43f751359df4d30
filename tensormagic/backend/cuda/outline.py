"""Describe for display what runs a graph on a GPU, in order: kernels with the nodes that they compute, loops, and library calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tensormagic.backend.cuda.kernels.launch import Launch
from tensormagic.backend.cuda.kernels.listing import grid_text
from tensormagic.backend.cuda.loops.loop_plan import LOOPS, planned_loop
from tensormagic.backend.cuda.loops.small_loops import alone
from tensormagic.backend.cuda.offending import why_on_host
from tensormagic.backend.cuda.plan import simple_on_device
from tensormagic.backend.cuda.planned import Planned, planned
from tensormagic.backend.planning.plan import PlannedKernel, nodes_of_kernel
from tensormagic.backend.planning.purpose import for_device
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.backend.printing.kernel_text import Printed
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.opaque import ITEM

Text = list[tuple[str, Node | None]]


@dataclass(frozen=True)
class Outline:
    """The steps of a graph on a GPU, with the fields of a `Plan` that displays read.

    Parameters
    ----------
    steps
        Kernels, loops that are kernels, and calls of the library, in order.
    kernels
        The kernels: those of a step are one.
    library_steps
        What the library computes, or the host.
    """

    steps: tuple[Kernel | Node | None, ...]
    kernels: tuple[PlannedKernel, ...]
    library_steps: tuple[Node, ...]

    regions = {}  # noqa: RUF012 (a loop without kernels is a step like others)

    @staticmethod
    def is_slow(node: Node) -> bool:
        """Return whether the host computes a step, which needs copies."""
        return bool(why_on_host(node))


@for_device
def outlined(graph: Graph) -> Outline:
    """Return the outline of what runs a rewritten graph on a GPU."""
    found = planned(graph)
    if found is None:
        left = tuple(n for n in graph.nodes if n.args)
        return Outline(left, (), left)
    here, computed = _places(graph, found)
    steps: list[Kernel | Node | None] = []
    kernels: list[PlannedKernel] = []
    library: list[Node] = []
    for step in found.plan.steps:
        if isinstance(step, Node) and step.op is ITEM:
            continue
        text = list(_text(found, step))
        if text:
            steps.append(None)
            kernels.append(_kernel(step, text, computed[step]))
        else:
            nodes = computed[step] if isinstance(step, Kernel) else (here.get(step, step),)
            steps += nodes
            library += nodes
    return Outline(tuple(steps), tuple(kernels), tuple(library))


def _kernel(step: Kernel | Node, text: Text, nodes: tuple[Node, ...]) -> PlannedKernel:
    readable = "".join(f"{line}\n" for line, _ in text)
    printed = Printed(readable, readable, (), (), tuple(node for _, node in text[1:]))
    return PlannedKernel(step, printed, nodes)


def _places(graph: Graph, of: Planned) -> tuple[dict[Node, Node], dict[Kernel | Node, tuple[Node, ...]]]:
    """Return for nodes of the plan their nodes in the graph, and for each step the nodes of the graph that it computes."""
    own = [n for n in graph.nodes if n.args and len(n.types) == 1]
    here: dict[Node, Node] = {}
    for node, simple in zip(own, simple_on_device(own), strict=True):
        here.setdefault(simple, node)
        if node.op is ITEM:
            here.setdefault(simple.args[0], node.args[0])
    computed: dict[Kernel | Node, tuple[Node, ...]] = {}
    for step in of.plan.steps:
        nodes = nodes_of_kernel(step, of.plan.is_stored) if isinstance(step, Kernel) else (step,)
        computed[step] = tuple(here[n] for n in nodes if n in here)
    return here, computed


def _text(of: Planned, step: Kernel | Node) -> Iterator[tuple[str, Node | None]]:
    """Yield the lines of the kernels of a step, each with the node that it computes; nothing where the library computes the step."""
    if isinstance(step, Kernel):
        yield from _lines(of.launches[step] or ())
    elif step.op in LOOPS:
        one, many = alone(step), planned_loop(step)
        if one is not None:
            yield f"# {step.op.name}: one thread runs all of it where it is over few numbers", None
            for launches in one.planned.launches.values():
                yield from _lines(launches or ())
        if many is not None:
            yield f"# {step.op.name}: {'else ' * (one is not None)}an iteration is these launches", None
            yield from _lines({launch.source: launch for launch in many.every()}.values())


def _lines(launches: Iterable[Launch]) -> Iterator[tuple[str, Node | None]]:
    for launch in launches:
        yield grid_text(launch), None
        texts = (launch.readable or launch.source).rstrip().splitlines()
        origins = launch.origins or (None,) * len(texts)
        yield from zip(texts, origins, strict=False)
        yield from _lines(launch.otherwise)
