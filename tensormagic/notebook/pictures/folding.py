"""Fold away vertices that only pass values on: broadcasts, casts, checks and constants become part of their users."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tensormagic.notebook.pictures.carrying import CARRIES, RESHAPES
from tensormagic.notebook.pictures.joining import joined
from tensormagic.notebook.pictures.labels import SYMBOLS, symbol
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.pointwise import ASTYPE

if TYPE_CHECKING:
    from tensormagic.notebook.pictures.scene import Edge, Vertex, View


_BINARY = frozenset((*SYMBOLS, *SYMBOLS.values()))


def folded(view: View) -> View:
    """Return a view without what computes nothing: its edges go from who made a value to who uses it; scalars stand in labels."""
    return _Folding(joined(view)).view()


def _same_kind(one: str, other: str) -> bool:
    """Return whether both types are boolean, or neither is."""
    return one.startswith("bool") is other.startswith("bool")


class _Folding:
    """One view, with the operands of each vertex."""

    def __init__(self, view: View) -> None:
        self.whole = view
        self.vertex = {v.id: v for v in view.vertices}
        self.given: dict[str, list[Edge]] = defaultdict(list)
        for edge in view.edges:
            if edge.source in self.vertex:
                self.given[edge.target].append(edge)
        self.users: dict[str, list[str]] = defaultdict(list)
        for edges in self.given.values():
            for edge in edges:
                self.users[edge.source].append(edge.target)
            edges.sort(key=lambda edge: edge.port)
        outputs = [v for v in view.vertices if v.kind == "output"]
        self.names = self._given_names()
        # a result that is called as its box needs no box of its own
        self.named = {e.source: v.id for v in outputs for e in self.given[v.id] if self._is(e.source, v)}

    def _given_names(self) -> dict[str, str]:
        """Return the names of library calls with several results of which one has a name: the calls get boxes of their own."""
        found: dict[str, list[str]] = defaultdict(list)
        for v in self.whole.vertices:
            for edge in self.given[v.id] if v.label == ITEM.name and v.name else ():
                found[edge.source].append(v.name)
        return {
            key: names[0]
            for key, names in found.items()
            if len(names) == 1 and self.vertex[key].kind == "opaque" and not self.vertex[key].name
        }

    def _is(self, key: str, output: Vertex) -> bool:
        made = self.maker(key, last=True)
        name = self.vertex[made].name or self.names.get(made, "")
        return name == output.label or (
            bool(name) and output.label == "value"
        )  # the one result: its box is marked as such

    def carries(self, key: str) -> bool:
        """Return whether a vertex hands on its first operand."""
        vertex = self.vertex[key]
        if vertex.label not in CARRIES or not self.given[key] or vertex.kind == "output":
            return False
        # a loop has the names of its results in its own title
        source = self.given[key][0].source
        return not vertex.name or (
            vertex.label == ITEM.name and (self.vertex[source].kind == "region" or source in self.names)
        )

    def maker(self, key: str, *, last: bool = False) -> str:
        """Return the vertex that makes the value of a vertex; for the ``last`` one, casts written by the user are kept."""
        made = key
        while self.carries(made):
            made = self.given[made][0].source
        if not last or self.vertex[made].kind == "constant":
            return made
        while self.carries(key) and (
            self.vertex[key].label in {REQUIRE.name, ITEM.name}
            or self.vertex[key].line is None
            or (self.vertex[key].role != "value" and self.vertex[key].label in RESHAPES)
            or self._ends_line(key)
        ):
            key = self.given[key][0].source
        return key

    def _ends_line(self, key: str) -> bool:
        """Return whether a vertex only gives its shape or its class to what the same line has given a name: ``c = m[0, 1]``."""
        one, made = self.vertex[key], self.vertex[self.given[key][0].source]
        return one.label in RESHAPES and bool(made.name) and (one.cell, one.line) == (made.cell, made.line)

    def view(self) -> View:
        """Return the view, folded."""
        results = [self.maker(key, last=True) for key in self.whole.outputs]
        kept: dict[str, list[Edge]] = {}
        texts: dict[str, list[str]] = {}
        spare = set(self.named.values())
        wanted = [*(self.maker(key, last=True) for key in self.ends() if key not in spare), *results]
        while wanted:
            key = wanted.pop()
            if key not in kept:
                kept[key], texts[key] = self.operands(key, last=self.vertex[key].kind == "output")
                wanted += [edge.source for edge in kept[key]]
        shown = tuple(self.typed(self.labelled(v, texts[v.id])) for v in self.whole.vertices if v.id in kept)
        edges = tuple(edge for v in shown for edge in kept.get(v.id, ()))
        inner = {key: tuple(map(folded, bodies)) for key, bodies in self.whole.inner.items() if key in kept}
        shut = replace(self.whole, vertices=shown, edges=edges, outputs=tuple(results), inner=inner, is_folded=True)
        return replace(shut, returns=tuple(self.returns(kept)))

    def returns(self, kept: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield what the next iteration begins with: from the box that gives it, where its result has no box of its own."""
        for end, begin in self.whole.returns:
            given = self.given[end]
            source = end if end in kept or not given else self.maker(given[0].source, last=True)
            if source in kept and begin in kept:
                yield source, begin

    def ends(self) -> list[str]:
        """Return the vertices that nobody uses; and those that only use each other."""
        ends = [v.id for v in self.whole.vertices if v.id not in self.users]
        seen: set[str] = set()
        stack = list(ends)
        while stack:
            key = stack.pop()
            if key not in seen:
                seen.add(key)
                stack += [edge.source for edge in self.given[key]]
        return [*ends, *(v.id for v in self.whole.vertices if v.id not in seen)]

    def operands(self, key: str, *, last: bool) -> tuple[list[Edge], list[str]]:
        """Return the edges drawn into a vertex, and for each operand the number that its label shows, or an empty text."""
        vertex = self.vertex[key]
        edges: list[Edge] = []
        texts: list[str] = []
        counted = vertex.label.startswith("loop \N{MULTIPLICATION SIGN}")
        for edge in self.given[key]:
            source = self.maker(edge.source, last=last)
            made = self.vertex[source]
            scalar = made.kind == "constant" and "[" not in made.type
            if scalar and (
                vertex.kind == "pointwise"
                or vertex.label == "broadcast"
                or (counted and not edge.port)
                or vertex.kind == "region"
            ):
                texts.append(made.label)
                continue
            texts.append("")
            edges.append(replace(edge, source=source))
        return edges, texts

    def typed(self, vertex: Vertex) -> Vertex:
        """Return a vertex with the type of its only user, if that is not drawn: an array sliced to a row has the type of the row."""
        users = self.users.get(vertex.id, [])
        if len(users) != 1 or not self.carries(users[0]):
            return vertex
        last = self.vertex[users[0]]
        if vertex.name and (last.cell, last.line) != (vertex.cell, vertex.line):
            return vertex  # what a later line makes of it is not what the name stands for
        if last.label == ASTYPE.name and not _same_kind(
            vertex.type, last.type
        ):  # of True and False a sum makes numbers
            return vertex
        if last.label not in (RESHAPES if vertex.is_op else {"broadcast"} if vertex.kind == "constant" else ()):
            return vertex
        return replace(vertex, type=last.type, symbolic=last.symbolic)

    def labelled(self, vertex: Vertex, texts: list[str]) -> Vertex:
        """Return a vertex with the numbers that it is given in its label: ``· + 0.1``, ``1 / ·``, ``maximum(·, 0)``."""
        if any(texts) and vertex.label == "broadcast":
            return replace(vertex, label=texts[0])
        if vertex.id in self.names:
            return replace(vertex, name=self.names[vertex.id])
        if not any(texts) or vertex.kind != "pointwise":
            return vertex
        if vertex.label in _BINARY and len(texts) == 2:
            label = " ".join([texts[0] or "·", symbol(vertex.label), texts[1] or "·"])
        else:
            label = f"{vertex.label}({', '.join(text or '·' for text in texts)})"
        return replace(vertex, label=label)
