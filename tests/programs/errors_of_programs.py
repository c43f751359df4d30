"""What an error of a random program means: a refusal, NumPy's own error, that of code which Python does not run, or a difference."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from tensormagic.ir import site
from tensormagic.ir.errors import BoundsError, CaptureError, DTypeError, ShapeError, TensorError
from tensormagic.ops.leaf import constant
from tests.capture.harness import KINDS


class DifferenceError(AssertionError):
    """A program that does not do what NumPy does.

    Parameters
    ----------
    message
        What is different.
    both
        Whether both raise, errors of two kinds.
    """

    def __init__(self, message: str, *, both: bool = False) -> None:
        super().__init__(message)
        self.both = both


def quiet(run: Any) -> Any:
    """Run without warnings of NumPy."""
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        warnings.simplefilter("error", np.exceptions.ComplexWarning)  # which is a refusal here
        return run()


def alike(ours: BaseException, numpys: BaseException) -> bool:
    """Whether one error is of the kind of another; a statement may have several, and each side sees another one first."""
    first = (IndexError, NameError)
    several = isinstance(ours, first) or isinstance(numpys, first) or "read-only" in str(numpys)
    line = line_of(ours)
    several |= line is not None and line == line_of(numpys)
    return several or any(isinstance(ours, k) and isinstance(numpys, k) for k in KINDS)


def is_refusal(error: BaseException) -> bool:
    """Whether an error says that something cannot be captured."""
    return isinstance(error, CaptureError) or (isinstance(error, TensorError) and "Take its .real first" in str(error))


def told(error: BaseException) -> str:
    """The message of a refusal, without what is particular to one program."""
    text = str(error).partition("\n")[0]
    text = re.sub(r"\b(v\d+|[xyzwekusnm]|t\d+)\b", "·", text)
    return re.sub(r"In\[\d+\]|<[^>]*>|line \d+(:\d+)?|\[[^\]]*\]|\d+", "…", text)[:90]


def places(error: BaseException) -> bool:
    """Whether an error names a line of the program."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(("<random", "<test cell")):
            return True
        trace = trace.tb_next
    return (
        hasattr(error, "tensor_site")
        or hasattr(error, "tensor_sites")
        or bool(site.of(getattr(error, "tensor_node", constant(0))))
        or str(error).startswith(("f stores", "f depends", "sizes do not fit"))
        or "line " in str(error)
        or "In[" in str(error)
    )


def line_of(error: BaseException) -> int | None:
    """The line of the program at which an error was raised."""
    trace, found = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(("<random program", "<test cell", "<plain")):
            found = trace.tb_lineno
        trace = trace.tb_next
    sites = getattr(error, "tensor_sites", ())  # of one that the graph raises
    return found if found is not None or not sites else sites[0].line


def _on_a_way(error: BaseException) -> bool:
    """Whether something does not fit in a branch or an iteration that is traced, and that Python does not run, or not with these shapes."""
    trace, found = error.__traceback__, False
    while trace is not None:
        found |= trace.tb_frame.f_code.co_name in {"staged_branch", "staged_value", "staged_each", "staged_repeat"}
        trace = trace.tb_next
    return found and isinstance(error, ShapeError | BoundsError | NameError | ValueError)


def lines_run(run: Any) -> set[int]:
    """The lines of a program that Python runs."""
    found: set[int] = set()

    def note(frame: Any, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(("<random program", "<plain")):
            return None
        found.add(frame.f_lineno)
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        quiet(run)
    finally:
        sys.settrace(before)
    return found


def judged(ours: BaseException, numpys: BaseException | None, seen: list[str], again: Any, *, promoted: bool) -> str:
    """What an error means: a refusal that names a line, NumPy's own error, or that of code which Python does not run.

    A number that control flow has ``promoted`` may not fit where the one that it is would have.
    """
    shape = isinstance(ours, ShapeError) or "could not broadcast" in str(ours)
    if numpys is not None and shape:  # shapes are looked at before there are values
        return "error"
    if is_refusal(ours):
        if not places(ours):
            raise DifferenceError(f"refused without a line: {ours!r}") from ours
        seen.append(told(ours))
        return "refused"
    if numpys is not None and (alike(ours, numpys) or isinstance(numpys, Warning)):
        return "error"
    if numpys is not None and is_unread(numpys) and not isinstance(ours, TensorError):
        return "error"  # the one that NumPy meets first is of what nobody reads
    if promoted and isinstance(ours, TypeError):
        return "promoted"
    line, numpys_line = line_of(ours), None if numpys is None else line_of(numpys)
    own = isinstance(ours, DTypeError) or not isinstance(ours, TensorError)
    if line is not None and numpys_line not in {None, line} and own:
        return "error"  # Python's own, or one of dtypes, of another line than the one that NumPy did not get past
    if line is not None and (_on_a_way(ours) or line not in lines_run(lambda: _swallow(again))):
        seen.append("(an error in code that is traced, and not run in NumPy)")
        return "untaken"
    raise DifferenceError(f"{type(ours).__name__}: {ours} for {numpys!r}", both=numpys is not None) from ours


_UNREAD = (
    "could not be broadcast",
    "could not broadcast",
    "need at least one array",
    "mismatch in its core dimension",
    "not aligned",
    "non-broadcastable output operand",
    "cannot convert float",
    "out of bounds for",
    "cannot reshape",
    "zero-size",
    "inhomogeneous",
    "an empty sequence",
    "negative integer powers",
    "must have the same shape",
    "must match exactly",
    "division by zero",
    "modulo",
    "input values to the",
    "must be in the range",
    "must be of equal length",
    "must be the same size",
)


def is_unread(numpys: BaseException) -> bool:
    """Whether an error may be one of what nobody reads: of an index, a name, or a value that is not computed."""
    return isinstance(numpys, IndexError | NameError) or any(text in str(numpys) for text in _UNREAD)


def missed(numpys: BaseException, outputs: Iterable[Any] = ()) -> str:
    """What it means that NumPy alone raises: a loss of imaginary parts is only a warning there, and lazy values raise when read.

    Python's numbers are lazy arrays here, and have the attributes of these.
    """
    if isinstance(numpys, AttributeError | TypeError) and re.match(r"'(bool|int|float|complex)' object", str(numpys)):
        return "promoted"
    late = isinstance(numpys, NameError) and any(isinstance(v, NameError) for v in outputs)
    if late or isinstance(numpys, Warning):
        return "error"
    if is_unread(numpys):
        return "unread"
    raise DifferenceError(f"NumPy raises {numpys!r}")


def _swallow(run: Any) -> None:
    with contextlib.suppress(Exception):  # what it raises is known
        run()
