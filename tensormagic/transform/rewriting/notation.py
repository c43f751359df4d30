"""The decorators that turn functions in NumPy notation into rules, one for each level of trust."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Rule, pattern_rule, rules_of
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import CONSTANT, constant
from tensormagic.ops.move import broadcast
from tensormagic.ops.move_kind import broadcast_shapes

Rules = tuple[Rule, ...]
Decorator = Callable[..., Any]


def fit(replacement: Any, node: Node) -> Node | None:
    """Return ``replacement`` converted to the type of ``node`` (dtype, shape and form), or None if it does not fit."""
    t = node.type
    if not isinstance(replacement, Node):
        replacement = constant(replacement)
    if replacement.op is CONSTANT and not replacement.type.shape and replacement.type != t.with_shape((), t.form):
        value = replacement["bits"].array().astype(t.dtype)
        replacement = constant(value, t.form if not t.shape else "scalar")
    found = replacement.type
    if found == t:
        return replacement
    if found.dtype == t.dtype and found.shape == t.shape == ():
        return to_form(replacement, t.form)
    if found.dtype != t.dtype or (found.shape == t.shape) or len(found.shape) > len(t.shape):
        return None
    return broadcast(replacement, t.shape) if broadcast_shapes([t.shape, found.shape]) == t.shape else None


def rule_of(
    pattern: Node,
    replacement: Node,
    checks: Sequence[tuple[Callable[[Node], bool], str]],
    assumed: tuple[str, ...],
    source: str,
    level: str = "real",
) -> Rule:
    """Return a rule of the user's, taken at their word; it may fire once for each node of a graph."""
    readers = [(check, (name,)) for check, name in checks]
    rule = pattern_rule(
        pattern, replacement, readers, fit, level=level, kinds="iuf", source=source, assumptions=assumed, fuel=1
    )
    return replace(rule, judged=True, neutral=True)  # cost and purpose are up to the rule's author


def _level(level: str) -> Decorator:
    def decorate(function: Callable[..., Any] | None = None, **options: Any) -> Any:
        if function is None:
            return lambda f: rules_of(f, level, fit, **options)
        return rules_of(function, level, fit, **options)

    decorate.__doc__ = (
        f"Rules of the level {level!r}; see :func:`tensormagic.ir.rewriting.rules.rules_of` for the options."
    )
    return decorate


exact = _level("exact")
stable = _level("stable")
real = _level("real")
