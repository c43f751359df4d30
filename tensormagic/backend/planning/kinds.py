"""How the planner treats each node: inlined into loops, stored, computed by a region or by NumPy. Prints nothing."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import cache
from typing import Any

from tensormagic.backend.planning.inline import DTYPES, expand_all
from tensormagic.backend.planning.purpose import PURPOSES, Purpose, is_alone, purpose
from tensormagic.backend.printing.complex_text import is_complex, source_of
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, topological
from tensormagic.ir.size import Dim, Size
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.effects.raising import CHECK
from tensormagic.ops.fold_kind import Fold, Row
from tensormagic.ops.indices.position import POSITION
from tensormagic.ops.leaf import CONSTANT, INPUT, IOTA, PARAMETER, SIZE, constant_value
from tensormagic.ops.move import RESHAPE, squeezes
from tensormagic.ops.move_kind import Move
from tensormagic.ops.op import is_cheap
from tensormagic.ops.opaque import ITEM, Opaque, Store
from tensormagic.ops.pointwise import Pointwise
from tensormagic.ops.regions.control import COND, LOOP, WHILE
from tensormagic.ops.update import ADD_AT, SET

MIDDLING_COST = 4
WORTH_STORING = MIDDLING_COST  # the cost from which a value that is used twice is stored, and not computed twice
_MIDDLING = 12  # the weight up to which an op costs no more than a division
NOTED = 3  # numbers that machine code notes with what went wrong
BY_KERNELS = "by_kernels"  # marks conversions of dtypes that loops have no functions of
EXPONENTS = frozenset({-1.0, 0.5, 2.0, 3.0, 4.0})


def exponent(node: Node) -> float | None:
    """Return the constant exponent of a power for which kernels need no general function, or None."""
    value = constant_value(node.args[1])
    return float(value) if value is not None and not value.shape and float(value) in EXPONENTS else None


def cost_of(op: Any) -> int:
    """Return the cost of one application of a pointwise op, in additions."""
    return 1 if is_cheap(op) else MIDDLING_COST if 0 < op.weight <= _MIDDLING else 12


def is_heavy(node: Node) -> bool:
    """Return whether a map is dear enough for a loop of its own."""
    return cost_of(node.op) > MIDDLING_COST


# kinds of nodes -------------------------------------------------------------------------------------------------------

MOST_REGION_OPS = 600  # in the bodies of a region that becomes one function

_kinds: dict[Purpose, weakref.WeakKeyDictionary[Node, str]] = {key: weakref.WeakKeyDictionary() for key in PURPOSES}


def kind_of(node: Node) -> str:
    """Return how the planner treats a node.

    ``"base"``: available from the start. ``"leaf"``: a number in the text. ``"move"``, ``"map"``, ``"take"``: inlined
    into the loops that use them. ``"fold"``, ``"store"``, ``"sequence"``: loops of their own. ``"region"`` and
    ``"item"``, its results. ``"view"``: other axes over the same memory. ``"library"``: computed by NumPy.
    """
    if node.op is ITEM:  # a region that has been refused has other results than before
        return "item" if kind_of(node.args[0]) == "region" else "library"
    kinds = _kinds[purpose()]
    known = kinds.get(node)
    if known is None:
        known = kinds[node] = _kind(node, inside=is_alone())
    return known


def settle(nodes: Sequence[Node]) -> None:
    """Fix the kinds of ``nodes`` for a region, inside of which a library call costs more than a slow loop."""
    kinds = _kinds[purpose()]
    for node in nodes:
        if node not in kinds:
            kinds[node] = _kind(node, inside=True)


def refuse(node: Node) -> None:
    """Have NumPy compute a node."""
    _kinds[purpose()][node] = "library"


def _kind(node: Node, *, inside: bool) -> str:
    op = node.op
    if op in {PARAMETER, INPUT}:
        return "base"
    if op is CONSTANT:
        return "leaf" if not node.type.shape and node.type.dtype in DTYPES else "base"
    if op is SIZE or op is IOTA:
        return "leaf"
    if BY_KERNELS in node.params:
        return "store" if op is SET else "map"
    if any(t.dtype not in DTYPES or t.form == "tape" for n in (node, *node.args) for t in n.types):
        return "library"
    if is_complex(node) and _is_of_reals(op):
        return "library"
    if op in {LOOP, WHILE, COND}:
        return "region" if purpose() != "device" and _is_compiled(node) else "library"
    if len(node.types) != 1:
        return "library"
    return _kind_of_one(node, inside=inside)


def _is_noted(node: Node) -> bool:
    """Return whether the message of a check needs only numbers, and few enough for machine code to record."""
    return len(node.args) - 2 <= NOTED and all(not a.type.shape and a.type.dtype.kind in "biuf" for a in node.args[2:])


def is_taken(op: Any) -> bool:
    """Return whether an op takes elements at places given by its second operand."""
    return isinstance(op, Opaque) and op.takes


def _is_of_reals(op: Any) -> bool:
    """Return whether kernels have the op for real numbers only."""
    return op.sequential or (isinstance(op, Store) and op.joins not in {"", "add"})


def _kind_of_one(node: Node, *, inside: bool) -> str:
    op = node.op
    if isinstance(op, Pointwise):
        return "map" if source_of(node) is not None else "library"
    if isinstance(op, Move) and op.index is not None:
        return "move" if op is not RESHAPE or squeezes(node) else "view" if inside else "library"
    if op is SET or op is ADD_AT:
        return "store" if node.type.dtype == node.args[1].type.dtype else "library"
    checks = op in {POSITION, REQUIRE} or (inside and op is CHECK and _is_noted(node))
    if is_taken(op) or (checks and all(a.type.shape in {(), node.type.shape} for a in node.args)):
        return "take"
    if isinstance(op, Store):
        return "store" if node.type.dtype == node.args[2].type.dtype else "library"
    if op.sequential:
        return "sequence"
    return "fold" if _folds(node, inside=inside) else "library"


def _folds(node: Node, *, inside: bool) -> bool:
    op = node.op
    if op is CONTRACT:
        (a, b), out = split(node["subscripts"])
        whole = set(a) | set(b)
        with_vector = whole in (set(a), set(b)) and len(set(out)) < len(whole)
        return node.type.dtype.kind not in "bc" and (with_vector or (inside and is_product(node)))
    return isinstance(op, Fold) and not isinstance(op, Row) and op.step is not None and not is_complex(node)


def graphs_of(region: Node) -> list[Graph]:
    """Return the graphs of a region, ordered by parameter name."""
    return [value for _, value in region.param_items if isinstance(value, Graph)]


def _is_compiled(region: Node) -> bool:
    """Return whether a whole region can be one function."""
    count = 0
    for graph in graphs_of(region):
        nodes = topological(expand_all([*graph.results, *graph.checked], inside=True))
        settle(nodes)
        count += len(nodes)
        if any(kind_of(n) == "library" for n in nodes):
            return False
    return count <= MOST_REGION_OPS


def is_inline_move(node: Node) -> bool:
    """Return whether a node only moves elements in a way that an index expresses."""
    return kind_of(node) == "move"


def is_leaf(node: Node) -> bool:
    """Return whether loops write a node as a number: a rank-0 constant, a size, an index ramp."""
    return kind_of(node) == "leaf"


def is_map(node: Node) -> bool:
    """Return whether a node is a scalar function with code."""
    return kind_of(node) == "map"


def is_fold(node: Node) -> bool:
    """Return whether a node is a fold with code: a reduction, or a product with a vector."""
    return kind_of(node) == "fold"


def is_product(node: Node) -> bool:
    """Return whether a node is a product of two matrices, transposed or not."""
    if node.op is not CONTRACT:
        return False
    (a, b), out = split(node["subscripts"])
    return len(a) == len(b) == len(out) == 2 and len(set(a) | set(b)) == 3 and len(set(a) & set(b) - set(out)) == 1


def is_base(node: Node) -> bool:
    """Return whether a value is available from the start: a parameter or a constant array."""
    return kind_of(node) == "base"


def is_library(node: Node) -> bool:
    """Return whether NumPy computes a node."""
    return kind_of(node) == "library"


def is_inline(node: Node) -> bool:
    """Return whether a node may be inlined into the loops that use it."""
    return kind_of(node) in {"leaf", "move", "map", "take"}


def is_loop(node: Node) -> bool:
    """Return whether loops compute a node (perhaps inlined into others)."""
    return kind_of(node) not in {"base", "library"}


def stripped(node: Node) -> Node:
    """Return the node under moves of ``node`` that are views in NumPy."""
    while is_inline_move(node):
        node = node.args[0]
    return node


def stored_below(node: Node) -> Node:
    """Return the node whose memory a view shows."""
    while kind_of(node) == "view":
        node = node.args[0]
    return node


# what may be changed in place ------------------------------------------------------------------------------------------


@cache
def _expanded(graph: Graph, alone: bool) -> tuple[Node, ...]:
    del alone  # what is expanded in simple ops depends on it
    return tuple(expand_all(graph.results, inside=True))


def carried(node: Node) -> list[Node]:
    """Return the operands whose memory a node may reuse for a result."""
    kind = kind_of(node)
    if kind in {"store", "view"}:
        return [node.args[0]]
    if kind != "region":
        return []
    filled = filled_by(node)
    return [node.args[k] for k in carried_by(node).values() if k not in filled]


def filled_by(loop: Node) -> set[int]:
    """Return the operands of a loop that are constants, overwritten completely by its iterations and not read before: stacks."""
    if loop.op is not LOOP or not isinstance(iterations := as_size(loop.args[0]), int | Dim):
        return set()
    body: Graph = loop["body"]
    carries = range(1, 1 + loop["carries"])
    return {k for k in carries if constant_value(loop.args[k]) is not None and _is_filled(loop, body, k, iterations)}


def _is_filled(loop: Node, body: Graph, k: int, iterations: Size) -> bool:
    index, carry, result = body.parameters[0], body.parameters[k], body.results[k - 1]
    readers = [n for n in body.nodes if carry in n.args]
    if result.op is not SET or readers != [result] or body.results.count(carry) or not carry.type.shape:
        return False
    if result.args[0] is not carry or result.args[1] is carry or loop.args[k].type.shape[0] != iterations:
        return False
    (first, extent, step), *rest = result["slices"]
    at = as_size(index)
    extents = carry.type.shape
    whole = all(s == (0, n, 1) for s, n in zip(rest, extents[1:], strict=True))
    return (extent, step) == (1, 1) and whole and at is not None and first in {at, extents[0] - 1 - at}


def carried_by(region: Node) -> dict[int, int]:
    """Return, by positions of array results of a region, the operands whose memory they reuse."""
    if region.op is COND:
        branches = [_expanded(g, is_alone()) for g in graphs_of(region)]
        found: dict[int, int] = {}
        for k, t in enumerate(region.types):
            ends = {_begun(branch[k]) for branch in branches}
            (end, *others) = ends
            if t.shape and not others and end.op is PARAMETER and any(branch[k] is not end for branch in branches):
                found.setdefault(k, 1 + end["index"])
        return {k: j for k, j in found.items() if list(found.values()).count(j) == 1}
    first = 1 if region.op is LOOP else 0
    return {k: first + k for k, t in enumerate(region.types) if t.shape}


def _begun(node: Node) -> Node:
    """Return the value that the memory of ``node`` held before all stores into it."""
    while True:
        if kind_of(node) == "store":
            node = node.args[0]
            continue
        number = node["index"] if node.op is ITEM else 0
        region = node.args[0] if node.op is ITEM else node
        if kind_of(region) != "region" or number not in carried_by(region):
            return node
        node = region.args[carried_by(region)[number]]
