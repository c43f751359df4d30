"""Functions of square matrices, such as the exponential, with derivatives of any order from one block triangular matrix.

For f analytic, f([[A, E], [0, A]]) has the derivative of f at A in the direction E as its upper right block, and
doubling the matrix once more gives the second derivative, and so on (Higham, "Functions of Matrices", 2008, section
3.2). Such a derivative is linear in each direction, and its transpose is a derivative at the transposed matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import DifferentiationError, KindError
from tensormagic.ir.node import Node, make
from tensormagic.ir.type import Type
from tensormagic.ops.matrices.matrix import common_dtype, square_guards, square_type, swap
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque
from tensormagic.ops.pointwise import astype
from tensormagic.ops.tangents import total

OF_REAL = -2  # in place of a site: the complex matrix is known to be real
NAMES = ("expm", "logm", "sqrtm", "sinm", "cosm", "tanm", "sinhm", "coshm", "tanhm")


def _blocks(a: Value, directions: Sequence[Value]) -> Value:
    """Return the block triangular matrix whose function has the derivative along all directions in its upper right corner."""
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
    """Return a SciPy function of one matrix; complex if its principal value is."""
    import scipy.linalg

    return np.asarray(getattr(scipy.linalg, name)(a))


def _numpy(a: Value, *directions: Value, name: str, site: int = -1) -> Value:
    n = a.shape[-1]
    result = np.empty(a.shape, a.dtype)
    taken = (
        site != -1 and a.dtype.kind == "c"
    )  # the parts of a real matrix: SciPy takes another root of real matrices than of complex ones
    real = taken and site >= 0 and not directions and a.size > 0
    for k in np.ndindex(a.shape[:-2]) if n else ():
        if directions and name in {"sqrtm", "logm"} and _is_singular(a[k]):
            raise DifferentiationError(f"{name} has no derivative at a singular matrix")
        found = _whole(name, a[k].real if taken else a[k], [e[k] for e in directions])
        found = found[:n, found_from(n, len(directions)) :]
        if np.iscomplexobj(found) and a.dtype.kind != "c":
            raise _another("complex", name, site)
        real = real and not np.iscomplexobj(found)
        result[k] = found
    if real:
        raise _another("real", name, site)
    return result


def _whole(name: str, a: Value, directions: Sequence[Value]) -> Value:
    """Return the function of the block matrix; roots and logarithms keep equal eigenvalues on one side of the branch cut."""
    if directions and name == "sqrtm":
        return _root(a, directions)
    if directions and name == "logm" and np.iscomplexobj(root := _root(a, directions)):
        return 2 * apply(name, root)
    return apply(name, _blocks(a, directions))


def _root(a: Value, directions: Sequence[Value]) -> Value:
    """Return the root of the block matrix by blocks: an off-diagonal block ``S`` of the root solves ``S @ R + R @ S = block``."""
    import scipy.linalg

    whole = apply("sqrtm", a)
    for direction in directions:
        beside = np.kron(np.eye(len(whole) // len(direction)), direction)
        beside = scipy.linalg.solve_sylvester(whole, whole, beside)
        whole = np.block([[whole, beside], [np.zeros_like(beside), whole]])
    return whole


def _another(kind: str, name: str, site: int) -> KindError:
    """Return the error for a principal value that is complex (or real) where the captured code assumed the opposite."""
    other = "real" if kind == "complex" else "complex"
    error = KindError(
        f"the principal value of {name} of this matrix is {kind}, and the code was captured for a {other} one",
        "Convert the matrix to complex numbers first: a.astype(complex).",
    )
    error.site = site
    return error


def _is_singular(a: Value) -> bool:
    sizes = np.abs(np.linalg.eigvals(a))
    return bool(sizes.min(initial=np.inf) <= len(a) * np.finfo(a.dtype).eps * sizes.max(initial=0))


def found_from(n: int, directions: int) -> int:
    """Return the first column of the last block."""
    return n * 2**directions - n


def _type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    return square_type(args, params)


def _tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    """Return the tangent: one more direction for the matrix, or a new one in place of each present direction."""
    terms = [] if tangents[0] is None else [make(MATRIX_FUNCTION, (*node.args, tangents[0]), **node.params)]
    for k, t in enumerate(tangents[1:], 1):
        if t is not None:
            operands = [*node.args[:k], t, *node.args[k + 1 :]]
            terms.append(make(MATRIX_FUNCTION, operands, **node.params))
    return total(terms)


def _back(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
    a, *directions = node.args
    found: list[Tangent] = [None]
    for k, wanted in enumerate(linear[1:]):  # at the matrix itself, as another root may be taken of its transpose
        others = [e for j, e in enumerate(directions) if j != k]
        own = swap(make(MATRIX_FUNCTION, (a, *others, swap(cotangent)), **node.params)) if wanted else None
        found.append(own)
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


def matrix_function(name: str, a: Node, dtype: np.dtype[Any] | None = None, site: int = -1) -> Node:
    """Return ``scipy.linalg.expm`` and the like; complex if ``dtype`` or the matrix is.

    With a ``site``, ``dtype`` says whether the result was assumed real or complex; a `KindError` if that is wrong.
    ``OF_REAL`` as the site means that the matrix is real, and its principal value complex.
    """
    kind: dict[str, Any] = {"site": site} if site != -1 else {}
    return make(MATRIX_FUNCTION, (astype(a, common_dtype(a) if dtype is None else dtype),), name=name, **kind)
