"""Removes results of regions that nothing reads, and regions whose results a wider region computes as well.

Carries and results of branches that nothing reads are removed, with what they alone need; a carry that no iteration
changes becomes a constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.rewriting.rules import Rule
from tensormagic.ops.form import to_form
from tensormagic.ops.opaque import ITEM, items
from tensormagic.ops.regions.branches import Branches
from tensormagic.ops.regions.loops import Repeat
from tensormagic.ops.regions.region import graph_over, symbols_in
from tensormagic.transform.following import followed
from tensormagic.transform.loops import loop_rules
from tensormagic.transform.loops.frames import framed
from tensormagic.transform.loops.handed_on_elements import handed_on
from tensormagic.transform.loops.joined_loops import joined
from tensormagic.transform.loops.loop_rules import Goals, Told
from tensormagic.transform.loops.products import at_once_before
from tensormagic.transform.loops.stacks import united, unstacked
from tensormagic.transform.loops.stretched import stretched
from tensormagic.transform.loops.sums import summed_after
from tensormagic.transform.loops.totals import totalled
from tensormagic.transform.shared import shared
from tensormagic.transform.shifts import gathered
from tensormagic.transform.waits import without_waiting


def tidied(results: Sequence[Node], *, level: str = "stable", told: Told | None = None) -> list[Node]:
    """Return ``results`` over regions that compute only what is read, each once; sums may be reordered unless ``"exact"``.

    At ``"real"``, functions of one matrix share their work, with other digits than one of them alone. ``told`` logs the
    rewrites.
    """
    told = Told() if told is None else told
    found = _Tidy(level == "exact", level == "real", told).results(list(results))
    return told.done(found, [(loop_rules.WAITS, without_waiting(found))])


def numbers_within(graph: Graph, seen: dict[Graph, Graph] | None = None) -> Graph:
    """Return the graph with numbers broadcast inside of loops, at every depth, so that rules see that they are numbers."""
    seen = {} if seen is None else seen
    if graph in seen:
        return seen[graph]
    nodes = [*graph.results, *graph.checked]
    regions = _regions(topological(nodes))
    if not regions:
        return graph
    while goals := stretched(regions):
        nodes = followed(nodes, goals)
        regions = _regions(topological(nodes))
    inner: dict[Node, Node] = {}
    for node in regions:
        graphs = {k: numbers_within(g, seen) for k, g in node.params.items() if isinstance(g, Graph)}
        if any(node.params[k] != g for k, g in graphs.items()):
            params: dict[str, Any] = {**node.params, **graphs}
            inner |= dict(zip(items(node), items(make(node.op, node.args, None, **params)), strict=True))
    seen[graph] = new = graph.with_nodes(followed(nodes, inner))
    return new


def _regions(nodes: Iterable[Node]) -> list[Node]:
    return [n for n in nodes if isinstance(n.op, Branches | Repeat)]


@dataclass
class _Tidy:
    """Tidies regions at every depth; keeps the bodies tidied so far, and the log."""

    exact: bool
    real: bool
    told: Told
    graphs: dict[Graph, Graph] = field(default_factory=dict[Graph, Graph])
    depth: int = 0

    def results(self, results: list[Node]) -> list[Node]:
        while True:
            read = _read(results)
            if not read and not self.real:
                return results
            found = next((f for f in self._goals(results, read) if any(goals for _, goals in f)), None)
            if found is None:
                return results
            results = self._done(results, found)

    def _done(self, results: list[Node], found: Sequence[tuple[Rule, Goals]]) -> list[Node]:
        return self.told.done(results, found, within=bool(self.depth))

    def _goals(self, results: list[Node], read: Mapping[Node, set[int]]) -> Iterator[Sequence[tuple[Rule, Goals]]]:
        """Yield the possible rewrites, one step after another."""
        if not self.exact:
            yield [(loop_rules.STRETCHED, stretched(read))]
        yield [(loop_rules.MERGED, _merged(read))]
        yield self._narrowed(read)
        yield [(loop_rules.UNITED, united(results))]
        yield [(loop_rules.ONE_READ, unstacked(results))]
        yield [(loop_rules.HANDED_ON, handed_on(results))]
        if not self.exact:
            yield [(loop_rules.PRODUCTS, at_once_before(read))]
            yield [(loop_rules.SUMS_OF_PRODUCTS, _summed(read))]
            yield [(loop_rules.TOTALS, totalled(results))]
            yield [(loop_rules.FRAMES, framed(results))]
        yield [(loop_rules.JOINED, joined(results))]
        if self.real:
            yield [(loop_rules.SHARED, shared(results))]

    def _narrowed(self, read: Mapping[Node, set[int]]) -> Sequence[tuple[Rule, Goals]]:
        """Return the regions reduced to the results that are read; separately those that lose only a counter, or whose body has changed."""
        narrow, same = dict[Node, Node](), dict[Node, Node]()
        for node, used in read.items():
            inner = {name: self._graph(value) for name, value in node.params.items() if isinstance(value, Graph)}
            params: dict[str, Any] = {**node.params, **inner}
            new = make(node.op, node.args, **params)
            found = narrowed(new, used)
            goals = narrow if _drops(node, found) else same
            goals.update((old, end) for old, end in zip(items(node), found, strict=True) if end not in {None, old})  # type: ignore[misc]
        return [(loop_rules.NARROWED, narrow), (loop_rules.TIDIED, same)]

    def _graph(self, graph: Graph) -> Graph:
        if graph not in self.graphs:
            self.depth += 1
            results = self.results(list(graph.results))
            if not self.exact:
                results = self._done(results, [(loop_rules.WAITS, without_waiting(results))])
                read = gathered(results)
                self.told.within(loop_rules.NEIGHBOURS, dict(zip(results, read, strict=True)))
                results = read
            self.depth -= 1
            new = graph if tuple(results) == graph.results else graph.with_results(results)
            self.graphs[graph] = self.graphs[new] = new
        return self.graphs[graph]


def _drops(region: Node, found: Sequence[Node | None]) -> bool:
    """Return whether anything but a counter is no longer computed."""
    ends = {end.args[0] if end.op is ITEM else end for end in found if end is not None}
    kept = Counter(t for end in ends for t in end.types)
    return any(t.shape or t.inexact for t in Counter(region.types) - kept)


def _summed(read: Iterable[Node]) -> dict[Node, Node]:
    return {old: new for node in read for old, new in summed_after(node).items() if old is not new}


def _read(results: Sequence[Node]) -> dict[Node, set[int]]:
    """Return for each region the numbers of its results that are read."""
    nodes = topological(results)
    found = {n: set[int]() if len(n.types) > 1 else {0} for n in _regions(nodes)}
    for n in nodes:
        if n.op is ITEM and n.args[0] in found:
            found[n.args[0]].add(n["index"])
    return found


def _merged(read: Mapping[Node, set[int]]) -> dict[Node, Node]:
    """Return replacements for regions whose results another region computes, too."""
    groups: dict[object, list[Node]] = {}
    for node in read:
        groups.setdefault((node.op, node.args[:1]), []).append(node)
    order = {node: k for k, node in enumerate(read)}
    later: tuple[Node, Node] | None = None
    goals: dict[Node, Node] = {}
    for group in groups.values():
        for small in group:
            wide = _wider(small, read[small], group)
            if wide is not None and order[wide] < order[small]:
                goals.update(zip(items(small), items(wide), strict=False))
            elif wide is not None and later is None and small not in topological([wide]):
                later = small, wide
    if not goals and later is not None:  # only one at a time: each of two may need what the other would replace
        goals.update(zip(items(later[0]), items(later[1]), strict=False))
    return goals


def _wider(small: Node, used: set[int], group: Sequence[Node]) -> Node | None:
    """Return a region in ``group`` whose results begin with those of ``small``, or None."""
    count = len(small.types)
    several = [n for n in group if len(n.types) > count and n.types[:count] == small.types]
    if not several:
        return None
    ours = narrowed(small, used)
    alone = {_region_of(ours[k], small) for k in used} - {None}
    needed = {
        a for region in alone if region is not None for a in region.args
    }  # otherwise it cannot be the same region
    for wide in several:
        if needed.issubset(wide.args):
            theirs = narrowed(wide, used)
            if all(ours[k] is theirs[k] for k in used):
                return wide
    return None


def _region_of(end: Node | None, region: Node) -> Node | None:
    """Return the region that replaces ``region`` for a result, or None if the result is one of its operands."""
    if end is None or end in region.args:
        return None
    found = end.args[0] if end.op is ITEM else end
    return found if found.op is region.op else None


def narrowed(node: Node, used: set[int]) -> list[Node | None]:
    """Return the results ``used`` of a region reduced to these, or None for the others."""
    return _narrow_loop(node, used) if isinstance(node.op, Repeat) else _narrow_branches(node, used)


def _narrow_branches(node: Node, used: set[int]) -> list[Node | None]:
    op: Branches = node.op  # type: ignore[assignment]
    kept = sorted(used)
    graphs = {name: g for name, g in node.params.items() if isinstance(g, Graph)}
    first = int(op.chooses)
    own = sorted(_read_by_any([(g, [g.results[k] for k in kept]) for g in graphs.values()]))
    if len(kept) == len(node.types) and len(own) == len(node.args) - first:
        return list(items(node))
    narrow = {n: graph_over([g.parameters[k] for k in own], [g.results[k] for k in kept], g) for n, g in graphs.items()}
    ends = items(make(op, (*node.args[:first], *(node.args[first + k] for k in own)), None, **narrow))
    result: list[Node | None] = [None] * len(node.types)
    for k, end in zip(kept, ends, strict=True):
        result[k] = end
    return result


def _read_by_any(
    graphs: Sequence[tuple[Graph, Sequence[Node]]], needed: Iterable[int] = (), first: int = 0
) -> set[int]:
    """Return the operands that results of graphs need, or that carry a size in one of these graphs.

    Parameters
    ----------
    graphs
        Each with its wanted results.
    needed
        Operands that are kept in any case.
    first
        The number of parameters before those for the operands.
    """
    found = {*(k + first for k in needed), *(k for g, results in graphs for k in _reached(results, g))}
    # a node in one graph may have a size in another graph that only an operand read by neither defines
    while more := {k for g, results in graphs for k in _saying_sizes(g, found, results)}:
        found |= more
    return {k - first for k in found if k >= first}


def _reached(results: Sequence[Node], graph: Graph) -> set[int]:
    """Return the parameters that results need, and those that carry the sizes of these and of the guards."""
    nodes = set(topological([*results, *graph.checked]))
    needed = {k for k, p in enumerate(graph.parameters) if p in nodes}
    return needed | _saying_sizes(graph, needed, results)


def _saying_sizes(graph: Graph, needed: set[int], results: Sequence[Node]) -> set[int]:
    """Return further parameters that are needed so that every mentioned size is an axis of some parameter."""
    own = graph.parameters
    nodes = topological([*results, *graph.checked, *(own[k] for k in needed)])
    wanted = symbols_in(s for g in graph.guards for s in (g[0], g[2])).keys() | {a for n in nodes for a in n.symbols}
    bound = {bare_symbol(s) for k in needed for s in own[k].type.shape}
    more: set[int] = set()
    for k, p in enumerate(own):
        new = {a for s in p.type.shape if (a := bare_symbol(s)) is not None and a in wanted and a not in bound}
        if new and k not in needed:
            more.add(k)
            bound |= new
    return more


def _read_in_the_end(
    body: Graph, test: Graph | None, moving: set[int], used: set[int], first: int
) -> tuple[set[int], set[int]]:
    """Return the ``moving`` carries that the ``used`` results or the test depend on after any number of iterations.

    Also return all operands that these read.
    """
    tested = [] if test is None else [(test, test.results)]
    needed = used | ({k for k in _reached(test.results, test) if k in moving} if test is not None else set())
    while True:
        reached = _read_by_any([(body, [body.results[k] for k in sorted(needed)]), *tested], needed, first)
        more = reached & moving - needed
        if not more:
            return needed, reached
        needed |= more


def _narrow_loop(node: Node, used: set[int]) -> list[Node | None]:
    op: Repeat = node.op  # type: ignore[assignment]
    first, carries, body = int(op.counted), node["carries"], node["body"]
    own = body.parameters[first:]
    test: Graph | None = None if op.counted else node["test"]
    still = {k for k in range(carries) if body.results[k] is own[k]}
    needed, reached = _read_in_the_end(body, test, set(range(carries)) - still, set(used) - still, first)
    result: list[Node | None] = [None] * carries
    for k in used & still:
        operand, t = node.args[first + k], own[k].type
        result[k] = operand if t.shape else to_form(operand, t.form)
    moving = sorted(needed)
    fixed = sorted(reached - needed)
    if len(moving) == carries and len(moving) + len(fixed) == len(own):
        return list(items(node))
    if not used - still:
        return result
    order = [*moving, *fixed]
    params: dict[str, Any] = {
        "body": graph_over(
            [*body.parameters[:first], *(own[k] for k in order)], [body.results[k] for k in moving], body
        ),
        "carries": len(moving),
    }
    if test is not None:
        params["test"] = graph_over([test.parameters[k] for k in order], test.results, test)
    ends = items(make(op, [*node.args[:first], *(node.args[first + k] for k in order)], None, **params))
    for k, end in zip(moving, ends, strict=True):
        result[k] = end if k in used else None
    return result
