"""A notebook's cells, read: which are captured, with which options, and IPython's own lines as Python or as comments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import TransformerManager

from tensormagic.ir.errors import TensorError
from tensormagic.notebook.cells.magic_lines import comments_first
from tensormagic.notebook.magic import TensorMagics
from tensormagic.notebook.options import Options, of_line, read

_CAPTURED = re.compile(r"%%tensor\b(.*)")
_DEFAULT = re.compile(r"\s*%config\s+TensorMagics\.(\w+)\s*=\s*(.+)")
_PARSER = TensorMagics.tensor.parser  # type: ignore[attr-defined]
_QUIET = set(  # magics that bind nothing
    "matplotlib config load_ext reload_ext unload_ext autoreload precision who whos timeit pinfo pinfo2 pip conda mamba "  # noqa: SIM905 (a table)
    "xmode colors lsmagic magic quickref pdoc pdef psource pfile".split()
)
_SHOWING = {"html", "HTML", "javascript", "js", "latex", "markdown", "svg", "SVG"}
_OURS = re.compile(r"tensor_\w+$")


class ExportError(TensorError, ValueError):
    """A cell that has no equal outside the notebook."""


@dataclass(frozen=True)
class Cell:
    """One cell.

    Parameters
    ----------
    number
        Its number among the code cells, from 1; 0 for text.
    kind
        ``"code"``, ``"markdown"`` or ``"raw"``.
    text
        The source; of a captured cell, without the magic's line.
    options
        The magic's options, for a captured cell.
    magic
        The magic's line, for a captured cell.
    """

    number: int
    kind: str
    text: str
    options: Options | None = None
    magic: str = ""

    @property
    def label(self) -> str:
        """Return the name of the cell in errors."""
        lines = [self.magic, *self.text.splitlines()]
        first = next((line.strip() for line in lines if line.strip()), "")
        return f"code cell {self.number} ({first[:60]})"

    def error(self, message: str, hint: str = "") -> ExportError:
        """Return an error that names the cell."""
        return ExportError(f"{self.label}: {message}", hint)


def read_cells(cells: Sequence[Any]) -> list[Cell]:
    """Return the cells of a notebook.

    Raises
    ------
    ExportError
        For options of ``%%tensor`` that do not exist, with the cell.
    """
    found: list[Cell] = []
    defaults: dict[str, Any] = {}
    number = 0
    for cell in cells:
        text = str(cell.source)
        if cell.cell_type != "code":
            found.append(Cell(0, str(cell.cell_type), text))
            continue
        number += 1
        found.append(_code_cell(number, text, defaults))
        for line in text.splitlines():
            given = _DEFAULT.match(line)
            if given is not None:
                defaults[given[1]] = ast.literal_eval(given[2].strip())
    return found


def _code_cell(number: int, text: str, defaults: dict[str, Any]) -> Cell:
    lines = comments_first(text.splitlines(keepends=True))
    captured = _CAPTURED.match(lines[0]) if lines else None
    if captured is None:
        return Cell(number, "code", text)
    magic, body = lines[0].rstrip("\n"), "".join(lines[1:])
    try:
        return Cell(number, "code", body, read(_PARSER, captured[1], defaults), magic)
    except UsageError as error:
        raise Cell(number, "code", body, None, magic).error(str(error)) from None


# lines of IPython -----------------------------------------------------------------------------------------------------


@dataclass
class Lines:
    """The text of a cell without IPython's lines.

    Parameters
    ----------
    cell
        The cell.
    plain
        Whether the program is a file of Python, where no magic can stay.
    """

    cell: Cell
    plain: bool
    text: str = field(init=False)

    def __post_init__(self) -> None:
        """Read the cell."""
        written = self.cell.text
        if not self.cell.magic and written.lstrip().startswith("%%"):
            self.text = self._cell_magic(written.lstrip())
            return
        self.text = self._lines(written)

    def _cell_magic(self, written: str) -> str:
        first, _, rest = written.partition("\n")
        name = first[2:].split()[0] if first[2:].split() else ""
        if name in {"time", "capture", "prun"}:
            return f"# {first}\n{self._lines(rest)}" if self.plain else written
        if name == "rewrite" or (self.plain and (name in _SHOWING or name == "timeit")):
            return _comment(written)
        if self.plain:
            raise self.cell.error(
                f"%%{name} has no equivalent in a Python file", "Write a notebook: -o NAME.ipynb keeps such cells."
            )
        return written

    def _lines(self, written: str) -> str:
        made = TransformerManager().transform_cell("#\n" + written).partition("\n")[2]
        try:
            tree = ast.parse(made)
        except SyntaxError as error:
            raise self.cell.error(f"line {error.lineno}: {error.msg}") from None
        python = made.splitlines()
        lines = written.splitlines()
        lines = python.copy() if len(lines) != len(python) or self.plain else lines
        for node, name, argument in _calls(tree):
            place = node.lineno - 1
            indent = python[place][: len(python[place]) - len(python[place].lstrip())]
            standing = isinstance(node, ast.Expr)
            stand_in = self._stand_in(name, argument, standing=standing)
            if stand_in is None:
                continue
            if not standing:  # what is assigned
                call = ast.get_source_segment(made, node) or ""
                lines[place] = python[place].replace(call, stand_in)
            elif stand_in.startswith("#") and indent:
                lines[place] = f"{indent}pass  {stand_in}"
            else:
                lines[place] = indent + stand_in
        return "\n".join(line for line in lines if line != _DROPPED)

    def _stand_in(self, name: str, argument: str, *, standing: bool) -> str | None:
        """Return the replacement of a line, or None where it may stay."""
        written = f"%{name} {argument}".rstrip() if name != "!" else f"!{argument}"
        if name in {"load_ext", "reload_ext"} and argument.split()[:1] == ["tensormagic"]:
            return _DROPPED if standing else "None"
        if name == "tensor":
            return self._expression(argument)
        if _OURS.match(name) or (name == "config" and argument.startswith("TensorMagics")):
            return f"# {written}" if standing else "None"
        if not self.plain:
            return None
        if name in {"time", "prun"} and argument:
            return argument
        installing = name == "!" and re.match(r"(python3? -m )?(pip|conda|mamba)\b", argument)
        if standing and (name in _QUIET or installing):
            return f"# {written}"
        raise self.cell.error(
            f"{written} has no equivalent in a Python file", "Write a notebook: -o NAME.ipynb keeps such lines."
        )

    def _expression(self, argument: str) -> str:
        asked, expression = of_line(argument, ())
        options = read(_PARSER, asked, {})
        if options.grad or options.live:
            raise self.cell.error(
                "%tensor with --grad or --live is not exported", "Make it a cell of its own: %%tensor."
            )
        return expression


_DROPPED = "\0"


def _comment(text: str) -> str:
    return "\n".join(f"# {line}".rstrip() for line in text.splitlines())


def _calls(tree: ast.AST) -> Iterator[tuple[ast.Expr | ast.Call, str, str]]:
    """Yield the calls that IPython makes of its lines: the statement or the call, the magic (``!`` for the system's), its text."""
    calls = {id(n.value): n for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_shell(node.func.value)):
            continue
        texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        where: ast.Expr | ast.Call = calls.get(id(node), node)
        if node.func.attr == "run_line_magic" and len(texts) == 2:
            yield where, texts[0], texts[1]
        elif node.func.attr in {"system", "getoutput"} and texts:
            yield where, "!", texts[0]


def _is_shell(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "get_ipython"
