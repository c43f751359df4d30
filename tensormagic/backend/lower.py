"""From a closed graph to stages: what is computed by loops, what is stored, and what NumPy does. Prints nothing.

A *stage* computes one stored node by a loop nest over a domain: a pointwise result, or a fold. Everything between
stored nodes is written into the stages that use it: pointwise functions by their scalar text, moves by index maps.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, Operation, make, topological
from tensormagic.ir.type import Size
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.fold import Fold, Row
from tensormagic.ops.leaf import CONSTANT, IOTA, SIZE, constant_value
from tensormagic.ops.move import BROADCAST, RESHAPE, Index, Move, squeezes
from tensormagic.ops.pointwise import Pointwise

IndexTuple = tuple[Index, ...]
Read = tuple[Node, IndexTuple]

MOST_OPS = 48  # in one stage: LLVM's time grows faster than the length of a function
MIDDLING_COST = 4
WORTH_STORING = MIDDLING_COST  # the cost from which a value that is used twice is stored, and not computed twice
DTYPES = frozenset(map(np.dtype, ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"]))
CHEAP = frozenset(
    [
        "add",
        "subtract",
        "multiply",
        "negative",
        "positive",
        "absolute",
        "square",
        "maximum",
        "minimum",
        "where",
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal",
        "not_equal",
        "logical_and",
        "logical_or",
        "logical_xor",
        "logical_not",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "invert",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "sign",
        "isnan",
        "isinf",
        "isfinite",
        "astype",
        "real",
        "imag",
        "conjugate",
    ]
)
MIDDLING = frozenset(["divide", "sqrt", "reciprocal", "floor_divide", "remainder"])


# Functions for which a kernel would call the C library element by element: NumPy has vector code for arrays.
NUMPY_FASTER = frozenset(
    ["tan", "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "erfc"]
)
EXPONENTS = frozenset({-1.0, 0.5, 2.0, 3.0, 4.0})


def exponent(node: Node) -> float | None:
    """The constant exponent of a power that a kernel computes without the general function."""
    value = constant_value(node.args[1])
    return float(value) if value is not None and not value.shape and float(value) in EXPONENTS else None


def cost_of(op: Operation) -> int:
    """What one application of a pointwise op costs, in additions."""
    return 1 if op.name in CHEAP else MIDDLING_COST if op.name in MIDDLING else 12


def is_heavy(node: Node) -> bool:
    """Whether a map is a function that takes a loop of its own."""
    return cost_of(node.op) > MIDDLING_COST


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
        Every stored node, parameter or ramp that the body reads, with the index.
    ops
        The number of scalar operations, for keeping kernels small.
    heavy
        Whether there is a function among them that takes a loop of its own.
    """

    root: Node
    domain: tuple[Size, ...]
    reduced: frozenset[int]
    place: tuple[int | None, ...]
    body: tuple[Read, ...]
    reads: tuple[Read, ...]
    ops: int
    heavy: bool

    def identity(self) -> IndexTuple:
        """The index of the element of the result that an iteration is about."""
        return tuple(Index(None) if k is None else Index(variable(k)) for k in self.place)


def variable(position: int) -> str:
    """The loop variable of a position in a domain."""
    return f"d{position}"


@dataclass(frozen=True)
class Lowered:
    """What :func:`lower` finds: stages and library nodes, in an order in which they can run.

    Parameters
    ----------
    results
        The graph's results, in simple ops.
    steps
        A :class:`Stage`, or a node that NumPy computes.
    """

    results: tuple[Node, ...]
    steps: tuple[Stage | Node, ...]


def lower(graph: Graph) -> Lowered:
    """Stages and library steps for the results of ``graph``."""
    results = expand_all(graph.results)
    nodes = topological(results)
    roots = _Roots(nodes, results)
    steps: list[Stage | Node] = []
    for node in nodes:
        if node in roots.found:
            steps += roots.stages_of(node)
        elif is_library(node):
            steps.append(node)
    return Lowered(tuple(results), tuple(steps))


# simple ops -----------------------------------------------------------------------------------------------------------


