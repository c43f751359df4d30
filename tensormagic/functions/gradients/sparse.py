"""Sparse Jacobians and Hessians: columns that share no element of the result are computed in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from tensormagic import session
from tensormagic.capture import context
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.program import Specialisation
from tensormagic.functions.calls.results import numbers_alone
from tensormagic.functions.gradients.closed_functions import Closed, has_derivative
from tensormagic.functions.gradients.derivatives import ArgNums, argument_positions
from tensormagic.functions.gradients.gradient_nodes import normal_form
from tensormagic.functions.gradients.objects import is_object
from tensormagic.functions.reads.left_in_objects import bare
from tensormagic.functions.reads.record import Record
from tensormagic.functions.travel import Made, sealed
from tensormagic.ir.errors import CaptureError, DifferentiationError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, evaluate
from tensormagic.ops.leaf import Source, input_node
from tensormagic.ops.move import lead, reshape, slice_
from tensormagic.ops.op import Tangent
from tensormagic.ops.pointwise import astype
from tensormagic.ops.update import zeros_like
from tensormagic.transform import grad as modes
from tensormagic.transform.batch import batch
from tensormagic.transform.sparse.colouring import column_colours, star_colours, star_places
from tensormagic.transform.sparse.sparsity import UNKNOWN, mentions_custom, structure

Way = Literal["columns", "rows", "symmetric"]
Passes = Callable[["_Plan"], list[Any]]
_KEPT = 8  # plans for the values of one kind that determine a structure
Check = Callable[[Function, Sequence[Node], Sequence[Node]], None]


@dataclass(frozen=True, eq=False)
class _Form:
    """How the matrix is assembled.

    Parameters
    ----------
    build
        Assembles blocks, one for each result and argument.
    dtypes
        The dtypes of the blocks.
    real
        Whether all results are real.
    custom
        Whether a derivative is defined by the user: then second derivatives need not be symmetric.
    """

    build: Callable[[list[list[Any]]], Any]
    dtypes: list[list[Any]]
    real: bool
    custom: bool


@dataclass(frozen=True, eq=False)
class _Plan:
    """How the matrix is computed for one kind of call.

    Parameters
    ----------
    read
        The values that the structure was read from.
    pattern
        The structure, as a CSR matrix of bools.
    way
        What the passes are along: columns, by forward mode; rows, by reverse mode; columns of a symmetric matrix.
    colours
        The colour of each column (or row).
    places
        For each entry, its place in the concatenated results of all passes.
    rows, columns
        The offsets of the blocks, one for each result and for each argument.
    form
        How blocks are assembled.
    """

    read: dict[int, Any]
    pattern: Any
    way: Way
    colours: Any
    places: Any
    rows: Any
    columns: Any
    form: _Form

    @property
    def count(self) -> int:
        """The number of passes."""
        return int(self.colours.max(initial=-1)) + 1

    @cached_property
    def seeds(self) -> Any:
        """One row per pass, with 1 at its columns."""
        found = np.zeros((self.count, len(self.colours)))
        found[self.colours, np.arange(len(self.colours))] = 1
        return found


@sealed
@dataclass(eq=False)
class SparseJacobian(Made):
    """The Jacobian of a function as a ``scipy.sparse.csr_array``: a row for each element of the result, a column for each of the argument.

    Parameters
    ----------
    function
        What is differentiated.
    argnums
        With respect to which arguments.
    name
        What it is called.
    check
        Refuses what has no derivative.
    primal
        For a Hessian, the function whose gradient is differentiated.
    """

    function: Function
    argnums: ArgNums
    name: str
    check: Check
    primal: Function | None = None
    _plans: dict[Any, list[tuple[_Plan, Record]]] = field(default_factory=dict, repr=False)
    _form: _Form = field(init=False, repr=False)
    _single: bool = field(default=False, init=False, repr=False)  # whether another run might be of another function

    def __post_init__(self) -> None:
        self._tangents = self._function(self._along)
        self._columns = self._function(self._pushed)
        self._rows = self._function(self._pulled)

    def _function(self, body: Callable[..., Any]) -> Function:
        f = self.function
        return Function(body, f"{self.name}({f.name})", reads=f.reads, roots=f.roots, math=f.math)

    # public methods

    @property
    def follows(self) -> tuple[Any, ...] | None:
        """The functions and code that a function calling this one can reach."""
        return self.function.roots

    def __call__(self, *args: Any, **options: Any) -> Any:
        args, options = self._completed(args, options)
        plan, along = self._plan(args, options)
        run = self._rows if plan.way == "rows" else self._columns
        given = along or (lambda plan: run(plan.seeds, args, options))
        parts = given(plan) if plan.count else []
        parts = [np.asarray(p).reshape(plan.count, -1) for p in parts]
        whole = np.concatenate(parts, axis=1).ravel() if parts else np.zeros(0)
        return plan.form.build(_blocks(plan, whole[plan.places]))

    def pattern(self, *args: Any, **options: Any) -> Any:
        """Return where entries may be nonzero, as a ``csr_array`` of bools over all results and arguments."""
        return self._plan(*self._completed(args, options))[0].pattern

    def colours(self, *args: Any, **options: Any) -> int:
        """Return how many passes a call with such arguments takes."""
        return self._plan(*self._completed(args, options))[0].count

    def _completed(self, args: Any, options: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if context.current() is not None:
            raise CaptureError(
                f"{self.name}({self.function.name}, sparse=True) returns SciPy arrays, which captured code cannot hold",
                "Call it outside of captured code, or leave out sparse=True.",
            )
        leaves, build = flatten((args, options))
        args, options = build(iter([v.numpy() if isinstance(v, Tensor) else v for v in leaves]))
        complete = self.function.complete
        return complete(args, options) if complete and (options or self.function.fills) else (args, options)

    # plans

    def _plan(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[_Plan, Passes | None]:
        """Return how the matrix is computed, and its passes if they must be those of the run that gave the structure."""
        positions = argument_positions(self.function, self.argnums, len(args))
        leaves = [v for k in positions for v in flatten(args[k])[0]]
        if any(map(is_object, leaves)):
            raise DifferentiationError(
                f"{self.name}({self.function.name}, sparse=True) is with respect to arrays, and containers of them, and no objects",
                "Pass the arrays as arguments of their own, or leave out sparse=True.",
            )
        wrt = [v for v in leaves if has_derivative(v)]
        call = ([np.zeros(np.shape(v)) for v in wrt], args, options)
        given, key = self._tangents.kind(call, {})
        for plan, record in self._plans.get(key, ()):
            if record.holds() and all(_same(value, given.values[k]) for k, value in plan.read.items()):
                return plan, None
        before = self._tangents.record(call, ahead=True)
        self._single = bool(before.why)
        program, given = self._tangents.specialise(given)
        record = self._tangents.followed(before, call)
        values = [*given.values, *map(session.value_of, program.extra)]
        if program.extra or record.why:
            if program.stores.inputs:
                raise CaptureError(
                    f"{self.name} of {self.function.name}, which stores into an array and reads {record.why}",
                    "Leave out sparse=True.",
                )
            program.stores.check(values, ())
            plan = self._made(program, values, len(given.values), wrt, forward=True)
            return plan, partial(_passes, program, values, wrt)
        plan = self._made(program, values, len(given.values), wrt)
        known = self._plans.setdefault(self._tangents.kind(call, {})[1], [])
        known.insert(0, (plan, record))
        del known[_KEPT:]
        return plan, None

    def _made(
        self, program: Specialisation, values: list[Any], count: int, wrt: Sequence[Any], *, forward: bool = False
    ) -> _Plan:
        moving = {id(v) for v in wrt}
        shown = [(UNKNOWN, np.shape(v)) if k < len(wrt) or id(v) in moving else v for k, v in enumerate(values)]
        form = self._form
        graph = program.graph.with_results(
            program.graph.results[: len(form.dtypes)]
        )  # without the contents of stored arrays
        pattern, read = structure(graph, range(len(wrt)), shown)
        way, pattern, colours = (
            ("columns", pattern, column_colours(pattern)) if forward else self._coloured(pattern, form)
        )
        return _Plan(
            {k: np.array(values[k]) for k in read if k < count},
            pattern,
            way,
            colours,
            _places(pattern, way, colours),
            np.cumsum([0, *_result_sizes(graph, values)]),
            np.cumsum([0, *(int(np.prod(np.shape(v))) for v in wrt)]),
            form,
        )

    def _coloured(self, pattern: Any, form: _Form) -> tuple[Way, Any, Any]:
        if self.primal is not None and not form.custom:
            pattern = (pattern + pattern.T).tocsr()
            pattern.sort_indices()
            return "symmetric", pattern, star_colours(pattern)
        columns = column_colours(pattern)
        if not form.real or columns.max(initial=-1) < 2:
            return "columns", pattern, columns
        rows = column_colours(pattern.T.tocsr())
        return ("rows", pattern, rows) if rows.max(initial=-1) < columns.max() else ("columns", pattern, columns)

    # bodies

    def _closed(self, args: Any, options: Any) -> tuple[Closed, list[Node]]:
        """Return the function over stand-ins, and its results, and record the form of its Jacobian."""
        positions = argument_positions(self.function, self.argnums, len(args))
        single = isinstance(self.argnums, int | str)
        custom = self.primal is not None and not self._single and _is_custom(self.primal, args, options, positions)
        closed = Closed(self.function, args, options, positions)
        leaves, build = flatten(closed.result)
        results = normal_form(numbers_alone(leaves, self.function.name), closed.wrt)
        self.check(self.function, results, closed.wrt)
        whole = bare(build, len(leaves))
        makes = [bare(make, len(nodes)) for nodes, make in closed.moving]

        def together(blocks: list[list[Any]]) -> Any:
            found = []
            for row in blocks:
                rest = iter(row)
                parts = [make(rest) for make in makes]
                found.append(parts[0] if single else tuple(parts))
            return whole(iter(found))

        real = all(r.type.dtype.kind == "f" for r in results)
        self._form = _Form(together, [[_dtype(r, x) for x in closed.wrt] for r in results], real, custom)
        return closed, results

    def _along(self, directions: Any, args: Any, options: Any) -> Any:
        """Return the derivative along one direction, the linear map whose structure is determined."""
        closed, results = self._closed(args, options)
        moved = _moved(results, closed.wrt, [node_of(d) for d in directions])
        return [
            wrap(n)
            for n in closed.open([zeros_like(r) if m is None else m for r, m in zip(results, moved, strict=True)])
        ]

    def _pushed(self, seeds: Any, args: Any, options: Any) -> Any:
        """Return the derivatives along each seed."""
        closed, results = self._closed(args, options)
        stands = [input_node(Source("direction"), x.type.with_shape(x.type.shape)) for x in closed.wrt]
        moved = _moved(results, closed.wrt, stands)
        return [wrap(n) for n in closed.open(_stacked(moved, results, stands, node_of(seeds)))]

    def _pulled(self, seeds: Any, args: Any, options: Any) -> Any:
        """Return the cotangents of the arguments for each seed."""
        closed, results = self._closed(args, options)
        stands = [input_node(Source("cotangent"), r.type.with_shape(r.type.shape)) for r in results]
        found = modes.vjp(results, stands, closed.wrt)
        return [wrap(n) for n in closed.open(_stacked(found, closed.wrt, stands, node_of(seeds)))]


def _passes(program: Specialisation, values: list[Any], wrt: Sequence[Any], plan: _Plan) -> list[Any]:
    """Return the derivatives along each seed, by the program that the structure was read from."""
    sizes = program.graph.bind([np.shape(v) for v in values])
    ends = plan.columns[1:-1]
    rows = []
    for seed in plan.seeds:
        directions = [d.reshape(np.shape(v)) for d, v in zip(np.split(seed, ends), wrt, strict=True)]
        rows.append(program.results(sizes, [*directions, *values[len(wrt) :]]))
    return [np.stack(parts) for parts in zip(*rows, strict=True)]


def _same(value: Any, other: Any) -> bool:
    a, b = np.asarray(value), np.asarray(other)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _dtype(result: Node, x: Node) -> Any:
    return x.type.dtype if result.type.dtype.kind == "f" else np.result_type(x.type.dtype, np.complex64)


def _is_custom(function: Function, args: Any, options: Any, positions: Sequence[int]) -> bool:
    """Return whether the derivative of ``function`` is partly defined by the user."""
    closed = Closed(function, args, options, positions)
    nodes = numbers_alone(flatten(closed.result)[0], function.name)
    return mentions_custom(Graph((), tuple(nodes)))


def _moved(results: Sequence[Node], wrt: Sequence[Node], directions: Sequence[Node]) -> list[Tangent]:
    along = [astype(d, x.type.dtype) for d, x in zip(directions, wrt, strict=True)]
    return modes.jvp(results, dict(zip(wrt, along, strict=True)))


def _stacked(found: Sequence[Tangent], like: Sequence[Node], stands: Sequence[Node], seeds: Node) -> list[Node]:
    """Return a linear function of ``stands`` for each row of ``seeds``, which holds them concatenated."""
    size = seeds.type.shape[0]
    known: dict[Node, Node] = {}
    first: Size = 0
    for stand in stands:
        extent = stand.type.size
        part = slice_(seeds, ((0, size, 1), (first, extent, 1))) if len(stands) > 1 else seeds
        known[stand] = astype(reshape(part, (size, *stand.type.shape)), stand.type.dtype)
        first = first + extent
    nodes = [zeros_like(n) if f is None else f for f, n in zip(found, like, strict=True)]
    stacks = batch(nodes, known, size)
    return [lead(n, False, size) if s is None else s for n, s in zip(nodes, stacks, strict=True)]


def _result_sizes(graph: Graph, values: Sequence[Any]) -> list[int]:
    sizes = graph.bind([np.shape(v) for v in values])
    return [int(np.prod([evaluate(s, sizes.__getitem__) for s in r.type.shape])) for r in graph.results]


def _places(pattern: Any, way: Way, colours: Any) -> Any:
    """Return the place of each entry in the results of the passes."""
    count = pattern.shape[0] if way != "rows" else pattern.shape[1]
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    columns = pattern.indices
    if way == "rows":
        return colours[rows] * count + columns
    if way == "columns":
        return colours[columns] * count + rows
    passes, at = star_places(rows, columns, colours)
    return passes * count + at


def _blocks(plan: _Plan, data: Any) -> list[list[Any]]:
    """Return the matrix cut into blocks, one for each result and argument."""
    from scipy.sparse import csr_array

    pattern = plan.pattern
    whole = csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)
    single = len(plan.rows) == len(plan.columns) == 2
    return [
        [
            (whole if single else whole[a:b, c:d].tocsr()).astype(dtype, copy=True)
            for c, d, dtype in zip(plan.columns[:-1], plan.columns[1:], dtypes, strict=True)
        ]
        for a, b, dtypes in zip(plan.rows[:-1], plan.rows[1:], plan.form.dtypes, strict=True)
    ]
