"""Closed regions: numbered parameters and results, with sizes in normal form and the guards that must hold when they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tensormagic.ir import site
from tensormagic.ir.bounds import floor_of_nodes
from tensormagic.ir.errors import DataShapeError, GuardError, ShapeError
from tensormagic.ir.lazily import lazily
from tensormagic.ir.node import Node, as_size, make, moves, topological
from tensormagic.ir.size import (
    Dim,
    Size,
    Symbol,
    atom,
    atoms,
    bare_atom,
    evaluate,
    factors,
    hint,
    is_at_least,
    nodes_of,
    size_text,
    without_more,
)
from tensormagic.ir.size import substitute as substitute_size
from tensormagic.ir.type import Type

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

    @lazily
    def nodes(self) -> list[Node]:
        """Every node, operands first; parameters that nothing uses come first."""
        return topological((*self.parameters, *self.checked, *self.results))

    @lazily
    def checked(self) -> tuple[Node, ...]:
        """The integer nodes that guards mention."""
        return tuple(dict.fromkeys(n for a, _, b in self.guards for n in (*nodes_of(a), *nodes_of(b))))

    @lazily
    def checks(self) -> tuple[Guard, ...]:
        """The guards that mention nodes: checked on the way, as soon as these are computed."""
        return tuple(g for g in self.guards if nodes_of(g[0]) or nodes_of(g[2]))

    @lazily
    def is_wide(self) -> bool:
        """Whether it computes sizes that may need more than 64 bits: then it is left to Python, whose integers have them."""
        sizes = [n["size"] for n in self.nodes if not n.args and "size" in n.params]
        inner = [v for n in self.nodes for _, v in n.param_items if isinstance(v, Graph)]
        return any(map(_may_be_wide, sizes)) or any(g.is_wide for g in inner)

    @lazily
    def ops(self) -> frozenset[str]:
        """The names of its operations, those of graphs in it too."""
        inner = [v for n in self.nodes for _, v in n.param_items if isinstance(v, Graph)]
        return frozenset([n.op.name for n in self.nodes]).union(*[g.ops for g in inner])

    @lazily
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
        from tensormagic.ir.text import about

        return f"{about(self)}{self.text}"

    __repr__ = __str__

    def with_results(self, results: Iterable[Node]) -> Graph:
        """The same parameters and guards with other results."""
        return Graph(self.parameters, tuple(results), self.guards, self.names)

    def guards_over(self, known: Mapping[Node, Node]) -> tuple[Guard, ...]:
        """The guards over other nodes."""
        sizes = {n: as_size(known[n]) for n in self.checked if n in known}
        return tuple((substitute_size(a, sizes), r, substitute_size(b, sizes)) for a, r, b in self.guards)  # type: ignore[arg-type]

    def renumbered(self, parameter: Callable[..., Node], parameters: Sequence[Node], results: Sequence[Node]) -> Graph:
        """``results`` over ``parameters``, numbered in this order, under the guards of this graph."""
        numbered: dict[Node, Node] = {}
        for k, old in sorted(enumerate(parameters), key=_by_bounds):
            numbered[old] = parameter(
                k, old.type, _within(old, lambda a: a if isinstance(a, Symbol) else numbered.get(a))
            )
        new = site.substituted([*results, *self.checked], numbered)
        known = {**numbered, **dict(zip(self.checked, new[len(results) :], strict=True))}
        return Graph(tuple(numbered[p] for p in parameters), tuple(new[: len(results)]), self.guards_over(known))

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
    """Whether a guard holds, with ``value_of`` giving the number of each symbol and node."""
    left, relation, right = guard
    a, b = evaluate(left, value_of), evaluate(right, value_of)
    return a == b if relation == "==" else a >= b


NOT_STRETCHED = "A size that depends on data is not broadcast when it happens to be 1: use np.broadcast_to."


def singles(guard: Guard) -> tuple[Size, ...]:
    """The sizes that an equation may be about: where one of them is 1, NumPy may stretch it.

    An equation that was solved for a symbol may say one more than the data-dependent size, or so many times that as
    another axis is long.
    """
    sides = (guard[0], guard[2])
    computed = [s for s in sides if nodes_of(s)]
    return tuple(dict.fromkeys([*sides, *map(without_more, computed), *(f for s in computed for f in factors(s))]))


def check(guard: Guard, value_of: Callable[[Any], int]) -> None:
    """Raise what NumPy raises for sizes that do not fit, where ``guard`` does not hold."""
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
    """The checks of a graph whose ``nodes`` run in this order, by the node that is waited for; None where none is."""
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


_LARGE, _DEGREE = 2**31, 3  # a factor, and how many integers of data are multiplied


@dataclass(frozen=True, eq=False)
class sizer:  # noqa: N801 (made for each run, called like a function)
    """The number that a size is in a run.

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
        """The number of a symbol or a node."""
        return self.symbols[a] if isinstance(a, Symbol) else int(self.values[a])


