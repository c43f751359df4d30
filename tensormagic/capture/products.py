"""NumPy's products on lazy arrays: dot, inner, outer, tensordot, einsum, trace and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.names import implements
from tensormagic.capture.value import Tensor, build, node_of, refuse, wrap
from tensormagic.ir.errors import ShapeError
from tensormagic.ir.node import Node
from tensormagic.ops import contract, scalar
from tensormagic.ops.contract import LETTERS, einsum
from tensormagic.ops.move import normalise_axis, reshape, show


def _done(node: Node) -> Tensor:
    return wrap(context.record(node))


@implements(np.dot, method="dot")
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """``np.dot``."""
    if out is not None:
        refuse("np.dot with out=", "Assign the result instead.")
    x, y = node_of(a), node_of(b)
    if not x.type.ndim or not y.type.ndim:
        return build(scalar.multiply, x, y)
    _fit("dot", x, y, -1, -2 if y.type.ndim > 1 else -1)
    if x.type.ndim <= 2 and y.type.ndim <= 2:
        return _done(contract.matmul(x, y))
    left = LETTERS[: x.type.ndim]
    right = LETTERS[x.type.ndim : x.type.ndim + y.type.ndim]
    right = right[:-2] + left[-1] + right[-1]
    return _done(einsum(f"{left},{right}->{left[:-1]}{right[:-2]}{right[-1]}", x, y))


def _fit(name: str, x: Node, y: Node, left: int, right: int) -> None:
    from tensormagic.ops.move import same

    if not same(x.type.shape[left], y.type.shape[right]):
        shapes = f"{show(x.type.shape)} and {show(y.type.shape)}"
        raise ShapeError(
            f"{name}: shapes {shapes} not aligned: {show(x.type.shape[left:][:1])} != {show(y.type.shape[right:][:1])}"
        )


@implements(np.vdot)
def vdot(a: Any, b: Any) -> Any:
    """``np.vdot``."""
    x, y = (reshape(v, (-1,)) if v.type.ndim != 1 else v for v in (node_of(a), node_of(b)))
    x = scalar.conjugate(x) if x.type.dtype.kind == "c" else x
    _fit("vdot", x, y, -1, -1)
    return _done(einsum("a,a->", x, y))


@implements(np.inner)
def inner(a: Any, b: Any) -> Any:
    """``np.inner``."""
    x, y = node_of(a), node_of(b)
    if not x.type.ndim or not y.type.ndim:
        return build(scalar.multiply, x, y)
    _fit("inner", x, y, -1, -1)
    left = LETTERS[: x.type.ndim]
    right = LETTERS[x.type.ndim : x.type.ndim + y.type.ndim - 1]
    return _done(einsum(f"{left},{right}{left[-1]}->{left[:-1]}{right}", x, y))


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """``np.outer``."""
    if out is not None:
        refuse("np.outer with out=", "Assign the result instead.")
    x, y = (reshape(v, (-1,)) if v.type.ndim != 1 else v for v in (node_of(a), node_of(b)))
    return build(scalar.multiply, reshape(x, (*x.type.shape, 1)), y)


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """``np.tensordot``."""
    x, y = node_of(a), node_of(b)
    left_axes, right_axes = _tensordot_axes(axes, x.type.ndim)
    left_axes = [normalise_axis(k, x.type.ndim) for k in left_axes]
    right_axes = [normalise_axis(k, y.type.ndim) for k in right_axes]
    if len(left_axes) != len(right_axes):
        raise ShapeError("shape-mismatch for sum")
    for p, q in zip(left_axes, right_axes, strict=True):
        _fit("tensordot", x, y, p - x.type.ndim, q - y.type.ndim)
    left = list(LETTERS[: x.type.ndim])
    right = list(LETTERS[x.type.ndim : x.type.ndim + y.type.ndim])
    for p, q in zip(left_axes, right_axes, strict=True):
        right[q] = left[p]
    out = [c for k, c in enumerate(left) if k not in left_axes] + [
        c for k, c in enumerate(right) if k not in right_axes
    ]
    return _done(einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, y))


def _tensordot_axes(axes: Any, rank: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, int | np.integer):
        return list(range(rank - int(axes), rank)), list(range(int(axes)))
    first, second = axes
    return ([int(first)] if np.ndim(first) == 0 else [int(k) for k in first]), (
        [int(second)] if np.ndim(second) == 0 else [int(k) for k in second]
    )


@implements(np.einsum)
def einsum_(subscripts: Any, *operands: Any, optimize: Any = False, out: Any = None, **options: Any) -> Any:
    """``np.einsum`` with subscripts as text; the path is opt_einsum's in any case."""
    del optimize
    if not isinstance(subscripts, str):
        refuse("np.einsum without a text of subscripts", "Write the subscripts as text: 'ij,jk->ik'.")
    if out is not None or options:
        refuse("np.einsum with options", "Leave the options out.")
    nodes = [node_of(v) for v in operands]
    return _done(einsum(explicit(subscripts.replace(" ", ""), nodes), *nodes))


def explicit(subscripts: str, operands: list[Node]) -> str:
    """Subscripts with the ellipsis and the result spelt out."""
    left, arrow, out = subscripts.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ShapeError(f"einsum {subscripts!r} names {len(terms)} operands, {len(operands)} are given")
    spare = [c for c in reversed(LETTERS) if c not in subscripts]
    lengths = [x.type.ndim - len(t.replace("...", "")) for t, x in zip(terms, operands, strict=True) if "..." in t]
    dots = "".join(reversed(spare[: max(lengths, default=0)]))
    for k, (term, x) in enumerate(zip(terms, operands, strict=True)):
        if "..." in term:
            own = x.type.ndim - len(term.replace("...", ""))
            terms[k] = term.replace("...", dots[len(dots) - own :])
    if not arrow:
        letters = "".join(terms)
        out = dots + "".join(c for c in sorted(set(letters)) if letters.count(c) == 1 and c not in dots)
    return f"{','.join(terms)}->{out.replace('...', dots)}"


@implements(np.trace, method="trace")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """``np.trace``."""
    from tensormagic.capture.reductions import reduction_of
    from tensormagic.capture.shaping import diagonal
    from tensormagic.ops.fold import SUM

    return reduction_of(SUM)(diagonal(a, offset, axis1, axis2), -1, dtype, out)
