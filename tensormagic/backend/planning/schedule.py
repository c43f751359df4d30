"""Group stages into loop nests, order them, and choose where their values are kept. Prints nothing.

A *nest* is a loop over tiles of rows (its leading axes, taken as one), and in each tile a sequence of *loops* over
the tile's rows and the remaining axes. A value that only the nest uses lives in a local variable or for one tile;
no full-size array is stored for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from tensormagic.backend.planning.fusion import is_fused
from tensormagic.backend.planning.kinds import is_product, stored_below
from tensormagic.backend.planning.lower import Stage, variable
from tensormagic.backend.planning.same_rows import is_changer, meetings, rows_in_common
from tensormagic.backend.planning.shared_arrays import Memory
from tensormagic.backend.planning.skipped_folds import left_out, skip_of
from tensormagic.backend.planning.steps import Block, Check, Region, needed, produced
from tensormagic.backend.planning.steps import Step as BlockStep
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, nodes_of, product
from tensormagic.ops.leaf import IOTA
from tensormagic.ops.move_kind import Index

MOST_NEST_OPS = 72  # in one nest
MOST_KERNEL_OPS = 72  # in one kernel, which is one or several nests
LOOK_BACK = 12  # how many nests back a stage looks for one to join


class Storage(Enum):
    """Where the value of a stage is kept."""

    LOCAL = "a variable of its loop"
    TILE = "memory for one tile of rows"
    FULL = "an array"


@dataclass(eq=False)
class Loop:
    """Stages in one loop over the rows of a tile and the same inner axes."""

    inner: tuple[Size, ...]
    stages: list[Stage] = field(default_factory=list)

    def takes(self, stage: Stage, inner: tuple[Size, ...]) -> bool:
        """Return whether a stage with these inner axes may join: at most one heavy function, and the same condition for skipping."""
        if skip_of(stage) != skip_of(self.stages[0]):
            return False
        return self.inner == inner and not (stage.heavy and any(s.heavy for s in self.stages))


@dataclass(eq=False)
class Nest:
    """Stages that share their leading axes.

    ``depths`` are the possible numbers of leading axes that form the rows; ``depth`` and ``loops`` are set when the
    nest is complete. A nest of rank-0 stages has the depth 0 and no rows. No other stage joins a nest that is
    ``alone``. ``lodged`` maps a value to the result in whose memory it is kept for a tile.
    """

    stages: list[Stage] = field(default_factory=list)
    depths: frozenset[int] = frozenset()
    alone: bool = False
    depth: int = 0
    loops: list[Loop] = field(default_factory=list)
    storage: dict[Node, Storage] = field(default_factory=dict)
    lodged: dict[Node, Node] = field(default_factory=dict)

    @property
    def rows(self) -> tuple[Size, ...]:
        """Return the extents of the rows."""
        return self.stages[0].domain[: self.depth]

    @property
    def ops(self) -> int:
        """Return how many scalar operations there are."""
        return sum(s.ops for s in self.stages)

    def is_total(self, stage: Stage) -> bool:
        """Return whether a stage folds the rows, so that its value is known only after the nest."""
        return bool(self.depth) and 0 in stage.reduced


Part = Nest | Region | Check


def steps_in(item: Part | Node) -> Sequence[BlockStep]:
    """Return the stages of a nest; anything else is one step."""
    return item.stages if isinstance(item, Nest) else [item]


@dataclass(eq=False)
class Kernel:
    """Nests, regions and checks compiled into one machine function."""

    parts: list[Part] = field(default_factory=list)

    @property
    def nests(self) -> list[Nest]:
        """Return the nests that are not within a region."""
        return [part for part in self.parts if isinstance(part, Nest)]

    @property
    def regions(self) -> list[Region]:
        """Return the regions."""
        return [part for part in self.parts if isinstance(part, Region)]

    @property
    def stages(self) -> list[Stage]:
        """Return the stages of all nests, in order, without those of regions."""
        return [s for nest in self.nests for s in nest.stages]

    @property
    def steps(self) -> list[Stage | Region | Check]:
        """Return stages, regions and checks, in order."""
        return [s for part in self.parts for s in (part.stages if isinstance(part, Nest) else [part])]

    @property
    def ops(self) -> int:
        """Return how many scalar operations the nests have."""
        return sum(nest.ops for nest in self.nests)


Step = Kernel | Node


def schedule(block: Block, memory: Memory, *, apart: bool = False) -> list[Step]:
    """Return kernels and library nodes, in the order in which they run.

    With ``apart``, each nest is a kernel of its own, except that scalars belong to the kernel before.
    """
    items = arrange(block, memory, _by_level(block), apart=apart)
    steps: list[Step] = []
    for item in items:
        if isinstance(item, Node):
            steps.append(item)
            continue
        last = steps[-1] if steps else None
        joins = isinstance(last, Kernel) and not last.regions and not isinstance(item, Region)
        if apart or not is_fused():
            joins = joins and isinstance(item, Nest) and not item.depths and _gives_numbers(last)
        if joins and isinstance(last, Kernel) and isinstance(item, Nest) and _sized_within(item, last):
            joins = False
        if joins and isinstance(last, Kernel) and last.ops + getattr(item, "ops", 0) <= MOST_KERNEL_OPS:
            last.parts.append(item)
        else:
            steps.append(Kernel([item]))
    return steps


def _gives_numbers(step: Step | None) -> bool:
    """Return whether a kernel only yields numbers."""
    if not isinstance(step, Kernel) or step.regions:
        return False
    kept = [s for nest in step.nests for s in nest.stages if nest.storage[s.root] is Storage.FULL or s.reduced]
    return all(not s.root.type.shape for s in kept)


def _sized_within(nest: Nest, other: Nest | Kernel) -> bool:
    """Return whether the size of an array that a nest makes is computed by ``other``."""
    made = {s.root for s in other.stages}
    return any(n in made for s in nest.stages for size in s.root.type.shape for n in nodes_of(size))


def arrange(
    block: Block, memory: Memory, steps: Sequence[BlockStep] | None = None, *, apart: bool = False
) -> list[Part | Node]:
    """Return the steps of a block with its stages in nests; with ``apart``, stores into one array are in separate nests."""
    items = _Arrangement(memory, block, steps or block.steps, apart=apart).items
    outside = _used_outside(block, items)
    for item in items:
        if isinstance(item, Nest):
            _complete(item, outside[item], memory)
            _lodge(item, memory)
    return items


def _by_level(block: Block) -> list[BlockStep]:
    """Return the steps ordered so that library calls interrupt the loops rarely; calls that wait for no loop come first."""
    level: dict[BlockStep, int] = {}
    for step in block.steps:
        calls = isinstance(step, Node)
        level[step] = max((level[o] + (calls and not isinstance(o, Node)) for o in block.before[step]), default=0)
    return sorted(block.steps, key=lambda step: (level[step], not isinstance(step, Node)))


# nests ----------------------------------------------------------------------------------------------------------------


class _Arrangement:
    """Stages combined into nests: each joins an earlier nest if possible."""

    def __init__(self, memory: Memory, block: Block, steps: Sequence[BlockStep], *, apart: bool) -> None:
        self.memory = memory
        self.apart = apart
        self.before = block.before
        self.copied = block.copied
        self.items: list[Part | Node] = []
        self.number: dict[BlockStep, int] = {}
        self.where: dict[Node, int] = {}
        self.owner: dict[Node, Stage] = {}
        for step in steps:
            if isinstance(step, Stage):
                self.owner[step.root] = step
                number = self._place(step)
            else:
                self.items.append(step)
                number = len(self.items) - 1
            self.number[step] = number
            self.where.update(dict.fromkeys(produced(step), number))
        self.items = [item for item in self.items if not isinstance(item, Nest) or item.stages]

    def _place(self, stage: Stage) -> int:
        """Return the position of the item that ``stage`` joins, or starts."""
        earliest = max((self.number[s] for s in self.before[stage]), default=-1)
        for k in range(len(self.items) - 1, max(earliest, len(self.items) - LOOK_BACK, 0) - 1, -1):
            nest = self.items[k]
            if isinstance(nest, Nest) and nest.stages and self._join(stage, nest, k):
                self._unite(stage, k)
                return k
        self.items.append(Nest([stage], _depths(stage), alone=_stands_alone(stage)))
        return len(self.items) - 1

    def _unite(self, stage: Stage, number: int) -> None:
        """Merge other nests that a stage reads from into the nest it has joined, if possible."""
        for other in sorted({self.where[n] for n, _ in stage.reads if n in self.where} - {number}, reverse=True):
            nest, later = self.items[other], self.items[number]
            if not isinstance(nest, Nest) or not isinstance(later, Nest) or not nest.depths or not later.depths:
                continue
            if any(
                s in self.before[step]
                for item in self.items[other + 1 : number]
                for step in steps_in(item)
                for s in nest.stages
            ):
                continue  # the nest has to run before these
            united = Nest([*nest.stages], nest.depths, nest.alone)
            self.where.update((s.root, number) for s in nest.stages)
            if all(self._join(s, united, number, wanted=True) for s in later.stages):
                self.items[number], self.items[other] = united, Nest()
                self.number.update(dict.fromkeys(nest.stages, number))
            else:
                self.where.update((s.root, other) for s in nest.stages)

    def _rows_kept(self, stage: Stage, nest: Nest, depths: Iterable[int]) -> set[int]:
        """Return those of ``depths`` with which rows are processed independently in all arrays that one of the stages changes."""
        most, made = len(stage.domain), {s.root for s in nest.stages}
        for s in nest.stages:
            if is_changer(stage, self.memory) or is_changer(s, self.memory):
                found = meetings(s, stage, self.memory, made)
                if found is None or (found and self.apart):
                    return set()
                most = rows_in_common(found, most)
        return {d for d in depths if d <= most}

    def _join(self, stage: Stage, nest: Nest, number: int, *, wanted: bool = False) -> bool:
        """Let a stage join a nest if their loops match, and there is something to gain or ``wanted`` is set; return whether it did."""
        if not self._may_join(stage, nest):
            return False
        numbers = not stage.domain or not nest.depths
        copies = stage.root in self.copied  # copies are made before the nest begins
        hidden = {n for n in hidden_reads(stage) if self.where.get(n) == number}
        if (hidden and copies) or (
            hidden and not numbers and (stage.written is None or hidden != {stage.root.args[0]})
        ):
            return False
        if numbers:
            return self._join_numbers(stage, nest)
        own = [(self.owner[n], index) for n, index in stage.reads if self.where.get(n) == number]
        if not own and (not (wanted or hidden or _shares(stage, nest)) or _stores_elsewhere(stage, nest)):
            return False
        depths = self._rows_kept(stage, nest, _common_depths(stage, nest, own))
        if not depths:
            return False
        nest.depths = frozenset(depths)
        nest.stages.append(stage)
        return True

    def _may_join(self, stage: Stage, nest: Nest) -> bool:
        """Return whether a stage and a nest may be one kernel: not too large, without special loops, and in any order."""
        if nest.ops + stage.ops > MOST_NEST_OPS or nest.alone or _stands_alone(stage):
            return False
        if (stage.domain and not is_fused()) or left_out(stage) != left_out(nest.stages[0]):
            return False
        return not _sized_within(Nest([stage]), nest)

    def _join_numbers(self, stage: Stage, nest: Nest) -> bool:
        """Let a scalar stage join a nest of scalars, unless it reads what others store; return whether it did."""
        if stage.domain or nest.depths or not self._rows_kept(stage, nest, {0}):
            return False
        nest.stages.append(stage)
        return True


def _common_depths(stage: Stage, nest: Nest, own: Sequence[tuple[Stage, tuple[Index, ...]]]) -> set[int]:
    """Return the possible numbers of leading axes that form the rows of both, given the nest's results that the stage reads."""
    head = nest.stages[0].domain
    depths = {d for d in nest.depths & _depths(stage) if head[:d] == stage.domain[:d]}
    for producer, index in own:
        if 0 in producer.reduced:
            return set()
        if producer.written is None:
            depths = {d for d in depths if d <= _aligned(producer, index)}
    return depths


