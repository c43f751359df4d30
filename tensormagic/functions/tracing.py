"""Graphs made by hand (trace for types, read text, rewrite), and the graph and code of a lazy array."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.capture import context
from tensormagic.capture.context import Capture
from tensormagic.capture.errors.traces import users_alone
from tensormagic.capture.inputs.door import check_dtype
from tensormagic.capture.random import generators
from tensormagic.capture.staging.calls import special_methods
from tensormagic.capture.staging.loops.watched_containers import refuse_changed
from tensormagic.capture.staging.messages.refusals import refusing
from tensormagic.capture.staging.trials.abandoned_generators import ending_generators
from tensormagic.capture.tree import flatten, holds_deferred
from tensormagic.capture.values.abstract import abstract_tensor, stand_in_tensor
from tensormagic.capture.values.unused_values import Unused
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.config import config
from tensormagic.functions.calls.callables import of_callable
from tensormagic.functions.calls.constants import constants_of
from tensormagic.functions.calls.function import Function
from tensormagic.functions.calls.program import refuse_stores
from tensormagic.functions.calls.python_results import Outward, outward_and_nodes
from tensormagic.functions.calls.results import numbers_alone, numbers_in
from tensormagic.functions.reads.arrays_in_objects import undoing
from tensormagic.functions.reads.changed_containers import Copies
from tensormagic.functions.reads.footprint import record_of
from tensormagic.functions.reads.left_in_objects import bare, held_by, left_behind, together
from tensormagic.functions.reads.name_reads import Read
from tensormagic.functions.reads.reading import is_input, is_moving
from tensormagic.functions.reads.record import Record
from tensormagic.ir.errors import ArgumentError, CaptureError, DTypeError, ForeignError, GuardError, ParseError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.rewriting.rules import Rule
from tensormagic.ir.site import Lens
from tensormagic.ir.text import parse as parse_text
from tensormagic.ir.text import parse_type
from tensormagic.ir.type import Type
from tensormagic.ops.draws.state import encoded
from tensormagic.ops.leaf import Source, constant, input_node
from tensormagic.ops.op import registry
from tensormagic.transform.rewriting import rewrite as rewrite_graph
from tensormagic.transform.rewriting import rewrite_with

TYPE = re.compile(
    r"(float|int|bool|complex|bool_|u?int(8|16|32|64)|float(16|32|64)|bfloat16|complex(64|128))(\[.*\])?$"
)
_NO_TYPE = re.compile(
    r"(?P<dtype>(u?int|b?float|complex)\d*(_\w+)?)\[.*\]$"
)  # looks like a type, but has no such dtype
_MEANT = re.compile(r"\w+\[[^\[]*$")  # text that is meant as a type, valid or not

_DTYPES = (
    "It has NumPy's: bool, int8 to int64, uint8 to uint64, float16 to float64, complex64 and complex128; and bfloat16."
)


def parse(text: str) -> Graph:
    """Return the graph that ``text`` shows: the inverse of ``str(graph)``.

    Parameters
    ----------
    text
        A graph as ``str(graph)`` and ``print(graph)`` write it.

    Returns
    -------
    Graph

    Raises
    ------
    ParseError
        If the text is not a graph; the message names the line.

    Examples
    --------
    >>> graph = trace(lambda x: x + 1, "float64[n]")
    >>> parse(str(graph)) == graph
    True
    """
    return parse_text(text, registry)


def trace(fun: Any, *types: Any) -> Graph:
    """Return the graph of a function, before rewriting.

    Parameters
    ----------
    fun
        A function of arrays, or a cell's NAME.
    types
        One for each argument: ``"float64[n, 3]"`` (sizes of one name are equal, and at least 2), an array or a number
        of the same type, or containers of these. Anything else is passed as it is.

    Returns
    -------
    Graph
        Its parameters are the arrays among the arguments, then the arrays that the function reads from outside.

    Raises
    ------
    ParseError
        If a text with brackets is not a type, such as ``"float64[n;3]"``.
    ShapeError, DTypeError, CaptureError
        If the function cannot be captured for these types: the error that a captured cell of its code would raise.
        DTypeError also for an unknown dtype.

    Examples
    --------
    >>> print(trace(lambda x, w: x @ w, "float64[n, 3]", "float64[3]"))
    # %0 is x, %1 is w; n0 is x.shape[0]
    graph(%0: float64[n0, 3], %1: float64[3]) {
      %2 = contract(%0, %1) subscripts='ab,b->a' : float64[n0]
      return %2
    }
    """
    __tracebackhide__ = True  # IPython leaves this frame out of tracebacks
    try:
        if not types:
            refuse_untyped(of_callable(fun), "tm.trace")
        return traced(fun, types, deferred=True).graph
    except BaseException as error:  # noqa: BLE001 (raised again)
        raise users_alone(error)  # noqa: B904 (the same one)


def refuse_untyped(function: Function, asked: str, beside: str = "") -> None:
    """Raise for a function that needs arguments and is given no types."""
    with suppress(ValueError):  # no signature is known
        try:
            inspect.signature(function).bind()
        except TypeError:
            needed = True
        else:
            needed = function.fills and bool(function.parameters)  # a cell, which reads nothing from the notebook here
        if needed:
            name, listed = function.name, ", ".join(function.parameters)
            shown = name if name.isidentifier() else "f"
            raise ArgumentError(
                f"{asked} needs an example of each argument beside the function: {name} has {listed}",
                f"Write {asked}({shown}, {listed}), with values or types like those of the calls. {beside}",
            )


def _refuse_dtypes(types: tuple[Any, ...]) -> None:
    """Raise for dtypes in place of arguments, as they do not tell an array from a number."""
    if types and all(isinstance(t, np.dtype) or (isinstance(t, type) and issubclass(t, _NUMBERS)) for t in types):
        name = np.dtype(types[0]).name
        raise ArgumentError(
            f"{types[0]!r} is a dtype, and no argument",
            f'Write "{name}" for a number of that dtype, "{name}[n]" for an array of n of them.',
        )


_NUMBERS = (np.generic, int, float, complex)


@dataclass(frozen=True, eq=False)
class Traced:
    """A traced function: its graph, how its results are assembled, the values of parameters that are no arguments, and the names read.

    ``before`` is what the function could read before it was captured. ``record`` is what it has read, which tells whether that has changed
    since, or why that cannot be told. ``outward`` is what the results are beside their values. ``raising`` says whether the code asks for
    floating-point errors, by ``np.errstate``.
    """

    graph: Graph
    build: Callable[[Any], Any]
    outside: list[Callable[[], Any]]
    reads: tuple[Read, ...]
    name: str
    mapping: Mapping[Node, Node] = field(default_factory=dict[Node, Node], repr=False)
    drawn: tuple[str, ...] = ()  # generators outside of the function from which it draws
    before: Record = field(default_factory=lambda: Record(()), repr=False)
    record: Record = field(default_factory=lambda: Record(()), repr=False)
    outward: Outward = field(default_factory=Outward, repr=False)
    raising: bool = False

    @cached_property
    def lens(self) -> Lens:
        """Where nodes of the graph came from in the function's own code: equal nodes of others share their sites."""
        return Lens(self.mapping)


