"""Graphs as views: a vertex for each node, with the graphs of its loops, branches and calls inside it.

A node has the same id in every view, and so has what a rewrite put in its place, so that a picture moves from one view
to the next.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tensormagic.ir import site
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.site import Site
from tensormagic.ir.size import Size, evaluate
from tensormagic.ir.text import extents
from tensormagic.ir.type import Type
from tensormagic.notebook.pictures.naming import Known, Naming, parsed, unfolded
from tensormagic.notebook.pictures.scene import KINDS, Edge, Vertex, View
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.leaf import CONSTANT, PARAMETER, SIZE

__all__ = ["Drawing", "Scope", "functions_of", "is_product", "kind_of", "newest", "places", "short"]

MOST_INSIDE = 3_000  # vertices of one view in graphs of loops, branches and calls; beyond, these are drawn as one box
DEEPEST = 8
WORDS = {"cond": "branch"}  # operations by other names than their own
REGIONS = frozenset(("loop", "while", "cond"))  # that give the user's variables
MOST_NAMES = 4  # of the variables that a loop gives
_SYMBOL = re.compile(r"\bn\d+\b")  # of a size, as captured graphs have them
_BODIES = {"test": "test", "then": "then", "otherwise": "else", "body": "body", "back": "derivative"}


@dataclass(frozen=True)
class Scope:
    """A graph as it is read: what its parameters are called, and the numbers that its sizes are, where these are known."""

    graph: Graph
    names: tuple[str, ...]
    number: Callable[[Size], int] | None
    called: Mapping[Node, str] = field(default_factory=dict[Node, str])
    fixed: Mapping[int, Node] = field(default_factory=dict[int, Node])  # the constants that parameters stand for
    _texts: dict[Type, str] = field(default_factory=dict[Type, str], compare=False, repr=False)

    def type_text(self, t: Type) -> str:
        """``float64[569, 30]``: a type with the sizes of this run; with symbols where these are not known."""
        text = self._texts.get(t)
        if text is None:
            text = self._texts[t] = self._type_text(t)
        return text

    def _type_text(self, t: Type) -> str:
        if self.number is not None:
            with suppress(KeyError, TensorError):
                return str(t.with_shape(tuple(self.number(s) for s in t.shape), t.form))
        return str(t)

    def label(self, node: Node) -> str:
        """The name of an input, the value of a constant, the name of an op; of a loop also how often it runs."""
        if node.op is PARAMETER:
            return self.names[node["index"]]
        if node.op is CONSTANT:
            return short(node["bits"].array()[()])
        if node.op is CONTRACT:
            return "@" if is_product(node["subscripts"]) else "einsum"
        if node.op.name == "loop" and node.args[0].op is CONSTANT:
            return f"loop × {short(node.args[0]['bits'].array()[()])}"
        return self.size_text(node["size"]) if node.op is SIZE else WORDS.get(node.op.name, node.op.name)

    def size_text(self, size: Size) -> str:
        """The number that a size is in this run; its symbol where that is not known."""
        if self.number is not None:
            with suppress(KeyError, TensorError):
                return str(self.number(size))
        return str(size)

    @cached_property
    def extents(self) -> Mapping[str, str]:
        """What the user would write for each symbol of a size."""
        return extents(self.names, self.graph.parameters)

    def symbolic(self, t: Type) -> str:
        """``float64[len(x)]``: a type with sizes as the user would write them; nothing where one of them cannot be."""
        if not t.shape:
            return str(t)
        dtype, bracket, rest = str(t).partition("[")
        names = set(_SYMBOL.findall(rest))
        if not names <= self.extents.keys():
            return ""
        return dtype + bracket + _SYMBOL.sub(lambda found: self.extents[found[0]], rest)

    def constant(self, node: Node) -> Node | None:
        """The constant that a parameter of a graph inside stands for, if it does."""
        return self.fixed.get(node["index"]) if node.op is PARAMETER else None

    def inner(self, node: Node, graph: Graph, naming: Naming, called: Mapping[Node, str]) -> Scope:
        """The scope of a graph inside a node: its parameters are called as what they are given, or as the user's variables."""
        first = len(node.args) - len(graph.parameters)  # the predicate of a branch is no operand of its graphs
        given = node.args[max(first, 0) :]
        numbers = self._numbers(graph, given) if first >= 0 else None
        if first < 0:
            given = ()
        carries, counted = int(node.params.get("carries", 0)), node.op.name == "loop"
        names: list[str] = []
        fixed: dict[int, Node] = {}
        for k in range(len(graph.parameters)):
            iteration = k - counted
            if counted and not k:
                names.append(naming.counter(node) or "index")
                continue
            carried = 0 <= iteration < carries
            source = unfolded(given[k]) if k < len(given) else None
            if source is not None and source.op is CONSTANT and not carried:
                fixed[k] = source
            result = graph.results[iteration] if carried and iteration < len(graph.results) else None
            usual = f"carried {iteration + 1}" if carried else f"operand {k + 1}"
            named = called.get(result, "") if result is not None else ""
            names.append(named or (self.given(given[k], naming, carried=carried) if k < len(given) else "") or usual)
        return Scope(graph, tuple(names), numbers, called, fixed)

    def given(self, node: Node, naming: Naming, *, carried: bool = False) -> str:
        """What an operand is called: its name, or how it was written; of what a loop carries, its name alone."""
        if node in self.called:
            return self.called[node]
        source = unfolded(node)
        if source.op is PARAMETER or (source.op is CONSTANT and not carried):
            return self.label(source)
        if source.op is SIZE and not carried:
            text = str(source["size"])
            known = set(_SYMBOL.findall(text)) <= self.extents.keys()
            return _SYMBOL.sub(lambda found: self.extents[found[0]], text) if known else self.label(source)
        if source.op.name in REGIONS:
            return naming.given_by(source, node)
        return self.called.get(source, "") or ("" if carried else naming.written(source))

    def _numbers(self, graph: Graph, given: Sequence[Node]) -> Callable[[Size], int] | None:
        if self.number is None:
            return None
        with suppress(KeyError, TensorError):
            sizes: Mapping[Any, int] = graph.bind([tuple(self.number(s) for s in n.type.shape) for n in given])
            return lambda size: evaluate(size, sizes.__getitem__)
        return None