def _stands_alone(stage: Stage) -> bool:
    """Return whether a stage has special loops: a sequential scan, or a blocked matrix product."""
    return stage.kind == "sequence" or is_product(stage.root)


def hidden_reads(stage: Stage) -> list[Node]:
    """Return the arrays that a stage needs whole at every iteration: memory under views, and the target of a store."""
    return [n for n in needed(stage) if n not in {r for r, _ in stage.reads}] + (
        [stored_below(stage.root.args[0])] if stage.written is not None else []
    )


def _shares(stage: Stage, nest: Nest) -> bool:
    """Return whether both read the same array."""
    mine = {n for n, index in stage.reads if any(i.variable for i in index) and n.op is not IOTA}
    return any(n in mine for s in nest.stages for n, _ in s.reads)


def _stores_elsewhere(stage: Stage, nest: Nest) -> bool:
    """Return whether slices of other extents are stored, which would need loops of their own."""
    stores = stage.written is not None or any(s.written is not None for s in nest.stages)
    return stores and all(s.domain != stage.domain for s in nest.stages)


def _depths(stage: Stage) -> frozenset[int]:
    """Return the possible numbers of leading axes that form the rows: all of them folded, or none."""
    rank = len(stage.domain)
    if not stage.reduced:
        return frozenset(range(1, rank + 1))
    first = min(stage.reduced)
    if first:
        return frozenset(range(1, first + 1))
    prefix = next((k for k in range(rank) if k not in stage.reduced), rank)
    return frozenset(range(1, prefix + 1))