def traced(
    fun: Any, types: tuple[Any, ...], named: tuple[str, ...] = (), *, deferred: bool = False, classes: bool = False
) -> Traced:
    """Return a function captured for arguments of these types; what it has changed in objects is undone if it is refused.

    The last arguments are given by the names in ``named``; ``deferred`` results are put together once the graph has
    run. With ``classes`` the graph computes of which class numbers are, too, where that is data-dependent.
    """
    _refuse_dtypes(types)
    mark, function = wrap(constant(0)), of_callable(fun)
    constants = constants_of([v for v in flatten(types)[0] if not stands_for_array(v)])
    before = record_of(function.roots, constants, function.reads, is_moving, fixed=True)
    there = before
    if before.why:  # what can be examined is restored
        there = record_of(
            function.roots,
            constants,
            function.reads,
            is_moving,
            fixed=True,
            generators=False,
            largest=math.inf,
            passing=True,
        )
    with undoing(there), special_methods.staged_in((*(function.roots or ()), *constants)):
        found = _trace(function, types, named, deferred=deferred, classes=classes)
        left = left_behind(mark, known=False)
        held = held_by(found.build) if left else set[int]()
        if any(id(v) not in held for v in left):
            raise CaptureError(
                f"{found.name} stores a value in an object, but code compiled for types has no values",
                "Return the value; or use tm.tensor, which runs the function at every call.",
            )
    after = record_of(function.roots, constants, found.reads, is_moving, fixed=True).without("cache")
    why = after.why or before.why or before.without("cache").changed()
    return replace(found, before=there, record=Record((), why) if why else after)


def stands_for_array(value: Any) -> bool:
    """Return whether an argument is a type, or a value that stands for an array or a moving number."""
    if isinstance(value, Type | Typed | Tensor) or (isinstance(value, str) and TYPE.match(value)):
        return True
    return is_input(value)


