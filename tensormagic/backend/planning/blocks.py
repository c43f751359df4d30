"""The order of the steps of a graph, or of a region's body, in which arrays can be changed in place. Prints nothing."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from itertools import count, zip_longest

from tensormagic.backend.planning.inline import MARK, Instance, expand_all, is_marked, is_room, marked, room
from tensormagic.backend.planning.kinds import (
    carried_by,
    filled_by,
    is_inline,
    is_leaf,
    kind_of,
    settle,
    stored_below,
    stripped,
)
from tensormagic.backend.planning.lower import IndexTuple, Roots, Stage, axes_of, make_stage, operand_reads
from tensormagic.backend.planning.shared_arrays import Memory
from tensormagic.backend.planning.size_bounds import RefusedError
from tensormagic.backend.planning.steps import Block, Check, Region, Step, arrays, leaves_of, needed, produced
from tensormagic.ir.graph import Graph, Guard
from tensormagic.ir.node import Node, as_size, topological
from tensormagic.ir.size import Size, is_at_least, nodes_of
from tensormagic.ir.type import Type, python
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.leaf import CONSTANT, IOTA, Source, index_node, input_node, size_of
from tensormagic.ops.move import BROADCAST
from tensormagic.ops.move_kind import Index
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.control import COND, LOOP
from tensormagic.ops.scalars.scalar import stop_gradient

# planning -------------------------------------------------------------------------------------------------------------


def plan_block(
    results: Sequence[Node],
    memory: Memory,
    there: Iterable[Node] = (),
    carries: Sequence[Node] = (),
    latch: Sequence[tuple[Node, Node]] = (),
    guards: Sequence[Guard] = (),
    *,
    inner: bool = False,
) -> Block:
    """Return the steps that compute ``results``.

    Parameters
    ----------
    results
        The requested nodes, in simple ops.
    memory
        Which values share an array; filled in.
    there
        Nodes stored before.
    carries
        Arrays that may be changed.
    latch
        Pairs of a carry and the result that replaces it.
    guards
        Guards on computed integers.
    inner
        Whether it is the block of a region, whose results need no memory if they are numbers.
    """
    forced: set[Node] = set()
    while True:
        attempt = _Attempt(results, memory, frozenset(there), carries, latch, guards, forced, inner=inner)
        more = attempt.order()
        if not more:
            return attempt.block
        forced |= more
        for node in attempt.homes:
            memory.drop(node)


class _Attempt:
    """One attempt at a block; values that are read after their array has been overwritten must be stored, which needs another attempt."""

    def __init__(
        self,
        results: Sequence[Node],
        memory: Memory,
        there: frozenset[Node],
        carries: Sequence[Node],
        latch: Sequence[tuple[Node, Node]],
        guards: Sequence[Guard],
        forced: set[Node],
        *,
        inner: bool,
    ) -> None:
        self.memory = memory
        self.there = there
        self.forced = forced
        self.latch = list(latch)
        self.homes: list[Node] = []
        checks = [Check(g, tuple(dict.fromkeys((*nodes_of(g[0]), *nodes_of(g[2]))))) for g in guards if g[0] != g[2]]
        checked = [n for c in checks for n in c.nodes]
        nodes = topological([*results, *checked], stop=lambda n: n in there)
        kept = [r for r in results if r.type.shape or not is_leaf(r) or not (inner or r.op is CONSTANT)]
        self.roots = Roots(nodes, [*kept, *checked], there, forced)
        self.computed = {
            n for n in nodes if kind_of(n) == "library"
        }  # computed before a region that reads it, not inside
        for node in nodes:
            if self._has_stage(node):
                self.roots.shorten(node)
        self.steps: list[Step] = [*checks]
        for node in nodes:
            if node not in there:
                self.steps += self._steps_of(node)
        self.block = Block(tuple(results), latch=self.latch)
        self.maker = {n: step for step in self.steps for n in produced(step)}
        self._link()
        self._check_first(checks)
        self.changeable = set(carries)
        self.final = {stored_below(n) for r in results for n in leaves_of(r, self.roots.found)}

    def _link(self) -> None:
        """Note which steps read what others make."""
        self.needs = {step: needed(step) for step in self.steps}
        self.readers: dict[Node, list[Step]] = {}
        for step, found in self.needs.items():
            for n in found:
                self.readers.setdefault(n, []).append(step)
        self.before: dict[Step, set[Step]] = {
            step: {self.maker[n] for n in found if n in self.maker} - {step} for step, found in self.needs.items()
        }
        self.then: dict[Step, set[Step]] = {step: set() for step in self.steps}
        for step, earlier in self.before.items():
            for other in earlier:
                self.then[other].add(step)

    def _steps_of(self, node: Node) -> list[Step]:
        kind = kind_of(node)
        if kind == "region":
            return [build_region(node, self.memory, self.roots.found | self.computed)]
        if kind == "library":
            return [node]
        return [make_stage(node, self.roots.found)] if self._has_stage(node) else []

    def _has_stage(self, node: Node) -> bool:
        """Return whether a stage of this block stores ``node``."""
        kinds = {"item", "view", "base", "region", "library"}
        return node in self.roots.found and node not in self.there and kind_of(node) not in kinds

    def _check_first(self, checks: Sequence[Check]) -> None:
        """Let kernels, which do not check bounds, and readers of a guard's integers wait for the guard.

        The same integer may occur twice, computed in two ways, if rewriting has simplified one of them.
        """
        for check in checks:
            for step, found in self.needs.items():
                waits = isinstance(step, Stage | Region) or (
                    isinstance(step, Node) and any(n in found for n in check.nodes)
                )
                if waits and not self._reaches(step, check):
                    self._put_before(check, step)

    # changes in place

    def order(self) -> set[Node]:
        """Order the steps; returns nodes that must be stored first (then another attempt is needed)."""
        for step in list(self.steps):
            more = self._change(step)
            if more:
                return more
        for carry, result in self.latch:
            self._write_over(carry, result)
        self.block.steps = self._sorted()
        self.block.before = self.before
        return set()

    def _change(self, step: Step) -> set[Node]:
        """Let a step change arrays in place, or mark them to be copied; return nodes that must be stored."""
        if isinstance(step, Stage) and step.written is not None:
            more = self._reread(step)
            if more:
                return more
            pairs = [(step.root, step.root.args[0])]
        elif isinstance(step, Region):
            pairs = [(c, s) for c, s in zip(step.carries, step.starts, strict=True) if c.type.shape]
        else:
            return set()
        for taker, value in pairs:
            again = isinstance(step, Region) and (value in step.reads or [v for _, v in pairs].count(value) > 1)
            more = set() if again else self._take(step, taker, value)
            if more:
                return more
            if taker not in self.homes:
                self.block.copied.setdefault(step.root, set()).add(taker)
        return set()

    def _reread(self, stage: Stage) -> set[Node]:
        """Return nodes to store because a store would read them after having changed their operands."""
        base = stage.root.args[0]
        if all(index is not None and _safe(stage, index) for index in self._indices(stage, base)):
            return set()
        parts = {n for n in stage.root.args[1:] if is_inline(n) and n not in self.roots.found}
        if not parts:
            self.block.copied.setdefault(stage.root, set()).add(stage.root)
        return parts

    def _indices(self, stage: Stage, value: Node) -> list[IndexTuple | None]:
        """Return the indices at which a stage reads the array of ``value``, past contents included, or None for a read through a view."""
        owner = self.memory.owner(value)
        return [
            index if stored_below(node) is node else None
            for node, index in stage.reads
            if node.op is not IOTA and self.memory.owner(node) is owner
        ]

    def _is_untouched(self, reader: Step, step: Stage | Region, value: Node) -> bool:
        """Return whether a step stores only to places that ``reader`` does not read."""
        if not isinstance(reader, Stage) or not isinstance(step, Stage) or "slices" not in step.root.params:
            return False
        if reader.written is not None and reader.root.args[0] is value:
            return False
        indices = self._indices(reader, value)
        return all(
            index is not None and _apart_of(_spans(index, reader), _spans(step.identity(), step)) for index in indices
        )

    def _is_changeable(self, value: Node) -> bool:
        kind = kind_of(value)
        own = value in self.changeable or is_room(value) or (value in self.maker and kind not in {"library", "view"})
        return own and value not in self.final and not any(_shows(r, value) for r in self.readers.get(value, ()))

    def _take(self, step: Stage | Region, taker: Node, value: Node) -> set[Node]:
        """Let ``taker`` reuse the array of ``value`` if all other readers can run before; returns nodes that must be stored."""
        if taker in self.block.copied.get(step.root, ()) or not self._is_changeable(value):
            return set()
        others = [r for r in self.readers.get(value, ()) if r is not step]
        untouched = [r for r in others if self._is_untouched(r, step, value)]
        others = [r for r in others if r not in untouched]
        late = [r for r in others if self._reaches(step, r)]
        if late:
            return {n for r in late for n in self._pieces(r, value, step)} - self.forced
        for other in others:
            self._put_before(other, step)
        self.readers.setdefault(taker, []).extend(untouched)
        self._settle(taker, value)
        return set()

    def _settle(self, taker: Node, value: Node) -> None:
        self.memory.put(taker, value)
        self.homes.append(taker)

    def _put_before(self, first: Step, second: Step) -> None:
        self.before[second].add(first)
        self.then[first].add(second)

    def _reaches(self, first: Step, second: Step) -> bool:
        seen = {first}
        stack = [first]
        while stack:
            for step in self.then[stack.pop()]:
                if step is second:
                    return True
                if step not in seen:
                    seen.add(step)
                    stack.append(step)
        return False

    def _pieces(self, step: Step, value: Node, changer: Stage | Region) -> set[Node]:
        """Return the slices of ``value`` that a step reads and ``changer`` changes, if they are smaller than the whole."""
        if not isinstance(step, Stage):
            return set()
        found: set[Node] = set()
        stack = [n for n, _ in step.body]
        seen: set[Node] = set()
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if stripped(node) is value or (kind_of(node) == "take" and stripped(node.args[0]) is value):
                if node is value or not _smaller(node, value):
                    return set()
                if not _is_apart(node, value, changer):
                    found.add(node)
            elif node is step.root or (is_inline(node) and node not in self.roots.found):
                stack += node.needs
        return found

    def _write_over(self, carry: Node, result: Node) -> None:
        """Let a map write the next value of a carry over the old one."""
        step = self.maker.get(result)
        whole = isinstance(step, Stage) and step.kind == "map" and result.type.shape
        if not whole or not isinstance(step, Stage) or result in self.memory.home or carry.type != result.type:
            return
        for other in dict.fromkeys([carry, *(c for c, _ in self.latch)]):
            taken = other in self.final or other not in self.changeable or other.type != carry.type
            if taken or any(self.memory.home.get(n) is other for n in self.homes):
                continue
            readers = [r for r in self.readers.get(other, ()) if r is not step]
            if _reads_as_it_writes(step, other) and not any(self._reaches(step, r) for r in readers):
                for r in readers:
                    self._put_before(r, step)
                self._settle(result, other)
                return

    def _sorted(self) -> list[Step]:
        """Return a topological order that otherwise keeps the given one; stores of constants come first."""
        order = sorted(self.steps, key=lambda step: not _fills(step))
        number = {step: k for k, step in enumerate(order)}
        open_ = {step: len(earlier) for step, earlier in self.before.items()}
        ready = [number[s] for s, count in open_.items() if not count]
        heapq.heapify(ready)
        found: list[Step] = []
        while ready:
            step = order[heapq.heappop(ready)]
            found.append(step)
            for other in self.then[step]:
                open_[other] -= 1
                if not open_[other]:
                    heapq.heappush(ready, number[other])
        return found


def _reads_as_it_writes(step: Stage, array: Node) -> bool:
    """Return whether a map reads, of ``array``, only the element it computes, and not through a view."""
    reads = [(n, index) for n, index in step.reads if stored_below(n) is array]
    return all(n is array and index == step.identity() for n, index in reads)


def _fills(step: Step) -> bool:
    """Return whether a step stores a constant into a new array."""
    return isinstance(step, Stage) and step.written is not None and not any(n.type.shape for n, _ in step.reads)


def _shows(step: Step, value: Node) -> bool:
    """Return whether a step's result may be a view of ``value``."""
    return isinstance(step, Node) and step.op is not CONTRACT and bool(value.type.shape)


