"""The operations on numbers as formulas: ``sqrt``, fractions, powers, cases; signs and factors in their usual order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite, prod
from typing import Any, Literal

from tensormagic.ir.operation import Operation
from tensormagic.notebook.formulas.latex import (
    Add,
    Big,
    Call,
    Cases,
    Cut,
    Expression,
    Fence,
    Name,
    Negative,
    Number,
    Power,
    Product,
    Quotient,
    Relation,
    Transposed,
)
from tensormagic.ops.scalars import scalar, special


def arguments(written: Iterable[Expression]) -> tuple[Expression, ...]:
    """Return the arguments of a function, with neighbouring ones that are cut out shown as one."""
    found: list[Expression] = []
    for part in written:
        if not (isinstance(part, Cut) and found and isinstance(found[-1], Cut)):
            found.append(part)
    return tuple(found)


def _is(e: Expression, value: float) -> bool:
    return isinstance(e, Number) and e.value == value


def plus(left: Expression, right: Expression) -> Expression:
    """Return a sum; a negative number is subtracted."""
    if isinstance(right, Number) and not isinstance(right.value, complex) and right.value < 0:
        right = Negative(Number(-right.value))
    if _is(left, 0) or _is(right, 0):
        return left if _is(right, 0) else right
    before = left.terms if isinstance(left, Add) else (left,)
    if before[-1] == right:
        twice = times([_TWO, right])
        return Add((*before[:-1], twice)) if before[:-1] else twice
    return Add((*before, *(right.terms if isinstance(right, Add) else (right,))))


def negative(e: Expression) -> Expression:
    """Return the negative of an expression; a double negative is removed."""
    return e.body if isinstance(e, Negative) else Negative(e)


def _minus(left: Expression, right: Expression) -> Expression:
    return Add((*(left.terms if isinstance(left, Add) else (left,)), negative(right)))


def times(factors: Sequence[Expression], sign: Literal["", "each", "matrix"] = "") -> Expression:
    """Return a product: the sign in front, then numbers, without ones."""
    minus, found = False, list[Expression]()
    for factor in factors:
        while isinstance(factor, Negative):
            minus, factor = not minus, factor.body  # noqa: PLW2901 (what is left of it)
        if _is(factor, -1) and not sign:
            minus = not minus
        elif isinstance(factor, Product) and factor.sign == sign:
            found += factor.factors
        elif sign or not _is(factor, 1):
            found.append(factor)
    if not sign:
        found, below_zero = _as_one_number(found)
        minus = minus is not below_zero
        found = _powers(sorted(found, key=lambda f: (not isinstance(f, Number), not _is_count(f), isinstance(f, Big))))
    made = found[0] if len(found) == 1 else Product(tuple(found), sign) if found else Number(1)
    return Negative(made) if minus else made


def _as_one_number(factors: list[Expression]) -> tuple[list[Expression], bool]:
    """Return factors with numbers multiplied where that is as short, and whether a minus sign was taken out."""
    numbers = [f.value for f in factors if isinstance(f, Number) and isinstance(f.value, int | float)]
    if not numbers or len(numbers) == len(factors) == 1:
        return factors, False
    whole = prod(numbers)
    if len(numbers) > 1 and float(f"{whole:.4g}") != whole:  # nobody would know the number
        return factors, False
    rest = [f for f in factors if not (isinstance(f, Number) and isinstance(f.value, int | float))]
    size = abs(int(whole) if isfinite(whole) and whole == int(whole) else whole)
    return [Number(size), *rest] if size != 1 else rest, whole < 0


def _is_count(e: Expression) -> bool:
    """Return whether an expression is one over a size, or the like."""
    return isinstance(e, Quotient) and all(isinstance(part, Number | Name) for part in (e.top, e.bottom))


def _powers(factors: list[Expression]) -> list[Expression]:
    """Return factors with equal neighbours as powers."""
    found: list[Expression] = []
    for factor in factors:
        if found and isinstance(found[-1], Number) and isinstance(factor, Quotient) and _is(factor.top, 1):
            found[-1] = Quotient(found[-1], factor.bottom)
        elif found and found[-1] == factor and not isinstance(factor, Number | Cut):
            found[-1] = Power(factor, _TWO)
        else:
            found.append(factor)
    return found


def transposed(e: Expression) -> Expression:
    """Return the transpose: of a product the product of the transposes, the other way round; twice is nothing."""
    if isinstance(e, Transposed) and e.sign == "T":
        return e.base
    if isinstance(e, Product) and e.sign == "matrix":
        return Product(tuple(transposed(f) for f in reversed(e.factors)), "matrix")
    return Transposed(e)


def _cases(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    """Return a case distinction between two expressions; a square root that is 0 at 0 needs none."""
    if _is(then, 0) and isinstance(otherwise, Fence) and condition == Relation("==", otherwise.body, Number(0)):
        return otherwise if otherwise.kind == "sqrt" else Cases(condition, then, otherwise)
    return Cases(condition, then, otherwise)


def _quotient(top: Expression, bottom: Expression) -> Expression:
    """Return a fraction; of a sum over an index one over the divisor times that sum; the sign in front."""
    if isinstance(top, Negative):
        return negative(_quotient(top.body, bottom))
    if isinstance(bottom, Negative):
        return negative(_quotient(top, bottom.body))
    if isinstance(top, Big):
        return Product((Quotient(Number(1), bottom), top))
    return top if _is(bottom, 1) else Quotient(top, bottom)


def _power(base: Expression, exponent: Expression) -> Expression:
    if _is(exponent, 0.5):
        return Fence("sqrt", base)
    if isinstance(exponent, Number) and isinstance(exponent.value, float) and exponent.value.is_integer():
        exponent = Number(int(exponent.value))
    return _quotient(Number(1), base) if _is(exponent, -1) else base if _is(exponent, 1) else Power(base, exponent)


def _call(name: str) -> Callable[..., Expression]:
    return lambda *arguments: Call(name, arguments)


def _fence(kind: str) -> Callable[[Expression], Expression]:
    return lambda x: Fence(kind, x)


def _relation(sign: str) -> Callable[[Expression, Expression], Expression]:
    return lambda left, right: Relation(sign, left, right)


def _log_of(*terms: Expression) -> Expression:
    return Call("log", (Add(terms),))


def _e(exponent: Expression) -> Expression:
    return Power(None, exponent)


_TWO = Number(2)
POINTWISE: dict[Operation, Callable[..., Any]] = {
    scalar.add: plus,
    scalar.subtract: _minus,
    scalar.negative: negative,
    scalar.positive: lambda x: x,
    scalar.divide: _quotient,
    scalar.reciprocal: lambda x: _quotient(Number(1), x),
    scalar.square: lambda x: Power(x, _TWO),
    scalar.power: _power,
    scalar.sqrt: _fence("sqrt"),
    scalar.cbrt: lambda x: Power(x, Quotient(Number(1), Number(3))),
    scalar.exp: _e,
    scalar.exp2: lambda x: Power(_TWO, x),
    scalar.expm1: lambda x: Add((_e(x), Negative(Number(1)))),
    scalar.log: _call("log"),
    scalar.log2: _call("log_2"),
    scalar.log10: _call("log_10"),
    scalar.log1p: lambda x: _log_of(Number(1), x),
    scalar.softplus: lambda x: _log_of(Number(1), _e(x)),
    scalar.logaddexp: lambda x, y: _log_of(_e(x), _e(y)),
    scalar.sigmoid: _call("σ"),
    special.xlogy: lambda x, y: times([x, Call("log", (y,))]),
    scalar.hypot: lambda x, y: Fence("sqrt", Add((Power(x, _TWO), Power(y, _TWO)))),
    scalar.absolute: _fence("abs"),
    scalar.floor: _fence("floor"),
    scalar.ceil: _fence("ceil"),
    scalar.conjugate: _fence("conj"),
    scalar.real: _call("Re"),
    scalar.imag: _call("Im"),
    scalar.rint: _call("round"),
    scalar.maximum: _call("max"),
    scalar.minimum: _call("min"),
    scalar.fmax: _call("max"),
    scalar.fmin: _call("min"),
    scalar.remainder: _relation("mod"),
    scalar.floor_divide: lambda x, y: Fence("floor", Quotient(x, y)),
    special.gamma: _call("Γ"),
    special.digamma: _call("ψ"),
    special.gammaln: lambda x: Call("log", (Call("Γ", (x,)),)),
    scalar.where: _cases,
    scalar.less: _relation("<"),
    scalar.less_equal: _relation("<="),
    scalar.greater: _relation(">"),
    scalar.greater_equal: _relation(">="),
    scalar.equal: _relation("=="),
    scalar.not_equal: _relation("!="),
    scalar.logical_and: _relation("and"),
    scalar.logical_or: _relation("or"),
    scalar.logical_xor: _relation("xor"),
    scalar.logical_not: _fence("not"),
}
