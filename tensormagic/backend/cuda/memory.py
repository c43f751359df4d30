"""The memory of the device: what a run needs at least is known before it begins, and what does not suffice is an error at a line."""

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
GATE = memory_limit.GATE  # bytes from which on the device is asked what is free


def afford(device: Device, needed: int, node: Node | None) -> None:
    """Refuse a run that needs more than the device has left, before it begins.

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
    """Give back what can be had again: copies of what the host has, and what the pool keeps."""
    found = sum(give() for give in spare)
    device.free()
    return found


def with_room(device: Device, made: Callable[[], T], node: Node | None = None, what: str = "") -> T:
    """What asks for memory; where there is no room, once more after what can be had again has been given back.

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
    """The bytes that the library needs at least, node by node, and the largest array."""
    return _least(graph, tuple(bind(graph, values).items()))


@lru_cache(maxsize=256)
def _least(graph: Graph, sizes: tuple[tuple[Hashable, int], ...]) -> tuple[int, Node | None]:
    known: Any = dict(sizes)
    return memory_limit.least_by_numpy(graph, known)


def short(device: Device, error: MemoryError, node: Node | None, what: str = "") -> MemoryShortError:
    """What a device raises where it has no more memory, as an error at the line of the node that asked for it."""
    asked = getattr(error, "_size", 0)  # CuPy's name for it
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
    """Give back what a failed run has left in the frames of its traceback, and what the pool keeps for later."""
    seen: BaseException | None = error
    while seen is not None:
        traceback.clear_frames(seen.__traceback__)
        seen = seen.__cause__ or seen.__context__
    make_room(device)
