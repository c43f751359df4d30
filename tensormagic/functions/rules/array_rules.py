"""Rewrite rules over arrays: products, transposes, sums, inverses in patterns, as NumPy writes them, for any sizes.

A pattern is built anew over the values that its variables are bound to, by the functions that capture user's code; it
matches a node if it then equals that node. So parameters of ops, axes and sizes are compared without a language of
their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.context import Capture
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ir.errors import ParseError
from tensormagic.ir.graph import Guard
from tensormagic.ir.node import Node, make, rebuild, substitute, topological
from tensormagic.ir.rewriting import driver
from tensormagic.ir.rewriting.rules import LEVELS, WILD, Found, Rule
from tensormagic.ir.size import Size, symbol
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import CONSTANT, SIZE
from tensormagic.transform.rewriting import table
from tensormagic.transform.rewriting.notation import fit
from tensormagic.transform.rewriting.users.chains import anywhere

EXAMPLE = 4  # the extent of every axis of the arrays that a pattern is first built over
RANKS = (0, 1, 2)  # the possible numbers of axes of a variable, unless conditions say more
_MOST = 64  # types for which patterns are kept

Types = Mapping[str, Type]
Condition = tuple[Callable[[Node], bool], str]  # a predicate, and the variable that it is about


class Unfit(Exception):  # noqa: N818 (no error of the user's: the rule says nothing of such arrays)
    """Raised if the conditions of a rule do not hold for arrays of these shapes."""


@dataclass(frozen=True)
class Statement:
    """A rule as stated.

    Parameters
    ----------
    names
        The variables.
    sides
        Over lazy arrays, yields something once conditions on shapes hold, then the pattern, then the replacement;
        raises :class:`Unfit` if the conditions do not hold.
    text, source, line
        The rule as text, and where it is written.
    level
        ``"exact"``, ``"stable"`` or ``"real"``.
    checks, assumed
        Predicates on variables; conditions on values, as text.
    """

    names: tuple[str, ...]
    sides: Callable[[Mapping[str, Tensor]], Iterator[Any]]
    text: str
    source: str
    line: int
    level: str
    checks: tuple[Condition, ...] = ()
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Built:
    """Both sides over variables of some types, and the normal forms in which the pattern occurs in graphs."""

    pattern: Node
    replacement: Node
    forms: tuple[Node, ...]
    leaves: Mapping[str, Node]


def leaves_of(types: Types) -> dict[str, Node]:
    """Return a node for each variable."""
    return {name: make(WILD, type=t, name=name, only="") for name, t in types.items()}


def build(statement: Statement, types: Types, *, strict: bool = True) -> Built | None:
    """Return both sides over variables of these types, or None if they do not fit.

    Unless ``strict``, sizes that are different symbols may be equal under the conditions, and the replacement may
    require more sizes to agree than the pattern does.
    """
    leaves = leaves_of(types)
    capture = Capture("a rule", abstract=True)
    try:
        with context.capturing(capture), np.errstate(all="ignore"):
            stages = statement.sides({n: wrap(leaf) for n, leaf in leaves.items()})
            next(stages)
            supposed = _asked(capture.guards)
            pattern = node_of(next(stages))
            asked = _asked(capture.guards)
            replacement = node_of(next(stages))
    except Unfit:
        return None
    except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
        return None  # no arrays have these shapes
    more = (_asked(capture.guards) | _guards(replacement)) - asked - _guards(pattern)
    if strict and (supposed or more):
        return None
    return Built(pattern, replacement, tuple(_forms(pattern, statement.level)), leaves)


def _asked(guards: Iterable[Guard]) -> set[Any]:
    """Return relations of sizes as a set, in which both orders of an equation are equal."""
    return {frozenset((a, b)) if relation == "==" else (a, relation, b) for a, relation, b in guards}


def _guards(root: Node) -> set[Any]:
    """Return the guards on sizes that the ops of a side need."""
    found: list[Guard] = []
    for node in topological([root]):
        found += node.op.guards(node)
    return _asked(found)


def _forms(pattern: Node, level: str) -> Iterator[Node]:
    """Return the pattern as written, over rewritten operands, and rewritten itself, as the levels up to its own do."""
    found = [pattern]
    for allowed in LEVELS[: LEVELS.index(level) + 1]:
        operands, _ = driver.rewrite_nodes(list(pattern.args), table(allowed))
        (normal,), _ = driver.rewrite_nodes([pattern], table(allowed))
        found += [rebuild(pattern, operands), normal]
    return (form for form in dict.fromkeys(found) if form.args)


# matching -------------------------------------------------------------------------------------------------------------


def _bindings(pattern: Node, node: Node, bound: Mapping[str, Node]) -> Iterator[Mapping[str, Node]]:
    """Yield possible bindings of the variables, judged by ops and axes."""
    if len(pattern.type.shape) != len(node.type.shape):
        return
    if pattern.op is WILD:
        name = pattern["name"]
        if bound.get(name, node) is node and node.type.dtype.kind == "f":
            yield {**bound, name: node}
        return
    if pattern.op is SIZE and node.op in {SIZE, CONSTANT}:
        yield bound  # the bound variables determine the sizes
        return
    if pattern.op is not node.op or len(pattern.args) != len(node.args):
        return
    if pattern.op is CONSTANT and not _same_number(pattern, node):
        return
    yield from _of_operands(pattern.args, node.args, bound)
    if len(node.args) == 2 and node.op.commutative:
        yield from _of_operands(pattern.args, node.args[::-1], bound)


def _of_operands(
    patterns: Sequence[Node], nodes: Sequence[Node], bound: Mapping[str, Node]
) -> Iterator[Mapping[str, Node]]:
    if not patterns:
        yield bound
        return
    for found in _bindings(patterns[0], nodes[0], bound):
        yield from _of_operands(patterns[1:], nodes[1:], found)


def _same_number(pattern: Node, node: Node) -> bool:
    return bool(np.array_equal(pattern["bits"].array(), node["bits"].array()))


def _same(first: Node, second: Node) -> bool:
    """Return whether two nodes are equal, operands of commutative ops in either order."""
    if first is second:
        return True
    if first.op is not second.op or first.param_items != second.param_items or len(first.args) != len(second.args):
        return False
    if not first.args:
        return False
    orders = [second.args]
    orders += [second.args[::-1]] if len(second.args) == 2 and first.op.commutative else []
    return any(all(map(_same, first.args, order)) for order in orders)


# rules ----------------------------------------------------------------------------------------------------------------


@dataclass
class ArrayRule:
    """A rule over arrays, built for each possible number of axes of its variables.

    Parameters
    ----------
    statement
        The rule as stated.
    cases
        Both sides for each choice of numbers of axes.
    """

    statement: Statement
    cases: list[Built] = field(default_factory=list[Built])
    _met: dict[tuple[Type, ...], Built | None] = field(default_factory=dict[tuple[Type, ...], Built | None])

    @classmethod
    def of(cls, statement: Statement) -> ArrayRule:
        """Return the rule, built for every choice of axes that fits.

        Raises
        ------
        ParseError
            If none fits.
        """
        made = cls(statement)
        for ranks in itertools.product(RANKS, repeat=len(statement.names)):
            for types in examples(statement.names, ranks):
                found = build(statement, types, strict=False)
                if found is not None and found.pattern.args and _may_stand_for(found.replacement, found.pattern):
                    made.cases.append(found)
        if not made.cases:
            raise ParseError(
                f"{statement.text}: the sides fit no numbers, vectors or matrices",
                "Both sides have to be expressions over the same variables, with one shape and dtype."
                + (" A power is written **." if "^" in statement.text else ""),
            )
        return made

    @property
    def rule(self) -> Rule:
        """The rule as the driver runs it."""
        roots = dict.fromkeys(form.op.name for case in self.cases for form in case.forms)
        stated = self.statement
        where, assumed = stated.source, stated.assumed
        own = Rule(
            stated.text,
            stated.level,
            tuple(roots),
            self.apply,
            where,
            assumptions=assumed,
            fuel=1,
            judged=True,
            neutral=True,
        )
        return anywhere(own)

    def apply(self, node: Node) -> Found | None:
        """Return the rule's replacement for ``node``, or None if it does not match."""
        for case in self.cases:
            for position, form in enumerate(case.forms):
                for bound in _bindings(form, node, {}):
                    new = self._replaced(position, node, bound)
                    if new is not None:
                        return Found(new)
        return None

    def _replaced(self, position: int, node: Node, bound: Mapping[str, Node]) -> Node | None:
        if len(bound) < len(self.statement.names) or not all(holds(bound[n]) for holds, n in self.statement.checks):
            return None
        built = self._built({n: bound[n].type for n in self.statement.names})
        if built is None:
            return None
        actual = {leaf: bound[name] for name, leaf in built.leaves.items()}
        forms = substitute([*built.forms, built.replacement], actual)
        if not any(_same(form, node) for form in forms[:-1]):
            return None
        new = fit(forms[-1], node) if _stretches(forms[-1].type, node.type) else None
        return None if new is node else new

    def _built(self, types: Types) -> Built | None:
        key = tuple(types.values())
        if key not in self._met:
            if len(self._met) >= _MOST:
                self._met.clear()
            self._met[key] = build(self.statement, types)
        return self._met[key]


