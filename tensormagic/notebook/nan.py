"""Where a nan came from: the first node, and its line, that made one of numbers that were none."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.notebook.panels import Panel, table
from tensormagic.notebook.pictures.adaptor import Portrait
from tensormagic.notebook.pictures.labels import symbol

__all__ = ["nan_panel"]

_MOST = 5


def nan_panel(shown: Portrait, source: str) -> Panel:
    """The nodes that make a nan of numbers, by line: the first is where to look; and inputs that hold nan themselves."""
    values = _evaluated(shown)
    lines = source.splitlines()
    rows: list[tuple[int, list[str]]] = []
    for node, value in values.items():
        if not has_nan(value) or any(has_nan(values[a]) for a in node.args):
            continue
        line = shown.line(node) or 0
        text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
        place = "input" if not node.args else f"line {line}" if line else "–"
        rows.append((line, [f"{place}  {text}".strip(), symbol(shown.label(node)), *_told(node, value, values)]))
    rows.sort(key=lambda row: row[0])
    if not rows:
        return table("nan: none on the way to this value", ("",), [])
    more = f" (and {len(rows) - _MOST} more places)" if len(rows) > _MOST else ""
    head = ("where", "operation", "first nan at", "of")
    return table(f"nan: made here first{more}", head, [row for _, row in rows[:_MOST]], [True])


def _evaluated(shown: Portrait) -> dict[Node, Any]:
    graph = shown.executable.graph
    values: dict[Node, Any] = dict(zip(graph.parameters, shown.values, strict=True))
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node not in values:
                values[node] = node.op.evaluate(node, [values[a] for a in node.args], shown.number)  # type: ignore[attr-defined]
    return values


def has_nan(value: Any) -> bool:
    """Whether a value, or one of several, holds a nan."""
    if isinstance(value, tuple | list):
        return any(map(has_nan, value))
    array = np.asarray(value)
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


def _told(node: Node, value: Any, values: dict[Node, Any]) -> list[str]:
    """The place of the first nan in a result, and what the operands are there."""
    if isinstance(value, tuple | list):
        return ["–", ""]
    array = np.asarray(value)
    index = tuple(int(k) for k in np.argwhere(np.isnan(array))[0])
    operands: list[str] = []
    for arg in node.args:
        held = np.asarray(values[arg])
        if held.shape in {array.shape, ()}:
            operands.append(f"{held[index] if held.shape else held[()]:.6g}")
    return [f"[{', '.join(map(str, index))}]" if index else "the number", ", ".join(operands)]
