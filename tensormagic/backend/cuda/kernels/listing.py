"""List the kernels of a graph for a GPU as readable text, without needing a GPU, a compiler or values."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.backend.cuda.kernels.launch import Array, Count, Launch, Live, Number, Parameter, Scratch
from tensormagic.backend.cuda.loops.loop_plan import LOOPS, planned_loop
from tensormagic.backend.cuda.loops.small_loops import alone
from tensormagic.backend.cuda.planned import Planned, planned
from tensormagic.backend.planning.purpose import for_device
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.backend.planning.steps import produced
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.opaque import ITEM

_BY_LIBRARY = "# {}: by the library of the GPU, or else by NumPy on the host"


@for_device
def device_source(graph: Graph) -> str:
    """Return what runs a graph on a GPU, in order: kernels as Python source, and names of operations that have none.

    Parameters
    ----------
    graph
        A rewritten graph.
    """
    found = planned(graph)
    if found is None:
        return _BY_LIBRARY.format("the whole graph")
    return "\n\n".join(_parts(found))


def _parts(of: Planned) -> Iterator[str]:
    for step in of.plan.steps:
        if isinstance(step, Kernel):
            launches = of.launches[step]
            if launches is None:
                yield _BY_LIBRARY.format(", ".join(dict.fromkeys(n.op.name for s in step.steps for n in produced(s))))
            for launch in launches or ():
                yield from _launch(launch)
        elif step.op in LOOPS:
            yield from _loop(step)
        elif step.op is not ITEM:
            yield _BY_LIBRARY.format(step.op.name)


def _loop(node: Node) -> Iterator[str]:
    """Yield the text of a loop as one kernel, and as launches; sizes decide which runs."""
    one, many = alone(node), planned_loop(node)
    if one is not None:
        yield f"# {node.op.name}: one thread runs all of it where it is over few numbers"
        for launches in one.planned.launches.values():
            for launch in launches or ():
                yield from _launch(launch)
    if many is not None:
        yield f"# {node.op.name}: {'else ' * (one is not None)}an iteration is these launches"
        shown = {launch.source: launch for launch in many.every()}
        for launch in shown.values():
            yield from _launch(launch)
    elif one is None:
        yield _BY_LIBRARY.format(node.op.name)


def grid_text(launch: Launch, otherwise: str = "") -> str:
    """Return a comment with the number of blocks and threads of a launch, and the sizes that it is for."""
    grid = f"# {otherwise}{launch.blocks} blocks of {launch.threads} threads"
    if launch.shared:
        grid += f", {launch.shared} bytes of shared memory"
    if launch.ranges:
        grid += ", where " + " and ".join(f"{low} <= {size} <= {high}" for size, low, high in launch.ranges)
    return grid


def _launch(launch: Launch, otherwise: str = "") -> Iterator[str]:
    arguments = ", ".join(map(_argument, launch.parameters))
    yield f"{grid_text(launch, otherwise)}\n# called with {arguments}\n{(launch.readable or launch.source).rstrip()}"
    for other in launch.otherwise:
        yield from _launch(other, "for other sizes: ")


def _argument(given: Parameter) -> str:
    if isinstance(given, Array):
        return f"{_named(given.node)} {given.node.type}"
    if isinstance(given, Count):
        return f"the size {given.size}"
    if isinstance(given, Number):
        return f"the number {given.value}"
    if isinstance(given, Live):
        return "a flag that says whether it is to run"
    return f"scratch {given.dtype}[{given.count}]" if isinstance(given, Scratch) else "a flag for faults"


def _named(node: Node) -> str:
    return "input" if not node.args else node.op.name