def _aligned(producer: Stage, index: tuple[Index, ...]) -> int:
    """Return the number of leading loops for which a read of what ``producer`` computes stays in the same row."""
    axis_of = {position: axis for axis, position in enumerate(producer.place) if position is not None}
    count = 0
    while count in axis_of and index[axis_of[count]] == Index(variable(count)):
        count += 1
    return count


def _used_outside(block: Block, items: Sequence[Part | Node]) -> dict[Nest, set[Node]]:
    """Return for each nest the nodes that are results, or read by another item."""
    home = {s.root: item for item in items if isinstance(item, Nest) for s in item.stages}
    outside: dict[Nest, set[Node]] = {item: set() for item in items if isinstance(item, Nest)}

    def use(node: Node, by: Part | Node | None) -> None:
        nest = home.get(node)
        if nest is not None and nest is not by:
            outside[nest].add(node)

    for r in block.results:
        use(stored_below(r), None)
    for item in items:
        for step in steps_in(item):
            for n in needed(step):
                use(n, item)
    return outside


# loops
# ----------------------------------------------------------------------------------------------------------------


def _complete(nest: Nest, outside: set[Node], memory: Memory) -> None:
    """Choose the rows of a nest, merge its loops, and choose where values are kept."""
    if not nest.depths:
        nest.loops = [Loop((), nest.stages)]
        nest.storage = {s.root: Storage.FULL if s.root in outside else Storage.LOCAL for s in nest.stages}
        return
    for depth in sorted(nest.depths, reverse=True):
        nest.depth = depth
        nest.loops = _merge(nest, memory)
        if depth == 1 or all(loop.inner or collapses(loop.stages, range(depth)) for loop in nest.loops):
            break
    loop_of = {s.root: k for k, loop in enumerate(nest.loops) for s in loop.stages}
    later = {n for k, loop in enumerate(nest.loops) for s in loop.stages for n, _ in s.reads if loop_of.get(n, k) < k}
    changed = {memory.owner(s.root) for s in nest.stages if s.root in memory.home}
    for s in nest.stages:
        full = s.root in outside or s.root in changed or s.kind in {"store", "sequence"}
        kept = Storage.FULL if full else Storage.TILE if s.root in later else Storage.LOCAL
        if kept is Storage.LOCAL and s.reduced:
            kept = Storage.TILE
        nest.storage[s.root] = kept


