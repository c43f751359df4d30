"""Rules of matrices of known structure: diagonal, triangular, orthogonal and block matrices, and Kronecker products."""

# pyright: reportUnusedImport=false
# Rules of this theme that stand in a file of their own are imported here.

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensormagic.ir.node import Node, make
from tensormagic.ir.size import Size
from tensormagic.ops.contract import einsum, matmul, split
from tensormagic.ops.fold import PROD, fold
from tensormagic.ops.indices.gather import GATHER
from tensormagic.ops.indices.sorting import sort
from tensormagic.ops.leaf import iota, size_node
from tensormagic.ops.matrices.determinants import DET, det
from tensormagic.ops.matrices.linalg import (
    CHOLESKY,
    INV,
    SOLVE,
    cholesky,
    inv,
    solve,
    solve_triangular,
    swap,
)
from tensormagic.ops.matrices.matrix import as_column, diagonal
from tensormagic.ops.move import TRANSPOSE, broadcast, concatenate, flip, reshape, slice_, transpose
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars.scalar import absolute, equal, multiply, power, sqrt, where
from tensormagic.ops.update import set_at, zeros_like
from tensormagic.transform.matrices import (
    blocks_of,
    diagonal_of,
    factors_of,
    gram_of,
    is_identity,
    is_zero,
    orthogonal,
    orthonormal,
    placed_on_diagonal,
    triangle_of,
)
from tensormagic.transform.rewriting.notation import real, stable
from tensormagic.transform.rewriting.themes.definite import (  # noqa: F401 (as above)
    determinants_of_low_rank,
    inverses_of_low_rank,
    logarithms_of_determinants,
    logarithms_of_determinants_of_parts,
    systems_of_kroneckers,
    systems_of_low_rank,
    transposes_of_symmetric,
)


def _diag(values: Node) -> Node:
    """Return ``np.diag`` of a vector."""
    n = values.type.shape[0]
    on = equal(iota((n, n), 1), iota((n, n), 0))
    return where(on, broadcast(values, (n, n)), 0)


def _known(node: Node) -> bool:
    return node.type.dtype.kind == "f" and node.args[0].type.ndim == 2


def _joined(blocks: Sequence[Node], like: Node) -> Node:
    """Return the block diagonal matrix of ``blocks``."""
    found = zeros_like(like)
    at: Size = 0
    for block in blocks:
        n = block.type.shape[0]
        found = set_at(found, block, ((at, n, 1), (at, n, 1)))
        at = at + n
    return found


def _kron(a: Node, b: Node) -> Node:
    """Return ``np.kron`` of two matrices."""
    (m, n), (p, q) = a.type.shape, b.type.shape
    shape = (m, p, n, q)
    left = broadcast(reshape(a, (m, 1, n, 1)), shape)
    right = broadcast(reshape(b, (1, p, 1, q)), shape)
    return reshape(multiply(left, right), (m * p, n * q))


# products -------------------------------------------------------------------------------------------------------------


def _by_side(node: Node, look: Callable[[Node, Node, str, str, str], Node | None]) -> Node | None:
    """Call ``look`` for a product of a matrix with an operand: both, the letters kept and summed, and the other's."""
    letters, out = split(node["subscripts"])
    for k in (0, 1):
        x, own, other = node.args[k], letters[k], letters[1 - k]
        if len(own) != 2 or node.type.dtype.kind != "f":
            continue
        kept, summed = own if own[1] in other else own[::-1]
        if summed not in other or summed in out or kept in other:
            continue
        found = look(x if own == kept + summed else swap(x), node.args[1 - k], kept, summed, other)
        if found is not None:
            now = other.replace(summed, kept)
            return transpose(found, tuple(now.index(c) for c in out))
    return None


def _diagonal_product(x: Node, y: Node, _kept: str, summed: str, other: str) -> Node | None:
    values = diagonal_of(x)
    if values is None or is_identity(x):
        return y if values is not None else None
    return _rows_scaled(values, y, other.index(summed))


def _placed_product(x: Node, y: Node, _kept: str, summed: str, other: str) -> Node | None:
    values = placed_on_diagonal(x)
    return None if values is None else _rows_scaled(values, y, other.index(summed))


def _rows_scaled(values: Node, y: Node, axis: int) -> Node:
    shape = tuple(s if k == axis else 1 for k, s in enumerate(y.type.shape))
    return multiply(broadcast(reshape(values, shape), y.type.shape), y)


@real(roots="contract", assumes=("the other factor is finite",), fuel=1)
def products_with_diagonals(node: Node) -> Node | None:
    """``diag(x) @ a -> x[:, None] * a, eye(n) @ a -> a, and on the right``."""
    return _by_side(node, _diagonal_product)


