"""Types of nodes: dtype, shape of symbolic sizes, and rank-0 form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tensormagic.ir.lazily import lazily
from tensormagic.ir.size import (
    Apply,
    Atom,
    Dim,
    Monomial,
    Size,
    Symbol,
    apply,
    atom,
    atoms,
    divide_exactly,
    evaluate,
    hint,
    lower_bound,
    product,
    size_text,
    symbol,
)
from tensormagic.ir.stored import is_stored
from tensormagic.ir.substituting import substitute

__all__ = [
    "Apply",
    "Atom",
    "Dim",
    "Form",
    "Monomial",
    "Size",
    "Symbol",
    "Type",
    "apply",
    "array",
    "atom",
    "atoms",
    "divide_exactly",
    "evaluate",
    "hint",
    "lower_bound",
    "product",
    "python",
    "python_kind",
    "size_text",
    "substitute",
    "symbol",
]

Form = Literal["array", "scalar", "python", "tape"]


@dataclass(frozen=True, eq=False)
class Type:
    """The dtype, shape and rank-0 form of a value.

    Parameters
    ----------
    dtype
        A NumPy dtype in native byte order.
    shape
        One :data:`Size` an axis: an ``int``, or a :class:`Dim` that is known when the graph runs.
    form
        ``"array"``; ``"scalar"`` for a NumPy scalar; ``"python"`` for a Python number, which promotes weakly (NEP 50);
        ``"tape"`` for a list of values of this dtype, which a loop records.
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

    @lazily
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
        """Whether the dtype is floating or complex, so that there are derivatives."""
        return self.dtype.kind in "fc" or is_stored(self.dtype)

    def __str__(self) -> str:
        if self.form == "tape":
            return f"tape[{self.dtype}]"
        if self.form == "python":
            return {"f": "float", "i": "int", "b": "bool", "c": "complex"}[self.dtype.kind]
        if self.shape or self.form == "array":
            return f"{self.dtype}[{', '.join(map(size_text, self.shape))}]"
        return "bool_" if self.dtype.kind == "b" else f"{self.dtype}"  # NumPy's name, which differs from Python's

    __repr__ = __str__

    def with_shape(self, shape: tuple[Size, ...], form: Form | None = None) -> Type:
        """Return the same dtype with another shape: an array (for rank 0 a NumPy scalar), unless ``form`` says otherwise."""
        own = "tape" if self.form == "tape" else "array" if shape else "scalar"
        return Type(self.dtype, shape, form or own)


def array(dtype: Any, *shape: Size) -> Type:
    """Return an array's type (a NumPy scalar's at rank 0)."""
    return Type(np.dtype(dtype), shape, "array" if shape else "scalar")


_PYTHON_DTYPES = {
    bool: np.dtype(bool),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


def python(kind: type) -> Type:
    """Return the weak type of a Python ``bool``, ``int``, ``float`` or ``complex``."""
    return Type(_PYTHON_DTYPES[kind], (), "python")


def python_kind(t: Type) -> type:
    """Return the Python class of a weak type."""
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[t.dtype.kind]
