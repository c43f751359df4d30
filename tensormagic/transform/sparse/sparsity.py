"""The structure of a linear map that a graph computes: which entries of its input each element of its results depends on.

The graph is followed at its actual sizes, operation by operation, with a set of columns for each element. Where an
operation has no rule of its own, or an index is not known, every element depends on everything that any of them
depends on: the structure may contain too much, and never too little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.ir.errors import DifferentiationError, TensorError
from tensormagic.ir.graph import Graph, sizer
from tensormagic.ir.node import Node, topological
from tensormagic.ir.operation import Operation
from tensormagic.ir.size import Size, Symbol, atoms, evaluate
from tensormagic.ops.leaf import PARAMETER
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.regions.control import CALL, CHECKPOINT, COND, CUSTOM, GRAD, LOOP, WHILE
from tensormagic.ops.reverse.tape import is_tape
from tensormagic.transform.sparse.dependence import EVERYTHING, Codes, Sets
from tensormagic.transform.sparse.structures import BY_KIND, RULES, Pool, pooled

UNKNOWN: Any = object()  # a value that depends on what is differentiated
_UNROLLED = 100_000  # nodes in all iterations of a loop that is followed iteration by iteration
_ITERATIONS = 8  # iterations of other loops; dependences that still grow after these become EVERYTHING
Structure = Codes | Pool | None
Thunk = Callable[[], Any]


class Frame:
    """One closed graph at actual sizes.

    Parameters
    ----------
    graph
        The graph.
    sets
        The sets of columns.
    shapes
        The shapes of its parameters.
    structures
        What each parameter depends on.
    values
        The value of each parameter, computed on demand: ``UNKNOWN`` for one that is not fixed.
    """

    def __init__(
        self,
        graph: Graph,
        sets: Sets,
        shapes: Sequence[tuple[int, ...]],
        structures: Sequence[Structure],
        values: Sequence[Thunk],
    ) -> None:
        self.graph, self.sets = graph, sets
        self.sizes = graph.bind(shapes)
        self.found: dict[Node, Any] = dict(zip(graph.parameters, structures, strict=True))
        self.thunks = dict(zip(graph.parameters, values, strict=True))
        self.known: dict[Node, Any] = {}

    def run(self) -> list[Structure]:
        """Return what each result depends on."""
        for node in self.graph.nodes:
            if node not in self.found:
                moving = any(self.found.get(a) is not None for a in node.args)
                self.found[node] = self._of(node) if moving else None
        return [self.found[r] for r in self.graph.results]

    def _of(self, node: Node) -> Any:
        if node.op is ITEM:
            group = self.found[node.args[0]]
            return group[node["index"]] if isinstance(group, tuple) else group
        region = _REGIONS.get(node.op)
        if region is not None:
            ends = region(self, node)
            return tuple(ends) if len(node.types) > 1 else ends[0]
        rule = RULES.get(node.op) or BY_KIND.get(node.op.kind)
        codes = rule(self, node) if rule is not None else None
        return self.all_of(node) if codes is None else codes

    # questions of rules

    def shape(self, node: Node) -> tuple[int, ...]:
        """Return the shape of a node's value."""
        return tuple(self.size(s) for s in node.type.shape)

    def size(self, size: Size) -> int:
        """Return the number that a size is.

        Raises
        ------
        DifferentiationError
            If it depends on what is differentiated.
        """
        found = self.position(size)
        if found is None:
            raise DifferentiationError(
                "the structure of a derivative whose sizes depend on the argument is not known before it is computed",
                "Leave out sparse=True.",
            )
        return found

    def position(self, size: Size) -> int | None:
        """Return the number that a size is, or None if it is unknown."""
        if isinstance(size, int):
            return size
        found = [self.sizes[a] if isinstance(a, Symbol) else self.value(a) for a in atoms(size)]
        if any(v is UNKNOWN for v in found):
            return None
        return evaluate(size, lambda a: self.sizes[a] if isinstance(a, Symbol) else int(self.value(a)))

    def codes(self, node: Node) -> Codes:
        """Return for each element of an array the code of what it depends on."""
        found = self.found.get(node)
        shape = self.shape(node)
        if found is None:
            return np.zeros(shape, np.int64)
        return np.full(shape, pooled(self.sets, [found])) if isinstance(found, Pool) else found

    def all_of(self, node: Node) -> Any:
        """Return the structure in which every element (or tape) depends on all that the operands depend on."""
        code = pooled(self.sets, [self.found.get(a) for a in node.args])
        ends = [Pool({None: np.asarray(code)}) if t.form == "tape" else self._full(t.shape, code) for t in node.types]
        return tuple(ends) if len(node.types) > 1 else ends[0]

    def _full(self, shape: Sequence[Size], code: int) -> Codes:
        return np.full(tuple(self.size(s) for s in shape), code, np.int64)

    def value(self, node: Node) -> Any:
        """Return the value of a node, or ``UNKNOWN``."""
        for n in topological([node], stop=self.known.__contains__):
            if n not in self.known:
                self.known[n] = self._value(n)
        return self.known[node]

    def _value(self, node: Node) -> Any:
        if node in self.thunks:
            return self.thunks[node]()
        if self.found.get(node) is not None:
            return UNKNOWN
        values = [self.known.get(a, UNKNOWN) for a in node.needs]
        if any(v is UNKNOWN for v in values) or node.op is PARAMETER:
            return UNKNOWN
        try:
            with np.errstate(all="ignore"):
                given = [self.known[a] for a in node.args]
                return node.op.evaluate(node, given, sizer(self.sizes, self.known))
        except (TensorError, ArithmeticError, ValueError, IndexError, TypeError):
            return UNKNOWN  # the branch is not taken


