"""Where a node came from: cell, run, line, columns and role. Kept beside the node, outside equality."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property

from tensormagic.ir.node import Node, substitute, topological

OF_ALL = "of all elements"  # the role of what code asks for of selected elements alone


@dataclass(frozen=True, order=True)
class Site:
    """A span of a notebook cell or a file, and what a node is there for.

    Parameters
    ----------
    cell
        ``"In[4]"``, or a file's name.
    run
        Counts the runs of cells: a later run of the same cell replaces its sites.
    line, end_line
        Counted from 1.
    column, end_column
        Counted from 0, in characters.
    role
        ``"value"``, ``"tangent"``, ``"adjoint"``, ``"rewritten by RULE"``, or :data:`OF_ALL`.
    quiet
        Kinds of floating-point errors that the code ignores there, as ``np.errstate`` names them.
    """

    cell: str
    run: int
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    role: str = "value"
    quiet: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.cell} line {self.line}"

    def with_quiet(self, quiet: tuple[str, ...]) -> Site:
        """The same with other kinds of errors: for each node of code that ignores some, where ``replace`` takes its time."""
        return Site(self.cell, self.run, self.line, self.column, self.end_line, self.end_column, self.role, quiet)

    def with_role(self, role: str) -> Site:
        """The same of a node that is there for something else."""
        return Site(self.cell, self.run, self.line, self.column, self.end_line, self.end_column, role, self.quiet)

    def __contains__(self, other: Site) -> bool:
        """Whether another span is in this one, of the same text."""
        inside = (self.line, self.column) <= (other.line, other.column)
        inside = inside and (other.end_line, other.end_column) <= (self.end_line, self.end_column)
        return inside and (self.cell, self.run) == (other.cell, other.run)


forgotten: set[str] = set()
"""Cells that ended in an error: what is built again afterwards was not written there."""

MOST = 32  # sites of a node: what all functions have in common, as their first parameter, would gather those of all


def _now(node: Node) -> tuple[Site, ...]:
    """The sites of ``node`` as they are now, copied in one step: other threads add to them."""
    return tuple(node.sites or ())


def record(node: Node, site: Site) -> None:
    """Say that ``node`` came from ``site``; sites of earlier runs of the same cell go, and the oldest where there are too many."""
    sites: dict[Site, None] | None = node.sites  # the last one was met last
    if sites is None:
        node.sites = {site: None}
        return
    if sites.pop(site, site) is site:  # a new one
        known = _now(node)
        older = (
            [s for s in known if s.cell in forgotten or (s.cell == site.cell and s.run < site.run)] if site.run else []
        )
        for gone in older or known[: max(0, len(known) - MOST + 1)]:
            sites.pop(gone, None)
    sites[site] = None


def record_new(node: Node, site: Site) -> None:
    """Say that ``node`` came from ``site``, and with it those of its operands that were built for it.

    These have no site yet; or, where an equal node was built before, no other sites than that one had.
    """
    before = frozenset(node.sites or ())
    record(node, site)
    pending = list(node.needs)
    while pending:
        part = pending.pop()
        known = part.sites
        if part.needs and (known is None or ((before or forgotten) and site not in known and _is_of(part, before))):
            record(part, site)
            pending += part.needs


def _is_of(part: Node, before: frozenset[Site]) -> bool:
    """Whether a part has no other sites than those, but for cells that ended in an error."""
    return before.issuperset(s for s in _now(part) if s.cell not in forgotten)


def of(node: Node) -> tuple[Site, ...]:
    """The sites of ``node``, sorted."""
    return tuple(sorted(node.sites or (), key=_order))


class Lens:
    """The sites of nodes of a closed graph, as its own open nodes have them.

    Cells that close to equal graphs share the graph's nodes and what was rewritten of it, with the sites of them all. A
    span of one of them is read as the spans of the open nodes that went where it stands. What stands within a loop or a branch
    alone is no open node of its own: there it is read as it is, without other cells' spans.

    Parameters
    ----------
    mapping
        Where each open node went when the graph was closed.
    """

    def __init__(self, mapping: Mapping[Node, Node]) -> None:
        self._spans: dict[Node, tuple[Site, ...]] = {}
        self._own: dict[_Where, set[Node]] = {}
        self._shared: dict[_Where, set[Node]] = {}
        self._places: dict[
            _Where, _Spans
        ] = {}  # what was asked before: a node has a place for each cell that it occurs in
        self._same: dict[tuple[Site, ...], _Spans] = {}
        self._roles: dict[tuple[Site, str], Site] = {}
        for node, closed in mapping.items():
            spans = _now(node)
            if not spans:
                continue
            self._spans[node] = spans
            if not node.args:  # what is given stands at no place of its own: a rule has left it where something was
                continue
            for span in spans:
                self._own.setdefault(_where(span), set()).add(node)
            roles_here = {span.role for span in spans}
            for span in _now(closed):
                if (
                    span.role in roles_here
                ):  # else an equal node is there for something else, as 0.5 for what `/ 2` becomes
                    self._shared.setdefault(_where(span), set()).add(node)

    def of(self, node: Node) -> tuple[Site, ...]:
        """The sites of a node of the graph, or of one that it was rewritten to, sorted."""
        spans = _now(node)
        meant = [span for span in spans if _where(span) in self._own] or spans  # others are those of equal cells
        found = {(self._at(_where(span)), span.role) for span in meant}
        return tuple(sorted({self._as(own, role) for spans, role in found for own in spans.found}, key=_order))

    def built_near(self, span: Site) -> tuple[list[Node], int]:
        """What code has built at this very place, or last before it, and how many lines above it that is.

        What stands within a loop is no open node, and neither is what a rule has put in the place of one.
        """
        before: dict[tuple[int, int], list[Node]] = {}
        for node, spans in self._spans.items():
            for s in spans if node.args else ():
                if (s.cell, s.run) == (span.cell, span.run) and (s.line, s.column) <= (span.line, span.column):
                    before.setdefault((s.line, s.column), []).append(node)
        here = self._own.get(_where(span))
        last = max(before, default=(span.line, 0))
        return ([*here], 0) if here else (before.get(last, []), span.line - last[0])

    def within(self, node: Node) -> tuple[Site, ...]:
        """The same also of a node that stands within a loop or a branch: the spans of the runs that the graph is of, else all."""
        known = self.of(node)
        if known:
            return known
        every = of(node)
        return tuple(s for s in every if (s.cell, s.run) in self._runs) or every

    @cached_property
    def _runs(self) -> set[tuple[str, int]]:
        """The cells, and their runs, that open nodes came from."""
        return {(span.cell, span.run) for spans in self._spans.values() for span in spans}

    def _at(self, where: _Where) -> _Spans:
        """The spans of open nodes at this very place, with those in other cells; else of the open nodes that went where it stands.

        Equal code of two cells shares parts that do not depend on data, as a number that is broadcast: these have the place
        of the cell that came first. A node that is made of such a part, and went where it stands, has the place that is meant.
        """
        known = self._places.get(where)
        if known is None:
            cell, nodes = where[0], self._own.get(where, set[Node]())
            others = self._shared.get(where, set[Node]()) - nodes
            elsewhere = [n for n in others if all(s.cell != cell for s in self._spans[n])]
            here = nodes - _parts(elsewhere, nodes)
            own = {s for n in here for s in self._spans[n] if _where(s) == where}
            own |= self._meant([{s for s in self._spans[n] if s.cell != cell} for n in here])
            spread = {s for n in elsewhere or others or nodes for s in self._spans[n]}
            found = own or {s for s in spread if _where(s)[1:] == where[1:]} or spread
            ordered = tuple(sorted(found, key=_order))
            known = self._places[where] = self._same.setdefault(ordered, _Spans(ordered))
        return known

    @staticmethod
    def _meant(spans: list[set[Site]]) -> set[Site]:
        """Of spans in other cells, for each cell those of all nodes that have any: one of them may stand elsewhere, too.

        ``x - x.mean()`` is a part of ``x.std()``, and may have a line of its own.
        """
        if len(spans) == 1:
            return spans[0]
        cells: dict[str, list[set[Site]]] = {}  # of each cell, the spans of those nodes that have any there
        for each in spans:
            here: dict[str, set[Site]] = {}
            for s in each:
                here.setdefault(s.cell, set()).add(s)
            for cell, known in here.items():
                cells.setdefault(cell, []).append(known)
        found: set[Site] = set()
        for there in cells.values():
            found |= set[Site].intersection(*there) or set[Site]().union(*there)
        return found

    def _as(self, own: Site, role: str) -> Site:
        if own.role == role:
            return own
        known = self._roles.get((own, role))
        if known is None:
            known = self._roles[own, role] = replace(own, role=role)
        return known


def _parts(nodes: Iterable[Node], among: set[Node]) -> set[Node]:
    """Which of some nodes others are made of, with nothing between them that is not one of these."""
    found: set[Node] = set()
    pending = list(nodes)
    while pending:
        new = among.intersection(pending.pop().needs) - found
        found |= new
        pending += new
    return found


@dataclass(frozen=True, eq=False)
class _Spans:
    """Spans that belong to a place: equal to nothing else, so that they are told apart at once."""

    found: tuple[Site, ...]


_Where = tuple[object, ...]
_where = operator.attrgetter("cell", "line", "column", "end_line", "end_column")
_order = operator.attrgetter(*(f.name for f in fields(Site)))  # as sites compare, and much faster


def inherit(new: Node, old: Node, role: str | None = None) -> None:
    """Give the nodes that were built for ``new`` the sites of ``old``, down to nodes that have sites already."""
    if old.sites is None:
        return
    known = _now(old)
    known = tuple(s.with_role(role) for s in known) if role else known
    for node in topological([new], stop=lambda n: n.sites is not None):
        if node.sites is None:
            for site in known:
                record(node, site)


def copy(new: Node, old: Node) -> None:
    """Say that ``new`` came from where ``old`` came from, too."""
    if old.sites is not None:
        for site in _now(old):
            record(new, site)


def substituted(roots: Iterable[Node], replacement: Mapping[Node, Node]) -> list[Node]:
    """``roots`` with nodes replaced, as by ``substitute``; what is rebuilt keeps its sites."""
    memo: dict[Node, Node] = {}
    new = substitute(roots, replacement, memo)
    follow({old: end for old, end in memo.items() if old not in replacement})
    return new


def follow(became: Mapping[Node, Node]) -> None:
    """Give nodes that took the place of others, and have no sites, the sites of these."""
    for old, new in became.items():
        known = old.sites
        if known and new is not old and new.args and new.sites is None:
            new.sites = dict(known)


def roles(nodes: Iterable[Node]) -> set[str]:
    """The roles that occur among the sites of ``nodes``."""
    return {site.role for node in nodes for site in of(node)}
