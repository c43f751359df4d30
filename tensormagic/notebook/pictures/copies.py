"""Copies between the host and a GPU as vertices: what is copied, where to, and how many bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tensormagic.backend.cuda.offending import why_on_host
from tensormagic.distributed.report import in_bytes
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size
from tensormagic.ir.type import Type
from tensormagic.notebook.pictures.scene import Edge, Vertex, View
from tensormagic.ops.draws.random import DRAW

__all__ = ["Copies"]

TO_GPU, TO_HOST = "copied to the GPU", "copied to the host"


@dataclass(frozen=True)
class _Copy:
    """What is copied: on the edges from a vertex into the ``readers``, or into all of them."""

    node: Node
    way: str
    readers: frozenset[str] | None = None


@dataclass(frozen=True)
class Copies:
    """The copies of graphs that run on a GPU.

    Parameters
    ----------
    there
        The parameters that are on the GPU already, by their numbers.
    ids
        The vertices of nodes.
    number
        The number that a size is.
    """

    there: Container[int]
    ids: Mapping[Node, str]
    number: Callable[[Size], int]

    def into(self, view: View, graph: Graph) -> View:
        """A view of a graph with its copies."""
        vertices, edges = list(view.vertices), list(view.edges)
        arrived: dict[Node, str] = {}  # the vertices of values on the GPU
        for copy in self._copies(graph):
            source = arrived.get(copy.node, self.ids.get(copy.node))
            taken = [e for e in edges if e.source == source and (copy.readers is None or e.target in copy.readers)]
            if source is None or not taken:
                continue
            key = f"{source}>{copy.way}" + (f">{taken[0].target}" if copy.readers is not None else "")
            at = next(k for k, v in enumerate(vertices) if v.id == source)
            vertices.insert(at + 1, Vertex(key, self._bytes(copy.node), "sent", copy.way, line=vertices[at].line))
            edges = [replace(e, source=key) if e in taken else e for e in edges]
            edges.append(Edge(source, key))
            if copy.readers is None:
                arrived[copy.node] = key
        return replace(view, vertices=tuple(vertices), edges=tuple(edges))

    def _copies(self, graph: Graph) -> Iterator[_Copy]:
        states = {n.args[0] for n in graph.nodes if n.op is DRAW}
        for number, parameter in enumerate(graph.parameters):
            if parameter.type.shape and number not in self.there and parameter not in states:
                yield _Copy(parameter, TO_GPU)
        for node in graph.nodes:
            if not why_on_host(node):
                continue
            reader = frozenset([self.ids.get(node, "")])
            if node.op is not DRAW:
                yield from (_Copy(a, TO_HOST, reader) for a in dict.fromkeys(node.args) if _is_array(a))
            if any(t.shape for t in node.types):
                yield _Copy(node, TO_GPU)

    def _bytes(self, node: Node) -> str:
        try:
            counts = [math.prod(map(self.number, t.shape)) * t.dtype.itemsize for t in _arrays(node)]
        except KeyError:  # a size that a loop computes
            return "?"
        return in_bytes(sum(counts))


def _is_array(node: Node) -> bool:
    return len(node.types) == 1 and bool(node.type.shape)


def _arrays(node: Node) -> Sequence[Type]:
    return [t for t in node.types[-1:] if t.shape] if node.op is DRAW else [t for t in node.types if t.shape]
