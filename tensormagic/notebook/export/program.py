"""A notebook as a program: its cells in order, captured ones as functions and their calls."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from tensormagic.capture.python.cell_text import parse
from tensormagic.notebook.export.body import Body, indented, taken_apart
from tensormagic.notebook.export.scope import Scope
from tensormagic.notebook.export.source import Cell, Lines
from tensormagic.notebook.live.ranges import parameter
from tensormagic.notebook.parted import root_of

_LAZY_ONLY = ("graph", "optimized", "code", "explain", "to_html", "grad", "time", "numpy")
_STRANGE = {"In", "Out", "get_ipython"}


@dataclass(frozen=True)
class Chunk:
    """A cell of the program: text of kind ``"markdown"``, ``"raw"`` or ``"code"``."""

    kind: str
    text: str


@dataclass
class Program:
    """The program that a notebook was translated to, and the notes on it."""

    chunks: list[Chunk] = field(default_factory=list[Chunk])
    notes: list[str] = field(default_factory=list[str])

    @property
    def python(self) -> str:
        """Return the program as one file, its cells marked as editors know them."""
        parts: list[str] = []
        for chunk in self.chunks:
            if chunk.kind == "code":
                parts.append(f"# %%\n{chunk.text}")
            else:
                told = "\n".join(f"# {line}".rstrip() for line in chunk.text.splitlines())
                parts.append(f"# %% [{chunk.kind}]\n{told}")
        return "\n\n".join(parts) + "\n"


class Writer:
    """Writes the cells of a notebook as functions that ``tm.tensor`` captures.

    Parameters
    ----------
    cells
        The cells.
    plain
        Whether the program is a file of Python, where no magic can stay.
    """

    def __init__(self, cells: Sequence[Cell], *, plain: bool) -> None:
        self.cells = cells
        self.plain = plain
        self.scope = Scope()
        # in a captured cell no magic stays: it would be in a function
        self.texts = [Lines(c, plain or c.options is not None).text if c.kind == "code" else c.text for c in cells]
        self.taken = {n for text in self.texts for n in re.findall(r"[^\W\d]\w*", text)}
        self.tm = self._module_name()

    def program(self) -> Program:
        """Return the whole program."""
        made = Program()
        for cell, text in zip(self.cells, self.texts, strict=True):
            if cell.kind != "code":
                made.chunks.append(Chunk(cell.kind, text))
                continue
            written = self.captured(cell, text) if cell.options is not None else self.python(cell, text)
            if written.strip():
                made.chunks.append(Chunk("code", written.strip("\n")))
        head = "\n".join(self.head())
        first = next((chunk.text for chunk in made.chunks if chunk.kind == "code"), "")
        if head and head not in first.split("\n"):
            place = next((k for k, chunk in enumerate(made.chunks) if chunk.kind == "code"), len(made.chunks))
            made.chunks.insert(place, Chunk("code", head))
        return made

    def head(self) -> list[str]:
        """Return the first lines of the program."""
        return [f"import tensormagic as {self.tm}"]

    def _module_name(self) -> str:
        """Return the name of the package in the program: ``tm``, if nothing else has that name."""
        imported = re.compile(r"^\s*import tensormagic as tm\b", re.MULTILINE)
        text = "\n".join(imported.sub("", t) for c, t in zip(self.cells, self.texts, strict=True) if c.kind == "code")
        bound = re.search(r"\btm\s*(,[^=\n]*)?=[^=]|\bas tm\b|\bfor tm\b|def tm\b", text)
        return self.fresh("tensors") if bound else "tm"

    def fresh(self, name: str) -> str:
        """Return a name that the notebook does not have."""
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    # cells of Python --------------------------------------------------------------------------------------------------

    def python(self, cell: Cell, text: str) -> str:
        """Return a cell that is not captured."""
        if text.lstrip().startswith("%%") or not text.strip():
            return text
        code = text if self.plain else TransformerManager().transform_cell(text)
        try:
            tree = ast.parse(code)
        except SyntaxError as error:
            raise cell.error(f"line {error.lineno}: {error.msg}") from None
        self._check(cell, tree)
        self.scope.plain(tree, parse(code, cell.label))
        return text

    def _check(self, cell: Cell, tree: ast.Module) -> None:
        """Refuse what asks a value for its graph, and what only a notebook has."""
        for n in ast.walk(tree):
            if isinstance(n, ast.Name) and self.plain and n.id in _STRANGE and self.scope.is_free(n.id):
                raise cell.error(f"{n.id} is the notebook's own", "Write a notebook: -o NAME.ipynb keeps such lines.")
            if (
                isinstance(n, ast.Attribute)
                and n.attr in _LAZY_ONLY
                and isinstance(n.value, ast.Name)
                and self.scope.origins.get(n.value.id)
            ):
                raise cell.error(
                    f"{ast.unparse(n)} needs a lazy value, but an exported cell returns arrays",
                    f"Give the cell that computes {n.value.id} a NAME, and use tm.trace(NAME, ...); or remove the line.",
                )

    # captured cells ---------------------------------------------------------------------------------------------------

    def captured(self, cell: Cell, text: str) -> str:
        """Return a captured cell."""
        body = taken_apart(cell, text, self.scope)
        options = body.options
        self.check_gradients(body)
        if body.inline or (options.plain and not options.grad and not options.name):
            lines = self._inline(body, text)
        else:
            lines = [*body.before, *([""] if body.before else []), *self.function(body), *self.calls(body), *body.after]
        lines += self.view(body)
        self.scope.captured(body.tree, body.parsed, [n for n in body.parsed.binds if self._handed_back(n, body)])
        for name in options.grad:
            self.scope.kinds[f"grad_{name}"] = "value"
            self.scope.origins[f"grad_{name}"] = {self.scope.version(n) for n in body.parameters}
        if options.name:
            self.scope.kinds[options.name] = "function"
        return "\n".join(lines)

    def _handed_back(self, name: str, body: Body) -> bool:
        wanted = body.options.outputs
        return not name.startswith("_") and (wanted is None or name in wanted)

    def check_gradients(self, body: Body) -> None:
        """Refuse gradients that a function of the cell's inputs does not have."""
        for name in body.options.grad:
            if name != root_of(name):
                raise body.cell.error(
                    f"--grad {name} names a part of a variable, and a function has derivatives with respect to its arguments",
                    f"Read it into a variable in an earlier cell, and use that here: part = {name}.",
                )
            if name in body.parsed.binds and name not in body.parsed.reads:
                raise body.cell.error(
                    f"--grad {name} names a variable that the cell itself assigns",
                    f"Compute {name} in an earlier cell, and read it here.",
                )
            version = self.scope.version(name)
            through = [n for n in body.parsed.reads if n != name and version in self.scope.origins.get(n, ())]
            if through:
                raise body.cell.error(
                    f"{through[0]}, which the cell reads, was computed from {name} in a cell before it, and the gradient goes back there",
                    "Merge the two cells.",
                )

    def _inline(self, body: Body, text: str) -> list[str]:
        options = body.options
        if options.grad or options.name or options.live:
            why = body.inline or "it is run with --plain"
            raise body.cell.error(
                f"this cell cannot become a function ({why})",
                "Use --grad, --live and NAME in cells that can become functions.",
            )
        counters = {n for n in self.scope.kinds if n in _counters(body.tree) and n not in body.parsed.binds}
        if counters:
            raise body.cell.error(
                f"its loop counter {min(counters)} is also a variable of the notebook, so the cell cannot be a function ({body.inline})",
                "Rename the counter.",
            )
        return text.splitlines()

    def function(self, body: Body) -> list[str]:
        """Return the definitions: of the cell, and of its NAME."""
        options = body.options
        self.name = options.name if self.is_one(body) else self.fresh(self._called(body))
        lines = [*self.decorators(body, named=bool(options.name) and self.is_one(body))]
        lines += [f"def {self.name}({', '.join(body.parameters)}):", *indented(self.casts(body)), *body.lines]
        lines += [f"    return {self.returned(body)}", ""]
        if options.name and not self.is_one(body):
            given = ", ".join(body.parameters)
            place = self.place_of_value(body)
            lines += [
                *self.decorators(body, named=True),
                f"def {options.name}({given}):",
                f"    return {self.name}({given}){place}",
                "",
            ]
        return ["", *lines] if body.before else lines

    def casts(self, body: Body) -> list[str]:
        """Return lines that cast arguments, where the decorator does not."""
        return []

    def _called(self, body: Body) -> str:
        return f"{body.options.name}_cell" if body.options.name else f"cell_{body.cell.number}"

    def is_one(self, body: Body) -> bool:
        """Return whether the cell's NAME and what its run calls are one function: it gives the value and nothing else."""
        return bool(body.options.name) and not self.rest(body) and not body.options.of

    def decorators(self, body: Body, *, named: bool) -> list[str]:
        """Return the lines before a definition."""
        if body.grows and not named:
            return []
        options = body.options
        given = ["missing=globals()"] if named else []
        given += [f"math={options.math!r}"] if options.math else []
        given += [f"dtype={options.dtype!r}"] if options.dtype else []
        return [f"@{self.tm}.tensor({', '.join(given)})" if given else f"@{self.tm}.tensor"]

    def target(self, body: Body) -> str:
        """Return the name of the differentiated value."""
        return body.options.of or body.value

    def rest(self, body: Body) -> list[str]:
        """Return the names returned beside the target, or the value."""
        first = self.target(body) if body.options.grad else body.value
        rest = [n for n in body.outputs if n != first]
        if body.options.grad and body.options.of and body.shown and body.value not in (first, *rest):
            rest.append(body.value)
        return rest

    def returned(self, body: Body) -> str:
        """Return the text after ``return`` in the function of the cell."""
        rest = self.rest(body)
        if body.options.grad:
            target = self.target(body)
            if not target:
                raise body.cell.error(
                    "--grad, and the cell has no value", "End it with an expression, or name a value with --of."
                )
            return f"{target}, {_tuple(rest)}" if rest else target
        names = [*rest, *([body.value] if body.value else [])]
        return ", ".join(names) if names else "None"

    def place_of_value(self, body: Body) -> str:
        """Return the subscript of the value in the result of the cell's function."""
        rest = self.rest(body)
        if body.options.grad and not body.options.of:
            return "[0]"
        if body.options.grad:
            return "[0]" if body.value == body.options.of else f"[1][{rest.index(body.value)}]"
        return f"[{len(rest)}]" if rest else ""

    def calls(self, body: Body) -> list[str]:
        """Return the call of the cell's function, and the lines that print its results."""
        given = ", ".join(self.arguments(body))
        names = dict.fromkeys([self.target(body) if body.options.grad else body.value, *self.rest(body), body.value])
        bound = {n: n if n in body.outputs else self.fresh(f"value_{body.cell.number}") for n in names if n}
        rest = [bound[n] for n in self.rest(body)]
        if body.options.grad:
            first = bound[self.target(body)]
            left = f"({first}, {_tuple(rest)})" if rest else first
            wrt, slopes = _argnums(body.options.grad)
            aux = ", has_aux=True" if rest else ""
            lines = [f"{left}, {slopes} = {self.tm}.value_and_grad({self.name}, {wrt}{aux})({given})"]
        else:
            left = ", ".join([*rest, *([bound[body.value]] if body.value else [])])
            lines = [f"{left} = {self.name}({given})" if left else f"{self.name}({given})"]
        suppressed = body.cell.text.rstrip().endswith(";")
        return [*lines, bound[body.value]] if body.shown and not suppressed else lines

    def arguments(self, body: Body) -> list[str]:
        """Return the arguments of the call: the notebook's variables, or the start of a live view for a name without one."""
        starts = {n: self.start(n, ends) for n, ends in body.options.live if self.scope.is_free(n)}
        return [repr(starts[n]) if n in starts else n for n in body.parameters]

    @staticmethod
    def start(name: str, ends: Sequence[float]) -> Any:
        """Return where a live view starts that moves a name which the notebook does not have."""
        moved = parameter(name, ends, None)
        return moved.argument(moved.start)

    def view(self, body: Body) -> list[str]:
        """Return the live view that the cell asks for."""
        options = body.options
        if not options.live:
            return []
        ranges = ", ".join(f"{name}={ends!r}" for name, ends in options.live)
        moving = [name for name, _ in options.live]
        value = f"{self.name}({', '.join(body.parameters)}){'' if self.is_one(body) else self.place_of_value(body)}"
        name = self.fresh(f"view_{body.cell.number}")
        function = self.fresh(f"shown_{body.cell.number}")
        return [
            "",
            f"def {function}({', '.join(moving)}):",
            *indented([f"return {value}"]),
            "",
            f"{name} = {self.tm}.live({function}, {ranges})",
            name,
        ]


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _argnums(names: Sequence[str]) -> tuple[str, str]:
    """Return the argument that names what gradients are with respect to, and the names of the gradients."""
    if len(names) == 1:
        return repr(names[0]), f"grad_{names[0]}"
    return repr(tuple(names)), f"({', '.join(f'grad_{n}' for n in names)})"


def _counters(tree: ast.AST) -> set[str]:
    targets = [n.target for n in ast.walk(tree) if isinstance(n, ast.For)]
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
