"""Types of nodes: dtype, shape of symbolic sizes, and rank-0 form. Knows nothing of nodes beyond that they may be atoms of a size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import mul
from typing import Any, Literal

import numpy as np

Form = Literal["array", "scalar", "python"]


@dataclass(frozen=True)
class Symbol:
    """A size that is known when the graph runs: ``n0``, or the extent of an input's axis; never 0 or 1.

    ``hint`` is the size that was seen at capture: it decides errors early, and is no part of the symbol's identity.
    """

    name: str
    hint: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Apply:
    """A size that is no polynomial: ``floordiv``, ``mod``, ``min`` or ``max`` of two sizes."""

    function: str
    left: Size
    right: Size

    def __str__(self) -> str:
        return f"{self.function}({self.left}, {self.right})"


Atom = Any  # Symbol, Apply, or an integer scalar Node (hashable, with a process-independent str)
Monomial = tuple[tuple[Atom, int], ...]

_APPLY: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "min": min,
    "max": max,
}


@dataclass(frozen=True, eq=False)
class Dim:
    """An integer polynomial over atoms, in normal form; never constant (a constant size is an ``int``)."""

    terms: tuple[tuple[Monomial, int], ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self.terms == other.terms

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    @cached_property
    def _text(self) -> str:
        parts = [_monomial_text(monomial, coefficient) for monomial, coefficient in self.terms]
        return "+".join(parts).replace("+-", "-")

    def __add__(self, other: Size) -> Size:
        terms = dict(self.terms)
        for monomial, coefficient in _terms(other):
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return _normal(terms)

    __radd__ = __add__

    def __neg__(self) -> Size:
        return self * -1

    def __sub__(self, other: Size) -> Size:
        return self + -1 * other

    def __rsub__(self, other: Size) -> Size:
        return -1 * self + other

    def __mul__(self, other: Size) -> Size:
        terms: dict[Monomial, int] = {}
        for left, a in self.terms:
            for right, b in _terms(other):
                monomial = _monomial_product(left, right)
                terms[monomial] = terms.get(monomial, 0) + a * b
        return _normal(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: Size) -> Size:
        return apply("floordiv", self, other)

    def __mod__(self, other: Size) -> Size:
        return apply("mod", self, other)


Size = int | Dim


def symbol(name: str, hint: int | None = None) -> Dim:
    """The size that is the symbol ``name``."""
    return atom(Symbol(name, hint))


def hint(size: Size) -> int | None:
    """The number that ``size`` was at capture, where that is known."""
    try:
        return evaluate(size, _hint_of)
    except LookupError:
        return None


def _hint_of(a: Atom) -> int:
    number = getattr(a, "hint", None)
    if number is None:
        raise LookupError
    return int(number)


def size_text(size: Size) -> str:
    """A size for people: the number that was seen, or the expression."""
    number = hint(size)
    return str(size if number is None else number)


def lower_bound(size: Size) -> int | None:
    """A number that ``size`` is never below, where one is known; symbols are at least 2."""
    if isinstance(size, int):
        return size
    total = 0
    for monomial, coefficient in size.terms:
        bounds = [_atom_bound(a) for a, power in monomial for _ in range(power)]
        if any(b is None or b < 0 for b in bounds) or (coefficient < 0 and monomial):
            return None
        total += reduce(mul, (b for b in bounds if b is not None), coefficient)
    return total


def _atom_bound(a: Atom) -> int | None:
    if isinstance(a, Symbol):
        return 2
    if not isinstance(a, Apply):
        return None
    left, right = lower_bound(a.left), lower_bound(a.right)
    if a.function == "max":
        return max((b for b in (left, right) if b is not None), default=None)
    if left is None or right is None:
        return 0 if a.function == "mod" and right is not None and right > 0 else None
    return {"min": min(left, right), "mod": 0, "floordiv": 0 if left >= 0 and right > 0 else None}[a.function]


def atom(a: Atom) -> Dim:
    """The size that is the single atom ``a``."""
    return Dim(((((a, 1),), 1),))


def apply(function: str, left: Size, right: Size) -> Size:
    """``floordiv``, ``mod``, ``min`` or ``max`` of two sizes, decided where it can be."""
    if isinstance(left, int) and isinstance(right, int):
        return _APPLY[function](left, right)
    if left == right:
        return {"floordiv": 1, "mod": 0}.get(function, left)
    if right == 1 and function in {"floordiv", "mod"}:
        return left if function == "floordiv" else 0
    if function in {"floordiv", "mod"} and isinstance(right, int) and isinstance(left, Dim):
        return _divide_constant(function, left, right)
    if function in {"min", "max"}:
        return _extreme(function, left, right)
    return atom(Apply(function, left, right))


def _extreme(function: str, left: Size, right: Size) -> Size:
    """``min`` and ``max``, decided where the sign of the difference is known."""
    difference = lower_bound(left - right)
    if difference is not None and difference >= 0:
        return right if function == "min" else left
    difference = lower_bound(right - left)
    if difference is not None and difference >= 0:
        return left if function == "min" else right
    return atom(Apply(function, left, right))


def _divide_constant(function: str, left: Dim, right: int) -> Size:
    """``floordiv`` and ``mod`` by a constant split off the terms that it divides."""
    whole = {m: c // right for m, c in left.terms if c % right == 0}
    rest = _normal({m: c for m, c in left.terms if c % right != 0})
    left_over: Size = atom(Apply(function, rest, right)) if isinstance(rest, Dim) else _APPLY[function](rest, right)
    return left_over if function == "mod" else _normal(whole) + left_over


def divide_exactly(total: Size, divisor: Size) -> Size | None:
    """``total / divisor`` where that is a polynomial and ``divisor`` a single term; None elsewhere."""
    if isinstance(divisor, Dim) and len(divisor.terms) != 1:
        return 1 if total == divisor else None
    ((monomial, coefficient),) = _terms(divisor)
    quotient: dict[Monomial, int] = {}
    for m, c in _terms(total):
        powers = dict(m)
        for a, power in monomial:
            powers[a] = powers.get(a, 0) - power
        if c % coefficient or min(powers.values(), default=0) < 0:
            return None
        quotient[tuple((a, p) for a, p in powers.items() if p)] = c // coefficient
    return _normal(quotient)


def evaluate(size: Size, value_of: Callable[[Atom], int]) -> int:
    """The number that ``size`` is, with ``value_of`` giving that of each atom."""
    if isinstance(size, int):
        return size
    total = 0
    for monomial, coefficient in size.terms:
        for a, power in monomial:
            number = (
                _APPLY[a.function](evaluate(a.left, value_of), evaluate(a.right, value_of))
                if isinstance(a, Apply)
                else value_of(a)
            )
            coefficient *= number**power  # noqa: PLW2901 (the running product)
        total += coefficient
    return total


def substitute(size: Size, replacement: Mapping[Atom, Size]) -> Size:
    """``size`` with atoms replaced."""
    if isinstance(size, int):
        return size
    total: Size = 0
    for monomial, coefficient in size.terms:
        term: Size = coefficient
        for a, power in monomial:
            if isinstance(a, Apply):
                base = apply(a.function, substitute(a.left, replacement), substitute(a.right, replacement))
            else:
                base = replacement.get(a, atom(a))
            for _ in range(power):
                term = term * base
        total = total + term
    return total


def atoms(size: Size) -> list[Atom]:
    """The symbols and nodes that ``size`` mentions, in order of appearance."""
    if isinstance(size, int):
        return []
    found: dict[Atom, None] = {}
    for monomial, _ in size.terms:
        for a, _power in monomial:
            inner = [*atoms(a.left), *atoms(a.right)] if isinstance(a, Apply) else [a]
            found.update(dict.fromkeys(inner))
    return list(found)


def product(sizes: tuple[Size, ...]) -> Size:
    """The number of elements of a shape."""
    total: Size = 1
    for size in sizes:
        total = total * size
    return total


def _terms(size: Size) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(size, Dim):
        return size.terms
    return (((), size),) if size else ()


def _normal(terms: dict[Monomial, int]) -> Size:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Dim(tuple(sorted(kept.items(), key=lambda item: (-len(item[0]), _monomial_text(item[0], 1)))))


def _monomial_product(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for a, power in right:
        powers[a] = powers.get(a, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: str(item[0])))


def _monomial_text(monomial: Monomial, coefficient: int) -> str:
    factors = [str(a) if power == 1 else f"{a}^{power}" for a, power in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return "*".join(factors)


@dataclass(frozen=True, eq=False)
class Type:
    """dtype, shape and rank-0 form of a value.

    Parameters
    ----------
    dtype
        A NumPy dtype in native byte order.
    shape
        One :data:`Size` an axis: an ``int``, or a :class:`Dim` that is known when the graph runs.
    form
        ``"array"``; ``"scalar"`` for a NumPy scalar; ``"python"`` for a Python number, which promotes weakly (NEP 50).
    """

    dtype: np.dtype[Any]
    shape: tuple[Size, ...]
    form: Form = "array"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Type)
            and self.dtype == other.dtype
            and self.shape == other.shape
            and self.form == other.form
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.dtype.str, self.shape, self.form))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Size:
        """The number of elements."""
        return product(self.shape)

    @property
    def inexact(self) -> bool:
        """Whether the dtype is floating or complex: what derivatives are about."""
        return self.dtype.kind in "fc"

    def __str__(self) -> str:
        if self.form == "python":
            return {"f": "float", "i": "int", "b": "bool", "c": "complex"}[self.dtype.kind]
        if self.shape or self.form == "array":
            return f"{self.dtype}[{', '.join(map(size_text, self.shape))}]"
        return "bool_" if self.dtype.kind == "b" else f"{self.dtype}"  # NumPy's name, which is not Python's

    __repr__ = __str__

    def with_shape(self, shape: tuple[Size, ...], form: Form | None = None) -> Type:
        """The same dtype with another shape: an array, or for rank 0 a NumPy scalar, unless ``form`` says otherwise."""
        return Type(self.dtype, shape, form or ("array" if shape else "scalar"))


def array(dtype: Any, *shape: Size) -> Type:
    """Shorthand for an array's type (a NumPy scalar's at rank 0)."""
    return Type(np.dtype(dtype), shape, "array" if shape else "scalar")


_PYTHON_DTYPES = {
    bool: np.dtype(bool),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


def python(kind: type) -> Type:
    """The weak type of a Python ``bool``, ``int``, ``float`` or ``complex``."""
    return Type(_PYTHON_DTYPES[kind], (), "python")


def python_kind(t: Type) -> type:
    """The Python class of a weak type."""
    return {"b": bool, "i": int, "f": float, "c": complex}[t.dtype.kind]
