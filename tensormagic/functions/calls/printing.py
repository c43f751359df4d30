"""Calls with lazy arguments of functions that print in loops: run at once, by one program that prints as it runs.

If captured as a part of the code around it, each iteration of such a loop would become a separate part of the graph,
since prints have to come in order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from tensormagic import session
from tensormagic.capture.errors.refusal import values_are_there
from tensormagic.capture.inputs.snapshots import own
from tensormagic.capture.staging.syntax import source
from tensormagic.capture.tree import flatten
from tensormagic.capture.values.operands import node_of
from tensormagic.capture.values.value import Tensor, wrap
from tensormagic.config import config
from tensormagic.functions.reads.arrays_in_objects import taken_back
from tensormagic.functions.reads.changed_containers import Halfway
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph, graphs_in
from tensormagic.ir.node import Node
from tensormagic.ops.effects.outside import OUTSIDE
from tensormagic.ops.effects.telling import TELL, untold
from tensormagic.ops.regions.region import instantiated, matched

if TYPE_CHECKING:
    from tensormagic.functions.calls.call_inputs import Given
    from tensormagic.functions.calls.program import Specialisation
    from tensormagic.functions.calls.specialised import Specialised

NOT = object()
"""Returned for a call that is not run in this way."""
_DEEPEST = 3  # how deep nested functions are searched for prints


def run_at_once(function: Specialised, users: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the results of a call, as computed lazy values, after its prints, or :data:`NOT` for a call that does not print in loops."""
    if function.math or not values_are_there() or config.device != "cpu" or not prints_in_loops(users):
        return NOT
    parts, build = flatten((args, options))
    lazy = {k: v for k, v in enumerate(parts) if isinstance(v, Tensor)}
    if not all(_is_input(v) for v in lazy.values()):
        return NOT
    given_args, given_options = build(iter([_value(v) if k in lazy else v for k, v in enumerate(parts)]))
    found = _program(function, given_args, given_options)
    if found is None:
        return NOT
    program, given = found
    program.sizes(given.values)  # raises if sizes do not fit
    operands = _operands(program, given, lazy)
    printing, silent = _over(program.graph, operands), _over(untold(program.graph), operands)
    session.compute(printing)
    session.keep(dict(zip(silent, printing, strict=True)))
    results = [wrap(n) for n in silent]
    return results[0] if program.single else program.gives.together(program.build, results, None)


def prints_in_loops(function: Any) -> bool:
    """Return whether a function of the user's, or one that it calls by name, has a loop in which it prints."""
    return isinstance(function, FunctionType) and _prints(function, _DEEPEST, inside=False)


def _prints(function: FunctionType, depth: int, *, inside: bool) -> bool:
    """Return whether a function prints in a loop, or anywhere if it is called ``inside`` one."""
    called = _called(source.code_as_written(function))
    if any(name == "print" and (inside or looped) for name, looped in called):
        return True
    users = [(function.__globals__.get(name), looped) for name, looped in called] if depth else []
    own = [(f, looped) for f, looped in users if type(f) is FunctionType and f.__module__ == function.__module__]
    return any(_prints(f, depth - 1, inside=inside or looped) for f, looped in own)


@lru_cache(maxsize=1024)
def _called(code: CodeType) -> tuple[tuple[str, bool], ...]:
    """Return the names that a code calls, each with whether the call is in a loop."""
    node = source.found(code)
    if node is None:
        return ()
    loops = [n for n in ast.walk(node) if isinstance(n, ast.For | ast.While)]
    inside = {c for loop in loops for c in _calls_of(loop)}
    return tuple(dict.fromkeys((c.id, c in inside) for c in _calls_of(node)))


def _calls_of(node: ast.AST) -> Iterator[ast.Name]:
    return (n.func for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))


def _is_input(value: Tensor) -> bool:
    """Return whether a lazy value is an array or a non-integer; an integer may determine the trace."""
    return value.type.form == "array" or value.type.dtype.kind in "fc"


def _value(value: Tensor) -> Any:
    return value.item() if value.type.form == "python" else value.numpy()


def _program(
    function: Specialised, args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Specialisation, Given] | None:
    """Return the program and values of a call whose loops print, or None if the call does more than that."""
    try:
        given, key = function.kind(args, options)
        found = function.captured(key, given, (args, options))
    except TensorError:
        return None
    if isinstance(found, Halfway):
        return None
    program, given, record, before = found
    alone = not (program.stores or program.gives or program.left or program.objects or record.why)
    numbers = all(type(v) is np.ndarray or isinstance(v, float | complex | np.inexact) for v in given.objects)
    loops = any(TELL.name in g.ops for n in program.graph.nodes for g in graphs_in(n.params.values()))
    if alone and numbers and loops and not program.graph.checks and OUTSIDE.name not in program.graph.ops:
        return program, given
    if before is not None:
        taken_back(before)
    return None


def _operands(program: Specialisation, given: Given, lazy: dict[int, Tensor]) -> list[Node]:
    """Return the operands for the parameters of a program: lazy arguments where there are any, else new inputs."""
    moving = [k for k, m in enumerate(given.moving) if m]
    values = [lazy.get(k, given.leaves[k]) for k in moving] + given.objects[len(moving) :]
    names = program.graph.names or program.names
    named = [*names, *([""] * len(values))]
    return [node_of(v) if isinstance(v, Tensor) else _own(v, n) for v, n in zip(values, named, strict=False)] + [
        *program.extra
    ]


def _over(graph: Graph, operands: Sequence[Node]) -> list[Node]:
    sizes, _ = matched(graph, operands, "a function that prints")
    return instantiated(graph.results, dict(zip(graph.parameters, operands, strict=True)), sizes)


def _own(value: Any, name: str) -> Node:
    node = own(value, name)
    return node_of(value) if node is None else node
