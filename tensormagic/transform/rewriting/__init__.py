"""Rewriting: the rules, by level of trust and by theme, and the functions that bring graphs to normal form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType

from tensormagic.config import config, parted
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ir.rewriting.driver import rewrite_graph
from tensormagic.ir.rewriting.driver import rewrite_nodes as _rewrite_nodes
from tensormagic.ir.rewriting.log import Firing, Log, Withheld
from tensormagic.ir.rewriting.rules import LEVELS, Rule
from tensormagic.ir.rewriting.table import Table
from tensormagic.ops.effects.raising import AFTER
from tensormagic.transform.loops import loop_rules
from tensormagic.transform.loops.hoisted import hoisted
from tensormagic.transform.loops.iterations import at_once
from tensormagic.transform.loops.loop_rules import Told
from tensormagic.transform.loops.scans import scanned
from tensormagic.transform.loops.unread_results import numbers_within, tidied
from tensormagic.transform.rewriting.themes import (
    algebra,
    assumed,
    constants,
    differences,
    explog,
    identities,
    linalg,
    parts,
    ranges,
    reductions,
    remainders,
    singular,
    structure,
    structured,
    triples,
)
from tensormagic.transform.rewriting.themes.before_derivatives import (
    before_slopes,
    quotients_as_they_were,
    quotients_that_vanish,
    with_what_grows,
)
from tensormagic.transform.rewriting.themes.overflows import BEYOND, applies
from tensormagic.transform.rewriting.themes.overflows_of_folds import BEYOND_FOLDS

THEMES: tuple[ModuleType, ...] = (
    constants,
    structure,
    assumed,
    triples,
    differences,
    identities,
    algebra,
    explog,
    ranges,
    reductions,
    remainders,
    parts,
    structured,
    linalg,
)


def rules_in(module: ModuleType) -> Iterator[Rule]:
    """Yield the rules that a module defines, in the order of its text."""
    for value in vars(module).values():
        if isinstance(value, tuple) and value and all(isinstance(r, Rule) for r in value):
            yield from value


def theme(module: ModuleType) -> str:
    """Return the name under which a module's rules can be switched off."""
    return module.__name__.rpartition(".")[2]


def rules(level: str) -> list[Rule]:
    """Return the rules that ``level`` allows, without switched-off themes; those of the strictest level come last."""
    base, off = parted(level)
    allowed = LEVELS[: LEVELS.index(base) + 1]
    every = [rule for module in THEMES if theme(module) not in off for rule in rules_in(module)]
    return sorted((r for r in every if r.level in allowed), key=lambda r: LEVELS.index(r.level))


installed: dict[str, tuple[Rule, ...]] = {}
"""The user's rules that are in force, by the names under which they were given."""


def own_rules(level: str) -> tuple[Rule, ...]:
    """Return the user's installed rules that ``level`` allows."""
    allowed = LEVELS[: LEVELS.index(parted(level)[0]) + 1]
    return tuple(rule for rules in installed.values() for rule in rules if rule.level in allowed)


Choices = tuple[str, tuple[Rule, ...], str]


def choices(level: str = "", device: str = "") -> Choices:
    """Return what determines a value beside its graph: the level with what is switched off, the user's rules it allows, and the device.

    Defaults are the current settings. Values, executables and the programs of functions are cached under this key. The
    tier is not part of it: a value is not computed again by another tier.
    """
    return chosen(config.level(level), device or config.device)


def chosen(level: str, device: str) -> Choices:
    """Return :func:`choices` for just this level and device."""
    return (level, own_rules(level), device) if installed else _bare(level, device)


@cache
def _bare(level: str, device: str) -> Choices:
    return level, (), device


def table(
    level: str, extra: tuple[Rule, ...] = (), *, early: bool = False, folds: bool = True, differentiated: bool = False
) -> Table:
    """Return the rules of ``level``, indexed; ``extra`` ones are tried first.

    Parameters
    ----------
    early
        Leave out rules of the level ``"real"`` that rewrite powers, divisions by numbers and products of logarithms, as
        they hide the forms of sums that others look for.
    folds
        Include constant folding, which hides such forms, too.
    differentiated
        The graph will be differentiated (:mod:`tensormagic.transform.rewriting.themes.before_derivatives`).
    """
    base = parted(level)[0]
    return _table(level, extra, early and base == "real", folds, differentiated and base != "exact")


