"""The plan of a graph: kernels and library calls, with their sources. Compiles nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any, Protocol, TypeVar

from tensormagic.backend.planning.blocks import plan_block
from tensormagic.backend.planning.fusion import is_fused
from tensormagic.backend.planning.inline import expand_all
from tensormagic.backend.planning.kinds import is_inline, refuse, stored_below
from tensormagic.backend.planning.loop_interchange import gathered
from tensormagic.backend.planning.overlap import Order
from tensormagic.backend.planning.recorded_states import in_states
from tensormagic.backend.planning.schedule import Kernel, Step, arrange, schedule
from tensormagic.backend.planning.shared_arrays import Memory
from tensormagic.backend.planning.size_bounds import RefusedError
from tensormagic.backend.planning.steps import Block, Region, arrays, needed, produced
from tensormagic.backend.planning.tapes import untaped
from tensormagic.backend.printing.driver import Driver
from tensormagic.backend.printing.kernel_source import print_kernel
from tensormagic.backend.printing.kernel_text import Printed
from tensormagic.backend.printing.ledger import Ledger
from tensormagic.backend.printing.parallel_steps import Beside, Together
from tensormagic.backend.printing.plan_walk import Walk
from tensormagic.backend.running.driven_regions import bound, changed, is_driven
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import nodes_of


@dataclass(frozen=True, eq=False, repr=False)
class PlannedKernel:
    """A kernel of a plan, for display.

    Parameters
    ----------
    kernel
        The stages; on a GPU also a loop.
    printed
        Its text.
    nodes
        Every node that it computes, operands first.
    """

    kernel: Kernel | Node
    printed: Printed
    nodes: tuple[Node, ...]

    @property
    def source(self) -> str:
        """Return the text with the user's names and lines."""
        return self.printed.readable

    def __repr__(self) -> str:
        """Return ``Kernel(exp, add: 9 lines of source)``."""
        names = list(dict.fromkeys(node.op.name for node in self.nodes if node.args))
        listed = ", ".join(names[:6]) + ", …" * (len(names) > 6)
        return f"Kernel({listed}: {len(self.source.splitlines())} lines of source)"


_QUIET = frozenset(["contract", "move"])  # kinds that are as good in NumPy
W = TypeVar("W", bound=Walk)


class Drive(Protocol):
    """Makes a driver."""

    def __call__(self, kind: Callable[..., W], failed: frozenset[int] = frozenset(), *, given: bool = False) -> W: ...


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
        The kernels, in order; those of ``regions`` after its own.
    library_steps
        The nodes that NumPy computes.
    driver
        What prints the function that runs them.
    drive
        What makes a driver of a class, which prints it, that leaves kernels with these numbers to NumPy; where ``given``, one whose
        results are computed in arrays that it is given.
    regions
        For regions that Python runs iteration by iteration the plans of their graphs.
    """

    graph: Graph
    steps: tuple[Step, ...]
    kernels: tuple[PlannedKernel, ...]
    library_steps: tuple[Node, ...]
    driver: Driver
    drive: Drive
    regions: dict[Node, dict[str, Plan]] = field(default_factory=dict)

    @property
    def ledger(self) -> Ledger:
        """Return the allocations of a run, as formulas in sizes."""
        return self.driver.ledger

    @property
    def grows(self) -> bool:
        """Return whether there are growing arrays, which only machine code has: everything is compiled then, or nothing."""
        printed = (entry for kernel in self.kernels for entry in kernel.printed.entries)
        return any(entry.kind == "growing" for entry in printed)

    @staticmethod
    def is_slow(node: Node) -> bool:
        """Return whether NumPy computes a step more slowly than a kernel would."""
        return getattr(node.op, "kind", "opaque") not in _QUIET

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Return the different kernels to compile, those of regions included."""
        return tuple(dict.fromkeys(k.printed.source for k in self.kernels))

    def compile(self, functions: Sequence[Callable[..., None] | None]) -> Callable[..., list[object]]:
        """Return ``run(sizes, *values)``, given a function (or None, for NumPy) for each of ``sources``."""
        return self.linked(dict(zip(self.sources, functions, strict=True)))

    def linked(self, of: Mapping[str, Callable[..., None] | None]) -> Callable[..., list[object]]:
        """Return what :meth:`compile` does, given functions by source."""
        regions = {
            node: bound(node, {name: plan.linked(of) for name, plan in plans.items()})
            for node, plans in self.regions.items()
        }
        own = {k: of[p.printed.source] for k, p in enumerate(self.kernels[: self.driver.kernels])}
        failed = frozenset(k for k, function in own.items() if function is None)
        driver = self.drive(Driver, failed) if failed else self.driver
        kernels = {k: function for k, function in own.items() if function is not None}

        def in_order(order: Order) -> Callable[..., list[object]]:
            return self.drive(partial(Beside, order=order), failed).compile(kernels, regions)

        run: Any = driver.compile(kernels, regions, Together(driver.overlap, failed, in_order))
        run.given = cache(lambda: self.drive(Driver, failed, given=True).compile(kernels, regions))
        return run


def plan_graph(graph: Graph, changed: Iterable[int] = ()) -> Plan:
    """Return the plan of a closed graph; it may overwrite the parameters whose numbers are in ``changed``."""
    carries = [graph.parameters[k] for k in changed]
    simple = expand_all([*graph.results, *graph.checked])
    growing = untaped(simple)
    if growing is not None:
        with suppress(RefusedError):
            return _plan(graph, *growing, carries)
    with_states = in_states(simple)
    if with_states[0] != simple:
        with suppress(RefusedError):
            return _plan(graph, *with_states, carries)
    while True:
        try:
            return _plan(graph, simple, {}, carries)
        except RefusedError as error:
            if error.region is None:
                raise
            refuse(error.region)


