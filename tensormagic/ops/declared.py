"""Functions mentioned in a user's rules that no graph can look into, such as Numba's, C's or np.vectorize's; a rule declares them pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.errors import DifferentiationError, DTypeError, RuleError
from tensormagic.ir.node import Node
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.pointwise import Pointwise, Signature, Weak

FLOAT = np.dtype(np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Declared(Pointwise):
    """A function called with float64 arrays when the graph runs; it is not in the registry, where another may have its name."""

    def __post_init__(self) -> None:
        """Do nothing: the op is not entered into the registry."""

    def jvp(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        """Return None if there are no tangents, else raise: an opaque function has no derivative unless a rule replaces it."""
        if all(t is None for t in tangents):
            return None
        raise DifferentiationError(
            f"the derivative of {self.name}, which a rule of yours speaks of, is not known",
            f"State a rule that says what {self.name} is in NumPy's functions, or define its derivative with tm.custom_gradient.",
        )


_declared: dict[Any, tuple[Any, Declared]] = {}  # each function once, with its op, so that equal calls are equal nodes


def _key(function: Any) -> Any:
    """Return the identity of a function; for ``np.vectorize``, of its inner function and options, as captured code makes new objects."""
    if not isinstance(function, np.vectorize):
        return id(function)
    return id(function.pyfunc), function.otypes, frozenset(function.excluded), function.signature


def declared(function: Callable[..., Any], arity: int) -> Declared:
    """Return the op of a function of ``arity`` numbers, which is tested first.

    Raises
    ------
    RuleError
        If the function is not pure, or not a function of single elements.
    """
    known = _declared.get(_key(function))
    if known is None or known[1].arity != arity:
        name = getattr(function, "__name__", type(function).__name__)
        call = _by_arrays(function, name, arity)
        op = Declared(name=name, numpy=call, dtypes=_loop_of(name), arity=arity, doc="A function of a rule.")
        known = _declared[_key(function)] = function, op
    return known[1]


def op_of(function: Any) -> Declared | None:
    """Return the op of a function that some rule mentions or has mentioned, or None."""
    known = _declared.get(_key(function))
    return known[1] if known else None


def _loop_of(name: str) -> Callable[[Sequence[Weak]], Signature]:
    def loop(operands: Sequence[Weak]) -> Signature:
        if any(w is complex or getattr(w, "kind", "") == "c" for w in operands):
            raise DTypeError(f"{name} is used in a rule, and takes real numbers there")
        return (FLOAT,) * len(operands), FLOAT

    return loop


def _by_arrays(function: Callable[..., Any], name: str, arity: int) -> Callable[..., Value]:
    """Return the function over arrays: itself if it takes arrays, else called element by element."""
    points = [np.linspace(0.25, 0.75, 5) + 0.125 * k for k in range(arity)]
    single = [_one(function, name, [p[k] for p in points]) for k in range(5)]
    if [_one(function, name, [p[k] for p in points]) for k in range(5)] != single:
        raise _no_function(name, "gives something else when it is called again with the same numbers")
    call = _guarded(function, name) if _takes_arrays(function, points, single) else None
    return call or _guarded(np.frompyfunc(lambda *numbers: _one(function, name, numbers), arity, 1), name)


def _one(function: Callable[..., Any], name: str, numbers: Sequence[Any]) -> float:
    try:
        found = np.asarray(function(*map(float, numbers)))
    except Exception as error:
        raise _no_function(name, f"raises {type(error).__name__} for numbers: {error}") from error
    if found.shape or found.dtype.kind not in "fiub":
        raise _no_function(name, "does not give a number for numbers")
    return float(found)


def _takes_arrays(function: Callable[..., Any], points: Sequence[Value], single: Sequence[float]) -> bool:
    lent = [p.copy() for p in points]
    try:
        found = np.asarray(function(*lent))
    except Exception:  # noqa: BLE001 (whatever it raises: it takes no arrays)
        return False
    same = all(np.array_equal(a, b) for a, b in zip(lent, points, strict=True))
    return same and found.shape == points[0].shape and found.dtype == FLOAT and bool((found == single).all())


def _guarded(function: Callable[..., Any], name: str) -> Callable[..., Value]:
    """Return the function of float64 arrays, given copies of them; wider dtypes are refused, as SciPy's functions do."""

    def call(*values: Value) -> Value:
        if any(np.asarray(v).dtype.itemsize > FLOAT.itemsize for v in values):
            raise TypeError(f"{name} is known in float64 alone")
        return np.asarray(function(*(np.array(v, FLOAT) for v in values)), FLOAT)[()]

    call.__name__ = name
    return call


def _no_function(name: str, why: str) -> RuleError:
    return RuleError(
        f"{name} {why}",
        "A function in a rule is one of float64 numbers, and gives a number that depends on these alone.",
    )
