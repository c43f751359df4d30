"""Finds the places at which a sum may cancel, before an exact form is sought. Knows no rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tensormagic.ir.facts import not_negative
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import bare
from tensormagic.ir.rewriting.within import at_last, ops_within, within
from tensormagic.ops.scalars.scalar import divide, log, log1p, multiply, subtract
from tensormagic.transform.rewriting.sums.cancellation_places import (
    Beside,
    Exponential,
    Far,
    Near,
    Over,
    Place,
    Product,
    Step,
)
from tensormagic.transform.rewriting.sums.terms import Sum, as_text, key_of, log_of_quotient, number_of, sum_of, written

_EXPONENTIALS = frozenset(("exp", "exp2", "expm1", "sinh", "cosh", "tanh", "sigmoid", "softplus", "log1mexp"))
SPECIAL = ("erf", "erfc", "erfcx", "gammaln")
"""Functions of SciPy's that have a series somewhere."""
OTHERS = (
    *("log2", "log10", "logaddexp", "exp2", "softplus", "sigmoid", "log1mexp"),
    *("hypot", "sinc", "arccos", "arctan2"),
)
"""Functions that are read by the functions they are composed of."""
_SUMS = frozenset(("add", "subtract", "negative", "where"))
_NODES = 32
_DEEP = 7
_ATOMS = 3


@dataclass
class Look:
    """What a quick look at a sum finds: operands, exponents of functions, and products that are arguments of functions.

    ``divided``: whether two operands are subtracted; ``stepped``: whether a function has their sum or difference as
    its argument.
    """

    atoms: dict[Node, int]
    exponents: dict[Node, None] = field(default_factory=dict[Node, None])
    products: dict[Node, None] = field(default_factory=dict[Node, None])
    divided: bool = False
    stepped: bool = False

    @property
    def operands(self) -> tuple[Node, ...]:
        """The operands, the most frequent first."""
        return tuple(a for a, _ in sorted(self.atoms.items(), key=lambda n: -n[1]))

    def take(self, function: Node) -> None:
        """Note the exponents and the products in the arguments of one more function."""
        if function.op.name in _EXPONENTIALS:
            self.exponents.setdefault(bare(function.args[0]))
        _products(function, self.products)


def is_deep(total: Node) -> bool:
    """Return whether a sum is too deep to be analysed; unknown (False) if it contains forms, whose text is analysed instead."""
    ops = within(total)
    return bool(ops & _TOO_DEEP) and not ops & _FORMS


def look_at(total: Node, *, products: bool = False) -> Look | None:
    """Return what a sum of functions of few operands contains, or None for any other sum.

    With ``products``, integer powers count as functions. This is quick, and most sums fail it.
    """
    leaves: dict[Node, Node] = {}
    functions: list[Node] = []
    times: dict[Node, int] = {}
    level: Sequence[Node] = total.args
    for _ in range(_DEEP):
        below: list[Node] = []
        for given in level:
            node = given if given.below is None else given.below
            times[node] = known = times.get(node, 0) + 1
            if known > 1:
                continue
            text, parts = read(node)
            if parts:
                below += parts
                if text.op.name in _FUNCTIONS:
                    functions.append(text)
            elif text.op.name != "constant":
                leaves[node] = text
        if len(times) > _NODES or len(leaves) > _ATOMS:
            return None
        level = below
    if level or not (functions if products else any(map(is_function, functions))):
        return None
    found = Look({text: times[node] for node, text in leaves.items()})
    for function in functions:
        found.take(function)
    found.divided = len(leaves) == 2 and any(_subtracts(node, leaves) for node in times)
    found.stepped = len(leaves) == 2 and any(f.op.name in _STEPPED and _is_sum(f.args[0]) for f in functions)
    return found


_STEPPED = frozenset(("sin", "cos", "sinh", "cosh", "exp"))


def _is_sum(node: Node) -> bool:
    return bare(node).op.name in {"add", "subtract"}


def _subtracts(node: Node, leaves: Mapping[Node, Node]) -> bool:
    """Return whether a node is the difference of the two operands."""
    return node.op is subtract and {*map(bare, node.args)} == {*leaves}


