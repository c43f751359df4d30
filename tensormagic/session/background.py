"""Computing in the background: on another thread, over the inputs as they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cache as cached
from typing import Any

import numpy as np

from tensormagic.capture import floating
from tensormagic.ir import site
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.effects.telling import EFFECTS
from tensormagic.ops.leaf import CONSTANT, INPUT
from tensormagic.session import demand, kept
from tensormagic.session.closing import close_over
from tensormagic.session.programs import executable, lock
from tensormagic.transform.values import absorbed

Later = tuple[list[Node], Callable[[], dict[Node, Any]], set["Future[Any]"]]


def later(nodes: Sequence[Node]) -> Later:
    """What has to be computed of ``nodes``, what does that on another thread, over inputs as they are now, and what that waits for.

    Raises
    ------
    CaptureError
        Where that prints, or calls functions as they are: then the order of effects would be another one.
    """
    demand.have(wanted := [n for n in nodes if n.op is INPUT or n.op is CONSTANT])
    after = kept.coming_for(nodes) if kept.coming else set()
    if not after:
        return *_apart_from_here(nodes, wanted), after
    there = kept.values.here()
    pending = [n for n in dict.fromkeys(nodes) if n not in there]
    _refuse_effects(close_over(pending, use_values=False).graph)
    return pending, lambda: _apart_from_here(nodes, wanted)[1](), after


def _refuse_effects(graph: Graph) -> None:
    if not graph.ops.isdisjoint(EFFECTS):
        raise CaptureError(
            "a computation that prints, or calls uncaptured functions, cannot run in the background",
            "Leave out --async.",
        )


def _apart_from_here(nodes: Sequence[Node], wanted: Sequence[Node]) -> tuple[list[Node], Callable[[], dict[Node, Any]]]:
    """What of ``nodes`` is not there, and what computes it without the lock, over copies; inputs that are ``wanted`` are there."""
    with lock:
        there, table = kept.values.here(), kept.values.table()
        known = {n: there[n] for n in wanted}
        pending = [n for n in dict.fromkeys(nodes) if n not in there]
        known.update((n, there[n]) for n in nodes if n in there)
        if not pending:
            return [], lambda: known
        closed, values, sizes = demand.bound(pending)
        program = executable(closed.graph)
    _refuse_effects(program.graph)
    given = [np.array(v, order="K") if isinstance(v, np.ndarray) and not kept.is_frozen(v) else v for v in values]

    def run() -> dict[Node, Any]:
        with floating.told(cached(lambda: site.Lens(closed.mapping))):
            results = program.here(sizes, *given)
        own = absorbed(closed, program.rewritten)
        for node, result in zip(pending, results, strict=True):
            known[node] = kept.freeze(result)
            table.there.setdefault(node, known[node])
            table.inherit(node, closed.leaves, own)
        return known

    return pending, run
