"""Write one iteration of a loop as assignments of mathematics: ``omega ← omega + dt * (…)``."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Symbol
from tensormagic.ir.type import Size
from tensormagic.notebook.formulas.formula import Writer
from tensormagic.notebook.formulas.latex import Expression, Name, Next, Part, Row
from tensormagic.notebook.formulas.structure import BLOCKS, narrow
from tensormagic.notebook.pictures.naming import Naming
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.regions.control import LOOP, WHILE
from tensormagic.ops.update import ADD_AT, SET

MOST = 4  # variables of a loop whose iteration is written
MOST_NODES = 60  # of one
Line = tuple[Expression, Expression]


@dataclass(frozen=True)
class Iteration:
    """A loop over numbers and arrays with names.

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

    @property
    def _carried(self) -> Sequence[Node]:
        return self.loop["body"].parameters[self._first : self._first + self.loop["carries"]]

    @property
    def _foreign(self) -> list[tuple[Node, Node]]:
        """Return the body's parameters that are bound to values from outside the loop, with these values."""
        first = self._first + self.loop["carries"]
        return list(zip(self.loop["body"].parameters[first:], self.loop.args[first:], strict=True))

    @property
    def _order(self) -> list[int]:
        body: Graph = self.loop["body"]
        return sorted(self.names, key=lambda k: body.nodes.index(body.results[k]))

    def _is_in_order(self) -> bool:
        return all(self._keeps(self._order, at, self._carried) for at in range(len(self.names)))

    def is_written(self, names: Container[Node]) -> bool:
        """Return whether there are lines for it: of arrays from outside the names are known, and arrays are changed one after the other."""
        results = [self.loop["body"].results[k] for k in self.names]
        needed = set(topological(results))
        known = all(not narrow(v).type.shape or v in names for p, v in self._foreign if p in needed)
        return known and (self._is_in_order() or not any(r.type.shape for r in results))

    def lines(self, around: Writer) -> Iterator[Line]:
        """Yield the lines of the loop; ``around`` is the writer that names outer values and sizes."""
        write = _outside(around)
        body: Graph = self.loop["body"]
        made = {body.results[k]: name for k, name in self.names.items()}
        names = {self._carried[k]: name for k, name in self.names.items()}
        if self._first and self.counter:
            names[body.parameters[0]] = self.counter
        given = {p: text for p, v in self._foreign if (text := write(v)) is not None}
        needed = topological(list(made))
        if any(p in needed and p not in given and p not in names for p in body.parameters):
            return
        order, in_order = self._order, self._is_in_order()
        writer = Writer({**names, **made} if in_order else names, self._letters(around))
        writer.given = given
        written = [writer.formula(body.results[k]) for k in order]
        if in_order:
            for k, (letters, right) in zip(order, written, strict=True):
                name = Name(self.names[k])
                yield Next(Part(name, tuple(map(Name, letters))) if letters else name), right
        else:  # all at once
            yield Next(Row(tuple(Name(self.names[k]) for k in order))), Row(tuple(right for _, right in written))

    def _letters(self, around: Writer) -> Callable[[Symbol, set[str]], str]:
        """Return a function that gives sizes their letters; the body's own symbols are translated by the loop's operands."""
        sizes: dict[Symbol, Size] = {}
        for parameter, value in zip(self.loop["body"].parameters, self.loop.args, strict=True):
            for inner, outer in zip(parameter.type.shape, value.type.shape, strict=False):
                if (symbol := bare_symbol(inner)) is not None:
                    sizes.setdefault(symbol, outer)

        def letter(of: Symbol, taken: set[str]) -> str:
            found = sizes.get(of)
            symbol = None if found is None else bare_symbol(found)
            if symbol is not None:
                return around.letters(symbol, taken)
            return str(found) if isinstance(found, int) else "n"

        return letter

    def _keeps(self, order: Sequence[int], at: int, carried: Sequence[Node]) -> bool:
        """Return whether a line can come after the lines before: it reads no variable that they change, except their results."""
        results = self.loop["body"].results
        before = {results[k] for k in order[:at]}
        inner = topological([results[order[at]]], stop=lambda node: node in before)
        return not any(carried[k] in inner for k in order[:at]) and results[order[at]] not in carried


def iterations(graph: Graph, naming: Naming) -> dict[Node, Iteration]:
    """The loops of a graph whose variables have names and whose iterations can be written: short, without loops, branches and stores."""
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
        numeric = all(body.results[k].type.dtype.kind in "fc" for k in wanted)
        known = all(name.isidentifier() for name in names.values()) and len(set(names.values())) == len(names) <= MOST
        distinct = len({body.results[k] for k in wanted}) == len(wanted)
        plain = not any(n.op in BLOCKS or n.op in {SET, ADD_AT} for n in body.nodes)
        if numeric and known and distinct and plain and len(body.nodes) <= MOST_NODES:
            found[loop] = Iteration(loop, names, naming.counter(loop) if first else "")
    return found


def _outside(writer: Writer) -> Callable[[Node], Expression | None]:
    """Return the writer of values that a loop reads from outside: numbers, and arrays with names."""

    def write(node: Node) -> Expression | None:
        if not narrow(node).type.shape:
            return writer.write(narrow(node), (), 0)
        return writer.write(node, None, 0) if node in writer.names else None

    return write
