"""From nodes to stages: which values are stored, and which are computed inside the loops that use them. Prints nothing, and orders nothing.

A *stage* computes one stored node by a loop nest over a domain: a pointwise result, a fold, or a store into an array.
Everything between stored nodes is written into the stages that use it: pointwise functions by their scalar text, moves
by index maps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tensormagic.backend.planning.fusion import is_fused
from tensormagic.backend.planning.kinds import (
    WORTH_STORING,
    carried,
    cost_of,
    is_fold,
    is_heavy,
    is_inline,
    is_inline_move,
    is_leaf,
    is_loop,
    is_map,
    is_product,
    kind_of,
    stripped,
)
from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.second_looks import second_looks
from tensormagic.ir.size import Size, Symbol, atom, nodes_of
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.fold import ARGMAX, ARGMIN
from tensormagic.ops.indices.gather import ADD_ALONG_AXIS, GATHER
from tensormagic.ops.leaf import IOTA
from tensormagic.ops.move import BROADCAST
from tensormagic.ops.move_kind import Index
from tensormagic.ops.update import ADD_AT, SET

IndexTuple = tuple[Index, ...]
Read = tuple[Node, IndexTuple]

ANYWHERE = Index(None, 1, atom(Symbol("anywhere", None, 0)))  # an index along an axis that is read from an index array
MOST_OPS = 48  # in one stage: the compile time of LLVM grows faster than the length of a function


@dataclass(frozen=True, eq=False)
class Stage:
    """A loop nest that computes one node.

    Parameters
    ----------
    root
        The node.
    domain
        Extents of the loops, outermost first; none is the number 1.
    reduced
        Positions in ``domain`` that the result does not have.
    place
        For each axis of the result its position in ``domain``; None for an extent of 1.
    body
        What is stored, or folded (several factors for a contraction): nodes with their indices.
    reads
        Every stored node, parameter or ramp that the body reads, with its index; also numbers in sizes.
    ops
        The number of scalar operations, for keeping kernels small.
    heavy
        Whether one of them is dear enough for a loop of its own.
    written
        For a store, the index of the element that an iteration writes.
    """

    root: Node
    domain: tuple[Size, ...]
    reduced: frozenset[int]
    place: tuple[int | None, ...]
    body: tuple[Read, ...]
    reads: tuple[Read, ...]
    ops: int
    heavy: bool
    written: IndexTuple | None = None

    def identity(self) -> IndexTuple:
        """Return the index of the result's element that an iteration computes."""
        if self.written is not None:
            return self.written
        return tuple(Index(None) if k is None else Index(variable(k)) for k in self.place)

    @property
    def kind(self) -> str:
        """Return how it is printed: ``"map"``, ``"fold"``, ``"store"`` or ``"sequence"``."""
        kind = kind_of(self.root)
        return kind if kind in {"fold", "store", "sequence"} else "map"


def variable(position: int) -> str:
    """Return the loop variable of a position in a domain."""
    return f"d{position}"


# stored nodes ---------------------------------------------------------------------------------------------------------