def _smaller(node: Node, value: Node) -> bool:
    """Return whether a part of an array may be smaller than the whole."""
    return node.type.size != value.type.size and node.op is not BROADCAST


def _safe(stage: Stage, index: IndexTuple) -> bool:
    """Return whether what a store reads at ``index`` cannot have been changed by another iteration."""
    written = stage.identity()
    if "slices" not in stage.root.params:
        return False
    if index == written:
        return True
    return _apart_of(_spans(index, stage), _spans(written, stage))


def _is_apart(part: Node, value: Node, changer: Stage | Region) -> bool:
    """Return whether a part of a value is disjoint from what a store changes."""
    if not isinstance(changer, Stage) or "slices" not in changer.root.params or stripped(part) is not value:
        return False
    domain, index = axes_of(part.type.shape)
    while part is not value:
        ((part, index),) = operand_reads(part, index)
    return _apart_of([_span(i, domain) for i in index], _spans(changer.identity(), changer))


Span = tuple[Size, Size]


def _spans(index: IndexTuple, stage: Stage) -> list[Span]:
    return [_span(i, stage.domain) for i in index]


def _apart_of(left: Sequence[Span], right: Sequence[Span]) -> bool:
    """Return whether two slices are known to be disjoint."""
    pairs = zip(left, right, strict=True)
    return any(is_at_least(low - last, 1) or is_at_least(first - high, 1) for (low, high), (first, last) in pairs)


