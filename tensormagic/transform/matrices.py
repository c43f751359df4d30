"""Facts about matrices that follow from how they were made: diagonal, triangular, orthogonal, block and Kronecker matrices."""

from __future__ import annotations

from tensormagic.ir.node import Node, as_size
from tensormagic.ir.rewriting.rules import plain
from tensormagic.ir.size import Size
from tensormagic.ops.contract import CONTRACT, split
from tensormagic.ops.indices.scatter import SCATTER_ADD
from tensormagic.ops.leaf import IOTA, constant
from tensormagic.ops.matrices.linalg import CHOLESKY, EIGH, INV, QR, SVD
from tensormagic.ops.matrices.matrix import diagonal, swap
from tensormagic.ops.move import BROADCAST, RESHAPE, TRANSPOSE, broadcast, reshape
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.pointwise import ASTYPE
from tensormagic.ops.scalars.scalar import add, equal, greater, greater_equal, less, less_equal, multiply, where
from tensormagic.ops.update import SET, zeros_like

_LOWER = {(less_equal, 1, 0), (less, 1, 0), (greater_equal, 0, 1), (greater, 0, 1)}
_UPPER = {(op, second, first) for op, first, second in _LOWER}


def is_zero(x: Node) -> bool:
    """Return whether every element of ``x`` is 0."""
    return x is zeros_like(x)


def _compared(mask: Node) -> tuple[object, int, int] | None:
    """Return the op and the axes compared for a comparison of row and column indices, or None."""
    if len(mask.args) != 2 or any(a.op is not IOTA or a.type.ndim != 2 for a in mask.args):
        return None
    return mask.op, mask.args[0]["axis"], mask.args[1]["axis"]


def on_diagonal(x: Node) -> bool:
    """Return whether ``x`` is the mask of the diagonal of a matrix."""
    found = _compared(x)
    return found is not None and found[0] is equal and found[1] != found[2]


def diagonal_of(x: Node) -> Node | None:
    """Return the diagonal of a square diagonal matrix, or None for any other matrix."""
    if x.type.ndim != 2 or x.type.dtype.kind != "f":
        return None
    if x.op is TRANSPOSE:
        return diagonal_of(x.args[0])
    if is_identity(x):
        return broadcast(constant(x.type.dtype.type(1)), x.type.shape[:1])
    if x.op is multiply:
        return _scaled(x)
    if x.op is add:
        parts = [diagonal_of(a) for a in x.args]
        return None if parts[0] is None or parts[1] is None else add(parts[0], parts[1])
    placed = placed_on_diagonal(x)
    if placed is not None:
        return placed
    if x.op is not where or not is_zero(x.args[2]) or not on_diagonal(plain(x.args[0])):
        return None
    shape, value = x.type.shape, x.args[1]
    if shape[0] != shape[1]:
        return None
    inner = value.args[0] if value.op is BROADCAST else None
    if inner is not None and inner.type.ndim < 2:
        return broadcast(inner, shape[:1])
    return diagonal(value, 0, 1)


def are_on_diagonal(places: Node, rows: Size, columns: Size) -> bool:
    """Return whether flat indices are those of a matrix's diagonal, as ``diagonal_places`` gives them."""
    found = plain(places)
    if found.op is not multiply or found.type.shape != (rows,):
        return False
    (ramp, step), (other, by) = ([plain(a) for a in args] for args in (found.args, found.args[::-1]))
    return any(r.op is IOTA and as_size(s) == columns + 1 for r, s in ((ramp, step), (other, by)))


def placed_on_diagonal(x: Node) -> Node | None:
    """Return the elements added to the diagonal of a zero matrix, as in derivatives of diagonals, or None."""
    if x.type.ndim == 2 and x.op is TRANSPOSE:
        return placed_on_diagonal(x.args[0])
    shape, flat = x.type.shape, x.args[0] if x.op is RESHAPE else x
    if flat.op is not SCATTER_ADD or len(shape) != 2 or shape[0] != shape[1] or flat.type.ndim != 1:
        return None
    zeros, places, values = flat.args
    return values if is_zero(zeros) and are_on_diagonal(places, *shape) else None


def _scaled(x: Node) -> Node | None:
    for one, other in (x.args, x.args[::-1]):
        number = plain(other)
        found = diagonal_of(one) if not number.type.shape else None
        if found is not None:
            return multiply(found, broadcast(number, found.type.shape))
    return None


