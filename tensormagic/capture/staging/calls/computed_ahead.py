"""Iterators whose items Python computes one by one: capture may compute them all ahead if that makes no difference."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from types import GeneratorType
from typing import Any

from tensormagic.capture import context
from tensormagic.capture.errors.refusal import refuse
from tensormagic.capture.inputs.stand_ins import StandIn
from tensormagic.capture.staging.regions import effects_before
from tensormagic.capture.staging.trials.attributes import is_users_class
from tensormagic.capture.staging.trials.trial import attempt
from tensormagic.capture.staging.trials.world import CHECKS, World
from tensormagic.capture.stores.place import serials
from tensormagic.capture.values.operands import node_of
from tensormagic.ir.node import Node


def compute_ahead(functions: Iterable[Any], run: Callable[[], Any], what: str, *, may_print: bool = False) -> Any:
    """Return the result of ``run``, which computes ``what`` all at once; raise if that changes something, or prints.

    ``functions`` are the user's own that it calls. If it ``may_print``, the order of the printed text is the same
    either way.
    """
    capture = context.current()
    if capture is None:
        return run()
    start, world = next(serials), World(functions)
    before = set[Node]() if may_print else _printed(capture)

    def running() -> tuple[Any, bool]:
        result = run()
        changes = [slot for slot in world.changes() if slot.name != CHECKS]
        stores = any(buffer.born < start for buffer in capture.heap.journals[-1])
        return result, bool(changes or world.grown or stores or (not may_print and _printed(capture) != before))

    result, changed = attempt(world, running, lambda _result: True).result
    if changed:
        refuse(f"{what} where each of them prints, draws or changes something,", "Write a loop, with `if` in it.")
    return result


def _printed(capture: context.Capture) -> set[Node]:
    return effects_before(node_of(capture.order.checks[CHECKS]))


def producers_of(iterable: Any) -> list[Any]:
    """Return the user's objects and generators that compute an iterator's values, found through those it holds; none for plain data."""
    found, seen, pending = list[Any](), set[int](), [iterable]
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, StandIn) and hasattr(value, "__dict__"):
            pending += vars(value).values()
        elif isinstance(value, tuple) or _is_iterator(value):
            pending += gc.get_referents(value)
            found += [value] if isinstance(value, GeneratorType) or is_users_class(type(value)) else []
        elif callable(value) and not isinstance(value, type):
            found.append(value)
    return found


def _is_iterator(value: Any) -> bool:
    return hasattr(type(value), "__next__")
