"""The warning that a function is captured at each call, as what it reads cannot be checked, if that takes noticeable time."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from tensormagic.capture.python import usercode
from tensormagic.functions.reads.footprint import UNKNOWN
from tensormagic.ir.errors import RecaptureWarning

_CALLS = 5  # calls from which on the user is told
_SECONDS = 2.0  # seconds of capturing from which on the user is told


@dataclass(eq=False)
class Recaptured:
    """Calls of one function that were captured anew because what it reads could not be checked."""

    calls: int = 0
    seconds: float = 0.0
    reason: str = ""
    told: bool = False

    def add(self, name: str, reason: str, seconds: float) -> None:
        """Record a capture and its reason; the user is told once, when capturing has taken noticeable time."""
        self.calls, self.seconds = self.calls + 1, self.seconds + seconds
        if not self.reason and reason != UNKNOWN.why:
            self.reason = reason
        if self.told or self.calls < _CALLS or self.seconds < _SECONDS:
            return
        self.told = True
        message = (
            f"{name} is captured anew at each call ({self.calls} calls, {self.seconds:.1f} s): changes of {self.reason or 'what it reads'} "
            "cannot be followed. Pass what it reads as an argument, and return what it makes."
        )
        frame = usercode.user_frame()
        if frame is None:
            warnings.warn(message, RecaptureWarning, stacklevel=3)
        else:
            warnings.warn_explicit(message, RecaptureWarning, frame.f_code.co_filename, frame.f_lineno)
