"""Graphs by hand: trace for types, read text, rewrite, compile ahead of time; and a lazy array's graph and code."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from tensormagic import session
from tensormagic.backend.numpy_text import numpy_source
from tensormagic.capture import context
from tensormagic.capture.context import Capture
from tensormagic.capture.door import check_dtype
from tensormagic.capture.hooks import hooks
from tensormagic.capture.staging.raising import refusing
from tensormagic.capture.traces import users_alone
from tensormagic.capture.tree import flatten, structure
from tensormagic.capture.value import Tensor, node_of, wrap
from tensormagic.config import config
from tensormagic.functions.footprint import constants_of, record_of
from tensormagic.functions.function import Function, of_callable
from tensormagic.functions.left import bare, left_behind
from tensormagic.functions.program import is_single, refuse_stores
from tensormagic.functions.reading import is_input, is_moving
from tensormagic.functions.record import Record, same
from tensormagic.functions.space import Read
from tensormagic.functions.stand_ins import abstract_tensor, stand_in_tensor
from tensormagic.functions.tensor import checked_place
from tensormagic.functions.travel import Made, maker
from tensormagic.ir.errors import CaptureError, GuardError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.rules import Rule
from tensormagic.ir.site import Lens
from tensormagic.ir.text import parse as parse_text
from tensormagic.ir.text import parse_type
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import Source, constant, input_node
from tensormagic.ops.op import registry
from tensormagic.transform.rewriting import rewrite as rewrite_graph
from tensormagic.transform.rewriting import rewrite_with

_TYPE = re.compile(r"(float|int|bool|complex|bool_|u?int(8|16|32|64)|float(16|32|64)|complex(64|128))(\[.*\])?$")


def parse(text: str) -> Graph:
    """The graph that ``text`` shows: the inverse of ``str(graph)``.

    Raises
    ------
    ParseError
        Where the text is no graph, with the line.

    Examples
    --------
    >>> graph = trace(lambda x: x + 1, "float64[n]")
    >>> parse(str(graph)) == graph
    True
    """
    return parse_text(text, registry)


def trace(fun: Any, *types: Any) -> Graph:
    """The graph of a function, before rewriting.

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
        Its parameters are the arguments' arrays, then the arrays that the function reads from outside.

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
        return _traced(fun, types).graph
    except BaseException as error:  # noqa: BLE001 (raised again)
        raise users_alone(error)  # noqa: B904 (the same one)


@dataclass(frozen=True, eq=False)
class _Traced:
    """The graph of a function, how results are put together, what is behind the parameters beside the arguments', and the names read."""

    graph: Graph
    build: Callable[[Any], Any]
    outside: list[Callable[[], Any]]
    reads: tuple[Read, ...]
    name: str


def _traced(fun: Any, types: tuple[Any, ...]) -> _Traced:
    mark, function = wrap(constant(0)), of_callable(fun)
    traced = _trace(function, types)
    if left_behind(mark, known=False):
        raise CaptureError(
            f"{traced.name} leaves a value in an object, and what is captured for types has none",
            "Return the value; or use tm.tensor, which runs the function at every call.",
        )
    return traced


def _trace(function: Function, types: tuple[Any, ...]) -> _Traced:
    leaves, build = flatten(types)
    arguments = [
        _argument(v, f"argument {k + 1}" if len(leaves) > len(function.parameters) else function.parameters[k])
        for k, v in enumerate(leaves)
    ]
    tensors = [v for v in arguments if isinstance(v, Tensor)]
    nodes = [t.node for t in tensors]
    capture = Capture(function.name, abstract=True)
    with context.capturing(capture), refusing(function.name):
        results, arrange = flatten(function.body(*build(iter(arguments))))
        found = [node_of(v) for v in results]
        arrange = bare(arrange, len(found))
    reads = {
        t.node: capture.noted[p] for p, t in capture.lifted.items() if isinstance(t, Tensor) and p in capture.noted
    }
    refuse_stores([*tensors, *(t for t in capture.lifted.values() if isinstance(t, Tensor))], function.name)
    closed = session.close_over(found, nodes, capture.guards, use_values=False)
    outside = [_behind(leaf, reads.get(leaf)) for leaf in closed.leaves[len(nodes) :]]
    return _Traced(closed.graph, arrange, outside, tuple(capture.noted.values()), function.name)


def _behind(leaf: Node, read: Read | None) -> Callable[[], Any]:
    """What gives the value of a parameter: by the name that it was read by, or as it was at capture."""
    if read is None:
        return lambda: session.value_of(leaf)
    name, space = read

    def now() -> Any:
        value = space.get(name)
        if not is_input(value) or np.asarray(value).dtype != leaf.type.dtype:
            raise GuardError(f"{name} is {type(value).__name__} where {leaf.type} was compiled", _COMPILE)
        return value

    return now


_COMPILE = "Compile it again."


def traced_over(fun: Any, values: Sequence[Any]) -> tuple[Graph, list[Any]]:
    """The graph of a function of arrays and numbers, and the values of its parameters."""
    traced = _traced(fun, tuple(values))
    return traced.graph, [*values, *(now() for now in traced.outside)]


