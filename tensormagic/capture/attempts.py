"""Checks in a ``try`` of a function that is captured: which way they go is settled by a run, and each way has a trace of its own.

``try: return 1 / a`` goes on in its ``except`` where ``a`` is zero. A trace takes the check for one that holds, and a run for which it does
not is captured anew: Python then meets the error there and catches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensormagic.ir.errors import CaptureError
from tensormagic.ir.node import Node, topological
from tensormagic.ir.site import substituted
from tensormagic.ops.effects.checks import ERRORS, REQUIRE, settled
from tensormagic.ops.leaf import constant

_KINDS = {"division", "overflow", "value", "wide"}  # of errors that code catches by class


def decided(
    node: Node,
    fails: Callable[[Node], bool],
    safe: Any,
    of_site: Callable[[], tuple[bool, int]],
    checks: dict[str, Any],
) -> Node | None:
    """``node`` without checks that may fail, which are taken for what this trace takes them for; None where that cannot be told.

    Raises
    ------
    Exception
        What a check raises that is taken for one that does not hold.
    """
    new = topological([node], stop=lambda n: n in safe)
    open_ = [n for n in new if n not in safe and fails(n)]
    if any(n.op is not REQUIRE or n["error"] not in _KINDS for n in open_):
        return None
    memo: dict[Node, Node] = {}
    for check in open_:
        value, holds = substituted(check.args, memo) if memo else check.args
        held, number = of_site()
        if not held:
            token = checks["__tensor_checks__"]
            before = constant(token) if isinstance(token, int) else token.node
            checks["__tensor_checks__"] = _as_token(settled(before, holds, False, number))
            if check["error"] == "wide":
                raise CaptureError(f"{check['message']}, in a `try` of a function", "Convert it outside the function.")
            raise ERRORS[check["error"]](check["message"])
        memo[check] = settled(value, holds, True, number)
    return substituted([node], memo)[0]


def _as_token(node: Node) -> Any:
    from tensormagic.capture.stores.place import Buffer, Place
    from tensormagic.capture.value import Tensor

    return Tensor(Place(Buffer(node)))