def _may_stand_for(replacement: Node, pattern: Node) -> bool:
    """Return whether a replacement can have the type of the pattern, for some sizes."""
    if replacement.op is CONSTANT and not replacement.type.shape:
        return True
    fewer = len(pattern.type.shape) - len(replacement.type.shape)
    return replacement.type.dtype == pattern.type.dtype and fewer >= 0


def _stretches(new: Type, old: Type) -> bool:
    """Return whether the sizes of one type broadcast to those of the other for all values of symbols."""
    pairs = zip(reversed(new.shape), reversed(old.shape), strict=False)
    return len(new.shape) <= len(old.shape) and all(n in {m, 1} for n, m in pairs)


def example(extents: Sequence[Size]) -> Type:
    """Return the type of a variable with these extents."""
    return Type(np.dtype(float), tuple(extents), "array" if extents else "scalar")


def examples(names: Sequence[str], ranks: Sequence[int]) -> Iterator[Types]:
    """Yield types of variables with these numbers of axes: once with one open size for all axes, once with different ones.

    With different symbols, operands are broadcast to each other; with one symbol, ops may be left out.
    """
    size = symbol("n", EXAMPLE)
    yield {n: example((size,) * rank) for n, rank in zip(names, ranks, strict=True)}
    if sum(ranks) > 1:
        yield {
            n: example(tuple(symbol(f"{n}.{axis}", EXAMPLE) for axis in range(rank)))
            for n, rank in zip(names, ranks, strict=True)
        }
