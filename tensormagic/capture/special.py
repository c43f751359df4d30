"""``scipy.special`` on lazy arrays, by the functions' names: SciPy is imported where the user's code does so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.names import implements
from tensormagic.capture.reductions import axis_of
from tensormagic.capture.value import Tensor, node_of, refuse, wrap
from tensormagic.ir.node import Node
from tensormagic.ops import fold as folds
from tensormagic.ops import scalar
from tensormagic.ops.fold import axes_of, fold, row
from tensormagic.ops.pointwise import astype


def _done(node: Node) -> Tensor:
    return wrap(context.record(node))


def _float(value: Any) -> Node:
    node = node_of(value)
    return node if node.type.dtype.kind == "f" else astype(node, np.float64)


@implements("scipy.special.logsumexp")
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """``scipy.special.logsumexp`` of real numbers."""
    if b is not None or return_sign:
        refuse("logsumexp with b or return_sign", "Add log(b) to the operand.")
    x = _float(a)
    return _done(fold(folds.LOGSUMEXP, x, axes_of(x, axis_of(axis)), keepdims=keepdims))


@implements("scipy.special.softmax")
def softmax(x: Any, axis: Any = None) -> Any:
    """``scipy.special.softmax``."""
    node = _float(x)
    return _done(row(folds.SOFTMAX, node, axes_of(node, axis_of(axis))))


@implements("scipy.special.log_softmax")
def log_softmax(x: Any, axis: Any = None) -> Any:
    """``scipy.special.log_softmax``."""
    node = _float(x)
    return _done(row(folds.LOG_SOFTMAX, node, axes_of(node, axis_of(axis))))


# functions of one element, made of those that have a derivative -------------------------------------------------------


@implements("scipy.special.log_expit")
def log_expit(x: Any) -> Any:
    """``scipy.special.log_expit``: the logarithm of the logistic function."""
    return _done(-scalar.softplus(-_float(x)))


@implements("scipy.special.xlog1py")
def xlog1py(x: Any, y: Any) -> Any:
    """``scipy.special.xlog1py``: x log(1 + y), which is 0 for x = 0."""
    first, second = node_of(x), node_of(y)
    zero = scalar.logical_and(scalar.equal(first, 0), scalar.logical_not(scalar.isnan(second)))
    return _done(scalar.where(zero, 0.0, first * scalar.log1p(scalar.where(zero, 0.0, second))))


@implements("scipy.special.entr")
def entr(x: Any) -> Any:
    """``scipy.special.entr``: -x log(x), -inf for negative numbers."""
    node = _float(x)
    inside = scalar.greater(node, 0)
    value = -node * scalar.log(scalar.where(inside, node, 1.0))
    outside = scalar.where(scalar.equal(node, 0), 0.0, scalar.where(scalar.isnan(node), np.nan, -np.inf))
    return _done(scalar.where(inside, value, outside))


@implements("scipy.special.rel_entr")
def rel_entr(x: Any, y: Any) -> Any:
    """``scipy.special.rel_entr``: x log(x/y) for positive numbers, 0 for x = 0 and y >= 0, else inf."""
    first, second = _float(x), _float(y)
    inside = scalar.logical_and(scalar.greater(first, 0), scalar.greater(second, 0))
    value = first * scalar.log(scalar.where(inside, first, 1.0) / scalar.where(inside, second, 1.0))
    edge = scalar.logical_and(scalar.equal(first, 0), scalar.greater_equal(second, 0))
    unknown = scalar.logical_or(scalar.isnan(first), scalar.isnan(second))
    return _done(scalar.where(unknown, np.nan, scalar.where(inside, value, scalar.where(edge, 0.0, np.inf))))


@implements("scipy.special.betaln")
def betaln(a: Any, b: Any) -> Any:
    """``scipy.special.betaln`` of positive numbers: the logarithm of the beta function."""
    first, second = _float(a), _float(b)
    return _done(scalar.gammaln(first) + (scalar.gammaln(second) - scalar.gammaln(first + second)))


@implements("scipy.special.ndtr")
def ndtr(x: Any) -> Any:
    """``scipy.special.ndtr``: the distribution function of the normal distribution."""
    return _done(scalar.erfc(-_float(x) * math.sqrt(0.5)) * 0.5)
