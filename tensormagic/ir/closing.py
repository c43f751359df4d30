"""Closes graphs: turns the nodes below some results into a graph with numbered parameters and named sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from tensormagic.ir import site
from tensormagic.ir.bounds import floor_of_nodes
from tensormagic.ir.errors import DataShapeError, GuardError, ShapeError
from tensormagic.ir.graph import NOT_STRETCHED, Graph, Guard, bare_symbol, bounds_over, by_bounds, guards_of
from tensormagic.ir.node import Node, as_size, make, moves, topological
from tensormagic.ir.size import (
    Dim,
    Size,
    Symbol,
    atom,
    atoms,
    hint,
    is_at_least,
    nodes_of,
    size_text,
)
from tensormagic.ir.substituting import substitute as substitute_size
from tensormagic.ir.type import Type


@dataclass(frozen=True)
class Closed:
    """A closed graph, the node that each parameter stands for, and the new node that each old node became.

    Parameters
    ----------
    before
        Guards that depend on values computed before the graph runs: no graph checks them.
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
    """Return the graph below ``results``, cut at its leaves, which are numbered, with the sizes in normal form.

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
    for index, leaf in sorted(enumerate(cut), key=by_bounds):
        within = bounds_over(leaf, replacement.get)
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
    """The replacement of sizes when a graph is closed.

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
        """Return a parameter of a node with its sizes replaced."""
        if isinstance(value, Dim):
            for a in atoms(value):  # an array that the graph does not read has this size: it stays as seen at capture
                if a not in self.replacement and isinstance(a, Symbol) and a.hint is not None:
                    self.replacement[a] = a.hint
            return substitute_size(value, self.replacement)
        return tuple(self.of(v) for v in value) if type(value) is tuple else value

    def type(self, t: Type) -> Type:
        """Return a type with its sizes replaced."""
        return Type(t.dtype, self.of(t.shape), t.form)

    def learn(self, old: Node, new: Node) -> None:
        """Replace ``old`` by ``new`` in sizes from now on."""
        size = None if old in self.given else as_size(new)
        if size is not None:
            self.replacement[old] = size


def _settled(guard: Guard, sizes: _Sizes) -> Guard:
    """Return a guard with its sizes replaced.

    Raise ShapeError if a data-dependent equation turns out not to depend on data and contradicts the sizes seen at
    capture.
    """
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
    """Return the nodes down to the leaves, and the leaves; nodes that only compute a size that some leaf's shape has are left out."""
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


def _is_known(guard: Guard, known: Mapping[Any, Size]) -> bool:
    """Return whether a guard is about nodes of the graph; otherwise it is about the size of a value computed earlier."""
    return all(n in known for n in (*nodes_of(guard[0]), *nodes_of(guard[2])))


def _told(guard: Guard, equations: Sequence[Guard], known: Mapping[Any, Size]) -> Guard:
    """Return a guard about earlier values, rewritten with the sizes of leaves that have the same sizes."""
    left, relation, right = guard
    for size, _, own in () if _is_known(guard, known) else equations:
        if not _is_known((size, "==", size), known):
            left, right = (_fewer(side, size, own) for side in (left, right))
    return left, relation, right


def _fewer(side: Size, size: Size, own: Size) -> Size:
    """Return one side of a guard with ``own`` in place of ``size`` if it then mentions fewer nodes, else the side itself."""
    count = len(nodes_of(side))
    return next((s for s in (side - size + own, side + size - own) if len(nodes_of(s)) < count), side)


def _rebuild(node: Node, mapping: dict[Node, Node], sizes: _Sizes) -> Node:
    if node.op.kind == "move" and "serial" in node.params:  # the identity of a named value does not matter here
        return mapping[node.args[0]]
    params = {k: sizes.of(v) for k, v in node.param_items}
    args = [mapping[a] for a in node.args]
    if not args:
        return make(node.op, (), type=sizes.type(node.type), **params)
    new = make(node.op, args, **params)
    same = "shape" in node.params and moves(node) and new.type.shape == args[0].type.shape
    return args[0] if same else new  # sizes that were found equal make the broadcast superfluous


def _open(leaves: Sequence[Node]) -> tuple[dict[Node, Type], list[Guard]]:
    """Return the leaves' types with a symbol for each symbolic axis, and equations between these symbols and the old sizes."""
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
    """Return equations that set symbols that no leaf has to their sizes at capture."""
    known = {a for t in types for s in t.shape for a in atoms(s)} | {a for g in equations for a in atoms(g[0])}
    found = dict.fromkeys(a for left, _, right in relations for a in (*atoms(left), *atoms(right)) if a not in known)
    return [(atom(a), "==", a.hint) for a in found if isinstance(a, Symbol) and a.hint is not None]


