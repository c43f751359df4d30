"""NumPy code as a graph: captured, rewritten, differentiated, compiled, and shown in the notebook."""

from __future__ import annotations

from typing import Any

from tensormagic.api import (
    CaptureError,
    Compiled,
    DTypeError,
    DifferentiationError,
    Function,
    GuardError,
    ParseError,
    ShapeError,
    StaleGradientWarning,
    Tensor,
    TensorError,
    TransferError,
    compile,
    cond,
    config,
    evaluate,
    fori_loop,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    linearize,
    parse,
    rewrite,
    scan,
    stop_gradient,
    tensor,
    trace,
    value_and_grad,
    vjp,
    vmap,
    while_loop,
)

__version__ = "0.1.0.dev0"


def load_ipython_extension(ip: Any) -> None:
    """``%load_ext tensormagic``."""
    from tensormagic.notebook import extension  # noqa: PLC0415 (only notebooks need it)

    extension.load(ip)


def unload_ipython_extension(ip: Any) -> None:
    """``%unload_ext tensormagic``."""
    from tensormagic.notebook import extension  # noqa: PLC0415 (only notebooks need it)

    extension.unload(ip)