def expand_all(results: Sequence[Node]) -> list[Node]:
    """The same results in ops that have no simpler form."""
    memo: dict[Node, Node] = {}

    def simple(root: Node) -> Node:
        for node in topological([root], stop=lambda n: n in memo):
            if node in memo:
                continue
            args = tuple(memo[a] for a in node.args)
            rebuilt = node if args == node.args else make(node.op, args, **node.params)
            site.inherit(rebuilt, node)
            body = None if _has_source(rebuilt) else rebuilt.op.expand(rebuilt)  # type: ignore[attr-defined]
            if body is None or body.type != rebuilt.type:
                memo[node] = rebuilt
                continue
            site.inherit(body, node)
            memo.update((a, a) for a in args)
            memo[node] = simple(body)
        return memo[root]

    return [simple(r) for r in results]


def _has_source(node: Node) -> bool:
    return isinstance(node.op, Pointwise) and node.op.scalar_source(node) is not None


# kinds of nodes -------------------------------------------------------------------------------------------------------

_kinds: weakref.WeakKeyDictionary[Node, str] = weakref.WeakKeyDictionary()


def _kind(node: Node) -> str:
    """What the planner does with a node: ``"base"``, ``"leaf"``, ``"move"``, ``"map"``, ``"fold"`` or ``"library"``."""
    known = _kinds.get(node)
    if known is None:
        known = _kinds[node] = _kind_of(node)
    return known


def _kind_of(node: Node) -> str:
    op = node.op
    if op.name in {"parameter", "input"}:
        return "base"
    if op is CONSTANT:
        return "leaf" if not node.type.shape and node.type.dtype in DTYPES else "base"
    if op is SIZE or op is IOTA:
        return "leaf"
    if len(node.types) != 1 or any(t.dtype not in DTYPES for n in (node, *node.args) for t in n.types):
        return "library"
    if isinstance(op, Pointwise):
        faster = bool(node.type.shape) and (op.name in NUMPY_FASTER or (op.name == "power" and exponent(node) is None))
        return "map" if op.scalar_source(node) is not None and not faster else "library"
    if isinstance(op, Move) and op.index is not None and (op is not RESHAPE or squeezes(node)):
        return "move"
    return "fold" if _folds(node) else "library"


def _folds(node: Node) -> bool:
    op = node.op
    if op is CONTRACT:
        (a, b), out = split(node["subscripts"])
        whole = set(a) | set(b)
        return node.type.dtype.kind != "b" and whole in (set(a), set(b)) and len(set(out)) < len(whole)
    return isinstance(op, Fold) and not isinstance(op, Row) and op.step is not None


def is_inline_move(node: Node) -> bool:
    """Whether a node only changes where elements are, in a way that an index says."""
    return _kind(node) == "move"


def is_leaf(node: Node) -> bool:
    """Whether loops write a node as a number: a rank-0 constant, a size, a ramp."""
    return _kind(node) == "leaf"


def is_map(node: Node) -> bool:
    """Whether a node is a scalar function that has code."""
    return _kind(node) == "map"


def is_fold(node: Node) -> bool:
    """Whether a node is a fold that has code: a reduction, or a product with a vector."""
    return _kind(node) == "fold"


def is_base(node: Node) -> bool:
    """Whether a value is there before anything runs: a parameter or a constant array."""
    return _kind(node) == "base"


def is_library(node: Node) -> bool:
    """Whether NumPy computes a node."""
    return _kind(node) == "library"


def is_loop(node: Node) -> bool:
    """Whether loops compute a node (it may be written into the loops of others)."""
    return _kind(node) not in {"base", "library"}


def stripped(node: Node) -> Node:
    """The node below moves that NumPy does as views."""
    while is_inline_move(node):
        node = node.args[0]
    return node


# stored nodes ---------------------------------------------------------------------------------------------------------


