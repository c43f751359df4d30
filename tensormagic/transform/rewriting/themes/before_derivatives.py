"""Other forms of sums that cancel, for use before a derivative is taken: the value gets its accurate form afterwards, with the derivative.

The derivative of ``x**2 - y**2`` is ``2 * x`` for the one and ``-2 * y`` for the other: nothing cancels in it. That of the accurate form,
``(x - y) * (x + y)``, is ``(x - y) + (x + y)``, which has no digit of ``x`` where ``y`` is large. So sums that cancel are rewritten where
their sides change together. And a form that is divided by something is divided on each side, so that its slope has one sum for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tensormagic.ir.node import Node, is_constant, topological
from tensormagic.ir.rewriting.rules import Found, Rule, bare
from tensormagic.ir.rewriting.within import ops_within, within
from tensormagic.ops.move import BROADCAST
from tensormagic.ops.scalars.scalar import (
    absolute,
    add,
    divide,
    expm1,
    less,
    log1p,
    logical_and,
    multiply,
    not_equal,
    subtract,
    where,
)
from tensormagic.transform.rewriting.notation import exact, stable
from tensormagic.transform.rewriting.sums.common_factors import factors_of
from tensormagic.transform.rewriting.sums.divided import over
from tensormagic.transform.rewriting.sums.series import NAMED
from tensormagic.transform.rewriting.sums.terms import number_of, written
from tensormagic.transform.rewriting.sums.vanishing_quotients import beside_what_grows, one_series
from tensormagic.transform.rewriting.themes.explog import cosines, hyperbolic_cosines
from tensormagic.transform.rewriting.themes.singular import roots_of_squares_less_a_number

_MOST = 64
"""How many nodes of a side are searched; larger sides count as dependent on everything."""


def before_slopes(rules: Iterable[Rule]) -> Iterator[Rule]:
    """Yield the rules that are used before a derivative is taken."""
    for rule in rules:
        if rule in _OF_VALUES:
            continue
        yield _dependent(rule) if rule.cancels else rule
    yield from quotients_that_vanish
    yield from quotients_of_forms
    yield from quotients_of_logarithms
    yield from exponents_that_are_quotients
    yield from functions_beside_quotients
    yield from forms_beside_quotients


def _dependent(rule: Rule) -> Rule:
    """Return the rule, restricted to sums whose sides share an input, or have a number as one side."""

    def apply(node: Node) -> Found | None:
        found = rule.apply(node)
        return None if found is None or _independent(node) else found

    return replace(rule, apply=apply)


def _independent(node: Node) -> bool:
    left, *right = map(_inputs, node.args)
    return bool(left) and all(bool(r) and left.isdisjoint(r) for r in right)


def _inputs(node: Node) -> set[Node]:
    """Return the inputs that ``node`` depends on; empty if there are too many nodes to look through."""
    seen, stack, found = {node}, [node], set[Node]()
    while stack:
        one = stack.pop()
        if not one.needs and not is_constant(one):
            found.add(one)
        below = [n for n in one.needs if n not in seen]
        seen.update(below)
        stack += below
        if len(seen) > _MOST:
            return set()
    return found


_OF_VALUES = frozenset((*cosines, *hyperbolic_cosines, *roots_of_squares_less_a_number))
"""Rules for values only: ``1 - cos(x)`` has the derivative ``sin(x)``, which needs no form; that of its form is a product."""


@stable(
    roots="divide multiply",
    within=" ".join(sorted(NAMED.union(("where", "power")))),
    fuel=1,
    judged=True,
    extends="a value where both sides are rounded to 0",
)
def quotients_that_vanish(node: Node) -> Found | None:
    """``x**2 / (cosh(x) - 1) -> one series where x is near 0, for all quotients of what vanishes together``."""
    found = one_series(node) if node.type.dtype.kind == "f" else None
    if found is None:
        return None
    near = found.near  # written so that no rule rewrites the quotient again
    return Found(where(near, found.value, _same(node, node.args[0], where(near, 1, node.args[1]))))


@stable(roots="multiply", fuel=1, judged=True)
def products_with_what_grows(node: Node) -> Found | None:
    """``y * log1p(x / y) -> x * log1p(r) / r for r = x / y, where that is near 0, for all functions of what is divided by a factor``."""
    found = beside_what_grows(node)
    if found is None:
        return None
    near = found.near
    return Found(where(near, found.value, node.args[0] * where(near, 1, node.args[1])))


def with_what_grows(nodes: Sequence[Node]) -> Rule | None:
    """Return ``products_with_what_grows`` for those products of a graph that are no sides of a form, or None if it applies to none.

    Sides of forms have slopes of their own.
    """
    order = topological(nodes)
    forms = [sides for n in order if n.op is where and (sides := written(n)) is not None]
    left = {bare(side) for sides in forms for side in sides}
    found: dict[Node, Found] = {}
    (rule,) = products_with_what_grows
    for node in reversed(order):
        if node.op is multiply and node not in left and within(node) & _DIVIDED and node.type.dtype.kind == "f":
            one = rule.apply(node)
            if one is not None:
                found[node] = one
                left.update(factors_of(node).within)
    return replace(rule, apply=found.get) if found else None


_DIVIDED = ops_within(("divide",))


def _same(node: Node, first: Node, second: Node) -> Node:
    """Return the product or the quotient of two nodes, whichever ``node`` is."""
    return first / second if node.op is divide else first * second


@exact(roots="where", heads="divide multiply", quiet=True)
def quotients_as_they_were(node: Node) -> Node | None:
    """``where(c, x, y / where(c, 1, z)) -> where(c, x, y / z)``, so that rules see what the quotients in a derivative are of."""
    text = bare(node.args[2])
    below = bare(text.args[1]) if text.op in {divide, multiply} else text
    if below.op is not where or bare(below.args[0]) is not bare(node.args[0]) or number_of(bare(below.args[1])) != 1:
        return None
    return where(*node.args[:2], _same(text, text.args[0], below.args[2]))


@stable(roots="divide", fuel=1, judged=True)
def quotients_of_forms(node: Node) -> Found | None:
    """``(sqrt(1 + x) - 1) / x -> 1 / (sqrt(1 + x) + 1) near 0, and all forms of differences, and multiples, divided on each side``."""
    form, factor = _form_and_factor(node) if node.type.dtype.kind == "f" else (None, None)
    sides = None if form is None else written(form)
    if form is None or sides is None:
        return None
    (near, value, text), below = form.args, node.args[1]
    other = _without(bare(value), bare(below)) or over(value, below)
    absorbs = (form,) if factor is None else (bare(node.args[0]), form)
    if other is None:
        return None if factor is not None else Found(where(near, value / below, text / below), absorbs=absorbs)
    own = (n for n in map(bare, sides) if n.args)  # read by the form before, and by the quotient now
    found = where(logical_and(near, not_equal(below, 0)), other, text / below)
    return Found(found if factor is None else found * factor, absorbs=(*absorbs, *own, *_read_by(other, form, below)))


def _read_by(value: Node | float, form: Node, below: Node) -> Iterator[Node]:
    """Yield the nodes of a form that a quotient still reads, and their readers in the form."""
    there = dict.fromkeys(n for n in topological([form]) if n.args and n is not below)
    roots = [value] if isinstance(value, Node) else []
    new = (n for n in topological(roots, there.__contains__) if n not in there)
    reads = {bare(a) for n in new for a in n.args}
    yield from (n for n in there if n is not form and (n in reads or not reads.isdisjoint(map(bare, n.args))))


def _form_and_factor(quotient: Node) -> tuple[Node | None, Node | None]:
    """Return the form in a quotient's numerator and the factor it is multiplied by, each None if missing."""
    top = bare(quotient.args[0])
    if top.op is where:
        return (top if _is_spread(quotient.args[0], top) else None), None
    if bare(quotient.args[1]).op in {add, subtract} and top.op is multiply and _is_spread(quotient.args[0], top):
        for factor, form in (top.args, top.args[::-1]):
            if written(form) is not None and _is_spread(form, bare(form)):
                return bare(form), factor
    return None, None