class Roots:
    """Which nodes are stored.

    Parameters
    ----------
    nodes
        All nodes, operands first, down to those stored already.
    results
        The requested nodes.
    there
        Nodes stored already.
    forced
        Nodes that must be stored.
    """

    def __init__(
        self, nodes: Sequence[Node], results: Iterable[Node], there: Iterable[Node] = (), forced: Iterable[Node] = ()
    ) -> None:
        self.there = frozenset(there)
        self.found: set[Node] = set(self.there)
        self.wanted = {r for r in results if is_loop(r)} | set(forced)
        self.shared: dict[Node, int] = {}
        self.stretched: set[Node] = set()
        self.heavy: set[Node] = set()  # nodes with a heavy function in their inlined expression
        own = [n for n in nodes if n not in self.there]
        self._second = second_looks(own)
        for node in own:
            self._use(node)
        costs: dict[Node, int] = {}
        for node in own:
            if not is_loop(node):
                continue
            cost = cost_of(node.op) if is_map(node) else 0
            costs[node] = min(100, cost + sum(costs.get(a, 0) for a in node.args if a not in self.found))
            self._part(node)
            if self._stored(node, costs[node]):
                self.found.add(node)

    def _part(self, node: Node) -> None:
        """Store operands so that no stage has more than one heavy function, whose constants fill the registers."""
        if node in self._second:
            return
        operands = [stripped(a) for a in node.args]
        heavy = [a for a in dict.fromkeys(operands) if a in self.heavy and a not in self.found]
        own = is_map(node) and is_heavy(node)
        if own or heavy:
            self.heavy.add(node)
        extra = heavy if own else heavy[:-1]
        self.found.update(a for a in extra if a.type.shape)

    def _use(self, node: Node) -> None:
        for arg in dict.fromkeys(() if node in self._second else node.args):
            self.shared[arg] = self.shared.get(arg, 0) + 1
            if _stretches(node, arg):
                self.stretched.add(stripped(arg))
        self.wanted.update(n for n in node.sized_by if is_inline(n))
        kind = kind_of(node)
        if kind in {"library", "region"} or is_product(node):
            inner = [stripped(a) if a.types[0].shape else a for a in node.args]
            self.wanted.update(a for a in inner if is_inline(a) and not is_leaf(a))
        self.wanted.update(a for a in carried(node) if is_loop(a))

    def _stored(self, node: Node, cost: int) -> bool:
        if is_leaf(node):
            return node in self.wanted
        if not is_inline(node) or node in self.wanted:
            return True
        if not node.type.shape:  # computed once for a kernel in any case
            return False
        if is_map(node) and not is_fused():
            return True
        return is_map(node) and cost >= WORTH_STORING and (self.shared.get(node, 0) > 1 or node in self.stretched)

    def shorten(self, root: Node) -> None:
        """Store inner nodes of the stage of ``root`` if it would be too long.

        This is done for all roots before any stage is made: others read what one of them stores.
        """
        inside = self._inside(root)
        used = _last_uses(inside, root)
        begin = 0
        while len(inside) - begin > MOST_OPS:
            begin, cut = _narrowest(inside, begin, used)
            self.found.update(cut)

    def _inside(self, root: Node) -> list[Node]:
        """Return the operations inlined into the stage of ``root``, operands first."""
        order = topological(root.args, stop=lambda n: n in self.found or not is_inline(n))
        return [n for n in order if kind_of(n) in {"map", "take"} and n not in self.found]


def _last_uses(inside: Sequence[Node], root: Node) -> dict[Node, int]:
    """Return for each operation the number of its last user."""
    numbers = {node: k for k, node in enumerate(inside)}
    last: dict[Node, int] = {}
    for node in (*inside, root):
        for arg in node.args:
            last[stripped(arg)] = numbers.get(node, len(inside))
    return last


def _narrowest(inside: Sequence[Node], begin: int, last: dict[Node, int]) -> tuple[int, list[Node]]:
    """Return where to cut, in the upper half of a stage's capacity, so that the fewest values cross; and these values."""
    best: tuple[int, int, list[Node]] | None = None
    alive: list[Node] = []
    for k in range(begin, begin + MOST_OPS):
        alive = [n for n in (*alive, inside[k]) if last[n] > k]
        if k >= begin + MOST_OPS // 2 and (best is None or len(alive) <= best[0]):
            best = len(alive), k + 1, alive
    assert best is not None  # noqa: S101 (the slice is longer than half the limit)
    return best[1], best[2]


def _stretches(node: Node, arg: Node) -> bool:
    """Return whether ``node`` uses an element of ``arg`` several times."""
    if node.op is BROADCAST:
        return arg.type.size != node.type.size
    if node.op is CONTRACT:
        (a, b), _ = split(node["subscripts"])
        letters = a if arg is node.args[0] else b
        return set(letters) != set(a) | set(b)
    return kind_of(node) == "take" and "axis" in node.params


