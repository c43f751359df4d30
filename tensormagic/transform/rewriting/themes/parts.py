"""Rules for partial reads: only the elements that are read get computed; transposes move outwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensormagic.ir.cost import elements
from tensormagic.ir.node import Node, make
from tensormagic.ir.size import Size, is_at_least, nodes_of
from tensormagic.ops.contract import CONTRACT, LETTERS, split
from tensormagic.ops.fold_kind import Fold, Row
from tensormagic.ops.leaf import CONSTANT, IOTA, size_of
from tensormagic.ops.move import (
    BROADCAST,
    RESHAPE,
    SLICE,
    TRANSPOSE,
    Slices,
    broadcast,
    concatenate,
    reshape,
    slice_,
    transpose,
)
from tensormagic.ops.pointwise import ASTYPE
from tensormagic.transform.rewriting.notation import exact, stable

ROUNDED = frozenset(
    (
        *(
            "add",
            "subtract",
            "multiply",
            "divide",
            "negative",
            "positive",
            "absolute",
            "square",
            "sqrt",
            "where",
            "astype",
        ),
        *("maximum", "minimum", "sign", "floor", "ceil", "trunc", "rint", "conjugate", "real", "imag", "copysign"),
        *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isnan", "isinf", "isfinite"),
        *("logical_and", "logical_or", "logical_not", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
    )
)
"""Functions that are rounded correctly: every loop of every library gives the same bits, wherever an element lies."""


def _smaller(node: Node) -> bool:
    """Return whether a slice is at most half of its array, by the sizes seen, and begins at a known place."""
    known = not any(nodes_of(s) for t in node["slices"] for s in t[:2])
    return known and 2 * elements(node) <= elements(node.args[0])


def part_of(x: Node, part: Slices) -> Node:
    """Return a slice of ``x``, taken below its broadcast if it is one."""
    if x.op is not BROADCAST:
        return slice_(x, part)
    inner = x.args[0]
    shape = inner.type.shape
    taken = tuple((0, 1, 1) if s == 1 else p for s, p in zip(shape, part[len(part) - len(shape) :], strict=True))
    return broadcast(slice_(inner, taken) if shape else inner, tuple(length for _, length, _ in part))


def _pointwise_part(node: Node, *, rounded: bool) -> Node | None:
    inner = node.args[0]
    if inner.op.kind != "pointwise" or (inner.op.name in ROUNDED) != rounded or not _smaller(node):
        return None
    if inner.op.name == "power" and inner.type.dtype.kind in "iu":  # raises for negative exponents
        return None
    return make(inner.op, [part_of(a, node["slices"]) for a in inner.args], **inner.params)


@exact(roots="slice", kinds="biufc", fuel=1, even=True)
def parts_of_arithmetic(node: Node) -> Node | None:
    """``(x + y)[part] -> x[part] + y[part], and for what is rounded correctly``."""
    return _pointwise_part(node, rounded=True)


@stable(roots="slice", kinds="biufc", fuel=1, even=True)
def parts_of_functions(node: Node) -> Node | None:
    """``exp(x)[part] -> exp(x[part]), and for all functions of elements``."""
    return _pointwise_part(node, rounded=False)


@exact(roots="slice", heads="transpose", fuel=1, even=True, quiet=True)
def parts_of_transposes(node: Node) -> Node | None:
    """``transpose(x)[part] -> transpose(x[part]) where x is computed``."""
    inner = node.args[0]
    if inner.op is not TRANSPOSE or getattr(inner.args[0].op, "kind", "") not in {"pointwise", "contract", "fold"}:
        return None
    order = inner["permutation"]
    part = tuple(node["slices"][order.index(k)] for k in range(len(order)))
    return transpose(slice_(inner.args[0], part), order) if _smaller(node) else None


@stable(roots="slice", heads="contract", fuel=1, even=True)
def parts_of_products(node: Node) -> Node | None:
    """``(x @ y)[part] -> x[part] @ y, and for the columns``."""
    product = node.args[0]
    if product.op is not CONTRACT or not _smaller(node):
        return None
    letters, out = split(product["subscripts"])
    taken = dict(zip(out, node["slices"], strict=True))
    args = [
        part_of(a, tuple(taken.get(c, (0, s, 1)) for c, s in zip(text, a.type.shape, strict=True)))
        for text, a in zip(letters, product.args, strict=True)
    ]
    return make(CONTRACT, args, subscripts=product["subscripts"])


@stable(roots="contract", kinds="biufc", fuel=1, even=True)
def units_of_products(node: Node) -> Node | None:
    """``x[:1] @ y -> (x[0] @ y)[None], and for stacks of one matrix``."""
    letters, out = split(node["subscripts"])
    gone = {c for c, s in zip(out, node.type.shape, strict=True) if s == 1}
    texts = ["".join(c for c in text if c not in gone) for text in (*letters, out)]
    if not gone or not set(texts[0]) & set(texts[1]):
        return None
    args = [
        reshape(a, tuple(s for c, s in zip(text, a.type.shape, strict=True) if c not in gone))
        for text, a in zip(letters, node.args, strict=True)
    ]
    return reshape(contraction(texts[:2], texts[2], args), node.type.shape)


def contraction(inputs: Sequence[str], out: str, args: Sequence[Node]) -> Node:
    """Return a contraction with its letters named in order of appearance."""
    names = dict(zip(dict.fromkeys("".join(inputs)), LETTERS, strict=False))
    left, right, result = ("".join(names[c] for c in letters) for letters in (*inputs, out))
    return make(CONTRACT, args, subscripts=f"{left},{right}->{result}")


def _fold_part(node: Node, names: Sequence[str]) -> Node | None:
    inner = node.args[0]
    if inner.op.name not in names or not _smaller(node):
        return None
    x, axes = inner.args[0], inner["axes"]
    if not all(is_at_least(x.type.shape[k], 1) for k in axes):  # an empty fold may have no value
        return None
    own = iter(node["slices"])
    whole = isinstance(inner.op, Row)
    part: list[tuple[Size, Size, int]] = []
    for k, s in enumerate(x.type.shape):
        if not whole and k in axes:
            part.append((0, s, 1))
            continue
        part.append(next(own))
        if k in axes and part[-1] != (0, s, 1):
            return None
    return make(inner.op, (part_of(x, tuple(part)),), **inner.params)


@exact(roots="slice", kinds="biufc", fuel=1, even=True)
def parts_of_extremes(node: Node) -> Node | None:
    """``max(x, 1)[part] -> max(x[part], 1), and for min, any, all, argmax, argmin and running extremes``."""
    return _fold_part(node, ("max", "min", "any", "all", "argmax", "argmin", "cummax", "cummin"))


@stable(roots="slice", kinds="biufc", fuel=1, even=True)
def parts_of_sums(node: Node) -> Node | None:
    """``sum(x, 1)[part] -> sum(x[part], 1), and for prod, logsumexp, cumulative sums and softmax``."""
    return _fold_part(node, ("sum", "prod", "logsumexp", "cumsum", "cumprod", "softmax", "log_softmax"))


# transposes -----------------------------------------------------------------------------------------------------------


@exact(kinds="biufc", roots="", heads="transpose", even=True)
def transposes_outwards(node: Node) -> Node | None:
    """``exp(transpose(x)) -> transpose(exp(x)), and for functions of several, all transposed alike``."""
    if node.op.kind != "pointwise":
        return None
    orders = {a["permutation"] for a in node.args if a.op is TRANSPOSE}
    if len(orders) != 1 or any(a.op is not TRANSPOSE and not _uniform(a) for a in node.args):
        return None
    (order,) = orders
    shape = tuple(node.type.shape[order.index(k)] for k in range(len(order)))
    args = [a.args[0] if a.op is TRANSPOSE else broadcast(a.args[0], shape) for a in node.args]
    params: dict[str, Any] = dict(node.params)
    return transpose(make(node.op, args, **params), order)


def _uniform(x: Node) -> bool:
    return x.op is BROADCAST and not x.args[0].type.shape


def _untransposed(node: Node) -> Node | None:
    x = node.args[0]
    if x.op is not TRANSPOSE or isinstance(node.op, Row) or not isinstance(node.op, Fold):
        return None
    order = x["permutation"]
    axes = tuple(sorted(order[k] for k in node["axes"]))
    left = [order[k] for k in range(len(order)) if k not in node["axes"]]
    ranks = sorted(left)
    params: dict[str, Any] = {**node.params, "axes": axes}
    found = make(node.op, (x.args[0],), **params)
    return transpose(found, tuple(ranks.index(k) for k in left))


@exact(roots="max min any all", kinds="biuf", heads="transpose", even=True)
def extremes_of_transposes(node: Node) -> Node | None:
    """``max(transpose(x), 0) -> max(x, 1), and for min, any and all``."""
    return _untransposed(node)


@stable(roots="sum prod logsumexp", heads="transpose", even=True)
def sums_of_transposes(node: Node) -> Node | None:
    """``sum(transpose(x), 0) -> sum(x, 1), and for prod and logsumexp``."""
    return _untransposed(node)


# places ---------------------------------------------------------------------------------------------------------------


def _ramp(node: Node) -> tuple[Size, Size] | None:
    """Return first value and step of indices that form an arithmetic progression along their only axis (step 0: one number), or None."""
    while node.op in {ASTYPE, BROADCAST, RESHAPE} and node.args[0].type.dtype.kind == "i":
        if node.op is not ASTYPE and node.args[0].type.shape and node.args[0].type.size not in {1, node.type.size}:
            return None
        node = node.args[0]
    if node.type.dtype.kind != "i" or sum(s != 1 for s in node.type.shape) > 1:
        return None
    if node.op is IOTA:
        return 0, int(node.type.shape[node["axis"]] != 1)
    if not node.type.shape:
        size = int(node["bits"].array()) if node.op is CONSTANT else size_of(node)
        return None if size is None else (size, 0)
    if node.op is SLICE and node.type.ndim == 1 and (found := _ramp(node.args[0])) is not None:
        ((first, _, by),) = node["slices"]
        return found[0] + found[1] * first, found[1] * by
    return _combined(node) if node.op.name in {"add", "subtract", "multiply"} else None


def _combined(node: Node) -> tuple[Size, Size] | None:
    """Return first value and step of a sum, difference or multiple of such indices, or None."""
    first, second = (_ramp(a) for a in node.args)
    if first is None or second is None:
        return None
    if node.op.name == "multiply":
        if first[1] != 0:
            first, second = second, first
        return None if first[1] != 0 else (first[0] * second[0], first[0] * second[1])
    sign = 1 if node.op.name == "add" else -1
    return first[0] + sign * second[0], first[1] + sign * second[1]


@exact(roots="gather", kinds="biufc", even=True)
def slices_by_indices(node: Node) -> Node | None:
    """``x[arange(n) + a] -> x[a:a + n], in bounds``."""
    x, places = node.args
    found, axis = _ramp(places), node["axis"]
    if found is None or not places.type.shape:
        return None
    (start, step), length = found, places.type.size
    if not isinstance(step, int) or step == 0 or (x.op is RESHAPE and abs(step) > 1):  # may be a diagonal
        return None
    last = start + (length - 1) * step
    low, high = (start, last) if step > 0 else (last, start)
    if not (is_at_least(length, 1) and is_at_least(low, 0) and is_at_least(x.type.shape[axis] - 1 - high, 0)):
        return None
    part = slice_(x, tuple((start, length, step) if k == axis else (0, s, 1) for k, s in enumerate(x.type.shape)))
    return reshape(part, node.type.shape)


@exact(roots="concatenate", kinds="biufc", fuel=1, even=True)
def joined_equals(node: Node) -> Node | None:
    """``concatenate([zeros(m), zeros(n)]) -> zeros(m + n), and concatenate([x, x]) -> x, stretched``."""
    first, axis = node.args[0], node["axis"]
    if all(_uniform(a) and a.args[0] is first.args[0] for a in node.args):
        return broadcast(first.args[0], node.type.shape)
    if len(node.args) < 2 or any(a is not first for a in node.args):
        return None
    shape = first.type.shape
    row = reshape(first, (*shape[:axis], 1, *shape[axis:]))
    return reshape(broadcast(row, (*shape[:axis], len(node.args), *shape[axis:])), node.type.shape)


@stable(roots="concatenate", heads="contract", even=True)
def joined_products(node: Node) -> Node | None:
    """``concatenate([a @ x, a @ y], 1) -> a @ concatenate([x, y], 1), and on the left``."""
    first, axis = node.args[0], node["axis"]
    if len(node.args) < 2 or any(a.op is not CONTRACT or a["subscripts"] != first["subscripts"] for a in node.args):
        return None
    letters, out = split(first["subscripts"])
    for k in (0, 1):
        side, letter = letters[1 - k], out[axis]
        if letter in letters[k] or letter not in side or any(a.args[k] is not first.args[k] for a in node.args):
            continue
        joined = concatenate([a.args[1 - k] for a in node.args], side.index(letter))
        args = (first.args[0], joined) if k == 0 else (joined, first.args[1])
        return make(CONTRACT, args, subscripts=first["subscripts"])
    return None
