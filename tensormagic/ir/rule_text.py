"""Sides of rules as text, in the notation that they were written in."""

from __future__ import annotations

from typing import Any

from tensormagic.ir.node import Node, is_constant

_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 4} | dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 0)


def show(pattern: Any, strength: int = 0) -> str:
    """A pattern in the notation that it was written in."""
    if not isinstance(pattern, Node):
        return str(pattern)
    args, sign = pattern.args, pattern.op.infix
    if not args:
        return f"{pattern['bits'].array().item():g}" if is_constant(pattern) else pattern["name"]
    if pattern.op.signs == (-1,):
        text, own = f"-{show(args[0], 4)}", 3
    elif sign in _STRENGTH:
        own = _STRENGTH[sign]
        text = f"{show(args[0], own or 1)} {sign} {show(args[1], own + 1)}"
    else:
        text, own = f"{pattern.op.name}({', '.join(show(a) for a in args)})", 9
    return f"({text})" if own < strength else text


def _is_difference(node: Node) -> bool:
    return node.op.signs == (1, -1)


def replaced(replacement: Any) -> str:
    """A replacement as text: of a form behind a branch, the form and where it is used."""
    if isinstance(replacement, Node) and len(replacement.args) == 3 and _is_difference(replacement.args[2]):
        near, form, text = replacement.args
        inner = text.args[1]
        if inner.op is replacement.op and inner.args[:2] == (near, text.args[0]):
            return f"{show(form)} where {show(near)}"
    return show(replacement)
