"""Rules of remainders: a function less the beginning of its series, logarithms near 1, a variance from its moments."""

# pyright: reportUnusedImport=false
# Rules of this theme that stand in files of their own are imported here.
from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from tensormagic.ir.facts import adds
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare, is_constant
from tensormagic.ops.fold import SUM, fold, spread
from tensormagic.ops.leaf import SIZE
from tensormagic.ops.move import reshape
from tensormagic.ops.pointwise import ASTYPE
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    arccosh,
    arcsinh,
    arctanh,
    divide,
    exp,
    isfinite,
    less,
    less_equal,
    log,
    log1mexp,
    log1p,
    logical_and,
    logical_or,
    multiply,
    negative,
    power,
    sqrt,
    square,
    subtract,
    where,
)
from tensormagic.transform.rewriting.notation import real, stable
from tensormagic.transform.rewriting.sums.difference import factors_apart, known
from tensormagic.transform.rewriting.sums.expansions import less_beginning
from tensormagic.transform.rewriting.sums.first_looks import OTHERS, SPECIAL
from tensormagic.transform.rewriting.sums.rationals import over_common
from tensormagic.transform.rewriting.sums.series import NAMED, Remainder, over_powers
from tensormagic.transform.rewriting.sums.terms import (
    Sum,
    behind,
    conjugates,
    key_of,
    logarithm_of,
    number_of,
    sum_of,
    written,
)
from tensormagic.transform.rewriting.themes.exponential_fractions import fractions_in_one_exponential  # noqa: F401 (as above)
from tensormagic.transform.rewriting.themes.largest_exponential import (  # noqa: F401 (as above)
    logarithms_of_sums_less_a_term,
    products_with_tails,
    quotients_by_tails,
)
from tensormagic.transform.rewriting.themes.near_one import UNITS, logarithms_near_one_of_all, near_one  # noqa: F401 (as above)
from tensormagic.transform.rewriting.themes.rises import (  # noqa: F401 (as above)
    powers_less_their_bases,
    powers_less_what_they_begin_with,
    quotients_by_rises,
    rise_from_one,
    weighted_exponentials_less_their_weights,
)
from tensormagic.transform.rewriting.themes.singular import (  # noqa: F401 (as above)
    angles_by_what_is_less_than_one,
    angles_less_right_angles,
    halves_of_logarithms,
    logarithms_of_lengths,
    roots_of_squares_less_a_number,
    squares_less_a_number,
)


@stable(roots="subtract add", within="where log", fuel=1, judged=True, cancels=True)
def deviances(node: Node) -> Found | None:
    """``x * log(x / y) - x + y -> x * (r - log1p(r)) for r = (y - x) / x, where x and y are near each other; for sums of such``."""
    if node.type.dtype.kind != "f" or not _times_logarithm(node, 3):
        return None
    total = rest = sum_of(node, text=True)
    values: list[Node] = []
    near: Node | None = None
    absorbed = [n for n in map(bare, node.args) if n.op in {add, subtract}]
    for key, product, times in total.terms:
        pair = None if isinstance(key, tuple) else _times_own_logarithm(bare(product))
        if pair is None:
            continue
        x, y, logarithm = pair
        difference = sum_of(y).minus(sum_of(x))
        rest = rest.minus(Sum(((key, product, times),), Fraction(0))).minus(difference.times(times))
        r = divide(difference.node(), x)
        series = less_beginning(sum_of(r - log1p(r)), node.type.dtype)
        if series is None:
            return None
        near = series.near if near is None else logical_and(near, series.near)
        values.append(series.value * x if times == 1 else series.value * x * float(times))
        absorbed += [bare(product), logarithm]
    if near is None or len(rest):
        return None
    left, right = node.args
    right = right if node.op is subtract else -right
    return Found(behind(near, reduce(add, values), left, right), absorbs=tuple(absorbed))