@cache
def _table(level: str, extra: tuple[Rule, ...], early: bool, folds: bool, differentiated: bool) -> Table:
    late = (*_COME_LAST, *(_LATE if early else ()), *(() if folds else constants.fold_constants))
    own = (r for r in rules(level) if r not in late)
    return Table([*extra, *(before_slopes(own) if differentiated else own)])


@cache
def _last(level: str) -> Table:
    """Return the rules that are applied after all others at ``level``, with the housekeeping rules for their results."""
    along = parted(level)[0] == "real"
    return Table(
        [r for r in rules(level) if r in _COME_LAST or (r.quiet and r.level == "exact")],
        lambda graph: applies(graph.nodes, along=along) or any(map(_comes_last, graph.nodes)),
    )


_COME_LAST = frozenset((*BEYOND, *BEYOND_FOLDS, *identities.tangents_by_one_function, *singular.squares_less_a_number))
_LATE = frozenset(
    (
        *algebra.powers_by_squares,
        *algebra.powers_by_roots,
        *algebra.division_by_numbers,
        *explog.logarithms_of_products,
        *explog.terms_of_entropies,
        *ranges.logarithms_of_positive_products,
    )
)


@dataclass(frozen=True)
class Rewritten:
    """A rewritten graph and the log of its rewriting.

    Parameters
    ----------
    graph
        The normal form: the same parameters, guards and kinds of results.
    fired
        Every use of a rule, with the user's lines.
    assumptions
        What rules of the level ``"real"`` assumed.
    withheld
        Rules that were not used because something else reads what they would absorb.
    fused
        Whether kernels compute several things at once.
    rounds
        Whether they may round otherwise than NumPy.
    """

    graph: Graph
    fired: list[Firing] = field(default_factory=list[Firing])
    assumptions: list[str] = field(default_factory=list[str])
    withheld: list[Withheld] = field(default_factory=list[Withheld])
    fused: bool = True
    rounds: bool = False

    @property
    def notable(self) -> list[Firing]:
        """The rules that fired, for display: without housekeeping rules."""
        return [f for f in self.fired if not f.rule.quiet]


def rewrite(graph: Graph, level: str = "stable", extra: Iterable[Rule] = ()) -> Rewritten:
    """Return the normal form of ``graph``.

    Parameters
    ----------
    graph
        A closed graph.
    level
        ``"exact"``, ``"stable"`` or ``"real"``, with what it leaves out: ``"stable without algebra"``.
    extra
        Rules of the user's own, see :func:`tensormagic.transform.rewriting.users.text.parse_rules`.
    """
    level = config.level(level)
    base, off = parted(level)
    loops = "loops" not in off and (base == "real" or any(map(_has_a_body, graph.nodes)))
    told = Told()
    if loops:
        graph = _without_loops(_at_once(graph, base, told), base, told)
    new, log = _normal(graph, level, extra)
    fired = [*told.fired, *log.fired]
    if loops:
        new, more = _tidied(new, level, extra)
        fired += more.fired
        log.withheld += more.withheld
    fused = "fusion" not in off
    return Rewritten(new, fired, Log(fired).assumptions, log.withheld, fused=fused, rounds=fused and base != "exact")


def _has_a_body(node: Node) -> bool:
    """Return whether there are regions, or values that wait for checks: most graphs have none."""
    return node.op.kind == "region" or node.op is AFTER


def _at_once(graph: Graph, base: str, told: Told) -> Graph:
    """Return the graph with array operations in place of loops whose iterations are independent."""
    if base == "exact":
        return graph
    within = numbers_within(graph)
    told.became(loop_rules.STRETCHED, graph, within)
    goals = at_once(within.results, real=base == "real")
    found: dict[Rule, dict[Node, Node]] = {}
    for old, new in goals.items():
        stores = loop_rules.AT_ONCE_ROUNDED if _is_rounded(old) else loop_rules.AT_ONCE
        found.setdefault(stores if old.type.shape else loop_rules.SUMMED, {})[old] = new
    return told.graph(within, [*found.items()])