def _span(index: Index, domain: Sequence[Size]) -> Span:
    """Return the first and last place along an axis that an index reaches."""
    if index.variable is None:
        return index.offset, index.offset
    last = index.offset + index.step * (domain[int(index.variable[1:])] - 1)
    return (index.offset, last) if index.step > 0 else (last, index.offset)


# regions --------------------------------------------------------------------------------------------------------------


def build_region(root: Node, memory: Memory, found: set[Node]) -> Region:
    """Return the region of a node, over stored nodes outside."""
    build = _build_choice if root.op is COND else _build_repetition
    try:
        region = build(root, memory, found)
    except RefusedError:
        raise RefusedError(root) from None
    steps = [step for block in region.blocks.values() for step in block.steps]
    if any(isinstance(step, Stage) and MARK not in step.root.params for step in steps):
        raise RefusedError(root)  # the same node may also be computed elsewhere, at another time
    own = {*region.carries, region.index, *(n for _, n in region.results)}
    reads: dict[Node, None] = {}
    for block in region.blocks.values():
        made = {n for step in block.steps for n in produced(step)} | own
        seen = [n for step in block.steps for n in needed(step)]
        seen += [n for r in block.results for n in leaves_of(r, made | found)]
        reads.update(dict.fromkeys(n for n in map(stored_below, seen) if n not in made))
    for start in (region.head, *region.starts):
        if start is not None and not start.type.shape:
            reads.update(dict.fromkeys(leaves_of(start, found)))
    region.reads = tuple(reads)
    return region


