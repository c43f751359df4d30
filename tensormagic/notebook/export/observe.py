"""Run a notebook to observe types of arguments of functions, and the graphs of captured cells."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import os
import warnings
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from IPython.core.compilerop import CachingCompiler

from tensormagic import session
from tensormagic.capture.inputs import snapshots
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.calls.call_inputs import Given
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.program import Specialisation
from tensormagic.functions.reads.footprint import UNKNOWN
from tensormagic.functions.reads.record import Record
from tensormagic.notebook.cells.outcome import Outcome, Source
from tensormagic.notebook.cells.run import compiled, run, run_plain
from tensormagic.notebook.export.source import Cell, ExportError

EXPORTED = "__tensor_exported__"


@dataclass(frozen=True, eq=False)
class Call:
    """The arguments of a call that a function got, and the program for arguments of this kind."""

    given: Given
    program: Specialisation


class _Compiler(CachingCompiler):
    """Names files of cells so that two runs do not share one."""

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        """Return the name of a cell's file."""
        return f"<exported {id(self)} {number}>"


@dataclass
class Run:
    """A notebook that is run cell by cell, in a namespace of its own.

    Parameters
    ----------
    folder
        Where it runs: that of the notebook, whose files it may read.
    """

    folder: Path
    user_ns: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    made: dict[int, list[Any]] = field(default_factory=dict[int, list[Any]])
    calls: dict[Function, list[Call]] = field(default_factory=dict[Function, list[Call]])
    compile: Any = field(default_factory=_Compiler)
    count: int = 0

    def push(self, names: dict[str, Any]) -> None:
        """Bind names, as a shell does."""
        self.user_ns.update(names)

    def transform_cell(self, text: str) -> str:
        """Return text without IPython's lines unchanged."""
        return text

    def prefilter(self, line: str) -> str:
        """Return a cell of one line, which IPython would look at once more."""
        return line

    def python(self, cell: Cell, tree: ast.Module, text: str) -> None:
        """Run a cell that is not captured; ``tree`` is it with its calls of the package marked."""
        name = f"<exported cell {id(self)} {cell.number}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        self.user_ns[EXPORTED] = self._noted
        snapshots.secure_all()
        with self._running(cell):
            exec(compile(tree, name, "exec"), self.user_ns)  # noqa: S102 (the notebook is run: that was asked for)

    def captured(self, cell: Cell, text: str) -> Outcome:
        """Run a captured cell."""
        self.count += 1
        options = cell.options
        assert options is not None  # noqa: S101 (it is captured)
        with self._running(cell):
            code = compiled(Source(text, f"cell {cell.number}", self.count), self)
            outcome = (run_plain if options.plain else run)(code, self, options)
        slopes = {n: slope for n, slope in outcome.gradients.items() if n.isidentifier()} | outcome.wholes
        self.user_ns.update({f"grad_{n}": slope for n, slope in slopes.items()})
        bound = [n for n in (*outcome.outputs, *(f"grad_{n}" for n in slopes)) if n in self.user_ns]
        with self._running(cell):
            self.user_ns.update({n: _computed(self.user_ns[n]) for n in bound})
        return outcome

    def called(self, cell: Cell, function: Function) -> None:
        """Record a call of a cell's function with the notebook's own variables."""
        with self._running(cell):
            function.graph()

    def _noted(self, site: int, value: Any) -> Any:
        """Note what a call of the package gave."""
        if all(value is not known for known in self.made.setdefault(site, [])):
            self.made[site].append(value)
        return value

    @contextlib.contextmanager
    def _running(self, cell: Cell) -> Generator[None]:
        """Run without output, in the notebook's folder, with every new kind of call noted."""
        own, calls = Function.specialise, self.calls

        def specialise(self: Function, given: Given, before: Record = UNKNOWN) -> tuple[Specialisation, Given]:
            program, complete = own(self, given, before)
            calls.setdefault(self, []).append(Call(complete, program))
            return program, complete

        os.environ.setdefault("MPLBACKEND", "agg")
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(io.StringIO()),
            warnings.catch_warnings(action="ignore"),
        ):
            Function.specialise = specialise  # until the cell has run
            try:
                yield
            except ExportError:
                raise
            except Exception as error:
                raise cell.error(
                    f"it raised {type(error).__name__}: {error}", "Run the notebook and fix the cell."
                ) from error
            finally:
                Function.specialise = own


def _computed(value: Any) -> Any:
    """Return a value as an exported cell hands it back: arrays, which may be stored into, for lazy ones."""
    leaves, build = flatten(value)
    if not any(isinstance(leaf, Tensor) for leaf in leaves):
        return value
    found = [session.compute([leaf.node])[0] if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    return build(iter([v.copy() if isinstance(v, np.ndarray) else v for v in found]))
