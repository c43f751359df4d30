"""Executables: equal graphs share one, and the least recently used ones are dropped."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from tensormagic import residence
from tensormagic.backend.compiling import native
from tensormagic.config import config
from tensormagic.ir.graph import Graph
from tensormagic.session import work
from tensormagic.session.tiers import Executable
from tensormagic.transform.rewriting import Rewritten, choices, rewrite

lock = threading.RLock()
_executables: OrderedDict[tuple[Any, ...], Executable] = OrderedDict()
_KEPT = 512  # programs
_NODES = 100_000  # nodes of all graphs together: some 4 KB each, with the rewritten graphs
_LAST = 16  # programs kept whatever their size


def executable(graph: Graph, level: str | None = None) -> Executable:
    """Return the executable of a closed graph; equal graphs share one."""
    chosen = choices(level or "")
    key = (graph, chosen)
    with lock:
        found = _executables.get(key)
        if found is None:
            with work.working("rewriting"):
                rewritten = rewrite(graph, chosen[0])
            found = _executables[key] = _running(graph, rewritten)
            _drop_oldest()
        _executables.move_to_end(key)
        return found


def has_executable(graph: Graph, level: str | None = None) -> bool:
    """Return whether the executable of a closed graph exists, so that asking for it takes no time."""
    with lock:
        return (graph, choices(level or "")) in _executables


def _drop_oldest() -> None:
    """Drop the least recently used programs if there are too many, or too large ones."""
    nodes = sum(
        e.nodes for e in dict.values(_executables)
    )  # an OrderedDict's own method would compute the hash of each key
    while len(_executables) > _KEPT or (nodes > _NODES and len(_executables) > _LAST):
        _, dropped = _executables.popitem(last=False)
        nodes -= dropped.nodes


def _running(graph: Graph, rewritten: Rewritten) -> Executable:
    before = {*graph.guards, *rewritten.graph.checks}
    late = tuple(g for g in rewritten.graph.guards if g not in before)
    return Executable(rewritten, residence.device_in_force(), len(graph.nodes), late=late)


def executable_as(graph: Graph, rewritten: Graph) -> Executable:
    """Return the executable of a graph that was rewritten elsewhere; the rules in force here do not apply."""
    return _running(graph, Rewritten(rewritten))


def prepare() -> None:
    """Start the compiler in the background, if it may be needed."""
    if config.tier != "numpy":
        native.prepare()


def forget(graph: Graph) -> None:
    """Drop the executables of a graph."""
    with lock:
        for key in [k for k in _executables if k[0] == graph]:
            del _executables[key]
