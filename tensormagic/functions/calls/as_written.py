"""Calls that Python runs as written, because the code needs values that capture does not have."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass, field

from tensormagic.capture.errors.traces import entries
from tensormagic.capture.python.usercode import span_at
from tensormagic.functions.calls.call_inputs import Given, fixed, kind_of
from tensormagic.ir.errors import GoneOnError, PlainRunWarning, SharedResultError, TensorError, ValueNeededError
from tensormagic.ir.modules import is_users

_MOST = 1024


@dataclass(eq=False)
class Written:
    """The kinds of arguments for which Python runs a function, and the reasons that were reported."""

    kinds: set[Hashable] = field(default_factory=set[Hashable])
    told: set[str] = field(default_factory=set[str])

    def has(self, given: Given) -> bool:
        """Return whether the function is run so for such arguments: then it is not captured again."""
        return bool(self.kinds) and _kind(given) in self.kinds

    def add(self, given: Given | None, name: str, refused: TensorError) -> None:
        """Record and report that Python runs the function, as its capture was ``refused``; Python then runs all such calls.

        If the values of this call caused the refusal, the next call tries to capture again.
        """
        each = given is not None and not isinstance(refused, GoneOnError)
        if given is not None and each:
            if len(self.kinds) >= _MOST:
                self.kinds.clear()
            self.kinds.add(_kind(given))
        self.tell(name, refused, "at each call" if each else "at this call")

    def met(self, given: Given, name: str, error: Exception | None) -> None:
        """Record that capture met an error where Python met none, so that the code is not captured again."""
        if error is not None:
            told = ValueNeededError(f"{type(error).__name__}: {error}")
            self.add(given, name, told.with_traceback(error.__traceback__))

    def tell(self, name: str, refused: TensorError, when: str = "at this call") -> None:
        """Warn, once for each reason, that Python runs the function."""
        found = entries(refused.__traceback__, lambda code: is_users(code.co_filename))
        where = f"{span_at(found[-1].tb_frame.f_code, found[-1].tb_lasti, found[-1].tb_lineno)}: " if found else ""
        why = f"{where}{refused.message or refused}"
        if why in self.told:
            return
        self.told.add(why)
        message = f"{name} is run as ordinary Python, {when} ({why}). The results are those of Python"
        if not isinstance(refused, SharedResultError):  # this error concerns calls alone
            message += ", but they have no graph: tm.grad, tm.vmap and tm.compile refuse the function"
        if not found:
            warnings.warn(message, PlainRunWarning, stacklevel=2)
            return
        code = found[-1].tb_frame.f_code
        warnings.warn_explicit(message, PlainRunWarning, code.co_filename, found[-1].tb_lineno)


def _kind(given: Given) -> Hashable:
    pairs = zip(given.leaves, given.moving, strict=True)
    return tuple([kind_of(v) if moves else fixed(v) for v, moves in pairs])
