"""Graphs as views: a vertex for each node, with the graphs of its loops, branches and calls inside it.

A node has the same id in every view, and so has what a rewrite put in its place, so that a picture moves from one view
to the next.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.site import Site
from tensormagic.ir.size import nodes_of
from tensormagic.notebook.pictures.carrying import CARRYING
from tensormagic.notebook.pictures.labels import in_cell, operation
from tensormagic.notebook.pictures.naming import Known, Naming, parsed, unfolded
from tensormagic.notebook.pictures.needed import Needed, needed
from tensormagic.notebook.pictures.passes import is_derived
from tensormagic.notebook.pictures.scene import KINDS, Edge, Vertex, View
from tensormagic.notebook.pictures.scope import REGIONS, Scope, short
from tensormagic.ops.indices.gather import GATHER, TAKE_ALONG_AXIS
from tensormagic.ops.leaf import INPUT, PARAMETER
from tensormagic.ops.meaning import of_node
from tensormagic.ops.opaque import ITEM, Store
from tensormagic.ops.regions.loops import LOOP, WHILE

MOST_INSIDE = 3_000  # vertices of one view in graphs of loops, branches and calls; beyond, these are drawn as one box
DEEPEST = 8
MOST_NAMES = 4  # of the variables that a loop gives
_PLACED = frozenset(("move", "update"))  # kinds that read places in arrays: the numbers of these places are drawn, too
_TAKES = (GATHER, TAKE_ALONG_AXIS)  # elements by arrays of places
_BODIES = {"test": "test", "then": "then", "otherwise": "else", "body": "body", "back": "derivative"}


@dataclass
class Drawing:
    """The views of some graphs that belong together: a node has the same id in all of them.

    Parameters
    ----------
    cell
        The cell whose lines are shown.
    spans
        Gives the places that a node comes from.
    preview
        Gives a few values of a node; empty for most.
    functions
        Gives the function whose text a line of a cell belongs to.
    """

    cell: str
    spans: Callable[[Node], Sequence[Site]]
    preview: Callable[[Node], str] = lambda _: ""
    functions: Callable[[str, int], str] = lambda _cell, _line: ""
    source_of: Callable[[str], str] = lambda _: ""
    ids: dict[Node, str] = field(default_factory=dict[Node, str])
    numbers: dict[Any, int] = field(default_factory=dict[Any, int])  # of nodes; inside regions, of their places
    known: dict[Known, str] = field(default_factory=dict[Known, str])  # names, by operation and place
    texts: dict[str, str] = field(default_factory=dict[str, str])  # of cells
    _count: int = 0

    @cached_property
    def naming(self) -> Naming:
        """Return the reader of names in the texts of cells."""
        return Naming(self.spans, self.source_of, self.cell)

    def in_cell(self, rule: str) -> str:
        """Return a rule, or the role that it gives, with letters that the cell does not have."""
        if self.cell not in self.texts:
            self.texts[self.cell] = self.source_of(self.cell)
        role = "rewritten by " if rule.startswith("rewritten by ") else ""
        return role + in_cell(rule.removeprefix(role), self.texts[self.cell])

    def id(self, node: Node) -> str:
        """Return the id of a node, the same in every view."""
        found = self.ids.get(node)
        if found is None:
            found = self.ids[node] = f"v{self._count}"
            self._count += 1
        return found

    def meaning(self, node: Node, label: str, cell: str) -> str:
        """Return what an operation does, if its cell's text does not name it, as for ops that rules and library functions insert."""
        if cell not in self.texts:
            self.texts[cell] = self.source_of(cell)
        is_operator = "@" in label or operation(node.op.name) != node.op.name
        names = {node.op.name, label} if label.isidentifier() else {node.op.name}
        written = is_operator or any(re.search(rf"\b{name}\b", self.texts[cell]) for name in names)
        return "" if written else of_node(node)

    def follow(self, old: Graph, new: Graph) -> None:
        """Call the nodes of `new` as those of `old` in whose places they stand."""
        stays = set(new.nodes)
        stack = list(zip(old.results, new.results, strict=False))
        seen: set[Node] = set()
        while stack:
            before, after = stack.pop()
            if before is after or after in seen:
                continue
            seen.add(after)
            self._name(before, after, stays)
            if before.op is after.op:  # else its operands are others: these are found by their places
                stack += zip(before.args, after.args, strict=False)
            for key, graph in after.params.items():
                inside = before.params.get(key)
                if isinstance(graph, Graph) and isinstance(inside, Graph):
                    self.follow(inside, graph)
        self._follow_places(old, new, stays, self._span)
        self._follow_places(old, new, stays, self._line)

    def _name(self, before: Node, after: Node, stays: set[Node]) -> None:
        alike = bool(before.args) == bool(after.args) and PARAMETER not in {before.op, after.op}
        if after not in self.ids and before in self.ids and before not in stays and alike:
            self.ids[after] = self.ids[before]

    def _follow_places(self, old: Graph, new: Graph, stays: set[Node], place: Callable[[Node], Any]) -> None:
        """Give other vertices of the new graph the ids of old ones with the same op and place in the text."""
        strangers = [node for node in new.nodes if node not in self.ids and node.args]
        if not strangers:
            return
        taken = {"", *(self.ids[n] for n in new.nodes if n in self.ids)}
        gone: dict[Any, deque[Node]] = defaultdict(deque)
        for node in old.nodes:
            if node not in stays and self.ids.get(node, "") not in taken:
                gone[place(node)].append(node)
        for node in strangers:
            where = place(node)
            if gone[where]:
                self.ids[node] = self.ids[gone[where].popleft()]

    def _span(self, node: Node) -> Any:
        return node.op.name, tuple({(s.cell, s.line, s.column) for s in self.spans(node)})

    def _line(self, node: Node) -> Any:
        return node.op.name, tuple({(s.cell, s.line) for s in self.spans(node)})

    def view(
        self,
        name: str,
        scope: Scope,
        outputs: Sequence[str],
        *,
        rules: Mapping[Node, tuple[str, ...]] | None = None,
        kernel: Mapping[Node, int] | None = None,
        yellow: frozenset[Node] | set[Node] = frozenset(),
        written: bool = False,
    ) -> View:
        """Return one graph under a name; ``written``: it is as the user wrote it, so that names are read from the text."""
        writer = _Writer(self, rules or {}, kernel or {}, yellow, written=written)
        scope = replace(scope, called=writer.called(scope.graph))
        return writer.view(name, scope, outputs)


