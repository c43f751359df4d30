"""The forward and the backward graph of a function as separate graphs; the one passes the values that the other needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.config import config
from tensormagic.functions.calls.function import Function
from tensormagic.functions.gradients.closed_functions import Closed
from tensormagic.functions.tracing import traced
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, substitute, topological
from tensormagic.ops.leaf import INPUT, PARAMETER, parameter
from tensormagic.transform.rewriting import rewrite


@dataclass(frozen=True)
class Passes:
    """The two passes of a derivative, rewritten.

    Parameters
    ----------
    forward
        From the arguments to the value, and then to what the backward pass reads.
    backward
        From what the forward pass has kept, and then the cotangents, to those of the arguments.
    kept
        How many values the forward pass hands on.
    """

    forward: Graph
    backward: Graph
    kept: int

    def __str__(self) -> str:
        return f"# forward, {self.kept} kept\n{self.forward}\n# backward\n{self.backward}"

    __repr__ = __str__


class Pulled(tuple[Any, Callable[..., Any]]):  # noqa: SLOT001 (a tuple has no room for what it knows)
    """The result of ``tm.vjp``: the value and the function that pulls cotangents back, and the graphs of both."""

    behind: Callable[[], Passes]

    @property
    def graph(self) -> Passes:
        """The forward and the backward graph, separately."""
        return self.behind()


def passes_of(function: Function, primals: tuple[Any, ...], value: Any, pulled: Callable[[Closed, Any], Any]) -> Passes:
    """Return the passes of ``function`` at ``primals``, where it has the value ``value``."""

    def body(points: Any, cotangents: Any) -> Any:
        closed = Closed(function, tuple(points), {}, range(len(points)))
        leaves, build = flatten(closed.result)
        opened = build(iter([wrap(closed.open([v.node])[0]) if isinstance(v, Tensor) else v for v in leaves]))
        return opened, pulled(closed, cotangents)

    alone = traced(function, primals)
    own = len(alone.graph.parameters) - len(alone.outside)
    both = traced(Function(body, f"vjp({function.name})", reads=function.reads, roots=function.roots), (primals, value))
    given = len(both.graph.parameters) - len(both.outside)
    return _cut(rewrite(both.graph, config.level(function.math)).graph, own, given, len(alone.graph.results))


def _cut(graph: Graph, own: int, given: int, values: int) -> Passes:
    """Return a graph of values and cotangents cut in two: nodes that need no cotangent are in the forward graph."""
    cotangents = graph.parameters[own:given]
    after: set[Node] = set(cotangents)
    for node in topological(graph.results):
        if any(n in after for n in node.needs):
            after.add(node)
    pulled = graph.results[values:]
    kept: dict[Node, None] = {}
    for node in topological(pulled):
        for read in node.args if node in after else ():
            if read not in after and not _is_number(read):
                kept[read] = None
    kept |= dict.fromkeys(n for n in pulled if n not in after and not _is_number(n))
    places = [parameter(k, n.type) for k, n in enumerate([*kept, *cotangents])]
    known = dict(zip([*kept, *cotangents], places, strict=True))
    ahead = [p for p in graph.parameters if p not in cotangents]
    moved = {p: parameter(k, p.type) for k, p in enumerate(ahead)}
    forward = substitute([*graph.results[:values], *kept], moved)
    names = dict(zip(graph.parameters, graph.names, strict=False))
    told = (*(f"kept {k + 1}" for k in range(len(kept))), *(f"cotangent {k + 1}" for k in range(len(cotangents))))
    return Passes(
        Graph(tuple(moved.values()), tuple(forward), (), tuple(names.get(p, "") for p in ahead)),
        Graph(tuple(places), tuple(substitute(pulled, known)), (), told),
        len(kept),
    )


def _is_number(node: Node) -> bool:
    """Return whether a node depends on constants and sizes alone, so that each pass has its own copy."""
    return not any(n.op is PARAMETER or n.op is INPUT for n in topological([node]))
