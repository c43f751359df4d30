"""Tracebacks of errors that the user's own code has met while it was captured: its frames, and not those of capture."""

from __future__ import annotations

from types import TracebackType

from tensormagic.capture.staging.source import is_part_of, is_users

_SHOWN = 20  # frames at either end of a deep recursion


def users_alone(error: BaseException) -> BaseException:
    """The error, with the frames of the user's code alone where that has met it; an error of other code keeps all of them."""
    every = []
    trace = error.__traceback__
    while trace is not None:
        every.append(trace)
        trace = trace.tb_next
    found: list[TracebackType] = []
    for one in every:
        code = one.tb_frame.f_code
        if is_users(code.co_filename):
            if found and is_part_of(code, found[-1].tb_frame.f_code):
                found.pop()  # its line is within the function that called it
            found.append(one)
    anywhere = isinstance(error, RecursionError | KeyboardInterrupt)
    if not found or (found[-1] is not every[-1] and not anywhere):
        return error
    if len(found) > 2 * _SHOWN:
        found[_SHOWN:-_SHOWN] = []
    made: TracebackType | None = None
    for one in reversed(found):
        made = TracebackType(made, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return error.with_traceback(made)