def _is_spread(given: Node, inner: Node) -> bool:
    """Return whether ``given`` is ``inner`` itself, or a broadcast of it."""
    return given.type.shape == inner.type.shape or (given.op is BROADCAST and given.args[0] is inner)


@stable(roots="divide", heads="where", within="expm1", fuel=1, judged=True)
def quotients_of_logarithms(node: Node) -> Found | None:
    """``log1p(x * expm1(y * z)) / y -> by log1p(r) / r and expm1(y * z) / y, for all logarithms of what is near 1 for a small y``."""
    form, below = bare(node.args[0]), node.args[1]
    if form.op is not where or form.type.shape != node.type.shape or bare(form.args[1]).op is not log1p:
        return None
    value = over(form.args[1], below)
    if value is None:
        return None
    near = logical_and(form.args[0], not_equal(below, 0))
    return Found(where(near, value, form.args[2] / below), absorbs=(form,))


@stable(roots="exp expm1", within="log1p", fuel=1, judged=True)
def exponents_that_are_quotients(node: Node) -> Found | None:
    """``exp(log1p(x * y) / y) -> exp(x * log1p(r) / r) for r = x * y, for all exponents that are quotients of what vanishes with y``."""
    exponent = bare(node.args[0])
    found = _quotient_of_function(exponent) or _function_beside_quotient(exponent)
    if found is None:
        return None
    value, below, *_ = found
    value = where(not_equal(below, 0), value, exponent)
    return Found(node.op(value), absorbs=(exponent,))  # type: ignore[operator]


