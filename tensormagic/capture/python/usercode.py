"""Finds the user's code: its cells, the frame that is running, and the span of the current expression."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Any

from tensormagic.ir.modules import is_users, may_be_users
from tensormagic.ir.site import Site


@dataclass(frozen=True)
class Cell:
    """Represents a piece of user code: its name, the number of its run, its text."""

    label: str
    run: int
    source: str


cells: dict[str, Cell] = {}  # by the file name that the code was compiled under
namers: list[Callable[[str], Cell | None]] = []  # functions that may know the cell of another file name
_OWN = ("tensormagic.", "numpy.", "contextlib", "functools")
_positions: dict[CodeType, list[tuple[int | None, int | None, int | None, int | None]]] = {}
_spans: dict[
    tuple[int, int], tuple[CodeType, Cell | None, Site]
] = {}  # by the identity of code, since hashing code takes long
_MOST = 4096


@functools.cache
def _own(module: str) -> bool:
    return module in {"numpy", "tensormagic"} or module.startswith(_OWN)


def is_ours(frame: FrameType) -> bool:
    """Return whether a frame is of the package's code."""
    return str(frame.f_globals.get("__name__")).startswith("tensormagic.")


def user_frame() -> FrameType | None:
    """Return the innermost frame that is the user's; a library's, if no user code has called it."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None and _own(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    found = frame
    while found is not None and not may_be_users(found.f_code.co_filename):
        found = found.f_back
    return frame if found is None else found


def line_of(filename: str) -> int | None:
    """Return the current line of the outermost frame that runs code of a file; None if there is none."""
    frame, line = inspect.currentframe(), None
    while frame is not None:
        line = frame.f_lineno if frame.f_code.co_filename == filename else line
        frame = frame.f_back
    return line


def asking_library() -> str:
    """Return the library function that the user's code has called, if it is what needs something; else an empty text."""
    frame, name = inspect.currentframe(), ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not _own(module):
            if may_be_users(frame.f_code.co_filename):
                return name
            name = f"{module.partition('.')[0]}'s {frame.f_code.co_name}"
        frame = frame.f_back
    return ""


def cell_asks(method: FrameType | None) -> bool:
    """Return whether a running cell of the notebook has called a method of ours, itself or by showing what it ends in.

    What debuggers, tracebacks and views of this package call on their own has not been asked for, though a cell is running.
    """
    frame, shows = method.f_back if method is not None else None, False
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        shows = shows or module == "IPython.core.formatters"
        if module.startswith(_ONLOOKERS) or (is_ours(frame) and not shows):
            return False
        if frame.f_locals is frame.f_globals and cell_of(frame.f_code.co_filename) is not None:
            return True  # the cell itself, which is running, and not a function of one
        frame = frame.f_back
    return False


_ONLOOKERS = (
    "pdb",
    "bdb",
    "pydev",
    "_pydev",
    "debugpy",
    "traceback",
    "stack_data",
    "IPython.core.ultratb",
    "IPython.core.oinspect",
)


def here() -> str:
    """Return the user's line that is being run, for messages."""
    frame = user_frame()
    return "the code" if frame is None else str(span(frame))


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the user's line, as NumPy does there."""
    frame = user_frame()
    if frame is not None:
        space = frame.f_globals
        registry = space.setdefault("__warningregistry__", {})
        warnings.warn_explicit(
            message, category, frame.f_code.co_filename, frame.f_lineno, space.get("__name__", "<string>"), registry
        )


def span(frame: FrameType) -> Site:
    """Return the span of the expression that ``frame`` is at."""
    return span_at(frame.f_code, frame.f_lasti, frame.f_lineno)


def span_at(code: CodeType, instruction: int, line: int) -> Site:
    """Return the span of one instruction of ``code``."""
    cell = cell_of(code.co_filename)
    place = id(code), instruction
    known = _spans.get(place)
    if known is not None and known[0] is code and known[1] is cell:  # a later run of the cell is another one
        return known[2]
    if len(_spans) > _MOST:
        _spans.clear()
        _positions.clear()
    positions = _positions.get(code)
    if positions is None:
        positions = _positions[code] = list(code.co_positions())
    first, last, column, end_column = positions[instruction // 2]
    label, run = (cell.label, cell.run) if cell else (code.co_filename.rpartition("/")[2], 0)
    found = Site(label, run, first or line, column or 0, last or line, end_column or 0)
    _spans[place] = code, cell, found
    return found


def newest_run() -> int:
    """Return the run of the cell that began last; 0 where there is none."""
    return max((cell.run for cell in cells.values()), default=0)


def cell_of(filename: str) -> Cell | None:
    """Return the cell whose code is compiled under a file's name."""
    found = cells.get(filename)
    return found if found is not None else next((c for name in namers if (c := name(filename)) is not None), None)


def user_names(frame: FrameType | None) -> dict[str, Any]:
    """Return the variables that are visible in a frame."""
    return {} if frame is None else {**frame.f_globals, **frame.f_locals}


def is_stageable(code: CodeType) -> bool:
    """Return whether code is the user's, or Python's own dispatch to user functions by class."""
    return code in _DISPATCHING or is_users(code.co_filename)


class _Dispatching:
    @functools.singledispatchmethod
    def method(self, value: object) -> None: ...


def _code_of(function: Any) -> CodeType:
    return function.__code__ if isinstance(function, FunctionType) else type(function).__call__.__code__


_DISPATCHING = {_code_of(functools.singledispatch(_code_of)), _code_of(_Dispatching().method)}
