"""Rules of contractions and of linear algebra: no inverse where a system is meant, no product where a part of it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tensormagic.ir.node import Node, make
from tensormagic.ir.rewriting.rules import plain
from tensormagic.ir.type import Size, hint
from tensormagic.ops.contract import CONTRACT, LETTERS, einsum, split
from tensormagic.ops.leaf import IOTA
from tensormagic.ops.matrices.determinants import DET, SLOGDET
from tensormagic.ops.matrices.linalg import INV, solve, swap
from tensormagic.ops.move import RESHAPE, SLICE, TRANSPOSE, Slices, slice_
from tensormagic.ops.opaque import item
from tensormagic.ops.scalars.scalar import absolute, add, equal, greater_equal, negative, subtract, where
from tensormagic.ops.update import zeros_like
from tensormagic.transform.matrices import are_on_diagonal
from tensormagic.transform.rewriting.notation import real, stable
from tensormagic.transform.rewriting.themes.parts import contraction


@stable(roots="contract", heads="transpose", neutral=True)
def transposed_operands(node: Node) -> Node | None:
    """``einsum(transpose(x), y) -> einsum(x, y) with the letters of x permuted``."""
    letters, out = split(node["subscripts"])
    args = list(node.args)
    for k, arg in enumerate(args):
        if arg.op is TRANSPOSE:
            order = arg["permutation"]
            letters[k] = "".join(letters[k][order.index(axis)] for axis in range(len(order)))
            args[k] = arg.args[0]
    return contraction(letters, out, args) if args != list(node.args) else None


@stable(roots="transpose", heads="contract", neutral=True)
def transposed_products(node: Node) -> Node | None:
    """``transpose(einsum(x, y)) -> einsum(x, y) with the letters of the result permuted``."""
    inner = node.args[0]
    if inner.op is not CONTRACT:
        return None
    letters, out = split(inner["subscripts"])
    return contraction(letters, "".join(out[k] for k in node["permutation"]), inner.args)


@stable(roots="contract", heads="negative", neutral=True)
def signs_of_operands(node: Node) -> Node | None:
    """``einsum(-x, y) -> -einsum(x, y)``."""
    x, y = node.args
    if node.type.dtype.kind != "f" or (x.op is negative) == (y.op is negative):
        return None
    inner = [a.args[0] if a.op is negative else a for a in node.args]
    return negative(make(CONTRACT, inner, subscripts=node["subscripts"]))


@real(roots="contract", heads="inv", assumes=("a is far from singular",))
def inverses_to_systems(node: Node) -> Node | None:
    """``inv(a) @ x -> solve(a, x), and x @ inv(a) -> solve(a.T, x)``."""
    (p, q), out = split(node["subscripts"])
    x, y = node.args
    if x.op is INV:
        lead, r, s = p[:-2], p[-2], p[-1]
        rest = q[len(lead) + 1 :]
        if q == lead + s + rest and len(rest) <= 1 and out == lead + r + rest and (rest or not lead):
            return solve(x.args[0], y)
    if y.op is INV:
        lead, s, r = q[:-2], q[-2], q[-1]
        if p == s and out == r and not lead:
            return solve(swap(y.args[0]), x)
        rest = p[len(lead) : -1]
        if len(rest) == 1 and p == lead + rest + s and out == lead + rest + r:
            return swap(solve(swap(y.args[0]), swap(x)))
    return None


@real(roots="det", heads="inv", assumes=("a is invertible",))
def determinants_of_inverses(node: Node) -> Node | None:
    """``det(inv(a)) -> 1 / det(a)``."""
    inner = node.args[0]
    return 1 / make(DET, (inner.args[0],)) if inner.op is INV else None


@real(roots="inv", heads="inv", assumes=("a is invertible",))
def inverses_of_inverses(node: Node) -> Node | None:
    """``inv(inv(a)) -> a``."""
    inner = node.args[0]
    return inner.args[0] if inner.op is INV else None


@stable(roots="log", heads="absolute")
def absolute_determinants(node: Node) -> Node | None:
    """``log(absolute(det(a))) -> slogdet(a)[1]``."""
    size = plain(node.args[0])
    found = plain(size.args[0]) if size.op is absolute else size
    return item(make(SLOGDET, found.args), 1) if found.op is DET and found is not size else None


@stable(roots="log", heads="det", fuel=1)
def determinants(node: Node) -> Node | None:
    """``log(det(a)) -> where(sign >= 0, slogdet(a)[1], nan)``."""
    inner = plain(node.args[0])
    if inner.op is not DET or inner.type.dtype.kind != "f":
        return None
    both = make(SLOGDET, inner.args)
    return where(greater_equal(item(both, 0), 0), item(both, 1), np.nan)


# parts of products ----------------------------------------------------------------------------------------------------


def _on_diagonal(node: Node) -> tuple[Node, int, int] | None:
    """Return ``x`` and two axes for ``where(index == index, x, 0)``, which diagonals and traces sum, or None."""
    if node.op is not where or node.args[2] is not zeros_like(node):
        return None
    mask = plain(node.args[0])
    if mask.op is not equal or any(plain(a).op is not IOTA for a in mask.args):
        return None
    shift = node.type.ndim - mask.type.ndim
    ramps = [plain(a) for a in mask.args]
    first, second = sorted(r["axis"] + node.type.ndim - r.type.ndim for r in ramps)
    return (node.args[1], first, second) if shift >= 0 and first != second else None


@stable(roots="sum", heads="where", neutral=True)
def traces_of_products(node: Node) -> Node | None:
    """``trace(x @ y) -> einsum("ij,ji->", x, y)``."""
    found = _on_diagonal(node.args[0])
    if found is None or node.type.dtype != found[0].type.dtype:
        return None
    product, first, second = found
    if not {first, second} & set(node["axes"]):
        return None
    return _on_axes(product, first, second, [k for k in range(product.type.ndim) if k not in node["axes"]])


@stable(roots="gather", heads="reshape", neutral=True)
def diagonals_of_products(node: Node) -> Node | None:
    """``diagonal(x @ y) -> einsum("ij,ji->i", x, y)``."""
    flat, places = node.args
    if flat.op is not RESHAPE:  # the head may have matched the indices
        return None
    matrices = flat.args[0]
    rank = matrices.type.ndim
    if rank < 2 or flat.type.ndim != rank - 1 or node["axis"] != rank - 2:
        return None
    if not are_on_diagonal(places, *matrices.type.shape[-2:]):
        return None
    part: Slices | None = None
    if matrices.op is SLICE:
        part, matrices = matrices["slices"], matrices.args[0]
    order: Sequence[int] = range(rank)
    if matrices.op is TRANSPOSE:
        order, matrices = matrices["permutation"], matrices.args[0]
    if part is not None and matrices.op is CONTRACT:
        matrices = _part_of(matrices, dict(zip(order, part, strict=True)))
    first, second = order[-2:]
    return _on_axes(matrices, first, second, [k for k in order if k != second])


def _part_of(product: Node, part: Mapping[int, tuple[Size, Size, int]]) -> Node:
    """Return a slice of a product, as a product of slices."""
    letters, out = split(product["subscripts"])
    taken = {out[k]: s for k, s in part.items()}
    args = [
        slice_(a, tuple(taken.get(c, (0, s, 1)) for c, s in zip(text, a.type.shape, strict=True)))
        for text, a in zip(letters, product.args, strict=True)
    ]
    return make(CONTRACT, args, subscripts=product["subscripts"])


def _on_axes(product: Node, first: int, second: int, axes: Sequence[int]) -> Node | None:
    """Return a product computed only on the diagonal of two axes, and summed over all but ``axes``."""
    if product.op is not CONTRACT or product.type.dtype.kind != "f":
        return None
    (left, right), out = split(product["subscripts"])
    same, other = out[first], out[second]
    kept = "".join(out[k] for k in axes)
    left, right, kept = (text.replace(other, same) for text in (left, right, kept))
    if any(len(set(text)) != len(text) for text in (left, right)):
        return None
    return einsum(f"{left},{right}->{kept}", *product.args)


@real(roots="sum", heads="contract")
def sums_of_products(node: Node) -> Node | None:
    """``sum(x @ y, axis) -> sum(x, axis) @ y``."""
    product = node.args[0]
    if product.op is not CONTRACT or product.type.dtype != node.type.dtype:
        return None
    letters, out = split(product["subscripts"])
    kept = "".join(c for k, c in enumerate(out) if k not in node["axes"])
    return einsum(f"{','.join(letters)}->{kept}", *product.args)


@real(roots="contract", heads="contract", fuel=1)
def chains(node: Node) -> Node | None:
    """``(a @ b) @ x -> a @ (b @ x) where that takes fewer multiplications``."""
    inner = next((a for a in node.args if a.op is CONTRACT), None)
    if inner is None:
        return None
    letters, out = split(node["subscripts"])
    place = node.args.index(inner)
    own, own_out = split(inner["subscripts"])
    names = dict(zip(own_out, letters[place], strict=True))
    fresh = iter(c for c in LETTERS if c not in "".join(letters))
    for c in "".join(own):
        if c not in names:
            names[c] = next(fresh)
    renamed = ["".join(names[c] for c in text) for text in own]
    terms = [*letters[:place], *renamed, *letters[place + 1 :]]
    args = [*node.args[:place], *inner.args, *node.args[place + 1 :]]
    new = einsum(f"{','.join(terms)}->{out}", *args)
    return new if _cost(new, args) < _cost(node, args) else None


def _cost(node: Node, leaves: list[Node]) -> int:
    """Return the number of multiplications of the contractions between ``node`` and ``leaves``."""
    if node in leaves:
        return 0
    cost = sum(_cost(a, leaves) for a in node.args)
    if node.op is CONTRACT:
        letters, _ = split(node["subscripts"])
        sizes = [s for a in node.args for s in a.type.shape]
        cost += math.prod(dict(zip("".join(letters), [hint(s) or 32 for s in sizes], strict=True)).values())
    return cost


@real(roots="add subtract", heads="contract")
def shared_sides(node: Node) -> Node | None:
    """``a @ x + a @ y -> a @ (x + y), and the same on the right and for differences``."""
    first, second = node.args
    if (
        first.op is not CONTRACT
        or second.op is not CONTRACT
        or first is second
        or first["subscripts"] != second["subscripts"]
    ):
        return None
    combine = add if node.op is add else subtract
    pairs = list(zip(first.args, second.args, strict=True))
    shared = [k for k, (a, b) in enumerate(pairs) if a is b]
    other = pairs[1 - shared[0]] if len(shared) == 1 else None
    if other is None or other[0].type.shape != other[1].type.shape:
        return None
    args = [a if k == shared[0] else combine(a, b) for k, (a, b) in enumerate(pairs)]
    return make(CONTRACT, args, subscripts=first["subscripts"])
