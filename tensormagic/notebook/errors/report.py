"""Errors of captured code as the user sees them: the place, the line with carets, the variables' types, and what to do.

It reads tracebacks and the text of cells; it does not know how cells are run.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

import numpy as np

from tensormagic.capture.errors.traces import chained, entries, without_ours
from tensormagic.capture.python import usercode
from tensormagic.capture.values.summary import type_text
from tensormagic.capture.values.value import Tensor
from tensormagic.ir import site
from tensormagic.ir.errors import TensorError
from tensormagic.ir.modules import is_users, module_of
from tensormagic.ir.site import Site
from tensormagic.notebook.errors import hints
from tensormagic.notebook.errors import shape_pictures as misfits
from tensormagic.notebook.errors.failed_line import Line

WIDTH = 110  # of a source line that is shown
_MESSAGE = 3  # lines of a message
_NAMES = 6
_TEXT = 20  # letters of a text that is shown


@dataclass(frozen=True)
class Place:
    """A place in the user's code: its label, the line's text, a span of it, and the variables visible there.

    ``column`` and ``end_column`` count characters of ``text``; without a span both are 0.
    """

    where: str
    line: int
    text: str
    column: int = 0
    end_column: int = 0
    space: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.where}, line {self.line}"

    def drawn(self) -> list[str]:
        """Return the place, its line, and carets under the span."""
        bare = self.text.strip()
        if not bare:
            return [str(self)]
        lead = len(self.text) - len(self.text.lstrip())
        start, end = max(self.column - lead, 0), min(self.end_column - lead, len(bare))
        if len(bare) > WIDTH:
            shift = max(0, min(start - WIDTH // 4, len(bare) - WIDTH))
            bare, start, end = bare[shift : shift + WIDTH], start - shift, min(end - shift, WIDTH)
        if start >= len(bare) and self.end_column:  # where something is missing at the end of the line
            start, end = len(bare), len(bare) + 1
        rows = [str(self), f"    {bare}"]
        return [*rows, " " * (4 + start) + "^" * (end - start)] if end > start else rows


# places ---------------------------------------------------------------------------------------------------------------


def places_of(trace: TracebackType | None, shell: Any) -> list[Place]:
    """Return the places in the user's code that ``trace`` goes through, outermost first."""
    found: list[Place] = []
    for entry in entries(trace, lambda code: _is_users(code, shell)):
        frame = entry.tb_frame
        place = _place(usercode.span_at(frame.f_code, entry.tb_lasti, entry.tb_lineno), frame.f_code.co_filename, shell)
        if not place.text.lstrip().startswith(("get_ipython().run_cell_magic(", "get_ipython().run_line_magic(")):
            found.append(_with_names(place, {**frame.f_globals, **frame.f_locals}))
    return found


def _is_users(code: CodeType, shell: Any) -> bool:
    name = code.co_filename
    if _label(name, shell):
        return True
    path = Path(name)  # what C code names is no file here
    return (path.is_absolute() or path.is_file()) and not name.startswith("<") and is_users(name)


def _label(filename: str, shell: Any) -> str:
    cell = usercode.cells.get(filename)
    if cell is not None:
        return f"Cell {cell.label}" if cell.label.startswith("In[") else cell.label
    named = shell.compile.format_code_name(filename) if shell is not None else None
    return " ".join(named) if named else ""


def _place(span: Site, filename: str, shell: Any) -> Place:
    text = _line_of(filename, span.line)
    column, end = _characters(text, span.column), _characters(text, span.end_column)
    if span.end_line > span.line:
        end = len(text.rstrip())
    return Place(_label(filename, shell) or f"File {filename}", span.line, text, column, end)


def of_site(span: Site) -> Place:
    """Return the place of a site, with its text if the cell is still known."""
    for filename, cell in reversed(usercode.cells.items()):
        if (cell.label, cell.run) == (span.cell, span.run):
            return _place(span, filename, None)
    return Place(f"Cell {span.cell}" if span.cell.startswith("In[") else f"File {span.cell}", span.line, "")


def _line_of(filename: str, line: int) -> str:
    cell = usercode.cells.get(filename)
    if cell is None:
        return linecache.getline(filename, line).rstrip("\n")
    lines = cell.source.splitlines()
    return lines[line - 1] if 0 < line <= len(lines) else ""


def _characters(text: str, offset: int) -> int:
    """Return the number of characters before a byte offset, as Python counts columns in bytes of UTF-8."""
    return len(text.encode()[:offset].decode(errors="ignore"))


# variables ------------------------------------------------------------------------------------------------------------


def _with_names(place: Place, space: Mapping[str, Any]) -> Place:
    return replace(place, space=space)