def _lodge(nest: Nest, memory: Memory) -> None:
    """Keep a value of a tile in the memory of a result that is computed last from it, element by element.

    The cache lines of the result are then fetched while values are computed, and not when only stores are left.
    """
    loop_of = {s.root: k for k, loop in enumerate(nest.loops) for s in loop.stages}
    for host in nest.stages:
        guests = (s for s in nest.stages if _may_lodge(s, host, nest, loop_of)) if _is_host(host, nest, memory) else ()
        guest = next(iter(guests), None)
        if guest is not None:
            nest.lodged[guest.root] = host.root


def _is_host(stage: Stage, nest: Nest, memory: Memory) -> bool:
    """Return whether a stage stores its values, element by element, into memory that only it uses."""
    root = stage.root
    stored = nest.storage.get(root) is Storage.FULL and stage.kind == "map"
    return stored and memory.owner(root) is root and memory.group(root) is root


def _may_lodge(guest: Stage, host: Stage, nest: Nest, loop_of: dict[Node, int]) -> bool:
    """Return whether no value of ``guest`` is needed after ``host`` has stored its element."""
    a, b = guest.root.type, host.root.type
    same = (a.dtype, a.shape, guest.domain, guest.place) == (b.dtype, b.shape, host.domain, host.place)
    if not same or guest.reduced or nest.storage[guest.root] is not Storage.TILE:
        return False
    indices = [index for node, index in host.reads if node is guest.root]
    others = [s for s in nest.stages if s is not host and any(n is guest.root for n, _ in s.reads)]
    last = loop_of[host.root]
    return indices == [guest.identity()] and all(loop_of[s.root] < last for s in others)


