"""Lets a user's rules match within longer sums and products: ``a + b -> c`` finds ``a`` and ``b`` anywhere among the terms of one sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import combinations

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, Rule, bare
from tensormagic.ops.scalars.scalar import add, multiply
from tensormagic.transform.rewriting.notation import fit

_CHAINS = {op.name: op for op in (add, multiply)}
_LONGEST = 8
"""How many terms are searched."""


def anywhere(rule: Rule) -> Rule:
    """Return the rule, extended to match any of the terms of a sum or factors of a product."""
    if not _CHAINS.keys() & set(rule.roots):
        return rule
    count = 2 if rule.pattern is None else len(_terms(rule.pattern, rule.pattern.op.name))

    def apply(node: Node) -> Found | None:
        return rule.apply(node) or _among(rule.apply, node, count)

    return replace(rule, apply=apply, heads=frozenset(), second=frozenset())


def _terms(node: Node, name: str) -> list[Node]:
    """Return the terms of nested sums, or the factors of nested products, in order."""
    found: list[Node] = []
    stack = [node]
    while stack:
        inner = stack.pop()
        below = bare(inner)
        if inner is node or below.op.name == name:
            stack += reversed((node if inner is node else below).args)
        else:
            found.append(inner)
    return found


def _among(apply: Callable[[Node], Found | None], node: Node, count: int) -> Found | None:
    """Apply a rule to some of the terms, and combine the result with the others."""
    op = _CHAINS.get(node.op.name)
    if op is None or node.type.dtype.kind not in "fciu":
        return None
    terms = _terms(node, node.op.name)
    if not count < len(terms) <= _LONGEST:
        return None
    for chosen in _choices(len(terms), count):
        found = apply(reduce(op, [terms[k] for k in chosen]))
        if found is None:
            continue
        new = reduce(op, [terms[k] for k in range(len(terms)) if k not in chosen], found.node)
        fitted = fit(new, node)
        if fitted is not None:
            inner = {n for n in found.inside if n.op is not op}
            return Found(fitted, absorbs=(*_sums(node), *inner))
    return None


def _choices(terms: int, count: int) -> Iterator[tuple[int, ...]]:
    """Yield selections of terms, each term being last once: patterns treat their last operand separately."""
    for chosen in combinations(range(terms), count):
        for last in reversed(chosen) if count > 2 else chosen[-1:]:
            yield (*(k for k in chosen if k != last), last)


def _sums(node: Node) -> list[Node]:
    """Return the inner sums (or products) within ``node`` whose terms it adds."""
    found: list[Node] = []
    stack = [*node.args]
    while stack:
        inner = bare(stack.pop())
        if inner.op is node.op:
            found.append(inner)
            stack += inner.args
    return found
