"""What graphs and plans cost: applications of scalar functions, floating-point operations, bytes read and written.

Counted, not measured, in numbers or as formulas in sizes. Knows plans, no times and no pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from math import log2, prod
from typing import Any

import numpy as np

from tensormagic.backend.cpu.flops import flops_of
from tensormagic.backend.planning.kinds import (
    exponent,
    graphs_of,
    is_inline,
    is_inline_move,
    is_leaf,
    is_map,
    is_taken,
    kind_of,
    stripped,
)
from tensormagic.backend.planning.lower import IndexTuple, Read, Stage, operand_reads
from tensormagic.backend.planning.plan import Plan
from tensormagic.backend.planning.schedule import Kernel, Loop, Nest, Part, Storage, steps_in
from tensormagic.backend.planning.steps import Block, Check, Region, below, produced
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size
from tensormagic.ir.operation import Operation
from tensormagic.ir.size import Atom, Dim, Size, apply, atoms, bare_atom, evaluate, hint
from tensormagic.ir.substituting import substitute
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.fft import FFT, IFFT
from tensormagic.ops.indices.scatter import SCATTER_SET
from tensormagic.ops.indices.sorting import ARGSORT, SORT
from tensormagic.ops.leaf import IOTA
from tensormagic.ops.matrices.determinants import DET, SLOGDET
from tensormagic.ops.matrices.linalg import CHOLESKY, INV, SOLVE
from tensormagic.ops.move import CONCATENATE, RESHAPE
from tensormagic.ops.opaque import Store
from tensormagic.ops.regions.control import COND, LOOP, WHILE
from tensormagic.ops.scalars.scalar import power
from tensormagic.ops.update import ADD_AT, SET, Update

Number = Callable[[Size], Any]  # returns an int, or a size again where formulas are wanted


@dataclass(frozen=True)
class Cost:
    """The cost of some work.

    Parameters
    ----------
    operations
        The number of applications of scalar functions: an addition, a comparison and an ``exp`` count one each. A
        number, or a formula in sizes.
    flops
        The number of floating-point operations: an ``exp`` counts as the additions, multiplications and divisions in
        it.
    moved
        The bytes of the arrays read and written, each array once per pass over arrays.
    known
        Whether this is all: the number of iterations of a ``while`` is not known before the run.

    Examples
    --------
    >>> Cost(2, 2, 16) + Cost(1, 33, 8)
    Cost(operations=3, flops=35, moved=24, known=True)
    """

    operations: Any = 0
    flops: Any = 0
    moved: Any = 0
    known: bool = True

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.operations + other.operations,
            self.flops + other.flops,
            self.moved + other.moved,
            self.known and other.known,
        )

    def times(self, iterations: Any) -> Cost:
        """Return the cost multiplied by a number of iterations."""
        return Cost(self.operations * iterations, self.flops * iterations, self.moved * iterations, self.known)


NONE = Cost()


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum."""
    return sum(costs, NONE)


# one application ------------------------------------------------------------------------------------------------------


def flops_in(node: Node) -> int:
    """Return the number of floating-point operations in one application of a pointwise node."""
    if node.op is power and (known := exponent(node)) is not None:
        return max(1, round(abs(known)) - 1)
    kind = max((t.dtype for n in (node, *node.args) for t in n.types), key=lambda d: d.itemsize)
    return flops_of(node.op.name, 32 if kind == np.dtype(np.float32) else 64)


# nodes, by NumPy ------------------------------------------------------------------------------------------------------


def of_graph(nodes: Iterable[Node], number: Number) -> Cost:
    """Return the cost of computing nodes with NumPy, one after the other: each reads its operands and writes its result."""
    return total(of_node(node, number) for node in nodes)


def by_node(nodes: Iterable[Node], number: Number) -> Iterator[tuple[Node, Cost, Node]]:
    """Yield for each node: the node, its cost in NumPy, and the outermost region that contains it (or itself).

    Costs in loops are multiplied by the number of iterations. For a choice, both branches are given, and for a
    ``while`` one iteration, as costs that are not ``known``.
    """
    for node in nodes:
        graphs = graphs_of(node)
        if not graphs:
            yield node, of_node(node, number), node
            continue
        yield node, NONE, node
        iterations = _iterations(node, number)
        for graph in graphs:
            for inner, cost, _ in by_node(graph.nodes, _within(graph, node, number)):
                yield inner, cost + Cost(known=False) if iterations is None else cost.times(iterations), node