def bare_symbol(size: Size) -> Symbol | None:
    """The symbol that ``size`` is, where it is just one."""
    found = bare_atom(size)
    return found if isinstance(found, Symbol) else None


@dataclass(frozen=True)
class Closed:
    """A graph, what stands behind each parameter, and where each old node went.

    Parameters
    ----------
    before
        Relations of sizes of which values that were computed before decide whether they hold: no graph checks these.
    """

    graph: Graph
    leaves: tuple[Node, ...]
    mapping: dict[Node, Node]
    before: tuple[Guard, ...] = ()


def close(
    results: Iterable[Node],
    is_leaf: Callable[[Node], bool],
    parameter: Callable[..., Node],
    leaves: Iterable[Node] = (),
    extra_guards: Iterable[Guard] = (),
    *,
    alone: bool = False,
) -> Closed:
    """Cut the graph below ``results`` at its leaves, number these, and bring the sizes to normal form.

    Parameters
    ----------
    results
        The nodes that are wanted.
    is_leaf
        Which nodes become parameters.
    parameter
        Makes a parameter node of its number and type (and of what is known of its value: ``within``).
    leaves
        Nodes that become the first parameters in any case, in this order.
    extra_guards
        Relations of sizes that were used at capture beside those that the nodes imply.
    alone
        Whether the leaves are all that differs when the graph runs again: then arrays of which only the sizes were used have just these.
    """
    results = list(results)
    known = list(dict.fromkeys(leaves))
    nodes, cut = _cut([*known, *results], known, is_leaf)
    opened, equations = _open(cut)
    guards = [g for n in nodes if n not in opened for g in guards_of(n)]
    relations = [*guards, *extra_guards]
    unread = _unread(relations, equations, opened.values()) if alone else []
    replacement, rest = _unify(equations, [*unread, *relations], list(opened.values()))

    sizes = _Sizes(replacement, {a for a in replacement if isinstance(a, Node)})
    mapping: dict[Node, Node] = {}
    for index, leaf in sorted(enumerate(cut), key=_by_bounds):
        within = _within(leaf, replacement.get)
        mapping[leaf] = parameter(index, sizes.type(opened[leaf]), *([within] if within else []))
        sizes.learn(leaf, mapping[leaf])
    for node in nodes:
        if node not in mapping:
            mapping[node] = _rebuild(node, mapping, sizes)
            sizes.learn(node, mapping[node])
        for place in site.of(node):
            site.record(mapping[node], place)
    told = [g for g in (_told(g, equations, replacement) for g in rest) if g[0] != g[2]]
    before = tuple(g for g in told if not _is_known(g, replacement))
    inside = [g for g in told if _is_known(g, replacement)]
    residual = tuple(dict.fromkeys(_settled(g, sizes) for g in inside))
    names = tuple(str(leaf.params.get("source", f"value{k}")) for k, leaf in enumerate(cut))
    graph = Graph(tuple(mapping[leaf] for leaf in cut), tuple(mapping[r] for r in results), residual, names)
    return Closed(graph, tuple(cut), mapping, before)


@dataclass(frozen=True, eq=False)
class _Sizes:
    """What sizes become when a graph is closed.

    Parameters
    ----------
    replacement
        For symbols and nodes the size that stands for them.
    given
        The nodes that an array among the leaves says.
    """

    replacement: dict[Any, Size]
    given: set[Any]

    def of(self, value: Any) -> Any:
        """A parameter of a node with its sizes replaced."""
        if isinstance(value, Dim):
            for a in atoms(value):  # the size of an array that the graph itself does not read: as it was
                if a not in self.replacement and isinstance(a, Symbol) and a.hint is not None:
                    self.replacement[a] = a.hint
            return substitute_size(value, self.replacement)
        return tuple(self.of(v) for v in value) if type(value) is tuple else value

    def type(self, t: Type) -> Type:
        """A type with its sizes replaced."""
        return Type(t.dtype, self.of(t.shape), t.form)

    def learn(self, old: Node, new: Node) -> None:
        """Let ``new`` stand for ``old`` in sizes."""
        size = None if old in self.given else as_size(new)
        if size is not None:
            self.replacement[old] = size


