"""What one iteration of a loop makes of its variables, as lines of mathematics: ``omega ← omega + dt * (…)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.notebook.formulas.formula import Writer
from tensormagic.notebook.formulas.latex import Expression, Name, Next, Row
from tensormagic.notebook.formulas.structure import BLOCKS, narrow
from tensormagic.notebook.pictures.naming import Naming
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.regions.control import LOOP, WHILE

__all__ = ["Iteration", "iterations", "outside"]

MOST = 4  # variables of a loop whose iteration is written
MOST_NODES = 60  # of one
Line = tuple[Expression, Expression]


@dataclass(frozen=True)
class Iteration:
    """A loop over numbers with names.

    Parameters
    ----------
    loop
        The loop.
    names
        What those of its results are called that are read, or that these are made of, by their positions.
    counter
        What the index is called, where the loop has one.
    """

    loop: Node
    names: Mapping[int, str]
    counter: str = ""

    @property
    def _first(self) -> int:
        return int(self.loop.op is LOOP)

    def lines(self, write: Callable[[Node], Expression | None]) -> Iterator[Line]:
        """The lines; ``write`` gives what comes from outside of the loop, None of what cannot be written there."""
        body: Graph = self.loop["body"]
        carried = body.parameters[self._first : self._first + self.loop["carries"]]
        made = {body.results[k]: name for k, name in self.names.items()}
        names = {carried[k]: name for k, name in self.names.items()}
        if self._first and self.counter:
            names[body.parameters[0]] = self.counter
        outside = body.parameters[self._first + len(carried) :]
        values = self.loop.args[self._first + len(carried) :]
        given = {p: text for p, v in zip(outside, values, strict=True) if (text := write(v)) is not None}
        needed = topological(list(made))
        if any(p in needed and p not in given and p not in names for p in body.parameters):
            return
        order = sorted(self.names, key=lambda k: body.nodes.index(body.results[k]))
        in_order = all(self._keeps(order, at, carried) for at in range(len(order)))
        writer = Writer({**names, **made} if in_order else names, lambda _size, _taken: "n")
        writer.given = given
        written = [writer.formula(body.results[k])[1] for k in order]
        if in_order:
            yield from ((Next(Name(self.names[k])), right) for k, right in zip(order, written, strict=True))
        else:  # all at once
            yield Next(Row(tuple(Name(self.names[k]) for k in order))), Row(tuple(written))

    def _keeps(self, order: Sequence[int], at: int, carried: Sequence[Node]) -> bool:
        """Whether a line needs nothing that the lines before have changed, but what these have made of it."""
        results = self.loop["body"].results
        before = {results[k] for k in order[:at]}
        inner = topological([results[order[at]]], stop=lambda node: node in before)
        return not any(carried[k] in inner for k in order[:at]) and results[order[at]] not in carried


def iterations(graph: Graph, naming: Naming) -> dict[Node, Iteration]:
    """The loops of a graph over numbers with names, whose iterations are short enough to be written, without loops and branches inside."""
    read: dict[Node, set[int]] = {n: set() for n in graph.nodes if n.op in {LOOP, WHILE}}
    for node in graph.nodes:
        if node.op is ITEM and node.args[0] in read:
            read[node.args[0]].add(node["index"])
    found: dict[Node, Iteration] = {}
    for loop, numbers in read.items():
        body: Graph = loop["body"]
        first, count = int(loop.op is LOOP), loop["carries"]
        carried = {p: k for k, p in enumerate(body.parameters[first : first + count])}
        wanted, pending = set[int](), list(numbers or {0})
        while pending:
            k = pending.pop()
            if k not in wanted:
                wanted.add(k)
                pending += [carried[n] for n in topological([body.results[k]]) if n in carried]
        names = {k: naming.gives(loop, k) for k in sorted(wanted)}
        numeric = all(not body.results[k].type.shape and body.results[k].type.dtype.kind in "fc" for k in wanted)
        known = all(name.isidentifier() for name in names.values()) and len(set(names.values())) == len(names) <= MOST
        distinct = len({body.results[k] for k in wanted}) == len(wanted)
        plain = not any(n.op in BLOCKS for n in body.nodes)
        if numeric and known and distinct and plain and len(body.nodes) <= MOST_NODES:
            found[loop] = Iteration(loop, names, naming.counter(loop) if first else "")
    return found


def outside(writer: Writer) -> Callable[[Node], Expression | None]:
    """What writes the values that a loop has from outside: numbers, and arrays with names."""

    def write(node: Node) -> Expression | None:
        if not narrow(node).type.shape:
            return writer.write(narrow(node), (), 0)
        return writer.write(node, None, 0) if node in writer.names else None

    return write
