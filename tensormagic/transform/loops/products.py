"""Computes products of rows and columns in loops all at once before the loop, as one matrix product of which an iteration reads its part.

``x[:, i] @ x[:, i:]`` at each iteration is a part of ``x.T @ x``. A library computes that in a fraction of the time
for as many operations, or up to twice as many, if iterations leave some of it out.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from tensormagic.ir.cost import elements, elements_of
from tensormagic.ir.graph import Graph, following
from tensormagic.ir.node import Node, make
from tensormagic.ir.site import substituted
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ops.contract import LETTERS, einsum, split
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import size_of
from tensormagic.ops.move import RESHAPE, SLICE, reshape, slice_
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.loops import LOOP, unindexed
from tensormagic.ops.regions.region import graph_over, instantiated, matched, stand_in

_MOST = 2  # how many times as many operations the whole product may take as the iterations
_LEAST = 2**10  # multiplications: fewer are computed as quickly within the loop

Triple = tuple[Size, Size, int]


class _Part(NamedTuple):
    """The slice that a product reads of an array constant in the loop: for each axis its letter and its range."""

    whole: Node
    letters: str
    slices: tuple[Triple, ...]


def at_once_before(regions: Iterable[Node]) -> dict[Node, Node]:
    """Return replacements for the results of loops whose iterations multiply slices of constant arrays."""
    goals: dict[Node, Node] = {}
    for loop in regions:
        if loop.op is LOOP:
            goals |= _with_products(loop)
    return goals


def _with_products(loop: Node) -> dict[Node, Node]:
    body: Graph = loop["body"]
    own, operands = list(body.parameters), list(loop.args)
    iterations = size_of(loop.args[0])
    if iterations is None:
        return {}
    first = 1 + loop["carries"]
    fixed = dict(zip(own[first:], operands[first:], strict=True))
    changing = following(body, own[:first])
    sizes, _ = matched(unindexed(body, 1), operands[1:], "loop")
    room = max((elements(a) for a in operands[1:]), default=0)  # memory that is in use anyway
    new: dict[Node, Node] = {}
    for node in body.nodes:
        parts = _parts(node, own[0], changing)
        if parts is None:
            continue
        left, right = (part.whole for part in parts)
        letters = _result(parts, split(node["subscripts"])[1])
        subscripts = f"{parts[0].letters},{parts[1].letters}->{letters}"
        product = einsum(subscripts, *instantiated([left, right], fixed, sizes))
        if elements(product) > room or not _pays(node, parts, elements_of(iterations)):
            continue
        inner = stand_in("product", einsum(subscripts, left, right).type)
        own.append(inner)
        operands.append(product)
        read = {letter: triple for part in parts for letter, triple in zip(part.letters, part.slices, strict=True)}
        part = slice_(inner, tuple(read[letter] for letter in letters))
        new[node] = to_form(reshape(part, node.type.shape), node.type.form)
    if not new:
        return {}
    changed = body.with_nodes(substituted([*body.results, *body.checked], new))
    params: dict[str, Any] = {**loop.params, "body": graph_over(own, changed.results, changed)}
    return dict(zip(items(loop), items(make(loop.op, operands, **params)), strict=True))


def _parts(node: Node, index: Node, changing: Container[Node]) -> tuple[_Part, _Part] | None:
    """Return the two slices that a product multiplies, if the iteration only selects rows or columns and no sum is cut short, or None."""
    if node.op.kind != "contract" or not node.type.inexact or node not in changing:
        return None
    inputs, out = split(node["subscripts"])
    free = iter(letter for letter in LETTERS if letter not in node["subscripts"])
    found = [_part(a, letters, changing, free) for a, letters in zip(node.args, inputs, strict=True)]
    left, right = found
    if left is None or right is None or left.whole.type.dtype != right.whole.type.dtype:
        return None
    summed = set(inputs[0]) & set(inputs[1])
    one = False
    for part in (left, right):
        for letter, (start, length, step), extent in zip(part.letters, part.slices, part.whole.type.shape, strict=True):
            if letter in summed and (start, length, step) != (0, extent, 1):
                return None
            one |= letter not in node["subscripts"] and index in nodes_of(start)
    return (left, right) if one and not summed & set(out) else None


def _part(node: Node, letters: str, changing: Container[Node], free: Iterator[str]) -> _Part | None:
    """Return the slice of a constant array, or None; axes that an integer index has removed get letters of their own."""
    if node not in changing:
        return _Part(node, letters, tuple((0, s, 1) for s in node.type.shape))
    inner = node.args[0] if node.op is RESHAPE else node
    whole = inner.args[0] if inner.op is SLICE else inner
    if whole in changing or (inner.op is not SLICE and inner in changing):
        return None
    slices: tuple[Triple, ...] = inner["slices"] if inner.op is SLICE else tuple((0, s, 1) for s in whole.type.shape)
    shape, named, rest = list(node.type.shape), "", list(letters)
    for _, length, _ in slices:
        if shape and length == shape[0]:
            shape.pop(0)
            named += rest.pop(0)
        elif length == 1:
            named += next(free)
        else:
            return None
    return None if shape else _Part(whole, named, slices)


def _result(parts: Sequence[_Part], out: str) -> str:
    """Return the letters of the whole product: those not in an iteration's product come first."""
    summed = set(parts[0].letters) & set(parts[1].letters)
    return "".join(x for p in parts for x in p.letters if x not in summed and x not in out) + out


def _pays(node: Node, parts: Sequence[_Part], iterations: int) -> bool:
    """Return whether the whole product takes about as many operations as the parts that the iterations compute."""
    share, summed = 1.0, 1
    common = set(parts[0].letters) & set(parts[1].letters)
    for part in parts:
        for letter, (_, length, _), extent in zip(part.letters, part.slices, part.whole.type.shape, strict=True):
            whole = max(elements_of(extent), 1)
            if letter in common:
                summed = whole
                continue
            share *= 0.5 if nodes_of(length) else elements_of(length) / whole
    everything = prod(
        elements_of(s) for p in parts for x, s in zip(p.letters, p.whole.type.shape, strict=True) if x not in common
    )
    return everything * summed >= _LEAST and iterations * share * _MOST >= 1
