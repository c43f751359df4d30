"""NumPy code as a graph: captured, rewritten, differentiated, compiled, and shown in the notebook."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensormagic import numpy
from tensormagic.capture.hooks import hooks
from tensormagic.capture.values.value import Tensor
from tensormagic.config import config
from tensormagic.functions.assuming import assume
from tensormagic.functions.batching import vmap
from tensormagic.functions.calls.function import Function
from tensormagic.functions.compiled.compile import compile
from tensormagic.functions.compiled.compiled_function import Compiled
from tensormagic.functions.compiled.saving import load
from tensormagic.functions.controlflow import cond, fori_loop, scan, while_loop
from tensormagic.functions.gradients.check_grads import check_grads
from tensormagic.functions.gradients.customs import checkpoint, custom_gradient
from tensormagic.functions.gradients.derivatives import grad, hvp, jvp, stop_gradient, value_and_grad
from tensormagic.functions.gradients.jacobians import hessian, jacobian
from tensormagic.functions.gradients.linear import linearize, vjp
from tensormagic.functions.gradients.value_grad import Asked
from tensormagic.functions.places import to_gpu, to_host
from tensormagic.functions.rules.declared import rule, rules
from tensormagic.functions.submitting import submit
from tensormagic.functions.tensor import evaluate, tensor
from tensormagic.functions.tracing import parse, rewrite, trace
from tensormagic.ir.errors import (
    CaptureError,
    DerivativeCheckError,
    DeviceError,
    DifferentiationError,
    DTypeError,
    FormatError,
    GuardError,
    HiddenTransferWarning,
    MemoryShortError,
    ParseError,
    PlainRunWarning,
    RecaptureWarning,
    RuleError,
    ShapeError,
    StaleGradientWarning,
    TensorError,
    TransferError,
)

if TYPE_CHECKING:
    from tensormagic.distributed.distribute import distribute
    from tensormagic.distributed.sources import shard

__all__ = [
    "CaptureError",
    "Compiled",
    "DTypeError",
    "DerivativeCheckError",
    "DeviceError",
    "DifferentiationError",
    "FormatError",
    "Function",
    "GuardError",
    "HiddenTransferWarning",
    "MemoryShortError",
    "ParseError",
    "PlainRunWarning",
    "RecaptureWarning",
    "RuleError",
    "ShapeError",
    "StaleGradientWarning",
    "Tensor",
    "TensorError",
    "TransferError",
    "assume",
    "backprop",
    "check_grads",
    "checkpoint",
    "compile",
    "cond",
    "config",
    "custom_gradient",
    "distribute",
    "evaluate",
    "fori_loop",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "live",
    "load",
    "numpy",
    "parse",
    "rewrite",
    "rule",
    "rules",
    "scan",
    "shard",
    "stop_gradient",
    "submit",
    "tensor",
    "to_gpu",
    "to_host",
    "trace",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]

__version__ = "0.1.0.dev0"

_LATE = {"distribute": "tensormagic.distributed.distribute", "shard": "tensormagic.distributed.sources"}
"""What is imported when it is asked for, and where from: few use it."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_LATE[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})


def _to_html(self: Tensor, path: str | Path) -> None:
    """Write a page that shows the graph, with pan, zoom and search, and needs neither a kernel nor a network.

    Parameters
    ----------
    path : str or Path
        The file, in HTML. What has that name is replaced.

    Raises
    ------
    OSError
        Where it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> page = Path(tempfile.mkdtemp(), "graph.html")
    >>> (tensor([1.0, 2.0]) * 2).to_html(page)
    >>> "<svg" in page.read_text()
    True
    """
    from tensormagic.notebook.pictures.adaptor import page_of

    Path(path).write_text(page_of(self), encoding="utf-8")


hooks.methods["to_html"] = _to_html


def _formula(self: Tensor, name: str = "", wrt: str | Iterable[str] = ()) -> Any:
    """The formula of this value, and of its gradients with respect to inputs: shown typeset in a notebook, else as text.

    Nothing is computed.

    Parameters
    ----------
    name : str
        What stands on the left. Default: the variable of the notebook that this is.
    wrt : str or iterable of str
        Inputs, as ``"w,b"`` or ``("w", "b")``: the gradient by each has an equation of its own.

    Returns
    -------
    Formula
        Shown typeset in a notebook; ``.latex`` is text for a paper, and ``str`` one line for each equation.

    Raises
    ------
    DifferentiationError
        For a name in ``wrt`` that is no input, and where this is no real number.

    Examples
    --------
    >>> print((tensor([1.0, 2.0]) ** 2).sum().formula("y"))
    y = sum_{i<n} array1[i]**2
        where n = 2, indices from 0
    """
    from tensormagic.notebook.formulas.equations import formula_here

    names = [n.strip() for n in wrt.split(",") if n.strip()] if isinstance(wrt, str) else list(wrt)
    return formula_here(self, name, names)