@stable(
    roots="subtract add",
    within=" ".join(sorted(NAMED.union(SPECIAL, OTHERS, ["where"]))),
    fuel=1,
    judged=True,
    cancels=True,
    extends="a value where a quotient within is 0 / 0 by rounding",
)
def remainders(node: Node) -> Found | None:
    """``x * cos(x) - sin(x) -> its series where x is near 0, for all sums of functions of one operand that cancel there``."""
    found = less_beginning(node, node.type.dtype) if node.type.dtype.kind == "f" else None
    if found is None:
        return None
    left, right = node.args
    right = right if node.op is subtract else -right
    return Found(behind(found.near, found.value, left, right), absorbs=_own(node, found))


def _own(node: Node, found: Remainder) -> tuple[Node, ...]:
    """Return those parts of which the sum avoids the rounding errors: a part that several terms share shows the same error in each.

    Nodes that only such shared parts read are left out, too.
    """
    every = {node, *found.parts, *found.within}
    readers: dict[Node, set[Node]] = {}
    for one in every:
        for arg in one.args:
            readers.setdefault(bare(arg), set()).add(one)
    hidden = set(found.within)
    for part in sorted(found.parts, key=lambda n: -n.serial):  # readers come before what they read
        above = readers.get(part, set())
        if (len(above) > 1 and len(part.args) == 1) or (above and above <= hidden):
            hidden.add(part)
    return tuple(p for p in found.parts if p not in hidden)


_ARITHMETIC = frozenset(("multiply", "divide", "negative", "add", "subtract"))


def _within(node: Node) -> Sequence[Node]:
    """Return the operands of a sum, product or quotient, or the sides of a written difference."""
    if node.op.name in _ARITHMETIC:
        return node.args
    return (written(node) or ()) if node.op.name == "where" else ()


@stable(roots="divide", heads="where", fuel=1, judged=True, extends="a value where both sides are rounded to 0")
def quotients_of_remainders(node: Node) -> Found | None:
    """``(x * cos(x) - sin(x)) / x**2 -> one series where x is near 0, which does not run under``."""
    form = bare(node.args[0])
    if form.op is not where or node.type.dtype.kind != "f" or written(form) is None:
        return None
    found = over_powers(form, node.args[1])
    if found is None:
        return None
    near = logical_and(found.near, less(0, absolute(found.parts[0])))
    return Found(where(near, found.value, form.args[2] / node.args[1]), absorbs=(form,))


# logarithms ------------------------------------------------------------------------------------------------------------


def _is_mean(x: Node, y: Node) -> bool:
    """Return whether a quotient is a sum divided by the number of its elements: the sum's rounding error is larger."""
    size = bare(y)
    size = bare(size.args[0]) if size.op is ASTYPE else size
    return bare(x).op is SUM and size.op is SIZE


@stable(roots="log log2 log10", fuel=1, judged=True, extends="0 where x and y are infinite and differ by a number")
def logarithms_of_quotients(node: Node) -> Found | None:
    """``log(x / y) -> log1p((x - y) / y) where x and y are near each other``."""
    function = next(f for f in UNITS if f is node.op)
    quotient = bare(node.args[0])
    negated = quotient.op is negative  # -expm1(x) makes quotients negated
    quotient = bare(quotient.args[0]) if negated else quotient
    if quotient.op is not divide or node.type.dtype.kind != "f" or any(map(is_constant, quotient.args)):
        return None
    x, y = quotient.args
    if _is_mean(x, y):
        return None
    y = negative(y) if negated else y
    first, second = sum_of(x, text=True), sum_of(y, text=True)
    total, rest = first.minus(second.times(-1)), first.minus(second)
    if not total.terms and total.number and rest.terms and not rest.number:
        odds = 2 * arctanh(Sum(tuple((k, n, t / total.number) for k, n, t in rest.terms), rest.number).node())
        return Found(_to_base(function, odds), absorbs=(quotient, *(n for n in map(bare, quotient.args) if n.args)))
    apart = factors_apart(x, y, 0) or known(x, y)
    if apart is not None and apart.rough:
        apart = over_common(x, y, known) or apart
    if apart is None and not negated and (both := near_one(quotient)) is not None:
        far = function(where(both.near, 1, quotient))
        return Found(where(both.near, _to_base(function, both.value), far), absorbs=(quotient, *both.parts))
    difference = x - y if apart is None else apart.value
    r = difference / y
    if (
        apart is None and function is log
    ):  # as far as a difference has no rounding error, as `x / y - 1` next to the logarithm has none there either
        near = logical_and(less_equal(-0.5, r), less_equal(r, 1))
    else:
        near = less(absolute(difference), absolute(y) * 0.5)
        near = near if apart is None or apart.near is None else logical_and(apart.near, near)
    ratio = node.args[0]
    far = function(where(near, 1, ratio))
    parts = (quotient, *(apart.parts if apart is not None else ()))
    return Found(where(near, _to_base(function, log1p(r)), far), absorbs=parts)