def _quotient_of_function(exponent: Node) -> tuple[Node, Node] | None:
    """Return an exponent ``f(x * y) / y`` rewritten so that the common factor is gone, and this factor; None for other exponents."""
    factors = factors_of(exponent)
    functions = [n for n, t in factors.powers.items() if t == 1 and n.op in _NEAR_ARGUMENT]
    for below in [n for n, t in factors.powers.items() if t == -1] if functions else ():
        for function in functions:
            value = over(function, below)
            if value is not None:
                return value * factors.without({function: 1, below: -1}), below
    return None


@stable(roots="multiply", heads="log1p", within="divide", fuel=1, judged=True)
def functions_beside_quotients(node: Node) -> Found | None:
    """``(1 / y + z) * log1p(x * y) -> x * log1p(r) / r + z * log1p(r) for r = x * y, and for all sums with such a quotient``."""
    found = _function_beside_quotient(node)
    if found is None:
        return None
    value, below, total, quotient = found
    function = next(a for a in node.args if bare(a) is not total)
    near = logical_and(not_equal(below, 0), less(absolute(bare(function).args[0]), _SMALL))
    return Found(where(near, value, where(near, 1, total) * function), absorbs=(total, quotient))


def _function_beside_quotient(node: Node) -> tuple[Node, Node, Node, Node] | None:
    """Return the product of a function with a sum of which one term is a quotient by a factor of its argument, expanded; else None.

    With it come the factor, the sum and the quotient.
    """
    for total, function in (node.args, node.args[::-1]) if node.op is multiply else ():
        inner = bare(total)
        sides = inner.args if inner.op in {add, subtract} else written(inner)
        if bare(function).op is not log1p or sides is None:
            continue
        for k, quotient in enumerate(map(bare, sides)):
            value = over(function, quotient.args[1]) if quotient.op is divide else None
            if value is not None:
                first, second = value * quotient.args[0], sides[1 - k] * function
                if k and inner.op is not add:
                    first, second = second, first
                return (add if inner.op is add else subtract)(first, second), quotient.args[1], inner, quotient
    return None


_SMALL = 0.25
_NEAR_ARGUMENT = frozenset((log1p, expm1))


@stable(roots="multiply", heads="divide", fuel=1, judged=True)
def forms_beside_quotients(node: Node) -> Found | None:
    """``x / (y - z) * (exp(y) - exp(z)) -> x * ((exp(y) - exp(z)) / (y - z)), and all forms of differences beside what is over a sum``."""
    for one, form in (node.args, node.args[::-1]):
        quotient = bare(one)
        if quotient.op is divide and bare(quotient.args[1]).op in {add, subtract} and written(form) is not None:
            return Found(form / quotient.args[1] * quotient.args[0], absorbs=(quotient,))
    return None


def _without(product: Node, factor: Node) -> Node | None:
    """Return a product or quotient with a factor removed, or None if it does not have it."""
    if product.op is divide and bare(product.args[0]) is factor:
        return 1 / product.args[1]
    if product.op is multiply:
        for one, other in (product.args, product.args[::-1]):
            if bare(one) is factor:
                return other
    return None
