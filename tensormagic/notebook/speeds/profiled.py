"""Run plain Python once and record the time of each line, in the cell and in functions defined in the notebook."""

from __future__ import annotations

import linecache
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any

from tensormagic.capture.python.usercode import Cell, cell_of

_MOST_SECONDS = 5.0  # of a run that is followed line by line; what comes later is not


@dataclass(frozen=True)
class Helper:
    """A function of the notebook that the cell has called: its name, its cell, and its lines with their text and seconds."""

    name: str
    cell: str
    lines: dict[int, tuple[str, float]]


@dataclass(frozen=True)
class Profile:
    """Where the time of a run went.

    Parameters
    ----------
    lines
        Seconds of each line of the cell; those of the functions below are not counted in the lines that call them.
    helpers
        The notebook's functions that were called.
    whole
        Whether the run was followed to its end.
    """

    lines: dict[int, float]
    helpers: tuple[Helper, ...] = ()
    whole: bool = True

    @property
    def seconds(self) -> float:
        """Return the time of all lines together, those of helpers included."""
        return sum(self.lines.values()) + sum(s for h in self.helpers for _, s in h.lines.values())

    def shared_out(self, seconds: float) -> Profile:
        """Return the same shares of another time: that of the runs that were timed, which nobody followed line by line."""
        by = seconds / self.seconds if self.seconds else 1.0
        helpers = [replace(h, lines={k: (text, s * by) for k, (text, s) in h.lines.items()}) for h in self.helpers]
        return Profile({k: s * by for k, s in self.lines.items()}, tuple(helpers), self.whole)


def profiled(filename: str, run: Callable[[], Any]) -> Profile:
    """Run the cell's code once and follow its lines; ``filename`` is what its code is compiled under."""
    watch = _Watch(filename)
    before = sys.gettrace()
    sys.settrace(watch.called)
    try:
        run()
    finally:
        sys.settrace(before)
    return watch.profile()


_Place = tuple["CodeType | None", int]  # a function of another cell, or None for the cell's own text; and a line


@dataclass
class _Watch:
    """A clock that charges time to one line at a time: the innermost running line of the user's code."""

    filename: str
    whole: bool = True
    _found: dict[_Place, float] = field(default_factory=dict[_Place, float])
    _callers: list[_Place | None] = field(default_factory=list["_Place | None"])
    _cells: dict[str, Cell | None] = field(default_factory=dict[str, "Cell | None"])
    _at: _Place | None = None
    _since: float = 0.0
    _begin: float = field(default_factory=time.perf_counter)

    def called(self, frame: FrameType, _event: str, _: Any) -> Any:
        """Follow a call into a function of the user's."""
        filename = frame.f_code.co_filename
        if not self.whole or (filename != self.filename and self._cell(filename) is None):
            return None
        self._charge()
        self._callers.append(self._at)
        self._at = None
        self._since = time.perf_counter()
        return self._inside

    def _inside(self, frame: FrameType, event: str, _: Any) -> Any:
        if not self.whole:
            return None
        self._charge()
        if event == "line":
            self._at = (self._function(frame.f_code), frame.f_lineno)
        elif event == "return":
            self._at = self._callers.pop()
        if self._since - self._begin > _MOST_SECONDS:
            self.whole = False
            sys.settrace(None)
        self._since = time.perf_counter()  # what following takes is no line's time
        return self._inside

    def _charge(self) -> None:
        now = time.perf_counter()
        if self._at is not None:
            self._found[self._at] = self._found.get(self._at, 0.0) + now - self._since
        self._since = now

    def _function(self, code: CodeType) -> CodeType | None:
        """Return the function that a line is listed under: comprehensions and lambdas belong to their caller."""
        if code.co_filename == self.filename:
            return None
        caller = self._callers[-1] if self._callers else None
        inner = code.co_name.startswith("<") and caller is not None and caller[0] is not None
        return caller[0] if inner and caller is not None else code

    def _cell(self, filename: str) -> Cell | None:
        if filename not in self._cells:
            self._cells[filename] = cell_of(filename)
        return self._cells[filename]

    def profile(self) -> Profile:
        """Return the recorded profile."""
        lines: dict[int, float] = {}
        apart: dict[CodeType, dict[int, tuple[str, float]]] = {}
        for (code, line), seconds in sorted(self._found.items(), key=lambda item: item[0][1]):
            if code is None:
                lines[line] = seconds
            else:
                apart.setdefault(code, {})[line] = (linecache.getline(code.co_filename, line).rstrip(), seconds)
        helpers = [
            Helper(code.co_name, cell.label, rows)
            for code, rows in apart.items()
            if (cell := self._cell(code.co_filename))
        ]
        return Profile(lines, tuple(helpers), self.whole)
