"""NumPy's reductions and cumulative functions on lazy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.names import implements
from tensormagic.capture.value import Tensor, as_size, node_of, refuse, wrap
from tensormagic.ir.node import Node
from tensormagic.ir.type import apply
from tensormagic.ops import fold as folds
from tensormagic.ops import scalar
from tensormagic.ops.fold import axes_of, fold, mean, reduce_sum
from tensormagic.ops.leaf import size_node
from tensormagic.ops.move import expand_dims, reshape
from tensormagic.ops.pointwise import astype

_MISSING = np._NoValue  # type: ignore[attr-defined] # noqa: SLF001 (NumPy's own mark for an option that is not given)


def _given(value: Any) -> bool:
    return value is not None and value is not _MISSING


def axis_of(axis: Any) -> Any:
    """An axis argument as an int, a tuple of ints, or None."""
    if axis is None:
        return None
    return tuple(int(a) for a in axis) if isinstance(axis, tuple | list) else int(axis)


def _finish(result: Node, out: Any, name: str) -> Any:
    tensor = wrap(context.record(result))
    if not _given(out):
        return tensor
    from tensormagic.capture.operators import store_result

    if not isinstance(out, Tensor):
        refuse(f"{name} with out=", "Assign the result instead.")
    return store_result(out, result, name)


def _unsupported(name: str, where: Any, initial: Any) -> None:
    if where is not True and _given(where):
        refuse(f"{name} with where=", "Use np.where(mask, x, neutral) first.")
    if _given(initial):
        refuse(f"{name} with initial=", "Add it to the result instead.")


def reduction_of(op: folds.Fold) -> Any:
    """NumPy's reduction by ``op``, with NumPy's options."""

    def reduction(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        _unsupported(op.name, where, initial)
        x = node_of(a)
        if _given(dtype):
            x = astype(x, dtype)
        result = fold(op, x, axes_of(x, axis_of(axis)), keepdims=keepdims is True)
        return _finish(astype(result, dtype) if _given(dtype) else result, out, op.name)

    return reduction


def _plain_reduction(op: folds.Fold) -> Any:
    general = reduction_of(op)

    def reduction(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
    ) -> Any:
        return general(a, axis, None, out, keepdims, initial, where)

    return reduction


implements(np.sum, method="sum")(reduction_of(folds.SUM))
implements(np.prod, method="prod")(reduction_of(folds.PROD))
implements(np.max, np.amax, method="max")(_plain_reduction(folds.MAX))
implements(np.min, np.amin, method="min")(_plain_reduction(folds.MIN))


@implements(np.any, method="any")
def any_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """``np.any``."""
    return _plain_reduction(folds.ANY)(a, axis, out, keepdims, None, where)


@implements(np.all, method="all")
def all_(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """``np.all``."""
    return _plain_reduction(folds.ALL)(a, axis, out, keepdims, None, where)


def _arg(op: folds.Fold) -> Any:
    def reduction(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        x = node_of(a)
        if axis is None:
            x = reshape(x, (-1,)) if x.type.ndim != 1 else x
            result = fold(op, x, (0,))
            return _finish(
                expand_dims(result, tuple(range(node_of(a).type.ndim))) if keepdims is True else result, out, op.name
            )
        return _finish(fold(op, x, axes_of(x, axis_of(axis)), keepdims=keepdims is True), out, op.name)

    return reduction


implements(np.argmax, method="argmax")(_arg(folds.ARGMAX))
implements(np.argmin, method="argmin")(_arg(folds.ARGMIN))


@implements(np.mean, method="mean")
def mean_(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """``np.mean``."""
    _unsupported("mean", where, None)
    x = node_of(a)
    x = astype(x, dtype) if _given(dtype) else x
    axes = axes_of(x, axis_of(axis))
    result = mean(x, axes)
    return _finish(expand_dims(result, axes) if keepdims is True else result, out, "mean")


@implements(np.var, method="var")
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """``np.var``: the mean of the squared distances from the mean, as NumPy computes it."""
    _unsupported("var", where, mean)
    x = node_of(a)
    if _given(dtype):
        x = astype(x, dtype)
    elif x.type.dtype.kind in "biu":
        x = astype(x, np.float64)
    axes = axes_of(x, axis_of(axis))
    from tensormagic.ops.fold import mean as mean_of

    centre = expand_dims(mean_of(x, axes), axes)
    distance = x - centre
    squares = distance * distance if x.type.dtype.kind != "c" else scalar.real(distance * scalar.conjugate(distance))
    total = reduce_sum(squares, axes)
    count = apply("max", folds.count(x, axes) - as_size(correction if _given(correction) else ddof), 0)
    result = total / astype(size_node(count), total.type.dtype)
    return _finish(expand_dims(result, axes) if keepdims is True else result, out, "var")


@implements(np.std, method="std")
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **options: Any
) -> Any:
    """``np.std``."""
    variance = var(a, axis, dtype, None, ddof, keepdims, **options)
    return _finish(scalar.sqrt(variance.node), out, "std")


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """``np.ptp``: largest less smallest."""
    x = node_of(a)
    axes = axes_of(x, axis_of(axis))
    wide = keepdims is True
    return _finish(fold(folds.MAX, x, axes, keepdims=wide) - fold(folds.MIN, x, axes, keepdims=wide), out, "ptp")


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """``np.count_nonzero``."""
    x = node_of(a)
    return _finish(
        reduce_sum(astype(scalar.not_equal(x, 0), np.int64), axes_of(x, axis_of(axis)), keepdims=keepdims),
        None,
        "count_nonzero",
    )


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """``np.average``."""
    if returned:
        refuse("np.average with returned=True", "Compute the sum of the weights yourself.")
    if weights is None:
        return mean_(a, axis, keepdims=keepdims)
    x, w = node_of(a), node_of(weights)
    if w.type.ndim != x.type.ndim:
        refuse("np.average with weights of another shape", "Broadcast the weights to the array's shape first.")
    axes = axes_of(x, axis_of(axis))
    return _finish(
        reduce_sum(x * w, axes, keepdims=keepdims is True) / reduce_sum(w, axes, keepdims=keepdims is True),
        None,
        "average",
    )


def _cumulative(op: folds.Fold) -> Any:
    def cumulative(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        x = node_of(a)
        x = astype(x, dtype) if _given(dtype) else x
        if axis is None or not x.type.ndim:
            x, axis = (reshape(x, (-1,)) if x.type.ndim != 1 else x), (axis or 0)
        return _finish(folds.row(op, x, axes_of(x, axis_of(axis))), out, op.name)

    return cumulative


implements(np.cumsum, method="cumsum")(_cumulative(folds.CUMSUM))
implements(np.cumprod, method="cumprod")(_cumulative(folds.CUMPROD))
