"""Rules of folds: chains, folds of what does not vary, and the row functions that do not overflow."""

from __future__ import annotations

from tensormagic.ir.facts import not_negative
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import is_constant, plain
from tensormagic.ir.size import is_at_least
from tensormagic.ir.type import lower_bound
from tensormagic.ops.contract import LETTERS, einsum
from tensormagic.ops.fold import (
    LOG_SOFTMAX,
    LOGSUMEXP,
    MAX,
    MIN,
    PROD,
    SOFTMAX,
    SUM,
    Fold,
    fold,
    row,
    spread,
    whole_softmax,
)
from tensormagic.ops.fold_kind import count
from tensormagic.ops.leaf import constant, constant_value, size_node
from tensormagic.ops.move import BROADCAST, RESHAPE, broadcast, expand_dims, reshape, squeezes
from tensormagic.ops.pointwise import Pointwise, astype
from tensormagic.ops.scalars.scalar import (
    add,
    divide,
    exp,
    expm1,
    isfinite,
    less,
    log,
    log1p,
    logical_and,
    multiply,
    negative,
    power,
    square,
    subtract,
    where,
)
from tensormagic.transform.rewriting.notation import exact, real, stable

Axes = tuple[int, ...]


def spread_of(node: Node) -> tuple[Node, Axes] | None:
    """Return the operand of a broadcast and the stretched axes, the inverse of ``spread``, or None."""
    if node.op is not BROADCAST:
        return None
    inner, target = node.args[0], node.type.shape
    source = (1,) * (len(target) - inner.type.ndim) + inner.type.shape
    axes = tuple(k for k, (s, t) in enumerate(zip(source, target, strict=True)) if s == 1 and t != 1)
    kept = tuple(t for k, t in enumerate(target) if k not in axes)
    if inner.op is RESHAPE and inner.args[0].type.shape == kept:
        inner = inner.args[0]
    return (inner, axes) if inner.type.shape == kept else None


def _merged(node: Node) -> Axes:
    """Return the axes of two consecutive folds, as axes of the first one's operand."""
    first = node.args[0]["axes"]
    left = [k for k in range(node.args[0].args[0].type.ndim) if k not in first]
    return tuple(sorted((*first, *(left[k] for k in node["axes"]))))


def _chain(node: Node) -> Node | None:
    inner = node.args[0]
    return fold(node.op, inner.args[0], _merged(node)) if inner.op is node.op else None  # type: ignore[arg-type]


@exact(roots="max min any all", kinds="biuf")
def extremes_of_extremes(node: Node) -> Node | None:
    """``max(max(x, axes), axes) -> max(x, axes), and for min, any and all``."""
    return _chain(node)


@stable(roots="sum prod", neutral=True)
def sums_of_sums(node: Node) -> Node | None:
    """``sum(sum(x, axes), axes) -> sum(x, axes), and for prod``."""
    return _chain(node)


@exact(roots="sum prod max min any all")
def axes_of_one(node: Node) -> Node | None:
    """``sum over axes of extent 1 -> reshape, and for prod, max, min, any and all``."""
    x = node.args[0]
    if not x.type.shape or any(x.type.shape[k] != 1 for k in node["axes"]) or x.type.dtype != node.type.dtype:
        return None
    found = reshape(x, node.type.shape)
    begins = node.op is SUM and node.type.inexact  # a sum begins at 0, to which -0 is added
    return add(found, constant(node.type.dtype.type(0))) if begins else found


@exact(roots="max min any all", heads="broadcast")
def extremes_of_equals(node: Node) -> Node | None:
    """``max(broadcast(x)) -> x over the axes that are stretched, and for min, any and all``."""
    found = _stretched(node)
    return None if found is None or found.type.dtype != node.type.dtype else found


def _of_stretched(node: Node) -> Node | None:
    """Return a fold along axes that are not stretched, taken before the broadcast, or None."""
    found = spread_of(node.args[0])
    if found is None or set(node["axes"]) & set(found[1]):
        return None
    x, stretched = found
    own = [k for k in range(node.args[0].type.ndim) if k not in stretched]
    inner = fold(node.op, x, tuple(own.index(k) for k in node["axes"]))  # type: ignore[arg-type]
    rest = [k for k in range(node.args[0].type.ndim) if k not in node["axes"]]
    return broadcast(expand_dims(inner, tuple(rest.index(k) for k in stretched)), node.type.shape)


@exact(roots="max min any all argmax argmin", heads="broadcast")
def extremes_of_stretched(node: Node) -> Node | None:
    """``max(broadcast(x), axis) -> broadcast(max(x, axis)) where the axis is not stretched, and for min, any and all``."""
    return _of_stretched(node) if len(node["axes"]) == 1 or not node.op.name.startswith("arg") else None


