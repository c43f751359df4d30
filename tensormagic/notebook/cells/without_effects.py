"""A cell's text without statements that only have side effects, for a capture beside a plain run, so that nothing happens twice."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from types import GeneratorType, ModuleType
from typing import Any

import numpy as np
from IPython.core.error import UsageError

from tensormagic.capture.cell import Code, compile_cell, free_names
from tensormagic.capture.python import usercode
from tensormagic.capture.values.value import Tensor
from tensormagic.ir.modules import module_of

_TELLING = {"print", "display", "input", "breakpoint", "exec"}
_DATA = (Tensor, np.ndarray, list, dict, set)


def without_effects(code: Code, notebook: Mapping[str, Any]) -> Code:
    """Return the cell less the statements that only print, plot, write or wait: calls whose value nobody takes.

    Calls that may change data stay: functions of NumPy and of the notebook, methods of arrays and of containers.
    """
    tree = ast.parse(code.cell.source)
    statements = [n for n in ast.walk(tree) if isinstance(n, ast.Expr) and n is not tree.body[-1]]
    dropped = [n for n in statements if isinstance(n.value, ast.Call) and _is_effect(n.value.func, notebook)]
    if not dropped:
        return code
    lines = [line.encode() for line in code.cell.source.splitlines()]
    for statement in sorted(dropped, key=lambda n: (n.lineno, n.col_offset), reverse=True):
        first, last = statement.lineno - 1, (statement.end_lineno or statement.lineno) - 1
        rest = lines[last][statement.end_col_offset :]
        stand_in = [b"None"] if first == last else [b"(", *[b""] * (last - first - 1), b"None)"]
        stand_in[0] = lines[first][: statement.col_offset] + stand_in[0]
        stand_in[-1] += rest
        lines[first : last + 1] = stand_in
    shown = usercode.cells.get(code.filename, code.cell)
    quiet = compile_cell(b"\n".join(lines).decode(), code.cell.label, code.cell.run, code.filename)
    usercode.cells[code.filename] = shown
    return quiet


def _is_effect(function: ast.expr, notebook: Mapping[str, Any]) -> bool:
    """Return whether calling this, for nothing, changes no data of the cell."""
    if isinstance(function, ast.Name):
        return function.id in _TELLING
    root = function
    while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
        root = root.func if isinstance(root, ast.Call) else root.value
    if not isinstance(root, ast.Name) or root.id not in notebook:
        return False
    value = notebook[root.id]
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] not in {"numpy", "scipy"}
    return not isinstance(value, _DATA) and module_of(type(value)) != "__main__"


def own_iterators(code: Code, notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notebook with iterators of its own in place of those that the cell reads: what these give, they give once.

    Raises
    ------
    UsageError
        For a generator, which cannot be copied.
    """
    space = dict(notebook)
    for name, value in _iterators(code, notebook):
        if isinstance(value, GeneratorType):
            raise UsageError(
                f"%%tensor --plain: {name} is a generator, whose values can be read only once, but the cell runs twice, "
                f"for its value and for its gradient; read what the cell needs in an earlier cell"
            )
        space[name] = copy.copy(value)
    return space


def _iterators(code: Code, notebook: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in free_names(code, notebook):
        value = notebook[name]
        if isinstance(value, GeneratorType) or type(value).__name__.endswith("iterator"):
            yield name, value
