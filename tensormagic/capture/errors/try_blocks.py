"""Checks inside ``try`` in a captured function: the run decides whether they hold, and each outcome has a trace of its own.

``try: return 1 / a`` goes on in its ``except`` where ``a`` is zero. A trace assumes that the check holds, and a run
for which it does not is captured anew: Python then raises the error there and catches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensormagic.capture.hooks import hooks
from tensormagic.ir.errors import ValueNeededError
from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.site import copy, substituted
from tensormagic.ops.effects.checks import ERRORS, REQUIRE, settled, without_value
from tensormagic.ops.effects.working import failure, works
from tensormagic.ops.leaf import constant

_KINDS = {"division", "overflow", "value", "wide"}  # errors that code catches by class


def decided(
    node: Node,
    fails: Callable[[Node], bool],
    safe: Any,
    of_site: Callable[[], tuple[bool, int]],
    checks: dict[str, Any],
) -> Node | None:
    """Return ``node`` with checks that may fail replaced by this trace's assumptions about them; None if there is no assumption.

    Raises
    ------
    Exception
        The error of a check that is assumed to fail.
    """
    new = topological([node], stop=lambda n: n in safe)
    open_ = [n for n in new if n not in safe and fails(n)]
    if not all(failure(n) or (n.op is REQUIRE and n["error"] in _KINDS) for n in open_):
        return None
    memo: dict[Node, Node] = {}
    for check in open_:
        args = substituted(check.args, memo) if memo else check.args
        value, holds = (args[0], works(check, args)) if failure(check) else args
        held, number = of_site()
        _await(checks, holds, held, number)  # whether or not any of it is used
        if not held:
            if failure(check):
                raise np.linalg.LinAlgError(failure(check))
            if check["error"] == "wide":
                raise ValueNeededError(
                    f"{without_value(check['message'])}, in a `try` of a function", "Convert it outside the function."
                )
            raise ERRORS[check["error"]](without_value(check["message"]))
        memo[check] = value = settled(value, holds, True, number, "try")
        if failure(check):
            memo[check] = make(check.op, (value, *args[1:]), **check.params)
            copy(memo[check], check)
    return substituted([node], memo)[0]


def taken_for(holds: Node, of_site: Callable[[], tuple[bool, int]], checks: dict[str, Any]) -> bool:
    """Return whether a condition on which a ``try`` depends is assumed to hold in this trace."""
    held, number = of_site()
    _await(checks, holds, held, number)
    return held


def _await(checks: dict[str, Any], holds: Node, held: bool, number: int) -> None:
    """Let the function's results depend on a check of an assumption, after the checks before it."""
    token = checks["__tensor_checks__"]
    before = constant(token) if isinstance(token, int) else token.node
    checks["__tensor_checks__"] = hooks.array(settled(before, holds, held, number, "try"))
