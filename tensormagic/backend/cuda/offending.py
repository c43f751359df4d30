"""Find, before anything runs, the operations of a graph that run on the host and need arrays copied for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tensormagic.backend.cuda import transfers
from tensormagic.backend.cuda.kernels import draws
from tensormagic.backend.cuda.library.table import lacking
from tensormagic.backend.cuda.loops import tapes
from tensormagic.ir import site
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.draws.random import DRAW, SEED
from tensormagic.ops.effects.checks import REQUIRE, SETTLED
from tensormagic.ops.effects.raising import CHECK
from tensormagic.ops.effects.telling import TELL
from tensormagic.ops.leaf import CONSTANT, SIZE
from tensormagic.ops.reverse.tape import EMPTY

CHECKS = frozenset([REQUIRE, SETTLED])  # return their first operand, and check the second
CONTROL = frozenset([CHECK, TELL, DRAW, SEED, SIZE, CONSTANT, EMPTY])


def _nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for value in node.params.values():
            if isinstance(value, Graph):
                yield from _nodes(value)


def _is_large(node: Node) -> bool:
    return any(t.shape for t in node.types) or any(a.type.shape for a in node.args if len(a.types) == 1)


def why_on_host(node: Node) -> str:
    """Return why an operation runs on the host with arrays copied for it, or "" if the device runs it."""
    op = node.op
    if not _is_large(node) or op.kind in {"region", "leaf"} or tapes.is_on_tapes(node):
        return ""
    if op is DRAW:
        return "" if draws.may_be_here(node) else "np.random draws on the host"
    if op is TELL:
        return "what is printed is copied" if any(a.type.shape for a in node.args[1:]) else ""
    return "" if op in CHECKS | CONTROL else lacking(node)


def offenders(graph: Graph, sites: Callable[[Node], Sequence[site.Site]] = site.of) -> list[transfers.Hidden]:
    """Return the operations of a graph that run on the host and need arrays copied for that."""
    found: dict[str, transfers.Hidden] = {}
    for node in _nodes(graph):
        if node.op.name not in found and (why := why_on_host(node)):
            found[node.op.name] = hidden(node, why, sites(node))
    return list(found.values())


def hidden(node: Node, why: str, spans: Sequence[site.Site]) -> transfers.Hidden:
    """Return the description of the copy that an operation on the host needs, with the reason and a remedy."""
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
