"""Whether the machine has the memory that a run needs: asked before a large run, so that the system does not kill the process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from math import prod
from pathlib import Path

from tensormagic.backend.running.buffers import pool
from tensormagic.config import config
from tensormagic.ir import site
from tensormagic.ir.errors import MemoryShortError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Atom, evaluate

GATE = 1 << 28  # bytes from which on it is asked: finding out takes as long as writing a few of these

_PROCESS = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")


def available() -> int | None:
    """Return the bytes this process can still allocate, swap included, or None if the system does not tell."""
    found = [n for n in (_of_machine(), _of_group()) if n is not None]
    return min(found, default=None)


def _of_machine() -> int | None:
    try:
        lines = (_PROCESS / "meminfo").read_text().splitlines()
        known = {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in lines)}
        return known["MemAvailable"] + known.get("SwapFree", 0)
    except (OSError, ValueError, KeyError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _of_group() -> int | None:
    """Return the bytes left in this process's control group (usually a container), not counting cached files, or None if there is none."""
    for most, now, name in (
        (_GROUPS / "memory.max", _GROUPS / "memory.current", "inactive_file"),
        (_GROUPS / "memory/memory.limit_in_bytes", _GROUPS / "memory/memory.usage_in_bytes", "total_inactive_file"),
    ):
        try:
            limit, used = int(most.read_text()), int(now.read_text())
            files = [line.split() for line in now.with_name("memory.stat").read_text().splitlines()]
        except (OSError, ValueError):  # no such group, or no limit
            continue
        return max(limit - used + sum(int(n) for key, n in files if key == name), 0)
    return None


_MEND = "Take fewer rows at a time (tm.distribute does), float32, or free what is not used; tm.config.memory = BYTES sets another bound."


def afford(needed: int, node: Node | None = None, most: int | None = None, whose: str = "", mend: str = _MEND) -> None:
    """Refuse a run that needs more memory than there is.

    Parameters
    ----------
    needed
        Bytes.
    node
        The largest array: the error is at its line.
    most, whose, mend
        For memory other than the machine's: the bytes left there, its name in the error, and the advice.

    Raises
    ------
    MemoryShortError
        If that is more than ``config.memory`` allows or, if that is 0, than the machine has.
    """
    if most is None:
        most = config.memory or _enough_for(needed)
        whose = "config.memory allows" if config.memory else "this machine has left"
    if most is None or needed <= most:
        return
    largest = "" if node is None else f", the largest array in it is {node.types[0]}"
    error = MemoryShortError(
        f"this run needs {readable(needed)} of memory at once{largest}; {whose} {readable(most)}",
        mend,
    )
    error.tensor_node, error.largest = node, largest  # type: ignore[attr-defined]
    error.place(() if node is None else site.of(node))
    raise error


def _enough_for(needed: int) -> int | None:
    """Return the bytes that the machine has left; if they are too few, the pool of free blocks is emptied first."""
    left = available()
    if left is None or needed <= left:
        return left
    pool.clear()
    return available()


def least_by_numpy(graph: Graph, sizes: Mapping[Atom, int]) -> tuple[int, Node | None]:
    """Return a lower bound of NumPy's peak memory in bytes, node by node, and the largest array; possible views do not count."""
    last = {a: k for k, node in enumerate(graph.nodes) for a in node.needs}
    kept = {*graph.results}
    dying: dict[int, int] = {}
    live = most = 0
    largest: tuple[int, Node | None] = (0, None)
    for k, node in enumerate(graph.nodes):
        if node.op.kind in _FRESH and len(node.types) == 1 and node.args:
            try:
                count = prod(evaluate(s, sizes.__getitem__) for s in node.type.shape) * node.type.dtype.itemsize
            except LookupError:  # it is data-dependent
                count = 0
            live += count
            largest = max(largest, (count, node), key=lambda pair: pair[0])
            if node not in kept:
                dying[last.get(node, k)] = dying.get(last.get(node, k), 0) + count
        most = max(most, live)
        live -= dying.pop(k, 0)
    return most, largest[1]


_FRESH = frozenset(["pointwise", "contract", "fold"])  # kinds whose results NumPy allocates


def readable(count: float) -> str:
    """Bytes for people.

    Examples
    --------
    >>> readable(1536), readable(8e9)
    ('1.5 KiB', '7.451 GiB')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"
