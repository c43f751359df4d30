"""Further factorisations and systems of SciPy: LAPACK's pivots, Schur's form, Sylvester's equation, banded matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.type import Size, Type, apply
from tensormagic.ops.contract import matmul
from tensormagic.ops.matrices.matrix import common_dtype, square, square_guards, swap
from tensormagic.ops.move import broadcast, concatenate, expand_dims, reshape, slice_, transpose
from tensormagic.ops.move_kind import same
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import Opaque, items
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.function import typed
from tensormagic.ops.tangents import total

# pivots ---------------------------------------------------------------------------------------------------------------


def _swaps(rows: Value, count: int) -> Value:
    """Return LAPACK's pivots for an elimination that moved row j to ``rows[j]``: the row that each row was swapped with."""
    found = np.empty((*rows.shape[:-1], count), np.int32)
    for k in np.ndindex(rows.shape[:-1]):
        order = np.argsort(rows[k])
        now = np.arange(rows.shape[-1])
        for j in range(count):
            at = j + int(np.argmax(now[j:] == order[j]))
            found[(*k, j)] = at
            now[j], now[at] = now[at], now[j]
    return found


def _order(pivots: Value, count: int) -> Value:
    """Return the order of rows after the swaps that the pivots describe."""
    found = np.empty((*pivots.shape[:-1], count), np.int64)
    for k in np.ndindex(pivots.shape[:-1]):
        now = np.arange(count)
        for j, at in enumerate(pivots[k]):
            now[j], now[at] = now[at], now[j]
        found[k] = now
    return found