@dataclass
class Drawing:
    """The views of some graphs that belong together: a node has the same id in all of them.

    Parameters
    ----------
    cell
        The cell whose lines are told.
    spans
        Where a node comes from.
    preview
        A few values of a node; nothing for most.
    functions
        The function in whose text a line of a cell stands.
    """

    cell: str
    spans: Callable[[Node], Sequence[Site]]
    preview: Callable[[Node], str] = lambda _: ""
    functions: Callable[[str, int], str] = lambda _cell, _line: ""
    source_of: Callable[[str], str] = lambda _: ""
    ids: dict[Node, str] = field(default_factory=dict[Node, str])
    numbers: dict[Any, int] = field(default_factory=dict[Any, int])  # of nodes; inside regions, of their places
    known: dict[Known, str] = field(default_factory=dict[Known, str])  # names, by operation and place
    _count: int = 0

    @cached_property
    def naming(self) -> Naming:
        """Reads names out of the texts of cells."""
        return Naming(self.spans, self.source_of)

    def id(self, node: Node) -> str:
        """What a node is called in every view."""
        found = self.ids.get(node)
        if found is None:
            found = self.ids[node] = f"v{self._count}"
            self._count += 1
        return found

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
            if before.op.name == after.op.name:  # else its operands are others: these are found by their places
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
        """The same for what stands elsewhere in the graph, by op and place in the text."""
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
        """One graph under a name; ``written`` says that it is as the user wrote it, so that names are read from the text."""
        writer = _Writer(self, rules or {}, kernel or {}, yellow, written=written)
        scope = replace(scope, called=writer.called(scope.graph))
        return writer.view(name, scope, outputs)


