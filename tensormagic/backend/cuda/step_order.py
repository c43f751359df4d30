"""The steps of a plan in the order in which inputs arrive, where that is another one than the plan's: see `arrivals`."""

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
    """The steps sorted by the last input that they wait for, else as they are.

    A step waits for what the steps before it wait for that have stored what it reads, or read or stored what it stores: memory that one
    has when another is done with it stays so.

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
    stored = {owner(n): rank for n, rank in ranks.items()}  # by memory: what its content waits for
    touched: dict[Node, int] = {}  # and what it waits for whoever has read it
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
    """What a step reads, and what it stores."""
    parts = step.steps if isinstance(step, Kernel) else [step]
    parameters = [p for one in launches for p in one.parameters]
    reads = [n for part in parts for n in needed(part)] + [p.node for p in parameters if isinstance(p, Array)]
    reads += [n for p in parameters if isinstance(p, Count) for n in nodes_of(p.size)]
    stores = [n for part in parts for n in produced(part)]
    return reads, stores + [p.node for p in parameters if isinstance(p, Array) and p.written]
