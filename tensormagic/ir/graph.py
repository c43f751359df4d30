"""Closed regions: numbered parameters and results, with sizes in normal form and the guards that must hold when they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensormagic.ir import site
from tensormagic.ir.errors import DataShapeError, GuardError, ShapeError
from tensormagic.ir.lazily import lazily
from tensormagic.ir.node import Node, as_size, topological
from tensormagic.ir.size import (
    Size,
    Symbol,
    atom,
    atoms,
    bare_atom,
    evaluate,
    factors,
    nodes_of,
    without_more,
)
from tensormagic.ir.substituting import substitute as substitute_size

Guard = tuple[Size, str, Size]


_SHAPES = 16  # combinations of shapes whose bindings a graph caches


@dataclass(frozen=True, eq=False)
class Graph:
    """A closed graph.

    Parameters
    ----------
    parameters
        One ``parameter`` node each, in order.
    results
        The nodes that are wanted.
    guards
        Relations of sizes that nothing proves: checked when the graph runs.
    names
        What the parameters are called, for people.
    """

    parameters: tuple[Node, ...]
    results: tuple[Node, ...]
    guards: tuple[Guard, ...] = ()
    names: tuple[str, ...] = field(default=(), compare=False)

    @lazily
    def nodes(self) -> list[Node]:
        """Every node of the graph, operands first; parameters that nothing uses come first."""
        return topological((*self.parameters, *self.checked, *self.results))

    @lazily
    def checked(self) -> tuple[Node, ...]:
        """Return the integer nodes that guards mention."""
        return tuple(dict.fromkeys(n for a, _, b in self.guards for n in (*nodes_of(a), *nodes_of(b))))

    @lazily
    def checks(self) -> tuple[Guard, ...]:
        """The guards that mention nodes: checked during the run, as soon as these are computed."""
        return tuple(g for g in self.guards if nodes_of(g[0]) or nodes_of(g[2]))

    @lazily
    def is_wide(self) -> bool:
        """Return whether sizes it computes may need more than 64 bits: it then runs in Python, whose integers are unbounded."""
        sizes = [n["size"] for n in self.nodes if not n.args and "size" in n.params]
        inner = [v for n in self.nodes for _, v in n.param_items if isinstance(v, Graph)]
        return any(map(_may_be_wide, sizes)) or any(g.is_wide for g in inner)

    @lazily
    def ops(self) -> frozenset[str]:
        """The names of the graph's operations, also of those in graphs inside it."""
        inner = [v for n in self.nodes for _, v in n.param_items if isinstance(v, Graph)]
        return frozenset([n.op.name for n in self.nodes]).union(*[g.ops for g in inner])

    @lazily
    def text(self) -> str:
        """Return the graph as text that :func:`tensormagic.ir.text.parse` reads."""
        from tensormagic.ir.text import show

        return show(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and (self.parameters, self.results, self.guards) == (
            other.parameters,
            other.results,
            other.guards,
        )

    def __hash__(self) -> int:
        return hash((self.parameters, self.results, self.guards))

    def __str__(self) -> str:
        from tensormagic.ir.text import about

        return f"{about(self)}{self.text}"

    __repr__ = __str__

    def with_results(self, results: Iterable[Node]) -> Graph:
        """Return a graph of the same parameters and guards with other results."""
        return Graph(self.parameters, tuple(results), self.guards, self.names)

    def with_nodes(self, nodes: Sequence[Node]) -> Graph:
        """Return a graph of the same parameters with new nodes for the results and, after them, for the nodes of guards."""
        count = len(self.results)
        guards = self.guards_over(dict(zip(self.checked, nodes[count:], strict=True)))
        return Graph(self.parameters, tuple(nodes[:count]), guards, self.names)

    def guards_over(self, known: Mapping[Node, Node]) -> tuple[Guard, ...]:
        """Return the guards with their nodes replaced as ``known`` says."""
        sizes = {n: as_size(known[n]) for n in self.checked if n in known}
        return tuple((substitute_size(a, sizes), r, substitute_size(b, sizes)) for a, r, b in self.guards)  # type: ignore[arg-type]

    def renumbered(self, parameter: Callable[..., Node], parameters: Sequence[Node], results: Sequence[Node]) -> Graph:
        """Return the graph of ``results`` over ``parameters``, numbered in this order, under the guards of this graph."""
        numbered: dict[Node, Node] = {}
        for k, old in sorted(enumerate(parameters), key=by_bounds):
            numbered[old] = parameter(
                k, old.type, bounds_over(old, lambda a: a if isinstance(a, Symbol) else numbered.get(a))
            )
        new = site.substituted([*results, *self.checked], numbered)
        known = {**numbered, **dict(zip(self.checked, new[len(results) :], strict=True))}
        return Graph(tuple(numbered[p] for p in parameters), tuple(new[: len(results)]), self.guards_over(known))

    def bind(self, shapes: Sequence[tuple[int, ...]]) -> dict[Symbol, int]:
        """Return the values of the symbols for parameters of these shapes.

        Raises
        ------
        GuardError
            If the graph was not specialised for shapes of this kind.
        """
        key = tuple(shapes)
        known = self._bound.get(key)
        if known is None:
            known = self._sizes(key)
            if len(self._bound) >= _SHAPES:
                self._bound.clear()
            self._bound[key] = known
        return dict(known)

    @lazily
    def _bound(self) -> dict[tuple[tuple[int, ...], ...], dict[Symbol, int]]:
        """The values of symbols by shapes, cached."""
        return {}

    def _sizes(self, shapes: Sequence[tuple[int, ...]]) -> dict[Symbol, int]:
        sizes: dict[Symbol, int] = {}
        open_checks: list[tuple[Size, int]] = []
        for parameter, shape in zip(self.parameters, shapes, strict=True):
            if len(shape) != parameter.type.ndim:
                raise GuardError(f"an array with {len(shape)} axes where {parameter.type} was captured")
            for size, extent in zip(parameter.type.shape, shape, strict=True):
                symbol = bare_symbol(size)
                if symbol is not None and symbol not in sizes and extent >= symbol.least:
                    sizes[symbol] = extent
                elif size != extent:
                    open_checks.append((size, extent))
        self._check(sizes, open_checks)
        return sizes

    def _check(self, sizes: dict[Symbol, int], open_checks: list[tuple[Size, int]]) -> None:
        for size, extent in open_checks:
            if any(a not in sizes for a in atoms(size)):
                raise GuardError(f"a size is {extent} where {size}, which is at least 2, was captured")
            expected = evaluate(size, sizes.__getitem__)
            if expected != extent:
                told = expected if isinstance(size, int) else f"{size} = {expected}"
                raise GuardError(f"a size is {extent} where {told} was expected")
        for guard in self.guards:
            if guard not in self.checks and not holds(guard, sizes.__getitem__):
                left, relation, right = guard
                a, b = evaluate(left, sizes.__getitem__), evaluate(right, sizes.__getitem__)
                raise GuardError(f"{left} {relation} {right} does not hold: {a} and {b}")


def holds(guard: Guard, value_of: Callable[[Any], int]) -> bool:
    """Return whether a guard holds; ``value_of`` gives the number of each symbol and node."""
    left, relation, right = guard
    a, b = evaluate(left, value_of), evaluate(right, value_of)
    return a == b if relation == "==" else a >= b


NOT_STRETCHED = "A size that depends on data is not broadcast when it happens to be 1: use np.broadcast_to."


def singles(guard: Guard) -> tuple[Size, ...]:
    """Return the sizes that an equation may be about: NumPy may broadcast an axis for which one of them is 1.

    An equation that was solved for a symbol may contain the data-dependent size plus one, or times the length of
    another axis.
    """
    sides = (guard[0], guard[2])
    computed = [s for s in sides if nodes_of(s)]
    return tuple(dict.fromkeys([*sides, *map(without_more, computed), *(f for s in computed for f in factors(s))]))


def check(guard: Guard, value_of: Callable[[Any], int]) -> None:
    """Raise NumPy's error for sizes that do not fit, unless ``guard`` holds."""
    if holds(guard, value_of):
        return
    left, relation, right = guard
    a, b = evaluate(left, value_of), evaluate(right, value_of)
    if relation == "==":
        if any(evaluate(s, value_of) == 1 for s in singles(guard)):
            raise DataShapeError(f"sizes do not fit: {a} and {b}", NOT_STRETCHED)
        raise ShapeError(f"sizes do not fit: {a} and {b}")
    raise ShapeError(f"a size is {a} where it has to be at least {b}")


def checks_after(graph: Graph, nodes: Sequence[Node]) -> dict[Node | None, list[Guard]]:
    """Return the checks of a graph whose ``nodes`` run in this order, by the last node each waits for, or None if it waits for none."""
    order = {n: k for k, n in enumerate(nodes)}
    table: dict[Node | None, list[Guard]] = {}
    for guard in graph.checks:
        waits = [n for n in (*nodes_of(guard[0]), *nodes_of(guard[2])) if n in order]
        table.setdefault(max(waits, key=order.__getitem__, default=None), []).append(guard)
    return table


def _may_be_wide(size: Size) -> bool:
    terms = () if isinstance(size, int) else size.terms
    degrees = [sum(power for a, power in monomial if isinstance(a, Node)) for monomial, _ in terms]
    return any(abs(c) >= _LARGE for _, c in terms) or any(d >= _DEGREE for d in degrees)


_LARGE, _DEGREE = 2**31, 3  # a factor, and the number of data-dependent integers that are multiplied


@dataclass(frozen=True, eq=False)
class sizer:  # noqa: N801 (made for each run, called like a function)
    """Evaluates sizes in one run.

    Parameters
    ----------
    symbols
        The numbers of the symbols.
    values
        The values that are computed so far, by node.
    """

    symbols: Mapping[Symbol, int]
    values: Mapping[Any, Any]

    def __call__(self, size: Size) -> int:
        return size if isinstance(size, int) else evaluate(size, self.atom)

    def atom(self, a: Any) -> int:
        """Return the number of a symbol or a node."""
        return self.symbols[a] if isinstance(a, Symbol) else int(self.values[a])


def bare_symbol(size: Size) -> Symbol | None:
    """Return the symbol that ``size`` consists of, or None if it is anything else."""
    found = bare_atom(size)
    return found if isinstance(found, Symbol) else None


def by_bounds(item: tuple[int, Node]) -> tuple[bool, int]:
    """Return a sort key that puts leaves with known bounds last, since these bounds may mention other leaves."""
    return "within" in item[1].params, item[1].serial


def bounds_over(leaf: Node, new: Callable[[Any], Any]) -> tuple[Size | None, Size | None] | None:
    """Return the known bounds of a leaf's value, rewritten by ``new``, a map of symbols and nodes, or None if there are none."""
    ends: list[Size | None] = []
    for end in leaf.params.get("within") or ():
        found = {} if end is None else {a: new(a) for a in atoms(end)}
        sizes = {a: atom(v) if isinstance(v, Node | Symbol) else v for a, v in found.items()}
        ends.append(None if end is None or None in found.values() else substitute_size(end, sizes))
    return (ends[0], ends[1]) if any(e is not None for e in ends) else None


def guards_of(node: Node) -> tuple[Guard, ...]:
    """Return the conditions on sizes that a node requires."""
    if node.guards is None:
        node.guards = tuple(node.op.guards(node))
    return node.guards


def following(graph: Graph, roots: Iterable[Node]) -> set[Node]:
    """Return ``roots`` and all nodes that depend on them."""
    found = set(roots)
    for node in graph.nodes:
        if any(n in found for n in node.needs):
            found.add(node)
    return found


def graphs_in(values: Iterable[Any]) -> Iterator[Graph]:
    """Yield the graphs among the parameters of a node."""
    for value in values:
        if isinstance(value, Graph):
            yield value
        elif type(value) is tuple:
            yield from graphs_in(value)


def every_node(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph, and those of graphs inside them, in an order that is the same for a graph read from its text."""
    for node in graph.nodes:
        yield node
        for inner in graphs_in(node.params.values()):
            yield from every_node(inner)