def _unify(
    given: Sequence[Guard], relations: Sequence[Guard], types: Sequence[Type]
) -> tuple[dict[Any, Size], list[Guard]]:
    """Return the solution of the equations for symbols, and the guards that are left.

    The remaining symbols are renamed ``n0``, ``n1``, … in order of appearance. Equations in ``given`` hold: a node in
    them is the size of an array that is passed in, and is not computed again.
    """
    solved: dict[Any, Size] = {}
    rest: list[Guard] = []
    order = {a: k for k, a in enumerate(a for t in types for s in t.shape for a in atoms(s))}
    for known, (left, relation, right) in [*((True, g) for g in given), *((False, g) for g in relations)]:
        if left == right:
            continue
        difference = substitute_size(left, solved) - substitute_size(right, solved)
        of_data = bool(nodes_of(left) or nodes_of(right))
        if (
            of_data and not known
        ):  # a data-dependent number is not set equal to a size of an array that the graph does not read
            difference = _with_seen(difference, order)
        if relation == ">=":
            rest += _remaining((left, relation, right), difference)
            continue
        if difference == 0:
            continue
        if of_data and hint(difference) not in {None, 0}:
            _differ(substitute_size(left, solved), substitute_size(right, solved))
        target = _solvable(difference, order, known)
        if target is None:
            rest += [] if known and nodes_of(difference) else [_without_nodes(left, relation, right)]
            continue
        symbol, value = target
        solved |= {a: substitute_size(s, {symbol: value}) for a, s in solved.items() if symbol in atoms(s)}
        solved[symbol] = value
    canonical = _canonical(order, solved, rest)
    return {a: substitute_size(s, canonical) for a, s in solved.items()} | canonical, rest


def _without_nodes(left: Size, relation: str, right: Size) -> Guard:
    """Return an equation without its data-dependent terms, if these are the same on both sides; else the equation itself."""
    difference = left - right
    says = (nodes_of(left) or nodes_of(right)) and not nodes_of(difference)
    return (difference, relation, 0) if says else (left, relation, right)


def _with_seen(size: Size, order: Mapping[Any, int]) -> Size:
    """Return a size with the numbers seen at capture in place of symbols of arrays that the graph does not read."""
    seen = {a: a.hint for a in atoms(size) if isinstance(a, Symbol) and a not in order}
    return substitute_size(size, {a: number for a, number in seen.items() if number is not None})


def _differ(left: Size, right: Size) -> NoReturn:
    """Raise the error for two sizes that had to be equal and differ for all data."""
    said = f"sizes do not fit: {size_text(left)} and {size_text(right)}"
    if nodes_of(left) or nodes_of(right):
        raise DataShapeError(said, NOT_STRETCHED)
    raise ShapeError(said)


def _remaining(guard: Guard, difference: Size) -> list[Guard]:
    """Return what is left to check of ``difference >= 0``: nothing if it holds, a bound without nodes if that decides it."""
    if is_at_least(difference, 0):
        return []
    simpler = floor_of_nodes(difference) if nodes_of(difference) else None
    return [guard] if simpler is None or (hint(simpler) or 0) < 0 else [(simpler, ">=", 0)]


def _canonical(order: Mapping[Any, int], solved: Mapping[Any, Size], rest: Sequence[Guard]) -> dict[Any, Size]:
    """Return new names for the remaining symbols, in order of appearance; symbols of arrays that the graph does not read become numbers."""
    kept = [a for a in order if a not in solved]
    sizes = [*(substitute_size(s, solved) for left, _, right in rest for s in (left, right)), *solved.values()]
    free = [a for s in sizes for a in atoms(s) if a not in order and isinstance(a, Symbol)]
    names: dict[Any, Size] = {
        a: atom(Symbol(f"n{k}" if a.least == 2 else f"any{k}", least=a.least))
        for k, a in enumerate(dict.fromkeys([*kept, *free]))
    }
    return names | {a: a.hint for a in free if a.hint is not None}


def _solvable(difference: Size, order: Mapping[Any, int], given: bool) -> tuple[Any, Size] | None:
    """Return an atom that ``difference == 0`` can be solved for, and its solution, or None; a node only if the equation is ``given``."""
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
