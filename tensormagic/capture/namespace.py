"""The names that captured code sees: arrays and floats as lazy arrays, NumPy and math as modules whose functions are captured."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from tensormagic.capture import (
    creation,
    fancy,
    linear_algebra,
    operators,
    ordering,
    products,
    reductions,
    shaping,
    special,
    transforms,
)
from tensormagic.capture.names import find, unknown
from tensormagic.capture.value import Tensor, build, has_lazy, node_of, wrap
from tensormagic.ir.errors import CaptureError
from tensormagic.ops.form import to_form

# The files that register what is captured, by being imported.
LIBRARY: tuple[ModuleType, ...] = (
    creation, shaping, ordering, fancy, reductions, products, operators, linear_algebra, transforms, special,
)  # fmt: skip
_MATH = {"fabs": "absolute", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "sinh": "sinh", "asinh": "arcsinh",
         "acosh": "arccosh", "atanh": "arctanh", "lgamma": "gammaln", "pow": "power"}  # fmt: skip
_CREATE = {
    "zeros",
    "ones",
    "empty",
    "full",
    "array",
    "asarray",
    "asanyarray",
    "ascontiguousarray",
    "arange",
    "linspace",
    "eye",
    "identity",
    "tri",
}
_MODULES = {"numpy", "numpy.linalg", "numpy.fft", "scipy", "scipy.special", "scipy.linalg", "math", "numpy.random"}


class Module:
    """A module as captured code sees it: functions that make arrays are ours, the rest is the module's own."""

    def __init__(self, module: ModuleType) -> None:
        self.__wrapped__ = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__wrapped__, name)
        if isinstance(value, ModuleType):
            return proxy(value)
        if self.__wrapped__.__name__ == "math" and callable(value):
            return math_function(name, value)
        return captured(value)

    def __dir__(self) -> list[str]:
        return dir(self.__wrapped__)

    def __repr__(self) -> str:
        return f"{self.__wrapped__!r} (captured)"


_proxies: dict[str, Module] = {}


def proxy(module: ModuleType) -> Any:
    """The module as captured code sees it."""
    if module.__name__ not in _MODULES:
        return module
    if module.__name__ == "numpy.random":
        return Random()
    return _proxies.setdefault(module.__name__, Module(module))


class Random:
    """``np.random`` in captured code: refused, since draws have to stay in program order."""

    def __getattr__(self, name: str) -> Any:
        raise CaptureError(
            f"np.random.{name} is not captured", "Draw the numbers in a cell of its own, and use the array here."
        )


def captured(value: Any) -> Any:
    """A function as captured code sees it: ours, where NumPy's own protocol would not reach it."""
    own = find(value)
    if own is not None:
        name = getattr(value, "__name__", "")
        dispatched = hasattr(value, "__wrapped__") and not isinstance(value, FunctionType)
        return _dispatching(value, own) if dispatched and name not in _CREATE else own
    if (
        isinstance(value, FunctionType)
        and (value.__module__ or "").startswith(("numpy", "scipy"))
        and not hasattr(value, "__wrapped__")
    ):
        return _refusing(value)
    return value


def _dispatching(function: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy's: ours on lazy values, also where they stand in lists, which NumPy's protocol does not look into."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        return (own if any(map(has_lazy, (*args, *options.values()))) else function)(*args, **options)

    return call


def _refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy or SciPy that is not captured: it runs on plain values, and refuses lazy ones by name."""

    def call(*args: Any, **options: Any) -> Any:
        if any(map(has_lazy, (*args, *options.values()))):
            raise unknown(function.__name__)
        return function(*args, **options)

    return call


def math_function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ``math``: its own on numbers, the op of the same meaning on lazy numbers."""

    def call(*args: Any) -> Any:
        if not any(isinstance(a, Tensor) for a in args):
            return function(*args)
        from tensormagic.ops.op import registry

        op = registry.get(_MATH.get(name, name))
        if op is None or op.kind != "pointwise" or any(node_of(a).type.shape for a in args):
            raise unknown(f"math.{name}")
        return wrap(to_form(build(op, *args).node, "python"))  # type: ignore[arg-type]

    return call


def value_of(value: Any) -> Any:
    """What captured code sees for a value of the notebook that is no input."""
    if isinstance(value, ModuleType):
        return proxy(value)
    if value is math or isinstance(value, np.ufunc):
        return value
    return captured(value) if callable(value) and not isinstance(value, type) else value
