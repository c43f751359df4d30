"""``print`` when the graph runs, in the same chain of tokens as checks, so that the order of the program is kept."""

from __future__ import annotations

import ast
import io
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tensormagic.ir import site
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make, rebuild
from tensormagic.ir.operation import Operation
from tensormagic.ir.size import Size
from tensormagic.ops.effects.outside import OUTSIDE
from tensormagic.ops.effects.raising import AFTER, CHECK, argument
from tensormagic.ops.op import Value
from tensormagic.ops.opaque import Opaque

_silent: ContextVar[bool] = ContextVar("silent", default=False)


@contextmanager
def silently() -> Generator[None]:
    """Print nothing within the block: graphs are computed again only for display."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


_heard: ContextVar[io.StringIO | None] = ContextVar("heard", default=None)


def hear() -> None:
    """Start to record what a run prints."""
    _heard.set(io.StringIO())


def heard() -> str:
    """Return what the current run has printed so far."""
    kept = _heard.get()
    return "" if kept is None else kept.getvalue()


def _print(token: Value, *details: Value, told: str, sep: str, end: str) -> Value:
    if not _silent.get():
        said = [argument(part, details) for part in ast.literal_eval(told)]
        print(*said, sep=sep, end=end)  # noqa: T201 (the user's)
        kept = _heard.get()
        if kept is not None and kept.tell() < MOST_HEARD:
            print(*said, sep=sep, end=end, file=kept)
    return token


MOST_HEARD = 2**20  # characters of a run's output that are kept


def _not_stacked(_node: Node, _args: Sequence[Node], _batched: Sequence[bool], _size: Size) -> Node:
    raise CaptureError(
        "a print in a function that is batched: the elements of a batch have no order",
        "Return the value, and print it outside.",
    )


TELL = Opaque(
    name="tell",
    plainly="printing",
    types=lambda args, _params: args[0].type,
    numpy=_print,
    tangent=lambda _node, tangents: tangents[0],
    stacked=_not_stacked,
    doc="The first operand, once the others have been printed.",
)


def tell(token: Node, told: Any, details: Sequence[Node] = (), sep: str = " ", end: str = "\n") -> Node:
    """Return ``token``, after printing.

    Parameters
    ----------
    token
        Stands for the checks and prints before this one: a number without a meaning.
    told
        The arguments of ``print``, as in :func:`tensormagic.ops.effects.raising.check`.
    details
        The operands that ``told`` refers to by number.
    sep, end
        As in ``print``.
    """
    return make(TELL, (token, *details), told=repr(told), sep=sep, end=end)


def untold(graph: Graph) -> Graph:
    """Return a graph without its prints, also in graphs inside it; if nothing is checked either, no value waits."""
    gone: dict[Operation, int] = {TELL: 0}
    if graph.ops.isdisjoint((CHECK.name, OUTSIDE.name)):
        gone[AFTER] = 1
    return graph if TELL.name not in graph.ops else _without(graph, gone)


def _without(value: Any, gone: Mapping[Operation, int]) -> Any:
    """Return a graph, or a tuple with graphs, in which each op in ``gone`` is replaced by the operand with that number."""
    if type(value) is tuple and any(isinstance(v, Graph) for v in value):
        return tuple([_without(v, gone) for v in value])
    if not isinstance(value, Graph):
        return value
    made: dict[Node, Node] = {}
    for node in value.nodes:
        own = rebuild(node, [made[a] for a in node.args], made)
        inner = {k: new for k, v in node.param_items if (new := _without(v, gone)) is not v}
        own = make(own.op, own.args, **{**own.params, **inner}) if inner else own
        if own is not node:
            site.copy(own, node)
        made[node] = own.args[gone[own.op]] if own.op in gone else own
    return value.with_nodes([made[n] for n in (*value.results, *value.checked)])


def is_effect(op: Operation) -> bool:
    """Return whether an op has side effects: they happen in order, once per call."""
    return op.name in EFFECTS


def has_effect(node: Node) -> bool:
    """Return whether a node, or a graph inside it, has side effects."""
    graphs = (graph for _, graph in node.param_items if isinstance(graph, Graph))
    return is_effect(node.op) or any(not graph.ops.isdisjoint(EFFECTS) for graph in graphs)


EFFECTS = frozenset(op.name for op in (TELL, OUTSIDE))
