"""Which ops are a few levels below a node, as one bit mask: a quick test that rules of sums make first."""

from __future__ import annotations

from collections.abc import Iterable

from tensormagic.ir.node import Node

_FIELD = 64
"""How many names of ops rules may ask for: one bit for each, in a field for each level."""
_LEVELS = 7
_ALL = (1 << _FIELD * _LEVELS) - 1
_bits: dict[str, int] = {}


def ops_within(names: Iterable[str]) -> int:
    """Return the bits of any of these ops on all levels, for the options of rules, which are read before any node."""
    found = 0
    for name in names:
        found |= _bits.setdefault(name, 1 << len(_bits))
    if len(_bits) > _FIELD:
        message = f"rules ask for more than {_FIELD} names of ops within their operands"
        raise ValueError(message)
    return sum(found << _FIELD * level for level in range(_LEVELS))


def in_pattern(pattern: Node) -> int:
    """Return the bits that ``pattern`` sets from the third level down: a node that matches has all of them."""
    found, level = 0, [a for arg in pattern.args for a in arg.args]
    for depth in range(2, _LEVELS):
        below = [a for one in level for a in one.args]
        found |= sum({_bits.get(a.op.name, 0) for a in below}) << _FIELD * depth
        level = below
    return found


def at_last(names: Iterable[str]) -> int:
    """Return the bits of any of these ops on the last level."""
    return ops_within(names) >> _FIELD * (_LEVELS - 1) << _FIELD * (_LEVELS - 1)


def within(node: Node) -> int:
    """Return the bits of the ops below ``node``, level by level, past changes of shape and form and checks; cached on the node."""
    if node.within is None:
        stack = [node]
        while stack:
            one = stack[-1]
            found, waits = 0, False
            for given in one.args:
                arg = given if given.below is None else given.below
                if arg.within is None:
                    if arg.args:
                        stack.append(arg)
                        waits = True
                        continue
                    arg.within = 0
                found |= arg.within << _FIELD | _bits.get(arg.op.name, 0)
            if not waits:
                one.within = found & _ALL
                stack.pop()
    return node.within  # type: ignore[return-value]