def _argument(value: Any, name: str) -> Any:
    """A lazy array without a value for a type; what is none, as it is."""
    if isinstance(value, str) and _TYPE.match(value):
        value = parse_type(value)
    if isinstance(value, Type):
        check_dtype(value.dtype, name)
        return stand_in_tensor(input_node(Source(name), value), name)
    if isinstance(value, Tensor):
        value = value.numpy()
    return abstract_tensor(value, name) if is_input(value) else value


def rewrite(graph: Graph, rules: str | Iterable[Rule] | None = None) -> Graph:
    """The normal form of a graph under rules, or those of a level: ``"exact"``, ``"stable"`` or ``"real"``.

    Examples
    --------
    >>> graph = rewrite(trace(lambda x: np.log(1 + x), "float64[n]"))
    >>> graph.results[0].op.name
    'log1p'
    """
    if rules is None or isinstance(rules, str):
        return rewrite_graph(graph, rules or config.math).graph
    return rewrite_with(graph, tuple(rules))


@dataclass(frozen=True, eq=False)
class Compiled(Made):
    """A function, compiled ahead of time for types.

    Parameters
    ----------
    graph
        The graph as it was traced.
    executable
        What runs it: the rewritten graph, and its machine code.
    """

    offered: ClassVar[tuple[str, ...]] = ("code", "graph", "kernels", "run", "source")

    graph: Graph
    executable: session.Executable
    _moving: Callable[[tuple[Any, ...]], list[Any]]
    _traced: _Traced
    _record: Record
    _structure: Any
    _single: bool
    _sizes: dict[Any, dict[Any, int]] = field(default_factory=dict, repr=False)  # of arrays that were seen

    def __repr__(self) -> str:
        """``Compiled(loss of x: float64[n0], w: float64[3]; 2 kernels)``."""
        count = len(self.kernels)
        names = self.graph.names or [f"argument {k}" for k in range(len(self.graph.parameters))]
        given = ", ".join(f"{n}: {p.type}" for n, p in zip(names, self.graph.parameters, strict=True))
        kernels = f"{count} kernel{'s' * (count != 1)}"
        return f"Compiled({self._traced.name}{f' of {given}' if given else ''}; {kernels})"

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels, in the order of their runs."""
        return self.executable.plan.kernels

    @property
    def code(self) -> str:
        """The Python source that Numba has compiled, and the function that runs its kernels."""
        return code_of(self.executable)

    def run(self, *args: Any) -> Any:
        """Call it: arguments of the types that it was compiled for.

        Raises
        ------
        GuardError
            Where they are of other types, or what the function reads beside them is not as it was.
        """
        if not self._record.holds():
            raise GuardError(
                f"{self._record.changed()}, which {self._traced.name} reads, is not what it was when it was compiled",
                _COMPILE,
            )
        try:
            sizes = self._sizes[tuple([(a.__class__, a.dtype, a.shape) for a in args])]
        except (AttributeError, KeyError, TypeError):
            return self._first(args)  # or not arrays alone
        results = self.executable.plainly(sizes, args)
        return self._built(self.executable.run(sizes, *args) if results is None else results)

    def _first(self, args: tuple[Any, ...]) -> Any:
        """The result for arguments of kinds and shapes that were not seen before."""
        if len(args) == len(self._structure[1]) and structure(args) != self._structure:
            raise GuardError("the arguments are put together in another way than those that were compiled for")
        given = self._moving(args)
        for parameter, value in zip(self.graph.parameters, given, strict=False):
            if np.asarray(value).dtype != parameter.type.dtype:
                raise GuardError(f"an argument of dtype {np.asarray(value).dtype} where {parameter.type} was compiled")
        values = [*given, *(now() for now in self._traced.outside)]
        if len(values) != len(self.graph.parameters):
            count = len(values) - len(self._traced.outside)
            raise TypeError(f"{len(given)} arrays are given where {count} were compiled for")
        sizes = self.graph.bind([np.shape(v) for v in values])
        results = self.executable.run(sizes, *values)
        if len(values) == len(args) and all(
            v is a and type(a) is np.ndarray for v, a in zip(values, args, strict=True)
        ):
            while len(self._sizes) >= _SIZES:
                del self._sizes[next(iter(self._sizes))]
            self._sizes[tuple([(a.__class__, a.dtype, a.shape) for a in args])] = sizes
        return self._built(results)

    def _built(self, results: list[Any]) -> Any:
        return results[0] if self._single else self._traced.build(iter(results))

    __call__ = run


@maker
def compile(fun: Any, *types: Any, device: str = "", math: str | None = None) -> Compiled:
    """Compile a function ahead of time.

    Parameters
    ----------
    fun, types
        As for :func:`trace`.
    device
        ``"cpu"``, ``"gpu"``, or ``"auto"``, which chooses by sizes; empty for what ``config.device`` says now.
    math
        Which rewrites may be used; where it is not given, the function's own level, else ``config.math``.

    Returns
    -------
    Compiled
        ``.run(*args)``, ``.code``, ``.kernels`` and ``.graph``.

    Examples
    --------
    >>> f = compile(lambda x: np.exp(x) - 1, "float64[n]")
    >>> f.run(np.zeros(3))
    array([0., 0., 0.])
    """
    function = of_callable(fun)
    placed = checked_place(device)[0] or function.placed[0]
    level = math or function.math
    fixed = [_ARRAY if _is_array(v) else v for v in flatten(types)[0]]
    constants = constants_of([v for v in fixed if v is not _ARRAY])
    before = record_of(function.roots, constants, function.reads, is_moving, fixed=True)
    with config.using(math=level):
        traced = _traced(function, types)
    record = record_of(function.roots, constants, traced.reads, is_moving, fixed=True)
    if why := record.why or before.why or before.changed():
        raise CaptureError(
            f"{traced.name} reads {why}, which is not followed in a compiled function",
            "Pass it as an argument, or use tm.tensor, which captures it again at every call.",
        )
    with config.using(device=placed):
        executable = session.executable(traced.graph, level)
    if config.tier != "numpy" and executable.device == "cpu":
        executable.compile().wait()
    single = is_single(len(traced.graph.results), traced.build)
    return Compiled(
        traced.graph, executable, lambda args: _picked(args, fixed), traced, record, structure(types), single
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, Type | Tensor) or (isinstance(value, str) and bool(_TYPE.match(value))) or is_input(value)


_ARRAY: Any = object()
_SIZES = 128  # shapes of arguments whose sizes are remembered


def _picked(args: tuple[Any, ...], fixed: list[Any]) -> list[Any]:
    """The arrays among the arguments; the others have to be what they were."""
    leaves = flatten(args)[0]
    if len(leaves) != len(fixed):
        raise TypeError(f"{len(leaves)} values are given where {len(fixed)} were compiled for")
    for k, (value, before) in enumerate(zip(leaves, fixed, strict=True), 1):
        if before is not _ARRAY and not same(value, before):
            raise GuardError(f"value {k} is {value!r} where {before!r} was compiled for", _COMPILE)
    return [v.numpy() if isinstance(v, Tensor) else v for v, f in zip(leaves, fixed, strict=True) if f is _ARRAY]


class Lines(str):
    """Text of several lines, which a notebook shows as lines where it is the value of a cell."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def code_of(executable: session.Executable) -> Lines:
    """The source of kernels and of what runs them."""
    plan = executable.plan
    return Lines("\n\n".join([*(k.source for k in plan.kernels), plan.driver.source]))