def _to_base(function: Any, natural: Node) -> Node:
    """Return a natural logarithm converted to the base of ``function``."""
    return natural if function is log else natural * UNITS[function]


@real(roots="sigmoid", assumes=("0 < x < 1",))
def logistic_functions_of_odds(node: Node) -> Node | None:
    """``sigmoid(log(x / (1 - x))) -> x``."""
    odds = logarithm_of(node.args[0])
    if odds is None or bare(odds).op is not divide:
        return None
    x, y = bare(odds).args
    total = sum_of(x).minus(sum_of(y).times(-1))
    return x if not total.terms and total.number == 1 else None


@stable(roots="log log2 log10", within="where", fuel=1, judged=True, extends="nan where u > 1 is rounded to 1")
def logarithms_beside_one(node: Node) -> Found | None:
    """``log(1 - u) -> log1p(-u) where the accurate form of 1 - u is not used, which is where u is small; and log(-(u - 1))``."""
    operand = bare(node.args[0])
    form = bare(operand.args[0]) if operand.op is negative else operand
    sides = written(form)
    if sides is None or node.type.dtype.kind != "f":
        return None
    one, u = sides if operand is form else sides[::-1]
    if number_of(bare(one)) != 1:
        return None
    rest = form.args[1] if operand is form else negative(form.args[1])
    near = form.args[0] if operand is form else logical_and(form.args[0], less(absolute(rest), 0.5))
    small = log1p(negative(where(near, 0, u)))
    small = small if node.op is log else small * UNITS[node.op]  # type: ignore[index]
    function = next(f for f in UNITS if f is node.op)
    value = where(near, function(where(near, rest, 1)), small)
    return Found(value, absorbs=(form, bare(form.args[2]), *(n for n in (operand, bare(u)) if n.args)))


_SUMS = frozenset((add, subtract, multiply, divide))
_SHOWN = 4.0
"""Up to this exponent a power amplifies the rounding of its base hardly more than its own."""
_LEAST = 16
"""From this integer exponent on a power of a sum with 1 shows that sum's rounding more than its own."""


@stable(roots="power", fuel=1, judged=True)
def powers_near_one(node: Node) -> Found | None:
    """``(1 + x) ** y -> exp(y * log1p(x)) where x is near 0``."""
    base, exponent = bare(node.args[0]), bare(node.args[1])
    sides = written(base)  # 1 - x / y has become a form
    if (base.op not in _SUMS and sides is None) or node.type.dtype.kind != "f":
        return None
    n = number_of(exponent)
    if n is not None and abs(n) < _LEAST:
        return None
    total = sum_of(base, text=sides is not None)
    x = rise_from_one(base) if total.number != 1 else Sum(total.terms, Fraction(0)).node() if total.terms else None
    if x is None:
        return None
    rise = node.args[1] * log1p(x)
    near = logical_and(less(absolute(x), 0.25), less(absolute(rise), _log_of_most(node.type.dtype)))
    if n is None:
        near = logical_and(near, less(_SHOWN, absolute(node.args[1])))
    own = (base, *(n for n in (bare(base.args[2]), *map(bare, sides)) if n.args)) if sides else (base,)
    return Found(where(near, exp(rise), power(where(near, 1, node.args[0]), node.args[1])), absorbs=own)


