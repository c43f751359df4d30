"""Loops that run as long as any row goes on, where each row goes on independently, as ``tm.vmap`` makes them of ``while``.

A finished row keeps its values, however many iterations the others need, so a chunk may stop when its own rows are
finished. That is derived from the graphs: the test asks whether *any* row goes on, and each result of the body is
unchanged for a finished row. Values computed on the way for finished rows are thrown away, whatever rows they were
made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.rows import Mixed

Axis = Callable[[Node, list[Any]], Any]
"""A function from the axes of rows in the operands to that in the node; None means the same for all rows; raises :class:`Mixed`."""

TOGETHER = "goes on for all rows as long as any one does"
_SPREADS = frozenset({"reshape", "broadcast", "transpose", "stop_gradient"})


class _Own(IntEnum):
    """To what extent a row of a value depends on the same row alone."""

    ALWAYS = 0
    WHERE_NOT_DONE = 1
    NEVER = 2


def wants(test: Graph) -> Node | None:
    """Return the node that says for each row whether it goes on, if the test asks whether any does, or None."""
    (answer,) = test.results
    if answer.op.name != "any" or answer.args[0].type.ndim != 1:
        return None
    return answer.args[0]


def check_lanes(body: Graph, axes: Sequence[Any], goes_on: Node, axis: Axis) -> None:
    """Raise unless finished rows keep their values, and unfinished ones depend on themselves alone.

    Parameters
    ----------
    body
        The body of the loop.
    axes
        The axis of rows in each of its parameters.
    goes_on
        Which rows are unfinished, over the same parameters.
    axis
        Gives the axis of rows of a node of the body.
    """
    table: dict[Node, tuple[Any, _Own]] = {p: (a, _Own.ALWAYS) for p, a in zip(body.parameters, axes, strict=True)}
    why: dict[Node, str] = {}
    for node in body.nodes:
        if node not in table:
            table[node] = _learned(node, table, goes_on, axis, why)
    for carry, end in zip(body.parameters, body.results, strict=False):
        if end is carry:
            continue
        keeps = end.op.name == "where" and end.args[2] is carry and _implies(end.args[0], goes_on)
        if not keeps or table[end][1] is not _Own.ALWAYS or table[end][0] is None:
            reason = next((why[n] for n in body.nodes if n in why), "changes a value that is the same for all rows")
            raise Mixed(reason if keeps or table[end][1] else TOGETHER)


def _learned(
    node: Node, table: dict[Node, tuple[Any, _Own]], goes_on: Node, axis: Axis, why: dict[Node, str]
) -> tuple[Any, _Own]:
    """Return the axis of rows in a node, and to what extent its rows depend on themselves alone."""
    given = [table[a] for a in node.args]
    own = max((o for _, o in given), default=_Own.ALWAYS)
    axes = [a for a, _ in given]
    if node.op.name == "where" and _implies(node.args[0], goes_on) and given[0][1] is _Own.ALWAYS:
        (_, _), (_, then), (_, otherwise) = given
        if then is not _Own.NEVER:
            own = _Own.ALWAYS if otherwise is _Own.ALWAYS else _Own.WHERE_NOT_DONE
            axes = [axes[0], axes[1], axes[0] if otherwise is _Own.NEVER else axes[2]]
    if own is _Own.NEVER:
        return None, own
    try:
        return axis(node, axes), own
    except Mixed as error:
        why.setdefault(node, str(error))
        return None, _Own.NEVER


def _implies(mask: Node, goes_on: Node) -> bool:
    """Return whether a mask is false for all elements of a finished row."""
    if mask is goes_on:
        return True
    if mask.op.name in _SPREADS:
        return _implies(mask.args[0], goes_on)
    return mask.op.name == "logical_and" and any(_implies(a, goes_on) for a in mask.args)
