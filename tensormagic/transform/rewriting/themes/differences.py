"""Rules of differences: what is nearly equal is subtracted before a function of it is rounded, not after.

A difference ``f(a) - f(b)`` is that of the arguments times something that does not cancel. What ``a`` and ``b`` have in common is
taken away term by term, so ``sqrt(x + h) - sqrt(x)`` has all digits of ``h``. Where nothing cancels, the text is computed as written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Found, bare
from tensormagic.ir.rewriting.within import ops_within, within
from tensormagic.ops.leaf import constant
from tensormagic.ops.scalars.scalar import add, cos, cosh, negative, sin, sinh, sqrt, square, subtract
from tensormagic.transform.rewriting.notation import stable
from tensormagic.transform.rewriting.sums.beginnings import BEGINS, by_beginnings
from tensormagic.transform.rewriting.sums.difference import apart, known, of_logarithms, of_multiples
from tensormagic.transform.rewriting.sums.expansions import less_beginning
from tensormagic.transform.rewriting.sums.first_looks import is_deep
from tensormagic.transform.rewriting.sums.less_products import beside_minus_one, beside_one, less_product
from tensormagic.transform.rewriting.sums.rational_looks import worth_it
from tensormagic.transform.rewriting.sums.rationals import over_common
from tensormagic.transform.rewriting.sums.terms import Apart, behind, is_within_form, number_of, sum_of, written


def _sides(node: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the ways to read ``node`` as a difference of two sides, also sums with a negative number, or with a root."""
    left, right = node.args
    if node.op is subtract:
        yield left, right
        return
    for u, v in ((left, right), (right, left)):
        value = number_of(bare(v))
        if value is not None and value < 0:
            yield u, constant(-float(value))
        elif value is None and bare(u).op.name in {"sqrt", "hypot"}:
            yield u, negative(v)


@stable(fuel=1, judged=True)
def squares_and_one(x: Node) -> Iterator[tuple[Node, Node]]:
    """One minus the square of a function; these have no branch, so they come before the forms of any sum."""
    yield 1 - square(cos(x)), square(sin(x))
    yield 1 - square(sin(x)), square(cos(x))
    yield square(cos(x)) - 1, -square(sin(x))
    yield square(sin(x)) - 1, -square(cos(x))
    yield square(cosh(x)) - 1, square(sinh(x))
    yield 1 - square(cosh(x)), -square(sinh(x))


@stable(roots="subtract add", fuel=1, judged=True, cancels=True, extends="a value where both sides are infinite")
def differences(node: Node) -> Found | None:
    """``f(a) - f(b) -> by a - b where both are near, for roots, powers, quotients, exponentials, logarithms, angles``."""
    if node.type.dtype.kind != "f":
        return None
    sides = list(_sides(node))
    if not sides and (found := _of_sum(*node.args) or _of_sum(*reversed(node.args))) is not None:
        return found
    for a, b in sides:
        found = apart(a, b) or of_multiples(a, b) or of_logarithms(a, b)
        if found is None or not isinstance(found.value, Node):
            continue
        if (found.local or found.rough or not found.known) and less_beginning(node, node.type.dtype) is not None:
            return None  # a separate rule handles the difference without its surroundings
        if found.near is None:
            return Found(found.value, absorbs=found.parts)
        return _behind(over_common(a, b, lambda *_: None) or found, a, b)
    begun = _begun(node)
    found = None if begun is not None and not begun.rough else _over_one(node, sides or _of_negatives(node))
    if found is not None or begun is None or begun.local:
        return found
    return _behind(begun, *_as_difference(node))


def _over_one(node: Node, sides: list[tuple[Node, Node]]) -> Found | None:
    """Return the form of a difference of quotients and products, of values near 1, or of a root and a sum; else None."""
    for a, b in sides:
        common = _by_parts(a, b)
        if common is not None and common.local and less_beginning(node, node.type.dtype) is not None:
            return None
        if common is not None:
            return _behind(common, a, b)
    return _of_root_and_sum(node)


def _begun(node: Node) -> Apart | None:
    """Return a sum by the remainders of functions after their leading terms, or None; a single function has a rule of its own."""
    left, right = node.args
    if not (within(left) | within(right)) & BEGINS or is_deep(node) or is_within_form(node):
        return None
    return by_beginnings(*_as_difference(node))


def _as_difference(node: Node) -> tuple[Node, Node]:
    """Return a sum as the difference of two sides."""
    left, right = node.args
    return left, right if node.op is subtract else negative(right)


def _of_root_and_sum(node: Node) -> Found | None:
    """Return ``sqrt(1 + 2 * x * y + x**2) - 1 - x * y`` as the root minus a sum, where squares cancel; else None."""
    if not within(node) & _ROOTS or is_within_form(node):
        return None
    if not any(bare(a).op in _PLAIN or written(a) is not None for a in node.args):
        return None
    total = sum_of(node, text=True)
    roots = [(n, t) for _, n, t in total.terms if bare(n).op is sqrt]
    if len(roots) != 1 or abs(roots[0][1]) != 1 or len(total) < _THREE:
        return None
    ((root, sign),) = roots
    rest = total.minus(sum_of(root).times(sign)).times(-sign).node()
    found = apart(root, rest) if isinstance(rest, Node) else None
    if found is None or found.near is None or not isinstance(found.value, Node):
        return None
    left, right = node.args
    form = behind(found.near, found.value * float(sign), left, right if node.op is subtract else negative(right))
    between = (
        n
        for a in node.args
        for n in (bare(a), *(map(bare, written(a) or bare(a).args)))
        if n.op in _PLAIN or written(n)
    )
    return Found(form, absorbs=tuple(dict.fromkeys((*found.parts, *between))))


_THREE = 3
_PLAIN = frozenset((add, subtract))
_ROOTS = ops_within(("sqrt",))


def _of_negatives(node: Node) -> list[tuple[Node, Node]]:
    """Return the one way to read a sum as a difference, if something is subtracted deeper inside; else nothing."""
    left, right = node.args
    if not _subtracts(node) or not worth_it(left, right):
        return []
    value = number_of(bare(right))
    return [(left, negative(right) if value is None else constant(-float(value)))]


def _by_parts(a: Node, b: Node) -> Apart | None:
    """Return the form of a difference of quotients and products, or of values near 1, or None."""
    return over_common(a, b, known) or less_product(a, b) or negated(less_product(b, a)) or beside_one(a, b)


def _of_sum(a: Node, b: Node) -> Found | None:
    """Return the form of a sum of a term near 1 and a term near -1, or None."""
    found = beside_minus_one(a, b)
    return found and _behind(found, a, negative(b))


def _behind(found: Apart, a: Node, b: Node) -> Found | None:
    """Return the form used where it is good, and the difference elsewhere, or None if it needs no condition."""
    if found.near is None:
        return None
    value = found.value if isinstance(found.value, Node) else constant(found.value)
    return Found(behind(found.near, value, a, b), absorbs=found.parts)


def negated(found: Apart | None) -> Apart | None:
    """Return the difference with its sides exchanged."""
    return found if found is None else replace(found, value=-found.value)


def _subtracts(node: Node, depth: int = 3) -> bool:
    """Return whether something is subtracted within a sum."""
    inner = bare(node)
    value = number_of(inner)
    if value is not None or not inner.args:
        return value is not None and value < 0
    if inner.op.name in {"subtract", "negative"} or written(inner) is not None:
        return True
    return bool(depth) and inner.op.name in _SUMS and any(_subtracts(a, depth - 1) for a in inner.args)


_SUMS = frozenset(("add", "multiply", "divide"))