def _read_in(place: Place) -> list[str]:
    """Return the names read in the span of a place, or in its line where it has none, in order."""
    text = place.text.strip()
    store = _names_of_store(text)
    if store:
        return store
    for piece in (place.text[place.column : place.end_column], text, text.partition("=")[2], f"{text} pass"):
        try:
            tree = ast.parse(piece.strip())
        except SyntaxError:
            continue
        nodes = [n for n in _without_own(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        nodes.sort(key=lambda n: n.col_offset)
        names = list(dict.fromkeys(n.id for n in nodes))
        if names:
            return names
    return []


def _without_own(tree: ast.AST, own: frozenset[str] = frozenset()) -> Iterator[ast.AST]:
    """Yield the nodes of an expression, without names that it binds itself in a ``lambda`` or a comprehension."""
    if isinstance(tree, ast.Lambda):
        own |= {a.arg for a in ast.walk(tree.args) if isinstance(a, ast.arg)}
    elif isinstance(tree, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        own |= {n.id for g in tree.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    if not (isinstance(tree, ast.Name) and tree.id in own):
        yield tree
    for child in ast.iter_child_nodes(tree):
        yield from _without_own(child, own)


def _names_of_store(text: str) -> list[str]:
    """Return the names in a line that stores, or gives several names: its right side and its left side belong together."""
    try:
        (part,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return []
    into = part.targets[0] if isinstance(part, ast.Assign) else part.target if isinstance(part, ast.AugAssign) else None
    if into is None or (isinstance(part, ast.Assign) and isinstance(into, ast.Name | ast.Attribute)):
        return []
    read = isinstance(part, ast.AugAssign) or isinstance(into, ast.Subscript)
    sides = [*([into] if read else []), part.value]  # type: ignore[union-attr]
    return list(dict.fromkeys(n.id for side in sides for n in _without_own(side) if isinstance(n, ast.Name)))


def described(value: Any) -> str:
    """Return the type of a variable in a few words; empty for functions and other values that are not data."""
    if isinstance(value, Tensor):
        return type_text(value.type)
    if isinstance(value, np.ndarray):
        dtype = "text" if value.dtype.kind in "UST" else value.dtype
        return f"{dtype}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, np.generic):
        return f"{value.dtype}"
    if isinstance(value, bool | int | float | complex):
        return f"{type(value).__name__} {value!r}"
    if value is None:
        return "None"
    if isinstance(value, str) and len(value) <= _TEXT:
        return f"text {value!r}"
    if isinstance(value, ModuleType | type) or callable(value) or module_of(type(value)).startswith("tensormagic"):
        return ""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{type(value).__name__}[{', '.join(map(str, shape))}]"
    return (
        f"{type(value).__name__} of {len(value)}"
        if isinstance(value, list | tuple | dict | set)
        else type(value).__name__
    )


def _types(place: Place, message: str = "") -> str:
    """Return the types of the variables read at a place and named by the message; of the whole line if none of these is known."""
    about = re.match(r"([^\W\d]\w*) is ", message)
    for names in (_read_in(place), _read_in(replace(place, column=0, end_column=0))):
        wanted = [*([about[1]] if about else []), *names]
        told = [
            f"{n}: {text}" for n in dict.fromkeys(wanted) if n in place.space and (text := described(place.space[n]))
        ]
        if told:
            break
    return ", ".join(told[:_NAMES]) + (", …" if len(told) > _NAMES else "")


# the whole ------------------------------------------------------------------------------------------------------------


def render(
    error: BaseException,
    places: list[Place],
    *,
    demanded: Place | None = None,
    near: Mapping[str, Any] | None = None,
    stopped: str = "no variable has changed",
) -> list[str]:
    """Return an error in at most a dozen lines.

    Parameters
    ----------
    error
        What was raised.
    places
        The user's places that it came through, outermost first: the first and the last are shown.
    demanded
        Where the value was asked for, for an error of code that was captured elsewhere.
    near
        Names that a misspelt one may mean.
    stopped
        What an interrupt has left behind.
    """
    shown = list(dict.fromkeys([*places[:1], *places[-1:]]))
    rows = [row for place in shown for row in place.drawn()]
    interrupted = isinstance(error, KeyboardInterrupt)
    misfit = _misfit(error, places[-1]) if places else None
    line = _line(places[-1]) if places else Line()
    hint = f"The computation was stopped; {stopped}." if interrupted else hints.hint(error, line, near or {}, misfit)
    if misfit is not None:
        with suppress(AttributeError):  # a class without a dictionary
            error.tensor_misfit = replace(misfit, hint=hint)  # type: ignore[attr-defined]
    message = _message(error)
    rows += _shortened(f"{type(error).__name__}: {message}" if message else type(error).__name__)
    types = _types(places[-1], message) if places else ""
    rows += [f"  {types}"] if types else []
    rows += misfits.rows(misfit) if misfit is not None else []
    rows += [f"The value was asked for in {demanded}: {demanded.text.strip()[:WIDTH]}"] if demanded is not None else []
    return [*rows, f"Hint: {hint}"] if hint else rows


def _line(place: Place) -> Line:
    part = place.text[place.column : place.end_column]
    return Line(part, place.text, tuple(_read_in(place)), place.space)


def _misfit(error: BaseException, place: Place) -> misfits.Misfit | None:
    """Return the shapes that do not fit, where the error is about that."""
    return misfits.found_in(error, (place.text[place.column : place.end_column], place.text), place.space)


def picture_of(error: BaseException) -> dict[str, str]:
    """Return the picture shown with a rendered error in every form, or {} for most errors."""
    found = getattr(error, "tensor_misfit", None)
    if found is None:
        return {}
    return misfits.forms(found)


def _message(error: BaseException) -> str:
    if isinstance(error, TensorError):
        return error.message
    if isinstance(error, SyntaxError):
        return error.msg or ""
    return str(error).replace("'Tensor' object", "'numpy.ndarray' object")


def _shortened(text: str) -> list[str]:
    lines = [line[:400] for line in text.splitlines()]
    return [*lines[:_MESSAGE], "…"] if len(lines) > _MESSAGE else lines


def of_syntax(error: SyntaxError, filename: str, shell: Any) -> Place:
    """Return the place of an error of syntax."""
    line = error.lineno or 1
    text = _line_of(filename, line) or (error.text or "").rstrip("\n")
    start = max((error.offset or 1) - 1, 0)
    end = (error.end_offset or 0) - 1 if error.end_lineno in {None, line} else len(text)
    return Place(_label(filename, shell) or f"File {filename}", line, text, start, max(end, start + 1))


def dress(error: BaseException, drawn: Callable[[], list[str]]) -> None:
    """Have IPython show ``error`` as the lines that ``drawn`` returns."""
    try:
        error._render_traceback_ = drawn  # type: ignore[attr-defined]
    except AttributeError:  # a class without a dictionary: shown as Python shows it
        return


def whole(error: BaseException, shell: Any) -> list[str]:
    """Return the whole traceback, as IPython shows it."""
    drawer = shell.InteractiveTB
    lines: list[str] = type(drawer).structured_traceback(drawer, type(error), error, error.__traceback__)
    return lines


def place_of(trace: TracebackType | None, shell: Any) -> Line:
    """Return the last line of the user's code that an error came through, with its variables."""
    places = places_of(trace, shell)
    return _line(places[-1]) if places else Line()


def lazy_in(trace: TracebackType | None, shell: Any) -> dict[str, Tensor]:
    """Return the lazy values that the last line of the user's code reads, by name."""
    places = places_of(trace, shell)
    read = _read_in(places[-1]) if places else []
    return {name: value for name in read if isinstance(value := places[-1].space.get(name), Tensor)}


@contextmanager
def bared(error: BaseException) -> Generator[None]:
    """Remove the frames of this package from tracebacks of an error and its causes within the context."""
    traces = [(one, one.__traceback__) for one in chained(error)]
    try:
        for one, trace in traces:
            one.__traceback__ = without_ours(trace) or trace
        yield
    finally:
        for one, trace in traces:
            one.__traceback__ = trace


def at_node(error: BaseException) -> Place | None:
    """Return the place in the user's code that a computation's error comes from, or None if the failed node is not known."""
    node = getattr(error, "tensor_node", None)
    every: tuple[Site, ...] = getattr(error, "tensor_sites", ()) or (site.of(node) if node is not None else ())
    spans = [s for s in every if not s.role.startswith("rewritten")] or list(every)
    return of_site(max(spans, key=lambda s: (s.run, s))) if spans else None


def of_cell(error: BaseException, shell: Any) -> list[str]:
    """Return an error raised while a captured cell was read, captured or computed."""
    if isinstance(error, SyntaxError) and error.filename:
        return render(error, [of_syntax(error, error.filename, shell)])
    asked = places_of(error.__traceback__, shell)
    origin = at_node(error)
    space = shell.user_ns
    if origin is not None:
        return render(error, [_with_names(origin, space)], near=space)
    span = getattr(error, "tensor_site", None)
    if not asked and isinstance(span, Site):  # an input that is refused before any line has run
        asked = [replace(of_site(span), space=space)]
    own = asked[0].space if asked else {}
    return render(error, asked, near={**space, **own})


def shown_anywhere(error: BaseException, shell: Any) -> list[str]:
    """Return an error of ours that reached the user outside a captured cell."""
    try:
        return of_demand(error, shell)
    except Exception:  # noqa: BLE001 (an error must be shown, whatever its parts are)
        return [f"{type(error).__name__}: {error}"]


def of_demand(error: BaseException, shell: Any) -> list[str]:
    """Return an error raised when a value was computed: the line that was captured, and the line that asked."""
    asked = places_of(error.__traceback__, shell)
    origin = at_node(error)
    space = shell.user_ns
    stopped = "the value is computed when it is asked for again"
    if origin is None or origin in asked[-1:]:
        return render(error, asked, near=space, stopped=stopped)
    demanded = asked[-1] if asked else None
    return render(error, [_with_names(origin, space)], demanded=demanded, near=space, stopped=stopped)
