"""What arrays may share memory with, as data or as NumPy decide: what may be a part of what is stored into is lost."""

from __future__ import annotations

import functools
import weakref

from tensormagic.capture import context, usercode
from tensormagic.capture.stores.place import Buffer
from tensormagic.ir.node import Node
from tensormagic.ops.effects.checks import REQUIRE, require
from tensormagic.ops.leaf import constant


def reach(buffer: Buffer) -> set[Buffer]:
    """A buffer, and all that may share memory with it for some data, directly or by way of others."""
    found, pending = set[Buffer](), [buffer]
    while pending:
        one = pending.pop()
        if one not in found:
            found.add(one)
            pending += one.origins
    return found


def may_share(first: Buffer, second: Buffer) -> bool:
    """Whether two buffers may have memory in common: for sure, or for some data."""
    one, other = ({m for b in reach(buffer) for m in (b, *(s for s, _ in b.shared))} for buffer in (first, second))
    return not one.isdisjoint(other)


def apart_in_numpy(buffer: Buffer, copy: Buffer) -> None:
    """Note that NumPy may have made a view or a copy: nobody may store into that, and a store into the array loses it."""
    copy.overlaps.append("the array that it was made from")
    copy.origins.append(buffer)
    listen(copy)


def listen(own: Buffer, raw: Node | None = None) -> None:
    """Have what a buffer holds be lost when something is stored into what it may be a part of.

    ``raw`` is that without the question whether it is there, where a name may be unbound.
    """
    held = weakref.ref(own)

    def invalidate(name: str) -> None:
        found = held()
        if found is not None and not _is_lost(found.node):
            frame = usercode.user_frame()
            where = f", in {usercode.span(frame)}" if frame is not None else ""
            stored = f"{name}, which has changed since{where}"
            message = f"this value may be a part of {stored}: what it is now is not known"
            found.put(require(found.node if raw is None else raw, constant(False), message, "capture"))
            for tell in list(found.followers):
                tell()

    capture = context.current()
    for source in reach(own) - {own}:
        tell = functools.partial(invalidate, source.name or "another array")
        source.followers.append(tell)
        if capture is not None and capture.trials:
            capture.listeners.append((source, tell))


def _is_lost(node: Node) -> bool:
    while node.op is REQUIRE:
        if node["error"] == "capture":
            return True
        node = node.args[0]
    return False
