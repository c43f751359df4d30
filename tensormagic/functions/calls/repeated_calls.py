"""Calls that Python runs again from the beginning; output of the first run is not printed twice."""

from __future__ import annotations

import io
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout

from tensormagic.ir.errors import GuardError
from tensormagic.ir.graph import Graph, every_node
from tensormagic.ops.effects.failing import may_fail
from tensormagic.ops.effects.outside import OUTSIDE
from tensormagic.ops.effects.raising import CHECK


@contextmanager
def but_for(printed: str) -> Generator[None]:
    """Suppress what was already ``printed`` while code is run again."""
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


def may_not_be_pythons(graph: Graph, error: Exception) -> bool:
    """Return whether Python may raise another error than a graph, or none.

    A graph that can fail in several ways may meet another error first, since it runs in order of dependence. It
    computes an error's text even where the error is not raised. Assumptions are checked in graphs only, and functions
    that are not captured have been called.
    """
    if isinstance(error, GuardError | MemoryError):
        return False
    nodes = [*every_node(graph)]
    if any("facts" in n.params for n in nodes):
        return False
    if any(n.op is CHECK and len(n.args) > 2 for n in nodes):
        return True
    if any(n.op is OUTSIDE for n in nodes):
        return False
    failing = [n for n in nodes if n.op.kind != "region" and may_fail(n)]
    return len({(n.op, n.params.get("error"), n.params.get("message")) for n in failing}) > 1
