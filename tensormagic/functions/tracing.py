"""Graphs by hand: trace for types, read text, rewrite, compile ahead of time; and a lazy array's graph and code."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.backend.numpy_text import numpy_source
from tensormagic.capture import context
from tensormagic.capture.context import Capture
from tensormagic.capture.hooks import hooks
from tensormagic.capture.inputs import check_dtype
from tensormagic.capture.staging.raising import refusing
from tensormagic.capture.tree import flatten
from tensormagic.capture.value import Tensor, node_of
from tensormagic.config import config
from tensormagic.functions.function import abstract_tensor, of_callable, refuse_stores, stand_in_tensor
from tensormagic.functions.reading import is_input
from tensormagic.ir.errors import GuardError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.rules import Rule
from tensormagic.ir.site import Lens
from tensormagic.ir.text import parse as parse_text
from tensormagic.ir.text import parse_type
from tensormagic.ir.type import Type
from tensormagic.ops.leaf import Source, input_node
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
    graph(%0: float64[n0, 3], %1: float64[3]) {
      %2 = contract(%0, %1) subscripts='ab,b->a' : float64[n0]
      return %2
    }
    """
    return _traced(fun, types)[0]


def _traced(fun: Any, types: tuple[Any, ...]) -> tuple[Graph, Callable[[Any], Any], list[Node]]:
    """The graph, how results are put together, and what stands behind the parameters beside the arguments'."""
    function = of_callable(fun)
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
    refuse_stores(tensors, function.name)
    closed = session.close_over(found, nodes, capture.guards, use_values=False)
    return closed.graph, arrange, list(closed.leaves[len(nodes) :])


def traced_over(fun: Any, values: Sequence[Any]) -> tuple[Graph, list[Any]]:
    """The graph of a function of arrays and numbers, and the values of its parameters."""
    graph, _, outside = _traced(fun, tuple(values))
    return graph, [*values, *(n["source"].value for n in outside)]


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
class Compiled:
    """A function, compiled ahead of time for types.

    Parameters
    ----------
    graph
        The graph as it was traced.
    executable
        What runs it: the rewritten graph, and its machine code.
    """

    graph: Graph
    executable: session.Executable
    _moving: Callable[[tuple[Any, ...]], list[Any]]
    _build: Callable[[Any], Any]
    _outside: list[Node]

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
            Where they are of other types.
        """
        given = self._moving(args)
        for parameter, value in zip(self.graph.parameters, given, strict=False):
            if np.asarray(value).dtype != parameter.type.dtype:
                raise GuardError(f"an argument of dtype {np.asarray(value).dtype} where {parameter.type} was compiled")
        values = [*given, *map(session.value_of, self._outside)]
        if len(values) != len(self.graph.parameters):
            raise TypeError(f"{len(given)} arrays are given where {len(values) - len(self._outside)} were compiled for")
        return self._build(iter(self.executable.run(self.graph.bind([np.shape(v) for v in values]), *values)))

    __call__ = run


def compile(fun: Any, *types: Any, device: str = "cpu", math: str | None = None) -> Compiled:
    """Compile a function ahead of time.

    Parameters
    ----------
    fun, types
        As for :func:`trace`.
    device
        ``"cpu"``, or ``"auto"``, which is the same.
    math
        Which rewrites may be used; ``config.math`` where it is not given.

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
    if device not in {"cpu", "auto"}:
        raise ValueError(f"device is 'cpu' or 'auto'; not {device!r}")
    graph, build, outside = _traced(fun, types)
    executable = session.executable(graph, math)
    if config.tier != "numpy":
        executable.compile().wait()
    marks = [_is_array(v) for v in flatten(types)[0]]
    return Compiled(graph, executable, lambda args: _picked(args, marks), build, outside)


def _is_array(value: Any) -> bool:
    return isinstance(value, Type | Tensor) or (isinstance(value, str) and bool(_TYPE.match(value))) or is_input(value)


def _picked(args: tuple[Any, ...], marks: list[bool]) -> list[Any]:
    leaves = flatten(args)[0]
    if len(leaves) != len(marks):
        raise TypeError(f"{len(leaves)} values are given where {len(marks)} were compiled for")
    return [v.numpy() if isinstance(v, Tensor) else v for v, mark in zip(leaves, marks, strict=True) if mark]


def code_of(executable: session.Executable) -> str:
    """The source of kernels and of what runs them."""
    plan = executable.plan
    return "\n\n".join([*(k.source for k in plan.kernels), plan.driver.source])


# what a lazy array says of itself -------------------------------------------------------------------------------------


def _graph(self: Tensor) -> Graph:
    """The graph of this value down to its inputs, before rewriting."""
    return session.close_over([self.node], use_values=False).graph


def _executable(self: Tensor) -> session.Executable:
    return session.executable(_graph(self))


def _optimized(self: Tensor) -> Graph:
    """The graph of this value down to its inputs, after rewriting."""
    return _executable(self).graph


def _code(self: Tensor, target: str = "cpu") -> str:
    """The source for ``target``: ``"cpu"`` is what Numba compiles, ``"numpy"`` a function in plain NumPy."""
    if target not in {"cpu", "numpy"}:
        raise ValueError(f"there is code for 'cpu' and 'numpy'; not for {target!r}")
    return code_of(_executable(self)) if target == "cpu" else numpy_source(_optimized(self))


def _ops(graph: Graph) -> int:
    return sum(bool(n.args) for n in graph.nodes)


def _explain(self: Tensor) -> str:
    """What was rewritten, by which rule and where, and how many kernels are left."""
    closed = session.close_over([self.node], use_values=False)
    executable = session.executable(closed.graph)
    rewritten, lens = executable.rewritten, Lens(closed.mapping)
    lines = [
        f"{_ops(_graph(self))} ops, {_ops(rewritten.graph)} after rewriting, in {len(executable.plan.kernels)} kernels"
    ]
    lines += [str(replace(firing, sites=lens.of(firing.before))) for firing in rewritten.fired]
    lines += [f"assumed: {text}" for text in rewritten.assumptions]
    lines += [str(replace(withheld, sites=lens.of(withheld.node))) for withheld in rewritten.withheld]
    return "\n".join(lines)


def _time(self: Tensor, repeat: int = 7) -> float:
    """The median seconds of a computation of this value from its inputs, on the tier that is ready."""
    closed = session.close_over([self.node], use_values=False)
    values = [session.value_of(leaf) for leaf in closed.leaves]
    sizes = closed.graph.bind([np.shape(v) for v in values])
    executable = session.executable(closed.graph)
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