def of_node(node: Node, number: Number) -> Cost:
    """Return the cost of one node in NumPy: operands are read and the result is written, once; views move nothing."""
    kind = node.op.kind
    if kind == "leaf" or not node.args or kind == "move":
        return Cost(0, 0, _moved_by_move(node, number) if kind == "move" else 0)
    if graphs := graphs_of(node):
        return _repeated(node, [of_graph(g.nodes, _within(g, node, number)) for g in graphs], number)
    sizes = _Sizes(number)
    moved = _touched_by_numpy(node, sizes)
    operations, each = _work(node, sizes)
    return Cost(operations, operations * each, moved, sizes.known)


def _touched_by_numpy(node: Node, sizes: _Sizes) -> Any:
    """Return the bytes that NumPy reads and writes; for indexed reads and stores only the elements concerned."""
    if is_taken(node.op):
        return 2 * sizes.bytes_of(node) + sum(map(sizes.bytes_of, node.args[1:]))
    if isinstance(node.op, Update | Store):
        times = 2 if node.op.joins else 1
        return times * sizes.bytes_of(node.args[-1]) + sum(map(sizes.bytes_of, node.args[1:]))
    return sum(map(sizes.bytes_of, (node, *dict.fromkeys(node.args))))


def _moved_by_move(node: Node, number: Number) -> Any:
    """Return the bytes a move copies; none if it is a view."""
    if is_inline_move(node) or kind_of(node) == "view" or node.op is RESHAPE:
        return 0
    return 2 * _Sizes(number).bytes_of(node)


def _work(node: Node, sizes: _Sizes) -> tuple[Any, int]:
    """Return the number of scalar function applications of a node, and the floating-point operations in each."""
    extents = [sizes.elements(n) for n in (node, *node.args)]
    if node.op is CONTRACT:
        (left, right), _ = split(node["subscripts"])
        pairs = zip((left, right), node.args, strict=True)
        whole = {c: sizes(s) for letters, arg in pairs for c, s in zip(letters, arg.type.shape, strict=True)}
        return 2 * prod(whole.values()), 1
    if is_taken(node.op) or node.op in _MOVERS:
        return 0, 1
    if is_map(node) or node.op.kind == "pointwise":
        return _largest(extents), flops_in(node)
    count = _LIBRARY.get(node.op)
    if count is not None and node.args[0].types[0].shape:
        shape = [sizes(s) for s in node.args[0].types[0].shape]
        if any(isinstance(s, Dim) for s in shape):  # powers and logarithms are no polynomials of sizes
            sizes.known = False
            return 0, 1
        return count(shape, extents[0]), 1
    return _largest(extents), 1


def _largest(numbers: Iterable[Any]) -> Any:
    return reduce(partial(apply, "max"), numbers, 0)


_MOVERS = {CONCATENATE, SET, SCATTER_SET}


def _square(factor: float) -> Callable[[list[int], int], int]:
    return lambda shape, _: round(prod(shape[:-2]) * factor * shape[-1] ** 3)


def _solve(shape: list[int], result: int) -> int:
    return round(prod(shape[:-2]) * 2 / 3 * shape[-1] ** 3) + 2 * shape[-1] * result


def _sorted(shape: list[int], _: int) -> int:
    return round(prod(shape) * log2(max(shape[-1], 2)))


# leading terms (Golub and Van Loan, Matrix Computations; for fft the usual 5 n log2 n)
_LIBRARY: dict[Operation, Callable[[list[int], int], int]] = {
    SOLVE: _solve,
    INV: _square(2),
    CHOLESKY: _square(1 / 3),
    DET: _square(2 / 3),
    SLOGDET: _square(2 / 3),
    SORT: _sorted,
    ARGSORT: _sorted,
    FFT: lambda shape, result: round(5 * result * log2(max(shape[-1], 2))),
    IFFT: lambda shape, result: round(5 * result * log2(max(shape[-1], 2))),
}


class _Sizes:
    """Sizes as numbers; records whether all of them are known."""

    def __init__(self, number: Number) -> None:
        self._number = number
        self.known = True

    def __call__(self, size: Size) -> Any:
        if isinstance(size, int):
            return size
        try:
            return self._number(size)
        except (TensorError, LookupError, TypeError, ValueError):  # it depends on the iteration of a loop
            self.known = False
            return hint(size) or 1

    def elements(self, node: Node) -> Any:
        """Return how many numbers a value is."""
        return _largest(prod(map(self, t.shape)) for t in node.types)

    def bytes_of(self, node: Node) -> Any:
        """Return the bytes of a value's arrays; numbers do not count."""
        return sum(prod(map(self, t.shape)) * t.dtype.itemsize for t in node.types if t.shape)


