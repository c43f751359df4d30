"""NumPy code as a graph: captured, rewritten, differentiated, compiled, and shown in the notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensormagic import numpy
from tensormagic.capture.hooks import hooks
from tensormagic.capture.value import Tensor
from tensormagic.config import config
from tensormagic.functions.batching import vmap
from tensormagic.functions.check_grads import check_grads
from tensormagic.functions.controlflow import cond, fori_loop, scan, while_loop
from tensormagic.functions.customs import checkpoint, custom_gradient
from tensormagic.functions.derivatives import grad, hvp, jvp, linearize, stop_gradient, value_and_grad, vjp
from tensormagic.functions.function import Function
from tensormagic.functions.jacobians import hessian, jacobian
from tensormagic.functions.rules import rule, rules
from tensormagic.functions.tensor import evaluate, tensor
from tensormagic.functions.tracing import Compiled, compile, parse, rewrite, trace
from tensormagic.ir.errors import (
    CaptureError,
    DerivativeCheckError,
    DifferentiationError,
    DTypeError,
    GuardError,
    ParseError,
    RuleError,
    ShapeError,
    StaleGradientWarning,
    TensorError,
    TransferError,
)

__all__ = [
    "CaptureError",
    "Compiled",
    "DTypeError",
    "DerivativeCheckError",
    "DifferentiationError",
    "Function",
    "GuardError",
    "ParseError",
    "RuleError",
    "ShapeError",
    "StaleGradientWarning",
    "Tensor",
    "TensorError",
    "TransferError",
    "check_grads",
    "checkpoint",
    "compile",
    "cond",
    "config",
    "custom_gradient",
    "evaluate",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "live",
    "numpy",
    "parse",
    "rewrite",
    "rule",
    "rules",
    "scan",
    "stop_gradient",
    "tensor",
    "trace",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]

__version__ = "0.1.0.dev0"


def _to_html(self: Tensor, path: str | Path) -> None:
    """Write a page that shows the graph, with pan, zoom and search, and needs neither a kernel nor a network."""
    from tensormagic.notebook.pictures.adaptor import page_of

    Path(path).write_text(page_of(self), encoding="utf-8")


hooks.methods["to_html"] = _to_html


def live(shown: Any, /, **ranges: Any) -> Any:
    """Show a function of a few numbers with sliders: its value, its gradient and a picture follow.

    Parameters
    ----------
    shown : callable or Tensor
        A function that gives one real number, or a lazy number as a function of its named inputs.
    **ranges
        For each parameter ``(low, high)``, ``(low, high, step)`` or a slider of ipywidgets, which is then linked. Whole
        numbers where all three are ints. Arrays for a vector: a slider for each number. Six numbers at most. A parameter
        starts at the function's default, else in the middle.

    Returns
    -------
    ipywidgets.DOMWidget
        With a trait for each parameter, ``value``, and ``gradient``, which is no trait.

    Raises
    ------
    TypeError
        For a function that gives something else, and for what is no range.
    ValueError
        For ranges that are empty, and for more than six numbers.

    Examples
    --------
    >>> view = live(lambda a: a**2, a=(0, 10))
    >>> view.a = 3
    >>> view.value, view.gradient
    (9.0, {'a': 6.0})
    >>> view.close()
    """
    from tensormagic.notebook.live import live as view_of

    return view_of(shown, **ranges)


def load_ipython_extension(ip: Any) -> None:
    """``%load_ext tensormagic``."""
    from tensormagic.notebook import extension

    extension.load(ip)


def unload_ipython_extension(ip: Any) -> None:
    """``%unload_ext tensormagic``."""
    from tensormagic.notebook import extension

    extension.unload(ip)
