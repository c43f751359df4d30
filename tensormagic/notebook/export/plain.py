"""A notebook as plain NumPy: its own text where NumPy gives the same, generated code for gradients and for formulas made stable."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture.random import generators
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor
from tensormagic.config import config
from tensormagic.functions.calls.function import Function
from tensormagic.functions.cells import cast
from tensormagic.ir.closing import Closed
from tensormagic.ir.errors import CaptureError, TensorError
from tensormagic.notebook.cells.outcome import Outcome
from tensormagic.notebook.export.body import Body
from tensormagic.notebook.export.generated import KIND_OF, MISSING, Generated, arranged, stable_rules
from tensormagic.notebook.export.marks import Marks, names_of
from tensormagic.notebook.export.observe import Run
from tensormagic.notebook.export.program import Program, Writer
from tensormagic.notebook.export.source import Cell, ExportError, Lines


@dataclass
class _Ran:
    """What the run of a captured cell gave."""

    outcome: Outcome
    before: Mapping[str, Any]
    named: Any = None
    rules: list[str] = field(default_factory=list[str])


class PlainWriter(Writer):
    """Writes a notebook as plain NumPy, after running it.

    Parameters
    ----------
    cells, plain
        As for :class:`Writer`.
    folder
        Where the notebook runs.
    """

    def __init__(self, cells: Sequence[Cell], *, plain: bool, folder: Path) -> None:
        super().__init__(cells, plain=plain)
        self.run = Run(folder)
        self.names = names_of(self.texts)
        self.ran: dict[int, _Ran] = {}
        self.marks: dict[int, Marks] = {}
        self.needs: set[str] = set()
        self.generated = Generated()
        self.own = {name: self.fresh(name) for name in ("kind_of", "missing_from_globals")}

    def program(self) -> Program:
        """Return the whole program."""
        count = 0
        for cell in self.cells:
            if cell.kind != "code":
                continue
            text = Lines(cell, plain=True).text
            if cell.options is not None:
                self._run_captured(cell, text)
            elif text.strip():
                marks = self.marks[cell.number] = Marks(cell, self.names, count)
                self.run.python(cell, marks.marked(text), text)
                count += len(marks.sites)
        return super().program()

    def _run_captured(self, cell: Cell, text: str) -> None:
        space, options = self.run.user_ns, cell.options
        new = {n: self.start(n, ends) for n, ends in options.live if n not in space} if options else {}
        space.update(new)
        before = dict(space)
        outcome = self.run.captured(cell, text)
        for name in new:
            space.pop(name, None)
        named = space.get(options.name) if options and options.name else None
        ran = self.ran[cell.number] = _Ran(outcome, before, named)
        if outcome.options.plain:
            return
        nodes = [t.node for t in _tensors([*outcome.outputs.values(), outcome.result])]
        level = outcome.options.math or config.math
        ran.rules = stable_rules(session.close_over(nodes, use_values=False).graph, level) if nodes else []
        if isinstance(named, Function) and (ran.rules or self.names.mentioned(outcome.code.parsed.body)):
            self.run.called(cell, named)

    def head(self) -> list[str]:
        """Return the imports of generated code, and the functions that it calls."""
        lines = sorted(
            self.generated.imports
            | ({"import functools", "import inspect"} if "missing_from_globals" in self.needs else set())
        )
        for name, text in (("missing_from_globals", MISSING), ("kind_of", KIND_OF)):
            if name in self.needs:
                lines += ["", *text.rstrip().split("\n")]
        for name, helper in sorted(self.generated.helpers.items()):
            if name in self.taken:
                raise ValueError(f"the notebook has a name {name} of its own, which generated code needs")
            lines += ["", "", *helper]
        return self._renamed(lines)

    def _renamed(self, lines: Sequence[str]) -> list[str]:
        for name, own in self.own.items():
            if any(re.search(rf"\b{name}\b", line) for line in lines):
                self.needs.add(name)
            if own != name:
                lines = [re.sub(rf"\b{name}\b", own, line) for line in lines]
        return list(lines)

    # cells of Python --------------------------------------------------------------------------------------------------

    def python(self, cell: Cell, text: str) -> str:
        """Return a cell that is not captured, with generated functions for what the package made."""
        marks = self.marks.get(cell.number)
        super().python(cell, text)
        if marks is None:
            return text
        made: dict[int, str] = {}
        lines: list[str] = []
        after: list[str] = []
        for site in marks.sites:
            name = self.fresh(re.sub(r"\W", "_", site.what) + ("_in_numpy" if site.decorates else ""))
            written = self._made(cell, site.number, name, ast.unparse(site.node))
            if site.decorates:
                after += [*written, f"{site.decorates} = {name}"] if written else []
            else:
                made[site.number] = name
                lines += written or _never(name)
        replaced = marks.replaced(text, made)
        left = self.names.mentioned(ast.parse(replaced)) if self._parses(replaced) else []
        if left:
            raise cell.error(
                f"{left[0]} has no equivalent in plain NumPy", "Export without --numpy, or remove that line."
            )
        return "\n".join([*lines, *([replaced] if replaced.strip() else []), *after])

    @staticmethod
    def _parses(text: str) -> bool:
        try:
            ast.parse(text)
        except SyntaxError:
            return False
        return True

    def _made(self, cell: Cell, number: int, name: str, told: str) -> list[str]:
        """Return the text of what a call of the package made, for the kinds of calls that it got; empty where it got none."""
        functions = [f for f in self.run.made.get(number, ()) if isinstance(f, Function)]
        calls = [call for f in functions for call in self.run.calls.get(f, ())]
        if not calls:
            return []
        return self._function(cell, functions[0], calls, name, f"{told}, as generated NumPy code.")

    def _function(self, cell: Cell, function: Function, calls: Sequence[Any], name: str, told: str) -> list[str]:
        try:
            self.generated.function(function, calls, name, told, self.run.user_ns)
        except TensorError as error:
            raise cell.error(f"{function.name} is not exported to NumPy: {error}") from None
        lines, self.generated.lines = self._renamed(self.generated.lines), []
        return lines

    # captured cells ---------------------------------------------------------------------------------------------------

    def decorators(self, body: Body, *, named: bool) -> list[str]:
        """Return the lines before a definition."""
        return self._renamed(["@missing_from_globals"]) if named else []

    def casts(self, body: Body) -> list[str]:
        """Return casts of floating arrays, where the cell asks for them."""
        dtype, before = body.options.dtype, self.ran[body.cell.number].before
        wanted = [n for n in body.parameters if dtype and cast(before.get(n), dtype) is not before.get(n)]
        return [f"{n} = {n}.astype(np.{dtype})" for n in wanted]

    def returned(self, body: Body) -> str:
        """Return the text after ``return`` in the function of the cell, whose value comes last."""
        names = [*self.rest(body), *([body.value] if body.value else [])]
        return ", ".join(names) if names else "None"

    def rest(self, body: Body) -> list[str]:
        """Return the names returned beside the value."""
        return [n for n in body.outputs if n != body.value]

    def is_one(self, body: Body) -> bool:
        """Return whether the cell's NAME and what its run calls are one function."""
        return bool(body.options.name) and not self.rest(body)

    def place_of_value(self, body: Body) -> str:
        """Return the subscript of the value in the result of the cell's function."""
        return f"[{len(self.rest(body))}]" if self.rest(body) else ""

    def function(self, body: Body) -> list[str]:
        """Return the definitions: in the cell's own text where NumPy gives the same, else generated; and of the gradient."""
        ran = self.ran[body.cell.number]
        mentioned = self.names.mentioned(body.tree)
        lines = self._generated(body, ran) if ran.rules or mentioned else None
        self.results = lines is not None
        if lines is None:
            if mentioned:
                raise body.cell.error(
                    f"{mentioned[0]} has no equivalent in plain NumPy here",
                    "Export without --numpy, or remove that line.",
                )
            note = f"# The notebook computes this by rules that lose less: {'; '.join(ran.rules)}." if ran.rules else ""
            lines = [*([note] if note else []), *super().function(body)]
        return [*lines, *self._gradient(body, ran)]

    def _generated(self, body: Body, ran: _Ran) -> list[str] | None:
        """Return the cell's function as generated code, or None where it has effects that the text has to have."""
        outcome = ran.outcome
        if outcome.stored or body.grows:
            return None
        self.name = self.fresh(self._called(body))
        values = [*(outcome.outputs[n] for n in self.rest(body)), *([outcome.result] if body.value else [])]
        try:
            text, self.given = self._graph_function(body, ran, values, self.name)
        except TensorError:
            return None
        told = [
            f"# Generated for {_types(outcome)} from this text{', by ' + '; '.join(ran.rules) if ran.rules else ''}:"
        ]
        told += [f"#     {line}".rstrip() for line in body.cell.text.strip().splitlines()]
        return [*told, *text, *self._named(body, ran)]

    def _named(self, body: Body, ran: _Ran) -> list[str]:
        options, function = body.options, ran.named
        if not options.name or not isinstance(function, Function):
            return []
        calls = self.run.calls.get(function, [])
        if not calls:
            return _never(options.name)
        return self._function(
            body.cell, function, calls, options.name, f"The cell {options.name}, as generated NumPy code."
        )

    def _graph_function(self, body: Body, ran: _Ran, values: list[Any], name: str) -> tuple[list[str], list[str]]:
        """Return the source of a function that computes ``values`` from the cell's inputs, and the arguments to call it with."""
        leaves, build = flatten(values)
        tensors = [v for v in leaves if isinstance(v, Tensor)]
        inputs = {t.node: n for n, t in ran.outcome.inputs.items()}
        closed = session.close_over([t.node for t in tensors], list(inputs), use_values=False)
        graph = session.executable(closed.graph, ran.outcome.options.math or None).graph
        named = type(graph)(graph.parameters, graph.results, graph.guards, closed.graph.names)
        given = self._arguments(body, ran, closed, inputs)
        if tensors and all(isinstance(v, Tensor) for v in values):
            self.generated.graph(named, name)
            lines, self.generated.lines = self._renamed(self.generated.lines), []
            return lines, given
        self.generated.graph(named, f"{name}_values")
        texts = iter([f"result[{k}]" if len(tensors) > 1 else "result" for k in range(len(tensors))])
        parts = arranged(build(iter([next(texts) if isinstance(v, Tensor) else _literal(body, v) for v in leaves])))
        lines, self.generated.lines = self._renamed(self.generated.lines), []
        parameters = lines[0].partition("(")[2].removesuffix("):")
        head = [f"def {name}({parameters}):", f"    result = {name}_values({parameters})" if tensors else "    pass"]
        inner = parts.removeprefix("[").removesuffix("]")
        return [*lines, *head, f"    return {inner}", ""], given

    def _arguments(self, body: Body, ran: _Ran, closed: Closed, inputs: Mapping[Any, str]) -> list[str]:
        """Return the expression for each leaf of a graph in the program."""
        texts: list[str] = []
        for leaf in closed.leaves:
            text = inputs.get(leaf) or leaf["source"].name
            try:
                value = eval(text, dict(ran.before))  # noqa: S307 (a name of the notebook, or an item of one)
            except Exception:  # noqa: BLE001 (whatever it is, there is no such name)
                raise body.cell.error(f"it reads {text}, which is not a variable of the notebook") from None
            if generators.is_generator(value):
                raise CaptureError(f"it draws random numbers from {text}")
            if leaf not in inputs and not np.array_equal(
                np.asarray(value), np.asarray(session.value_of(leaf)), equal_nan=True
            ):
                raise body.cell.error(
                    f"it goes back to an earlier value of {text}",
                    f"Give {text} another name where it is assigned again.",
                )
            text = text if isinstance(value, np.ndarray | np.generic | float | int | complex) else f"np.asarray({text})"
            own = np.asarray(value).dtype
            texts.append(text if own == leaf.type.dtype else f"{text}.astype(np.{leaf.type.dtype})")
        return texts

    def _gradient(self, body: Body, ran: _Ran) -> list[str]:
        """Return the function of the gradient."""
        wanted = body.options.grad
        self.slopes = ""
        if not wanted:
            return []
        outcome = ran.outcome
        values = [outcome.wholes.get(name, outcome.gradients.get(name)) for name in wanted]
        self.slopes = self.fresh(f"{body.options.name or f'cell_{body.cell.number}'}_gradient")
        try:
            lines, self.slope_arguments = self._graph_function(body, ran, values, self.slopes)
        except ExportError:
            raise
        except TensorError as error:
            raise body.cell.error(f"its gradient is not exported to NumPy: {error}") from None
        return [f"# The gradient with respect to {', '.join(wanted)}, generated for {_types(outcome)}.", *lines]

    def calls(self, body: Body) -> list[str]:
        """Return the calls of the cell's function and of its gradient, and the lines that print their results."""
        given = self.given if self.results else self.arguments(body)
        names = [*self.rest(body), *([body.value] if body.value else [])]
        bound = {n: n if n in body.outputs else self.fresh(f"value_{body.cell.number}") for n in names}
        left = ", ".join(bound.values())
        lines = [f"{left} = {self.name}({', '.join(given)})" if left else f"{self.name}({', '.join(given)})"]
        if self.slopes:
            slopes = ", ".join(f"grad_{n}" for n in body.options.grad)
            kept = self.fresh(f"slopes_{body.cell.number}")  # at what the cell has read, before it changes that
            lines = [f"{kept} = {self.slopes}({', '.join(self.slope_arguments)})", *lines, f"{slopes} = {kept}"]
        suppressed = body.cell.text.rstrip().endswith(";")
        return [*lines, bound[body.value]] if body.shown and not suppressed else lines

    def view(self, body: Body) -> list[str]:
        """Return a comment instead of a live view, which needs a notebook."""
        return [f"# --live is left out: {body.cell.magic}"] if body.options.live else []


def _never(name: str) -> list[str]:
    return [
        f"def {name}(*arguments, **options):",
        f'    raise NotImplementedError("the notebook has not called {name}: there are no types to generate code for")',
        "",
    ]


def _literal(body: Body, value: Any) -> str:
    """Return the source text of a value that is no array."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    raise body.cell.error(f"it hands back {type(value).__name__}, which generated code cannot create")


def _types(outcome: Outcome) -> str:
    """Return the types that generated code is for."""
    return ", ".join(f"{name}: {tensor.node.type}" for name, tensor in outcome.inputs.items()) or "no arguments"


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in flatten(value)[0] if isinstance(leaf, Tensor)]