@stable(roots="sum prod logsumexp", heads="broadcast", neutral=True)
def sums_of_stretched(node: Node) -> Node | None:
    """``sum(broadcast(x), axis) -> broadcast(sum(x, axis)) where the axis is not stretched, and for prod and logsumexp``."""
    return _of_stretched(node)


@stable(roots="sum", heads="broadcast", neutral=True)
def sums_of_equals(node: Node) -> Node | None:
    """``sum(broadcast(x)) -> x * n over the axes that are stretched``."""
    x = _stretched(node)
    if x is None or node.type.dtype.kind not in "iuf":
        return None
    n = astype(size_node(count(node.args[0], node["axes"])), node.type.dtype)
    return multiply(astype(x, node.type.dtype), n)


def _stretched(node: Node) -> Node | None:
    """Return the value that a fold repeats, if all its axes are stretched and known not to be empty, or None."""
    found = spread_of(node.args[0])
    if found is None or not all(is_at_least(node.args[0].type.shape[k], 1) for k in node["axes"]):
        return None
    x, axes = found
    if not set(node["axes"]) <= set(axes):
        return None
    rest = [k for k in range(node.args[0].type.ndim) if k not in node["axes"]]
    return broadcast(expand_dims(x, tuple(rest.index(k) for k in axes if k in rest)), node.type.shape)


@stable(roots="sum", heads="negative", neutral=True)
def signs_outwards(node: Node) -> Node | None:
    """``sum(-x) -> -sum(x)``."""
    return _sign_before(node, SUM)


@stable(roots="max", heads="negative", neutral=True)
def sign_before_max(node: Node) -> Node | None:
    """``max(-x) -> -min(x)``."""
    return _sign_before(node, MIN)


@stable(roots="min", heads="negative", neutral=True)
def sign_before_min(node: Node) -> Node | None:
    """``min(-x) -> -max(x)``."""
    return _sign_before(node, MAX)


def _sign_before(node: Node, turned: Fold) -> Node | None:
    x = node.args[0].args[0] if node.args[0].op is negative else None
    if x is None or x.type.dtype.kind != "f" or x.type.dtype != node.type.dtype:
        return None
    return negative(fold(turned, x, node["axes"]))


@real(roots="sum", heads="multiply")
def factors_outwards(node: Node) -> Node | None:
    """``sum(x * s) -> s * sum(x) where s does not vary along the axes``."""
    return _factor_out(node, multiply)


@real(roots="sum", heads="divide")
def divisors_outwards(node: Node) -> Node | None:
    """``sum(x / s) -> sum(x) / s where s does not vary along the axes``."""
    return _factor_out(node, divide)


def _factor_out(node: Node, op: Pointwise) -> Node | None:
    product = node.args[0]
    if product.op is not op or product.type.dtype.kind != "f":
        return None
    x, s = product.args
    for first, second in ((x, s), (s, x)) if op is multiply else ((x, s),):
        found = spread_of(second)
        if found is not None and set(node["axes"]) <= set(found[1]):
            rest = [k for k in range(product.type.ndim) if k not in node["axes"]]
            factor = expand_dims(found[0], tuple(rest.index(k) for k in found[1] if k in rest))
            return op(fold(SUM, first, node["axes"]), factor)
    return None


@real(roots="prod", heads="multiply", fuel=1, even=True)
def factors_of_products(node: Node) -> Node | None:
    """``prod(x * s) -> prod(x) * s ** n where s does not vary along the axes``."""
    product = node.args[0]
    if product.op is not multiply or product.type.dtype.kind != "f":
        return None
    for first, second in (product.args, product.args[::-1]):
        found = spread_of(second)
        if found is not None and set(node["axes"]) <= set(found[1]):
            rest = [k for k in range(product.type.ndim) if k not in node["axes"]]
            factor = expand_dims(found[0], tuple(rest.index(k) for k in found[1] if k in rest))
            n = astype(size_node(count(product, node["axes"])), node.type.dtype)
            return multiply(fold(PROD, first, node["axes"]), power(factor, n))
    return None


