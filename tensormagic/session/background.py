"""Computing in the background: on another thread, with the present values of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import cache as cached
from typing import Any

import numpy as np

from tensormagic import residence
from tensormagic.backend.cuda import transfers
from tensormagic.backend.cuda.device import current
from tensormagic.capture.errors import floating, repeated_warnings
from tensormagic.config import config
from tensormagic.ir import site
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.effects.telling import EFFECTS
from tensormagic.ops.leaf import CONSTANT, INPUT
from tensormagic.session import demand, kept
from tensormagic.session.closing import close_over
from tensormagic.session.programs import executable, lock
from tensormagic.session.tiers import Executable
from tensormagic.transform.values import absorbed

Later = tuple[list[Node], Callable[[], dict[Node, Any]], set["Future[Any]"]]


def later(nodes: Sequence[Node]) -> Later:
    """Prepare to compute ``nodes`` on another thread; return the nodes to compute, a function that does it, and what it waits for.

    The inputs have their present values.

    Raises
    ------
    CaptureError
        If the computation prints, or calls functions that are not captured, as this would change the order of effects.
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
    """Return the uncomputed nodes among ``nodes``, and a function that computes them without the lock, over copies of ``wanted`` inputs."""
    with lock:
        there, table = kept.values.here(), kept.values.table()
        known = {n: there[n] for n in wanted}
        pending = [n for n in dict.fromkeys(nodes) if n not in there]
        known.update((n, there[n]) for n in nodes if n in there)
        if not pending:
            return [], lambda: known
        closed, values, sizes = demand.bound(pending)
        if config.device == "cpu" and not config.own_devices and any(map(residence.stays, values)):
            with config.using(
                device="gpu", transfers=residence.policy(values)
            ):  # as for values that are computed at once
                return _apart_from_here(nodes, wanted)
        program = executable(closed.graph)
    _refuse_effects(program.graph)
    lens = cached(lambda: site.Lens(closed.mapping))
    compute = _computing(program, closed.leaves, values, sizes, lambda node: lens().of(node))

    def run() -> dict[Node, Any]:
        with floating.naming_lines(lens), repeated_warnings.kept_for(pending, closed.leaves):
            results = compute()
        own = absorbed(closed, program.rewritten)
        for node, result in zip(pending, results, strict=True):
            known[node] = kept.freeze(result)
            table.there.setdefault(node, known[node])
            table.inherit(node, closed.leaves, own)
        return known

    return pending, run


def _computing(
    program: Executable, leaves: Sequence[Node], values: Sequence[Any], sizes: dict[Any, int], sites: residence.Sites
) -> Callable[[], list[Any]]:
    """Return a function that computes a program's results for the present values, on the device or on the host."""
    on_device = program.device != "cpu" and not floating.raises() and program.is_for_device(sizes, values)
    if not on_device:
        values = [residence.hosted(v, leaf) for leaf, v in zip(leaves, values, strict=True)]
    given = [np.array(v, order="K") if isinstance(v, np.ndarray) and not kept.is_frozen(v) else v for v in values]
    if not on_device:
        return lambda: program.here(sizes, *given)
    given = [residence.resident(v) for v in given]
    residence.told(program.graph, given, [residence.name_of(leaf) for leaf in leaves], sites)
    submitted, policy = current().record(), residence.policy(given)

    def run() -> list[Any]:
        current().wait(submitted)  # values that are still being computed
        with transfers.asked_for():
            results = program.resident(given)
        for one in results:
            if isinstance(one, residence.Resident):
                one.policy = policy
                one.finish()
        return results

    return run
