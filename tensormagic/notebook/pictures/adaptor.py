"""Graphs as scenes: what is captured, rewritten, differentiated and planned, as pictures show it. Knows no IPython."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.backend.plan import Plan
from tensormagic.backend.reference import evaluate_graph
from tensormagic.capture import context
from tensormagic.capture.value import Tensor
from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.site import Site
from tensormagic.ir.type import Size, Type, evaluate
from tensormagic.notebook.pictures.html import to_html
from tensormagic.notebook.pictures.scene import KINDS, Edge, Scene, Vertex, View
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.leaf import CONSTANT, PARAMETER, SIZE

__all__ = ["Portrait", "newest", "portrait", "source_of", "steps_of"]

MOST_HISTORY = 2_000  # nodes above which values that are known cut the graph
MOST_DRAWN = 300  # nodes above which only the captured graph is drawn
MOST_AT_ALL = 1_000  # nodes above which none is: laying it out would take longer than a second


@dataclass(frozen=True, eq=False)
class Portrait:
    """What can be shown of some values: the graph from inputs to them and their gradients, at every stage.

    Parameters
    ----------
    graph
        The whole, as it was captured.
    names, gradients
        What the results are called; the first ``len(names)`` results of the graph, and the rest.
    leaves
        What stands behind the parameters.
    cell
        The cell whose lines are shown; the same nodes may also have been captured by others.
    level
        Which rewrites may be used.
    lens
        The sites of the graph's nodes.
    """

    graph: Graph
    names: tuple[str, ...]
    gradients: tuple[str, ...]
    leaves: tuple[Node, ...]
    cell: str
    level: str | None = None
    lens: site.Lens = field(default_factory=lambda: site.Lens({}), repr=False)

    @cached_property
    def primal(self) -> Graph:
        """The values alone, without their gradients."""
        return self.graph.with_results(self.graph.results[: len(self.names)])

    @cached_property
    def executable(self) -> session.Executable:
        """The whole, rewritten, on its tiers."""
        return session.executable(self.graph, self.level)

    @cached_property
    def first(self) -> Any:
        """The values alone, rewritten."""
        return self.primal_executable.rewritten

    @cached_property
    def primal_executable(self) -> session.Executable:
        """The values alone, on their tiers."""
        return session.executable(self.primal, self.level)

    @property
    def plan(self) -> Plan:
        """What the planner makes of the whole."""
        return self.executable.plan

    @cached_property
    def ops(self) -> int:
        """How many operations were captured."""
        return sum(_kind(n) not in {"input", "constant"} for n in self.primal.nodes)

    @property
    def kernels(self) -> int:
        """How many loops and library calls they become, with their gradients."""
        return len(self.plan.steps)

    @cached_property
    def rules(self) -> tuple[str, ...]:
        """The stable rules that fired, each once."""
        fired = [*self.first.fired, *self.executable.rewritten.fired]
        return tuple(dict.fromkeys(f.rule.name for f in fired if f.rule.level == "stable"))

    @cached_property
    def values(self) -> list[Any]:
        """The values of the parameters."""
        return [session.value_of(leaf) for leaf in self.leaves]

    @cached_property
    def sizes(self) -> dict[Any, int]:
        """The numbers that the sizes are."""
        return self.graph.bind([_shape(leaf) for leaf in self.leaves])

    def number(self, size: Size) -> int:
        """The number that one size is."""
        return evaluate(size, self._number_of)

    def _number_of(self, atom: Any) -> int:
        """The number of a symbol, or of an integer that the graph computes."""
        if atom not in self.sizes:
            graph = Graph(self.graph.parameters, (atom,))
            self.sizes[atom] = int(evaluate_graph(graph, self.values)[0])
        return self.sizes[atom]

    def type_text(self, t: Type) -> str:
        """``float64[569, 30]``: a type with the sizes of this run."""
        return str(t.with_shape(tuple(self.number(s) for s in t.shape), t.form))

    def label(self, node: Node) -> str:
        """The name of an input, the value of a constant, the name of an op."""
        if node.op is PARAMETER:
            return self.graph.names[node["index"]]
        if node.op is CONSTANT:
            return short(node["bits"].array()[()])
        if node.op is CONTRACT:
            return "@" if _is_product(node["subscripts"]) else "einsum"
        return str(node["size"]) if node.op is SIZE else node.op.name

    def spans(self, node: Node) -> list[Site]:
        """Where in this cell a node comes from, captured or rewritten; nothing for one of another cell."""
        return [s for s in self.lens.of(node) if s.cell == self.cell]

    def line(self, node: Node) -> int | None:
        """The line of this cell that a node comes from."""
        return min((s.line for s in self.spans(node)), default=None)

    def scene(self, source: str) -> Scene:
        """The pictures: captured, rewritten, and where there are any, gradient and kernels."""
        title = self.cell
        if len(self.graph.nodes) > MOST_AT_ALL:
            return Scene(title, source, ())
        draw = _Drawing(self)
        views = [draw.view("captured", self.primal, self.names)]
        if len(self.executable.graph.nodes) > MOST_DRAWN:
            return Scene(title, source, tuple(views))
        views.append(draw.view("rewritten", self.first.graph, self.names, rules=_rules_by_node(self.first.fired)))
        final = self.executable
        everything = (*self.names, *self.gradients)
        if self.gradients:
            views.append(draw.view("gradient", final.graph, everything, rules=_rules_by_node(final.rewritten.fired)))
        views.append(draw.view("kernels", final.graph, everything, plan=self.plan))
        return Scene(title, source, tuple(views))


def portrait(
    results: Mapping[str, Node], gradients: Mapping[str, Node], cell: str, level: str | None = None
) -> Portrait:
    """Close the graph over some values and their gradients, down to the inputs."""
    wanted = [*results.values(), *gradients.values()]
    closed = session.close_over(wanted, use_values=False)
    if len(closed.graph.nodes) > MOST_HISTORY:
        closed = session.close_over(wanted)
    lens = site.Lens(closed.mapping)
    return Portrait(closed.graph, tuple(results), tuple(gradients), closed.leaves, cell, level, lens)


def source_of(cell: str) -> str:
    """The text of the cell of that label; nothing where it is not known."""
    return next((c.source for c in reversed(context.cells.values()) if c.label == cell), "")


def page_of(value: Tensor) -> str:
    """A page with the graph of a lazy value, which needs neither a kernel nor a network."""
    spans = [s for s in site.of(value.node) if s.role == "value"]
    cell = newest(spans).cell if spans else ""
    return to_html(portrait({"value": value.node}, {}, cell).scene(source_of(cell)))


def newest(spans: Sequence[Site]) -> Site:
    """The span of the latest run."""
    return max(spans, key=lambda s: (s.run, s))


def _shape(leaf: Node) -> tuple[int, ...]:
    source = leaf.params.get("source")
    return np.shape(source.value if source is not None else session.value_of(leaf))


def _rules_by_node(fired: Sequence[Any]) -> dict[Node, tuple[str, ...]]:
    found: dict[Node, tuple[str, ...]] = {}
    for firing in fired:
        found[firing.after] = tuple(dict.fromkeys((*found.get(firing.after, ()), firing.rule.name)))
    return found


class _Drawing:
    """The views of one portrait: a node has the same id in all of them."""

    def __init__(self, shown: Portrait) -> None:
        self.shown = shown
        self.ids: dict[Node, str] = {}

    def id(self, node: Node) -> str:
        """What a node is called in every view."""
        return self.ids.setdefault(node, f"v{len(self.ids)}")

    def view(
        self,
        name: str,
        graph: Graph,
        outputs: Sequence[str],
        *,
        rules: Mapping[Node, tuple[str, ...]] | None = None,
        plan: Plan | None = None,
    ) -> View:
        """One graph under a name."""
        kernel, yellow = steps_of(plan)
        vertices: list[Vertex] = []
        edges: list[Edge] = []
        for node in topological(graph.results):
            vertices.append(self.vertex(node, (rules or {}).get(node, ()), kernel.get(node), node in yellow))
            edges += [Edge(self.id(arg), self.id(node), port) for port, arg in enumerate(node.args)]
        for label, node in zip(outputs, graph.results, strict=True):
            t = node.type
            vertices.append(Vertex(f"out:{label}", label, "output", self.shown.type_text(t), str(t)))
            edges.append(Edge(self.id(node), f"out:{label}"))
        return View(name, tuple(vertices), tuple(edges), tuple(self.id(n) for n in graph.results))

    def vertex(self, node: Node, rules: tuple[str, ...], kernel: int | None, yellow: bool) -> Vertex:
        """One node."""
        kind = _kind(node)
        spans = self.shown.lens.of(node)
        line = min((s.line for s in spans if s.cell == self.shown.cell), default=None)
        actual = ", ".join(self.shown.type_text(t) for t in node.types)
        return Vertex(
            self.id(node),
            self.shown.label(node),
            kind,
            actual,
            ", ".join(map(str, node.types)),
            line if kind not in {"input", "constant"} else None,
            self.shown.cell if line is not None else newest(spans).cell if spans else "",
            _role(spans) if kind not in {"input", "constant"} else "value",
            rules,
            kernel,
            yellow,
            self.preview(node),
        )

    def preview(self, node: Node) -> str:
        """A few values of an input."""
        if node.op is not PARAMETER:
            return ""
        source = self.shown.leaves[node["index"]].params.get("source")
        return short(source.value) if source is not None else ""


def short(value: Any, items: int = 3) -> str:
    """A value in a few characters.

    >>> short(np.arange(10.0))
    '[0, 1, 2, …]'
    """
    array = np.asarray(value)
    if not array.ndim:
        return f"{array.item():.6g}" if array.dtype.kind in "fc" else str(array.item())
    told = [f"{v:.4g}" if array.dtype.kind in "fc" else str(v) for v in array.flat[:items].tolist()]
    return f"[{', '.join(told)}{', …' if array.size > items else ''}]"


def _is_product(subscripts: str) -> bool:
    """Whether a contraction is a product of matrices or vectors."""
    (left, right), out = split(subscripts)
    return len((set(left) & set(right)) - set(out)) == 1


def _kind(node: Node) -> str:
    if node.op is PARAMETER or node.op.name == "input":
        return "input"
    kind = getattr(node.op, "kind", "opaque")
    if kind == "leaf":
        return "constant"
    return kind if kind in KINDS else "opaque"


def _role(spans: Sequence[Site]) -> str:
    roles = {s.role for s in spans}
    for role in ("value", "adjoint", "tangent"):
        if role in roles:
            return role
    return min(roles, default="value")


def steps_of(plan: Plan | None) -> tuple[dict[Node, int], set[Node]]:
    """The number of the step that computes each node, and the nodes that stay in NumPy."""
    kernel: dict[Node, int] = {}
    yellow: set[Node] = set()
    if plan is None:
        return kernel, yellow
    planned = iter(plan.kernels)
    for number, step in enumerate(plan.steps, 1):
        if isinstance(step, Node):
            kernel[step] = number
            if _kind(step) not in {"contract", "move"}:
                yellow.add(step)
        else:
            for node in next(planned).nodes:
                kernel.setdefault(node, number)
    return kernel, yellow
