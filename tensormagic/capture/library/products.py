"""NumPy's products on lazy arrays: dot, inner, outer, tensordot, einsum, trace and the like."""

from __future__ import annotations

import operator
import string
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.library.diagonals import diagonal
from tensormagic.capture.library.reductions import reduction_of
from tensormagic.capture.names import implements
from tensormagic.capture.stores.views import einsum_view
from tensormagic.capture.values.arguments import into_out, strong
from tensormagic.capture.values.operands import build, node_of
from tensormagic.capture.values.value import Tensor, done, wrap
from tensormagic.ir.errors import BoundsError, ShapeError
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ops import contract
from tensormagic.ops.contract import LETTERS, einsum
from tensormagic.ops.fold import SUM
from tensormagic.ops.form import to_form
from tensormagic.ops.leaf import constant, size_node
from tensormagic.ops.move import reshape
from tensormagic.ops.move_kind import normalise_axis, same, show
from tensormagic.ops.scalars import scalar


@implements(np.dot, method="dot")
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Implement ``np.dot``."""
    if out is not None:
        return _exactly(dot(a, b), out)
    x, y = node_of(a), node_of(b)
    if not x.type.ndim or not y.type.ndim:  # Python's numbers are arrays of their own dtype here
        found = build(scalar.multiply, *(to_form(n, "scalar") if n.type.form == "python" else n for n in (x, y)))
        return found if found.ndim not in {1, 2} or not found.type.inexact else _added(found)
    _fit("dot", x, y, -1, -2 if y.type.ndim > 1 else -1)
    if x.type.ndim <= 2 and y.type.ndim <= 2:
        return done(_of_singles(x, y, x.type.ndim + y.type.ndim - 2) or contract.matmul(x, y))
    left = LETTERS[: x.type.ndim]
    right = LETTERS[x.type.ndim : x.type.ndim + y.type.ndim]
    right = right[:-2] + left[-1] + right[-1:] * (y.type.ndim > 1)
    return done(einsum(f"{left},{right}->{left[:-1]}{right.replace(left[-1], '')}", x, y))


def _added(product: Tensor) -> Tensor:
    """Return a number times a vector or a matrix, to which NumPy adds zeros unless it has one element: then -0.0 becomes 0.0."""
    size = product.type.size
    if size == 1:
        return product
    zeros = [product.dtype.type(complex(z, z) if product.dtype.kind == "c" else z) for z in (-0.0, 0.0)]
    zero = constant(zeros[1])
    if nodes_of(size):
        zero = scalar.where(scalar.equal(size_node(size), 1), constant(zeros[0]), zero)
    return build(scalar.add, product, zero)


def _of_singles(x: Node, y: Node, rank: int) -> Node | None:
    """Return the product of arrays of one element, to which BLAS adds no zero, so that -0.0 stays; None for others."""
    single = [set(n.type.shape) == {1} for n in (x, y)]
    vectors = x.type.ndim == y.type.ndim == 1
    if not (all(single) or (any(single) and vectors)) or np.result_type(x.type.dtype, y.type.dtype).char not in "fdFD":
        return None
    product = scalar.multiply(*(to_form(reshape(n, ()), "scalar") for n in (x, y)))
    return reshape(product, (1,) * rank) if rank else product


def _exactly(result: Tensor, out: Any) -> Any:
    """Return the result in ``out``, which must have the same type and lie in C order."""
    if not isinstance(out, Tensor):
        return into_out(result.node, out, "dot")
    layout = out.place.layout()
    lies = layout is None or layout.flags.c_contiguous
    if (
        out.dtype != result.dtype
        or out.ndim != result.ndim
        or not lies
        or not all(map(same, out.type.shape, result.type.shape))
    ):
        raise ShapeError(
            "output array is not acceptable (must have the right datatype, number of dimensions, and be a C-Array)"
        )
    return into_out(result.node, out, "dot")


def _fit(name: str, x: Node, y: Node, left: int, right: int) -> None:
    if not same(x.type.shape[left], y.type.shape[right]):
        shapes = f"{show(x.type.shape)} and {show(y.type.shape)}"
        raise ShapeError(
            f"{name}: shapes {shapes} not aligned: {show(x.type.shape[left:][:1])} != {show(y.type.shape[right:][:1])}"
        )


@implements(np.vdot)
def vdot(a: Any, b: Any) -> Any:
    """Implement ``np.vdot``."""
    x, y = (reshape(v, (-1,)) if v.type.ndim != 1 else v for v in (node_of(a), node_of(b)))
    x = scalar.conjugate(x) if x.type.dtype.kind == "c" else x
    _fit("vdot", x, y, -1, -1)
    return done(einsum("a,a->", x, y))


@implements(np.inner)
def inner(a: Any, b: Any) -> Any:
    """Implement ``np.inner``."""
    x, y = node_of(a), node_of(b)
    if not x.type.ndim or not y.type.ndim:
        return build(scalar.multiply, strong(a), strong(b))
    _fit("inner", x, y, -1, -1)
    if max(x.type.ndim, y.type.ndim) <= 2 and (product := _of_singles(x, y, x.type.ndim + y.type.ndim - 2)) is not None:
        return done(product)
    left = LETTERS[: x.type.ndim]
    right = LETTERS[x.type.ndim : x.type.ndim + y.type.ndim - 1]
    return done(einsum(f"{left},{right}{left[-1]}->{left[:-1]}{right}", x, y))


@implements(np.outer)
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Implement ``np.outer``."""
    if out is not None:
        return into_out(outer(a, b).node, out, "outer")
    x, y = (reshape(v, (-1,)) if v.type.ndim != 1 else v for v in (node_of(a), node_of(b)))
    return build(scalar.multiply, reshape(x, (*x.type.shape, 1)), y)


