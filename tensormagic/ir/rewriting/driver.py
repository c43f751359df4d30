"""The driver of rewriting: memoised, bottom-up, without recursion, linear in the number of nodes."""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from tensormagic.ir import site
from tensormagic.ir.collecting import is_frozen
from tensormagic.ir.cost import cost
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make, rebuild, topological
from tensormagic.ir.rewriting.judged import always_lighter, never_dear
from tensormagic.ir.rewriting.log import Firing, Log, Withheld
from tensormagic.ir.rewriting.rules import Found, Rule
from tensormagic.ir.rewriting.table import Matches, Table
from tensormagic.ir.rewriting.uses import Claims, Reach, Uses, Whole, absorbed, inside, made_by, origins_of, residue
from tensormagic.ir.rewriting.weights import lighter


def rewrite_nodes(
    results: Sequence[Node],
    table: Table,
    regions: dict[Graph, Graph] | None = None,
    *,
    apart: bool = True,
    order: Sequence[Node] | None = None,
) -> tuple[list[Node], Log]:
    """Return the normal forms of ``results``, and the log of the rewriting.

    Parameters
    ----------
    results
        Nodes of one open graph.
    table
        The rules.
    regions
        What graphs inside have become so far: one that stands in several regions is rewritten once.
    apart
        Whether each result is read on its own, so that its digits do not depend on what else is asked for.
    order
        All nodes that these need, as :func:`topological` gives them, where that is known.
    """
    with _uncollected():
        start = _first(results, table, topological(results) if order is None else order)
        return _rewritten(results, Matches(table), {} if regions is None else regions, apart=apart, start=start)


_Given = Callable[[Node], tuple[Node, ...]]
"""The nodes before the first pass that a node comes from."""


@dataclass
class _Start(Whole):
    """The state at the start of a pass; ``minded`` are the results it may not suit, as a rule was withheld for the sake of others."""

    fuel: Mapping[Rule, int]
    given: _Given
    minded: int = 0


def _first(results: Sequence[Node], table: Table, order: Sequence[Node]) -> _Start:
    """Return the state at the start of the first pass."""
    return _Start(list(results), order, {r: r.fuel * len(order) for r in table.rules if r.fuel}, lambda node: (node,))


def _rewritten(
    results: Sequence[Node],
    matches: Matches,
    regions: dict[Graph, Graph],
    *,
    apart: bool,
    start: _Start | None = None,
) -> tuple[list[Node], Log]:
    """Return the rewritten results; those that did not need a rule to be withheld are rewritten a second time.

    Their rewriting resumes at the first pass that did not suit them. What rules made of a node is reused, as it does
    not depend on the node's readers.
    """
    apart = apart and len(set(results)) > 1
    nodes, log, starts = _together(results, matches, regions, apart=apart, start=start)
    for own in _minded([w.free for w in log.withheld], len(nodes)) if apart else ():
        matches.settled = False  # rules that were withheld for other results may be used now
        bits = sum(1 << k for k in own)
        first = next((s for s in starts if s.minded & bits), starts[0])
        alone = [first.nodes[k] for k in own]
        again = replace(first, nodes=alone, order=topological(alone))
        found, more = _rewritten(again.nodes, matches, regions, apart=True, start=again)
        for k, node in zip(own, found, strict=True):
            nodes[k] = node
        log.fired = list({(f.rule, f.before, f.after): f for f in [*log.fired, *more.fired]}.values())
        log.withheld += [
            w for w in more.withheld if all(w.node is not v.node or w.rule is not v.rule for v in log.withheld)
        ]
    return nodes, log


@contextmanager
def _uncollected() -> Generator[None]:
    """Disable the cycle collector: nodes and matches have no cycles, and the search takes a tenth of the time or more."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > _MANY and not is_frozen():  # moves them to the oldest generation, which is searched last
            gc.freeze()
            gc.unfreeze()
        gc.enable()


_MANY = 10_000
"""From this number of new objects on, the collector's first search after rewriting, which visits all of them, is avoided."""


