"""The warning that a gradient is zero because the result does not depend on an argument, or only through step functions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from tensormagic.capture.python import usercode
from tensormagic.ir import site
from tensormagic.ir.errors import ConstantGradientWarning
from tensormagic.ir.node import Node, topological
from tensormagic.ops.pointwise import Pointwise


def warn_constant(label: str, result: Node, arguments: Sequence[tuple[str, Sequence[Node]]]) -> None:
    """Warn of each argument on which ``result`` depends without a derivative."""
    for name, nodes in arguments:
        if nodes and (reason := reason_of_zero(result, name, nodes)):
            _warn(f"{label} {reason}: its gradient is zero")


def reason_of_zero(result: Node, name: str, nodes: Sequence[Node]) -> str:
    """Return why the gradient of a value with respect to ``name`` is zero for all data, or an empty text if it is not."""
    steps = _steps_to(result, nodes)
    return "" if steps is None else _reason(name, steps)


def _steps_to(result: Node, nodes: Sequence[Node]) -> list[Node] | None:
    """Return the nodes at which derivatives by ``nodes`` end on the way to ``result``, or None if they reach it."""
    moving, ends = set(nodes), list[Node]()
    for node in topological([result], stop=moving.__contains__):
        if node in moving or not any(a in moving for a in node.args):
            continue
        if (isinstance(node.op, Pointwise) and node.op.is_step(node)) or not any(t.inexact for t in node.types):
            ends.append(node)
        else:
            moving.add(node)
    return None if result in moving else ends


def _reason(name: str, steps: Sequence[Node]) -> str:
    if not steps:
        return f"does not depend on {name}"
    shown = [f"{n.op.name} ({places[0]})" if (places := site.of(n)) else n.op.name for n in steps[:3]]
    return f"depends on {name} only through {', '.join(shown)}, whose derivative is zero"


def _warn(message: str) -> None:
    frame = usercode.user_frame()
    if frame is None:
        warnings.warn(message, ConstantGradientWarning, stacklevel=3)
    else:
        warnings.warn_explicit(message, ConstantGradientWarning, frame.f_code.co_filename, frame.f_lineno)
