"""Which operations of a graph run on the host, and have arrays copied for that: known before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tensormagic.backend.cuda import draws, tapes, transfers
from tensormagic.backend.cuda.library import lacking
from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.draws.random import DRAW, SEED
from tensormagic.ops.effects.checks import REQUIRE, SETTLED
from tensormagic.ops.effects.raising import CHECK
from tensormagic.ops.effects.telling import TELL
from tensormagic.ops.leaf import CONSTANT, SIZE
from tensormagic.ops.reverse.tape import EMPTY

CHECKS = frozenset([REQUIRE, SETTLED])  # the first operand, where the second holds
CONTROL = frozenset([CHECK, TELL, DRAW, SEED, SIZE, CONSTANT, EMPTY])


def _nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for value in node.params.values():
            if isinstance(value, Graph):
                yield from _nodes(value)


def _is_large(node: Node) -> bool:
    return any(t.shape for t in node.types) or any(a.type.shape for a in node.args if len(a.types) == 1)


def offenders(graph: Graph, sites: Callable[[Node], Sequence[site.Site]] = site.of) -> list[transfers.Hidden]:
    """The operations of a graph that run on the host, and have arrays copied for that."""
    found: dict[str, transfers.Hidden] = {}
    for node in _nodes(graph):
        name, op = node.op.name, node.op
        if name in found or not _is_large(node) or op.kind in {"region", "leaf"}:
            continue
        if tapes.is_on_tapes(node):
            continue
        why = "np.random draws on the host" if node.op is DRAW and not draws.may_be_here(node) else ""
        if node.op is TELL and any(a.type.shape for a in node.args[1:]):
            why = "what is printed is copied"
        if not why and node.op not in CHECKS | CONTROL:
            why = lacking(node)
        if why:
            found[name] = hidden(node, why, sites(node))
    return list(found.values())


def hidden(node: Node, why: str, spans: Sequence[site.Site]) -> transfers.Hidden:
    """What is told of an operation that the host does, and why."""
    drawn = node.op is DRAW
    if node.op is TELL:
        printed = next(a for a in node.args[1:] if a.type.shape)
        mend = "print a number that is computed from it, or print it behind the cell"
        return transfers.Hidden(
            "print()",
            f"{transfers.type_text(printed.types[0])}, for print ({why})",
            "to the host",
            mend,
            tuple(spans[:1]),
        )
    t = node.types[-1] if drawn else (node.args[0] if node.args else node).types[0]
    return transfers.Hidden(
        f"{node.op.name}()",
        f"{transfers.type_text(t)}, for {node['method'] if drawn else node.op.name} ({why})",
        "to the device" if drawn else "to the host",
        "draw once, and keep it on the GPU with tm.to_gpu"
        if drawn
        else f"run what needs {node.op.name} in a cell of its own with --device cpu",
        tuple(spans[:1]),
    )


__all__ = ["CHECKS", "CONTROL", "hidden", "offenders"]
