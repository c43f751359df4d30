"""What code changes beside what it gives: found out on trial."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.staging.trial import attempt
from tensormagic.capture.staging.world import CHECKS, World
from tensormagic.capture.stores.place import serials


def alone(world: World, run: Callable[[], Any], *, checks: bool) -> tuple[Any, bool]:
    """What ``run`` gives, and whether it changes nothing of the ``world``: else all is as it was.

    ``checks`` says that what it prints and checks is no change.
    """
    capture = context.current()
    if capture is None:
        return run(), True
    start = next(serials)

    def taken() -> tuple[Any, bool]:
        value = run()
        stores = any(b.born < start for b in capture.heap.journals[-1])
        return value, not (stores or world.grown or any(not checks or s.name != CHECKS for s in world.changes()))

    return attempt(world, taken, lambda result: result[1]).result