@implements(np.tensordot)
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Implement ``np.tensordot``."""
    x, y = node_of(a), node_of(b)
    left_axes, right_axes = _tensordot_axes(axes, x.type.ndim)
    if len(left_axes) > x.type.ndim or len(right_axes) > y.type.ndim:
        raise BoundsError("tuple index out of range")
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
    result = _of_singles(x, y, len(out)) or einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x, y)
    return done(result if out else to_form(result, "array"))


def _tensordot_axes(axes: Any, rank: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, int | np.integer):
        return list(range(rank - int(axes), rank)), list(range(int(axes)))
    first, second = axes
    return ([int(first)] if np.ndim(first) == 0 else [int(k) for k in first]), (
        [int(second)] if np.ndim(second) == 0 else [int(k) for k in second]
    )


@implements(np.einsum)
def einsum_(subscripts: Any, *operands: Any, optimize: Any = False, out: Any = None, **options: Any) -> Any:
    """Implement ``np.einsum`` with subscripts as text; the path is opt_einsum's in any case."""
    del optimize
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists([subscripts, *operands])
    if out is not None or options:
        refuse("np.einsum with options", "Leave the options out.")
    nodes = [node_of(v) for v in operands]
    spelt = explicit(subscripts.replace(" ", ""), nodes)
    view = einsum_view(operands[0], *spelt.split("->")) if len(nodes) == 1 and isinstance(operands[0], Tensor) else None
    if view is not None:
        return view if view.ndim else wrap(context.record(to_form(view.node, "scalar")))
    return done(einsum(*_without_ones(spelt, nodes)))


_LABELS = string.ascii_uppercase + string.ascii_lowercase


def _from_lists(given: list[Any]) -> tuple[str, tuple[Any, ...]]:
    """Return subscripts as text, and the operands, of a call with lists of numbers after each operand, and one for the result."""
    whole = len(given) % 2 == 0
    pairs = given if whole else given[:-1]
    text = ",".join(map(_term, pairs[1::2])) + ("" if whole else f"->{_term(given[-1])}")
    return text, tuple(pairs[::2])


def _term(labels: Any) -> str:
    return "".join("..." if k is ... else _LABELS[operator.index(k)] for k in labels)


def _without_ones(spelt: str, nodes: list[Node]) -> tuple[Any, ...]:
    """Return subscripts and operands without the axes of extent 1 that are stretched to longer ones of other operands."""
    left, out = spelt.split("->")
    terms = left.split(",")
    long = {c for term, x in zip(terms, nodes, strict=True) for c, s in zip(term, x.type.shape, strict=True) if s != 1}
    kept = [
        [k for k, c in enumerate(t) if x.type.shape[k] != 1 or c not in long] for t, x in zip(terms, nodes, strict=True)
    ]
    shorter = ["".join(t[k] for k in own) for t, own in zip(terms, kept, strict=True)]
    operands = [
        x if len(own) == x.type.ndim else reshape(x, tuple(x.type.shape[k] for k in own))
        for x, own in zip(nodes, kept, strict=True)
    ]
    return f"{','.join(shorter)}->{out}", *operands


def explicit(subscripts: str, operands: list[Node]) -> str:
    """Return subscripts with the ellipsis and the result written out."""
    left, arrow, out = subscripts.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise ShapeError(f"einsum {subscripts!r} names {len(terms)} operands, but {len(operands)} were given")
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
    """Implement ``np.trace``."""
    return reduction_of(SUM)(diagonal(a, offset, axis1, axis2), -1, dtype, out)