@stable(roots="contract", heads="reshape", fuel=1, extends="numbers where the other factor is not finite", neutral=True)
def products_with_placed_diagonals(node: Node) -> Node | None:
    """``a @ d -> a * v where d is zeros to whose diagonal v is added, as in the derivative of np.diagonal``."""
    return _by_side(node, _placed_product)


@real(roots="contract", assumes=("the other factor is finite",))
def products_with_zeros(node: Node) -> Node | None:
    """``zeros @ a -> zeros``."""
    return zeros_like(node) if any(is_zero(a) for a in node.args) else None


@real(roots="contract", heads="gather", assumes=("the other factor is finite",))
def products_with_selections(node: Node) -> Node | None:
    """``a @ eye(n)[:, idx] -> a[:, idx], and eye(n)[idx] @ a -> a[idx]``."""
    letters, out = split(node["subscripts"])
    for k in (0, 1):
        x, own, other = node.args[k], letters[k], letters[1 - k]
        if x.op is not GATHER or len(own) != 2 or x.args[1].type.ndim != 1 or not is_identity(x.args[0]):
            continue
        kept, summed = own[x["axis"]], own[1 - x["axis"]]
        if summed in other and summed not in out and kept not in other:
            found = make(GATHER, (node.args[1 - k], x.args[1]), axis=other.index(summed))
            now = other.replace(summed, kept)
            return transpose(found, tuple(now.index(c) for c in out))
    return None


def _block_product(x: Node, y: Node, _kept: str, summed: str, other: str) -> Node | None:
    flipped = x.op is TRANSPOSE
    blocks = blocks_of(x.args[0] if flipped else x)
    if blocks is None:
        return None
    blocks = [swap(b) for b in blocks] if flipped else blocks
    axis = other.index(summed)
    at: Size = 0
    found: list[Node] = []
    for block in blocks:
        n = block.type.shape[1]
        part = slice_(y, tuple((at, n, 1) if k == axis else (0, s, 1) for k, s in enumerate(y.type.shape)))
        fresh = next(c for c in "abcdefghijklmnopqrstuvwxyz" if c not in other)
        found.append(einsum(f"{fresh}{summed},{other}->{other.replace(summed, fresh)}", block, part))
        at = at + n
    return concatenate(found, axis)


@real(roots="contract", assumes=("the other factor is finite",), fuel=1)
def products_with_blocks(node: Node) -> Node | None:
    """``block_diag(a, b) @ x -> concatenate([a @ x[:n], b @ x[n:]])``."""
    return _by_side(node, _block_product)


def _kronecker_product(x: Node, y: Node, _kept: str, summed: str, other: str) -> Node | None:
    factors = factors_of(x)
    if factors is None or y.type.ndim > 2:
        return None
    a, b = factors
    axis = other.index(summed)
    rest = [s for k, s in enumerate(y.type.shape) if k != axis]
    shape = (a.type.shape[1], b.type.shape[1])
    wide = reshape(y, (*shape, *rest) if axis == 0 else (*rest, *shape))
    letters = ("nq" + "r" * len(rest)) if axis == 0 else ("r" * len(rest) + "nq")
    found = einsum(f"mn,pq,{letters}->{letters.replace('n', 'm').replace('q', 'p')}", a, b, wide)
    rows = a.type.shape[0] * b.type.shape[0]
    return reshape(found, (rows, *rest) if axis == 0 else (*rest, rows))


@real(roots="contract", fuel=1)
def products_with_kroneckers(node: Node) -> Node | None:
    """``kron(a, b) @ x.ravel() -> (a @ x @ b.T).ravel()``."""
    return _by_side(node, _kronecker_product)


@real(roots="contract")
def products_of_orthonormals(node: Node) -> Node | None:
    """``q.T @ q -> eye(n), for the q of a QR decomposition and for eigenvectors``."""
    x, y = node.args
    (left, right), out = split(node["subscripts"])
    if x is not y or len(left) != 2 or len(out) != 2:
        return None
    axis = next((k for k in (0, 1) if left[k] == right[k] and left[k] not in out), None)
    sides = {orthonormal(x)} if not orthogonal(x) else {"columns", "rows"}
    if axis is None or ("columns", "rows")[axis] not in sides:
        return None
    n = node.type.shape[0]
    return astype(equal(iota((n, n), 0), iota((n, n), 1)), node.type.dtype)


# functions of matrices ------------------------------------------------------------------------------------------------


@real(roots="det", assumes=("no product of some elements runs over",), fuel=1)
def determinants_of_triangles(node: Node) -> Node | None:
    """``det(diag(x)) -> prod(x), and for triangular matrices``."""
    a = node.args[0]
    if not _known(node):
        return None
    values = diagonal_of(a)
    values = diagonal(a, 0, 1) if values is None and triangle_of(a) else values
    return None if values is None else fold(PROD, values, (0,))


