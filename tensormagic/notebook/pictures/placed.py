"""Draw a call over a cluster: what runs where, what moves between these places, and how many bytes. Made on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tensormagic.distributed.report import Call, Passed, Report, counted, in_bytes
from tensormagic.distributed.stages import Driven, Stage, Whole
from tensormagic.distributed.watching import BLOCK
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import evaluate
from tensormagic.notebook.pictures.adaptor import MOST_AT_ALL, source_of
from tensormagic.notebook.pictures.naming import Naming, unfolded
from tensormagic.notebook.pictures.needed import needed
from tensormagic.notebook.pictures.scene import Edge, Scene, Vertex, View
from tensormagic.notebook.pictures.scope import Scope
from tensormagic.notebook.pictures.views import Drawing, functions_of, kind_of, newest, places
from tensormagic.ops.leaf import CONSTANT, PARAMETER
from tensormagic.ops.regions.branches import COND
from tensormagic.transform.rewriting import rewrite

HERE = "in this process"  # the one that has called the function
NAME = "where it runs"


@dataclass(frozen=True)
class Crossing:
    """What has moved from one place to another: which value, how often, and how many bytes in all."""

    what: str
    way: str
    times: int
    bytes: int


@dataclass(frozen=True)
class Placed:
    """The picture of a call that is split over processes, and the transfers between them."""

    scene: Scene
    crossings: tuple[Crossing, ...]


def headline(report: Report) -> str:
    """Return one line: how many workers and chunks, and the bytes to the workers, between them and back."""
    most = report.call.rows if report.call is not None else 0
    even = report.chunks and (report.chunks - 1) * most < report.rows <= report.chunks * most
    moved = [(report.data.bytes + report.parameters.bytes, "to the workers")]
    moved += [(report.halos.bytes + report.parts.bytes, "between them"), (report.results.bytes, "back")]
    workers, chunks = counted(len(report.workers), "worker"), counted(report.chunks, "chunk")
    rows = f"of {most:,} rows" if even else f"of at most {most:,} rows"
    return f"{workers}, {chunks} {rows}; " + ", ".join(f"{in_bytes(size)} {way}" for size, way in moved)


def placed(report: Report) -> Placed | None:
    """Return the picture of what a report tells of, or None where there is none, or it is too large."""
    call = report.call
    if call is None or len(call.split.graph.nodes) > MOST_AT_ALL or len(report.passed) != len(call.split.stages):
        return None
    return _Placing(report, call).placed()


@dataclass
class _Placing:
    """Draws each node once for each place that computes it, and the transfers between places."""

    report: Report
    call: Call
    vertices: dict[str, Vertex] = field(default_factory=dict[str, Vertex])
    edges: list[Edge] = field(default_factory=list[Edge])
    crossings: list[Crossing] = field(default_factory=list[Crossing])
    inner: dict[str, tuple[View, ...]] = field(default_factory=dict[str, tuple[View, ...]])

    def placed(self) -> Placed:
        """Return the picture."""
        source = self._learn()
        for k, node in enumerate(self.graph.parameters):
            if node in self.read or k in self.call.split.places:
                self._add(self.whole[node])
        for k, place in enumerate(self.call.split.places):
            node = self.graph.parameters[place]
            self.came[node] = self._arrived(k, node)
        for number in range(len(self.call.split.stages) + 1):
            for driven in self.call.split.driven:
                if driven.level == number:
                    self._driven(driven)
            for stage in self.call.split.stages[number : number + 1]:
                self._once(stage.before, self._when(number))
                self._stage(number, stage, self.report.passed[number])
        self._once(self.call.split.last, self._when(len(self.report.passed)))
        self._ends()
        view = View(NAME, tuple(self.vertices.values()), tuple(self.edges), (), self.inner)
        title = f"{self.report.name} over rows"
        return Placed(Scene(title, source, (view,)), tuple(self.crossings))

    # what nodes are called, and look like

    def _learn(self) -> str:
        """Read names and lines; the text that these are of."""
        call = self.call
        before, self.graph = call.split.source, call.split.graph
        known = [s for n in before.nodes for s in call.lens.of(n)]
        cell = newest(known).cell if known else ""
        source = source_of(cell)
        functions = functions_of(source)
        drawing = Drawing(
            cell,
            places(call.lens, cell),
            functions=lambda own, line: functions.get(line, "") if own == cell else "",
            source_of=source_of,
        )
        number = lambda size: evaluate(size, call.sizes.__getitem__)  # noqa: E731 (as short as a name)
        drawing.view("captured", Scope(before, call.names, number), call.results, written=True)
        drawing.follow(before, self.graph)
        drawing.known |= drawing.naming.rewritten(rewrite(before, call.level).fired, drawing.known)
        scope = Scope(self.graph, call.names, number)
        view = drawing.view(NAME, scope, call.results)
        nodes = needed(self.graph, range(len(self.graph.results))).nodes
        self.read = set(nodes)
        self.whole = dict(zip(nodes, view.vertices, strict=False))
        rest = [n for n in (*self.graph.parameters, *self.graph.nodes) if n not in self.read]
        self.whole |= {n: _plain(n, f"{drawing.id(n)}?", scope) for n in rest}
        self.bodies = view.inner
        titles = {v.id: v.title for v in view.drawn.vertices}
        self.told = {n: self._called(n, drawing.naming, titles) for n in self.whole}
        self._tell_parts(call.results)
        self.ends = view.vertices[len(nodes) :]
        self.came: dict[Node, str] = {}  # the vertex that has the rows of an argument
        self.at: dict[Node, str] = {}  # the vertex that has a value in this process
        self.rows: dict[Node, str] = {}  # and the rows of a result on workers
        return source

    def _called(self, node: Node, naming: Naming, titles: Mapping[str, str]) -> str:
        """Return a node's name, else its expression in the user's text, else its operation."""
        if node.op is PARAMETER:
            return self.whole[node].title
        vertex = self.whole[unfolded(node)]
        return self.whole[node].name or vertex.name or naming.written(node) or titles.get(vertex.id, vertex.title)

    def _tell_parts(self, results: Sequence[str]) -> None:
        """Name nodes that only one result is computed from after that result."""
        parts = [node for stage in self.call.split.stages for node, _ in stage.parts]
        of: dict[Node, set[str]] = {node: set() for node in parts}
        for name, result in zip(results, self.graph.results, strict=True):
            for node in topological([result]):
                if node in of:
                    of[node].add(name)
        self.told |= {node: names.pop() for node, names in of.items() if len(names) == 1 and not self.whole[node].name}

    def _add(self, vertex: Vertex, *sources: str) -> str:
        """Return a vertex with its operands; the same one once."""
        if vertex.id not in self.vertices:
            self.vertices[vertex.id] = vertex
            self.edges += [Edge(source, vertex.id, port) for port, source in enumerate(sources)]
        return vertex.id

    def _moves(self, key: str, crossing: Crossing, note: str, source: str) -> str:
        """Add a vertex for a transfer: how many bytes, and of what; return its key."""
        if key not in self.vertices:
            self.crossings.append(crossing)
        return self._add(Vertex(key, in_bytes(crossing.bytes), "sent", note), source)

    # places

    def _when(self, number: int) -> str:
        """Return the title of the frame for the work of this process before a pass, or after the last one."""
        count = len(self.call.split.stages)
        if number == count:
            return f"{HERE}, at the end"
        return f"{HERE}, before pass {number + 1} of {count}" if count > 1 else f"{HERE}, before"

    def _once(self, whole: Whole, place: str) -> None:
        """Draw the nodes computed in this process."""
        for node in topological(whole.gives, stop=set(whole.reads).__contains__):
            if node.op is PARAMETER:
                self.at.setdefault(node, self.whole[node].id)
            elif node not in self.at:
                self.at[node] = self._copy(node, "", place, self.at)

    def _copy(self, node: Node, suffix: str, place: str, there: dict[Node, str]) -> str:
        """Draw a node as computed in one place, with edges from the copies there."""
        vertex = self.whole[node]
        key = vertex.id + suffix
        if vertex.id in self.bodies and key not in self.inner and not any(k.startswith(vertex.id) for k in self.inner):
            self.inner[key] = self.bodies[vertex.id]  # of several copies the first one is drawn open
        role = "value" if vertex.role.startswith("rewritten") else vertex.role
        placed = replace(vertex, id=key, role=role, place="" if vertex.kind == "input" else place)
        return self._add(placed, *(there[a] for a in node.args if a in there))

    def _stage(self, number: int, stage: Stage, passed: Passed) -> None:
        """Draw the part of the work that each worker does on its rows, and how the parts are combined."""
        count = len(self.call.split.stages)
        passing = f", pass {number + 1} of {count}" if count > 1 else ""
        where, suffix = f"on each worker, for its rows{passing}", f"@{number}"
        blocks = f" of {BLOCK} chunks each" * (passed.blocks > 1)
        tree = f"on one worker, parts{blocks} put together{passing}"
        there: dict[Node, str] = {}
        for node, size in zip(stage.reads, passed.reads, strict=True):
            way = Crossing(self.told[node], "this process to workers", passed.workers, size * passed.workers)
            to = f"to {counted(passed.workers, 'worker')}" if passed.workers else "when rows are asked for"
            note = f"{self.told[node]} {to}"
            there[node] = self._moves(f"{self.whole[node].id}>{number}", way, note, self.at[node])
        for k, node in enumerate(stage.inputs):
            there[node] = self._lent(number, k, node, passed, self.came[node]) if node in self.came else self.rows[node]
        parts = [node for node, _ in stage.parts]
        rows = [node for node, _ in stage.rows]
        for node in topological([*parts, *rows], stop=there.__contains__):
            if node not in there:
                there[node] = self._copy(node, suffix, where, there)
        for (node, ufunc), size in zip(stage.parts, passed.parts, strict=True):
            self._part(node, ufunc, size, passed, there[node], (tree, self._when(number + 1)))
        for node in rows:
            self.rows[node] = there[node]

    def _driven(self, driven: Driven) -> None:
        """Draw a loop or branch that this process drives, with the transfers of its stages summed over all iterations."""
        node, vertex = driven.node, self.whole[driven.node]
        what = "branch" if node.op is COND else "loop"
        self._once(driven.before, f"{HERE}, before the {what}")
        passed = self.report.within.get(node, [])
        reads = dict.fromkeys([*driven.begins, *(n for g in driven.graphs.values() for n in g.reads)])
        sent = sum(p.workers * sum(p.reads) for p in passed)
        way = Crossing(f"what the {what} reads", "this process to workers", sum(p.workers for p in passed), sent)
        ends = [self.at[n] for n in reads if n in self.at]
        passes = f"{len(passed):,} pass{'es' * (len(passed) != 1)} over the rows"
        there = [self._moves(f"{vertex.id}>reads", way, f"in {passes}", ends[0])] if ends else []
        self.edges += [Edge(end, there[0], port) for port, end in enumerate(ends[1:], 1)]
        rows = [self.came.get(n) or self.rows[n] for n in reads if n in self.came or n in self.rows]
        where = f"on the workers, for their rows; this process drives the {what}"
        loop = self._add(replace(vertex, place=where), *there, *rows)
        if vertex.id in self.bodies:
            self.inner[vertex.id] = self.bodies[vertex.id]
        self.rows |= dict.fromkeys(driven.left, loop)
        whole = [result for result in driven.gives if result not in driven.left]
        if whole or any(p.parts for p in passed):
            self.at |= dict.fromkeys(whole, self._parts_of(vertex, f"the {what}", passed, loop))

    def _parts_of(self, vertex: Vertex, what: str, passed: Sequence[Passed], loop: str) -> str:
        """Return the parts that the stages of a loop or branch have moved between workers, and to this process."""
        between = sum(p.between for p in passed)
        size = sum(p.between * sum(p.parts) for p in passed)
        way = Crossing(f"parts of {what}", "worker to worker", between, size)
        moved = self._moves(f"{vertex.id}>between", way, f"{between:,} parts to another worker", loop)
        blocks, size = sum(p.blocks for p in passed), sum(p.blocks * sum(p.parts) for p in passed)
        way = Crossing(f"parts of {what}", "workers to this process", blocks, size)
        return self._moves(f"{vertex.id}>back", way, "back to this process", moved)

    def _arrived(self, k: int, node: Node) -> str:
        """Return the rows of an argument, as they came to be on workers."""
        size, how = self.call.arrived[k]
        name = self.told[node]
        told = {"sent": "sent to the workers", "there": "are on the workers", "read": "read by the workers"}[how]
        here = {"sent": "this process to workers", "there": "on the workers already", "read": "read by the workers"}[
            how
        ]
        times = self.report.chunks if size else 0
        way = Crossing(f"rows of {name}", here, times, size)
        return self._moves(f"{self.whole[node].id}>rows", way, f"rows of {name} {told}", self.whole[node].id)

    def _lent(self, number: int, k: int, node: Node, passed: Passed, source: str) -> str:
        """Return the rows with those that a chunk is lent by the next one."""
        halo = self.call.split.halo
        if not halo:
            return source
        name = self.told[node]
        size = passed.lent * halo * self.call.row[k]
        way = Crossing(f"first {counted(halo, 'row')} of {name}", "chunk to the one before", passed.lent, size)
        note = f"{counted(halo, 'row')} of {name} to the chunk before"
        return self._moves(f"{self.whole[node].id}>lent{number}", way, note, source)

    def _part(self, node: Node, ufunc: str, size: int, passed: Passed, source: str, where: tuple[str, str]) -> None:
        """Draw the partial results of all chunks, combined on workers and then in this process."""
        vertex, name = self.whole[node], self.told[node]
        between = Crossing(f"parts of {name}", "worker to worker", passed.between, passed.between * size)
        note = f"{passed.between:,} of {self.report.chunks:,} parts to another worker"
        moved = self._moves(f"{vertex.id}>between", between, note, source)
        plain = Vertex("", ufunc, "fold", vertex.type, vertex.symbolic, vertex.line, vertex.cell, vertex.role)
        tree = self._add(replace(plain, id=f"{vertex.id}>tree", place=where[0]), moved)
        back = Crossing(f"parts of {name}", "workers to this process", passed.blocks, passed.blocks * size)
        self.at[node] = self._moves(f"{vertex.id}>back", back, f"{name} back to this process", tree)
        if passed.blocks > 1:
            whole = replace(plain, id=f"{vertex.id}>all", place=where[1])
            self.at[node] = self._add(whole, self.at[node])

    def _ends(self) -> None:
        """Draw the results: values in this process, and rows that stay where they are."""
        for node, end in zip(self.graph.results, self.ends, strict=True):
            source = self.at.get(node, "")
            if node in self.rows:
                later = any(p.later for p in self.report.passed)
                note = "rows, computed when asked for" if later else "rows stay on the workers"
                way = Crossing(f"rows of {end.label}", note.removeprefix("rows, ").removeprefix("rows "), 0, 0)
                source = self._moves(f"{end.id}>rows", way, note, self.rows[node])
            elif node.op is CONSTANT:
                source = self._copy(node, "", "", self.at)
            self._add(end, source)


def _plain(node: Node, key: str, scope: Scope) -> Vertex:
    """Return a node that is computed or sent, but has no vertex of its own, as an unused loop result."""
    types = ", ".join(map(scope.type_text, node.types))
    return Vertex(key, scope.label(node), kind_of(node), types)
