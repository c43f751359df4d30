"""The captured functions, by the function that the user wrote; and captured functions with names similar to an unsupported one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from tensormagic.alike import alike
from tensormagic.capture import context
from tensormagic.capture.errors.deprecated import with_deprecations
from tensormagic.capture.foreign.calls import call_library
from tensormagic.capture.foreign.oracle import with_numpys_errors
from tensormagic.capture.hooks import hooks
from tensormagic.capture.values.value import Tensor, done
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.ops.op import registry

FUNCTIONS: dict[Any, Callable[..., Any]] = {}


def implements(*functions: Any, method: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register our function for ``functions``: objects, or names in SciPy, which is not imported.

    It may return nodes, one or a tuple: callers by NumPy's name get lazy arrays.
    """

    def decorate(own: Callable[..., Any]) -> Callable[..., Any]:
        lazy = _lazily(own)
        for function in functions:
            FUNCTIONS[function] = (
                with_deprecations(with_numpys_errors(lazy, function), function) if callable(function) else lazy
            )
        hooks.methods.update(dict.fromkeys(method.split(), lazy))
        return own

    return decorate


def _lazily(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``own`` with its nodes wrapped as lazy arrays; itself if it declares that it returns none."""
    if not isinstance(own, FunctionType) or own.__annotations__.get("return") == "Tensor":
        return own

    @functools.wraps(own)
    def call(*args: Any, **options: Any) -> Any:
        found = own(*args, **options)
        if isinstance(found, Node):
            return done(found)
        if type(found) is tuple and any(isinstance(part, Node) for part in found):
            return tuple([done(part) if isinstance(part, Node) else part for part in found])
        return found

    return call


def find(function: Any) -> Callable[..., Any] | None:
    """Return our function for one of NumPy or SciPy, or None."""
    if isinstance(function, Tensor):  # its hash would need its value
        return None
    try:
        own = FUNCTIONS.get(function)
    except Exception:  # noqa: BLE001 (a hash is the user's own code: what has none is no function of NumPy's)
        return None
    module = getattr(function, "__module__", None) or ""
    if own is None and module.startswith("scipy."):
        own = FUNCTIONS.get(".".join([*module.split(".")[:2], getattr(function, "__name__", "")]))
    return own


def unknown(name: str) -> CaptureError:
    """Return the error for a function that is not captured, with the nearest one that is."""
    near = _near(name, len(FUNCTIONS) + len(registry))
    advice = f"Captured functions with a similar name: {', '.join(near)}. " if near else ""
    return CaptureError(
        f"{name} is not captured", advice + "Call it in a separate cell without %%tensor, or run this one with --plain."
    )


@functools.lru_cache(maxsize=1000)
def _near(name: str, _known: int) -> tuple[str, ...]:
    """Return captured functions with a similar name.

    They are looked for once, since a loop may call a function that runs on values many times.
    """
    names = sorted(
        {f.rpartition(".")[2] if isinstance(f, str) else getattr(f, "__name__", "") for f in FUNCTIONS}
        - {"getitem", ""}
        | {"matmul", "divmod"}
        | _pointwise()
    )
    return tuple(alike(name, names))


def _pointwise() -> set[str]:
    return {name for name, op in registry.items() if op.kind == "pointwise"}


def call_numpy(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the result of a NumPy function for lazy arguments."""
    own = find(function)
    try:
        if own is None:
            raise unknown(getattr(function, "__name__", str(function)))
        return own(*args, **options)
    except CaptureError as error:
        if context.current() is not None:
            return call_library(function, args, options, error, parts=own is None)
    if function == "getitem":
        return args[0].numpy()[tuple(map(computed, args[1]))]
    return function(*map(computed, args), **{k: computed(v) for k, v in options.items()})


def computed(value: Any) -> Any:
    """Return ``value`` with lazy values computed: outside captured code NumPy runs what is not captured."""
    if isinstance(value, Tensor):
        return value.numpy()
    return type(value)(map(computed, value)) if type(value) in {list, tuple} else value


hooks.call_numpy = call_numpy