# what a lazy array says of itself -------------------------------------------------------------------------------------


def _graph(self: Tensor) -> Graph:
    """The graph of this value down to its inputs, before rewriting."""
    return session.close_over([self.node], use_values=False).graph


def _executable(self: Tensor) -> session.Executable:
    return session.executable(_graph(self), self.level)


def _optimized(self: Tensor) -> Graph:
    """The graph of this value down to its inputs, after rewriting."""
    return _executable(self).graph


def _code(self: Tensor, target: str = "cpu") -> str:
    """The source for ``target``: ``"cpu"`` is what Numba compiles, ``"numpy"`` a function in plain NumPy."""
    if target not in {"cpu", "numpy"}:
        raise ValueError(f"there is code for 'cpu' and 'numpy'; not for {target!r}")
    return code_of(_executable(self)) if target == "cpu" else Lines(numpy_source(_optimized(self)))


def _ops(graph: Graph) -> int:
    return sum(bool(n.args) for n in graph.nodes)


def _explain(self: Tensor) -> str:
    """What was rewritten, by which rule and where, and how many kernels are left."""
    closed = session.close_over([self.node], use_values=False)
    executable = session.executable(closed.graph, self.level)
    rewritten, lens = executable.rewritten, Lens(closed.mapping)
    lines = [
        f"{_ops(_graph(self))} ops, {_ops(rewritten.graph)} after rewriting, in {len(executable.plan.kernels)} kernels"
    ]
    lines += [str(replace(firing, sites=lens.of(firing.before))) for firing in rewritten.fired]
    lines += [f"assumed: {text}" for text in rewritten.assumptions]
    lines += [str(replace(withheld, sites=lens.of(withheld.node))) for withheld in rewritten.withheld]
    return Lines("\n".join(lines))


def _time(self: Tensor, repeat: int = 7) -> float:
    """The median seconds of a computation of this value from its inputs, on the tier that is ready."""
    closed = session.close_over([self.node], use_values=False)
    values = [session.value_of(leaf) for leaf in closed.leaves]
    sizes = closed.graph.bind([np.shape(v) for v in values])
    executable = session.executable(closed.graph, self.level)
    executable.run(sizes, *values)
    seconds: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        executable.run(sizes, *values)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


hooks.methods["graph"] = property(_graph)  # type: ignore[assignment]  (bound to the lazy array like a method)
hooks.methods["optimized"] = property(_optimized)  # type: ignore[assignment]  (as above)
hooks.methods["code"] = _code
hooks.methods["explain"] = _explain
hooks.methods["time"] = _time

__all__ = ["Compiled", "compile", "parse", "rewrite", "trace"]
