"""Calls that are run again from their beginning, by Python: which are, and what the first run has printed is not printed twice."""

from __future__ import annotations

import io
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout

from tensormagic.ir.errors import GuardError
from tensormagic.ir.graph import Graph, every_node
from tensormagic.ops.effects.raising import CHECK


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


def may_be_of_a_text(graph: Graph, error: Exception) -> bool:
    """Whether an error may be one of computing an error's text, which a graph does where the error is not raised, too.

    What is assumed is checked in graphs alone.
    """
    if isinstance(error, GuardError | MemoryError):
        return False
    nodes = [*every_node(graph)]
    return any(n.op is CHECK and len(n.args) > 2 for n in nodes) and not any("facts" in n.params for n in nodes)
