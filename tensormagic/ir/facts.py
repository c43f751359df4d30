"""Facts: what is known of the values of a node because somebody has said so. Knows ops by their facts alone."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.ir.node import Node, hands_on, moves

Fact = tuple[str, float]
"""A relation (``>``, ``>=``, ``<``, ``<=``, ``!=``) and a number; or ``finite`` or ``whole``, and 0."""


def facts_of(node: Node) -> Iterator[Fact]:
    """The facts of ``node``: those that were assumed of it, below changes of shape and form too."""
    while hands_on(node) or moves(node):
        for text in filter(None, node.params.get("facts", "").split("; ")):
            relation, _, number = text.partition(" ")
            yield relation, float(number or 0)
        node = node.args[0]


def at_least_zero(node: Node) -> bool:
    """Whether it was said that ``node`` is nowhere below zero, and no nan."""
    return any(r in {">", ">="} and n >= 0 for r, n in facts_of(node))


def above_zero(node: Node) -> bool:
    """Whether it was said that ``node`` is greater than zero everywhere."""
    return any((r == ">" and n >= 0) or (r == ">=" and n > 0) for r, n in facts_of(node))


def not_zero(node: Node) -> bool:
    """Whether it was said that ``node`` is nowhere zero."""
    return above_zero(node) or any(
        (r == "<" and n <= 0) or (r == "<=" and n < 0) or (r == "!=" and n == 0) for r, n in facts_of(node)
    )


def is_finite(node: Node) -> bool:
    """Whether it was said that ``node`` is finite everywhere: of both sides, or as such."""
    known = {r for r, _ in facts_of(node)}
    return "finite" in known or (bool(known & {">", ">="}) and bool(known & {"<", "<="}))


def is_regular(node: Node) -> bool:
    """Whether it was said that ``node`` is finite and nowhere zero."""
    return is_finite(node) and not_zero(node)
