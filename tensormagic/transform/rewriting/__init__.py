"""Rewriting: the rules, by level of trust and by theme, and the functions that bring graphs to normal form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType

from tensormagic.config import config
from tensormagic.ir.driver import Firing, Log, Table, Withheld, rewrite_graph
from tensormagic.ir.driver import rewrite_nodes as _rewrite_nodes
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.rules import LEVELS, Rule
from tensormagic.transform.iterations import at_once
from tensormagic.transform.rewriting import (
    algebra,
    assumed,
    constants,
    differences,
    explog,
    linalg,
    parts,
    reductions,
    remainders,
    structure,
    structured,
)
from tensormagic.transform.tidy import followed, numbers_within, tidied

THEMES: tuple[ModuleType, ...] = (
    constants,
    structure,
    assumed,
    differences,
    algebra,
    explog,
    reductions,
    remainders,
    parts,
    structured,
    linalg,
)


def rules_in(module: ModuleType) -> Iterator[Rule]:
    """The rules that a module states, in the order of its text."""
    for value in vars(module).values():
        if isinstance(value, tuple) and value and all(isinstance(r, Rule) for r in value):
            yield from value


def rules(level: str) -> list[Rule]:
    """The rules that ``level`` allows: those of the levels that trust less come first."""
    allowed = LEVELS[: LEVELS.index(level) + 1]
    every = [rule for module in THEMES for rule in rules_in(module)]
    return sorted((r for r in every if r.level in allowed), key=lambda r: LEVELS.index(r.level))


installed: dict[str, tuple[Rule, ...]] = {}
"""Rules of the user's own that are in force, by the names that they were given together."""


def own_rules(level: str) -> tuple[Rule, ...]:
    """The installed rules that ``level`` allows."""
    allowed = LEVELS[: LEVELS.index(level) + 1]
    return tuple(rule for rules in installed.values() for rule in rules if rule.level in allowed)


Choices = tuple[str, tuple[Rule, ...], str]
_BARE: dict[tuple[str, str], Choices] = {(m, d): (m, (), d) for m in LEVELS for d in ("cpu", "gpu", "auto")}


def choices(level: str = "", device: str = "") -> Choices:
    """What decides a value beside its graph: a level, the rules of the user's own that it allows, and a device.

    By default those in force. The one definition: values, executables and the programs of functions are kept under it. The tier
    is no part of it: a value that is there is not computed again by another tier.
    """
    level, device = level or config.math, device or config.device
    return (level, own_rules(level), device) if installed else _BARE[level, device]


@cache
def table(level: str, extra: tuple[Rule, ...] = ()) -> Table:
    """The rules of ``level``, indexed; ``extra`` ones are tried first."""
    return Table([*extra, *rules(level)])


@dataclass(frozen=True)
class Rewritten:
    """A rewritten graph and what was done to it.

    Parameters
    ----------
    graph
        The normal form: the same parameters, guards and kinds of result.
    fired
        Every use of a rule, with the user's lines.
    assumptions
        What rules of the level ``"real"`` took for granted.
    withheld
        Rules that were not used because what they would absorb has another use.
    """

    graph: Graph
    fired: list[Firing] = field(default_factory=list[Firing])
    assumptions: list[str] = field(default_factory=list[str])
    withheld: list[Withheld] = field(default_factory=list[Withheld])

    @property
    def notable(self) -> list[Firing]:
        """What was done, less the housekeeping: for display."""
        return [f for f in self.fired if not f.rule.quiet]


def rewrite(graph: Graph, level: str = "stable", extra: Iterable[Rule] = ()) -> Rewritten:
    """The normal form of ``graph``.

    Parameters
    ----------
    graph
        A closed graph.
    level
        ``"exact"``, ``"stable"`` or ``"real"``.
    extra
        Rules of the user's own, see :func:`tensormagic.transform.rewriting.user.parse_rules`.
    """
    if level != "exact":
        graph = numbers_within(graph)
        graph = graph.with_results(followed(graph.results, at_once(graph.results, real=level == "real")))
    new, log = rewrite_graph(graph, table(level, (*extra, *own_rules(level))))
    return Rewritten(new.with_results(tidied(new.results, level=level)), log.fired, log.assumptions, log.withheld)


def rewrite_with(graph: Graph, rules: tuple[Rule, ...]) -> Graph:
    """The normal form of ``graph`` under these rules alone."""
    return rewrite_graph(graph, Table(rules))[0]


def rewrite_nodes(results: Sequence[Node], level: str = "stable", extra: Iterable[Rule] = ()) -> tuple[list[Node], Log]:
    """The normal forms of open nodes: what a gradient is taken of is rewritten first, and again with the gradient."""
    return _rewrite_nodes(results, table(level, (*extra, *own_rules(level))))
