"""``tensormagic export``: a notebook's file read, and the program written as a notebook or as a file of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from tensormagic.notebook.export.program import Chunk, Program, Writer
from tensormagic.notebook.export.source import ExportError, read_cells

__all__ = ["ExportError", "export"]


def export(notebook: Path, target: Path | None = None, *, numpy: bool = False) -> str:
    """Write a notebook as a program.

    Parameters
    ----------
    notebook
        The notebook.
    target
        A file to write, ``.ipynb`` or ``.py``; None for a text of Python that is only returned.
    numpy
        Whether the program is to be plain NumPy. The notebook is then run, for the types that gradients are generated for.

    Returns
    -------
    str
        The text of the program.

    Raises
    ------
    ExportError
        For a cell that has no equal outside the notebook, with its number and its first line.
    """
    import nbformat

    suffix = ".py" if target is None else target.suffix
    if suffix not in {".py", ".ipynb"}:
        raise ExportError(f"-o takes a file that ends in .ipynb or .py, not {target}")
    if target is not None and target.resolve() == notebook.resolve():
        raise ExportError(f"-o {target} is the notebook itself", "Give the program another name.")
    read = cast("Any", nbformat).read(notebook, as_version=4)
    cells = read_cells(read.cells)
    program = _writer(cells, suffix == ".py", numpy, notebook.parent).program()
    text = program.python if suffix == ".py" else _notebook(program, read.metadata)
    if target is not None:
        target.write_text(text, encoding="utf-8")
    return text


def _writer(cells: Any, plain: bool, numpy: bool, folder: Path) -> Writer:
    if not numpy:
        return Writer(cells, plain=plain)
    from tensormagic.notebook.export.plain import PlainWriter

    return PlainWriter(cells, plain=plain, folder=folder)


def _notebook(program: Program, metadata: Any) -> str:
    """Return a notebook of the program's cells, without outputs, with the first one's kernel."""
    import nbformat

    v4: Any = nbformat.v4
    made = v4.new_notebook(cells=[_cell(v4, chunk) for chunk in program.chunks])
    made.metadata.update({k: v for k, v in metadata.items() if k in {"kernelspec", "language_info"}})
    for k, cell in enumerate(made.cells):
        cell["id"] = f"cell-{k}"  # the same at every export
    return cast("Any", nbformat).writes(made) + "\n"


def _cell(v4: Any, chunk: Chunk) -> Any:
    make = {"markdown": v4.new_markdown_cell, "raw": v4.new_raw_cell, "code": v4.new_code_cell}[chunk.kind]
    return make(chunk.text)
