"""Sides of rules as text, in the notation that they were written in."""

from __future__ import annotations

from typing import Any

from tensormagic.ir.node import Node

_INFIX = {"add": ("+", 1), "subtract": ("-", 1), "multiply": ("*", 2), "divide": ("/", 2), "power": ("**", 4)}
_COMPARE = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!="}


def show(pattern: Any, strength: int = 0) -> str:
    """A pattern in the notation that it was written in."""
    if not isinstance(pattern, Node):
        return str(pattern)
    name, args = pattern.op.name, pattern.args
    if name in {"wild", "constant"}:
        return pattern["name"] if name == "wild" else f"{pattern['bits'].array().item():g}"
    if name == "negative":
        text, own = f"-{show(args[0], 4)}", 3
    elif name in _INFIX:
        sign, own = _INFIX[name]
        text = f"{show(args[0], own)} {sign} {show(args[1], own + 1)}"
    elif name in _COMPARE:
        text, own = f"{show(args[0], 1)} {_COMPARE[name]} {show(args[1], 1)}", 0
    else:
        text, own = f"{name}({', '.join(show(a) for a in args)})", 9
    return f"({text})" if own < strength else text


def replaced(replacement: Any) -> str:
    """A replacement as text: of a form behind a branch, the form and where it is used."""
    if isinstance(replacement, Node) and replacement.op.name == "where" and replacement.args[2].op.name == "subtract":
        near, form, text = replacement.args
        inner = text.args[1]
        if inner.op is replacement.op and inner.args[:2] == (near, text.args[0]):
            return f"{show(form)} where {show(near)}"
    return show(replacement)