class _Roots:
    """Which nodes are stored."""

    def __init__(self, nodes: list[Node], results: Sequence[Node]) -> None:
        self.found: set[Node] = set()
        self.position = {node: k for k, node in enumerate(nodes)}
        self.wanted = {r for r in results if is_loop(r)}
        self.shared: dict[Node, int] = {}
        self.stretched: set[Node] = set()
        self.heavy: set[Node] = set()  # what has a heavy function in the text that it would be written as
        for node in nodes:
            self._use(node)
        costs: dict[Node, int] = {}
        for node in nodes:
            if not is_loop(node):
                continue
            own = cost_of(node.op) if is_map(node) else 0
            costs[node] = min(100, own + sum(costs.get(a, 0) for a in node.args if a not in self.found))
            self._part(node)
            if self._stored(node, costs[node]):
                self.found.add(node)

    def _part(self, node: Node) -> None:
        """Store operands so that no stage has more than one heavy function: the registers hold the constants of one."""
        operands = [stripped(a) for a in node.args]
        heavy = [a for a in dict.fromkeys(operands) if a in self.heavy and a not in self.found]
        own = is_map(node) and is_heavy(node)
        if own or heavy:
            self.heavy.add(node)
        extra = heavy if own else heavy[:-1]
        self.found.update(a for a in extra if a.type.shape)

    def _use(self, node: Node) -> None:
        for arg in dict.fromkeys(node.args):
            self.shared[arg] = self.shared.get(arg, 0) + 1
            if is_library(node):
                inner = stripped(arg)
                if is_map(inner) or is_fold(inner):
                    self.wanted.add(inner)
            if _stretches(node, arg):
                self.stretched.add(stripped(arg))

    def _stored(self, node: Node, cost: int) -> bool:
        if is_leaf(node):
            return node in self.wanted
        if is_fold(node) or node in self.wanted:
            return True
        if not node.type.shape:  # computed once for a kernel in any case
            return False
        return is_map(node) and cost >= WORTH_STORING and (self.shared.get(node, 0) > 1 or node in self.stretched)

    def stages_of(self, root: Node) -> list[Stage]:
        """The stage of ``root``, after those of nodes that are stored only to keep it short."""
        stages: list[Stage] = []
        inside = self._inside(root)
        used = _last_uses(inside, root)
        begin = 0
        while len(inside) - begin > MOST_OPS:
            end, cut = _narrowest(inside, begin, used)
            for node in cut:
                self.found.add(node)
                stages.append(make_stage(node, self.found))
            begin = end
        return [*stages, make_stage(root, self.found)]

    def _inside(self, root: Node) -> list[Node]:
        """Operations that are written into the stage of ``root``, operands first."""
        order = topological(root.args, stop=lambda n: n in self.found or is_base(n) or is_library(n))
        return [n for n in order if is_map(n) and n not in self.found]


def _last_uses(inside: Sequence[Node], root: Node) -> dict[Node, int]:
    """For each operation the number of the last one that uses it."""
    numbers = {node: k for k, node in enumerate(inside)}
    last: dict[Node, int] = {}
    for node in (*inside, root):
        for arg in node.args:
            last[stripped(arg)] = numbers.get(node, len(inside))
    return last


def _narrowest(inside: Sequence[Node], begin: int, last: dict[Node, int]) -> tuple[int, list[Node]]:
    """Where to cut, in the upper half of what a stage may hold, so that fewest values are needed later; and these."""
    best: tuple[int, int, list[Node]] | None = None
    alive: list[Node] = []
    for k in range(begin, begin + MOST_OPS):
        alive = [n for n in (*alive, inside[k]) if last[n] > k]
        if k >= begin + MOST_OPS // 2 and (best is None or len(alive) <= best[0]):
            best = len(alive), k + 1, alive
    assert best is not None  # noqa: S101 (the slice is longer than half the limit)
    return best[1], best[2]


def _stretches(node: Node, arg: Node) -> bool:
    """Whether ``node`` uses an element of ``arg`` many times."""
    if node.op is BROADCAST:
        return arg.type.size != node.type.size
    if node.op is CONTRACT:
        (a, b), _ = split(node["subscripts"])
        letters = a if arg is node.args[0] else b
        return set(letters) != set(a) | set(b)
    return False


# stages ---------------------------------------------------------------------------------------------------------------


