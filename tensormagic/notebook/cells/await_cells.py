"""Captured cells that await outside functions: only IPython can run these, so they run as plain cells, with a note."""

from __future__ import annotations

import ast
import warnings

from IPython.core.inputtransformer2 import TransformerManager

from tensormagic.ir.errors import PlainRunWarning

_ASKS_FOR_VALUES = {
    "-q",
    "--quiet",
    "-f",
    "--force",
    "--verbose",
    "--plain",
}  # options beside which values alone are asked for


def awaits(tree: ast.AST) -> bool:
    """Return whether code waits outside functions, which only IPython's own cells may."""
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return False
    waits = isinstance(tree, ast.Await | ast.AsyncFor | ast.AsyncWith)
    waits = waits or (isinstance(tree, ast.comprehension) and bool(tree.is_async))
    return waits or any(map(awaits, ast.iter_child_nodes(tree)))


def waits(text: str) -> bool:
    """Return whether a captured cell of this text asks for its values alone, and waits outside functions."""
    first, _, body = text.lstrip().partition("\n")
    asked = first.split()
    if (
        asked[:1] != ["%%tensor"]
        or not _ASKS_FOR_VALUES.issuperset(asked[1:])
        or ("await" not in body and "async" not in body)
    ):
        return False
    try:
        return awaits(ast.parse(TransformerManager().transform_cell(body)))
    except SyntaxError:  # shown as Python shows it
        return False


def told_plain(lines: list[str]) -> list[str]:
    """Return the lines of a cell that awaits, with the magic's line blanked and a warning given; other lines unchanged."""
    if not waits("".join(lines)):
        return lines
    warnings.warn_explicit(
        "the cell waits (await, async for, async with) outside functions, which IPython's own cells alone can do, so it was run as "
        "ordinary Python: its results have no graph, and gradients in later cells take them for constants. If you want a graph, wait in a "
        "cell of its own, and compute in the next one",
        PlainRunWarning,
        "%%tensor",
        1,
    )
    return ["\n", *lines[1:]]


told_plain.has_side_effects = True  # type: ignore[attr-defined]  # not called to see whether a cell is complete
