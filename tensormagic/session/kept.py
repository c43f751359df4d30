"""The computed values, and those that are being computed in the background. Computes nothing."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

import numpy as np

from tensormagic import residence
from tensormagic.capture.inputs.snapshots import Snapshot
from tensormagic.capture.values import live_values
from tensormagic.ir.errors import GuardError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Size, Symbol, evaluate
from tensormagic.ops.leaf import CONSTANT, INPUT
from tensormagic.session.programs import lock
from tensormagic.transform.values import Values

values = Values()


def forget_values(nodes: Sequence[Node]) -> None:
    """Drop the values of ``nodes`` and of what they are computed from, except inputs."""
    drop([node for node in topological(nodes) if node.args])


def drop(nodes: Sequence[Node]) -> None:
    """Drop the values of ``nodes``; they are recomputed on demand."""
    with lock:
        for node in nodes:
            for there in values.every():
                there.pop(node, None)


def keep(known: Mapping[Node, Node]) -> None:
    """Keep the values of some nodes also for others that are known to be equal."""
    with lock:
        table = values.table()
        for node, other in known.items():
            if node is not other and node.args:
                table.there[node] = table.there[other]
                table.inherit(node, [other])


def is_computed(node: Node) -> bool:
    """Return whether the value of ``node`` is known."""
    return node in values.here() or node.op is CONSTANT


def is_near(node: Node) -> bool:
    """Return whether ``node`` has been computed, here or for another device."""
    return any(node in there for there in values.near())


def held(leaf: Node) -> Any:
    """Return the value of an input, or a computed value, where it is stored, or None if it was dropped."""
    for there in values.near():
        if leaf in there:
            return there[leaf]
    if leaf.args:
        return None
    source = leaf["source"]
    if not isinstance(source, Snapshot):
        raise GuardError(
            f"the value of {source.name} is needed while a function of it is differentiated or batched, but it has none there",
            "Print and convert outside of that function, and store into arrays that it is given.",
        )
    return source.read()


def device_array(node: Node) -> Any:
    """Return the array of ``node`` on the device, or None if it is not computed, or belongs on the host."""
    found = next((there[node] for there in values.near() if node in there), None)
    if found is None and node.op is INPUT and isinstance(node["source"], Snapshot):
        found = node["source"].value
    return found.device() if isinstance(found, residence.Resident) and found.stays else None


def norm_of(node: Node) -> float:
    """Return the Euclidean norm of a value on the device; only one number is copied."""
    return residence.norm(values.here()[node])


def is_away(node: Node) -> bool:
    """Return whether a computed value is stored only on a device."""
    value = values.here().get(node)
    return isinstance(value, residence.Resident) and not value.on_host


reasons: weakref.WeakKeyDictionary[Node, str] = weakref.WeakKeyDictionary()
"""Why values were computed on their device, if it was chosen by sizes."""


coming: weakref.WeakKeyDictionary[Node, Future[Any]] = weakref.WeakKeyDictionary()  # computations in the background


def wait_for(nodes: Sequence[Node]) -> None:
    """Wait for background computations that ``nodes`` need; one that fails is repeated here, where its error is raised."""
    found = coming_for(nodes)
    if found:
        wait(found)


def coming_for(nodes: Sequence[Node]) -> set[Future[Any]]:
    """Return the background computations that ``nodes`` need."""
    there = values.here()
    return {coming[n] for n in topological(nodes, stop=there.__contains__) if n in coming and n not in there}


def is_frozen(value: np.ndarray[Any, Any]) -> bool:
    """Return whether nobody can store into an array."""
    return not value.flags.writeable and (value.base is None or not getattr(value.base, "flags", value.flags).writeable)


def number(size: Size) -> int:
    """Return the number of a size, seen at capture or computed."""
    if isinstance(size, int):
        return size
    there = values.here()
    return evaluate(size, lambda a: int(a.hint if isinstance(a, Symbol) else there[a]))  # type: ignore[arg-type]


def let_go(wanted: Sequence[Node]) -> None:
    """Drop values that nobody can reach any more, once many have been added."""
    global _fresh
    if _fresh > live_values.SEARCH_BYTES:
        _fresh = 0
        for there in values.every():
            for node in live_values.unneeded_large_values(there, wanted):
                del there[node]


_fresh = 0  # bytes of values added since the last search


def freeze(value: Any) -> Any:
    """Return a value made read-only, to be kept."""
    global _fresh
    if live_values.is_large(value):
        _fresh += value.nbytes
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view() if value.base is not None else value
        value.flags.writeable = False
    return value