class _Writer:
    """Writes one view, with unique ids and a limit on its size."""

    def __init__(
        self,
        drawing: Drawing,
        rules: Mapping[Node, tuple[str, ...]],
        kernel: Mapping[Node, int],
        yellow: frozenset[Node] | set[Node],
        *,
        written: bool,
    ) -> None:
        self.drawing = drawing
        self.written = written
        self.rules = rules
        self.kernel = kernel
        self.yellow = yellow
        self.room = MOST_INSIDE
        self.parts: dict[Node, str] = {}  # how parts of arrays were written

    def view(
        self,
        name: str,
        scope: Scope,
        outputs: Sequence[str],
        within: str = "",
        place: tuple[Any, ...] = (),
        wanted: Sequence[int] | None = None,
    ) -> View:
        """Return a view of the nodes that the ``wanted`` results need, or all results."""
        wanted = range(len(scope.graph.results)) if wanted is None else wanted
        found = needed(scope.graph, wanted)
        self.parts |= self.drawing.naming.parts([n for n in found.nodes if kind_of(n) in _PLACED or n.op in _TAKES])
        ids = self._ids(found.nodes, within)
        ends = _gradients([(outputs[k], scope.graph.results[k]) for k in wanted]) if not place else {}
        vertices: list[Vertex] = []
        edges: list[Edge] = []
        inner: dict[str, tuple[View, ...]] = {}
        for node in found.nodes:
            key = ids[node]
            given_as = _given_as(scope, node, found, ends)
            vertices.append(self.vertex(scope, node, key, place, found.read_of(node), given_as))
            edges += [Edge(ids[arg], key, port) for port, arg in enumerate(node.args) if found.reads(node, port)]
            new = [n for n in node.sized_by if n not in node.args and node.op not in CARRYING]
            places_ = new if vertices[-1].kind in _PLACED else [n for n in new if _brings(node, n)]
            edges += [Edge(ids[n], key, len(node.args) + k) for k, n in enumerate(places_)]
            if node.op.kind == "region" and len(place) < 2 * DEEPEST:
                bodies = tuple(self._bodies(scope, node, key, place, found.ends_of(node), given_as))
                inner |= {key: bodies} if bodies else {}
        results = [scope.graph.results[k] for k in wanted]
        for label, node in [(outputs[k], scope.graph.results[k]) for k in wanted]:
            text = scope.type_text(node.type) if len(node.types) == 1 else ""
            vertices.append(Vertex(f"{within}out:{label}", label, "output", text, scope.symbolics(node.types)))
            edges.append(Edge(ids[node], f"{within}out:{label}"))
        ends_ = {k: f"{within}out:{outputs[k]}" for k in wanted}
        returns = tuple(_returns(place[-2], scope.graph, ids, ends_)) if place and place[-1] == "body" else ()
        if not place:
            vertices = _of_gradients(vertices, edges)
        given = tuple(ids[n] for n in results)
        return View(name, tuple(vertices), tuple(edges), given, inner, returns=returns)

    def called(self, graph: Graph) -> Mapping[Node, str]:
        """Return the user's names for the nodes of a graph."""
        naming, known = self.drawing.naming, self.drawing.known
        if not self.written:
            return naming.still(graph, known)
        called = naming.names(graph)
        known.update(naming.certain(graph, called))
        return called

    def _ids(self, nodes: Sequence[Node], within: str) -> dict[Node, str]:
        taken: set[str] = set()
        ids: dict[Node, str] = {}
        for node in nodes:
            key = self.drawing.id(node)
            while key in taken:  # two nodes that stood in the same place at different times
                key += "'"
            taken.add(key)
            ids[node] = within + key
        return ids

    def _bodies(
        self,
        scope: Scope,
        node: Node,
        key: str,
        place: tuple[Any, ...],
        ends: Sequence[int] | None,
        given_as: Mapping[int, str],
    ) -> Iterator[View]:
        order = {name: k for k, name in enumerate(_BODIES)}
        bodies = {name: graph for name, graph in node.params.items() if isinstance(graph, Graph)}
        for name, graph in sorted(bodies.items(), key=lambda pair: order.get(pair[0], -1)):
            self.room -= len(graph.nodes)
            if self.room < 0:
                return
            inner = self._inner(scope, node, graph, given_as)
            outputs = self._result_names(node, name, inner)
            title = _BODIES.get(name, node.op.name)
            wanted = ends if name != "test" else None
            yield self.view(title, inner, outputs, f"{key}/{name}/", (*place, node, name), wanted)

    def _inner(self, scope: Scope, node: Node, graph: Graph, given_as: Mapping[int, str]) -> Scope:
        """Return the scope of a graph inside a node; nodes before the iterations get the names that they have inside."""
        called = self.called(graph)
        if isinstance(body := node.params.get("body"), Graph) and body is not graph:
            called = {**self.called(body), **called}
        return scope.inner(node, graph, self.drawing.naming, called, given_as)

    def _results(self, scope: Scope, node: Node, read: Sequence[int], given_as: Mapping[int, str]) -> str:
        """Return the variables that a loop or a branch gives."""
        for body in ("body", "then"):
            graph = node.params.get(body)
            if isinstance(graph, Graph) and node.op in REGIONS:
                inner = self._inner(scope, node, graph, given_as)
                all_names = self._result_names(node, body, inner)
                names = [name for name in (all_names[k] for k in read) if name.isidentifier() and not is_derived(name)]
                return ", ".join(names[:MOST_NAMES]) + ", …" * (len(names) > MOST_NAMES)
        return ""

    def _result_names(self, node: Node, body: str, inner: Scope) -> list[str]:
        """Return the names of the results of a graph inside: the user's variables, or their role, as ``next``."""
        results = inner.graph.results
        what = "next" if node.op in {LOOP, WHILE} and body == "body" else "goes on" if body == "test" else "result"
        usual = [f"{what} {k + 1}" if len(results) > 1 else what for k in range(len(results))]
        if what == "next":
            counted = node.op is LOOP
            known = [inner.names[k + counted] if k + counted < len(inner.names) else "" for k in range(len(results))]
        else:
            known = [inner.called.get(unfolded(result), "") for result in results]
            if node.op in REGIONS and body != "test":  # a way of a branch may only hand on
                known = [name or self.drawing.naming.gives(node, k) for k, name in enumerate(known)]
        names = [name or spare for name, spare in zip(known, usual, strict=True)]
        return names if len(set(names)) == len(names) else usual

    def vertex(
        self,
        scope: Scope,
        node: Node,
        key: str,
        place: tuple[Any, ...],
        read: Sequence[int],
        given_as: Mapping[int, str],
    ) -> Vertex:
        """Return the vertex of one node in the graphs of a place; of several results only those in ``read`` are described."""
        drawing = self.drawing
        fixed = scope.constant(node)
        types = tuple(node.types[k] for k in read) if fixed is None else fixed.types
        kind = kind_of(fixed or node)
        spans = drawing.spans(node)
        is_op = computes(kind)
        label = drawing.naming.spelt(node, scope.label(node)) if fixed is None else short(fixed["bits"].array()[()])
        if place and kind == "input" and "(" not in label:  # spelt as outside the frame, with that sign
            label = label.replace(" * ", " \N{MULTIPLICATION SIGN} ")
        line = min((s.line for s in spans if s.cell == drawing.cell), default=None) if is_op else None
        cell = drawing.cell if line is not None else newest(spans).cell if spans else ""
        at = line if line is not None else newest(spans).line if spans else 0
        return Vertex(
            key,
            label,
            kind,
            ", ".join(map(scope.type_text, types)),
            scope.symbolics(types) if is_op else "",
            line,
            cell,
            drawing.in_cell(_role(spans)) if is_op else "value",
            tuple(map(drawing.in_cell, self.rules.get(node, ()))),
            self.kernel.get(node),
            node in self.yellow,
            "" if place else drawing.preview(node),
            drawing.functions(cell, at) if is_op and at else "",
            scope.called.get(node, "") or (self._results(scope, node, read, given_as) if kind == "region" else ""),
            self.parts.get(node, ""),
            drawing.numbers.setdefault((*place, node) if place else node, len(drawing.numbers) + 1),
            calls=drawing.naming.calls(node),
            meaning=drawing.meaning(node, label, cell) if is_op and fixed is None and kind != "region" else "",
        )


