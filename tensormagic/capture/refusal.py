"""What cannot be captured is refused, at the user's line and with a way out."""

from __future__ import annotations

from typing import NoReturn

from tensormagic.capture import context
from tensormagic.ir.errors import CaptureError


def refuse(what: str, advice: str) -> NoReturn:
    """Say that the user's line cannot be captured."""
    raise CaptureError(f"{what} is not captured", advice)


def abstract(why: str) -> None:
    """Refuse in a trace whose inputs have no values."""
    capture = context.current()
    if capture is not None and capture.abstract:
        raise CaptureError(
            f"a function is being captured, and the value has to be known because {why}",
            "Return the value, and print or plot it outside the function.",
        )


def needs_value(
    what: str, advice: str = "Do that in the next cell, where the value can be computed; or run this one with --plain."
) -> None:
    """Refuse, inside a capture, what would turn a captured value into a number; where Python runs a loop, it is computed."""
    capture = context.current()
    if capture is not None and (capture.abstract or capture.trials or not capture.forcing):
        raise CaptureError(f"{what} needs the value of what is being captured", advice)
