"""Finds the operation of a graph whose derivative does not match its values, by comparing each op with finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.functions.gradients.finite_differences import slope
from tensormagic.ir import site
from tensormagic.ir.closing import close
from tensormagic.ir.graph import Graph, sizer
from tensormagic.ir.node import Node
from tensormagic.ops.leaf import INPUT, Source, input_node, parameter
from tensormagic.ops.op import Tangent
from tensormagic.ops.opaque import ITEM, items
from tensormagic.ops.regions.branches import CALL, CHECKPOINT
from tensormagic.transform import grad as modes

_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Disagreement:
    """A node whose derivative does not match its values."""

    node: Node
    mode: str

    def __str__(self) -> str:
        places = site.of(self.node)
        where = f", {places[0]}" if places else ""
        return f"the {self.mode} derivative of {self.node.op.name}{where}"


def disagreement(graph: Graph, values: Sequence[Any], moves: dict[Node, Any]) -> Disagreement | None:
    """Return the first node whose derivative disagrees with differences of its own values, or None if all agree.

    Parameters
    ----------
    graph, values
        What is differentiated, and the values of its parameters.
    moves
        The tangents of parameters.
    """
    table = _Table(graph, values, moves)
    for node in graph.nodes:
        if node.args and node.op is not ITEM and any(t.inexact for t in node.types):
            for mode in ("forward", "reverse"):
                if not (table.pushes(node) if mode == "forward" else table.pulls(node)):
                    return table.inside(node) or Disagreement(node, mode)
    return None


def disagreement_of(result: Node, wrt: Node) -> Disagreement | None:
    """Return the first node between an input and a value whose derivative disagrees, or None if none is found."""
    closed = close([result], lambda n: n.op is INPUT, parameter, leaves=[wrt])
    values = [n["source"].value if n.op is INPUT else None for n in closed.leaves]
    if any(v is None for v in values):
        return None
    move = direction(np.random.default_rng(0), values[0])
    return disagreement(closed.graph, values, {closed.graph.parameters[0]: move})


class _Table:
    """The values and the tangents of every node of a graph."""

    def __init__(self, graph: Graph, values: Sequence[Any], moves: dict[Node, Any]) -> None:
        self.graph, self.given = graph, list(values)
        self.nodes = [n for n in graph.nodes if len(n.types) == 1]
        self.movers = {p: input_node(Source("tangent"), p.type.with_shape(p.type.shape)) for p in moves}
        self.moves = [moves[p] for p in self.movers]
        self.tangents = modes.jvp(self.nodes, self.movers)
        known = [t for t in self.tangents if t is not None]
        found = self._evaluated([*self.nodes, *known])
        self.value = dict(zip(self.nodes, found, strict=False))
        rest = iter(found[len(self.nodes) :])
        self.move = {n: None if t is None else next(rest) for n, t in zip(self.nodes, self.tangents, strict=True)}
        self.size = sizer(graph.bind([np.shape(v) for v in values]), self.value)
        self.random = np.random.default_rng(0)

    def _evaluated(self, nodes: list[Node], more: Sequence[Node] = (), values: Sequence[Any] = ()) -> list[Any]:
        leaves = [*self.graph.parameters, *self.movers.values(), *more]
        cut = set(leaves)
        closed = close(nodes, cut.__contains__, parameter, leaves=leaves).graph
        return evaluate_graph(closed, [*self.given, *self.moves, *values])

    def _local(self, node: Node, operands: list[Any]) -> list[Any]:
        found = node.op.evaluate(node, list(operands), self.size)
        whole = found if len(node.types) > 1 else (found,)
        return [v for v, t in zip(whole, node.types, strict=True) if t.inexact]

    def _ends(self, node: Node) -> list[Node]:
        return [n for n in items(node) if n.type.inexact]

    def inside(self, node: Node) -> Disagreement | None:
        """Return the disagreeing node within the graph of a call, or None for other nodes, or if none is found."""
        if node.op not in {CALL, CHECKPOINT}:
            return None
        graph: Graph = node["graph"]
        moves = {
            p: self.move[a] for p, a in zip(graph.parameters, node.args, strict=True) if self.move.get(a) is not None
        }
        return disagreement(graph, [self.value[a] for a in node.args], moves)

    def pushes(self, node: Node) -> bool:
        """Return whether the tangents of a node are the differences of its values."""
        ends = self._ends(node)
        moving = [k for k, a in enumerate(node.args) if self.move.get(a) is not None and a.type.inexact]
        if any(n not in self.move for n in ends) or not moving or _has_tapes(node):
            return True
        operands = [self.value.get(a) for a in node.args]

        def moved(at: list[Any]) -> list[Any]:
            given = list(operands)
            for k, v in zip(moving, at, strict=True):
                given[k] = _formed(v, node.args[k])
            return self._local(node, given)

        known = slope(moved, [operands[k] for k in moving], [self.move[node.args[k]] for k in moving])
        for end, expected, error in zip(ends, known.values, known.errors, strict=True):
            found = np.zeros(np.shape(expected)) if self.move[end] is None else self.move[end]
            if not near(found, expected, error):
                return False
        return True

    def pulls(self, node: Node) -> bool:
        """Return whether the cotangents of a node are the transpose of its tangents."""
        ends = [n for n in self._ends(node) if self.move.get(n) is not None]
        args = [a for a in dict.fromkeys(node.args) if self.move.get(a) is not None and a.type.inexact]
        if not ends or not args or _has_tapes(node):
            return True
        pullers = [input_node(Source("cotangent"), n.type.with_shape(n.type.shape)) for n in ends]
        weights = [direction(self.random, self.value[n]) for n in ends]
        cotangents: list[Tangent] = modes.vjp(ends, pullers, args)
        wanted = [(a, c) for a, c in zip(args, cotangents, strict=True) if c is not None]
        found = self._evaluated([c for _, c in wanted], pullers, weights)
        back = sum(paired(c, self.move[a]) for (a, _), c in zip(wanted, found, strict=True))
        ahead = sum(paired(w, self.move[n]) for n, w in zip(ends, weights, strict=True))
        return near(back, ahead, 0.0)


def _formed(value: Any, like: Node) -> Any:
    return value if like.type.shape or like.type.form != "python" else np.asarray(value).item()


def direction(random: np.random.Generator, value: Any) -> Any:
    """Return a random direction in the dtype and the form of ``value``."""
    array = np.asarray(value)
    found = random.normal(size=array.shape)
    if array.dtype.kind == "c":
        found = found + 1j * random.normal(size=array.shape)
    return np.asarray(found).astype(array.dtype) if array.shape else array.dtype.type(found)


def paired(left: Any, right: Any) -> float:
    """Return the real bilinear product of a cotangent and a tangent."""
    return float(np.sum(np.asarray(left) * np.asarray(right)).real)


def near(found: Any, expected: Any, error: float, tolerance: float = _TOLERANCE) -> bool:
    """Return whether numbers agree, up to a tolerance relative to the largest plus a known error."""
    size = max(float(np.max(np.abs(expected), initial=0.0)), 1e-3)
    apart = float(np.max(np.abs(np.asarray(found) - np.asarray(expected)), initial=0.0))
    return apart <= tolerance * size + 10 * error


def _has_tapes(node: Node) -> bool:
    """Return whether a node reads or makes tapes, to which small steps cannot be applied as a whole."""
    return any(t.form == "tape" for n in (node, *node.args) for t in n.types)
