"""Where a compiled function's code comes from, in words; determined on demand, since it may change until then."""

from __future__ import annotations

from tensormagic import session
from tensormagic.backend.compiling import native
from tensormagic.config import config

NOTHING = "nothing to compile: NumPy's own functions run it"


def made_here(executable: session.Executable) -> str:
    """Return ``compiled here``, or what runs code that is not compiled, and why."""
    if executable.device != "cpu":
        return f"for {executable.device}"
    if config.tier == "numpy":
        return "run by NumPy"
    if not executable.plan.sources:
        return NOTHING
    if not native.compiles():
        return "run by NumPy: there is no compiler"
    handle = executable.compile()
    if handle.state == "pending":
        return "being compiled here"
    return "compiled here" if handle.ready() else f"run by NumPy: {handle.error}"
