"""Refusals of code that cannot be captured, at the user's line and with advice."""

from __future__ import annotations

import re
from collections.abc import Callable
from sys import _getframe as frame_at  # pyright: ignore[reportPrivateUsage]
from typing import Any, NoReturn

import numpy as np

from tensormagic.capture import context
from tensormagic.capture.python import usercode
from tensormagic.capture.python.bytecode import STORES
from tensormagic.ir.errors import CaptureError, ForeignStoreError, ValueNeededError
from tensormagic.ir.modules import package_of
from tensormagic.ir.node import Node
from tensormagic.ir.size import is_at_least
from tensormagic.ir.type import Type, python_kind

_OF_FORMAT = re.compile(r"%\w .* required, not Tensor|%c requires .*, not Tensor")
_OURS = re.compile(  # in errors of Python and of libraries
    r"tensormagic\.|\b(Tensor|Labelled|Outgrown|GrownList|Generated|Objects|Flat|Perhaps\w*|OneOf|LazyText)\b"
)


def is_of_format(error: Exception) -> bool:
    """Return whether it is the error of ``"%d" % value``, which replaces the refusal."""
    return isinstance(error, TypeError) and _OF_FORMAT.fullmatch(str(error)) is not None


def names_ours(error: Exception) -> bool:
    """Return whether an error of Python's or of a library's names a class of this package: it has been given something lazy."""
    return isinstance(error, TypeError | AttributeError) and _OURS.search(str(error)) is not None


def is_met_by_numpy(error: BaseException) -> bool:
    """Return whether NumPy's own code has turned a refusal into this error: it chains it, except for single elements of ``flat``."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    inside = trace is not None and usercode.is_ours(trace.tb_frame)
    return isinstance(error.__cause__, CaptureError) or (not inside and _said_of_item(error))


def _said_of_item(error: BaseException) -> bool:
    return any(isinstance(a, str) and "Error setting single item" in a for a in error.args)


def refuse(what: str, advice: str) -> NoReturn:
    """Raise CaptureError: the user's line cannot be captured."""
    raise CaptureError(f"{what} is not captured", advice)


def refuse_python(what: str, advice: str) -> NoReturn:
    """Raise ValueNeededError: only values are missing, so that Python could run it."""
    raise ValueNeededError(f"{what} is not captured", advice)


def refuse_ambiguous_integer(sizes: Any) -> None:
    """Raise for an object that is both an integer and a sequence: some functions of NumPy's read it as one, and some as the other."""
    cls = type(sizes)
    if isinstance(sizes, int | tuple | list | np.generic) and cls.__module__ in {"builtins", "numpy"}:
        return
    both = hasattr(cls, "__index__") and package_of(cls) != "tensormagic"
    if both and (hasattr(cls, "__getitem__") or hasattr(cls, "__iter__")):
        refuse_python(f"a {cls.__name__}, which is an integer and also holds several,", "Write int(n), or tuple(n).")


def refuse_foreign_store(what: str) -> NoReturn:
    """Raise for a store into an array that is not captured."""
    capture = context.current()
    if capture is not None and capture.abstract:
        raise ForeignStoreError(
            f"{what} stores into an array that is neither an argument of the function nor a variable that it reads",
            "Pass it as an argument, or inside a list or dictionary; or make a new array: w = w - g.",
        )
    raise ForeignStoreError(
        f"{what} stores into an array that has no name in the notebook",
        "Give it a name in an earlier cell, and store into that; or run the cell with --plain.",
    )


def values_are_there() -> bool:
    """Return whether lazy arrays have values in captured code: not in a traced function, nor in a region."""
    capture = context.current()
    return capture is not None and not capture.abstract and not capture.heap.trials and not capture.inputs.standing


AS_TEXT = "it is turned into text here"


def abstract(why: str) -> None:
    """Raise in a trace whose inputs have no values."""
    capture = context.current()
    if capture is not None and capture.abstract:
        raise _wanted(why)


def text_asked_for() -> CaptureError:
    """Return the refusal for a text of a value that is not known yet."""
    return _wanted(AS_TEXT)


def _wanted(why: str) -> CaptureError:
    return ValueNeededError(
        f"a function is being captured, and the value must be known because {why}",
        "Return the value, and print or plot it outside the function.",
    )


def is_called_by(packages: str | tuple[str, ...]) -> bool:
    """Return whether the caller of the calling method is in a module whose name has one of these prefixes."""
    return str(frame_at(2).f_globals.get("__name__")).startswith(packages)


def is_called_by_the_user() -> bool:
    """Return whether the caller of the calling method is the user's code, or code that dispatches user functions by class."""
    return usercode.is_stageable(frame_at(2).f_code)


def refuse_positions() -> NoReturn:
    """Raise if pandas would take a lazy mask for positions: it recognises masks by class, and would return wrong rows silently."""
    raise CaptureError("pandas would take a lazy mask for positions", "Pass the array: table.iloc[mask.numpy()].")


def _is_stored() -> bool:
    """Return whether the user's code is storing by index into an array that is not ours."""
    frame = usercode.user_frame()
    return frame is not None and frame.f_code.co_code[frame.f_lasti] in STORES


def refuse_several_elements(conversion: Callable[[Any], Any], kind: Type) -> None:
    """Raise NumPy's error for converting an array of several elements, or none, to a number; no value is needed."""
    sizes = [2 if not isinstance(s, int) and is_at_least(s, 2) else s for s in kind.shape]
    if sizes and all(isinstance(s, int) for s in sizes):
        conversion(np.broadcast_to(np.zeros((), kind.dtype), [s for s in sizes if isinstance(s, int)]))


def zero_like(kind: Type) -> Any:
    """Return a zero of the class of a captured value, for which Python raises the same errors."""
    if kind.form == "array":
        return np.zeros([1] * kind.ndim, kind.dtype)
    return python_kind(kind)(0) if kind.form == "python" else kind.dtype.type(0)


def needs_value(
    what: str,
    advice: str = "Do that outside the function, where the value can be computed; or run the cell with --plain.",
    node: Node | None = None,
) -> None:
    """Raise if a captured value would become a number where there is none yet: in a function, and in a region.

    In a cell it is computed. ``node`` is what the number is taken of: no derivative goes through that, and the capture
    records it.
    """
    capture = context.current()
    if capture is None:
        return
    if capture.abstract or capture.heap.trials:
        if capture.abstract and _is_stored() and not what.startswith("a key"):
            refuse_foreign_store("the code")
        if library := usercode.asking_library():
            what, advice = (
                f"{what} in {library}",
                f"Call {library.split()[-1]} in a cell, where the value can be computed.",
            )
        refusal, frame = (
            ValueNeededError(f"{what} needs a value, but the code is only being captured", advice),
            usercode.user_frame(),
        )
        capture.refusals.wanted = None if frame is None else (frame.f_code, frame.f_lasti, refusal)
        raise refusal
    if node is not None and node.type.inexact and (frame := usercode.user_frame()) is not None:
        capture.outside.taken.setdefault(node, usercode.span(frame))
        if _is_stored() and not what.startswith("a key"):
            capture.outside.lost.setdefault(node, usercode.span(frame))