def _settled(guard: Guard, sizes: _Sizes) -> Guard:
    """A guard with its sizes replaced; raises where what data seemed to say does not depend on them, and does not fit what was seen."""
    left, relation, right = guard
    new = sizes.of(left), relation, sizes.of(right)
    if relation == "==" and (nodes_of(left) or nodes_of(right)) and not (nodes_of(new[0]) or nodes_of(new[2])):
        seen = [hint(s) if hint(own) is None else hint(own) for s, own in ((new[0], left), (new[2], right))]
        if None not in seen and seen[0] != seen[1]:
            raise ShapeError(f"sizes do not fit: {seen[0]} and {seen[1]}")
    return new


def _cut(
    roots: Sequence[Node], known: Sequence[Node], is_leaf: Callable[[Node], bool]
) -> tuple[list[Node], list[Node]]:
    """The nodes down to the leaves, and these; what gives a size that an array among the leaves has is not among them."""
    first = set(known)
    given: set[Any] | None = None
    while True:
        skipped = given or set()

        def needs(node: Node, skipped: set[Any] = skipped) -> tuple[Node, ...]:
            return (*node.args, *(s for s in node.sized_by if s not in skipped)) if node.sized_by else node.args

        nodes = topological(roots, lambda n: n in first or is_leaf(n), needs)
        cut = list(dict.fromkeys([*known, *(n for n in nodes if is_leaf(n))]))
        if not any(nodes_of(s) for leaf in cut for s in leaf.type.shape):
            found: set[Any] = set()
        else:
            opened, equations = _open(cut)
            found = {a for a in _unify(equations, [], list(opened.values()))[0] if isinstance(a, Node)}
        if found >= skipped and (given is not None or not found):
            return nodes, cut
        given = found if given is None else found & given


def _by_bounds(item: tuple[int, Node]) -> tuple[bool, int]:
    """An order in which leaves come after those that what is known of their values may mention."""
    return "within" in item[1].params, item[1].serial


def _within(leaf: Node, new: Callable[[Any], Any]) -> tuple[Size | None, Size | None] | None:
    """What is known of a leaf's value, over what ``new`` gives for symbols and nodes; None where that is nothing."""
    ends: list[Size | None] = []
    for end in leaf.params.get("within") or ():
        found = {} if end is None else {a: new(a) for a in atoms(end)}
        sizes = {a: atom(v) if isinstance(v, Node | Symbol) else v for a, v in found.items()}
        ends.append(None if end is None or None in found.values() else substitute_size(end, sizes))
    return (ends[0], ends[1]) if any(e is not None for e in ends) else None


def _is_known(guard: Guard, known: Mapping[Any, Size]) -> bool:
    """Whether a guard is about what the graph computes; what is not, is the size of a value that was computed before."""
    return all(n in known for n in (*nodes_of(guard[0]), *nodes_of(guard[2])))


def _told(guard: Guard, equations: Sequence[Guard], known: Mapping[Any, Size]) -> Guard:
    """A guard with the sizes of arrays among the leaves for what these were computed from, where that is not in the graph."""
    left, relation, right = guard
    for size, _, own in () if _is_known(guard, known) else equations:
        if not _is_known((size, "==", size), known):
            left, right = (_fewer(side, size, own) for side in (left, right))
    return left, relation, right


def _fewer(side: Size, size: Size, own: Size) -> Size:
    """One side of a guard with ``own`` for ``size``, where it mentions fewer nodes then."""
    count = len(nodes_of(side))
    return next((s for s in (side - size + own, side + size - own) if len(nodes_of(s)) < count), side)


def _rebuild(node: Node, mapping: dict[Node, Node], sizes: _Sizes) -> Node:
    if getattr(node.op, "kind", "") == "move" and "serial" in node.params:  # whose value it is decides nothing here
        return mapping[node.args[0]]
    params = {k: sizes.of(v) for k, v in node.param_items}
    args = [mapping[a] for a in node.args]
    if not args:
        return make(node.op, (), type=sizes.type(node.type), **params)
    new = make(node.op, args, **params)
    same = "shape" in node.params and moves(node) and new.type.shape == args[0].type.shape
    return args[0] if same else new  # sizes that were found equal leave nothing to stretch


def guards_of(node: Node) -> tuple[Guard, ...]:
    """What sizes must satisfy for a node to be what it is."""
    if node.guards is None:
        find = getattr(node.op, "guards", None)
        node.guards = tuple(find(node)) if find else ()
    return node.guards


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
                own = atom(Symbol(f"leaf{index}.{axis}", hint(size), 2 if is_at_least(size, 2) else 0))
                shape.append(own)
                equations.append((size, "==", own))
        opened[leaf] = Type(leaf.type.dtype, tuple(shape), leaf.type.form)
    return opened, equations


