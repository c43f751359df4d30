"""Objects of which a process has one, with threads of their own: made on first use, and again in a forked child."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Made = TypeVar("Made")


class OnePerProcess(Generic[Made]):
    """Returns this process's instance when it is called.

    Parameters
    ----------
    make
        Makes the instance.
    lose
        Called in a forked child with its parent's instance, whose threads do not exist there.

    Attributes
    ----------
    made
        The instance; None before the first call.
    """

    def __init__(self, make: Callable[[], Made], lose: Callable[[Made], None]) -> None:
        self.made: Made | None = None
        self._make = make
        self._lose = lose
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def __call__(self) -> Made:
        """Return the one of this process."""
        with self._lock:
            if self.made is None:
                self.made = self._make()
            return self.made

    def _forked(self) -> None:
        self._lock = threading.Lock()
        old, self.made = self.made, None
        if old is not None:
            self._lose(old)