_serial = count()


def _local(name: str, p: Node, like: Node) -> Node:
    """Return a stand-in for a value that changes from iteration to iteration."""
    return input_node(Source(name), Type(p.type.dtype, like.type.shape, p.type.form))


def _block(
    graph: Graph, operands: Sequence[Node], memory: Memory, found: set[Node], carries: Sequence[Node | None]
) -> Block:
    """Return the block of a graph over ``operands``; its results replace ``carries``."""
    expanded = expand_all([*graph.results, *graph.checked], inside=True)
    own = next(_serial)
    instance = Instance(graph, operands, own, found)
    every = instance.of(expanded)
    settle(topological(every))
    for node, new in zip(graph.checked, every[len(graph.results) :], strict=True):
        instance.sizes[node] = as_size(new) or 0
    results = _apart(every[: len(graph.results)], carries, own)
    settle(results)
    guards = [(instance.size(a), r, instance.size(b)) for a, r, b in graph.checks]
    latch = [(c, r) for c, r in zip(carries, results, strict=False) if c is not None and r.type.shape]
    locals_ = [c for c in carries if c is not None]
    return plan_block(results, memory, {*found, *locals_}, arrays(locals_), latch, guards, inner=True)


def _apart(results: Sequence[Node], carries: Sequence[Node | None], number: int) -> list[Node]:
    """Return the results with copies, so that all are computed here and no two share an array.

    Carries may trade places with each other; for a result that is no carry, the array is copied.
    """
    seen = {r for r, c in zip(results, carries, strict=False) if r is c}
    found: list[Node] = []
    for result, carry in zip_longest(results, carries):
        node = result
        if result is not carry and result.type.shape:
            trades = carry is not None and result in carries
            fresh = trades or (is_marked(result, number) and kind_of(result) != "view")
            node = result if fresh else marked(stop_gradient(result), number)
            while node in seen:
                node = marked(stop_gradient(node), number)
            seen.add(node)
        found.append(node)
    return found