def _unread(relations: Sequence[Guard], equations: Sequence[Guard], types: Iterable[Type]) -> list[Guard]:
    """That sizes in relations which no leaf has are what they were at capture."""
    known = {a for t in types for s in t.shape for a in atoms(s)} | {a for g in equations for a in atoms(g[0])}
    found = dict.fromkeys(a for left, _, right in relations for a in (*atoms(left), *atoms(right)) if a not in known)
    return [(atom(a), "==", a.hint) for a in found if isinstance(a, Symbol) and a.hint is not None]


def _unify(
    given: Sequence[Guard], relations: Sequence[Guard], types: Sequence[Type]
) -> tuple[dict[Any, Size], list[Guard]]:
    """Solve equations for symbols; name the symbols that are left ``n0``, ``n1``, … in order of appearance.

    What is ``given`` holds: a node in it is what an array that is handed in says, and is not computed again.
    """
    solved: dict[Any, Size] = {}
    rest: list[Guard] = []
    order = {a: k for k, a in enumerate(a for t in types for s in t.shape for a in atoms(s))}
    for known, (left, relation, right) in [*((True, g) for g in given), *((False, g) for g in relations)]:
        if left == right:
            continue
        difference = substitute_size(left, solved) - substitute_size(right, solved)
        if not known and (
            nodes_of(left) or nodes_of(right)
        ):  # a data-dependent number is no size of an array that is not read
            seen = {a: a.hint for a in atoms(difference) if isinstance(a, Symbol) and a not in order}
            difference = substitute_size(difference, {a: size for a, size in seen.items() if size is not None})
        if relation == ">=":
            rest += _remaining((left, relation, right), difference)
            continue
        if difference == 0:
            continue
        if (nodes_of(left) or nodes_of(right)) and hint(difference) not in {None, 0}:
            _differ(substitute_size(left, solved), substitute_size(right, solved))
        target = _solvable(difference, order, known)
        if target is None:
            rest += [] if known and nodes_of(difference) else [(left, relation, right)]
            continue
        symbol, value = target
        solved |= {a: substitute_size(s, {symbol: value}) for a, s in solved.items() if symbol in atoms(s)}
        solved[symbol] = value
    canonical = _canonical(order, solved, rest)
    return {a: substitute_size(s, canonical) for a, s in solved.items()} | canonical, rest


def _differ(left: Size, right: Size) -> NoReturn:
    """Raise what two sizes mean that had to be equal, and differ for all data."""
    said = f"sizes do not fit: {size_text(left)} and {size_text(right)}"
    if nodes_of(left) or nodes_of(right):
        raise DataShapeError(said, NOT_STRETCHED)
    raise ShapeError(said)


def _remaining(guard: Guard, difference: Size) -> list[Guard]:
    """What is left to check of ``difference >= 0``: nothing, where that is known; sizes without nodes, where they decide it."""
    if is_at_least(difference, 0):
        return []
    simpler = floor_of_nodes(difference) if nodes_of(difference) else None
    return [guard] if simpler is None or (hint(simpler) or 0) < 0 else [(simpler, ">=", 0)]


def _canonical(order: Mapping[Any, int], solved: Mapping[Any, Size], rest: Sequence[Guard]) -> dict[Any, Size]:
    """What the symbols are called that are left, in order of appearance; those of arrays that the graph does not read are as they were."""
    kept = [a for a in order if a not in solved]
    sizes = [*(substitute_size(s, solved) for left, _, right in rest for s in (left, right)), *solved.values()]
    free = [a for s in sizes for a in atoms(s) if a not in order and isinstance(a, Symbol)]
    names: dict[Any, Size] = {
        a: atom(Symbol(f"n{k}" if a.least == 2 else f"any{k}", least=a.least))
        for k, a in enumerate(dict.fromkeys([*kept, *free]))
    }
    return names | {a: a.hint for a in free if a.hint is not None}


def _solvable(difference: Size, order: Mapping[Any, int], given: bool) -> tuple[Any, Size] | None:
    """What stands alone and with a unit factor in ``difference``, and what makes that zero: the last symbol, or what is ``given``."""
    if isinstance(difference, int):
        raise GuardError("sizes that were assumed equal are not")
    found: tuple[tuple[int, int], Any, Size] | None = None
    for monomial, coefficient in difference.terms:
        if len(monomial) != 1 or monomial[0][1] != 1 or abs(coefficient) != 1:
            continue
        a = monomial[0][0]
        value = (difference - coefficient * atom(a)) * -coefficient
        if nodes_of(value) or a in atoms(value) or not (isinstance(a, Symbol) or (given and isinstance(a, Node))):
            continue
        rank = (a.least if isinstance(a, Symbol) else 3, order.get(a, len(order)))
        if found is None or rank > found[0]:
            found = (rank, a, value)
    return (found[1], found[2]) if found else None
