"""Regions that Python runs iteration by iteration: what they do between calls of NumPy is compiled, and their arrays are reused."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic.backend.planning.inline import expand_all
from tensormagic.backend.planning.kinds import graphs_of, is_library, kind_of, settle
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, topological
from tensormagic.ops.interpret import bind
from tensormagic.ops.op import as_form
from tensormagic.ops.opaque import Store
from tensormagic.ops.regions.branches import packed
from tensormagic.ops.regions.control import COND, LOOP, WHILE
from tensormagic.ops.regions.loops import turning
from tensormagic.ops.update import Update

Run = Callable[..., list[Any]]


def is_driven(node: Node) -> bool:
    """Return whether a region that cannot be one function has parts worth compiling."""
    return node.op in {LOOP, WHILE, COND} and all(map(_is_fit, graphs_of(node))) and any(map(_gains, graphs_of(node)))


def _nodes(graph: Graph) -> list[Node]:
    nodes = topological(expand_all([*graph.results, *graph.checked]))
    settle(nodes)
    return nodes


def _is_fit(graph: Graph) -> bool:
    """Return whether a graph has neither tapes nor library stores, which the NumPy tier does in place."""
    nodes = _nodes(graph)
    tapes = any(t.form == "tape" for n in nodes for t in n.types)
    stores = any(is_library(n) and isinstance(n.op, Update | Store) for n in nodes)
    return not tapes and not stores


def _gains(graph: Graph) -> bool:
    """Return whether anything in a graph is compiled."""
    kinds = {"map", "fold", "store", "sequence", "region"}
    return any(kind_of(n) in kinds or (is_library(n) and is_driven(n)) for n in _nodes(graph))


def changed(node: Node, name: str) -> range:
    """Return the numbers of the parameters of a region's graph that the region owns, so that they may be changed."""
    first = int(node.op is LOOP)
    return range(first, first + node["carries"]) if name == "body" else range(0)


def bound(node: Node, runs: Mapping[str, Run]) -> Callable[[Sequence[Any], int], Any]:
    """Return a function of a region's operands and the address of the stop flag, given the functions of its graphs."""
    if node.op is COND:
        return lambda values, flag: packed(_choice(node, runs, values, flag))
    return lambda values, flag: packed(_repetition(node, runs, values, flag))


def _formed(graph: Graph, values: Sequence[Any], first: int) -> list[Any]:
    types = [p.type for p in graph.parameters[first:]]
    return [v if t.shape else as_form(v, t.form) for v, t in zip(values, types, strict=True)]


def _choice(node: Node, runs: Mapping[str, Run], values: Sequence[Any], flag: int) -> list[Any]:
    name = "then" if values[0] else "otherwise"
    given = _formed(node[name], values[1:], 0)
    return runs[name](bind(node[name], given), *given, flag=flag)


def _repetition(node: Node, runs: Mapping[str, Run], values: Sequence[Any], flag: int) -> list[Any]:
    """Run a loop iteration by iteration; each iteration owns its carries."""
    body, count = node["body"], node["carries"]
    first = int(node.op is LOOP)
    given = _formed(body, values[first:], first)
    state, constants = [_own(v) for v in given[:count]], given[count:]
    iterations = range(int(values[0])) if first else None
    sizes: dict[Any, int] | None = None
    tested = {} if first else bind(node["test"], given)
    number = 0
    turning.loops.append(iteration := [0, 0 if iterations is None else len(iterations)])
    try:
        while (
            number < len(iterations)
            if iterations is not None
            else runs["test"](tested, *state, *constants, flag=flag)[0]
        ):
            if flag and ctypes.c_uint8.from_address(flag).value:
                raise KeyboardInterrupt
            operands = [number, *state, *constants] if first else [*state, *constants]
            if sizes is None:
                sizes = bind(body, operands)
            state = _apart(runs["body"](sizes, *operands, flag=flag))
            iteration[0] = number = number + 1
    finally:
        turning.loops.pop()
    return state


def _own(value: Any) -> Any:
    return np.array(value, order="C") if isinstance(value, np.ndarray) else value


def _apart(values: list[Any]) -> list[Any]:
    """Return the values with copies, so that no array occurs twice."""
    seen: set[int] = set()
    for k, value in enumerate(values):
        if isinstance(value, np.ndarray):
            if id(value) in seen:
                values[k] = value.copy()
            seen.add(id(values[k]))
    return values
