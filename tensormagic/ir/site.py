"""Where a node came from: cell, run, line, columns and role. Kept beside the node, outside equality."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tensormagic.ir.node import Node, topological


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
        ``"value"``, ``"tangent"``, ``"adjoint"``, or ``"rewritten by RULE"``.
    """

    cell: str
    run: int
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    role: str = "value"

    def __str__(self) -> str:
        return f"{self.cell} line {self.line}"


_sites: weakref.WeakKeyDictionary[Node, set[Site]] = weakref.WeakKeyDictionary()


def record(node: Node, site: Site) -> None:
    """Say that ``node`` came from ``site``; sites of earlier runs of the same cell go."""
    sites = _sites.setdefault(node, set())
    stale = {s for s in sites if s.cell == site.cell and s.run < site.run}
    sites -= stale
    sites.add(site)


def record_new(node: Node, site: Site) -> None:
    """Say that ``node`` came from ``site``, and with it those of its operands that were built for it and have no site yet."""
    record(node, site)
    pending = [a for a in node.args if a.args and a not in _sites]
    while pending:
        part = pending.pop()
        if part not in _sites:
            record(part, site)
            pending += [a for a in part.args if a.args and a not in _sites]


def of(node: Node) -> tuple[Site, ...]:
    """The sites of ``node``, sorted."""
    return tuple(sorted(_sites.get(node, ())))


def inherit(new: Node, old: Node, role: str | None = None) -> None:
    """Give the nodes that were built for ``new`` the sites of ``old``, down to nodes that have sites already."""
    known = of(old)
    if not known:
        return
    for node in topological([new], stop=lambda n: n in _sites):
        if node not in _sites:
            for site in known:
                record(node, replace(site, role=role) if role else site)


def roles(nodes: Iterable[Node]) -> set[str]:
    """The roles that occur among the sites of ``nodes``."""
    return {site.role for node in nodes for site in of(node)}
