"""Functions without source text: they may catch errors where capture cannot see it."""

from __future__ import annotations

import contextlib
import dis
from collections.abc import Callable
from functools import lru_cache, wraps
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.python.bytecode import enters, reads
from tensormagic.capture.staging.messages.raising import Attempt
from tensormagic.capture.staging.syntax.source import staged_code
from tensormagic.capture.staging.trials.trial import fail_trial, trial
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.modules import is_users

_QUIET = {
    "errstate",
    "catch_warnings",
    contextlib.nullcontext.__name__,
    "redirect_stdout",
}  # managers that catch no error
_MATCHES = {"CHECK_EXC_MATCH", "CHECK_EG_MATCH"}


def as_caught(function: FunctionType) -> Callable[..., Any]:
    """Return ``function``, called in a cell as if in a ``try``, if its source is not available and it may catch errors.

    Raises
    ------
    CaptureError
        If there are no values.
    """
    capture = context.current()
    if capture is None or staged_code(function.__code__) is not None or not _may_catch(function):
        return function
    if capture.abstract or trial() is not None:
        place = f"{function.__name__} ({function.__code__.co_filename}:{function.__code__.co_firstlineno})"
        said = f"{place} has `try`, or a `with` that may catch errors, and its source is not available: such a function"
        hint = "Define it in a file or in a cell; or check with `if` instead of `try`."
        raise CaptureError(f"{said} is not captured", hint) if trial() is None else fail_trial(said, hint)

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with Attempt():
            return function(*args, **options)

    return run


def _may_catch(function: FunctionType) -> bool:
    """Return whether a function is the user's and may catch errors."""
    name = function.__code__.co_filename
    if name.startswith("<"):  # a library may have made it, too
        file = function.__globals__.get("__file__")
        users = not name.startswith("<frozen") and (file is None or is_users(str(file)))
    else:
        users = is_users(name)
    return users and _catches(function.__code__)


@lru_cache(maxsize=4096)
def _catches(code: CodeType) -> bool:
    """Return whether code has an exception handler, a ``finally`` that jumps, or a ``with`` with an unknown manager."""
    steps = list(dis.get_instructions(code))
    gone_on = [s for s, then in pairwise(steps) if s.opname == "POP_EXCEPT" and then.opname != "RERAISE"]
    withs = list(filter(enters, steps))
    left = len(gone_on) > sum(s.opname == "WITH_EXCEPT_START" for s in steps)  # each `with` has one
    if left or any(s.opname in _MATCHES for s in steps) or any(_QUIET.isdisjoint(_names_at(s, steps)) for s in withs):
        return True
    return any(isinstance(c, CodeType) and _catches(c) for c in code.co_consts)


def _names_at(one: dis.Instruction, steps: list[dis.Instruction]) -> set[str]:
    """Return the names in the expression that an instruction belongs to."""
    if one.positions is None:
        return set()
    around = (one.positions.lineno, one.positions.col_offset), (one.positions.end_lineno, one.positions.end_col_offset)
    if any(None in p for p in around):
        return set()
    inside = [
        s
        for s in steps
        if s.positions is not None and s.positions.lineno is not None and s.positions.col_offset is not None
        if around[0] <= (s.positions.lineno, s.positions.col_offset) < around[1]
    ]
    return {name for step in inside for name in reads(step)}
