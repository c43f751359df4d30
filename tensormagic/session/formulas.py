"""Accurate forms of formulas whose operands are numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tensormagic.backend.numpy_tier.text import numpy_source
from tensormagic.backend.running.generated_functions import executed
from tensormagic.capture.hooks import Form, hooks
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node
from tensormagic.session.closing import close_over
from tensormagic.session.programs import executable
from tensormagic.transform.rewriting import choices, installed
from tensormagic.transform.rewriting.users.trial import changes_digits


def form_of(result: Node, leaves: Sequence[Node]) -> Form | None:
    """Return a function that computes ``result`` from numbers for ``leaves``, if a rule that changes digits has changed it, or None."""
    closed = close_over([result], use_values=False)
    if not {*closed.leaves} <= {*leaves}:
        return None
    program = executable(closed.graph)
    levels = {f.rule.level for f in program.rewritten.fired if changes_digits(f.rule)}
    if not levels:
        return None
    places = [leaves.index(leaf) for leaf in closed.leaves]
    try:
        run = executed(numpy_source(program.graph), "<formula>", {})["f"]
    except CaptureError:  # some op has no text in NumPy
        return None
    return Form(lambda operands: run(*[operands[k] for k in places]), levels)


hooks.form_of = form_of
hooks.choices = choices
hooks.own_rules = installed
