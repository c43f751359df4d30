"""What a call prints that is run again from its beginning: what the first run has printed is not printed twice."""

from __future__ import annotations

import io
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout


@contextmanager
def but_for(printed: str) -> Generator[None]:
    """Let code that is run again print what has not been ``printed``."""
    if not printed:
        yield
        return
    said = io.StringIO()
    try:
        with redirect_stdout(said):
            yield
    finally:
        text = said.getvalue()
        differ = (k for k, (a, b) in enumerate(zip(text, printed, strict=False)) if a != b)
        sys.stdout.write(text[next(differ, min(len(text), len(printed))) :])
