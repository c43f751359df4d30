"""Sort the steps of a plan by the order in which inputs arrive, where that differs from the plan's (see `arrivals`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tensormagic.backend.cuda.kernels.launch import Array, Count, Launch
from tensormagic.backend.planning.schedule import Kernel, Step
from tensormagic.backend.planning.steps import needed, produced
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of

Launched = Callable[[Step], Iterable[Launch]]


def by_arrival(
    steps: Sequence[Step], owner: Callable[[Node], Node], launched: Launched, ranks: Mapping[Node, int]
) -> list[Step]:
    """Return the steps, sorted stably by the last input that each waits for.

    A step waits for the inputs that earlier steps wait for which store what it reads, or which read or store what
    it stores; so memory that is reused stays so.

    Parameters
    ----------
    steps
        All, in the order of the plan.
    owner
        Whose memory a value lies in.
    launched
        The launches of a step, those for other sizes too.
    ranks
        For each parameter its place among those that arrive.
    """
    stored = {
        owner(n): rank for n, rank in ranks.items()
    }  # per buffer, the rank of the last input that its content waits for
    touched: dict[Node, int] = {}  # per buffer, the rank of the last step that has read or stored it
    found: list[tuple[int, int]] = []
    for number, step in enumerate(steps):
        reads, stores = (set(map(owner, nodes)) for nodes in _touched(step, list(launched(step))))
        before = [stored.get(n, 0) for n in reads | stores] + [touched.get(n, 0) for n in stores]
        rank = max(before, default=0)
        for n in reads | stores:
            touched[n] = max(touched.get(n, 0), rank)
        stored.update(dict.fromkeys(stores, rank))
        found.append((rank, number))
    return [steps[number] for _, number in sorted(found)]


def _touched(step: Step, launches: Sequence[Launch]) -> tuple[list[Node], list[Node]]:
    """Return what a step reads, and what it stores."""
    parts = step.steps if isinstance(step, Kernel) else [step]
    parameters = [p for one in launches for p in one.parameters]
    reads = [n for part in parts for n in needed(part)] + [p.node for p in parameters if isinstance(p, Array)]
    reads += [n for p in parameters if isinstance(p, Count) for n in nodes_of(p.size)]
    stores = [n for part in parts for n in produced(part)]
    return reads, stores + [p.node for p in parameters if isinstance(p, Array) and p.written]