# regions --------------------------------------------------------------------------------------------------------------


def _inner(
    frame: Frame, graph: Graph, operands: Sequence[Node], structures: Sequence[Structure], values: Sequence[Thunk]
) -> Frame:
    shapes = [() if is_tape(a) else frame.shape(a) for a in operands]
    return Frame(graph, frame.sets, shapes, structures, values)


def _given(frame: Frame, operands: Sequence[Node]) -> tuple[list[Structure], list[Thunk]]:
    return [frame.found.get(a) for a in operands], [lambda a=a: frame.value(a) for a in operands]


def _call(frame: Frame, node: Node) -> list[Structure]:
    return _inner(frame, node["graph"], node.args, *_given(frame, node.args)).run()


def _expanded(frame: Frame, node: Node) -> list[Structure]:
    return _call(frame, GRAD.expand(node))


def _cond(frame: Frame, node: Node) -> list[Structure]:
    operands = node.args[1:]
    both = [_inner(frame, node[name], operands, *_given(frame, operands)).run() for name in ("then", "otherwise")]
    return [joined(frame.sets, a, b) for a, b in zip(*both, strict=True)]


def _loop(frame: Frame, node: Node) -> list[Structure]:
    count, *operands = node.args
    iterations = frame.value(count)
    if iterations is UNKNOWN or int(iterations) * len(node["body"].nodes) > _UNROLLED:
        return _closure(frame, node, operands, 1)
    body, carries = node["body"], node["carries"]
    structures, values = _given(frame, operands)
    for k in range(int(iterations)):
        iteration = _inner(frame, body, [count, *operands], [None, *structures], [lambda k=k: k, *values])
        structures[:carries] = iteration.run()
        values[:carries] = [_carried(iteration, r, body, values) for r in body.results]
    return structures[:carries]


def _carried(iteration: Frame, result: Node, body: Graph, values: Sequence[Thunk]) -> Thunk:
    """Return the value of a carry after an iteration, if it is unchanged or an integer, else unknown."""
    if result in body.parameters[1:]:
        return values[body.parameters.index(result) - 1]
    if result.type.dtype.kind not in "biu":
        return lambda: UNKNOWN
    value = iteration.value(result)
    return lambda: value


def _while(frame: Frame, node: Node) -> list[Structure]:
    return _closure(frame, node, node.args, 0)


