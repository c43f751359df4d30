"""Record what a plan's function allocates and frees, line by line as it is printed: bytes as formulas in sizes. Runs nothing."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tensormagic.backend.planning.byte_counts import Amount, most
from tensormagic.backend.planning.kinds import is_base, is_inline_move, is_library, kind_of, stored_below
from tensormagic.backend.planning.shared_arrays import Memory
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size
from tensormagic.ir.size import Atom, Size, bare_atom, nodes_of, product
from tensormagic.ops.contract import CONTRACT, recipe_of
from tensormagic.ops.form import FORM
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.move import BROADCAST, RESHAPE, SLICE, TRANSPOSE
from tensormagic.ops.named import NAMED
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.regions.control import COND, LOOP, WHILE

_REGIONS = (COND, LOOP, WHILE)
_VIEWS = (SLICE, TRANSPOSE, BROADCAST, RESHAPE, FORM, NAMED)  # moves that NumPy does without a copy


class Planned(Protocol):
    """A plan, as far as it is known here."""

    @property
    def graph(self) -> Graph: ...

    @property
    def ledger(self) -> Ledger: ...


@dataclass(frozen=True)
class Held:
    """The memory in use while one step runs.

    Parameters
    ----------
    taken
        What the step itself allocates.
    live
        The peak while it runs, without arguments and constants.
    working
        The same without arrays that are results.
    """

    taken: Amount
    live: Amount
    working: Amount


@dataclass
class _Block:
    """An allocated block, and the number of its names."""

    size: Size
    names: int
    is_result: bool


@dataclass(eq=False)
class Ledger:
    """The allocations of one function.

    Parameters
    ----------
    results
        The results.
    memory
        Which values share an array.
    plans
        For regions that Python runs iteration by iteration, the plans of their graphs.
    """

    results: Sequence[Node]
    memory: Memory
    plans: Mapping[Node, Mapping[str, Planned]] = field(default_factory=dict)
    steps: list[Held] = field(default_factory=list[Held])
    copies: dict[Node, None] = field(
        default_factory=dict[Node, None]
    )  # parameters that are packed: copied where they are not in C order
    unknown: dict[Node, str] = field(
        default_factory=dict[Node, str]
    )  # what allocates more than is known, and what that is
    largest: tuple[Size, Node | None] = (0, None)  # the array that is taken for the largest
    _blocks: dict[Hashable, _Block] = field(default_factory=dict[Hashable, _Block])
    _taken: Size = 0
    _rises: bool = False  # whether nothing was given back since what was seen last
    _live: Size = 0
    _results: Size = 0
    _seen: list[tuple[Size, Size]] = field(
        default_factory=list[tuple[Size, Size]]
    )  # what was there in this step, results apart

    # what a step does

    def take(self, key: Hashable, size: Size, node: Node | None = None, *, is_result: bool = False) -> None:
        """Record an allocation under the name ``key``; memory that had this name is freed."""
        self._blocks_in(size, is_result, 1)
        self._taken = self._taken + size
        if node is not None and _looks_larger(size, self.largest[0]):
            self.largest = size, node
        self.give_back([key])
        self._blocks[key] = _Block(size, 1, is_result)

    def _blocks_in(self, size: Size, is_result: bool, sign: int) -> None:
        self._live = self._live + size * sign
        if is_result:
            self._results = self._results + size * sign
        if sign < 0:
            self._rises = False
            return
        if self._rises:  # what was there before was less
            self._seen.pop()
        self._seen.append((self._live, self._live - self._results))
        self._rises = True

    def give_back(self, keys: Iterable[Hashable]) -> None:
        """Remove names; memory without any name is freed."""
        for key in keys:
            block = self._blocks.pop(key, None)
            if block is not None:
                block.names -= 1
                if not block.names:
                    self._blocks_in(block.size, block.is_result, -1)

    def array(self, node: Node, extents: Sequence[Size], *, given: bool) -> None:
        """Record an array for a value of a kernel; one that is ``given`` from outside is no allocation."""
        if not given:
            owners = {self.memory.owner(r) for r in self.results}
            self.take(node, _bytes(node, extents), node, is_result=node in owners)

    def growing(self, node: Node) -> None:
        """Record an array that grows as it is filled."""
        self.unknown[node] = "an array that grows with the iterations"

    def packed(self, node: Node) -> None:
        """Record a value packed for kernels: numbers get an array, arguments not in C order are copied."""
        if not node.type.shape:
            self.take(("packed", node), node.type.dtype.itemsize)
        elif is_base(node):
            self.copies[node] = None

    def call(self, node: Node, *, given: bool = False) -> None:
        """Record a call of NumPy, which returns a value."""
        plans = self.plans.get(node)
        inside = Amount() if plans is None else self._driven(node, plans)
        self._beside(self._of_operands(node), inside)
        below = _shown(node)
        if below is not None:
            block = self._blocks.get(self.memory.owner(below)) or self._blocks.get(below)
            if block is not None:
                block.names += 1
                self._blocks[node] = block
        elif not given:
            self.take(
                node,
                sum((_bytes(node, t.shape, k) for k, t in enumerate(node.types)), 0),
                node,
                is_result=node in self.results,
            )
        if plans is None and node.op in _REGIONS:
            self.unknown[node] = "a loop or branch that NumPy runs"
        elif plans is None and _takes_more(node):
            self.unknown[node] = "what NumPy takes for itself"

    def _beside(self, size: Size, inside: Amount) -> None:
        """Record additional memory in use during a part of this step."""
        for extra in inside.sizes if size or inside.sizes != (0,) else ():
            self._rises = False
            self._seen.append((self._live + size + extra, self._live - self._results + size + extra))

    def _of_operands(self, node: Node) -> Size:
        """Return the bytes of operands that NumPy copies: moves that are no views."""
        total: Size = 0
        for operand in node.args:
            part = operand
            while is_inline_move(part) and part.types[0].shape:
                if part.op not in _VIEWS:
                    total = total + _bytes(part, part.type.shape)
                part = part.args[0]
        return total

    def _driven(self, region: Node, plans: Mapping[str, Planned]) -> Amount:
        """Return the memory of a region that Python runs: old and new carries, and the peak of one iteration."""
        carried: Size = 0
        if region.op is not COND:
            first = int(region.op is LOOP)
            carried = sum(
                (_bytes(a, a.type.shape) for a in region.args[first : first + region["carries"]] if a.type.shape), 0
            )
        found: list[Size] = []
        for plan in plans.values():
            into = _sizes_of(plan.graph, region)
            self.unknown.update(plan.ledger.unknown)
            peak = plan.ledger.peak.replaced(into)
            own = {a for p in plan.graph.parameters for s in p.type.shape if (a := bare_atom(s)) is not None} - {*into}
            if own.intersection(peak.atoms) or any(n not in into for n in peak.nodes):
                self.unknown[region] = "arrays whose sizes iterations decide"
            else:
                found += peak.sizes
        return most(found) + carried

    def copied(self, number: int, node: Node) -> None:
        """Record that a result is copied after the last step."""
        self.take(("result", number), _bytes(node, node.type.shape), node, is_result=True)

    def done(self) -> None:
        """Record that a step has run."""
        seen = self._seen or [(self._live, self._live - self._results)]
        self.steps.append(Held(most([self._taken]), most(live for live, _ in seen), most(rest for _, rest in seen)))
        self._seen, self._taken, self._rises = [], 0, False

    # all of it

    @property
    def peak(self) -> Amount:
        """Return the most that is there at once."""
        return most(size for step in self.steps for size in step.live.sizes)

    @property
    def working(self) -> Amount:
        """Return the same without results."""
        return most(size for step in self.steps for size in step.working.sizes)

    def known_before(self, known: Collection[Node]) -> list[Size]:
        """Return the peaks known before the run, given the integers ``known``."""
        return [s for s in self.peak.sizes if all(n in known for n in nodes_of(s))]


def _bytes(node: Node, extents: Sequence[Size], number: int = 0) -> Size:
    return product(tuple(extents)) * node.types[number].dtype.itemsize


def _shown(node: Node) -> Node | None:
    """Return the value of which a NumPy call returns a view, or None."""
    if node.op is ITEM:
        return node.args[0]
    if node.op is RESHAPE and not is_inline_move(node.args[0]):
        return stored_below(node.args[0])
    return None


def _takes_more(node: Node) -> bool:
    """Return whether NumPy's function may allocate more than its result."""
    if node.op is CONTRACT:
        return recipe_of(node["subscripts"]).way not in {"matmul", "turned"}
    return node.op.kind == "opaque" and node.op is not ITEM


def is_view(node: Node) -> bool:
    """Return whether NumPy computes a step as a view, which is copied if it is a result."""
    return is_library(node) and node.op is RESHAPE and kind_of(node.args[0]) != "move"


def _looks_larger(size: Size, other: Size) -> bool:
    """Return whether a size is larger, if that can be decided, else by its degree."""
    return _rank(size) > _rank(other)


def _rank(size: Size) -> tuple[int, int]:
    if isinstance(size, int):
        return 0, size
    degree = max(sum(p for _, p in m) for m, _ in size.terms)
    return degree, sum(c for m, c in size.terms if sum(p for _, p in m) == degree)


def _sizes_of(graph: Graph, region: Node) -> dict[Atom, Size]:
    """Return the symbols of a region's graph in terms of outer sizes."""
    given = region.args[len(region.args) - len(graph.parameters) :]
    found: dict[Atom, Size] = {}
    for parameter, operand in zip(graph.parameters, given, strict=True):
        for inner, outer in zip(parameter.type.shape, operand.type.shape, strict=False):
            atom = bare_atom(inner)
            if atom is not None:
                found[atom] = outer
        size = as_size(operand) if not operand.type.shape and operand.op is not CONSTANT else None
        if size is not None:
            found[parameter] = size
    return found
