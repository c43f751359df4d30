"""Checks of values when the graph runs: a failed one raises NumPy's error, where the result would otherwise be wrong."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import (
    CaptureError,
    DifferentiationError,
    DTypeError,
    KindError,
    OtherDTypeError,
    OtherNumberError,
    OtherWideError,
    UndefinedError,
)
from tensormagic.ir.node import Node, as_size, make
from tensormagic.ir.size import is_at_least
from tensormagic.ir.type import Size, Type
from tensormagic.ops.leaf import size_node
from tensormagic.ops.move import lead
from tensormagic.ops.op import Value
from tensormagic.ops.opaque import Opaque
from tensormagic.ops.rows import FIRST, Axes, Found, common_axis
from tensormagic.ops.scalars import scalar

ERRORS: dict[str, type[Exception]] = {
    "value": ValueError,
    "overflow": OverflowError,
    "wide": OtherWideError,  # for Python integers of more than 64 bits
    "division": ZeroDivisionError,
    "index": IndexError,
    "name": UndefinedError,
    "none": DTypeError,
    "capture": CaptureError,
    "promotion": CaptureError,
    "number": OtherNumberError,
    "dtype": OtherDTypeError,
    "derivative": DifferentiationError,
}


def _type(args: tuple[Node, ...], _params: Mapping[str, Any]) -> Type:
    return args[0].type


def _numpy(value: Value, holds: Value, message: str, error: str, facts: str = "") -> Value:
    del facts
    if not np.all(holds):
        raise ERRORS[error](_with_value(message, value, holds))
    return value


_VALUE = re.compile(
    r"\{value(?::(.*?))?\}"
)  # placeholder in a message: the first value for which the check fails, or a text in its place


def of_value(otherwise: str = "") -> str:
    """Return the placeholder for the value in a message, with a text to show if the value is unknown."""
    return f"{{value:{otherwise}}}" if otherwise else "{value}"


def without_value(message: str) -> str:
    """Return a message without its placeholder for the value."""
    return _VALUE.sub(lambda found: found[1] or "", message).replace("  ", " ")


def _with_value(message: str, value: Value, holds: Value) -> str:
    if _VALUE.search(message) is None or np.shape(value) != np.shape(holds):
        return without_value(message)
    return _VALUE.sub(str(int(np.asarray(value)[~np.asarray(holds)].flat[0])), message)


def _stacked(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    return make(REQUIRE, (lead(args[0], batched[0], size), args[1]), **node.params)


def _rows(_node: Node, axes: Axes, _rows: Size) -> Found:
    """Return the axis of rows of a check; a check that is the same for all rows belongs to the first chunk."""
    value, holds = axes
    if value is None and holds is not None:
        return FIRST
    return common_axis([value])


REQUIRE = Opaque(
    name="require",
    hands_on=True,
    raises=True,
    split_rows=_rows,
    types=_type,
    numpy=_numpy,
    tangent=lambda _node, tangents: tangents[0],
    stacked=_stacked,
    holds="{1}",
    picks=True,
    doc="The first operand, if every element of the second is true; otherwise an error when the graph runs.",
)


def require(value: Node, holds: Node, message: str, error: str = "value") -> Node:
    """Return ``value``, checked when the graph runs: it raises the error named in ``ERRORS`` unless ``holds`` everywhere."""
    return make(REQUIRE, (value, holds), message=message, error=error)


def assumed(value: Node, holds: Node, facts: str, message: str) -> Node:
    """Return ``value`` with ``facts`` that rules may use (:mod:`tensormagic.ir.facts`); checked like ``require``."""
    return make(REQUIRE, (value, holds), message=message, error="value", facts=facts)


def in_range(index: Node, low: float, high: Size | Node, message: str) -> Node:
    """Return ``index``, checked when the graph runs: a ValueError with ``message`` unless ``low <= index < high`` everywhere."""
    bound = high if isinstance(high, Node) else size_node(high)
    holds = scalar.logical_and(scalar.greater_equal(index, low), scalar.less(index, bound))
    return require(index, holds, message)


def not_zero(x: Node, message: str) -> Node:
    """Return ``x``, checked when the graph runs: a ZeroDivisionError with ``message`` where an element is zero."""
    return require(x, scalar.not_equal(x, 0), message, "division")


def fits(number: Node, dtype: np.dtype[Any], error: str = "overflow") -> Node:
    """Return Python numbers, checked when the graph runs to fit integers of ``dtype``, as NumPy's conversion does.

    NumPy scalars of another dtype that are stored into arrays of signed integers are checked, too.
    """
    limits, message = np.iinfo(dtype), f"Python integer {of_value()} out of bounds for {dtype}"
    low, high = int(limits.min), int(limits.max)
    own, weak = number.type.dtype, number.type.form == "python"
    known = number.op is REQUIRE and number["message"] == message
    if own.kind not in "iuf" or known or (not weak and np.can_cast(own, dtype)):
        return number
    if own.kind == "f":
        number = require(number, scalar.logical_not(scalar.isnan(number)), "cannot convert float NaN to integer")
        whole = scalar.trunc(number)
        holds = [scalar.greater_equal(whole, float(low)), scalar.less(whole, float(high + 1))]
    else:
        size = None if number.type.shape else as_size(number)
        above = low <= _LEAST or own.kind == "u" or (size is not None and is_at_least(size, low))
        below = (own.kind != "u" and high >= -1 - _LEAST) or (size is not None and is_at_least(high - size, 0))
        holds = [] if above else [scalar.greater_equal(number, low)]
        holds += [] if below else [scalar.less_equal(number, high)]
    return require(number, functools.reduce(scalar.logical_and, holds), message, error) if holds else number


_LEAST = -(2**63)  # the least integer that a Python integer may be


def _not_stacked(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    raise CaptureError(
        "a value that was computed when the code was captured cannot differ between the elements of a batch"
    )


FIXED = Opaque(
    name="fixed",
    types=_type,
    numpy=lambda value, *_: value,
    stacked=_not_stacked,
    doc="The first operand, which was computed from the others when the code was captured: it has no derivative.",
)


def fixed(value: Node, sources: Sequence[Node]) -> Node:
    """Return ``value``, computed at capture from ``sources``: derivatives with respect to these are refused instead of being zero."""
    return make(FIXED, (value, *sources))


DIFFERS = {  # messages by the kind of assumption
    "kind": (
        "whether a result is real differs from when the code was captured: NumPy's dtype depends on the values",
        "whether a result is real may differ between the elements of a batch",
        "Take .real, or compute with complex numbers.",
    ),
    "try": (
        "whether code in a `try` fails differs from when the code was captured",
        "whether code in a `try` fails may differ between the elements of a batch",
        "Check beforehand whether it would fail, with `if` instead of `try` and `except`.",
    ),
}


def _settled(value: Value, holds: Value, *, real: bool, site: int, what: str) -> Value:
    if bool(np.all(holds)) != real:
        error = KindError(DIFFERS[what][0], DIFFERS[what][2])
        error.site = site
        raise error
    return value


def _settled_stacked(node: Node, args: Sequence[Node], batched: Sequence[bool], size: Size) -> Node:
    if batched[1]:
        raise CaptureError(*DIFFERS[node["what"]][1:])
    return make(SETTLED, (lead(args[0], batched[0], size), args[1]), **node.params)


SETTLED = Opaque(
    name="settled",
    types=_type,
    numpy=_settled,
    tangent=lambda _node, tangents: tangents[0],
    stacked=_settled_stacked,
    picks=True,
    doc="The first operand, if the second is what it was when the code was captured.",
)


def settled(value: Node, holds: Node, real: bool, site: int, what: str = "kind") -> Node:
    """Return ``value``, which raises KindError when the graph runs unless ``holds`` is ``real``, as the captured code assumed.

    ``what`` is ``"kind"`` for the dtype of a result, ``"try"`` for what a ``try`` catches.
    """
    return make(SETTLED, (value, holds), real=real, site=site, what=what)
