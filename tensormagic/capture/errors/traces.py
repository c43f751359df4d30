"""Tracebacks of errors raised in captured user code: they have its frames, and not those of capture."""

from __future__ import annotations

import dis
import inspect
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, TracebackType

from tensormagic.capture.staging.syntax.source import is_part_of
from tensormagic.ir.modules import is_users

_PACKAGE = str(Path(__file__).parents[2]) + os.sep
_SHOWN = 20  # frames at either end of a deep recursion that are shown


def entries(trace: TracebackType | None, kept: Callable[[CodeType], bool]) -> list[TracebackType]:
    """Return the entries of a traceback whose code is kept, outermost first.

    Of a function and its block, only the block, which has the line.
    """
    found: list[TracebackType] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if kept(code):
            if found and is_part_of(code, found[-1].tb_frame.f_code):
                found.pop()
            found.append(trace)
        trace = trace.tb_next
    return found


def traced(found: Sequence[TracebackType]) -> TracebackType | None:
    """Return a traceback of only these entries; None if there are none."""
    made: TracebackType | None = None
    for one in reversed(found):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return made


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without frames of this package; all of it, where nothing else would be left.

    A block that was made a function of its own stands for the user's function that contains it.
    """
    return traced(entries(trace, lambda code: not code.co_filename.startswith(_PACKAGE)))


def met_in_capture(error: BaseException) -> bool:
    """Return whether an error was raised in user code that this package has called."""
    last, between = error.__traceback__, False
    while last is not None and last.tb_next is not None:
        between = between or last.tb_frame.f_code.co_filename.startswith(_PACKAGE)
        last = last.tb_next
    return between


def chained(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those that Python shows with it."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)


def remove_our_frames(error: BaseException) -> None:
    """Remove the frames of this package from an error that the user's code catches, and from those that it was chained to."""
    for one in chained(error):
        one.__traceback__ = without_ours(one.__traceback__) or one.__traceback__


def drop_from_context(error: BaseException, met: BaseException) -> None:
    """Remove ``met`` from the context of an error: the code was run again because of it, and raised the error independently.

    The errors that the caller was handling before stay.
    """
    running, frame = set[FrameType](), inspect.currentframe()
    while frame is not None:
        running.add(frame)
        frame = frame.f_back
    following: BaseException | None = error
    while following is not None:
        if following.__context__ is met:
            following.__context__ = next(filter(partial(_is_handled, running), _before(met)), None)
            return
        following = following.__context__


def _before(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors that were raised before one, in its context."""
    seen = {id(error)}
    following = error.__context__
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__context__


def _is_handled(running: Collection[FrameType], error: BaseException) -> bool:
    """Return whether running code outside of this package handles an error."""
    first = error.__traceback__
    return first is not None and first.tb_frame in running and not _is_ours(first)


def users_alone(error: BaseException) -> BaseException:
    """Return the error, with only the frames of user code if that has raised it; an error of other code keeps all frames."""
    found = entries(error.__traceback__, lambda code: is_users(code.co_filename))
    anywhere = isinstance(error, RecursionError | KeyboardInterrupt)
    if not found or (found[-1].tb_next is not None and not anywhere):
        return error
    if len(found) > 2 * _SHOWN:
        found[_SHOWN:-_SHOWN] = []
    return error.with_traceback(traced(found))


def raised_by_user(error: BaseException) -> bool:
    """Return whether a ``raise`` or an ``assert`` of the user's code has raised an error."""
    last = _innermost(error)
    return last is not None and is_users(last.tb_frame.f_code.co_filename) and _is_raise(last)


def raised_on_purpose(error: BaseException) -> bool:
    """Return whether a ``raise`` of the user's code, or of this package, has raised an error."""
    last = _innermost(error)
    return raised_by_user(error) or (last is not None and _is_ours(last) and not met_by_ours(error))


def met_by_ours(error: BaseException) -> bool:
    """Return whether an error was raised inside this package's code, but not by a ``raise`` of it."""
    last = _innermost(error)
    if last is None or not _is_ours(last):
        return False
    return isinstance(error, AssertionError) or not _is_raise(last)


def _innermost(error: BaseException) -> TracebackType | None:
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last


def _is_ours(entry: TracebackType) -> bool:
    return entry.tb_frame.f_code.co_filename.startswith(_PACKAGE)


def _is_raise(entry: TracebackType) -> bool:
    return dis.opname[entry.tb_frame.f_code.co_code[entry.tb_lasti]] in {"RAISE_VARARGS", "RERAISE"}
