"""Which nodes read the rounding of a number, and which rules would change what they read. Knows ops by their facts alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from tensormagic.ir.node import Node, hands_on, is_constant, moves, topological

Array = np.ndarray[Any, Any]

_POINTS = 160
_STEP = 2.0**-30  # the relative change of a part
_MOST = 1.5  # how many roundings of a part may show in the whole for the part to count as hidden
_DEEP = 3  # levels of sums that are searched


def picks(node: Node) -> bool:
    """Return whether each element of ``node`` is an element of an operand, sign aside, so that nothing is rounded."""
    op = node.op
    if "dtype" in node.params and op.kind == "pointwise":  # a cast
        return np.can_cast(node.args[0].type.dtype, node.type.dtype, "safe")
    return op.kind == "move" or op.picks


def rounds(node: Node) -> bool:
    """Return whether ``node`` is rounded: a floating-point result that is not just an element of an operand."""
    return bool(node.args) and len(node.types) == 1 and node.type.inexact and not picks(node)


def multiplies(node: Node) -> bool:
    """Return whether the relative error of ``node`` is at most the sum of its operands': a product, or what passes an operand on."""
    return node.op.factors or picks(node)


def reads_digits(node: Node) -> bool:
    """Return whether the result depends on digits of the operands, as that of a comparison does not."""
    types = node.types
    if len(types) == 1:  # the case of most nodes
        return types[0].dtype.kind != "b"
    return any(t.dtype.kind != "b" for t in types)


# what a pattern shows of its parts ------------------------------------------------------------------------------------


@lru_cache(maxsize=2048)
def hides(pattern: Node, part: Node) -> bool:
    """Return whether an error of one rounding in ``part`` stays that small in ``pattern``: measured at many points.

    ``log(u)`` near 1 amplifies the rounding of ``u``; ``1 / u`` does not.
    """
    try:
        plain, moved = (_evaluated(pattern, part, factor) for factor in (1.0, 1.0 + _STEP))
    except (AttributeError, TypeError, ValueError):
        return False
    with np.errstate(all="ignore"):
        known = np.isfinite(plain) & np.isfinite(moved)
        apart = np.abs(plain - moved)[known] > _MOST * _STEP * np.abs(plain[known])
    return bool(known.any() and not apart.any())


def _evaluated(pattern: Node, part: Node, factor: float) -> Array:
    draw = np.random.default_rng(0)
    values: dict[Node, Array] = {}
    with np.errstate(all="ignore"):
        for node in topological([pattern]):
            if "only" in node.params:
                values[node] = _points(node, draw)
            elif is_constant(node):
                values[node] = np.full(_POINTS, node["bits"].array())
            elif moves(node) and hands_on(node):
                values[node] = values[node.args[0]]
            else:
                values[node] = node.op.numpy(*(values[a] for a in node.args))
            if node is part:
                values[node] = values[node] * factor
    return values[pattern]


def _points(wild: Node, draw: np.random.Generator) -> Array:
    if wild.type.dtype.kind == "b":
        return draw.random(_POINTS) < 0.5
    sizes = 10.0 ** draw.uniform(-7, 2.5, _POINTS)
    signs = np.ones(_POINTS) if wild["only"] in {"Positive", "Unsigned"} else draw.choice([-1.0, 1.0], _POINTS)
    return np.where(draw.random(_POINTS) < 0.3, 1 + sizes * 1e-3, sizes) * signs


# code that works with roundings ---------------------------------------------------------------------------------------


def cancels_with(node: Node, other: Node) -> bool:
    """Return whether ``node`` is a sum with ``other`` among its terms in which terms cancel exactly: ``c - (c - other)``."""
    left, right = _sides(node)
    return not left.isdisjoint(right) and _key(other) in left | right


def cancels(node: Node) -> bool:
    """Return whether ``node`` is a sum in which terms cancel exactly."""
    left, right = _sides(node)
    return not left.isdisjoint(right)


def _sides(node: Node) -> tuple[set[object], set[object]]:
    """Return the added and the subtracted terms of a sum."""
    terms = list(_terms(below(node), 1, _DEEP))
    return {key for key, sign in terms if sign > 0}, {key for key, sign in terms if sign < 0}


def _terms(node: Node, sign: int, depth: int) -> Iterator[tuple[object, int]]:
    """Yield the terms of a sum with their signs, nested sums included."""
    yield _key(node), sign
    signs: tuple[int, ...] = node.op.signs
    if depth or len(signs) == 1:
        for own, part in zip(signs, node.args[: len(signs)], strict=True):
            yield from _terms(below(part), own * sign, depth - (len(signs) > 1))


def _key(node: Node) -> object:
    node = below(node)
    return node["bits"].array().item() if is_constant(node) and not node.type.shape else node


def below(node: Node) -> Node:
    """Return ``node`` below its broadcasts and changes of form (array of rank 0, NumPy scalar, Python number)."""
    while hands_on(node) and moves(node):
        node = node.args[0]
    return node
