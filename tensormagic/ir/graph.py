"""Closed regions: numbered parameters and results, with sizes in normal form and the guards that must hold when they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tensormagic.ir import site
from tensormagic.ir.errors import GuardError
from tensormagic.ir.node import Node, make, topological
from tensormagic.ir.type import Dim, Size, Symbol, Type, atom, atoms, evaluate, lower_bound, substitute

Guard = tuple[Size, str, Size]


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

    @cached_property
    def nodes(self) -> list[Node]:
        """Every node, operands first; parameters that nothing uses come first."""
        return topological((*self.parameters, *self.results))

    @cached_property
    def text(self) -> str:
        """The graph as text that :func:`tensormagic.ir.text.parse` reads."""
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
        return self.text

    __repr__ = __str__

    def with_results(self, results: Iterable[Node]) -> Graph:
        """The same parameters and guards with other results."""
        return Graph(self.parameters, tuple(results), self.guards, self.names)

    def bind(self, shapes: Sequence[tuple[int, ...]]) -> dict[Symbol, int]:
        """The numbers that the symbols are for parameters of these shapes.

        Raises
        ------
        GuardError
            Where the shapes are not of the kind that the graph was specialised for.
        """
        sizes: dict[Symbol, int] = {}
        open_checks: list[tuple[Size, int]] = []
        for parameter, shape in zip(self.parameters, shapes, strict=True):
            if len(shape) != parameter.type.ndim:
                raise GuardError(f"an array with {len(shape)} axes where {parameter.type} was captured")
            for size, extent in zip(parameter.type.shape, shape, strict=True):
                symbol = bare_symbol(size)
                if symbol is not None and symbol not in sizes and extent > 1:
                    sizes[symbol] = extent
                elif size != extent:
                    open_checks.append((size, extent))
        self._check(sizes, open_checks)
        return sizes

    def _check(self, sizes: dict[Symbol, int], open_checks: list[tuple[Size, int]]) -> None:
        for size, extent in open_checks:
            if any(a not in sizes for a in atoms(size)):
                raise GuardError(f"a size is {extent} where {size}, which is at least 2, was captured")
            if evaluate(size, sizes.__getitem__) != extent:
                raise GuardError(f"a size is {extent} where {size} = {evaluate(size, sizes.__getitem__)} was expected")
        for left, relation, right in self.guards:
            a, b = evaluate(left, sizes.__getitem__), evaluate(right, sizes.__getitem__)
            if not (a == b if relation == "==" else a >= b):
                raise GuardError(f"{left} {relation} {right} does not hold: {a} and {b}")


def bare_symbol(size: Size) -> Symbol | None:
    """The symbol that ``size`` is, where it is just one."""
    if isinstance(size, Dim) and len(size.terms) == 1:
        monomial, coefficient = size.terms[0]
        if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1 and isinstance(monomial[0][0], Symbol):
            return monomial[0][0]
    return None


@dataclass(frozen=True)
class Closed:
    """A graph, what stands behind each parameter, and where each old node went."""

    graph: Graph
    leaves: tuple[Node, ...]
    mapping: dict[Node, Node]


def close(
    results: Iterable[Node],
    is_leaf: Callable[[Node], bool],
    parameter: Callable[[int, Type], Node],
    leaves: Iterable[Node] = (),
    extra_guards: Iterable[Guard] = (),
) -> Closed:
    """Cut the graph below ``results`` at its leaves, number these, and bring the sizes to normal form.

    Parameters
    ----------
    results
        The nodes that are wanted.
    is_leaf
        Which nodes become parameters.
    parameter
        Makes a parameter node.
    leaves
        Nodes that become the first parameters in any case, in this order.
    extra_guards
        Relations of sizes that were used at capture beside those that the nodes imply.
    """
    results = list(results)
    known = list(dict.fromkeys(leaves))
    nodes = topological([*known, *results], stop=lambda n: n in known or is_leaf(n))
    cut = list(dict.fromkeys([*known, *(n for n in nodes if is_leaf(n))]))
    opened, equations = _open(cut)
    guards = [g for n in nodes if n not in opened for g in _guards_of(n)]
    replacement, rest = _unify([*equations, *guards, *extra_guards], list(opened.values()))

    def resize(value: Any) -> Any:
        if isinstance(value, Dim):
            for a in atoms(value):  # the size of an array that the graph itself does not read: as it was
                if a not in replacement and getattr(a, "hint", None) is not None:
                    replacement[a] = a.hint
            return substitute(value, replacement)
        return tuple(resize(v) for v in value) if type(value) is tuple else value

    mapping: dict[Node, Node] = {}
    for index, leaf in enumerate(cut):
        t = opened[leaf]
        mapping[leaf] = parameter(index, Type(t.dtype, resize(t.shape), t.form))
    for node in nodes:
        if node not in mapping:
            mapping[node] = _rebuild(node, mapping, resize)
        for place in site.of(node):
            site.record(mapping[node], place)
    residual = tuple(dict.fromkeys((resize(a), r, resize(b)) for a, r, b in rest))
    names = tuple(str(leaf.params.get("source", f"value{k}")) for k, leaf in enumerate(cut))
    graph = Graph(tuple(mapping[leaf] for leaf in cut), tuple(mapping[r] for r in results), residual, names)
    return Closed(graph, tuple(cut), mapping)


def _rebuild(node: Node, mapping: dict[Node, Node], resize: Callable[[Any], Any]) -> Node:
    params = {k: resize(v) for k, v in node.params.items()}
    args = [mapping[a] for a in node.args]
    if node.args:
        new = make(node.op, args, **params)
        same = node.op.name in {"broadcast", "reshape"} and new.type.shape == args[0].type.shape
        return args[0] if same else new  # sizes that were found equal leave nothing to stretch
    t = node.type
    return make(node.op, (), type=Type(t.dtype, resize(t.shape), t.form), **params)


def _guards_of(node: Node) -> list[Guard]:
    find = getattr(node.op, "guards", None)
    return find(node) if find else []


def _open(leaves: Sequence[Node]) -> tuple[dict[Node, Type], list[Guard]]:
    """Every symbolic axis of every leaf as a symbol of its own, and what that symbol is equal to."""
    opened: dict[Node, Type] = {}
    equations: list[Guard] = []
    used: set[Symbol] = set()
    for index, leaf in enumerate(leaves):
        shape: list[Size] = []
        for axis, size in enumerate(leaf.type.shape):
            symbol = bare_symbol(size)
            if isinstance(size, int) or (symbol is not None and symbol not in used):
                shape.append(size)
                used |= {symbol} if symbol else set()
            else:
                own = atom(Symbol(f"leaf{index}.{axis}"))
                shape.append(own)
                equations.append((size, "==", own))
        opened[leaf] = Type(leaf.type.dtype, tuple(shape), leaf.type.form)
    return opened, equations


def _unify(relations: Sequence[Guard], types: Sequence[Type]) -> tuple[dict[Any, Size], list[Guard]]:
    """Solve equations for symbols; name the symbols that are left ``n0``, ``n1``, … in order of appearance."""
    solved: dict[Any, Size] = {}
    rest: list[Guard] = []
    order = {a: k for k, a in enumerate(a for t in types for s in t.shape for a in atoms(s))}
    for left, relation, right in relations:
        difference = substitute(left, solved) - substitute(right, solved)
        if relation == ">=":
            bound = lower_bound(difference)
            if bound is None or bound < 0:
                rest.append((left, relation, right))
            continue
        if difference == 0:
            continue
        target = _solvable(difference, order)
        if target is None:
            rest.append((left, relation, right))
            continue
        symbol, value = target
        solved = {a: substitute(s, {symbol: value}) for a, s in solved.items()} | {symbol: value}
    kept = [a for a in order if a not in solved]
    free = [a for left, _, right in rest for s in (left, right) for a in atoms(substitute(s, solved)) if a not in order]
    canonical: dict[Any, Size] = {a: atom(Symbol(f"n{k}")) for k, a in enumerate(dict.fromkeys([*kept, *free]))}
    canonical |= {
        a: a.hint for a in free if getattr(a, "hint", None) is not None
    }  # of an array that the graph does not read: as it was
    replacement = {a: substitute(s, canonical) for a, s in solved.items()} | canonical
    return replacement, rest


def _solvable(difference: Size, order: dict[Any, int]) -> tuple[Symbol, Size] | None:
    """The last symbol that stands alone and with a unit factor in ``difference``, and what makes that zero."""
    if isinstance(difference, int):
        raise GuardError("sizes that were taken for equal are not")
    found: tuple[int, Symbol, Size] | None = None
    for monomial, coefficient in difference.terms:
        if len(monomial) != 1 or monomial[0][1] != 1 or abs(coefficient) != 1 or not isinstance(monomial[0][0], Symbol):
            continue
        symbol = monomial[0][0]
        value = (difference - coefficient * atom(symbol)) * -coefficient
        if symbol in atoms(value):
            continue
        rank = order.get(symbol, len(order))
        if found is None or rank > found[0]:
            found = (rank, symbol, value)
    return (found[1], found[2]) if found else None