def _log_of_most(dtype: np.dtype[np.floating]) -> float:
    """Return the exponent above which exponentials overflow, where the text may still be finite."""
    return math.log(float(np.finfo(dtype).max))


def _ends_of_exponentials(dtype: np.dtype[np.floating]) -> tuple[float, float]:
    """Return the range of exponents in which exponentials neither overflow nor lose digits."""
    info = np.finfo(dtype)
    return math.log(float(info.tiny / info.eps)), _log_of_most(dtype)


def _quotient(node: Node) -> tuple[Node, Node] | None:
    """Return ``x`` and ``y`` if ``node`` is a form of ``log(x / y)``, or None."""
    sides = written(node)
    if sides is not None and all(bare(s).op is log for s in sides):
        return bare(sides[0]).args[0], bare(sides[1]).args[0]
    inner = bare(node)
    if inner.op is where:  # the accurate form of a logarithm of a quotient
        inner = bare(inner.args[2])
    if inner.op is not log:
        return None
    ratio = bare(inner.args[0])
    ratio = bare(ratio.args[2]) if ratio.op is where else ratio
    return ratio.args if ratio.op is divide else None  # type: ignore[return-value]


def _times_own_logarithm(product: Node) -> tuple[Node, Node, Node] | None:
    """Return ``x``, ``y`` and the logarithm if ``product`` is ``x * log(x / y)``, or None."""
    if product.op.name == "multiply":
        for x, logarithm in (product.args, product.args[::-1]):
            pair = _quotient(logarithm)
            if pair is not None and bare(pair[0]) is bare(x):
                return x, pair[1], bare(logarithm)
    return None


def _times_logarithm(node: Node, depth: int) -> bool:
    """Return whether one of the terms is a product with a logarithm, in any form."""
    level = [node]
    for _ in range(depth + 1):
        below: list[Node] = []
        for one in level:
            name = one.op.name
            if name in _TERMS:
                below += map(bare, _within(one))
            elif name == "multiply" and any(bare(a).op.name in _LOGARITHMS for a in one.args):
                return True
        if not below:
            break
        level = below
    return False


_LOGARITHMS = frozenset(("log", "where"))
_TERMS = frozenset(("add", "subtract", "where"))


def _exponents_apart(difference: Node) -> tuple[Node, Node] | None:
    """Return ``x`` and ``y`` if ``difference`` is the accurate form of ``exp(x) - exp(y)``, or None."""
    sides = written(difference)
    if sides is None or any(bare(s).op is not exp for s in sides):
        return None
    x, y = (bare(s).args[0] for s in sides)
    return x, y


@stable(roots="log", heads="where", fuel=1, judged=True, extends="a value where an exponential is infinite or 0")
def logarithms_of_large_differences(node: Node) -> Found | None:
    """``log(exp(x) - exp(y)) -> x + log1mexp(y - x) where exp(x) is infinite, or has lost digits at the other end``."""
    found = _exponents_apart(node.args[0])
    if found is None:
        return None
    x, y = found
    low, high = _ends_of_exponentials(node.type.dtype)
    far = logical_and(logical_or(less(high, x), logical_and(less(x, low), isfinite(x))), less(y, x))
    value = x + log1mexp(where(far, y - x, -1))
    return Found(where(far, value, log(where(far, 1, node.args[0]))), absorbs=(bare(node.args[0]),))