def _is_rounded(end: Node) -> bool:
    """Return whether a loop's result has the same bits wherever an element lies: it uses only correctly rounded operations."""
    body: Graph = loop_rules.region_of(end)["body"]
    kinds = {"leaf", "move", "update"}
    return all(n.op.kind in kinds or (n.op.kind == "pointwise" and n.op.name in parts.ROUNDED) for n in body.nodes)


def _tidied(graph: Graph, level: str, extra: Iterable[Rule]) -> tuple[Graph, Log]:
    """Return the graph with its regions tidied, and rewritten again where rules within loop bodies have made more rewrites possible."""
    base, told = parted(level)[0], Told()
    new = graph.with_results(tidied(graph.results, level=base, told=told))
    again = _without_loops(new, base, told)  # rules may have made loop bodies into running sums
    if base != "exact":
        again = told.graph(again, [(loop_rules.HOISTED, hoisted(again.results))])
    if again.results == new.results:
        return new, Log(told.fired)
    new, log = _normal(again, level, extra)
    last = Told()
    new = new.with_results(tidied(new.results, level=base, told=last))
    return new, Log([*told.fired, *log.fired, *last.fired], log.withheld)


def _without_loops(graph: Graph, base: str, told: Told) -> Graph:
    """Return the graph with scans in place of loops that store running sums and the like."""
    goals = scanned(graph.results, parts.ROUNDED if base == "exact" else None)
    if not goals:
        return graph
    same = goals if base == "exact" else scanned(graph.results, parts.ROUNDED)
    found: dict[Rule, dict[Node, Node]] = {}
    for old, new in goals.items():
        plain = loop_rules.SCANNED if same.get(old) is new else loop_rules.SCANNED_BUT_ZEROS
        found.setdefault(plain if old in same else loop_rules.SCANNED_FUNCTIONS, {})[old] = new
    return told.graph(graph, [*found.items()])


def _normal(graph: Graph, level: str, extra: Iterable[Rule]) -> tuple[Graph, Log]:
    """Return the graph rewritten by the rules of a level and the user's own."""
    base = parted(level)[0]
    own = (*extra, *own_rules(level))
    rounded = base != "exact" and constants.are_rounded(graph.nodes)
    early = [table(level, own, early=True, folds=not rounded)] if base == "real" or rounded else []
    return rewrite_graph(graph, *early, table(level, own), *([_last(level)] if base != "exact" else ()))


def _comes_last(node: Node) -> bool:
    """Return whether a rule of the last table may apply here, or inside a region: a quick test."""
    if node.op.kind == "region":
        return any(_comes_last(n) for g in node.params.values() if isinstance(g, Graph) for n in g.nodes)
    return identities.has_two_forms(node) or singular.is_square_less_a_number(node)


def rewrite_with(graph: Graph, rules: tuple[Rule, ...]) -> Graph:
    """Return the normal form of ``graph`` under the given rules alone."""
    return rewrite_graph(graph, Table(rules))[0]


def rewrite_nodes(
    results: Sequence[Node], level: str = "stable", extra: Iterable[Rule] = (), *, differentiated: bool = False
) -> tuple[list[Node], Log]:
    """Return the normal forms of open nodes. Before differentiation, pass ``differentiated``; the gradient is rewritten again later."""
    level = config.level(level)
    order = topological(results)
    base = parted(level)[0]
    folds = base == "exact" or not constants.are_rounded(order)
    used = table(level, (*extra, *own_rules(level)), early=True, folds=folds, differentiated=differentiated)
    nodes, log = _rewrite_nodes(results, used, order=order)
    grows = with_what_grows(nodes) if differentiated and base != "exact" else None
    if grows is not None:
        nodes, more = _rewrite_nodes(nodes, Table([grows]))
        log = Log([*log.fired, *more.fired], [*log.withheld, *more.withheld])
    if grows is not None or (differentiated and any(f.rule in quotients_that_vanish for f in log.fired)):
        nodes = _rewrite_nodes(nodes, _AS_THEY_WERE)[0]
    if differentiated and base != "exact" and any(map(identities.has_two_forms, topological(nodes))):
        nodes, more = _rewrite_nodes(nodes, _one_form(level))
        log = Log([*log.fired, *more.fired], [*log.withheld, *more.withheld])
    return nodes, log


_AS_THEY_WERE = Table(quotients_as_they_were)


@cache
def _one_form(level: str) -> Table:
    return Table([r for r in rules(level) if r in identities.tangents_by_one_function])