# stages ---------------------------------------------------------------------------------------------------------------


def make_stage(root: Node, stored: set[Node]) -> Stage:
    """Return the stage that computes ``root``, with its loops ordered so that most reads are contiguous."""
    domain, reduced, place, body, written = _natural(root)
    reads, ops, heavy = _reads(root, domain, body, written, stored)
    order = list(range(len(domain)))
    if root.op in {ARGMAX, ARGMIN}:
        order.sort(key=lambda k: k in reduced)
    elif kind_of(root) not in {"store", "sequence"} or root.op in {SET, ADD_AT}:
        target = [int(i.variable[1:]) for i in written if i.variable is not None] if written else place
        order = _order(reads, target if not reduced else None, len(domain))
    return reordered(Stage(root, domain, reduced, place, body, reads, ops, heavy, written), order)


def reordered(stage: Stage, order: Sequence[int]) -> Stage:
    """Return a stage with its loops permuted; ``order`` lists old positions."""
    if list(order) == list(range(len(stage.domain))):
        return stage
    move = {old: new for new, old in enumerate(order)}
    rename = {variable(old): variable(new) for old, new in move.items()}
    return replace(
        stage,
        body=tuple((n, _renamed(i, rename)) for n, i in stage.body),
        reads=tuple((n, _renamed(i, rename)) for n, i in stage.reads),
        written=None if stage.written is None else _renamed(stage.written, rename),
        domain=tuple(stage.domain[old] for old in order),
        reduced=frozenset(move[k] for k in stage.reduced),
        place=tuple(None if k is None else move[k] for k in stage.place),
    )


def _renamed(index: IndexTuple, rename: dict[str, str]) -> IndexTuple:
    return tuple(i if i.variable is None else i._replace(variable=rename[i.variable]) for i in index)


Natural = tuple[tuple[Size, ...], frozenset[int], tuple[int | None, ...], tuple[Read, ...], IndexTuple | None]


def _natural(root: Node) -> Natural:
    if root.op is CONTRACT:
        return _natural_contraction(root)
    if kind_of(root) == "store":
        return _natural_store(root)
    folds = is_fold(root) or kind_of(root) == "sequence"
    domain, index = axes_of(root.args[0].type.shape if folds else root.type.shape)
    if not folds:
        return domain, frozenset(), _positions(index), ((root, index),), None
    axes = set(root.params.get("axes", (0,)))
    reduced = frozenset(p for k, p in enumerate(_positions(index)) if k in axes and p is not None)
    kept = tuple(p for k, p in enumerate(_positions(index)) if k not in axes)
    place = kept if root.type.ndim != len(index) or is_fold(root) else _positions(index)
    return domain, reduced, place, ((root.args[0], index),), None


def axes_of(shape: Sequence[Size]) -> tuple[tuple[Size, ...], IndexTuple]:
    """Return the loops over a shape, none for an extent of 1, and the index of an element."""
    axes = [k for k, s in enumerate(shape) if s != 1]
    position = {axis: k for k, axis in enumerate(axes)}
    index = tuple(Index(variable(position[k])) if k in position else Index(None) for k in range(len(shape)))
    return tuple(shape[k] for k in axes), index


def _positions(index: IndexTuple) -> tuple[int | None, ...]:
    return tuple(None if i.variable is None else int(i.variable[1:]) for i in index)


def _natural_store(root: Node) -> Natural:
    """Return a store loops over the stored value; with an index array, the place is read for each element."""
    value = root.args[-1]
    domain, index = axes_of(value.type.shape)
    body: list[Read] = [(value, index)]
    if "slices" in root.params:
        written = tuple(i.through(start, step) for i, (start, _, step) in zip(index, root["slices"], strict=True))
    else:
        axis = root["axis"]
        along = root.op is ADD_ALONG_AXIS
        count = 1 if along else root.args[1].type.ndim
        body.append((root.args[1], index if along else index[axis : axis + count]))
        written = (*index[:axis], ANYWHERE, *index[axis + count :])
    return domain, frozenset(), (), tuple(body), written


