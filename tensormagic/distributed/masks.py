"""Rows selected by a mask, in split values: computed for all rows, and left out where they are summed.

``x[mask]`` has a data-dependent number of rows, which a chunk's graph cannot express. Operations on each selected row
alone are done for every row, and a sum, product, any, all, maximum or minimum of them, or a product of matrices over
them, leaves out the rows that were not selected. Their number is a sum as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, as_size, make, resized
from tensormagic.ir.size import Size, Symbol, atom, atoms, nodes_of
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.effects.checks import require
from tensormagic.ops.effects.raising import AFTER
from tensormagic.ops.fold import ALL, ANY, LOGSUMEXP, MAX, MIN, PROD, SUM
from tensormagic.ops.form import to_form
from tensormagic.ops.indices.gather import GATHER
from tensormagic.ops.indices.selection import PLACES
from tensormagic.ops.leaf import SIZE, constant
from tensormagic.ops.move import BROADCAST, RESHAPE, TRANSPOSE, broadcast, expand_dims
from tensormagic.ops.scalars import scalar
from tensormagic.ops.scalars.scalar import where


@dataclass(frozen=True, eq=False)
class Picked:
    """A value for selected rows.

    Parameters
    ----------
    every
        The same for all rows.
    mask
        Which ones are picked.
    count
        How many these are, in the sizes of the graph that was given.
    """

    every: Node
    mask: Node
    count: Node


def without_masks(graph: Graph, batch: Symbol) -> Graph:
    """Return the graph with sums over selected rows as sums over all of the batch, as far as there is a rule."""
    if not any(n.op is PLACES for n in graph.nodes):
        return graph
    known: dict[Node, Node] = {p: p for p in graph.parameters}
    picked: dict[Node, Picked] = {}
    for node in graph.nodes:
        if node in known:
            continue
        found = _picked(node, known, picked, batch)
        if found is not None:
            picked[node] = found
            site.inherit(found.every, node)
        new = None if found is not None else _left_out(node, known, picked)
        sizes = {n: s for n in node.sized_by if (s := as_size(known[n])) is not None}
        known[node] = resized(node, [known[a] for a in node.args], sizes) if new is None else new
        site.inherit(known[node], node)
    guards = graph.guards_over(known)
    return Graph(graph.parameters, tuple(known[r] for r in graph.results), guards, graph.names)


def _picked(node: Node, known: dict[Node, Node], picked: dict[Node, Picked], batch: Symbol) -> Picked | None:
    """Return a node as a value for selected rows, each independent of the others, or None if it is none, or has no rule."""
    if node.op is GATHER and node.args[1].op is PLACES and node.args[0] not in picked:
        places = node.args[1]
        counts = nodes_of(places["length"])
        every = places.args[0].type.shape[0]
        if batch in atoms(every) and node.args[0].type.shape[node["axis"]] == every and len(counts) == 1:
            return Picked(known[node.args[0]], known[places.args[0]], counts[0])
        return None
    own = [picked[a] for a in node.args if a in picked]
    if not own:
        return None
    count, mask = own[0].count, own[0].mask
    if any(p.count is not count or p.mask is not mask for p in own) or _axis(node, count) is None:
        return None
    op = node.op
    apart = op.kind in {"pointwise", "fold"} or op in {BROADCAST, TRANSPOSE, RESHAPE}
    if not apart or op.may_raise(node):
        return None
    args: list[Node] = []
    for a in node.args:
        every = _every(a, known, picked, count, mask.type.shape[0])
        if every is None:
            return None
        args.append(every)
    return Picked(resized(node, args, {count: mask.type.shape[0]}), mask, count)


def _every(node: Node, known: dict[Node, Node], picked: dict[Node, Picked], count: Node, rows: Size) -> Node | None:
    """Return an operand for all rows, or None if it is neither selected nor the same for all."""
    if node in picked:
        return picked[node].every
    if not any(count in nodes_of(s) for s in node.type.shape):
        return known[node]
    if node.op is BROADCAST and not any(count in nodes_of(s) for s in node.args[0].type.shape):
        return resized(node, [known[node.args[0]]], {count: rows})
    return None


def _axis(node: Node, count: Node) -> int | None:
    """Return the axis along which a result has the selected rows, or None unless there is exactly one."""
    if len(node.types) != 1:
        return None
    found = [k for k, s in enumerate(node.type.shape) if count in nodes_of(s)]
    return found[0] if len(found) == 1 and node.type.shape[found[0]] == atom(count) else None


def _left_out(node: Node, known: dict[Node, Node], picked: dict[Node, Picked]) -> Node | None:
    """Return a reduction of selected rows as one over all rows, or None for other nodes, or if it has no rule."""
    if node.op is AFTER and node.args[0] in picked:
        return known[node.args[1]]
    if node.op is SIZE and len(counts := nodes_of(node["size"])) == 1 and node["size"] == atom(counts[0]):
        return to_form(known[counts[0]], node.type.form)
    if node.op is CONTRACT and all(a in picked for a in node.args):
        return _contracted(node, picked)
    if node.op not in _NOTHING or node.args[0] not in picked:
        return None
    (x,) = node.args
    axis = _axis(x, picked[x].count)
    if axis is None or axis not in node["axes"]:
        return None
    return _folded(node, picked[x], axis, known)


def _contracted(node: Node, picked: dict[Node, Picked]) -> Node | None:
    inputs, out = split(node["subscripts"])
    axes = [_axis(a, picked[a].count) for a in node.args]
    letters = {own[axis] for own, axis in zip(inputs, axes, strict=True) if axis is not None}
    if len(letters) != 1 or letters & set(out):
        return None
    every = [_or_else(picked[a], axis or 0, 0) for a, axis in zip(node.args, axes, strict=True)]
    return make(CONTRACT, every, **node.params)


def _folded(node: Node, rows: Picked, axis: int, known: dict[Node, Node]) -> Node:
    dtype = rows.every.type.dtype
    every = make(node.op, (_or_else(rows, axis, _NOTHING[node.op](dtype)),), **node.params)
    if node.op in {MAX, MIN}:
        there = scalar.greater(known[rows.count], 0)
        text = f"zero-size array to reduction operation {node.op.name}imum which has no identity"
        return require(every, there, text)
    return every


def _or_else(rows: Picked, axis: int, other: Any) -> Node:
    """Return the rows with a neutral value in place of those that are not selected."""
    x = rows.every
    around: Sequence[int] = [k for k in range(x.type.ndim) if k != axis]
    mask = broadcast(expand_dims(rows.mask, tuple(around)), x.type.shape)
    return where(mask, x, broadcast(constant(np.asarray(other, x.type.dtype)[()]), x.type.shape))


def _lowest(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return False
    return np.iinfo(dtype).min if dtype.kind in "iu" else complex(-np.inf, -np.inf) if dtype.kind == "c" else -np.inf


def _highest(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return True
    return np.iinfo(dtype).max if dtype.kind in "iu" else complex(np.inf, np.inf) if dtype.kind == "c" else np.inf


_NOTHING: dict[Any, Any] = {  # neutral elements of folds
    SUM: lambda _: 0,
    PROD: lambda _: 1,
    MAX: _lowest,
    MIN: _highest,
    ANY: lambda _: False,
    ALL: lambda _: True,
    LOGSUMEXP: lambda _: -np.inf,
}
