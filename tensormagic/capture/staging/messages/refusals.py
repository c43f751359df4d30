"""Errors during capture that Python would not raise: which of them are refusals, and what these say."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import is_met_by_numpy, is_of_format, names_ours, text_asked_for
from tensormagic.capture.errors.traces import met_by_ours
from tensormagic.capture.staging.messages.value_texts import PLAIN
from tensormagic.ir.errors import CaptureError, ForeignStoreError, GuardError, TensorError, ValueNeededError
from tensormagic.ir.modules import package_of

_KINDS = (IndexError, ValueError, TypeError, ArithmeticError, AttributeError, LookupError, UnboundLocalError)


def rebuildable(error: Exception) -> Exception:
    """Return an error in a form that can be made again from its texts and numbers."""
    error = refusal_if_assumed(error)
    if isinstance(error, TensorError) and error.hint:
        return type(error)(str(error))
    own = package_of(type(error)) not in {"tensormagic", "builtins"}
    if not own and all(type(a) in PLAIN for a in error.args):
        return error
    return next((k for k in _KINDS if isinstance(error, k)), RuntimeError)(str(error))


def refusal_if_assumed(error: Exception) -> Exception:
    """Return an error, as a refusal where other data might not lead to it."""
    capture = context.current()
    met = isinstance(error, _KINDS) and not isinstance(error, CaptureError | GuardError)
    if capture is None or not capture.refusals.assumed or not capture.abstract or not met:
        return error
    said = f"{capture.refusals.assumed}: what follows ends in {type(error).__name__}: {error}"
    return CaptureError(said, "Check that it is not empty before you use it: `if values:`.")


def is_pythons(error: Exception) -> bool:
    """Return whether an error may be Python's about something lazy; an attribute that arrays do not have is the user's own error."""
    if not isinstance(error, TypeError | AttributeError) or not all(type(a) is str for a in error.args):
        return False
    return not str(error).startswith("'Tensor' object has no attribute")


def hides_refusal(error: Exception) -> bool:
    """Return whether NumPy has made an error of a refusal: an array cannot hold a lazy value."""
    return isinstance(error, TypeError | ValueError) and is_met_by_numpy(error)


def refusal_of(error: Exception, label: str) -> Exception | None:
    """Return the refusal for an error of Python or a library that was caused by something lazy; None for an error of the user's."""
    if isinstance(error, TypeError | ValueError) and isinstance(error.__cause__, ForeignStoreError):
        return error.__cause__
    if isinstance(error, TypeError | ValueError) and is_met_by_numpy(error):
        return ValueNeededError(
            f"{label} passes a lazy value to NumPy's own code, which needs its numbers ({error})",
            "Store into arrays made by np.array, np.zeros, …, or computed from arguments.",
        )
    if is_of_format(error):
        return text_asked_for()
    if names_ours(error):
        return ValueNeededError(
            f"{label} uses a lazy value for something that needs its numbers",
            "Do that outside the function, or write it with NumPy.",
        )
    return None


def _refusal_replaced(error: Exception) -> Exception | None:
    """Return the refusal that a C function has replaced by an error of its own, at the same call, as `struct.pack` does; else None."""
    capture, trace = context.current(), error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    own = type(error).__module__ != "builtins" and not isinstance(error, TensorError)
    if capture is None or capture.refusals.wanted is None or trace is None or not own:
        return None
    code, instruction, refusal = capture.refusals.wanted
    return refusal if trace.tb_frame.f_code is code and trace.tb_lasti == instruction else None


def _unsupported(error: Exception, label: str) -> Exception | None:
    """Return the refusal for code that this package does not support: Python raised an error inside the package. Else None."""
    if isinstance(error, TensorError) or not isinstance(error, AttributeError | AssertionError):
        return None
    if not met_by_ours(error):
        return None
    return ValueNeededError(
        f"{label} has code that is not captured ({type(error).__name__}: {error})",
        "Do that outside the function, or write it with NumPy.",
    )


@contextmanager
def refusing(label: str) -> Generator[None]:
    """Turn errors in a function's code that are not the user's into refusals, for the block."""
    try:
        yield
    except Exception as error:
        refusal = (
            refusal_of(error, label)
            or _refusal_replaced(error)
            or _unsupported(error, label)
            or refusal_if_assumed(error)
        )
        if refusal is error:
            raise
        raise refusal.with_traceback(error.__traceback__) from error  # the traceback ends at the user's line
