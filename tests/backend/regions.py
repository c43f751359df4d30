"""Loops and branches built by example, and a test that both tiers agree on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.backend.planning.plan import Plan
from tensormagic.ir.closing import close
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, atom
from tensormagic.ops import fold
from tensormagic.ops.leaf import Source, constant, index_node, input_node, parameter, size_node
from tensormagic.ops.move import Slices, reshape, slice_
from tensormagic.ops.regions import control
from tensormagic.ops.update import set_at
from tests.backend.graphs import check, variable

__all__ = ["branch", "compiled_alike", "element", "put", "repeat", "repeat_while", "total", "variable"]

rng = np.random.default_rng(17)
ITERATIONS = [0, 1, 2, 5]
V = variable("v", rng.normal(size=6))
A = variable("A", rng.normal(size=(5, 6)))
N, M = A.type.shape
(L,) = V.type.shape


def total(x: Node) -> Node:
    return fold.reduce_sum(x, tuple(range(x.type.ndim)))


def closed_over(results: Sequence[Node], leaves: Sequence[Node]) -> Graph:
    cut = set(leaves)
    return close(results, lambda n: n in cut, parameter, leaves=leaves).graph


def stand_ins(nodes: Sequence[Node]) -> list[Node]:
    return [input_node(Source(f"operand{k}"), n.type) for k, n in enumerate(nodes)]


def listed(results: Any) -> list[Node]:
    return list(results) if isinstance(results, tuple) else [results]


def repeat(count: Size | Node, starts: Sequence[Node], body: Callable[..., Any], *constants: Node) -> tuple[Node, ...]:
    """``body(k, *carries, *constants)`` for each k below ``count``."""
    iterations = count if isinstance(count, Node) else size_node(count)
    high = count if not isinstance(count, Node) else atom(count)
    index, inner = index_node("k", 0, high), stand_ins([*starts, *constants])
    return control.loop(iterations, closed_over(listed(body(index, *inner)), [index, *inner]), starts, constants)


def repeat_while(starts: Sequence[Node], test: Any, body: Any, *constants: Node) -> tuple[Node, ...]:
    inner = stand_ins([*starts, *constants])
    graphs = [closed_over(listed(f(*inner)), inner) for f in (test, body)]
    return control.while_loop(*graphs, starts, constants)


def branch(pred: Node, then: Any, otherwise: Any, *operands: Node) -> tuple[Node, ...]:
    inner = stand_ins(operands)
    graphs = [closed_over(listed(f(*inner)), inner) for f in (then, otherwise)]
    return control.cond(pred, *graphs, operands)


def place(index: Any, x: Node) -> Slices:
    """The slices that numbers, slices and indices of a loop name."""
    found: list[tuple[Size, Size, int]] = []
    for k, extent in enumerate(x.type.shape):
        one = index[k] if k < len(index) else slice(None)
        if isinstance(one, slice):
            start = one.start if one.start is not None else 0
            stop = one.stop if one.stop is not None else extent
            found.append((start, stop - start, 1))
        else:
            found.append((atom(one) if isinstance(one, Node) else one, 1, 1))
    return tuple(found)


def element(x: Node, *index: Any) -> Node:
    """``x[index]``, an index of an axis dropping it."""
    part = slice_(x, place(index, x))
    kept = [s for k, s in enumerate(part.type.shape) if k >= len(index) or isinstance(index[k], slice)]
    return reshape(part, tuple(kept))


def put(x: Node, value: Node, *index: Any) -> Node:
    """``x`` after ``x[index] = value``."""
    slices = place(index, x)
    return set_at(x, reshape(value, tuple(length for _, length, _ in slices)), slices)


def compiled_alike(*results: Node, library: int = 0, ulps: float = 4, scale: float = 0.0) -> Plan:
    """Both tiers agree, and NumPy computes so many steps of the compiled one."""
    plan = check(*results, ulps=ulps, scale=scale)
    assert len(plan.library_steps) == library, plan.library_steps
    return plan


def number(value: float) -> Node:
    return constant(np.float64(value))