# plans ----------------------------------------------------------------------------------------------------------------


def of_plan(plan: Plan, number: Number) -> list[Cost]:
    """Return the cost of each step of a plan, by its loops.

    Parameters
    ----------
    plan
        Kernels and calls of NumPy.
    number
        Gives the number of a size.

    Returns
    -------
    list of Cost
        One for each of ``plan.steps``. In a kernel, a pass over arrays counts each array once, however often its loops
        read it; tiles of rows, which stay in the cache, are not counted.
    """
    counter = _Counter(plan, number)
    return [counter.kernel(step) if isinstance(step, Kernel) else counter.call(step) for step in plan.steps]


@dataclass
class _Counter:
    """Counts one plan."""

    plan: Plan
    number: Number
    stored: set[Node] = field(default_factory=set[Node])
    gathered: set[Node] = field(default_factory=set[Node])  # arrays read at indices from another array

    def __post_init__(self) -> None:
        for step in self.plan.steps:
            for part in step.parts if isinstance(step, Kernel) else ():
                self._note(part)

    def _note(self, part: Part) -> None:
        for step in steps_in(part):
            self.stored.update(produced(step))
        if isinstance(part, Region):
            self.stored.update(part.carries)
            for inner in _parts_in(part.blocks.values()):
                self._note(inner)

    def call(self, node: Node) -> Cost:
        """Return the cost of a NumPy call; for a region whose iterations Python runs, that of its plan times the known iterations."""
        plans = self.plan.regions.get(node)
        if plans is None:
            return _with_operands(node, self.number)
        inner = [total(of_plan(plan, _within(plan.graph, node, self.number))) for plan in plans.values()]
        return _repeated(node, inner, self.number)

    def kernel(self, kernel: Kernel) -> Cost:
        """Return the cost of a kernel: its nests and regions, and numbers that are computed once."""
        once: set[Node] = set()
        return total(self.part(part, once) for part in kernel.parts)

    def part(self, part: Part, once: set[Node]) -> Cost:
        """Return a nest or a region."""
        if isinstance(part, Check):
            return NONE
        if isinstance(part, Nest):
            return self.nest(part, once)
        blocks = [total(self.part(p, set()) for p in _parts_in([b])) for b in part.blocks.values()]
        return _repeated(part.root, blocks, self.number)

    def nest(self, nest: Nest, once: set[Node]) -> Cost:
        """Return a pass over arrays."""
        sizes = _Sizes(self.number)
        counts = [self.loop(nest, loop, once, sizes) for loop in nest.loops]
        touched: dict[Node, Any] = {}
        for stage in nest.stages:
            for node, count in self._touched(nest, stage, sizes):
                touched[node] = apply("max", touched.get(node, 0), count)
        return total(counts) + Cost(0, 0, sum(touched.values()), sizes.known)

    def _touched(self, nest: Nest, stage: Stage, sizes: _Sizes) -> list[tuple[Node, Any]]:
        """Return the arrays in memory that a stage reads and writes, each with the bytes of the elements touched."""
        found: list[tuple[Node, Any]] = []
        for node, index in stage.reads:
            inside = nest.storage.get(node, Storage.FULL)
            if node.op is IOTA or not node.type.shape or is_leaf(node) or inside is not Storage.FULL:
                continue
            found.append((node, self._bytes(node, index, stage, sizes)))
        if nest.storage.get(stage.root) is Storage.FULL and stage.root.type.shape:
            count = self._bytes(stage.root, stage.identity(), stage, sizes)
            found.append((stage.root, count if stage.written is None or stage.root.op is not ADD_AT else 2 * count))
        return found

    def _bytes(self, node: Node, index: IndexTuple, stage: Stage, sizes: _Sizes) -> Any:
        """Return the bytes of the elements that an index visits; for gathered arrays, one element per iteration."""
        taken = {int(i.variable[1:]) for i in index if i.variable is not None}
        anywhere = node in self.gathered or (
            node is stage.root and "slices" not in node.params and stage.written is not None
        )
        extents = [sizes(s) for k, s in enumerate(stage.domain) if anywhere or k in taken]
        return apply("min", prod(extents), sizes.elements(node)) * node.type.dtype.itemsize

    def loop(self, nest: Nest, loop: Loop, once: set[Node], sizes: _Sizes) -> Cost:
        """Return the cost of the functions in one loop, each counted in the innermost loop it depends on."""
        domain = [sizes(s) for s in loop.stages[0].domain]
        memo: set[Read] = set()
        cost = NONE
        for stage in loop.stages:
            extents = [sizes(s) for s in stage.domain] or domain[:0]
            cost += total(self._inside(stage.root, read, extents, memo, once) for read in stage.body)
            cost += _own(stage, prod(extents))
        return cost

    def _inside(self, root: Node, read: Read, extents: Sequence[Any], memo: set[Read], once: set[Node]) -> Cost:
        """Return the cost of the functions inlined for one value of a stage."""
        cost = NONE
        stack = [read]
        while stack:
            node, index = stack.pop()
            outside = node is not root and (node in self.stored or not is_inline(node))
            if (node, index) in memo or is_leaf(node) or outside:
                continue
            memo.add((node, index))
            if not is_inline(node):
                continue
            stack += operand_reads(node, index)
            if kind_of(node) == "take" and "axis" in node.params:
                self.gathered.add(stripped(node.args[0]))
            if is_map(node):
                times = prod(extents[: 1 + max((int(i.variable[1:]) for i in index if i.variable), default=-1)])
                if not index:
                    times = 0 if node in once else 1
                    once.add(node)
                cost += Cost(times, times * flops_in(node))
        return cost