def _counted(dtype: type) -> Any:
    def types(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
        return Type(np.dtype(dtype), (*args[0].type.shape[:-1], params["count"]))

    return types


PIVOTS = Opaque(
    name="pivots",
    types=_counted(np.int32),
    numpy=_swaps,
    doc="What each row was swapped with, as LAPACK says it, from where elimination has put the rows.",
)
PIVOTED = Opaque(
    name="pivoted",
    types=_counted(np.int64),
    numpy=_order,
    doc="The order of rows that LAPACK's pivots make.",
)


def pivots(rows: Node, count: Size) -> Node:
    """Return ``count`` pivots, as LAPACK gives them."""
    return make(PIVOTS, (rows,), count=count)


def pivoted(found: Node, count: Size) -> Node:
    """Return the order of ``count`` rows after swapping by pivots."""
    return make(PIVOTED, (found,), count=count)


# Schur's form ---------------------------------------------------------------------------------------------------------


def _schur_numpy(a: Value) -> tuple[Value, ...]:
    import scipy.linalg

    form, vectors = np.empty_like(a), np.empty_like(a)
    for k in np.ndindex(a.shape[:-2]):
        found: Any = scipy.linalg.schur(a[k], "complex" if a.dtype.kind == "c" else "real", check_finite=False)
        form[k], vectors[k] = found
    return form, vectors


def _two_squares(args: tuple[Node, ...], _params: Mapping[str, Any]) -> tuple[Type, ...]:
    square(args[0])
    return args[0].type, args[0].type


SCHUR = Opaque(
    name="schur",
    cubed=700,
    raises=True,
    types=_two_squares,
    numpy=_schur_numpy,
    check=square_guards,
    doc="Schur's form t and unitary z with a = z t z*; for real matrices the real form.",
)


def schur(a: Node) -> tuple[Node, ...]:
    """Return ``scipy.linalg.schur`` of a matrix of floats."""
    return items(make(SCHUR, (a,)))


# Sylvester's equation -------------------------------------------------------------------------------------------------


def _sylvester_type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    a, b, q = args
    square(a)
    square(b)
    if not (same(a.type.shape[-1], q.type.shape[-2]) and same(b.type.shape[-1], q.type.shape[-1])):
        raise ShapeError("Shapes of the matrices do not fit: a, b and q are (m, m), (n, n) and (m, n)")
    return q.type


def _sylvester_numpy(a: Value, b: Value, q: Value) -> Value:
    import scipy.linalg

    found = np.empty_like(q)
    for k in np.ndindex(q.shape[:-2]):
        found[k] = scipy.linalg.solve_sylvester(a[k], b[k], q[k])
    return found


def _sylvester_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    a, b, _ = node.args
    first, second, right = tangents
    parts = [
        right,
        None if first is None else -matmul(first, node),
        None if second is None else -matmul(node, second),
    ]
    change = total([p for p in parts if p is not None])
    return None if change is None else make(SYLVESTER, (a, b, change))


def _sylvester_back(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
    if list(linear) != [False, False, True]:
        raise NotImplementedError
    a, b, _ = node.args
    return [None, None, make(SYLVESTER, (swap(a), swap(b), cotangent))]


def _sylvester_guards(node: Node) -> list[Guard]:
    (*_, m, m2), (*_, n, n2), (*_, rows, columns) = (v.type.shape for v in node.args)
    pairs = [(m, m2), (n, n2), (m, rows), (n, columns)]
    return [(s, "==", t) for s, t in pairs if s != t]


SYLVESTER = Opaque(
    name="solve_sylvester",
    cubed=1000,
    raises=True,
    types=_sylvester_type,
    numpy=_sylvester_numpy,
    tangent=_sylvester_tangent,
    back=_sylvester_back,
    check=_sylvester_guards,
    doc="The x with a x + x b = q.",
)


def solve_sylvester(a: Node, b: Node, q: Node) -> Node:
    """Return ``scipy.linalg.solve_sylvester``."""
    dtype = common_dtype(a, b, q)
    return make(SYLVESTER, [astype(v, dtype) for v in (a, b, q)])


# bands ----------------------------------------------------------------------------------------------------------------


def _banded_type(args: tuple[Node, ...], params: Mapping[str, Any]) -> Type:
    ab, b = args
    if not same(ab.type.shape[-1], b.type.shape[-2]):
        raise ValueError("shapes of ab and b are not compatible.")
    if not same(params["lower"] + params["upper"] + 1, ab.type.shape[-2]):
        count = params["lower"] + params["upper"] + 1
        raise ValueError(
            f"invalid values for the number of lower and upper diagonals: l+u+1 ({count}) does not equal ab.shape[0] ({ab.type.shape[-2]})"
        )
    return b.type


def _banded_numpy(ab: Value, b: Value, lower: int, upper: int) -> Value:
    import scipy.linalg

    found = np.empty_like(b)
    for k in np.ndindex(b.shape[:-2]):
        found[k] = scipy.linalg.solve_banded((lower, upper), ab[k], b[k], check_finite=False)
    return found


def _moved(rows: Node, by: int) -> Node:
    """Return rows shifted to the left along the last axis (to the right for negative ``by``), filled with zeros."""
    *lead, n = rows.type.shape
    if not by:
        return rows
    count = apply("min", abs(by), n)
    head = tuple((0, s, 1) for s in lead)
    zeros = broadcast(typed(0, rows), (*lead, count))
    if by > 0:
        return concatenate([slice_(rows, (*head, (count, n - count, 1))), zeros], len(lead))
    return concatenate([zeros, slice_(rows, (*head, (0, n - count, 1)))], len(lead))


def _diagonal(ab: Node, row: int) -> Node:
    """Return one diagonal, as it is stored."""
    *lead, _, n = ab.type.shape
    head = tuple((0, s, 1) for s in lead)
    return reshape(slice_(ab, (*head, (row, 1, 1), (0, n, 1))), (*lead, n))


def _times(ab: Node, x: Node, lower: int, upper: int) -> Node:
    """Return the product of a banded matrix, given by its diagonals, with columns."""
    order = (*range(x.type.ndim - 2), x.type.ndim - 1, x.type.ndim - 2)
    rows = transpose(x, order)
    found: list[Node] = []
    for d in range(-lower, upper + 1):
        diagonal = _diagonal(ab, upper - d)
        product = rows * broadcast(expand_dims(diagonal, (diagonal.type.ndim - 1,)), rows.type.shape)
        found.append(_moved(product, d))
    added = found[0]
    for part in found[1:]:
        added = added + part
    return transpose(added, order)


def _transposed(ab: Node, lower: int, upper: int) -> Node:
    """Return the diagonals of the transposed matrix."""
    rows = [_moved(_diagonal(ab, upper + e), -e) for e in range(lower, -upper - 1, -1)]
    return concatenate([expand_dims(r, (r.type.ndim - 1,)) for r in rows], ab.type.ndim - 2)


def _banded_tangent(node: Node, tangents: Sequence[Tangent]) -> Tangent:
    matrix, right = tangents
    lower, upper = node["lower"], node["upper"]
    moved = None if matrix is None else -_times(matrix, node, lower, upper)
    change = total([p for p in (right, moved) if p is not None])
    return None if change is None else make(BANDED, (node.args[0], change), **node.params)


def _banded_back(node: Node, cotangent: Node, linear: Sequence[bool]) -> Sequence[Tangent]:
    if list(linear) != [False, True]:
        raise NotImplementedError
    lower, upper = node["lower"], node["upper"]
    return [None, make(BANDED, (_transposed(node.args[0], lower, upper), cotangent), lower=upper, upper=lower)]


def _banded_guards(node: Node) -> list[Guard]:
    ab, b = node.args
    pairs = [(ab.type.shape[-1], b.type.shape[-2]), (ab.type.shape[-2], node["lower"] + node["upper"] + 1)]
    return [(s, "==", t) for s, t in pairs if s != t]


BANDED = Opaque(
    name="solve_banded",
    raises=True,
    types=_banded_type,
    numpy=_banded_numpy,
    tangent=_banded_tangent,
    back=_banded_back,
    check=_banded_guards,
    doc="The x with a x = b, where a is given by its diagonals.",
)


def solve_banded(ab: Node, b: Node, lower: int, upper: int) -> Node:
    """Return ``scipy.linalg.solve_banded`` of columns."""
    dtype = common_dtype(ab, b)
    return make(BANDED, (astype(ab, dtype), astype(b, dtype)), lower=lower, upper=upper)
