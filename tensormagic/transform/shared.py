"""Shares work between functions of one matrix: systems are solved together, and values are taken from decompositions.

Each decomposition is made once: ``solve(a, b)`` and ``solve(a, c)`` are one system with the columns of both, where
neither needs the other's solution; ``svd(a, compute_uv=False)`` beside ``svd(a)``, and ``eigvalsh`` beside ``eigh``,
is part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.size import Size
from tensormagic.ops.fold import SUM, fold
from tensormagic.ops.leaf import constant
from tensormagic.ops.matrices.determinants import DET, SLOGDET
from tensormagic.ops.matrices.linalg import EIGH, EIGVALSH, SOLVE, SVD, SVDVALS, cholesky, solve_triangular, swap
from tensormagic.ops.matrices.matrix import diagonal
from tensormagic.ops.move import concatenate, slice_
from tensormagic.ops.opaque import Opaque, item, items
from tensormagic.ops.scalars.scalar import exp, log
from tensormagic.transform.definite import definite

_PARTS: Mapping[object, tuple[Opaque, int]] = {SVDVALS: (SVD, 1), EIGVALSH: (EIGH, 0)}


def shared(results: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for functions of matrices that share their work with others."""
    by_matrix: dict[Node, list[Node]] = {}
    for node in topological(results):
        if node.op in {SOLVE, DET, SLOGDET, *_PARTS, SVD, EIGH}:
            by_matrix.setdefault(node.args[0], []).append(node)
    for group in by_matrix.values():
        goals = _by_cholesky(group) or _parts(group) or _systems(_apart(group))
        if goals:
            return goals
    return {}


def _by_cholesky(group: Sequence[Node]) -> dict[Node, Node]:
    """Return systems of a positive definite matrix and its log-determinant by one Cholesky decomposition; empty if that does not apply.

    For a system alone this is no faster; two decompositions are twice the work of one.
    """
    a = group[0].args[0]
    systems, sizes = _apart(group), [n for n in group if n.op is SLOGDET]
    if not systems or not sizes or not definite(a):
        return {}
    factor = cholesky(a)
    turned = swap(factor)
    found = {n: solve_triangular(turned, solve_triangular(factor, n.args[1], lower=True)) for n in systems}
    logarithm = 2 * fold(SUM, log(diagonal(factor, 0, 1)), (0,))
    one = constant(a.type.dtype.type(1))
    return found | {old: new for n in sizes for old, new in zip(items(n), (one, logarithm), strict=True)}


def _apart(group: Sequence[Node]) -> list[Node]:
    """Return the systems in a group that do not depend on each other's solutions."""
    taken: list[Node] = []
    for node in group:
        if node.op is SOLVE and node.type.ndim == 2 and set(taken).isdisjoint(topological([node.args[1]])):
            taken.append(node)
    return taken


def _parts(group: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for values that a decomposition in the group has among its results."""
    found: dict[Node, Node] = {}
    for node in group:
        if node.op in _PARTS:
            op, index = _PARTS[node.op]
            wide = next((n for n in group if n.op is op and _reads_alike(n, node)), None)
            found |= {} if wide is None else {node: item(wide, index)}
        if node.op is DET and node.type.dtype.kind == "f":
            both = next((n for n in group if n.op is SLOGDET), None)
            found |= {} if both is None else {node: item(both, 0) * exp(item(both, 1))}
    return found


def _reads_alike(wide: Node, node: Node) -> bool:
    """Return whether both read the same triangle of the matrix."""
    return wide.params.get("UPLO") == node.params.get("UPLO")


def _systems(taken: Sequence[Node]) -> dict[Node, Node]:
    """Return replacements for independent systems of one matrix, solved as one; empty if there is only one."""
    if len(taken) < 2:
        return {}
    whole = make(SOLVE, (taken[0].args[0], concatenate([n.args[1] for n in taken], 1)))
    found: dict[Node, Node] = {}
    at: Size = 0
    for node in taken:
        rows, columns = node.type.shape
        found[node] = slice_(whole, ((0, rows, 1), (at, columns, 1)))
        at = at + columns
    return found
