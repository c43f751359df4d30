"""The warning for a plain cell that branches on ``type`` of a lazy value, and takes another branch than with an array."""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from tensormagic.capture.values.value import Tensor


def tell_of_classes(text: str, space: Mapping[str, Any], label: str) -> None:
    """Warn where code that is about to run compares ``type(y)``, or looks it up, and ``y`` is lazy.

    Parameters
    ----------
    text
        The cell.
    space
        The notebook's variables.
    label
        What the cell is called, for the warning's place.
    """
    if "type(" not in text or space.get("type", builtins.type) is not builtins.type:
        return
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    for name, line in dict(_decided(tree)).items():
        value = space.get(name)
        if isinstance(value, Tensor) and type(value) is Tensor:
            message = (
                f"{name} is lazy: type({name}) is tm.Tensor here, and no class of NumPy's or Python's, so this code takes another "
                f"branch than with an array. isinstance({name}, ...) says what NumPy's array would; {name}.numpy() is that array"
            )
            warnings.warn_explicit(message, UserWarning, label, line)


def _decided(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names whose class the code compares, or uses as a key, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            if any(isinstance(p, ast.Attribute | ast.Name) and ast.unparse(p).endswith("Tensor") for p in parts):
                continue
        elif isinstance(node, ast.Subscript):
            parts = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            parts = node.args
        else:
            continue
        for part in (_of_name(p) for p in parts):
            if (
                isinstance(part, ast.Call)
                and isinstance(part.func, ast.Name)
                and part.func.id == "type"
                and len(part.args) == 1
                and isinstance(part.args[0], ast.Name)
            ):
                yield part.args[0].id, part.lineno


def _of_name(part: ast.expr) -> ast.expr:
    """``type(y)`` of ``type(y).__name__``."""
    return part.value if isinstance(part, ast.Attribute) and part.attr in {"__name__", "__qualname__"} else part
