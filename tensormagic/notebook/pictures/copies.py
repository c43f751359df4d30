"""Copies between the host and a GPU as vertices: what is copied, where to, and how many bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tensormagic.backend.cuda.offending import why_on_host
from tensormagic.distributed.report import in_bytes
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, evaluate
from tensormagic.ir.type import Type
from tensormagic.notebook.pictures.scene import Edge, Vertex, View
from tensormagic.ops.draws.random import DRAW

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
    within
        What ids begin with inside of a loop or a branch, whose parameters are where they are; nothing outside.
    """

    there: Container[int]
    ids: Mapping[Node, str]
    number: Callable[[Size], int]
    within: str = ""

    def into(self, view: View, graph: Graph) -> View:
        """Return a view of a graph with its copies."""
        vertices, edges = list(view.vertices), list(view.edges)
        arrived: dict[Node, str] = {}  # the vertices of values on the GPU
        for copy in self._copies(graph):
            source = arrived.get(copy.node, self._id(copy.node))
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
        inner = dict(view.inner)
        for node in graph.nodes:
            key = self._id(node)
            if key in inner:
                bodies = [(n, g) for n, g in node.params.items() if isinstance(g, Graph)]
                inner[key] = tuple(self._inside(body, node, f"{key}/", bodies) for body in inner[key])
        return replace(view, vertices=tuple(vertices), edges=tuple(edges), inner=inner)

    def _id(self, node: Node) -> str | None:
        found = self.ids.get(node)
        return None if found is None else self.within + found

    def _inside(self, view: View, node: Node, key: str, bodies: Sequence[tuple[str, Graph]]) -> View:
        """Add the copies that each iteration makes to the graph inside a loop or a branch."""
        for name, graph in bodies:
            if any(v.id.startswith(f"{key}{name}/") for v in view.vertices):
                inside = Copies(self.there, self.ids, self._numbers(node, graph), f"{key}{name}/")
                return inside.into(view, graph)
        return view

    def _numbers(self, node: Node, graph: Graph) -> Callable[[Size], int]:
        """Return the numbers that sizes are inside: the last operands are the parameters."""
        given = node.args[len(node.args) - len(graph.parameters) :]
        try:
            sizes = graph.bind([tuple(map(self.number, a.type.shape)) for a in given])
        except (KeyError, TensorError):  # a size that a loop computes
            sizes = {}
        return lambda size: size if isinstance(size, int) else evaluate(size, sizes.__getitem__)

    def _copies(self, graph: Graph) -> Iterator[_Copy]:
        states = {n.args[0] for n in graph.nodes if n.op is DRAW}
        for number, parameter in enumerate(graph.parameters if not self.within else ()):
            if parameter.type.shape and number not in self.there and parameter not in states:
                yield _Copy(parameter, TO_GPU)
        for node in graph.nodes:
            if not why_on_host(node):
                continue
            reader = frozenset([self._id(node) or ""])
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
