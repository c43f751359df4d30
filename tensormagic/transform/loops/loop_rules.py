"""Names for the rewrites of whole loops and branches, so that they are logged like rules, each with its line. The theme ``loops``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.log import Firing
from tensormagic.ir.rewriting.rules import Rule
from tensormagic.ir.site import Site
from tensormagic.ops.opaque import ITEM
from tensormagic.transform.following import followed

Goals = Mapping[Node, Node]
"""Nodes, mapped to their replacements."""


def _rule(name: str, level: str, *, quiet: bool = False, extends: str = "") -> Rule:
    """Return a rewrite of loops in the form of a rule, for the log; the driver does not use it."""
    frame = inspect.currentframe()
    line = frame.f_back.f_lineno if frame is not None and frame.f_back is not None else 0
    return Rule(
        name, level, ("loop",), _never, f"{Path(__file__).name}:{line}", neutral=True, quiet=quiet, extends=extends
    )


def _never(_: Node) -> None:
    """Match nothing: these rules look at whole graphs."""


@dataclass
class Told:
    """The log of rewrites of whole graphs, in order, each with the graph's results after it."""

    fired: list[Firing] = field(default_factory=list[Firing])

    def within(self, rule: Rule, goals: Goals) -> None:
        """Log what was done inside a body; the graph around it follows later."""
        self.fired += _fired(rule, goals)

    def done(self, roots: Sequence[Node], found: Sequence[tuple[Rule, Goals]], *, within: bool = False) -> list[Node]:
        """Return the roots with nodes replaced, logged once per region; with ``within``, they are results of a body."""
        goals = {old: new for _, own in found for old, new in own.items()}
        new = followed(roots, goals) if goals else [*roots]
        if new == [*roots]:
            return new
        for rule, own in found:
            fired = _fired(rule, own)
            self.fired += fired
            for one in () if within else fired:
                one.results = tuple(new)
        return new

    def became(self, rule: Rule, old: Graph, new: Graph) -> None:
        """Log that a graph has become another one."""
        fired = _fired(rule, dict(zip(old.results, new.results, strict=True)))
        for one in fired:
            one.results = new.results
        self.fired += fired

    def graph(self, graph: Graph, found: Sequence[tuple[Rule, Goals]]) -> Graph:
        """Return a closed graph with nodes replaced, logged as by ``done``."""
        new = self.done(graph.results, found)
        return graph if tuple(new) == graph.results else graph.with_results(new)


def _fired(rule: Rule, goals: Goals) -> list[Firing]:
    """Return one log entry for each replaced region, or for several regions that become one."""
    firsts: dict[Node, tuple[Node, Node]] = {}
    for old, new in goals.items():
        if old is not new:
            firsts.setdefault(region_of(old), (old, new))
    found: dict[Node, Firing] = {}
    for region, (old, new) in firsts.items():
        sites = site.of(region) or site.of(old) or _within(region)
        one = found.setdefault(region_of(new), Firing(rule, old, new, ()))
        one.sites = tuple(dict.fromkeys((*one.sites, *sites)))
    return list(found.values())


def _within(region: Node) -> tuple[Site, ...]:
    """Return the sites of the results inside a region."""
    graphs = [g for g in region.params.values() if isinstance(g, Graph)]
    return tuple(dict.fromkeys(s for g in graphs for result in g.results for s in site.of(result)))


def region_of(node: Node) -> Node:
    """Return the region that a node is a result of, or the node itself."""
    return node.args[0] if node.op is ITEM else node


SCANNED = _rule("total += x[k]; y[k] = total at each k -> y = cumsum(x), and for products and extremes", "exact")
SCANNED_BUT_ZEROS = _rule(SCANNED.name, "stable", extends="zeros may have another sign")
SCANNED_FUNCTIONS = _rule("total += f(x[k]); y[k] = g(total) at each k -> y = g(cumsum(f(x)))", "stable")
AT_ONCE_ROUNDED = _rule("y[k] = x[k] + 1 at each k -> y = x + 1, without the loop", "exact")
AT_ONCE = _rule("y[k] = f(x[k]) at each k -> y = f(x), without the loop", "stable")
SUMMED = _rule("total += f(x[k]) at each k -> total + sum(f(x)), without the loop", "stable")
HOISTED = _rule("f(x[k]) at each k, beside what is carried -> f(x) before the loop, as an array", "stable")
PRODUCTS = _rule("x[:, k] @ y at each k -> x.T @ y before the loop", "stable")
SUMS_OF_PRODUCTS = _rule("g += x[k].T @ y[k] at each k -> one product after the loop", "stable")
TOTALS = _rule("g += v at each k, and sum(g) after the loop -> total += sum(v)", "stable")
FRAMES = _rule("parts of zeros that are read and stored at each k -> carried in their frame of zeros", "stable")
NEIGHBOURS = _rule("g[a:] += v; g[b:] += v -> what comes to each place of g, as one sum", "stable")
HANDED_ON = _rule("y[k] = v at each k, and y[k - 1] is read -> v is handed on, as a number", "exact")
ONE_READ = _rule("y[k] = v at each k, and only y[-1] is read after the loop -> that v, without y", "exact")
NARROWED = _rule("what a loop or a branch computes and nobody reads -> not computed", "exact")
UNITED = _rule("two that a loop carries and that are always equal -> one", "exact")
MERGED = _rule("two loops, of which one does what the other one does, too -> one", "exact")
JOINED = _rule("two loops over one range that carry numbers -> one", "exact")
SHARED = _rule("functions of one matrix -> its work once", "real")
STRETCHED = _rule("numbers that are stretched to arrays for a loop -> stretched within", "exact", quiet=True)
TIDIED = _rule("the body of a loop or a branch -> what has become of it", "exact", quiet=True)
WAITS = _rule("a value behind what does not fail -> the value", "exact", quiet=True)

OF_LOOPS = (
    *(
        SCANNED,
        SCANNED_BUT_ZEROS,
        SCANNED_FUNCTIONS,
        AT_ONCE_ROUNDED,
        AT_ONCE,
        SUMMED,
        HOISTED,
        PRODUCTS,
        SUMS_OF_PRODUCTS,
        TOTALS,
    ),
    *(FRAMES, NEIGHBOURS, HANDED_ON, ONE_READ, NARROWED, UNITED, MERGED, JOINED, SHARED),
    *(STRETCHED, TIDIED, WAITS),
)
"""All rewrites of loops, in the order of documentation."""
