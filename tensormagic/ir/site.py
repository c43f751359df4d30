"""The places in code that nodes came from: cell, run, line, columns and role. Stored with the node, outside equality."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property

from tensormagic.ir.node import Node, substitute, topological

OF_ALL = "of all elements"  # the role of nodes over all elements that code only computes for selected ones


@dataclass(frozen=True, order=True)
class Site:
    """A span of a notebook cell or a file, and the role of a node there.

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
        """Return the same site with other ignored kinds of errors; faster than ``dataclasses.replace``."""
        return Site(self.cell, self.run, self.line, self.column, self.end_line, self.end_column, self.role, quiet)

    def with_role(self, role: str) -> Site:
        """Return the same site with another role."""
        return Site(self.cell, self.run, self.line, self.column, self.end_line, self.end_column, role, self.quiet)

    def __contains__(self, other: Site) -> bool:
        """Return whether another span of the same text lies within this one."""
        inside = (self.line, self.column) <= (other.line, other.column)
        inside = inside and (other.end_line, other.end_column) <= (self.end_line, self.end_column)
        return inside and (self.cell, self.run) == (other.cell, other.run)


forgotten: set[str] = set()
"""Cells that ended in an error: nodes that are built again afterwards do not count as written there."""

MOST = 32  # sites of a node: a node common to all functions, such as their first parameter, would otherwise collect those of all


def _now(node: Node) -> tuple[Site, ...]:
    """Return the sites of ``node``, copied in one step since other threads add to them."""
    return tuple(node.sites or ())


def record(node: Node, site: Site) -> None:
    """Add ``site`` to the sites of ``node``; drop those of earlier runs of the same cell, and the oldest if there are too many."""
    sites: dict[Site, None] | None = node.sites  # in order: the last one was recorded last
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
    """Add ``site`` to ``node`` and to those operands that were built for it.

    These have no site yet, or only the sites that an equal node had before.
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
    """Return whether a part has only sites in ``before``, apart from those of cells that ended in an error."""
    return before.issuperset(s for s in _now(part) if s.cell not in forgotten)


def of(node: Node) -> tuple[Site, ...]:
    """Return the sites of ``node``, sorted."""
    return tuple(sorted(node.sites or (), key=_order))


class Lens:
    """The sites of the nodes of a closed graph, as the open nodes of the cell itself have them.

    Cells that close to equal graphs share the graph's nodes and their rewriting, with the sites of them all. A span of
    another cell is read as the spans of the open nodes that it belongs to. Code inside a loop or a branch has no open
    node: its spans are read as they are, without other cells' spans.

    Parameters
    ----------
    mapping
        Where each open node went when the graph was closed.
    """

    def __init__(self, mapping: Mapping[Node, Node]) -> None:
        self._spans: dict[Node, tuple[Site, ...]] = {}
        self._own: dict[_Where, set[Node]] = {}
        self._shared: dict[_Where, set[Node]] = {}
        self._places: dict[_Where, _Spans] = {}  # cached, as a node has a place for each cell that it occurs in
        self._same: dict[tuple[Site, ...], _Spans] = {}
        self._roles: dict[tuple[Site, str], Site] = {}
        for node, closed in mapping.items():
            spans = _now(node)
            if not spans:
                continue
            self._spans[node] = spans
            if not node.args:  # an input is at no place of its own: a rule has put it where an expression was
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
        """Return the sites of a node of the graph, or of its rewritten form, sorted."""
        spans = _now(node)
        meant = [span for span in spans if _where(span) in self._own] or spans  # the others belong to equal cells
        found = {(self._at(_where(span)), span.role) for span in meant}
        return tuple(sorted({self._as(own, role) for spans, role in found for own in spans.found}, key=_order))

    def built_near(self, span: Site) -> tuple[list[Node], int]:
        """Return the nodes built at this place or, if there are none, last before it, and how many lines above that is.

        Nodes inside a loop, and replacements by rules, are no open nodes and are not found.
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
        """Return the sites as :meth:`of`, also for a node inside a loop or a branch.

        There they are the spans of this graph's runs, or all if there are none.
        """
        known = self.of(node)
        if known:
            return known
        every = of(node)
        return tuple(s for s in every if (s.cell, s.run) in self._runs) or every

    @cached_property
    def _runs(self) -> set[tuple[str, int]]:
        """The cells and runs that the open nodes came from."""
        return {(span.cell, span.run) for spans in self._spans.values() for span in spans}

    def _at(self, where: _Where) -> _Spans:
        """Return the spans of the open nodes at this place, or of those that became the node there, with the spans in other cells.

        Equal code in two cells shares parts that do not depend on data, such as a broadcast number: these have the
        place of the first cell. A node made of such a part has the place that is meant.
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
        """Return for each other cell the spans that all nodes have, as a single one may also occur elsewhere.

        ``x - x.mean()`` is a part of ``x.std()``, and may have a line of its own.
        """
        if len(spans) == 1:
            return spans[0]
        cells: dict[str, list[set[Site]]] = {}  # for each cell, the spans of the nodes that have any there
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
    """Return the nodes among ``among`` that ``nodes`` are made of, with only such nodes in between."""
    found: set[Node] = set()
    pending = list(nodes)
    while pending:
        new = among.intersection(pending.pop().needs) - found
        found |= new
        pending += new
    return found


@dataclass(frozen=True, eq=False)
class _Spans:
    """The spans of a place; compared by identity, which is fast."""

    found: tuple[Site, ...]


_Where = tuple[object, ...]
_where = operator.attrgetter("cell", "line", "column", "end_line", "end_column")
_order = operator.attrgetter(*(f.name for f in fields(Site)))  # like the comparison of sites, but much faster


def inherit(new: Node, old: Node, role: str | None = None) -> None:
    """Give the nodes built for ``new`` the sites of ``old``, down to nodes that have sites already."""
    if old.sites is None:
        return
    known = _now(old)
    known = tuple(s.with_role(role) for s in known) if role else known
    for node in topological([new], stop=lambda n: n.sites is not None):
        if node.sites is None:
            for site in known:
                record(node, site)


def copy(new: Node, old: Node) -> None:
    """Add the sites of ``old`` to ``new``."""
    if old.sites is not None:
        for site in _now(old):
            record(new, site)


def substituted(roots: Iterable[Node], replacement: Mapping[Node, Node]) -> list[Node]:
    """Return ``roots`` with nodes replaced, as by ``substitute``; rebuilt nodes keep their sites."""
    memo: dict[Node, Node] = {}
    new = substitute(roots, replacement, memo)
    follow({old: end for old, end in memo.items() if old not in replacement})
    return new


def follow(became: Mapping[Node, Node]) -> None:
    """Give nodes without sites the sites of the nodes they replaced."""
    for old, new in became.items():
        known = old.sites
        if known and new is not old and new.args and new.sites is None:
            new.sites = dict(known)
