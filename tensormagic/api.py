"""What ``import tensormagic as tm`` offers."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensormagic.capture.creation
import tensormagic.capture.fancy
import tensormagic.capture.linear_algebra
import tensormagic.capture.operators
import tensormagic.capture.ordering
import tensormagic.capture.products
import tensormagic.capture.reductions
import tensormagic.capture.shaping
import tensormagic.capture.special
import tensormagic.capture.transforms  # noqa: F401 (these register what they capture)
from tensormagic import session
from tensormagic.batching import vmap
from tensormagic.capture.value import Tensor, node_of, wrap
from tensormagic.config import config
from tensormagic.controlflow import cond, fori_loop, scan, while_loop
from tensormagic.derivatives import grad, hvp, jvp, linearize, stop_gradient, value_and_grad, vjp
from tensormagic.function import Function, of_callable
from tensormagic.ir.errors import (
    CaptureError,
    DifferentiationError,
    DTypeError,
    GuardError,
    ParseError,
    ShapeError,
    StaleGradientWarning,
    TensorError,
    TransferError,
)
from tensormagic.jacobians import hessian, jacobian
from tensormagic.tracing import Compiled, compile, parse, rewrite, trace


def tensor(value: Any) -> Any:
    """Capture a function, or make data a lazy array.

    Parameters
    ----------
    value
        A function of arrays (also as a decorator), or an array, a number or nested lists of numbers.

    Returns
    -------
    Function or Tensor

    Examples
    --------
    >>> @tensor
    ... def f(x, w):
    ...     return np.log(1 + np.exp(-x @ w))
    >>> bool(f(np.zeros(3), np.ones(3)) == np.log(2))
    True
    >>> float(tensor([1.0, 2.0]).sum())
    3.0
    """
    if callable(value) and not isinstance(value, Tensor):
        return of_callable(value)
    return (
        value
        if isinstance(value, Tensor)
        else wrap(node_of(np.asarray(value) if isinstance(value, list | tuple) else value))
    )


def evaluate(*values: Any) -> Any:
    """Compute several lazy arrays in one run.

    Examples
    --------
    >>> x = tensor([1.0, 2.0])
    >>> evaluate(x.sum(), x.max())
    (np.float64(3.0), np.float64(2.0))
    """
    found = tuple(session.compute([node_of(v) for v in values]))
    return found[0] if len(found) == 1 else found


__all__ = [
    "CaptureError",
    "Compiled",
    "DTypeError",
    "DifferentiationError",
    "Function",
    "GuardError",
    "ParseError",
    "ShapeError",
    "StaleGradientWarning",
    "Tensor",
    "TensorError",
    "TransferError",
    "compile",
    "cond",
    "config",
    "evaluate",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "parse",
    "rewrite",
    "scan",
    "stop_gradient",
    "tensor",
    "trace",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]
