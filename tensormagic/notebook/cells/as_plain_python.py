"""Runs a cell again as ordinary Python when no graph can hold it or its graph is too large, if nobody can tell that it ran twice."""

from __future__ import annotations

import ast
import sys
import warnings
from collections import deque
from contextlib import redirect_stdout
from typing import Any

from tensormagic.capture.cell import Code, free_names
from tensormagic.capture.numbers import numbers_taken
from tensormagic.capture.python import usercode
from tensormagic.ir.errors import CaptureError, LimitError, PlainRunWarning, TensorError
from tensormagic.notebook.cells.as_arrays import AsArrays
from tensormagic.notebook.cells.outcome import Outcome
from tensormagic.notebook.cells.repeatable import close_figures, has_figures, is_repeatable
from tensormagic.notebook.cells.run import run, run_plain
from tensormagic.notebook.options import Options
from tensormagic.notebook.warnings.numbers_handed_on import numbers

_UNCAPTURED = ", but the code is only being captured"
_given_up: deque[str] = deque(maxlen=100)  # the statements at which cells were given up
_HEARD = 1 << 20  # printed characters that are kept


def run_as_it_can(code: Code, shell: Any, options: Options) -> Outcome:
    """Capture and run a cell; if it cannot be captured, or the graph is too large, run it as plain Python if only values are asked for.

    Its effects until then are undone, and text that it has already printed is not printed again.

    Raises
    ------
    TensorError
        If a second run could be noticed: the cell reads or writes files, draws, or calls functions of unknown effects.
    """
    if not _asks_for_values(options):
        return run(code, shell, options)
    heard, notebook, figures = _Heard(sys.stdout), dict[str, Any](shell.user_ns), has_figures()
    found: list[bool] = []

    def repeatable(line: int | None) -> bool:
        return heard.kept is not None and is_repeatable(code, notebook, line, figures=figures)

    def again() -> bool:
        if not found:  # while the cell runs, which says how far it has come
            found.append(repeatable(usercode.line_of(code.filename)))
        return found[0]

    try:
        with redirect_stdout(heard):
            return run(code, shell, options, again, hurried=_was_given_up(code.cell.source))
    except TensorError as error:
        refused = isinstance(error, CaptureError) and error.pythons
        if not refused or not (again() if isinstance(error, LimitError) else repeatable(_reached(code, error))):
            raise
        why = error
    if isinstance(why, LimitError):
        reached = _reached(code, why) or 0
        _given_up.extend(text for first, last, text in _statements(code.cell.source) if first <= reached <= last)
    if not figures:
        close_figures()
    return _by_python(code, shell, options, notebook, heard, why)


def _by_python(
    code: Code, shell: Any, options: Options, notebook: dict[str, Any], heard: _Heard, why: TensorError
) -> Outcome:
    """Run a cell as ordinary Python, say why, and note what came of it, for gradients that are asked of it later."""
    read = numbers_taken.marks_of({n: notebook[n] for n in free_names(code, notebook)})
    arrays = AsArrays(code.parsed.reads, code.parsed.binds, shell.user_ns)
    try:
        with redirect_stdout(_After(sys.stdout, heard.kept or "")):
            outcome = run_plain(code, shell, options)
    finally:
        arrays.put_back()
    _tell(code, why)
    for name in code.parsed.binds & shell.user_ns.keys():
        for path, value in numbers(shell.user_ns[name], name):
            numbers_taken.note_computed(
                path, value, read, (code.filename, _line(why)), "was computed here as plain Python"
            )
    return outcome


def _was_given_up(source: str) -> bool:
    """Return whether a cell has a statement at which one was given up: another one may have been edited since."""
    return bool(_given_up) and any(text in _given_up for _, _, text in _statements(source))


def _statements(source: str) -> list[tuple[int, int, str]]:
    """Return the statements of a cell: their first and last lines, and their texts."""
    lines, found = source.splitlines(), list[tuple[int, int, str]]()
    for statement in ast.parse(source).body:
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        found.append((first, last, "\n".join(lines[first - 1 : last])))
    return found


def _reached(code: Code, error: TensorError) -> int | None:
    """Return the line that a cell had reached when capturing failed, or None if it is not known."""
    trace, line = error.__traceback__, None
    while trace is not None and line is None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == code.filename else None
        trace = trace.tb_next
    return line


def _line(why: TensorError) -> int:
    """Return the line that a warning names."""
    site = getattr(why, "tensor_site", None)
    return (why.line if isinstance(why, LimitError) else getattr(site, "line", 0)) or 1


def _asks_for_values(options: Options) -> bool:
    """Return whether only the cell's values are asked for, at a level whose values equal NumPy's up to rounding."""
    plain = Options(math=options.math, quiet=options.quiet, force=options.force, verbose=options.verbose)
    return options == plain and options.math in {"", "exact", "stable"}


def _tell(code: Code, error: TensorError) -> None:
    label = code.cell.label
    if isinstance(error, LimitError):
        why = f" ({error.why.replace(_UNCAPTURED, '')})" if error.why else ""
        told = f"it has a loop that goes into a graph only one iteration at a time, and that would take long{why}"
        if error.empty:
            told = f"its iterations or calls put nothing into a graph, and run much slower while they are captured{why}"
        after = ", and print after it" if "print()" in why else ""
        advice = f"write {'this' if error.empty else 'the loop'} with array operations{after}"
    else:
        told = f"no graph holds what it does: {error.message}"
        advice = f"{error.hint[:1].lower()}{error.hint[1:].rstrip('.')}" if error.hint else "leave that out"
    warnings.warn_explicit(
        f"{label} was run as ordinary Python: {told}. The results are those of Python, but they have no graph, and gradients in later "
        f"cells take them for constants. If you want a graph, {advice}; if not, leave out %%tensor",
        PlainRunWarning,
        label,
        _line(error),
    )


# what is printed ------------------------------------------------------------------------------------------------------


class _Through:
    """Standard output, which a cell writes to by way of this."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def flush(self) -> None:
        self._out.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


class _Heard(_Through):
    """Standard output that also records the text written to it; beyond a limit it keeps nothing."""

    def __init__(self, out: Any) -> None:
        super().__init__(out)
        self._parts: list[str] = []
        self._room = _HEARD

    @property
    def kept(self) -> str | None:
        return "".join(self._parts) if self._room >= 0 else None

    def write(self, text: str) -> int:
        if self._room >= 0:
            self._parts.append(text)
            self._room -= len(text)
        return self._out.write(text)


class _After(_Through):
    """Standard output that swallows the text that a first run has written, until the second run differs."""

    def __init__(self, out: Any, before: str) -> None:
        super().__init__(out)
        self._before = before

    def write(self, text: str) -> int:
        if self._before:
            same = text[: len(self._before)]
            known = self._before.startswith(same)
            self._before = self._before[len(same) :] if known else ""
            self._out.write(text[len(same) :] if known else text)
            return len(text)
        return self._out.write(text)
