"""Memory of the device: estimates what a run needs before it begins, and raises where it does not suffice, at the user's line."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from tensormagic.backend.cuda.device import Device
from tensormagic.backend.running import memory_limit
from tensormagic.ir import site
from tensormagic.ir.errors import MemoryShortError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.interpret import bind
from tensormagic.ops.op import Value

T = TypeVar("T")
MEND = "Work on fewer rows at a time, use --dtype float32, or delete values on the GPU (del)."
GATE = memory_limit.GATE  # runs that need fewer bytes are not checked


def afford(device: Device, needed: int, node: Node | None) -> None:
    """Raise before a run begins if it needs more memory than the device has left.

    Parameters
    ----------
    needed
        Bytes beside what lies there already.
    node
        The largest array of it: the error is at its line.
    """
    if needed < GATE:
        return
    free, _ = device.memory()
    if needed > free:
        make_room(device)
        memory_limit.afford(needed, node, device.memory()[0], "the GPU has left", MEND)


spare: list[Callable[[], int]] = []
"""What gives memory back that can be filled again, and says how many bytes that was."""


def make_room(device: Device) -> int:
    """Free copies of what the host has and unused memory of the pool, and return how many bytes of copies were freed."""
    found = sum(give() for give in spare)
    device.free()
    return found


def with_room(device: Device, made: Callable[[], T], node: Node | None = None, what: str = "") -> T:
    """Return ``made()``; where it runs out of memory, make room and try once more.

    Parameters
    ----------
    made
        What asks.
    node, what
        The error is at the line of this node, and says what the memory is for.
    """
    try:
        return made()
    except MemoryError as error:
        if not make_room(device):
            raise short(device, error, node, what) from error
    try:
        return made()
    except MemoryError as error:
        raise short(device, error, node, what) from error


def least(graph: Graph, values: Sequence[Value]) -> tuple[int, Node | None]:
    """Return the bytes that the library needs at least to run the graph node by node, and the node with the largest array."""
    return _least(graph, tuple(bind(graph, values).items()))


@lru_cache(maxsize=256)
def _least(graph: Graph, sizes: tuple[tuple[Hashable, int], ...]) -> tuple[int, Node | None]:
    known: Any = dict(sizes)
    return memory_limit.least_by_numpy(graph, known)


def short(device: Device, error: MemoryError, node: Node | None, what: str = "") -> MemoryShortError:
    """Return the error to raise where the device has no more memory, with the line of the node that asked for it."""
    asked = getattr(error, "_size", 0)  # the number of bytes that CuPy asked for
    make_room(device)
    free, total = device.memory()
    of = f" for {what}" if what else ""
    if node is not None and not what:
        places = sorted(site.of(node))
        of = f" for {node.types[0]}{f' of {places[0]}' if places else ''}"
    wanted = f"{asked:,} bytes are asked for, " if asked else ""
    found = MemoryShortError(
        f"the GPU's memory does not suffice{of}: {wanted}{free:,} of {total:,} bytes are free", MEND
    )
    found.tensor_node = node  # type: ignore[attr-defined]
    return found


def give_back(device: Device, error: BaseException) -> None:
    """Free the values that the frames of a failed run's traceback hold, and the unused memory of the pool."""
    seen: BaseException | None = error
    while seen is not None:
        traceback.clear_frames(seen.__traceback__)
        seen = seen.__cause__ or seen.__context__
    make_room(device)