hooks.methods["formula"] = _formula


hooks.methods["grad"] = Asked()


def live(shown: Any, /, **ranges: Any) -> Any:
    """Show a function with sliders for its numbers: the value, the gradient and a picture follow them.

    Parameters
    ----------
    shown : callable or Tensor
        A function that returns a real number, vector or matrix; or a lazy value, as a function of its named inputs.
    **ranges
        For each parameter ``(low, high)``, ``(low, high, step)`` or a slider of ipywidgets, which is then linked. Whole
        numbers where all three are ints. Arrays for a vector or a matrix, which is moved where it is drawn. 64 numbers at
        most. A parameter starts at the function's default, else in the middle; where that is outside, the range is widened.
        ``x=tt`` with a vector is no range: a vector is drawn over its numbers.

    Returns
    -------
    ipywidgets.DOMWidget
        With a trait for each parameter, ``value``, and ``gradient``, which is no trait. ``descend(steps, rate)`` goes down
        along the gradient, ``history`` has the values that were seen, ``choose(*index)`` looks at an element of an array,
        ``to_html(path)`` writes a page that needs no kernel.

    Raises
    ------
    TypeError
        If the function returns something else, or an argument is not a range.
    ValueError
        If a range is empty, or there are more than 64 numbers.

    Examples
    --------
    >>> view = live(lambda a: a**2, a=(0, 10))
    >>> view.a = 3
    >>> view.value, view.gradient
    (9.0, {'a': 6.0})
    >>> view.close()
    """
    from tensormagic.notebook.live.follow import live as view_of

    return view_of(shown, **ranges)


def backprop(shown: Any, /, *args: Any, **ranges: Any) -> Any:
    """Show backpropagation step by step: each node's value and adjoint, and each local derivative.

    Parameters
    ----------
    shown : callable or Tensor
        A function that returns one real number, or a lazy number. At most 60 nodes.
    *args
        The arguments that the function is called with.
    **ranges
        ``(low, high)`` or ``(low, high, step)`` for the floats that get sliders. Default: all of them.

    Returns
    -------
    ipywidgets.DOMWidget
        With the traits ``step`` (from 0, the inputs alone, to ``steps``, both passes) and ``point`` (where the sliders
        stand), with ``values`` and ``adjoints`` of all nodes there, and with ``to_html(path)``.

    Raises
    ------
    DifferentiationError
        If the value is not a real number.
    ValueError
        If the graph has more than 60 nodes, or an array more than 200,000 elements.
    TypeError
        If a range is given for something that is not a float among the inputs.

    Examples
    --------
    >>> import numpy as np
    >>> view = backprop(lambda x, w: np.sin(x * w), 2.0, 0.5)
    >>> {name: round(float(adjoint), 4) for name, adjoint in view.adjoints.items()}
    {'x': 0.2702, 'w': 1.0806, 'x × w': 0.5403, 'value = sin(x × w)': 1.0}
    >>> view.close()
    """
    from tensormagic.notebook.backprop.entry import backprop as view_of

    return view_of(shown, args, ranges)


def _backprop(self: Tensor, **ranges: Any) -> Any:
    """Both passes behind this number, step by step; see ``tm.backprop``.

    Parameters
    ----------
    **ranges
        ``(low, high)`` or ``(low, high, step)`` for the floats that get sliders. Default: all of them.

    Returns
    -------
    ipywidgets.DOMWidget
        With ``step``, ``point``, ``values``, ``adjoints`` and ``to_html(path)``.

    Raises
    ------
    DifferentiationError
        If the value is not a real number.
    ValueError
        If the graph has more than 60 nodes, or an array more than 200,000 elements.

    Examples
    --------
    >>> view = (tensor(3.0) ** 2).backprop()
    >>> [float(adjoint) for adjoint in view.adjoints.values()]
    [6.0, 1.0]
    >>> view.close()
    """
    return backprop(self, **ranges)


hooks.methods["backprop"] = _backprop


def load_ipython_extension(ip: Any) -> None:
    """``%load_ext tensormagic``."""
    from tensormagic.notebook import extension

    extension.load(ip)


def unload_ipython_extension(ip: Any) -> None:
    """``%unload_ext tensormagic``."""
    from tensormagic.notebook import extension

    extension.unload(ip)
