"""Containers and plain values as JSON: how a file describes the arguments and results of a function.

A form is a list: the kind, and what belongs to it. No class is named but NumPy's own tuples, so that reading a form
imports and calls nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, cast

import numpy as np

from tensormagic.ir.errors import FormatError

Form = list[Any]
_SIMPLE: dict[type, Callable[[Any], Any]] = {
    bool: bool,
    int: str,
    float: float.hex,
    complex: lambda v: [v.real.hex(), v.imag.hex()],
    str: str,
    bytes: bytes.hex,
}
_READ: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "float": float.fromhex,
    "complex": lambda v: complex(*map(float.fromhex, v)),
    "str": str,
    "bytes": bytes.fromhex,
    "dtype": np.dtype,
    "ellipsis": lambda _: ...,
}
_NUMBERS = "biufc"


class UnwritableError(Exception):
    """Raised if a value has no form; the text is its class."""


def form_of(tree: Any, leaf: Callable[[Any], Form | None]) -> Form:
    """Return the form of a container or value; ``leaf`` gives the form of other values, or None.

    Examples
    --------
    >>> form_of({"a": (1, None)}, lambda _: None)
    ['dict', [[['str', 'a'], ['tuple', [['int', '1'], ['none']]]]]]
    """
    own = leaf(tree)
    if own is not None:
        return own
    kind = type(tree)
    if tree is None:
        return ["none"]
    if kind in _SIMPLE:
        return [kind.__name__, _SIMPLE[kind](tree)]
    if kind is dict:
        return ["dict", [[form_of(k, lambda _: None), form_of(v, leaf)] for k, v in tree.items()]]
    if kind is tuple or kind is list:
        return [kind.__name__, [form_of(v, leaf) for v in tree]]
    return _form_of_numpys(tree, leaf)


def _form_of_numpys(tree: Any, leaf: Callable[[Any], Form | None]) -> Form:
    kind: type[Any] = type(tree)
    if isinstance(tree, np.generic) and tree.dtype.kind in _NUMBERS:
        return ["number", tree.dtype.str, tree.tobytes().hex()]
    if isinstance(tree, np.dtype) and cast("np.dtype[Any]", tree).kind in _NUMBERS:
        return ["dtype", cast("np.dtype[Any]", tree).str]
    if tree is ...:
        return ["ellipsis", None]
    if isinstance(tree, slice):
        return ["slice", [form_of(v, leaf) for v in (tree.start, tree.stop, tree.step)]]
    if _tuples().get(kind.__name__) is kind:
        return ["named", kind.__name__, [form_of(v, leaf) for v in cast("tuple[Any, ...]", tree)]]
    raise UnwritableError(kind.__qualname__)


def tree_of(form: Any, leaf: Callable[[Form], Any]) -> Any:
    """Return the value of a form; ``leaf`` gives values of other kinds.

    Raises
    ------
    FormatError
        If it is no form.

    Examples
    --------
    >>> tree_of(["tuple", [["int", "1"], ["none"]]], lambda _: None)
    (1, None)
    """
    try:
        return _tree_of(form, leaf)
    except (LookupError, TypeError, ValueError) as error:
        raise FormatError(f"the file describes values in an unknown way: {error}") from None


def _tree_of(form: Any, leaf: Callable[[Form], Any]) -> Any:
    kind, *rest = form
    if kind == "none":
        return None
    if kind in _READ:
        return _READ[kind](rest[0])
    if kind == "dict":
        return {_tree_of(k, leaf): _tree_of(v, leaf) for k, v in rest[0]}
    if kind == "number":
        return np.frombuffer(bytes.fromhex(rest[1]), np.dtype(rest[0]))[0]
    if kind in {"tuple", "list", "slice", "named"}:
        items = [_tree_of(v, leaf) for v in rest[-1]]
        made: Any = _tuples()[rest[0]] if kind == "named" else slice
        return {"tuple": tuple, "list": list}[kind](items) if kind in {"tuple", "list"} else made(*items)
    return leaf(form)


@cache
def _tuples() -> dict[str, Any]:
    """Return NumPy's named tuples, as its linear algebra and set functions return them."""
    found: dict[str, Any] = {}
    for module in ("numpy.linalg._linalg", "numpy.lib._arraysetops_impl"):
        try:
            names = vars(import_module(module))
        except ImportError:  # another version of NumPy has them elsewhere
            continue
        found |= {k: v for k, v in names.items() if isinstance(v, type) and hasattr(v, "_fields")}
    return found
