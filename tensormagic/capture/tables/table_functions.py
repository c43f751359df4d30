"""NumPy's functions that call the method of a Series or a DataFrame: they return pandas' result, with labels. All others see arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.names import FUNCTIONS
from tensormagic.capture.tables.labelled import REDUCTIONS, RUNNING, Labelled
from tensormagic.capture.values.value import Tensor

_METHODS = ((np.clip, "clip"), (np.round, "round"), (np.around, "round"), (np.argsort, "argsort"))


def in_numpys_functions() -> None:
    """Let NumPy functions of a Series or DataFrame call pandas' methods where NumPy does, after ours are defined."""
    for name in (*REDUCTIONS, *RUNNING):
        FUNCTIONS[getattr(np, name)] = _handed_on(name, FUNCTIONS[getattr(np, name)])
    for function, name in _METHODS:
        FUNCTIONS[function] = _by_method(name, FUNCTIONS[function])
    FUNCTIONS[np.transpose] = _turned(FUNCTIONS[np.transpose])
    FUNCTIONS[np.squeeze] = _squeezed(FUNCTIONS[np.squeeze])


def _handed_on(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """Return a NumPy function that passes labelled data to pandas' method, which skips gaps."""

    @functools.wraps(own)
    def call(a: Any, *args: Any, **options: Any) -> Any:
        if (
            not isinstance(a, Labelled)
            or not (a.may_have_gaps() or a.columns is not None or name in RUNNING)
            or len(args) > 1
            or not options.keys() <= {"axis", "ddof"}
        ):
            return own(a, *args, **options)
        axis = args[0] if args else options.pop("axis", None)
        return getattr(a, name)(axis=axis, **({"ddof": 0, **options} if name in {"std", "var"} else options))

    return call


def _by_method(name: str, own: Callable[..., Any]) -> Callable[..., Any]:
    """Return an elementwise function whose result has the labels of its argument."""

    @functools.wraps(own)
    def call(a: Any, *args: Any, **options: Any) -> Any:
        return (
            getattr(a, name)(*args, **options) if isinstance(a, Labelled) and not options else own(a, *args, **options)
        )

    return call


def _turned(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``np.transpose`` for tables, with labels and columns exchanged."""

    @functools.wraps(own)
    def call(a: Any, *args: Any, **options: Any) -> Any:
        return a.T if isinstance(a, Labelled) and not (args or options) else own(a, *args, **options)

    return call


def _squeezed(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``np.squeeze`` for labelled data, which stay labelled if no axis is removed."""

    @functools.wraps(own)
    def call(a: Any, *args: Any, **options: Any) -> Any:
        found = own(a, *args, **options)
        return a if isinstance(a, Labelled) and isinstance(found, Tensor) and found.ndim == a.ndim else found

    return call