@real(roots="sum", fuel=1, even=True)
def sums_of_outer_products(node: Node) -> Node | None:
    """``sum(x[:, None] * y, 1) -> x * sum(y), and as a contraction where both vary: no array of all pairs``."""
    product = node.args[0]
    squared = product.op is square
    product = plain(product.args[0]) if squared else product
    if product.op is not multiply or product.type.dtype.kind != "f" or product.type.shape != node.args[0].type.shape:
        return None
    parts = [_varying(a) for a in product.args]
    kept = [k for k in range(product.type.ndim) if k not in node["axes"]]
    if all(len(axes) == product.type.ndim for _, axes in parts):
        return None
    if {*parts[0][1], *parts[1][1]} != set(range(product.type.ndim)):
        return None
    args = [square(x) if squared else x for x, _ in parts]
    texts = ["".join(LETTERS[k] for k in axes) for _, axes in parts]
    shared = set(texts[0]) & set(texts[1]) - {LETTERS[k] for k in kept}
    if shared:
        return einsum(f"{','.join(texts)}->{''.join(LETTERS[k] for k in kept)}", *args)
    sums = []
    for x, (_, axes) in zip(args, parts, strict=True):
        total = fold(SUM, x, own) if (own := tuple(k for k, a in enumerate(axes) if a not in kept)) else x
        missing = tuple(k for k, a in enumerate(kept) if a not in axes)
        sums.append(broadcast(expand_dims(total, missing), node.type.shape))
    return multiply(*sums)


def _varying(x: Node) -> tuple[Node, Axes]:
    """Return the operand of a broadcast without axes of extent 1, and the axes of ``x`` along which it varies."""
    if x.op is not BROADCAST:
        return x, tuple(range(x.type.ndim))
    inner = x.args[0]
    first = x.type.ndim - inner.type.ndim
    axes = tuple(first + k for k, s in enumerate(inner.type.shape) if s != 1)
    return reshape(inner, tuple(s for s in inner.type.shape if s != 1)), axes


# rows -----------------------------------------------------------------------------------------------------------------


def _exponents(node: Node) -> tuple[Node, Axes] | None:
    """Return ``v`` and the axes of ``sum(exp(v), axes)`` of real floats, or None."""
    if node.op is not SUM or node.args[0].op is not exp or node.type.dtype.kind != "f":
        return None
    v = node.args[0].args[0]
    return (v, node["axes"]) if _filled(v, node["axes"]) else None


def _filled(x: Node, axes: Axes) -> bool:
    """Return whether the axes are known to be nonempty: the maximum of nothing is an error, its sum 0."""
    return all((lower_bound(x.type.shape[k]) or 0) >= 1 for k in axes)


def _below(node: Node) -> Node:
    """Return the operand of a reshape that adds axes of extent 1, else ``node``."""
    return node.args[0] if node.op is RESHAPE and squeezes(node) else node


def _row_sum(divisor: Node, e: Node) -> Axes | None:
    """Return the axes if ``divisor`` is ``sum(e, axes)`` broadcast to ``e``, or None."""
    found = spread_of(divisor)
    if found is None or found[0].op is not SUM or found[0].args[0] is not e or found[0]["axes"] != found[1]:
        return None
    return found[1] if _filled(e, found[1]) else None


@stable(roots="log", heads="")
def logarithms_of_sums(node: Node) -> Node | None:
    """``log(sum(exp(v), axes)) -> logsumexp(v, axes)``."""
    found = _exponents(_below(node.args[0]))
    return None if found is None else reshape(fold(LOGSUMEXP, *found), node.type.shape)


def _is_count(n: Node, x: Node, axes: Axes) -> bool:
    """Return whether ``n`` is the number of elements of ``x`` along the axes."""
    size, own = count(x, axes), plain(n)
    if isinstance(size, int):
        value = constant_value(own)
        return value is not None and bool(value == size)
    return own is astype(size_node(size), own.type.dtype)


@stable(roots="log", heads="divide", fuel=1, judged=True)
def logarithms_of_means_by_rises(node: Node) -> Node | None:
    """``log(mean(exp(v), axes)) -> log1p(mean(expm1(v), axes)) where the mean is not small, and else logsumexp(v, axes) - log(n)``."""
    scaled = node.args[0]
    found = _exponents(_below(scaled.args[0])) if scaled.op is divide else None
    if found is None or not _is_count(scaled.args[1], *found):
        return None
    total = reshape(fold(LOGSUMEXP, *found), node.type.shape) - log(scaled.args[1])
    rise = reshape(fold(SUM, expm1(found[0]), found[1]), node.type.shape) / scaled.args[1]
    near = logical_and(less(-0.5, total), isfinite(rise))
    return where(near, log1p(where(near, rise, 0)), total)


@stable(roots="log", heads="")
def logarithms_of_means(node: Node) -> Node | None:
    """``log(sum(exp(v), axes) / n) -> logsumexp(v, axes) - log(n) where n is a count or a positive number, and for a factor``."""
    scaled = node.args[0]
    if scaled.op is divide:
        found = _exponents(_below(scaled.args[0])) if not_negative(plain(scaled.args[1])) else None
        return None if found is None else reshape(fold(LOGSUMEXP, *found), node.type.shape) - log(scaled.args[1])
    for total, scale in (scaled.args, scaled.args[::-1]) if scaled.op is multiply else ():
        found = _exponents(_below(total)) if is_constant(scale) and not_negative(plain(scale)) else None
        if found is not None:
            return reshape(fold(LOGSUMEXP, *found), node.type.shape) + log(scale)
    return None


