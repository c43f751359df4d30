"""Functions of one matrix that do the same work: systems with one matrix are solved together, values come with vectors.

Each decomposition is made once: ``solve(a, b)`` and ``solve(a, c)`` are one system with the columns of both, where neither
needs the other's solution; ``svd(a, compute_uv=False)`` beside ``svd(a)``, and ``eigvalsh`` beside ``eigh``, is part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.size import Size
from tensormagic.ops.matrices.determinants import DET, SLOGDET
from tensormagic.ops.matrices.linalg import EIGH, EIGVALSH, SOLVE, SVD, SVDVALS
from tensormagic.ops.move import concatenate, slice_
from tensormagic.ops.opaque import Opaque, item
from tensormagic.ops.scalars.scalar import exp

_PARTS: Mapping[object, tuple[Opaque, int]] = {SVDVALS: (SVD, 1), EIGVALSH: (EIGH, 0)}


def shared(results: Sequence[Node]) -> dict[Node, Node]:
    """What takes the place of functions of matrices that others compute too."""
    by_matrix: dict[Node, list[Node]] = {}
    for node in topological(results):
        if node.op in {SOLVE, DET, SLOGDET, *_PARTS, SVD, EIGH}:
            by_matrix.setdefault(node.args[0], []).append(node)
    for group in by_matrix.values():
        goals = _parts(group) or _systems([n for n in group if n.op is SOLVE])
        if goals:
            return goals
    return {}


def _parts(group: Sequence[Node]) -> dict[Node, Node]:
    """Values that a decomposition in the group has as one of its results."""
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
    """Whether both read the same triangle of the matrix, where they read one."""
    return wide.params.get("UPLO") == node.params.get("UPLO")


def _systems(group: Sequence[Node]) -> dict[Node, Node]:
    """Systems of one matrix, none of which needs the solution of another, as one."""
    taken: list[Node] = []
    for node in group:
        if node.type.ndim == 2 and set(taken).isdisjoint(topological([node.args[1]])):
            taken.append(node)
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
