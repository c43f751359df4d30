"""Functions of square matrices, such as the exponential, and their derivatives of any order by one triangular block matrix.

For f analytic, f([[A, E], [0, A]]) has the derivative of f at A in the direction E as its upper right block, and doubling
the matrix once more gives the second derivative, and so on (Higham, "Functions of Matrices", 2008, section 3.2). Such a
derivative is linear in each direction, and its transpose is a derivative at the transposed matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import DifferentiationError, GuardError
from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Type
from tensormagic.ops.matrices.matrix import common_dtype, square_guards, square_type, swap
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque
from tensormagic.ops.pointwise import astype, total

NAMES = ("expm", "logm", "sqrtm", "sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm")


def _blocks(a: Value, directions: Sequence[Value]) -> Value:
    """The block triangular matrix whose function has the derivative in all directions in its upper right corner."""
    whole = a
    for direction in directions:
        copies = whole.shape[-1] // direction.shape[-1]
        n = whole.shape[-1]
        doubled = np.zeros((2 * n, 2 * n), a.dtype)
        doubled[:n, :n] = doubled[n:, n:] = whole
        doubled[:n, n:] = np.kron(np.eye(copies, dtype=a.dtype), direction)
        whole = doubled
    return whole


def apply(name: str, a: Value) -> Value:
    """The function of one matrix by SciPy, complex where its principal value is."""
    import scipy.linalg

    return np.asarray(getattr(scipy.linalg, name)(a))


def _numpy(a: Value, *directions: Value, name: str) -> Value:
    n = a.shape[-1]
    result = np.empty(a.shape, a.dtype)
    for k in np.ndindex(a.shape[:-2]) if n else ():
        if directions and name in {"sqrtm", "logm"} and _is_singular(a[k]):
            raise DifferentiationError(f"{name} has no derivative at a singular matrix")
        found = apply(name, _blocks(a[k], [e[k] for e in directions]))[:n, found_from(n, len(directions)) :]
        if np.iscomplexobj(found) and a.dtype.kind != "c":
            raise GuardError(
                f"the principal value of {name} of this matrix is complex, and the code was captured for a real one",
                "Convert the matrix to complex numbers first: a.astype(complex).",
            )
        result[k] = found
    return result


def _is_singular(a: Value) -> bool:
    sizes = np.abs(np.linalg.eigvals(a))
    return bool(sizes.min(initial=np.inf) <= len(a) * np.finfo(a.dtype).eps * sizes.max(initial=0))


def found_from(n: int, directions: int) -> int:
    """The first column of the last block."""
    return n * 2**directions - n


def _type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    return square_type(args, params)


def _tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    """One more direction for the matrix, or another one in the place of one of those there are."""
    terms = [] if tangents[0] is None else [make(MATRIX_FUNCTION, (*node.args, tangents[0]), **node.params)]
    for k, t in enumerate(tangents[1:], 1):
        if t is not None:
            operands = [*node.args[:k], t, *node.args[k + 1 :]]
            terms.append(make(MATRIX_FUNCTION, operands, **node.params))
    return total(terms)


def _back(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
    a, *directions = node.args
    found: list[Tangent] = [None]
    for k, wanted in enumerate(linear[1:]):
        others = [swap(e) for j, e in enumerate(directions) if j != k]
        found.append(make(MATRIX_FUNCTION, (swap(a), *others, cotangent), **node.params) if wanted else None)
    return found


MATRIX_FUNCTION = Opaque(
    name="matrix_function",
    cubed=500,
    raises=True,
    types=_type,
    numpy=_numpy,
    tangent=_tangent,
    back=_back,
    check=square_guards,
    doc="A function of a square matrix, or its derivative in the directions of the further operands.",
    names={"name": lambda name: name.endswith("m") and name.isalpha()},
)


def matrix_function(name: str, a: Node, dtype: np.dtype[Any] | None = None) -> Node:
    """``scipy.linalg.expm`` and its like; complex where ``dtype`` or the matrix is."""
    return make(MATRIX_FUNCTION, (astype(a, common_dtype(a) if dtype is None else dtype),), name=name)