def make_stage(root: Node, stored: set[Node]) -> Stage:
    """The stage that computes ``root``, its loops ordered so that most reads are contiguous."""
    domain, reduced, place, body = _natural(root)
    reads, ops, heavy = _reads(body, root, stored)
    order = _order(reads, place if not reduced else None, len(domain))
    if order != list(range(len(domain))):
        move = {old: new for new, old in enumerate(order)}
        rename = {variable(old): variable(new) for old, new in move.items()}
        body = tuple((n, _renamed(i, rename)) for n, i in body)
        reads = tuple((n, _renamed(i, rename)) for n, i in reads)
        domain = tuple(domain[old] for old in order)
        reduced = frozenset(move[k] for k in reduced)
        place = tuple(None if k is None else move[k] for k in place)
    return Stage(root, domain, reduced, place, body, reads, ops, heavy)


def _renamed(index: IndexTuple, rename: dict[str, str]) -> IndexTuple:
    return tuple(i if i.variable is None else i._replace(variable=rename[i.variable]) for i in index)


Natural = tuple[tuple[Size, ...], frozenset[int], tuple[int | None, ...], tuple[Read, ...]]


def _natural(root: Node) -> Natural:
    if root.op is CONTRACT:
        return _natural_contraction(root)
    shape = root.args[0].type.shape if is_fold(root) else root.type.shape
    axes = [k for k, s in enumerate(shape) if s != 1]
    position = {axis: k for k, axis in enumerate(axes)}
    index = tuple(Index(variable(position[k])) if k in position else Index(None) for k in range(len(shape)))
    domain = tuple(shape[k] for k in axes)
    if not is_fold(root):
        return domain, frozenset(), tuple(position.get(k) for k in range(len(shape))), ((root, index),)
    folded = set(root["axes"])
    place = tuple(position.get(k) for k in range(len(shape)) if k not in folded)
    return domain, frozenset(position[k] for k in folded if k in position), place, ((root.args[0], index),)


def _natural_contraction(root: Node) -> Natural:
    (a, b), out = split(root["subscripts"])
    letters = a if len(a) >= len(b) else b
    owner = root.args[0] if len(a) >= len(b) else root.args[1]
    extents = dict(zip(letters, owner.type.shape, strict=True))
    kept = [c for c in letters if extents[c] != 1]
    position = {c: k for k, c in enumerate(kept)}

    def index(own: str) -> IndexTuple:
        return tuple(Index(variable(position[c])) if c in position else Index(None) for c in own)

    body = ((root.args[0], index(a)), (root.args[1], index(b)))
    reduced = frozenset(position[c] for c in kept if c not in out)
    return tuple(extents[c] for c in kept), reduced, tuple(position.get(c) for c in out), body


def operand_index(node: Node, index: IndexTuple) -> IndexTuple:
    """The index into the operands of a map or move, for an index into its result."""
    if is_inline_move(node):
        return node.op.index(node, index)  # type: ignore[attr-defined, no-any-return]
    return index


def _reads(body: Iterable[Read], root: Node, stored: set[Node]) -> tuple[tuple[Read, ...], int, bool]:
    """What the body reads, how many operations it has, and whether one is heavy."""
    reads: dict[Read, None] = {}
    seen: set[Read] = set()
    ops = 0
    heavy = False
    stack = list(body)
    while stack:
        item = stack.pop()
        if item in seen:
            continue
        seen.add(item)
        node, index = item
        outside = node is not root and (node in stored or is_base(node) or is_library(node))
        if outside or node.op is IOTA:
            reads[item] = None
        elif not is_leaf(node):
            ops += is_map(node)
            heavy |= is_map(node) and is_heavy(node)
            inner = operand_index(node, index)
            stack.extend((arg, inner) for arg in node.args[: 1 if is_inline_move(node) else None])
    return tuple(reversed(reads)), ops + (1 if is_fold(root) else 0), heavy


def _order(reads: Sequence[Read], place: tuple[int | None, ...] | None, rank: int) -> list[int]:
    """The order of the loops in which most full reads (and the store of a map) go through memory in order."""
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