def _build_repetition(root: Node, memory: Memory, found: set[Node]) -> Region:
    first = int(root.op is LOOP)
    body: Graph = root["body"]
    filled = filled_by(root)
    starts = tuple(
        room(start.type) if k in filled else start
        for k, start in enumerate(root.args[first : first + root["carries"]], first)
    )
    constants = root.args[first + root["carries"] :]
    carries = tuple(_local("carry", p, s) for p, s in zip(body.parameters[first:], starts, strict=False))
    operands = (*carries, *constants)
    head = root.args[0] if first else None
    index = None
    blocks: dict[str, Block] = {}
    if head is None:
        blocks["test"] = _block(root["test"], operands, memory, {*found, *carries}, ())
    else:
        size = size_of(head)
        index = index_node("index", 0, size) if size is not None else input_node(Source("index"), python(int))
        index = index if index.type == body.parameters[0].type else _local("index", body.parameters[0], head)
    inner = operands if index is None else (index, *operands)
    blocks["body"] = _block(body, inner, memory, found, carries)
    for item, carry in zip(items(root), carries, strict=True):
        if carry.type.shape:
            memory.put(item, carry)
    results = tuple(zip(items(root), carries, strict=True))
    return Region(root, head, index, carries, starts, results, blocks)


def _build_choice(root: Node, memory: Memory, found: set[Node]) -> Region:
    """Return a choice: an array that both branches keep or store into is carried, other results get arrays of their own."""
    ties = carried_by(root)
    then: Graph = root["then"]
    tied = {j: _local("carry", then.parameters[j - 1], root.args[j]) for j in ties.values()}
    operands = [tied.get(j, a) for j, a in enumerate(root.args[1:], 1)]
    ends = [
        tied[ties[k]] if k in ties else _local("result", r, item)
        for k, (r, item) in enumerate(zip(then.results, items(root), strict=True))
    ]
    blocks: dict[str, Block] = {}
    for name in ("then", "otherwise"):
        given = [end if k in ties else None for k, end in enumerate(ends)]
        block = blocks[name] = _block(root[name], operands, memory, {*found, *tied.values()}, given)
        for result, end, carry in zip(block.results, ends, given, strict=True):
            if carry is None and result.type.shape:
                memory.put(memory.owner(result), end)
    for item, end in zip(items(root), ends, strict=True):
        if end.type.shape:
            memory.put(item, end)
    starts = tuple(root.args[j] for j in tied)
    return Region(
        root, root.args[0], None, tuple(tied.values()), starts, tuple(zip(items(root), ends, strict=True)), blocks
    )