def _own(stage: Stage, iterations: Any) -> Cost:
    """Return the cost of a stage itself: the steps of a fold, the products of a contraction, the additions into an array."""
    if stage.kind == "map":
        return NONE
    if stage.kind == "store":
        return Cost(iterations, iterations) if stage.root.op.joins else NONE
    return Cost(iterations * len(stage.body), iterations * len(stage.body))


def _with_operands(node: Node, number: Number) -> Cost:
    """Return the cost of a NumPy call in a plan; operands below views are read once."""
    found = of_node(node, number)
    if node.op.kind in {"leaf", "move"}:
        return found
    sizes = _Sizes(number)
    read = dict.fromkeys(n for a in node.args for n in below(a) if n.types[0].shape)
    return Cost(found.operations, found.flops, sum(map(sizes.bytes_of, (node, *read))), found.known and sizes.known)


def _parts_in(blocks: Iterable[Block]) -> list[Any]:
    return [part for block in blocks for part in block.parts]


def _repeated(region: Node, inner: Sequence[Cost], number: Number) -> Cost:
    """Return the cost of a loop times its iterations, if known; for a choice, that of the dearer branch."""
    if region.op is COND:
        if all(isinstance(c.flops, int) and isinstance(c.moved, int) for c in inner):
            return max(inner, key=lambda c: (c.flops, c.moved), default=NONE) + Cost(known=False)
        each = zip(*((c.operations, c.flops, c.moved) for c in inner), strict=True)
        return Cost(*map(_largest, each), known=False)
    iterations = _iterations(region, number)
    return total(inner) + Cost(known=False) if iterations is None else total(inner).times(iterations)


def _within(graph: Graph, region: Node, number: Number) -> Number:
    """Return the sizes in a region's graph, from those of its operands, which are its last arguments."""
    sizes = _Sizes(number)
    given = region.args[len(region.args) - len(graph.parameters) :]
    shapes = [tuple(map(sizes, a.type.shape)) for a in given]
    if any(isinstance(s, Dim) for shape in shapes for s in shape):
        return _formulas(graph, shapes)
    try:
        known = graph.bind(shapes)
    except TensorError:
        known = {}
    return lambda size: evaluate(size, known.__getitem__)


def _formulas(graph: Graph, shapes: Sequence[Sequence[Size]]) -> Number:
    """Return the sizes in a region's graph as formulas in outer sizes; raises LookupError for one that depends on iterations."""
    known: dict[Atom, Size] = {}
    for parameter, shape in zip(graph.parameters, shapes, strict=True):
        found = ((bare_atom(inner), outer) for inner, outer in zip(parameter.type.shape, shape, strict=True))
        known.update((inner, outer) for inner, outer in found if inner is not None)

    def number(size: Size) -> Size:
        for atom in atoms(size):
            _ = known[atom]
        return substitute(size, known)

    return number


def _iterations(node: Node, number: Number) -> Any:
    """Return the number of iterations of a loop, 1 for a call, or None if it is not known before the run, or the region is a choice."""
    if node.op is not LOOP:
        return None if node.op in {WHILE, COND} else 1
    count = as_size(node.args[0])
    if count is None:
        return None
    sizes = _Sizes(number)
    iterations = sizes(count)
    return iterations if sizes.known else None
