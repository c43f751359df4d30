"""Texts of the sides of rules, and of other expressions, in the notation in which they were written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensormagic.ir.node import Node, is_constant

LEVEL_WORDS = {  # what a rule of each level may change
    "exact": "same digits",
    "stable": "never less accurate",
    "real": "equal for real numbers",
}
AS_ACCURATE = "as accurate, by other last digits"  # for rules of the level stable that do not aim at accuracy

_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 4} | dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 0)


def show(pattern: Any, strength: int = 0) -> str:
    """Return a pattern as text in the notation in which it was written."""
    if not isinstance(pattern, Node):
        return str(pattern)
    return _shown(pattern, lambda leaf: leaf["name"], None, strength)


Spelt = Callable[[Node, Sequence[str]], str]
"""How a node is written in NumPy from the texts of its operands, if that is neither its name nor an operator; else empty."""


def expression(node: Node, name: Callable[[Node], str], room: int = 80, spelt: Spelt = lambda *_: "") -> str:
    """Return a node as NumPy text; what does not fit into ``room`` characters becomes ``…``.

    ``name`` gives the name of a leaf. Broadcasts and other nodes that pass their operand on are not shown.
    """
    found = "…"
    for depth in range(1, room):
        longer = _shown(node, name, depth, spelt=spelt)
        if longer == found or len(longer) > room:
            break
        found = longer
    return found


def _shown(
    node: Node,
    name: Callable[[Node], str],
    depth: int | None,
    strength: int = 0,
    spelt: Spelt = lambda *_: "",
) -> str:
    """Return the text down to ``depth``; None, as for patterns, means all of it."""
    while depth is not None and node.op.hands_on:
        node = node.args[0]
    args, sign = node.args, node.op.infix
    if not args:
        array = node["bits"].array() if is_constant(node) else None
        return name(node) if array is None or array.ndim else f"{array.item():g}"
    if depth == 0:
        return "…"
    depth = depth if depth is None else depth - 1

    def part(arg: Node, strength: int = 0) -> str:
        return _shown(arg, name, depth, strength, spelt)

    if other := spelt(node, [part(a, 3) for a in args]):
        text, own = other, 2 if " " in other else 9
    elif node.op.signs == (-1,):
        text, own = f"-{part(args[0], 4)}", 3
    elif sign in _STRENGTH:
        own = _STRENGTH[sign]
        text = f"{part(args[0], own or 1)} {sign} {part(args[1], own + 1)}"
    else:
        text, own = f"{node.op.name}({', '.join(map(part, args))})", 9
    return f"({text})" if own < strength else text


def _is_difference(node: Node) -> bool:
    return node.op.signs == (1, -1)


def replaced(replacement: Any) -> str:
    """Return the text of a replacement; one that is used under a condition is shown as the form and its condition."""
    if isinstance(replacement, Node) and len(replacement.args) == 3 and _is_difference(replacement.args[2]):
        near, form, text = replacement.args
        inner = text.args[1]
        if inner.op is replacement.op and inner.args[:2] == (near, text.args[0]):
            return f"{show(form)} where {show(near)}"
    return show(replacement)
