"""What formulas are worth: their trees by NumPy, written apart from what prints them and from what made them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import special

from tensormagic.notebook.formulas import latex as t
from tensormagic.notebook.formulas.equations import Formula

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "log": np.log,
    "log_2": np.log2,
    "log_10": np.log10,
    "σ": special.expit,
    "Γ": special.gamma,
    "ψ": special.digamma,
    "max": np.maximum,
    "min": np.minimum,
    "round": np.rint,
    "Re": np.real,
    "Im": np.imag,
    "det": np.linalg.det,
    "sort": np.sort,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sign": np.sign,
    "erf": special.erf,
    "isinf": np.isinf,
    "arctan2": np.arctan2,
}
_FENCES = {
    "sqrt": np.sqrt,
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "conj": np.conj,
    "not": np.logical_not,
}
_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
    "mod": np.mod,
}
_FOLDS: dict[str, Callable[[Any], Any]] = {
    "sum": sum,
    "prod": np.prod,
    "max": max,
    "min": min,
    "any": any,
    "all": all,
    "argmax": np.argmax,
    "argmin": np.argmin,
}


def value(e: t.Expression, names: Mapping[str, Any]) -> Any:
    """The value of a formula."""
    return _VALUES[type(e)](e, names)


def _product(e: t.Product, names: Mapping[str, Any]) -> Any:
    factors = [value(f, names) for f in e.factors]
    found = factors[0]
    for k, factor in enumerate(factors[1:], 1):
        if e.sign != "matrix":
            found = found * factor
        elif np.ndim(found) == np.ndim(factor) == 1 and isinstance(e.factors[k], t.Transposed):
            found = np.outer(found, factor)
        else:
            found = found @ factor
    return found


def _big(e: t.Big, names: Mapping[str, Any]) -> Any:
    ranges = [range(int(value(bound, names)) + (sign == "<=")) for _, sign, bound in e.indices]
    letters = [letter for letter, _, _ in e.indices]
    return _FOLDS[e.symbol](
        [value(e.body, {**names, **dict(zip(letters, at, strict=True))}) for at in itertools.product(*ranges)]
    )


def _part(e: t.Part, names: Mapping[str, Any]) -> Any:
    indices = [value(i, names) for i in e.indices]
    assert all(0 <= i < n for i, n in zip(indices, np.shape(value(e.base, names)), strict=True)), t.plain(e)
    return np.asarray(value(e.base, names))[tuple(int(i) for i in indices)]


def _cases(e: t.Cases, names: Mapping[str, Any]) -> Any:
    condition = value(e.condition, names)
    if np.ndim(condition):
        return np.where(condition, value(e.then, names), value(e.otherwise, names))
    return value(e.then if condition else e.otherwise, names)


def _turned(e: t.Transposed, names: Mapping[str, Any]) -> Any:
    base = value(e.base, names)
    return np.linalg.inv(base) if e.sign == "-1" else np.transpose(base)


_VALUES: dict[type[t.Expression], Callable[[Any, Mapping[str, Any]], Any]] = {
    t.Name: lambda e, names: np.pi if e.text == "π" else names[e.text],
    t.Number: lambda e, _: e.value,
    t.Add: lambda e, names: sum(value(term, names) for term in e.terms),
    t.Negative: lambda e, names: -value(e.body, names),
    t.Product: _product,
    t.Quotient: lambda e, names: value(e.top, names) / value(e.bottom, names),
    t.Power: lambda e, names: (
        np.exp(value(e.exponent, names)) if e.base is None else value(e.base, names) ** value(e.exponent, names)
    ),
    t.Call: lambda e, names: _FUNCTIONS[e.function](*(value(a, names) for a in e.arguments)),
    t.Big: _big,
    t.Part: _part,
    t.Transposed: _turned,
    t.Fence: lambda e, names: _FENCES[e.kind](value(e.body, names)),
    t.Cases: _cases,
    t.Relation: lambda e, names: _RELATIONS[e.sign](value(e.left, names), value(e.right, names)),
    t.Row: lambda e, names: np.array([value(item, names) for item in e.items]),
}


def line_value(formula: Formula, left: str, shape: tuple[int, ...], names: Mapping[str, Any]) -> Any:
    """What the equation with that left side says: the array of its elements, where it is written with indices."""
    known = {**names, **{n: int(v) for n, _, v in (note.partition(" = ") for note in formula.notes) if v.isdigit()}}
    for to, right in formula.lines:
        base = to.base if isinstance(to, t.Part) else to
        if t.plain(base) != left:
            continue
        if not isinstance(to, t.Part):
            return value(right, known)
        letters = [i.text for i in to.indices if isinstance(i, t.Name)]
        elements = [value(right, {**known, **dict(zip(letters, at, strict=True))}) for at in np.ndindex(shape)]
        return np.reshape(elements, shape)
    raise KeyError(left)