def is_identity(x: Node) -> bool:
    """Return whether ``x`` is the identity matrix."""
    shape = x.type.shape
    return len(shape) == 2 and shape[0] == shape[1] and x.op is ASTYPE and on_diagonal(x.args[0])


def triangle_of(x: Node) -> str:
    """Return ``"lower"`` or ``"upper"`` for a triangular matrix, else empty."""
    if x.op is TRANSPOSE and x.type.ndim == 2:
        return {"lower": "upper", "upper": "lower", "": ""}[triangle_of(x.args[0])]
    if x.op is CHOLESKY:
        return "upper" if x["upper"] else "lower"
    if x.op is ITEM and x.args[0].op is QR and x["index"] == 1 and x.type.shape[0] == x.type.shape[1]:
        return "upper"
    if x.op is INV:
        return triangle_of(x.args[0])
    if x.op is where and x.type.ndim == 2 and is_zero(x.args[2]):
        found = _compared(plain(x.args[0]))
        return "lower" if found in _LOWER else "upper" if found in _UPPER else ""
    if x.op is multiply:
        return next((triangle_of(a) for a, b in (x.args, x.args[::-1]) if not plain(b).type.shape), "")
    return ""


def orthonormal(x: Node) -> str:
    """Return ``"columns"`` or ``"rows"`` if those of a matrix are orthonormal, else empty."""
    if x.type.dtype.kind != "f" or x.type.ndim != 2:
        return ""
    if x.op is TRANSPOSE:
        return {"columns": "rows", "rows": "columns", "": ""}[orthonormal(x.args[0])]
    if x.op is not ITEM:
        return ""
    source, index = x.args[0], x["index"]
    if source.op is SVD:
        return {0: "columns", 2: "rows"}.get(index, "")
    return "columns" if (source.op is QR and index == 0) or (source.op is EIGH and index == 1) else ""


def orthogonal(x: Node) -> bool:
    """Return whether ``x`` is a square matrix whose transpose is its inverse."""
    return bool(orthonormal(x)) and x.type.shape[0] == x.type.shape[1]


def gram_of(x: Node) -> Node | None:
    """Return ``a`` if ``x`` is ``a @ a.T``, else None."""
    if x.op is not CONTRACT or x.args[0] is not x.args[1] or x.type.dtype.kind != "f" or x.type.ndim != 2:
        return None
    (left, right), out = split(x["subscripts"])
    if len(left) != 2 or left[1] != right[1] or set(left[0] + right[0]) != set(out):
        return None
    return x.args[0]


def blocks_of(x: Node) -> list[Node] | None:
    """Return the blocks of a block diagonal matrix, or None for any other."""
    found: dict[tuple[Size, Size], Node] = {}
    whole = x.type.shape
    while x.op is SET and x.type.ndim == 2:
        (row, _, step), (column, _, by) = x["slices"]
        if step != 1 or by != 1 or (row, column) in found:
            return None
        found[row, column] = x.args[1]
        x = x.args[0]
    if len(found) < 2 or not is_zero(x):
        return None
    at: tuple[Size, Size] = 0, 0
    blocks: list[Node] = []
    while at in found:
        block = found.pop(at)
        blocks.append(block)
        at = at[0] + block.type.shape[0], at[1] + block.type.shape[1]
    return None if found or whole != at else blocks


def factors_of(x: Node) -> tuple[Node, Node] | None:
    """Return the factors of a Kronecker product of matrices, or None for any other."""
    if x.op is TRANSPOSE and (inner := factors_of(x.args[0])) is not None:
        return swap(inner[0]), swap(inner[1])
    product = x.args[0] if x.op is RESHAPE else x
    if product.op is not multiply or product.type.ndim != 4 or x.type.ndim != 2:
        return None
    m, p, n, q = product.type.shape
    if x.type.shape != (m * p, n * q) or any(a.op is not BROADCAST for a in product.args):
        return None
    inner = [a.args[0] for a in product.args]
    for one, other in (inner, inner[::-1]):
        if one.type.shape == (m, 1, n, 1) and other.type.shape in {(1, p, 1, q), (p, 1, q)}:
            return reshape(one, (m, n)), reshape(other, (p, q))
    return None