def _merge(nest: Nest, memory: Memory) -> list[Loop]:
    """Return the loops of a nest: a stage joins the first one with its axes that comes after what it reads, and what it stores over."""
    loops: list[Loop] = []
    owner = {s.root: s for s in nest.stages}
    place: dict[Node, int] = {}
    changers = {s.root for s in nest.stages if is_changer(s, memory)}
    for stage in nest.stages:
        first = 0
        for node, index in stage.reads:
            if node in place and owner[node].written is None:
                first = max(first, place[node] + (not _same_iteration(owner[node], index, stage)))
        for node, number in place.items():
            if node in changers or stage.root in changers:
                found = meetings(owner[node], stage, memory, owner) or ()
                apart = any(a != b for a, b in found) and len(stage.domain) > nest.depth
                first = max(first, number + (apart or owner[node].domain != stage.domain) if found else 0)
        inner = stage.domain[nest.depth :]
        number = next((k for k in range(first, len(loops)) if loops[k].takes(stage, inner)), len(loops))
        if number == len(loops):
            loops.append(Loop(inner))
        loops[number].stages.append(stage)
        place[stage.root] = number
    return loops


def _same_iteration(producer: Stage, index: tuple[Index, ...], stage: Stage) -> bool:
    """Return whether a read needs only what the same iteration has computed."""
    return not producer.reduced and producer.domain == stage.domain and index == producer.identity()


def strides(shape: Sequence[Size]) -> list[Size]:
    """Return the C-order strides of a shape, in elements."""
    return [product(tuple(shape[k + 1 :])) for k in range(len(shape))]


def coefficients(node: Node, index: tuple[Index, ...]) -> tuple[dict[int, Size], Size]:
    """Return an index into an array as a linear function of the loop variables: a factor for each, and an offset."""
    factors: dict[int, Size] = {}
    offset: Size = 0
    for i, stride in zip(index, strides(node.type.shape), strict=True):
        if i.variable is not None:
            position = int(i.variable[1:])
            factors[position] = factors.get(position, 0) + i.step * stride
        offset = offset + i.offset * stride
    return factors, offset


def collapses(stages: Iterable[Stage], positions: Sequence[int]) -> bool:
    """Return whether loops over neighbouring positions may run as one, since every access goes through them in order."""
    pairs = list(pairwise(positions))
    return all(_collapse_pair(stage, outer, inner) for stage in stages for outer, inner in pairs)


def _collapse_pair(stage: Stage, outer: int, inner: int) -> bool:
    if (outer in stage.reduced) != (inner in stage.reduced):
        return False
    for node, index in (*stage.reads, (stage.root, stage.identity())):
        if node.op is IOTA:
            if index[node["axis"]].variable in {variable(outer), variable(inner)}:
                return False
            continue
        factors, _ = coefficients(node, index)
        if factors.get(outer, 0) != factors.get(inner, 0) * stage.domain[inner]:
            return False
    return True