def _minded(free: Sequence[int], count: int) -> list[list[int]]:
    """Return groups of results for which a rule was withheld only because of other results, grouped by these rules."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for k in range(count):
        own = tuple(j for j, bits in enumerate(free) if bits >> k & 1)
        if own:
            groups.setdefault(own, []).append(k)
    return list(groups.values())


def _together(
    results: Sequence[Node],
    matches: Matches,
    regions: dict[Graph, Graph],
    *,
    apart: bool,
    start: _Start | None = None,
) -> tuple[list[Node], Log, list[_Start]]:
    """Return the results rewritten with one normal form per node for all of them, and the state at the start of each pass."""
    log, inner = Log(), Log()
    nodes = list(results)
    if start is None:
        start = _first(nodes, matches.table, topological(nodes))
    starts = [replace(start, minded=0)]
    barred: dict[tuple[Rule, Node], tuple[Node, int]] = {}
    again = 0
    while True:
        begun = starts[-1]
        one = _Pass(begun, matches, regions, barred, sure=again > _AGAIN, apart=apart)
        normals = one.normals_of(begun)
        inner.fired += one.inner.fired
        inner.withheld += one.inner.withheld
        order = begun.order if normals == begun.nodes else topological(normals)
        after = _Start(normals, order, one.fuel, _followed(one.origins, begun.given))
        broken = one.claims.broken(after, one.normals, one.reach)
        if broken:  # other nodes were expected to be rewritten and were not: repeat the pass without these firings
            barred.update(broken)
            again += 1
            continue
        nodes, again = normals, 0
        begun.minded = one.minded
        log.fired += one.log.fired
        log.withheld = one.log.withheld
        if not (one.log.fired and one.log.withheld):
            break
        starts.append(after)
        barred.clear()  # the node that reads a part may be another one by now
        again_ = _Pass(after, matches, regions, barred, sure=False, apart=apart)
        if not one.circled and again_.changes_nothing():
            log.withheld, after.minded = again_.log.withheld, again_.minded
            break
    if one.circled or one.short or barred or (one.refused and one.log.fired):
        matches.settled = False
    if log.withheld:
        present = set(order)
        log.withheld = [w for w in log.withheld if w.node in present]
    return nodes, Log([*inner.fired, *log.fired], [*inner.withheld, *log.withheld]), starts


def _followed(origins: Mapping[Node, Sequence[Node]], given: _Given) -> _Given:
    """Return a function that composes the origins of nodes with those of the passes before."""
    return lambda node: tuple(dict.fromkeys(g for n in origins.get(node, (node,)) for g in given(n)))


_AGAIN = 3
"""How often a pass is repeated with fewer firings before rules stop counting on other rewrites."""


def rewrite_graph(graph: Graph, *tables: Table, apart: bool = True) -> tuple[Graph, Log]:
    """Return a closed graph rewritten with one table after another; parameters stay, guards are put over the rewritten nodes.

    A table is skipped if the graph is settled and none of the rules that were not tried before matches.
    """
    log, before = Log(), None
    with _uncollected():
        for table in tables:
            if not table.looks(graph):
                continue
            matches = Matches(table, before)
            if before is None or not before.settled or matches.adds_to(graph.nodes):
                graph, more = _graph(graph, matches, {}, apart=apart)
                earlier = [w for w in log.withheld if w.rule not in table.known]
                log = Log([*log.fired, *more.fired], [*earlier, *more.withheld])
            else:
                matches.settled = before.settled
            before = matches
    return graph, log


def _graph(graph: Graph, matches: Matches, regions: dict[Graph, Graph], *, apart: bool) -> tuple[Graph, Log]:
    found, log = _rewritten([*graph.results, *graph.checked], matches, regions, apart=apart)
    return graph.with_nodes(found), log


class _Pass:
    """One walk over the graph that applies rules; the uses of nodes are those at its start."""

    def __init__(
        self,
        start: _Start,
        matches: Matches,
        regions: dict[Graph, Graph],
        barred: dict[tuple[Rule, Node], tuple[Node, int]],
        *,
        sure: bool,
        apart: bool,
    ) -> None:
        self.matches = matches
        self.fuel = dict(start.fuel)
        self.regions = regions
        self.barred = barred
        self.given = start.given
        self.minded = 0
        self.circled = False
        self.short = False
        self.refused = False
        self.log = Log()
        self.inner = Log()
        self.claims = Claims()
        self.normals: dict[Node, Node] = {}
        self.becomes: dict[Node, Node] = {}
        self.origins: dict[Node, list[Node]] = {}
        self.pairs: dict[tuple[object, frozenset[Node]], Node] = {}
        self.start = start
        self.reach = Reach(start.nodes, apart, start.order)
        self.uses = Uses(start, self.reach, self.normals, self.becomes, self.origins, matches.at, sure)

    def normals_of(self, start: Whole) -> list[Node]:
        """Return the normal forms of the results, computed node by node in topological order."""
        normals, becomes, origins = self.normals, self.becomes, self.origins
        for node in start.order:
            if node in normals:
                continue
            if node not in becomes and all(map(normals.__contains__, node.needs)):
                following = self.step(node)
                if following is node:  # the case of most nodes
                    normals[node] = node
                    if node in origins:
                        origins[node].append(node)
                    continue
                becomes[node] = following
                self._comes(node, following)
            self.normal(node)
        return [normals[node] for node in start.nodes]

    def _comes(self, node: Node, following: Node) -> None:
        self.reach.spread(node, following)
        if following not in self.becomes and following not in self.normals:
            self.uses.comes.setdefault(following, node)

    def normal(self, root: Node) -> Node:
        """Return the normal form of ``root``."""
        normals, becomes, origins = self.normals, self.becomes, self.origins
        stack = [root]
        while stack:
            node = stack[-1]
            if node in normals:
                stack.pop()
                continue
            following = becomes.get(node)
            if following is None:
                waiting = [a for a in node.needs if a not in normals]
                if waiting:
                    self._break_circles(waiting)
                    waiting.reverse()
                    stack += waiting
                    continue
                following = self.step(node)
                if following is node:  # the case of most nodes
                    normals[node] = node
                    if node in origins:
                        origins[node].append(node)
                    stack.pop()
                    continue
                becomes[node] = following
                self._comes(node, following)
            if following in normals:
                normal = normals[following]
                self._came(node, normal)
                normals[node] = normal
                stack.pop()
            elif following in becomes:  # a cycle, which rules with fuel may produce
                self._stays(node)
                stack.pop()
            else:
                stack.append(following)
        return normals[root]

    def _came(self, node: Node, normal: Node) -> None:
        """Record that ``node`` became ``normal``; if ``normal`` is its own normal form, both are its origins."""
        known = self.origins.get(normal)
        if known is not None:
            known.append(node)
        else:
            self.origins[normal] = [normal, node] if self.normals.get(normal) is normal is not node else [node]

    def changes_nothing(self) -> bool:
        """Return whether no rule that the pass before withheld fires now, so that this pass can be skipped."""
        normals, none = self.normals, self.matches.none
        for node in self.start.order:
            if node not in none and self._fire(node) is not None:
                return False
            normals[node] = node
        return True

    def _break_circles(self, waiting: Iterable[Node]) -> None:
        """Keep nodes whose replacement reads the node itself."""
        for node in waiting:
            if node in self.becomes:
                self._stays(node)

    def _stays(self, node: Node) -> None:
        self.circled = True
        self.normals[node] = node
        if node in self.origins:
            self.origins[node].append(node)

    def step(self, node: Node) -> Node:
        """Return what ``node`` becomes once its operands are normal; itself if no rule fires.

        For a commutative op, an existing node with the operands in the other order is reused.
        """
        normals = self.normals
        new = node
        for arg in node.needs:
            if normals[arg] is not arg:
                new = rebuild(node, [normals[a] for a in node.args], normals)
                break
        for _, value in new.param_items:
            if isinstance(value, Graph):
                new = self._with_regions(new)
                break
        if new is not node:
            site.copy(new, node)
            return new
        if node not in self.matches.none and (found := self._fire(node)) is not None:
            return found
        return self.pairs.setdefault((node.op, frozenset(node.args)), node) if node.op.commutative else node

    def _with_regions(self, node: Node) -> Node:
        inner = {k: v for k, v in node.param_items if isinstance(v, Graph)}
        for graph in inner.values():
            if graph not in self.regions:
                new, log = _graph(graph, self.matches, self.regions, apart=False)
                self.regions[graph] = self.regions[new] = new
                self.inner.fired += log.fired
                self.inner.withheld += log.withheld
        params: dict[str, Any] = {**node.params, **{k: self.regions[v] for k, v in inner.items()}}
        return make(node.op, node.args, **params)

    def _fire(self, node: Node) -> Node | None:
        for rule, found in self.matches.at(node):
            parts = absorbed(rule, node, found)
            if self._allowed(rule, node, found, parts):
                site.inherit(found.node, node, f"rewritten by {rule.name}")
                given = tuple(g for p in parts for g in self.as_given(p))
                self.log.fired.append(Firing(rule, node, found.node, site.of(node), given))
                return found.node
        return None

    def as_given(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes of the graph before the first pass that became ``node``."""
        return tuple(dict.fromkeys(g for n in origins_of(node, self.origins, self.normals) for g in self.given(n)))

    def _allowed(self, rule: Rule, node: Node, found: Found, parts: list[Node]) -> bool:
        reason = self._kept(rule, node, found, parts)
        if reason is None and not (rule.judged or (found.plain and never_dear(rule))):
            reason = self._dearer(node, found, even=rule.even)
            if reason is not None:  # other rules may have made it cancel
                self.minded |= self.reach.of(node)
        if reason is not None:
            self.minded |= reason[2]
            if rule.even:
                self.refused = True
                return False
            self.log.withheld.append(Withheld(rule, node, reason[0], site.of(node), *reason[1:]))
            return False
        if rule in self.fuel:
            self.fuel[rule] -= 1
            allowed = self.fuel[rule] >= 0
            self.short |= not allowed
        else:
            allowed = (found.plain and always_lighter(rule)) or lighter(found.node, node, found.inside)
        if allowed and parts:
            self.claims.add(rule, node, parts, found, self.uses.joined(node))
        return allowed

    def _kept(self, rule: Rule, node: Node, found: Found, parts: list[Node]) -> tuple[Node, str, int] | None:
        """Return a part that must stay because other nodes read its digits, why, and the results that allow the rule; else None."""
        if not parts:
            return None
        results = self.reach.of(node)
        barred = self.barred.get((rule, node))
        if barred is not None:
            return barred[0], _SHARED, results & ~barred[1]
        own = inside(node, found)
        readers = self.uses.elsewhere(parts, node, own)
        shared = next((p for p in parts if readers[p]), None)
        if shared is not None:
            return shared, _SHARED, results & ~reduce(operator.or_, readers.values())
        operand = residue(found)
        return None if operand is None else (operand, "is a rounding error", 0)

    def _dearer(self, node: Node, found: Found, *, even: bool) -> tuple[Node, str, int] | None:
        """Return a part that stays and the reason if the replacement costs more than what it removes, or None if it is cheap enough."""
        new = cost(made_by(node, found))
        if new.within(cost([node]), [node], even=even):
            return None
        own = inside(node, found)
        stays = [p for p in own if self.uses.stays(p, node, own)]
        if new.within(cost([node, *(p for p in own if p not in stays)]), [node], even=even):
            return None
        most = max(stays, key=lambda p: cost([p]).operations, default=None)
        return (node, "would cost more", 0) if most is None else (most, _SHARED, 0)


_SHARED = "has another use"