def _trace(
    function: Function, types: tuple[Any, ...], named: tuple[str, ...], *, deferred: bool, classes: bool
) -> Traced:
    leaves, build = flatten(types)
    arguments = [
        _argument(v, f"argument {k + 1}" if len(leaves) > len(function.parameters) else function.parameters[k])
        for k, v in enumerate(leaves)
    ]
    tensors = [v for v in arguments if isinstance(v, Tensor)]
    nodes = [t.node for t in tensors]
    capture = Capture(function.name, abstract=True)
    state = encoded(generators.global_generator())
    given = build(iter(arguments))
    copies = Copies(types, given)
    with context.capturing(capture), refusing(function.name):
        first = len(given) - len(named)
        with ending_generators(lambda error: isinstance(error, (CaptureError, GuardError))):
            result = function.body(*given[:first], **dict(zip(named, given[first:], strict=True)))
        refuse_changed(0)
        result = result if deferred else numbers_in(result, function.name)
        results, arrange = together(result)
        copies.refuse(function.name)
        found = numbers_alone(results, function.name)
        outward, every = outward_and_nodes(results, found)
        arrange = arrange if holds_deferred(result) else bare(arrange, len(found))
        found = every if classes else found
    lifted = {p: t for p, t in capture.names.lifted.items() if isinstance(t, Tensor)}
    reads = {t.place.buffer.first: capture.names.noted[p] for p, t in lifted.items() if p in capture.names.noted}
    drawn = tuple(g.buffer.name for g in generators.advanced(capture))
    if not drawn:  # draws store into the state
        refuse_stores([*tensors, *lifted.values()], function.name)
    unused = Unused(capture, nodes, found)
    if function.plain is not None:
        found = unused.before(found)
    closed = session.close_over(found, nodes, [*capture.guards, *unused.guards()], use_values=False)
    outside = [_behind(leaf, reads.get(leaf)) for leaf in closed.leaves[len(nodes) :]]
    drawn += ("np.random",) * (
        not np.array_equal(state, encoded(generators.global_generator()))
    )  # by code that is not captured
    reads_of = tuple(capture.names.noted.values())
    return Traced(
        closed.graph,
        arrange,
        outside,
        reads_of,
        function.name,
        closed.mapping,
        drawn,
        outward=outward,
        raising=capture.attempts.raising,
    )


def _behind(leaf: Node, read: Read | None) -> Callable[[], Any]:
    """Return a function that gives the value of a parameter: by the name it was read by, or as it was at capture."""
    if read is None:
        return lambda: session.value_of(leaf)
    name, space = read

    def now() -> Any:
        value = space.get(name)
        if not is_input(value) or np.asarray(value).dtype != leaf.type.dtype:
            raise GuardError(f"{name} is {type(value).__name__} where {leaf.type} was compiled", COMPILE)
        return value

    return now


COMPILE = "Compile it again."


def traced_over(fun: Any, values: Sequence[Any]) -> tuple[Graph, list[Any]]:
    """Return the graph of a function of arrays and numbers, and the values of its parameters."""
    found = traced(fun, tuple(values))
    return found.graph, [*values, *(now() for now in found.outside)]


class Typed:
    """A type that stands for an argument; its sizes may have another least value than those of a type given as text."""

    def __init__(self, own: Type) -> None:
        self.type = own


def _argument(value: Any, name: str) -> Any:
    """Return a lazy array without a value for a type; anything else as it is."""
    if isinstance(value, Typed):
        value = value.type
    if isinstance(value, str) and (found := _NO_TYPE.match(value)) and not TYPE.match(value):
        raise ForeignError(f"{name}: {found['dtype']} is no dtype that captured code has", _DTYPES)
    if isinstance(value, str) and (TYPE.match(value) or _MEANT.match(value)):
        try:
            value = parse_type(value)
        except DTypeError:  # the dtype's package is not installed
            raise
        except (SyntaxError, TypeError, ValueError) as error:
            raise ParseError(f"{name}: {value!r} is no type", "A type is written as 'float64[n, 3]'.") from error
    if isinstance(value, Type):
        check_dtype(value.dtype, name)
        return stand_in_tensor(input_node(Source(name), value), name)
    if isinstance(value, Tensor):
        value = value.numpy()
    return abstract_tensor(value, name) if is_input(value) else value


def rewrite(graph: Graph, rules: str | Iterable[Rule] | None = None) -> Graph:
    """Return the normal form of a graph under the given rules, or those of a level: ``"exact"``, ``"stable"`` or ``"real"``.

    Parameters
    ----------
    graph
        A graph from :func:`trace`, :func:`parse` or ``.graph``.
    rules
        A level, or rules, such as ``tm.rules.own["mine"]``; by default the level of ``tm.config.math``.

    Returns
    -------
    Graph
        With the same parameters and results.

    Raises
    ------
    ValueError
        If there is no such level.

    Examples
    --------
    >>> graph = rewrite(trace(lambda x: np.log(1 + x), "float64[n]"))
    >>> graph.results[0].op.name
    'log1p'
    """
    if rules is None or isinstance(rules, str):
        with config.using(math=rules or config.math):
            return rewrite_graph(graph, config.math).graph
    return rewrite_with(graph, tuple(rules))
