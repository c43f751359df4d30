"""Indices out of bounds, told by the axis of the user's array: captured code lays axes that arrays choose from end to end.

It reads the user's expression and the variables in it; what is not known there it leaves out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

_MESSAGE = re.compile(r"index -?\d+ is out of bounds for axis \d+ with size (\d+)")


def told(message: str, parts: tuple[str, ...], space: Mapping[str, Any]) -> tuple[str, str]:
    """The message and what to do about it, where the message's own axis is none of the user's array; else nothing.

    Parameters
    ----------
    message
        What was raised.
    parts
        The part of the line that raised, and the line.
    space
        The variables.
    """
    found = _MESSAGE.search(message)
    read = _read(parts) if found else None
    if found is None or read is None:
        return "", ""
    array, indices = read
    shape = getattr(space.get(array), "shape", None)
    if not isinstance(shape, tuple) or int(found[1]) in shape or len(indices) > len(shape):
        return "", ""
    text = ", ".join(map(str, shape))
    whole = f"an index is out of bounds for {array}, whose shape is ({text})"
    for axis, index in enumerate(indices):
        size = shape[axis]
        wrong = _wrong(index, size, space)
        if wrong is not None:
            return (
                f"index {wrong} is out of bounds for axis {axis} with size {size}",
                f"{ast.unparse(index)} holds {wrong}, but indices into axis {axis} of {array} go from 0 to {size - 1}.",
            )
    return whole, ""


def _read(parts: tuple[str, ...]) -> tuple[str, list[ast.expr]] | None:
    """The array and its indices, in the first part that has some."""
    for text in parts:
        try:
            tree = ast.parse(text.strip().rstrip(":"))
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Subscript)
                and isinstance(node.value, ast.Name)
                and isinstance(node.slice, ast.Tuple)
            ):
                return node.value.id, node.slice.elts
    return None


def _wrong(index: ast.expr, size: Any, space: Mapping[str, Any]) -> int | None:
    """The first number that an index holds and its axis has not; None where that is not known."""
    value = space.get(index.id) if isinstance(index, ast.Name) else None
    if isinstance(index, ast.Call) and ast.unparse(index.func) in {"np.arange", "range"} and len(index.args) == 1:
        count = index.args[0].value if isinstance(index.args[0], ast.Constant) else None
        value = np.arange(count) if isinstance(count, int) else None
    numbers = getattr(value, "numpy", lambda: value)()
    if not isinstance(numbers, np.ndarray) or numbers.dtype.kind not in "iu" or not isinstance(size, int):
        return None
    beyond = numbers[(numbers < -size) | (numbers >= size)]
    return int(beyond.flat[0]) if beyond.size else None
