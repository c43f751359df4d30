"""What a rewriting tells of itself: the rules that fired, and those that were withheld."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Rule
from tensormagic.ir.site import Site


@dataclass(eq=False, slots=True)
class Firing:
    """One use of a rule: the node, its replacement, the user's lines, and the ``parts`` (original nodes) whose rounding it absorbed.

    ``results`` are those of the graph afterwards, for a rewrite of the whole graph at once, such as that of loops.
    """

    rule: Rule
    before: Node
    after: Node
    sites: tuple[Site, ...]
    parts: tuple[Node, ...] = ()
    results: tuple[Node, ...] = ()

    def __str__(self) -> str:
        lines = ", ".join(dict.fromkeys(map(str, self.sites)))
        extends = f": {self.rule.extends}" if self.rule.extends else ""
        return f"{self.rule.name}{f' ({lines})' if lines else ''}{extends}"


@dataclass(frozen=True, eq=False)
class Withheld:
    """A rule that matched but was not used: ``shared`` is the node that prevented it, ``why`` the reason.

    ``free`` is the set of results that would have allowed it, as bits.
    """

    rule: Rule
    node: Node
    shared: Node
    sites: tuple[Site, ...]
    why: str = ""
    free: int = 0

    def __str__(self) -> str:
        lines = ", ".join(dict.fromkeys(map(str, self.sites)))
        return f"withheld: {self.rule.name}{f' ({lines})' if lines else ''}: {self.shared.op.name} {self.why}"


@dataclass
class Log:
    """The rules that fired and those that were withheld during a rewriting."""

    fired: list[Firing] = field(default_factory=list)
    withheld: list[Withheld] = field(default_factory=list)

    @property
    def notable(self) -> list[Firing]:
        """The rules that fired, without housekeeping."""
        return [f for f in self.fired if not f.rule.quiet]

    @property
    def assumptions(self) -> list[str]:
        """The assumptions of the rules that fired, and where they fired."""
        return list(dict.fromkeys(_assumption(f) for f in self.fired if f.rule.assumptions))


def _assumption(firing: Firing) -> str:
    lines = ", ".join(dict.fromkeys(map(str, firing.sites)))
    return f"{' and '.join(firing.rule.assumptions)}: {firing.rule.name}{f', {lines}' if lines else ''}"