class _Writer:
    """Writes one view: ids are unique in it, and there is an end to how much it holds."""

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

    def view(
        self, name: str, scope: Scope, outputs: Sequence[str], within: str = "", place: tuple[Any, ...] = ()
    ) -> View:
        ids = self._ids(scope.graph, within)
        vertices: list[Vertex] = []
        edges: list[Edge] = []
        inner: dict[str, tuple[View, ...]] = {}
        for node in topological(scope.graph.results):
            key = ids[node]
            vertices.append(self.vertex(scope, node, key, place))
            edges += [Edge(ids[arg], key, port) for port, arg in enumerate(node.args)]
            if getattr(node.op, "kind", "") == "region" and len(place) < 2 * DEEPEST:
                bodies = tuple(self._bodies(scope, node, key, place))
                inner |= {key: bodies} if bodies else {}
        for label, node in zip(outputs, scope.graph.results, strict=True):
            text = scope.type_text(node.type) if len(node.types) == 1 else ""
            vertices.append(Vertex(f"{within}out:{label}", label, "output", text, _symbolic(scope, node.types)))
            edges.append(Edge(ids[node], f"{within}out:{label}"))
        return View(name, tuple(vertices), tuple(edges), tuple(ids[n] for n in scope.graph.results), inner)

    def called(self, graph: Graph) -> Mapping[Node, str]:
        """What the user calls the nodes of a graph."""
        naming, known = self.drawing.naming, self.drawing.known
        if not self.written:
            return naming.still(graph, known)
        called = naming.names(graph)
        known.update(naming.certain(graph, called))
        return called

    def _ids(self, graph: Graph, within: str) -> dict[Node, str]:
        taken: set[str] = set()
        ids: dict[Node, str] = {}
        for node in topological(graph.results):
            key = self.drawing.id(node)
            while key in taken:  # two nodes that stood in the same place at different times
                key += "'"
            taken.add(key)
            ids[node] = within + key
        return ids

    def _bodies(self, scope: Scope, node: Node, key: str, place: tuple[Any, ...]) -> Iterator[View]:
        order = {name: k for k, name in enumerate(_BODIES)}
        bodies = {name: graph for name, graph in node.params.items() if isinstance(graph, Graph)}
        for name, graph in sorted(bodies.items(), key=lambda pair: order.get(pair[0], -1)):
            self.room -= len(graph.nodes)
            if self.room < 0:
                return
            called = self.called(graph)
            inner = scope.inner(node, graph, self.drawing.naming, called)
            outputs = _result_names(node, name, inner)
            title = _BODIES.get(name, node.op.name)
            yield self.view(title, inner, outputs, f"{key}/{name}/", (*place, node, name))

    def _results(self, scope: Scope, node: Node) -> str:
        """The variables that a loop or a branch gives."""
        for body in ("body", "then"):
            graph = node.params.get(body)
            if isinstance(graph, Graph) and node.op.name in REGIONS:
                inner = scope.inner(node, graph, self.drawing.naming, self.called(graph))
                names = [name for name in _result_names(node, body, inner) if name.isidentifier()]
                return ", ".join(names[:MOST_NAMES]) + ", …" * (len(names) > MOST_NAMES)
        return ""

    def vertex(self, scope: Scope, node: Node, key: str, place: tuple[Any, ...]) -> Vertex:
        """One node, in the graphs of a place."""
        drawing = self.drawing
        fixed = scope.constant(node)
        kind = kind_of(fixed or node)
        spans = drawing.spans(node)
        is_op = kind not in {"input", "constant"}
        line = min((s.line for s in spans if s.cell == drawing.cell), default=None) if is_op else None
        cell = drawing.cell if line is not None else newest(spans).cell if spans else ""
        at = line if line is not None else newest(spans).line if spans else 0
        return Vertex(
            key,
            scope.label(node) if fixed is None else short(fixed["bits"].array()[()]),
            kind,
            ", ".join(scope.type_text(t) for t in (fixed or node).types),
            _symbolic(scope, node.types) if is_op else "",
            line,
            cell,
            _role(spans) if is_op else "value",
            self.rules.get(node, ()),
            self.kernel.get(node),
            node in self.yellow,
            "" if place else drawing.preview(node),
            drawing.functions(cell, at) if is_op and at else "",
            scope.called.get(node, "") or (self._results(scope, node) if kind == "region" else ""),
            drawing.numbers.setdefault((*place, node) if place else node, len(drawing.numbers) + 1),
        )


def _result_names(node: Node, body: str, inner: Scope) -> list[str]:
    """What the results of a graph inside are called: as the user's variables, or by what becomes of them."""
    results = inner.graph.results
    what = "next" if node.op.name in {"loop", "while"} and body == "body" else "result"
    usual = [f"{what} {k + 1}" if len(results) > 1 else what for k in range(len(results))]
    if what == "next":
        counted = node.op.name == "loop"
        known = [inner.names[k + counted] if k + counted < len(inner.names) else "" for k in range(len(results))]
    else:
        known = [inner.called.get(unfolded(result), "") for result in results]
    names = [name or spare for name, spare in zip(known, usual, strict=True)]
    return names if len(set(names)) == len(names) else usual


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


def functions_of(source: str) -> dict[int, str]:
    r"""The functions of a cell's text by line, the innermost for each.

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
    """The span of the latest run."""
    return max(spans, key=lambda s: (s.run, s))


def is_product(subscripts: str) -> bool:
    """Whether a contraction is a product of matrices or vectors."""
    (left, right), out = split(subscripts)
    return len((set(left) & set(right)) - set(out)) == 1


def kind_of(node: Node) -> str:
    """The kind that a node is drawn as."""
    if node.op is PARAMETER or node.op.name == "input":
        return "input"
    kind = getattr(node.op, "kind", "opaque")
    if kind == "leaf":
        return "constant"
    return kind if kind in KINDS else "opaque"


def places(lens: site.Lens, cell: str) -> Callable[[Node], Sequence[Site]]:
    """Where nodes come from: as the lens reads it; inside regions, which it does not see, as this cell recorded."""
    known: dict[Node, Sequence[Site]] = {}

    def spans(node: Node) -> Sequence[Site]:
        told = known.get(node)
        if told is None:
            found = lens.of(node) or [s for s in site.of(node) if s.cell == cell]
            told = known[node] = [s for s in found if s.cell == cell] or found
        return told

    return spans


def _role(spans: Sequence[Site]) -> str:
    roles = {s.role for s in spans}
    for role in ("value", "adjoint", "tangent"):
        if role in roles:
            return role
    return min(roles, default="value")


def _symbolic(scope: Scope, types: tuple[Type, ...]) -> str:
    found = [scope.symbolic(t) for t in types]
    return ", ".join(found) if all(found) else ""
