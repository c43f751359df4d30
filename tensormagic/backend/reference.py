"""The NumPy tier: every node by NumPy itself, one after the other, each value dropped when its last user has run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.graph import Graph
from tensormagic.ir.type import evaluate

Run = Callable[..., list[Any]]


def compile(graph: Graph) -> Run:
    """A function of the parameters' values that gives the list of results.

    The caller has checked the guards: ``run(sizes, *values)`` takes the sizes that :meth:`Graph.bind` gave.
    """
    slots = {node: k for k, node in enumerate(graph.parameters)}
    nodes = [n for n in graph.nodes if n not in slots]
    slots |= {node: len(slots) + k for k, node in enumerate(nodes)}
    last: dict[int, int] = {}
    for k, node in enumerate(nodes):
        last.update({slots[a]: k for a in node.args})
    kept = {slots[r] for r in graph.results} | set(range(len(graph.parameters)))
    steps = [
        (
            node,
            slots[node],
            [slots[a] for a in node.args],
            [s for s in {slots[a] for a in node.args} if last[s] == k and s not in kept],
        )
        for k, node in enumerate(nodes)
    ]
    results = [slots[r] for r in graph.results]
    total = len(slots)

    def run(sizes: dict[Any, int], *values: Any) -> list[Any]:
        table: list[Any] = [*values, *[None] * (total - len(values))]

        def size(s: Any) -> int:
            return s if isinstance(s, int) else evaluate(s, sizes.__getitem__)

        for node, slot, operands, dead in steps:
            try:
                table[slot] = node.op.evaluate(node, [table[k] for k in operands], size)  # type: ignore[attr-defined]
            except Exception as error:
                error.tensor_node = node  # type: ignore[attr-defined] # where it came from, for whoever shows it
                raise
            for k in dead:
                table[k] = None
        return [table[k] for k in results]

    return run


def owned(results: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Results that share memory neither with ``values`` nor with each other, and may be written to."""
    roots = {id(_root(v)) for v in values if isinstance(v, np.ndarray)}
    found: list[Any] = []
    for result in results:
        shared = isinstance(result, np.ndarray) and (id(_root(result)) in roots or not result.flags.writeable)
        own = np.array(result, order="K", copy=True) if shared else result
        if isinstance(own, np.ndarray):
            roots.add(id(_root(own)))
        found.append(own)
    return found


def _root(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array that owns the memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def evaluate_graph(graph: Graph, values: Sequence[Any]) -> list[Any]:
    """The results of ``graph`` for values of its parameters, by NumPy."""
    return compile(graph)(graph.bind([np.shape(v) for v in values]), *values)