@stable(
    roots="divide",
    heads="exp broadcast",
    extends="a value where exp(v) overflows or is 0 everywhere",
)
def softmaxes(node: Node) -> Node | None:
    """``exp(v) / sum(exp(v), axes) -> softmax(v, axes)``."""
    e, divisor = node.args
    axes = _row_sum(divisor, e) if e.op is exp else None
    return row(SOFTMAX, e.args[0], axes) if axes is not None and node.type.dtype.kind == "f" else None


@stable(
    roots="multiply",
    heads="exp",
    extends="a value where exp(v) overflows or is 0 everywhere",
)
def softmaxes_by_factor(node: Node) -> Node | None:
    """``exp(v) * (y / sum(exp(v), axes)) -> softmax(v, axes) * y``."""
    for e, factor in (node.args, node.args[::-1]):
        found = spread_of(factor)
        if found is None or e.op is not exp or found[0].op is not divide or node.type.dtype.kind != "f":
            continue
        (quotient, axes) = found
        total = quotient.args[1]
        if total.op is SUM and total.args[0] is e and total["axes"] == axes:
            return multiply(row(SOFTMAX, e.args[0], axes), spread(quotient.args[0], e, axes))
    return None


@stable(roots="softmax log_softmax", heads="subtract", extends="-inf beside an infinity, for log_softmax")
def shifts(node: Node) -> Node | None:
    """``softmax(v - max(v, axes), axes) -> softmax(v, axes), and for log_softmax``."""
    difference = node.args[0]
    found = spread_of(difference.args[1]) if difference.op is subtract else None
    if found is None or found[0].op is not MAX or found[0].args[0] is not difference.args[0]:
        return None
    if not found[0]["axes"] == node["axes"] == found[1]:
        return None
    v, axes = found[0].args[0], node["axes"]
    return whole_softmax(v, axes) if node.op is SOFTMAX else row(LOG_SOFTMAX, v, axes)


OF_ROWS = frozenset((*softmaxes, *softmaxes_by_factor, *shifts))
"""Those of these rules that change a row's result only if one of its exponentials overflows or underflows."""


@stable(roots="log", heads="softmax", extends="-inf beside an infinity, where the largest element was subtracted")
def logarithms_of_softmaxes(node: Node) -> Node | None:
    """``log(softmax(v)) -> log_softmax(v)``."""
    inner = node.args[0]
    return row(LOG_SOFTMAX, inner.args[0], inner["axes"]) if inner.op is SOFTMAX else None


@stable(roots="exp", heads="log_softmax")
def exponentials_of_log_softmaxes(node: Node) -> Node | None:
    """``exp(log_softmax(v)) -> softmax(v)``."""
    inner = node.args[0]
    return row(SOFTMAX, inner.args[0], inner["axes"]) if inner.op is LOG_SOFTMAX else None


@stable(roots="subtract", heads="logsumexp")
def log_softmaxes(node: Node) -> Node | None:
    """``v - logsumexp(v, axes) -> log_softmax(v, axes)``."""
    v, total = node.args
    found = spread_of(total)
    if found is None or found[0].op is not LOGSUMEXP or found[0].args[0] is not v or found[0]["axes"] != found[1]:
        return None
    return row(LOG_SOFTMAX, v, found[1])


@stable(roots="add", heads="logsumexp max", extends="a value where v has an infinity")
def shifted_logsumexps(node: Node) -> Node | None:
    """``logsumexp(v - max(v, axes), axes) + max(v, axes) -> logsumexp(v, axes)``."""
    for total, top in (node.args, node.args[::-1]):
        if total.op is not LOGSUMEXP or total.args[0].op is not subtract or top.op is not MAX:
            continue
        v, shift = total.args[0].args
        found = spread_of(shift)
        if found is not None and found[0] is top and top.args[0] is v and found[1] == top["axes"] == total["axes"]:
            return fold(LOGSUMEXP, v, total["axes"])
    return None


@real(roots="prod", heads="exp")
def products_of_exponentials(node: Node) -> Node | None:
    """``prod(exp(v), axes) -> exp(sum(v, axes))``."""
    inner = node.args[0]
    return exp(fold(SUM, inner.args[0], node["axes"])) if inner.op is exp else None


@real(roots="log", heads="prod", assumes=("the factors are positive",), fuel=1)
def logarithms_of_folded_products(node: Node) -> Node | None:
    """``log(prod(x, axes)) -> sum(log(x), axes)``."""
    inner = node.args[0]
    return fold(SUM, log(inner.args[0]), inner["axes"]) if inner.op is PROD and inner.type.dtype.kind == "f" else None
