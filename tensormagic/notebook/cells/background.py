"""Cells that return at once: ``%%tensor --async``. Their values are computed on a thread, over inputs as they are when the cell runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from IPython.core.error import UsageError

from tensormagic import session
from tensormagic.capture.cell import Captured
from tensormagic.capture.random import generators
from tensormagic.capture.staging.branches.merged_values import Partial
from tensormagic.capture.tree import flatten, tensors_in
from tensormagic.capture.values.value import Tensor
from tensormagic.functions.submitting import Submitted, background
from tensormagic.ir.node import Node
from tensormagic.notebook.cells.outcome import Outcome
from tensormagic.residence import Resident


def refuse(outcome: Outcome, captured: Captured) -> None:
    """Refuse a background cell whose effects would happen in another order than those of the following cells."""
    if captured.stores:
        what = f"stores into {captured.stores[0].name}"
    elif generators.advanced(captured.capture):
        what = "draws random numbers from a generator of the notebook"
    elif any(isinstance(v, Partial) for v in outcome.outputs.values()):
        what = "assigns names under data-dependent conditions"
    elif captured.capture.outside.on_values or captured.deleted:
        what = (
            f"runs {captured.capture.outside.on_values[0]}, which is not captured"
            if captured.capture.outside.on_values
            else "deletes names"
        )
    else:
        return
    raise UsageError(
        f"%%tensor --async: the cell {what}, and later cells rely on that: assign new names instead, or leave out --async"
    )


def work(outcome: Outcome) -> Callable[[], Submitted]:
    """Return a function that submits the cell's values for computation in the background, and returns the future of its own value."""
    leaves, build = flatten(outcome.result)
    parts = [*leaves, *tensors_in(list(outcome.outputs.values())), *outcome.gradients.values()]
    wanted = list(dict.fromkeys([*outcome.unused, *(t.node for t in parts if isinstance(t, Tensor))]))
    pending, run, after = session.later(wanted)

    def call() -> Any:
        try:
            known = run()
        finally:
            for node in pending:
                session.coming.pop(node, None)
        return build(iter([_given(v, known) for v in leaves]))

    def start() -> Submitted:
        future = background(outcome.options.name or "the cell", outcome.code.cell.label, call, after)
        for node in pending:
            if not future.done():
                session.coming[node] = future
        future.add_done_callback(
            lambda _: [session.coming.pop(node, None) for node in pending]
        )  # where it has never begun
        return future

    return start


def _given(value: Any, known: Mapping[Node, Any]) -> Any:
    """Return the result of a future: NumPy's arrays and numbers, or the lazy value itself if it lies on the device."""
    found = known[value.node] if isinstance(value, Tensor) else value
    return value if isinstance(found, Resident) else found
