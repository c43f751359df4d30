"""Labels for the lazy values of a cell's result: its keys, or the expressions on its last line."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, cast

from tensormagic.capture.tree import tensors_in
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.plain_texts import key_text

MOST_WRITTEN = 40  # characters of an item as it is written


def rows_of(last: ast.Expression | None, source: str) -> tuple[str, ...]:
    """Return the source of the items of a tuple or list in a cell's last line; empty strings for constants and long ones."""
    parts = last.body.elts if last is not None and isinstance(last.body, ast.Tuple | ast.List) else []
    texts = ["" if isinstance(p, ast.Constant) else ast.get_source_segment(source, p) or "" for p in parts]
    return tuple(text if len(text) <= MOST_WRITTEN and "\n" not in text else "" for text in texts)


def names_in(result: Any, rows: Sequence[str]) -> list[str]:
    """Return the names of the lazy values in a container, in the order of ``tensors_in``; those inside of an item are counted.

    Parameters
    ----------
    result
        What the cell ends in.
    rows
        What :func:`rows_of` gives for it.
    """
    usual = [f"value[{k}]" for k in range(len(tensors_in(result)))]
    names: list[str] = []
    for k, (key, item) in enumerate(_items(result, rows)):
        if isinstance(item, Tensor):
            names.append(key or f"value[{k}]")
        else:
            called = key if isinstance(result, dict) else f"value[{k}]"
            names += [f"{called}[{j}]" for j in range(len(tensors_in(item)))]
    return names if len(names) == len(usual) == len(set(names)) else usual


def _items(result: Any, rows: Sequence[str]) -> list[tuple[str, Any]]:
    """Return the items of a container, each with its key, or its source text."""
    if isinstance(result, dict):
        return [
            (key if type(key) is str else key_text(key), item) for key, item in cast("dict[Any, Any]", result).items()
        ]
    items = list(cast("Sequence[Any]", result)) if isinstance(result, tuple | list) else []
    return list(zip(rows if len(rows) == len(items) else [""] * len(items), items, strict=True))