def _closure(frame: Frame, node: Node, operands: Sequence[Node], first: int) -> list[Structure]:
    """Return dependences that hold for every iteration: those of one iteration, repeated until nothing is added."""
    body, carries = node["body"], node["carries"]
    structures, values = _given(frame, operands)
    own = body.parameters[first:]
    fixed = [k >= carries or body.results[k] is own[k] for k in range(len(own))]
    values = [v if f else lambda: UNKNOWN for v, f in zip(values, fixed, strict=True)]
    extra = node.args[:first]
    for iteration in range(_ITERATIONS + len(own) + 2):
        ends = _inner(
            frame, body, [*extra, *operands], [None] * first + structures, [lambda: UNKNOWN] * first + values
        ).run()
        grown = [joined(frame.sets, a, b) for a, b in zip(structures, ends, strict=False)]
        changed = [weight(frame.sets, a) != weight(frame.sets, b) for a, b in zip(grown, structures, strict=False)]
        if not any(changed):
            break
        structures[:carries] = [
            _widened(g) if c and iteration >= _ITERATIONS else g for g, c in zip(grown, changed, strict=True)
        ]
    return structures[:carries]


def _widened(structure: Structure) -> Structure:
    if isinstance(structure, Pool):
        return Pool({None: np.asarray(EVERYTHING)})
    return None if structure is None else np.full_like(structure, EVERYTHING)


def joined(sets: Sets, a: Any, b: Any) -> Any:
    """Return the union of what two arrays, or tapes, depend on."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, Pool) or isinstance(b, Pool):
        return a.joined(sets, b) if isinstance(a, Pool) and isinstance(b, Pool) else Pool({None: _one(sets, a, b)})
    return sets.union(a, b)


def _one(sets: Sets, a: Any, b: Any) -> Codes:
    return np.asarray(pooled(sets, [a, b]))


def weight(sets: Sets, structure: Any) -> int:
    """Return the number of dependences, which grows whenever one is added."""
    if structure is None:
        return 0
    if isinstance(structure, Pool):
        return len(structure.entries) + sum(weight(sets, e) for e in structure.entries.values())
    return int(sets.lengths(structure).sum())


_REGIONS: Mapping[Operation, Callable[[Frame, Node], list[Structure]]] = {
    CALL: _call,
    CHECKPOINT: _call,
    COND: _cond,
    GRAD: _expanded,
    LOOP: _loop,
    WHILE: _while,
}


# whole graphs ---------------------------------------------------------------------------------------------------------


def structure(graph: Graph, moving: Sequence[int], values: Sequence[Any]) -> tuple[Any, set[int]]:
    """Return the structure of the results of ``graph``, which are linear in some parameters, and what it was read from.

    Parameters
    ----------
    graph
        The graph.
    moving
        The parameters whose entries are the columns, one parameter after the other.
    values
        A value of each parameter; ``UNKNOWN`` with a shape, as ``(UNKNOWN, shape)``, for those that are not fixed.

    Returns
    -------
    tuple
        A CSR matrix of bools, with a row for each element of each result; and the numbers of the parameters whose
        values it depends on.
    """
    import scipy.sparse

    shapes = [v[1] if isinstance(v, tuple) else np.shape(v) for v in values]
    counts = [int(np.prod(shapes[k])) for k in moving]
    sets = Sets(sum(counts))
    starts: dict[int, Structure] = {}
    for k, first, count in zip(moving, np.cumsum([0, *counts]), counts, strict=False):
        starts[k] = sets.single(int(first), count).reshape(shapes[k])
    read: set[int] = set()

    def look(k: int) -> Any:
        if isinstance(values[k], tuple):
            return UNKNOWN
        read.add(k)
        return values[k]

    thunks = [lambda k=k: look(k) for k in range(len(values))]
    frame = Frame(graph, sets, shapes, [starts.get(k) for k in range(len(values))], thunks)
    frame.run()
    codes = [frame.codes(r).ravel() for r in graph.results]
    every = np.concatenate(codes) if codes else np.zeros(0, np.int64)
    lengths = sets.lengths(every)
    owners, columns = sets.members(every)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    pattern = scipy.sparse.csr_array((np.ones(owners.size, bool), columns, ends), shape=(every.size, sets.columns))
    return pattern, read


def mentions_custom(graph: Graph) -> bool:
    """Return whether ``graph`` has a derivative defined by the user: a second derivative need not be symmetric then."""
    inner = [v for n in graph.nodes for v in n.params.values() if isinstance(v, Graph)]
    return any(n.op is CUSTOM for n in graph.nodes) or any(map(mentions_custom, inner))
