"""Whether one node is another with one operand in place of another, or has a function of an operand within. Knows no rules."""

from __future__ import annotations

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ops.scalars.scalar import add, divide, multiply, subtract

_DEEP = 3
_LOOKED_AT = 12
_ARITHMETIC = frozenset((add, subtract, multiply, divide))


def same(a: Node, b: Node) -> bool:
    """Return whether two nodes are the same value, whatever moves stand over them."""
    return bare(a) is bare(b)


def found_in(node: Node, name: str, of: Node) -> Node | None:
    """Return the function ``name`` of ``of`` within sums and products at ``node``, or None."""
    pool = [node]
    for _ in range(_LOOKED_AT):
        if not pool:
            return None
        inner = bare(pool.pop())
        if inner.op.name == name and bare(inner.args[0]) is of:
            return inner
        pool += inner.args if inner.op in _ARITHMETIC else ()
    return None


def are_of(u: Node, v: Node, r: Node, s: Node) -> bool:
    """Return whether ``s`` is ``v`` with ``r`` in place of ``u``: the same function of one and the other, with what else they have."""
    f, g = bare(v), bare(s)
    return f is not g and bool(f.args) and _is_put(f, bare(u), g, bare(r), _DEEP)


def _is_put(f: Node, u: Node, g: Node, r: Node, depth: int) -> bool:
    """Return whether ``g`` is ``f`` with ``r`` in place of ``u``, down to a depth."""
    if f is u:
        return g is r
    if f is g or f.op is not g.op or not f.args or not depth or f.param_items != g.param_items:
        return f is g
    return all(_is_put(bare(m), u, bare(n), r, depth - 1) for m, n in zip(f.args, g.args, strict=True))