def _returns(loop: Node, body: Graph, ids: Mapping[Node, str], ends: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    """Yield the results of a loop's body that are carried to the next iteration, each with the input that it becomes."""
    if loop.op not in {LOOP, WHILE}:
        return
    first = int(loop.op is LOOP)
    for k, end in ends.items():
        begins = body.parameters[k + first] if k < loop["carries"] else None
        if begins is not None and begins in ids and body.results[k] is not begins:
            yield end, ids[begins]


def _given_as(scope: Scope, node: Node, found: Needed, ends: Mapping[tuple[Node, int], str]) -> dict[int, str]:
    """Return the labels of a loop's results where they are read; gradients have their own names."""
    items = [n for n in found.nodes if n.op is ITEM and n.args[0] is node] if len(node.types) > 1 else []
    named = {number: label for (one, number), label in ends.items() if one is node}
    return named | {item["index"]: scope.called[item] for item in items if item in scope.called}


def _brings(node: Node, number: Node) -> bool:
    """Return whether a size, or a place, that is computed comes into a graph with a node, and not with its operands."""
    known = {
        n for arg in node.args for n in (*arg.sized_by, *(n for t in arg.types for s in t.shape for n in nodes_of(s)))
    }
    return number not in known


def _of_gradients(vertices: list[Vertex], edges: Sequence[Edge]) -> list[Vertex]:
    """Return the vertices; those that rules have made, and that gradients alone need, as what belongs to a gradient."""
    given: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        given[edge.target].append(edge.source)
    outputs = [v for v in vertices if v.kind == "output"]
    stack = [v.id for v in outputs if not v.label.startswith("grad_")]
    if len(stack) == len(outputs):
        return vertices
    needed_ = set[str]()
    while stack:
        key = stack.pop()
        if key not in needed_:
            needed_.add(key)
            stack += given[key]
    return [
        replace(v, derived=True) if v.id not in needed_ and v.is_op and v.role.startswith("rewritten") else v
        for v in vertices
    ]


def _gradients(outputs: Sequence[tuple[str, Node]]) -> dict[tuple[Node, int], str]:
    """Return the results of loops that are gradients themselves, by the loop and the index of the result."""
    found: dict[tuple[Node, int], str] = {}
    for label, result in outputs:
        node = result
        while node.op in CARRYING and node.op is not ITEM:
            node = node.args[0]
        if label.startswith("grad_"):
            found[node.args[0] if node.op is ITEM else node, node["index"] if node.op is ITEM else 0] = label
    return found


def functions_of(source: str) -> dict[int, str]:
    r"""Return the functions of a cell's text by line, the innermost for each.

    >>> functions_of("def f(x):\n    return 2 * x\ny = f(3)")
    {1: 'f', 2: 'f'}
    """
    tree = parsed(source) if "def " in source else None
    if tree is None:
        return {}
    found: dict[int, str] = {}
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        part, outer = stack.pop()
        for child in ast.iter_child_nodes(part):
            name = outer
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{outer}.{child.name}" if outer else child.name
                found |= dict.fromkeys(range(child.lineno, (child.end_lineno or child.lineno) + 1), name)
            stack.append((child, name))
    return found


def newest(spans: Sequence[Site]) -> Site:
    """Return the span of the latest run."""
    return max(spans, key=lambda s: (s.run, s))


def kind_of(node: Node) -> str:
    """Return the kind that a node is drawn as."""
    if node.op is PARAMETER or node.op is INPUT:
        return "input"
    kind = node.op.kind
    if kind == "leaf":
        return "constant"
    if isinstance(node.op, Store):
        return "update"
    return kind if kind in KINDS else "opaque"


def computes(kind: str) -> bool:
    """Return whether a kind of vertex is an operation, and no input or constant."""
    return kind not in {"input", "constant"}


def places(lens: site.Lens, cell: str) -> Callable[[Node], Sequence[Site]]:
    """Return a function that gives a node's places: from the lens; for nodes inside regions, which it lacks, from their own sites."""
    known: dict[Node, Sequence[Site]] = {}

    def spans(node: Node) -> Sequence[Site]:
        told = known.get(node)
        if told is None:
            found = lens.within(node)
            told = known[node] = [s for s in found if s.cell == cell] or found
        return told

    return spans


def _role(spans: Sequence[Site]) -> str:
    roles = {s.role for s in spans}
    for role in ("value", "adjoint", "tangent"):
        if role in roles:
            return role
    return min(roles, default="value")
