"""The side effects of a piece of code, found by running it on trial."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.staging.trials.trial import attempt
from tensormagic.capture.staging.trials.world import CHECKS, World
from tensormagic.capture.stores.place import serials


def alone(world: World, run: Callable[[], Any], *, checks: bool) -> tuple[Any, bool]:
    """Return the result of ``run``, and whether it changes nothing in the ``world``; if it does, all changes are undone.

    ``checks``: its prints and checks do not count as changes.
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
