"""SciPy's check before it calls LAPACK: the elements of its operands must be finite, unless ``check_finite`` is false."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.ops.effects.checks import require
from tensormagic.ops.scalars import scalar

_SAID = "array must not contain infs or NaNs"


def finite(*operands: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a function to check that ``operands`` are finite; if not, SciPy's ValueError is raised when the graph runs.

    Of a tuple, such as a factor and its pivots, the first item is checked.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            bound = signature.bind(*args, **options)
            given = bound.arguments
            if given.get("check_finite", given.get("options", {}).get("check_finite", True)):
                given.update({name: _checked(given[name]) for name in operands if name in given})
            return function(*bound.args, **bound.kwargs)

        return checked

    return decorate


def _checked(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple) and value and isinstance(value[0], Tensor):
        return (_checked(value[0]), *value[1:])
    node = node_of(value)
    return wrap(require(node, scalar.isfinite(node), _SAID)) if node.type.inexact else value