@real(roots="where", heads="log", fuel=1, assumes=("x > y",))
def logarithms_of_differences(node: Node) -> Found | None:
    """``log(exp(x) - exp(y)) -> x + log1mexp(y - x)``."""
    text = bare(node.args[2])
    inner = bare(text.args[0]) if text.op is log else None
    found = _exponents_apart(inner.args[2]) if inner is not None and inner.op is where else None
    if found is None:
        return None
    x, y = found
    return Found(x + log1mexp(y - x), absorbs=(text,))


def _with_root(node: Node) -> tuple[Node, Node] | None:
    """Return a root and the term added to it, if nothing cancels or the sum has become the form of a difference, or None."""
    whole = bare(node)
    if adds(whole):
        root, other = sorted(map(bare, whole.args), key=lambda a: a.op is not sqrt)
        return (root, other) if root.op is sqrt else None
    sides = written(whole)
    if sides is None or bare(sides[0]).op is not sqrt or bare(sides[1]).op is not negative:
        return None
    return bare(sides[0]), bare(sides[1]).args[0]


def _root_sum(node: Node, number: int) -> Found | None:
    """Return ``x`` if ``node`` is ``log(x + sqrt(x**2 + number))``, and what is absorbed, or None."""
    sides = _with_root(node.args[0])
    if sides is None or node.type.dtype.kind != "f":
        return None
    root, other = sides
    total = conjugates(root.args[0]) or sum_of(root.args[0])
    if total.number != number or len(total.terms) != 1:
        return None
    if total.terms[0][0] != ("square", bare(other)) or total.terms[0][2] != 1:
        return None
    return Found(other, absorbs=(bare(node.args[0]), root, bare(root.args[0])))


@stable(roots="log", fuel=1, extends="a value where x * x is infinite")
def inverse_sines(node: Node) -> Found | None:
    """``log(x + sqrt(x**2 + 1)) -> arcsinh(x)``."""
    found = _root_sum(node, 1)
    return found and Found(arcsinh(found.node), absorbs=found.absorbs)


@stable(roots="log", fuel=1, judged=True)
def inverse_cosines(node: Node) -> Found | None:
    """``log(x + sqrt(x**2 - 1)) -> arccosh(x), where x >= 1``."""
    found = _root_sum(node, -1)
    if found is None:
        return None
    outside = less(found.node, 1)
    value = where(outside, log(where(outside, node.args[0], 1)), arccosh(where(outside, 1, found.node)))
    return Found(value, absorbs=found.absorbs)


# moments --------------------------------------------------------------------------------------------------------------


def _mean(node: Node) -> tuple[Node, tuple[int, ...], Node] | None:
    """Return the summed node, its axes and the divisor if ``node`` is a mean, or None."""
    inner = bare(node)
    if inner.op is not divide:
        return None
    total, count_ = bare(inner.args[0]), bare(inner.args[1])
    while total.op.name == "reshape":
        total = bare(total.args[0])
    return (total.args[0], total["axes"], count_) if total.op is SUM and count_.op.name in {"astype", "size"} else None


@stable(roots="subtract", heads="divide square", fuel=1, judged=True, extends="a value where the squares are infinite")
def variances(node: Node) -> Found | None:
    """``mean(x**2) - mean(x)**2 -> mean((x - mean(x))**2)``."""
    first, second = (bare(a) for a in node.args)
    if second.op is not square or node.type.dtype.kind != "f":
        return None
    squares, mean = _mean(first), _mean(second.args[0])
    if squares is None or mean is None or squares[1:] != mean[1:]:
        return None
    x, axes, _ = mean
    if key_of(bare(squares[0])) != ("square", bare(x)) or not axes:
        return None
    centre = bare(second.args[0])
    moved = reshape(centre, bare(centre.args[0]).type.shape)
    total = fold(SUM, square(x - spread(moved, x, axes)), axes)
    value = divide(reshape(total, first.args[0].type.shape), first.args[1])
    return Found(value, absorbs=(first, second, bare(first.args[0]), bare(squares[0])))