def read(node: Node) -> tuple[Node, Sequence[Node]]:
    """Return a node as it was written, and the operands to be read below it."""
    name = node.op.name
    if name != "where":
        return node, node.args if name in _READ else ()
    if (sides := written(node)) is not None:
        return node, sides
    text = bare(as_text(node))
    return text, text.args if text.op.name in _READ else ()


_FUNCTIONS = _EXPONENTIALS | frozenset(
    (
        *("log", "log1p", "xlogy", "sqrt", "cbrt", "power", "sin", "cos", "tan"),
        *("arctan", "arctanh", "arcsin", "arcsinh", *OTHERS, *SPECIAL),
    )
)


def is_function(node: Node) -> bool:
    """Return whether a node is more than arithmetic; integer powers are products."""
    if node.op.name != "power":
        return node.op.name in _FUNCTIONS
    times = number_of(bare(node.args[1]))
    return times is None or times.denominator != 1


_READ = _FUNCTIONS | frozenset(
    ("add", "subtract", "negative", "absolute", "multiply", "divide", "square", "reciprocal")
)


_TOO_DEEP, _FORMS = at_last(_READ), ops_within(("where",))
"""Bits for sums that are deeper than is analysed, and for forms, whose text is analysed instead."""


def _products(function: Node, found: dict[Node, None]) -> None:
    """Add the products and quotients of operands within a function's argument to ``found``."""
    pool = [function.args[0]]
    while pool:
        node = bare(pool.pop())
        if node.op.name in _SUMS:
            pool += node.args if node.op.name != "where" else ()
        elif node.op.name in {"multiply", "divide"} and all(number_of(bare(a)) is None for a in node.args):
            if not any(bare(a).op.name in _FUNCTIONS - {"sqrt"} for a in node.args):
                found.setdefault(node)
        elif node.op.name in {"multiply", "divide"}:
            pool += node.args
    if function.op.name == "power" and number_of(bare(function.args[1])) is None:
        found.setdefault(function)


_HALF = Fraction(1, 2)
_ONE = Sum((), Fraction(1))


def places(look: Look) -> Iterator[Place]:
    """Yield the places at which a sum is examined."""
    atoms = look.operands
    if len(atoms) == 1:
        base = atoms[0]
        yield from (Beside(base, Fraction(at)) for at in (0, 1, _HALF))
        yield Far(base)
        yield from _of_exponentials(base, look)
    elif len(atoms) == 2:
        first, second = atoms
        yield Over(first, second, 1)
        yield Over(first, second, 0)
        yield Over(second, first, 0)
        if look.divided:
            yield Near(first, second)
        if look.stepped:
            yield from (Step(first, second), Step(second, first))
    for product in look.products:
        yield from of_product(product)


def _of_exponentials(base: Node, look: Look) -> Iterator[Place]:
    """Yield the places where exponentials of an operand are small, if their exponents are multiples of it."""
    times: set[Fraction] = set()
    for exponent in look.exponents:
        total = sum_of(exponent)
        if len(total.terms) == 1 and bare(total.terms[0][1]) is base:
            times.add(abs(total.terms[0][2]))
    for least in sorted(times)[:1]:
        for sign in (1,) if not_negative(base) else (1, -1):
            yield Exponential(base, sign, least)


def _logarithm(base: Node) -> Node:
    inner = bare(base)
    return log_of_quotient(*inner.args) if inner.op is divide else log(base)


def of_product(product: Node) -> Iterator[Place]:
    """Yield the places where a product is small, for each choice of the factor that is expanded."""
    if product.op.name == "power":
        base, exponent = product.args
        less_ = sum_of(base).minus(_ONE)
        own = less_.node() if less_.terms and not less_.number else None
        logarithm = log1p(own) if isinstance(own, Node) else _logarithm(base)
        yield Product(multiply(exponent, logarithm), bare(logarithm), bare(exponent), 1, 1, product)
        return
    first, second = map(bare, product.args)
    other = 1 if product.op.name == "multiply" else -1
    for base, over, power, more in ((first, second, 1, other), (second, first, other, 1)):
        key = key_of(base)
        if isinstance(key, tuple):
            yield Product(product, key[1], over, 2 * power, more)
        elif number_of(base) is None:
            yield Product(product, base, over, power, more)
