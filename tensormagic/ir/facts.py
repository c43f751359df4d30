"""Facts known about the values of a node: assumed by the user, or derived from how it is computed. Knows ops by their facts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from tensormagic.ir.node import Bits, Node, hands_on, is_check, is_constant, moves
from tensormagic.ir.rewriting.roundings import picks

Fact = tuple[str, float]
"""A relation (``>``, ``>=``, ``<``, ``<=``, ``!=``) and a number; or ``finite`` or ``whole``, and 0."""


def facts_of(node: Node) -> Iterator[Fact]:
    """Yield the facts assumed of ``node``, also below changes of shape and form."""
    while hands_on(node) or moves(node):
        for text in filter(None, node.params.get("facts", "").split("; ")):
            relation, _, number = text.partition(" ")
            yield relation, float(number or 0)
        node = node.args[0]


def at_least_zero(node: Node) -> bool:
    """Return whether ``node`` is assumed to be at least zero everywhere, and not nan."""
    return any(r in {">", ">="} and n >= 0 for r, n in facts_of(node))


def above_zero(node: Node) -> bool:
    """Return whether ``node`` is assumed to be greater than zero everywhere."""
    return any((r == ">" and n >= 0) or (r == ">=" and n > 0) for r, n in facts_of(node))


def not_zero(node: Node) -> bool:
    """Return whether ``node`` is assumed to be nonzero everywhere."""
    return above_zero(node) or any(
        (r == "<" and n <= 0) or (r == "<=" and n < 0) or (r == "!=" and n == 0) for r, n in facts_of(node)
    )


def is_finite(node: Node) -> bool:
    """Return whether ``node`` is assumed to be finite everywhere, directly or by bounds on both sides."""
    known = {r for r, _ in facts_of(node)}
    return "finite" in known or (bool(known & {">", ">="}) and bool(known & {"<", "<="}))


def is_regular(node: Node) -> bool:
    """Return whether ``node`` is assumed to be finite and nonzero everywhere."""
    return is_finite(node) and not_zero(node)


# signs that follow from operations -----------------------------------------------------------------------------------------


def not_negative(node: Node, depth: int = 6) -> bool:
    """Return whether ``node`` is provably nonnegative everywhere (it may be nan)."""
    if is_check(node):
        return at_least_zero(node) or not_negative(node.args[0], depth)
    if is_constant(node):
        return node.type.dtype.kind != "c" and _at_least_zero(node["bits"])
    if node.op.not_negative:
        return node.type.dtype.kind != "i" or not node.args  # integers wrap around, but sizes
    if node.type.dtype.kind == "i" and not picks(node):
        return False
    return depth > 0 and _keeps_sign(node) and all(not_negative(a, depth - 1) for a in node.args)


@lru_cache(maxsize=1024)
def _at_least_zero(bits: Bits) -> bool:
    return bool((bits.array() >= 0).all())


def adds(node: Node, depth: int = 6) -> bool:
    """Return whether ``node`` is a sum in which nothing cancels."""
    return node.op.signs == (1, 1) and all(not_negative(a, depth) for a in node.args)


def _keeps_sign(node: Node) -> bool:
    return node.op.keeps_sign


def _is_square(node: Node) -> bool:
    """Return whether a real number is multiplied by itself: the sign bit is then never set, not even that of ``-0.0``."""
    op = node.op
    return op.factors and op.commutative and node.type.dtype.kind == "f" and node.args[0] is node.args[1]


def unsigned(node: Node, depth: int = 6) -> bool:
    """Return whether the sign bit of ``node`` is provably never set, not even as ``-0.0`` (it may be nan)."""
    if is_check(node):
        return above_zero(node) or unsigned(node.args[0], depth)
    if is_constant(node):
        return node.type.dtype.kind != "c" and not bool(np.signbit(node["bits"].array().astype(float)).any())
    if (node.op.not_negative and not _keeps_sign(node)) or _is_square(node):
        return True
    return depth > 0 and _keeps_sign(node) and all(unsigned(a, depth - 1) for a in node.args)