@real(roots="inv", assumes=("no element of the diagonal is 0",), fuel=1)
def inverses_of_diagonals(node: Node) -> Node | None:
    """``inv(diag(x)) -> diag(1 / x)``."""
    values = diagonal_of(node.args[0]) if _known(node) else None
    return None if values is None else _diag(1 / values)


@real(roots="inv")
def inverses_of_orthogonals(node: Node) -> Node | None:
    """``inv(q) -> q.T where q is orthogonal``."""
    return swap(node.args[0]) if _known(node) and orthogonal(node.args[0]) else None


@real(roots="cholesky", assumes=("the elements of the diagonal are positive",), fuel=1)
def factors_of_diagonals(node: Node) -> Node | None:
    """``cholesky(diag(x)) -> diag(sqrt(x))``."""
    values = diagonal_of(node.args[0]) if _known(node) else None
    return None if values is None else _diag(sqrt(values))


@real(roots="cholesky", heads="contract", assumes=("the elements of its diagonal are positive",))
def factors_of_squares(node: Node) -> Node | None:
    """``cholesky(a @ a.T) -> a where a is lower triangular``."""
    a = gram_of(node.args[0]) if _known(node) else None
    if a is None or triangle_of(a) != "lower" or a.type.shape[0] != a.type.shape[1]:
        return None
    return swap(a) if node["upper"] else a


@real(roots="solve", assumes=("no element of the diagonal is 0",), fuel=1)
def systems_of_diagonals(node: Node) -> Node | None:
    """``solve(diag(x), b) -> b / x[:, None]``."""
    a, b = node.args
    values = diagonal_of(a) if _known(node) else None
    return None if values is None else b / broadcast(as_column(values), b.type.shape)


@real(roots="solve", fuel=1)
def systems_of_triangles(node: Node) -> Node | None:
    """``solve(cholesky(a), b) -> solve_triangular(cholesky(a), b), and for other triangular matrices``."""
    a, b = node.args
    side = triangle_of(a) if _known(node) else ""
    return solve_triangular(a, b, lower=side == "lower") if side else None


@real(roots="solve", assumes=("a is invertible",))
def systems_of_inverses(node: Node) -> Node | None:
    """``solve(inv(a), b) -> a @ b, and solve(q, b) -> q.T @ b where q is orthogonal``."""
    a, b = node.args
    if not _known(node):
        return None
    if a.op is INV:
        return matmul(a.args[0], b)
    return matmul(swap(a), b) if orthogonal(a) else None


@real(roots="svdvals eigvalsh", fuel=1)
def values_of_diagonals(node: Node) -> Node | None:
    """``svdvals(diag(x)) -> sort(absolute(x))[::-1], and eigvalsh(diag(x)) -> sort(x)``."""
    values = diagonal_of(node.args[0]) if _known(node) else None
    if values is None:
        return None
    return sort(values) if node.op.name == "eigvalsh" else flip(sort(absolute(values)), (0,))


# blocks and factors ---------------------------------------------------------------------------------------------------


@real(roots="det inv cholesky solve", heads="set", fuel=1)
def functions_of_blocks(node: Node) -> Node | None:
    """``det(block_diag(a, b)) -> det(a) * det(b), and block by block for inv, cholesky and solve``."""
    blocks = blocks_of(node.args[0]) if _known(node) else None
    if blocks is None or any(b.type.shape[0] != b.type.shape[1] for b in blocks):
        return None
    if node.op is DET:
        found = det(blocks[0])
        for block in blocks[1:]:
            found = multiply(found, det(block))
        return found
    if node.op is SOLVE:
        at: Size = 0
        parts: list[Node] = []
        for block in blocks:
            n = block.type.shape[0]
            parts.append(solve(block, slice_(node.args[1], ((at, n, 1), (0, node.args[1].type.shape[1], 1)))))
            at = at + n
        return concatenate(parts, 0)
    return _joined([make(node.op, (block,), **dict(node.params)) for block in blocks], node)


@real(roots="det inv cholesky", heads="reshape", fuel=1)
def functions_of_kroneckers(node: Node) -> Node | None:
    """``inv(kron(a, b)) -> kron(inv(a), inv(b)), and for cholesky and det``."""
    factors = factors_of(node.args[0]) if _known(node) else None
    if factors is None or any(f.type.shape[0] != f.type.shape[1] for f in factors):
        return None
    a, b = factors
    if node.op is INV:
        return _kron(inv(a), inv(b))
    if node.op is CHOLESKY:
        return None if node["upper"] else _kron(cholesky(a), cholesky(b))
    m, p = (astype(size_node(f.type.shape[0]), node.type.dtype) for f in factors)
    return multiply(power(det(a), p), power(det(b), m))