@dataclass(frozen=True, eq=False)
class Arranged:
    """The order of steps and the place of values, before anything is printed.

    Parameters
    ----------
    graph
        What is run.
    block
        Its results and steps.
    memory
        Which values share an array.
    steps
        Kernels and library nodes, in order.
    copied
        Stores and regions that begin with copies of what they change.
    wanted
        For each kernel the nodes needed outside.
    carries
        Parameters that may be changed.
    """

    graph: Graph
    block: Block
    memory: Memory
    steps: list[Step]
    copied: dict[Node, set[Node]]
    wanted: dict[Kernel, set[Node]]
    carries: list[Node]
    stored: frozenset[Node]

    def is_stored(self, node: Node) -> bool:
        """Return whether a node has an array of its own, or is computed by a stage."""
        return node in self.stored or not is_inline(node)

    def is_exported(self, kernel: Kernel, node: Node) -> bool:
        """Return whether a node is needed after the kernel that computes it."""
        return bool(node.type.shape) or node in self.wanted[kernel]


def arranged(graph: Graph, found: Sequence[Node], carries: Sequence[Node], *, apart: bool = False) -> Arranged:
    """Return the steps for a graph whose results and checked values are ``found``, in simple ops; ``apart``: see `schedule`."""
    memory = Memory()
    count = len(graph.results)
    guards = graph.guards_over(dict(zip(graph.checked, found[count:], strict=True)))
    guards = tuple(g for g in guards if nodes_of(g[0]) or nodes_of(g[2]))
    latch = [(c, r) for c, r in zip(carries, found, strict=False) if r.type.shape]
    block = plan_block(found[:count], memory, (), arrays(carries), latch, guards)
    blocks = list(_blocks(block))
    for inner in blocks[1:]:
        for carry, result in inner.latch:
            left, right = memory.owner(carry), memory.owner(result)
            if left is not right:
                memory.trade(left, right)
    for inner in blocks[1:]:
        inner.parts = arrange(inner, memory, apart=apart)
    steps = schedule(block, memory, apart=apart)
    copied = {root: takers for inner in blocks for root, takers in inner.copied.items()}
    if not apart and is_fused():
        steps = gathered(steps, copied, memory.owner)
    stored = {n for inner in blocks for step in inner.steps for n in produced(step)}
    stored |= {n for inner in blocks for step in inner.steps if isinstance(step, Region) for n in step.carries}
    return Arranged(graph, block, memory, steps, copied, _needed(steps, block), list(carries), frozenset(stored))


def _plan(graph: Graph, found: Sequence[Node], origin: Mapping[Node, Node], carries: Sequence[Node]) -> Plan:
    made = arranged(graph, found, carries)
    block, memory, steps, wanted = made.block, made.memory, made.steps, made.wanted
    names = dict(zip(graph.parameters, graph.names, strict=False))
    planned: list[PlannedKernel] = []
    for step in steps:
        if isinstance(step, Kernel):
            printed = print_kernel(
                step, memory, made.copied, made.is_stored, lambda n, of=step: made.is_exported(of, n), names
            )
            nodes = tuple(origin.get(n, n) for n in nodes_of_kernel(step, made.is_stored))
            planned.append(PlannedKernel(step, printed, nodes))
    library = tuple(s for s in steps if isinstance(s, Node))
    regions = {
        node: {
            name: plan_graph(value, changed(node, name))
            for name, value in node.params.items()
            if isinstance(value, Graph)
        }
        for node in library
        if is_driven(node)
    }
    printed = [k.printed for k in planned]
    planned += [k for plans in regions.values() for plan in plans.values() for k in plan.kernels]

    def drive(kind: Callable[..., W], failed: frozenset[int] = frozenset(), *, given: bool = False) -> W:
        needs = [wanted[k] for k in wanted]
        return kind(graph, block, memory, steps, printed, regions, carries, needs, failed, given=given)

    return Plan(graph, tuple(steps), tuple(planned), library, drive(Driver), drive, regions)


def _blocks(block: Block) -> Iterator[Block]:
    """Yield a block and those within it."""
    yield block
    for step in block.steps:
        if isinstance(step, Region):
            for inner in step.blocks.values():
                yield from _blocks(inner)


def _needed(steps: Sequence[Step], block: Block) -> dict[Kernel, set[Node]]:
    """Return for each kernel the nodes that other steps, or the results, need."""
    wanted: dict[Kernel, set[Node]] = {s: set() for s in steps if isinstance(s, Kernel)}
    home = {n: kernel for kernel in wanted for part in kernel.steps for n in produced(part)}

    for node, by in _uses(steps, block):
        kernel = home.get(node)
        if kernel is not None and kernel is not by:
            wanted[kernel].add(node)
    return wanted


def _uses(steps: Sequence[Step], block: Block) -> Iterator[tuple[Node, Step | None]]:
    """Yield the nodes that are needed, each with the step that needs it, or None for a result."""
    yield from ((stored_below(r), None) for r in block.results)
    for step in steps:
        for part in step.steps if isinstance(step, Kernel) else [step]:
            yield from ((node, step) for node in needed(part))


def nodes_of_kernel(kernel: Kernel, stored: Callable[[Node], bool]) -> tuple[Node, ...]:
    """Return every node that a kernel computes, operands first."""
    found: dict[Node, None] = {}
    for step in kernel.steps:
        roots = produced(step)
        found.update(dict.fromkeys(topological(roots, stop=lambda n, own=roots: stored(n) and n not in own)))
        found.update(dict.fromkeys([step.root] if isinstance(step, Region) else []))
    own = {n for step in kernel.steps for n in produced(step)}
    return tuple(n for n in found if n in own or not stored(n) or len(n.types) > 1)