def _natural_contraction(root: Node) -> Natural:
    (a, b), out = split(root["subscripts"])
    letters = next((own for own in (a, b) if set(own) == set(a) | set(b)), None) or _product_order(a, b, out)
    extents = dict(zip(b, root.args[1].type.shape, strict=True)) | dict(zip(a, root.args[0].type.shape, strict=True))
    kept = [c for c in letters if extents[c] != 1]
    position = {c: k for k, c in enumerate(kept)}

    def index(own: str) -> IndexTuple:
        return tuple(Index(variable(position[c])) if c in position else Index(None) for c in own)

    body = ((root.args[0], index(a)), (root.args[1], index(b)))
    reduced = frozenset(position[c] for c in kept if c not in out)
    return tuple(extents[c] for c in kept), reduced, tuple(position.get(c) for c in out), body, None


def _product_order(a: str, b: str, out: str) -> str:
    """Return the loop order of a matrix product: the innermost loop accesses memory in order if any does."""
    summed = [c for c in a if c not in out]
    last = out[-1:]
    if last and all(own[-1] == last for own in (a, b) if last in own):
        return "".join((*out[:-1], *summed, last))
    return "".join((*out, *summed))


def operand_reads(node: Node, index: IndexTuple) -> list[Read]:
    """Return what a map, move or take reads for the element of its result at ``index``."""
    if is_inline_move(node):
        return [(node.args[0], node.op.index(node, index))]  # type: ignore[attr-defined]
    if kind_of(node) == "take" and "axis" in node.params:
        axis, indices = node["axis"], node.args[1]
        if node.op is GATHER:
            count = indices.type.ndim
            own = index[axis : axis + count]
            return [(node.args[0], (*index[:axis], ANYWHERE, *index[axis + count :])), (indices, own)]
        return [(node.args[0], (*index[:axis], ANYWHERE, *index[axis + 1 :])), (indices, index)]
    return [(a, index if a.type.shape else ()) for a in node.args]


def _reads(
    root: Node, domain: tuple[Size, ...], body: Sequence[Read], written: IndexTuple | None, stored: set[Node]
) -> tuple[tuple[Read, ...], int, bool]:
    """Return the reads of a stage, its number of operations, and whether one is heavy."""
    reads: dict[Read, None] = {}
    seen: set[Read] = set()
    ops = 0
    heavy = False
    stack = [*body, *((n, ()) for s in domain for n in nodes_of(s)), *((n, ()) for n in root.sized_by)]
    if root.op is ADD_AT and written is not None:
        stack.append((root.args[0], written))
    while stack:
        item = stack.pop()
        if item in seen:
            continue
        seen.add(item)
        node, index = item
        outside = node is not root and (node in stored or not is_inline(node))
        stack.extend((n, ()) for s in node.type.shape for n in nodes_of(s))
        if outside or node.op is IOTA:
            reads[item] = None
            continue
        stack.extend((n, ()) for n in node.sized_by)
        if is_inline(node) and not is_leaf(node):
            ops += is_map(node)
            heavy |= is_map(node) and is_heavy(node)
            stack.extend(operand_reads(node, index))
    return tuple(reversed(reads)), ops + (kind_of(root) in {"fold", "sequence", "store"}), heavy


def _order(reads: Sequence[Read], place: Sequence[int | None] | None, rank: int) -> list[int]:
    """Return the loop order in which most full reads (and the store of a map) access memory in order."""
    natural = list(range(rank))
    if rank < 2:
        return natural
    votes: dict[tuple[int, ...], float] = {tuple(natural): 0.5}
    for node, index in reads:
        if node.op is not IOTA:
            order = tuple(int(i.variable[1:]) for i in index if i.variable is not None)
            if len(set(order)) == rank == len(order):
                votes[order] = votes.get(order, 0) + 1
    if place is not None:
        votes[tuple(k for k in place if k is not None)] += 1
    return list(max(votes, key=lambda order: votes[order]))
