"""``tm.tensor`` and ``tm.evaluate``: from values to lazy arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.backend.cuda.device import current
from tensormagic.capture import context
from tensormagic.capture.inputs import door
from tensormagic.capture.inputs.snapshots import own
from tensormagic.capture.tables import labelled
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.operands import has_lazy, name_of, node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.config import config, leveled
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.function import Function
from tensormagic.functions.cells import cast
from tensormagic.functions.reads.reading import look
from tensormagic.functions.travel import maker


@maker
def tensor(
    value: Any = None,
    /,
    *,
    missing: Mapping[str, Any] | None = None,
    math: str = "",
    dtype: str = "",
    device: str = "",
    transfers: str = "",
    without: str = "",
) -> Any:
    """Capture a function, or make data a lazy array.

    Parameters
    ----------
    value
        A function of arrays (also as a decorator), or an array, a number or nested lists of numbers.
    missing
        Of a function: where arguments that a call does not give are looked up by name, as a cell's function looks them up
        in the notebook: ``missing=globals()``.
    math
        Of a function: which rewrites may be used; empty for the value of ``config.math`` at the call.
    without
        Of a function: what to switch off, as names with commas: themes of rules, ``"stability"``, ``"loops"``, ``"fusion"``.
    dtype
        Of a function: the dtype that floating arrays among its arguments are cast to; empty for their own.
    device, transfers
        Of a function: where calls run, ``"cpu"``, ``"gpu"`` or ``"auto"``, and how copies that were not requested are reported;
        empty for the values of ``config`` at the call.

    Returns
    -------
    Function or Tensor

    Raises
    ------
    ValueError
        If there is no such level, device or theme, or if nested lists do not form an array.
    DTypeError
        If the data are not numbers.
    CaptureError
        At a call, if the function cannot be captured: the error names the line, and what to write instead.

    Examples
    --------
    >>> @tensor
    ... def f(x, w):
    ...     return np.log(1 + np.exp(-x @ w))
    >>> bool(f(np.zeros(3), np.ones(3)) == np.log(2))
    True
    >>> float(tensor([1.0, 2.0]).sum())
    3.0

    >>> @tensor(missing={"scale": 10.0})
    ... def g(x, scale):
    ...     return x * scale
    >>> g(2.0), g(2.0, scale=3.0)
    (20.0, 6.0)
    """
    if math:
        with config.using(math=math):  # raises for an unknown level
            pass
    math = leveled(math or config.math, without) if without else math
    if value is None:
        return partial(tensor, missing=missing, math=math, dtype=dtype, device=device, transfers=transfers)
    if callable(value) and not isinstance(value, Tensor):
        made = of_callable(value)
        placed = checked_place(device, transfers)
        plain = missing is None and not math and not dtype and not device
        return made if plain else _with(made, missing, math, dtype, placed)
    return value if isinstance(value, Tensor) else _made_lazy(value)


def _made_lazy(value: Any) -> Tensor:
    """Return a lazy array with an input of its own; partly lazy or non-numeric data are read as elsewhere."""
    name = name_of(value) or "the data"
    if door.is_table(value):
        made = labelled.labelled(door.whole(value, name), name)
        if made is not None:
            return made
    if isinstance(value, list | tuple):
        flatten(value)  # raises for data that NumPy would read in another way than it computes
        value = value if has_lazy(value) else np.asarray(value)
    value = door.variable(value, name)
    node = own(value, name_of(value))
    return wrap(node_of(value) if node is None else node)


def checked_place(device: str, transfers: str = "") -> tuple[str, str]:
    """Return a device and a policy for copies, both checked."""
    for name, value in (("device", device), ("transfers", transfers)):
        if value and value not in config.ALLOWED[name]:
            raise ValueError(f"{name} must be one of {', '.join(sorted(config.ALLOWED[name]))}, not {value!r}")
    if device == "gpu":
        current()
    return device, transfers


def _with(
    function: Function, missing: Mapping[str, Any] | None, math: str, dtype: str, placed: tuple[str, str]
) -> Function:
    """Return a function that looks up missing arguments, has its own level or device, or casts its arguments."""
    names, place = function.parameters, function.complete

    def complete(args: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = {**dict(zip(names, args, strict=False)), **options}
        if missing is not None and len(args) + len(options) == len(given):  # otherwise an argument is given twice
            traced = context.current() is not None
            found = {n: look((n, missing)) if traced else missing[n] for n in names if n not in given and n in missing}
            options = {**options, **found}
        args, options = place(args, options) if place is not None else (args, options)
        return tuple([cast(v, dtype) for v in args]), {n: cast(v, dtype) for n, v in options.items()}

    changes = missing is not None or bool(dtype) or function.fills
    made = Function(
        function.body,
        function.name,
        names,
        complete if changes else place,
        function.reads,
        fills=changes,
        roots=function.roots,
        math=math,
        plain=function.plain,
        placed=placed,
    )
    update_wrapper(made, function, updated=())
    return made


def evaluate(*values: Any) -> Any:
    """Compute several lazy arrays in one run, and what they share only once.

    Parameters
    ----------
    *values
        Lazy arrays; arrays and numbers are returned as they are.

    Returns
    -------
    array or tuple of arrays
        The array or number of a single value, or a tuple for several.

    Raises
    ------
    DTypeError
        If a value is neither a number nor an array of numbers.

    Examples
    --------
    >>> x = tensor([1.0, 2.0])
    >>> evaluate(x.sum(), x.max())
    (np.float64(3.0), np.float64(2.0))
    """
    found: dict[int, Any] = {}
    for chosen in dict.fromkeys(map(_chosen, values)):
        own = {k: v for k, v in enumerate(values) if _chosen(v) == chosen}
        with config.using(math=chosen[0], device=chosen[1], transfers=chosen[2]):
            found |= dict(zip(own, session.compute([node_of(v) for v in own.values()]), strict=True))
    return found[0] if len(values) == 1 else tuple(found[k] for k in range(len(values)))


def _chosen(value: Any) -> tuple[str, str, str]:
    return (value.level, *value.placed) if isinstance(value, Tensor) else ("", "", "")
