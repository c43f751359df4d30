"""Gradients of nodes, which are rewritten before they are differentiated."""

from __future__ import annotations

from collections.abc import Sequence

from tensormagic.capture.stores.overlap import through_memory
from tensormagic.config import config
from tensormagic.ir import site
from tensormagic.ir.node import Node, rebuild, topological
from tensormagic.ops.leaf import INPUT, Source, input_node
from tensormagic.ops.named import unnamed
from tensormagic.transform import grad as modes
from tensormagic.transform.rewriting import rewrite_nodes


def gradient_nodes(result: Node, wrt: Sequence[Node]) -> list[Node]:
    """Return the gradient of a scalar node; the primal is rewritten first, so that a stable form is differentiated.

    Memory shared with an array of the notebook is taken into account.
    """
    as_function = {n: through_memory(result, n) for n in wrt}
    alone = [n for n in wrt if as_function[n] is result]
    found = dict(zip(alone, modes.gradient(normal_form([result], alone)[0], alone), strict=True)) if alone else {}
    for node in wrt:
        if node not in found:
            (found[node],) = modes.gradient(normal_form([as_function[node]], [node])[0], [node])
    return [found[n] for n in wrt]


def value_and_gradient_nodes(result: Node, wrt: Sequence[Node]) -> tuple[Node, list[Node]]:
    """Return :func:`gradient_nodes`' result preceded by the value, whose loops also record what the gradient reads."""
    stable = normal_form([result], wrt)[0]
    value, gradient = modes.value_and_gradient(stable, wrt)
    return result if value is stable else value, gradient


def normal_form(results: Sequence[Node], keep: Sequence[Node] = ()) -> list[Node]:
    """Return ``results`` after rewriting; nodes in ``keep`` are treated as leaves and stay."""
    if not results:
        return []
    stand_ins = {n: input_node(Source(f"kept{k}"), n.type) for k, n in enumerate(keep) if n.op is not INPUT}
    replaced = unnamed(replace(results, stand_ins))
    rewritten, _ = rewrite_nodes(replaced, config.math, differentiated=True)
    return replace(rewritten, {v: k for k, v in stand_ins.items()})


def replace(results: Sequence[Node], mapping: dict[Node, Node]) -> list[Node]:
    """Return ``results`` with nodes replaced; rebuilt nodes keep their sites."""
    if not mapping:
        return list(results)
    memo = dict(mapping)
    for node in topological(results, stop=lambda n: n in mapping):
        if node not in memo:
            memo[node] = rebuild(node, [memo[a] for a in node.args], memo)
            if memo[node] is not node:
                for place in site.of(node):
                    site.record(memo[node], place)
    return [memo[r] for r in results]
