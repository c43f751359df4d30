"""The NumPy tier: every node by NumPy itself, one after the other, each value dropped when its last user has run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tensormagic.backend.numpy_tier import one_sided_choices
from tensormagic.ir.errors import CaptureError, ShapeError
from tensormagic.ir.graph import Graph, check, checks_after, guards_of, sizer
from tensormagic.ir.node import Node, topological
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import atoms, evaluate, nodes_of
from tensormagic.ops.effects.raising import CHECK, name_of
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.regions.loops import LOOP

Run = Callable[..., list[Any]]


def compile(graph: Graph) -> Run:
    """Return a function that maps the parameters' values to the list of results.

    The caller has checked the guards: ``run(sizes, *values)`` takes the sizes that :meth:`Graph.bind` returned.
    """
    given = set(graph.parameters)
    nodes = [n for n in graph.nodes if n not in given]
    kept = {*graph.results, *graph.parameters}
    sides = one_sided_choices.plan(
        nodes, {*kept, *(n for a, _, b in graph.guards for n in (*nodes_of(a), *nodes_of(b)))}
    )
    nodes = sides.order
    checks = checks_after(graph, nodes)
    needed = [_needed(node, checks.get(node, ()), sides) for node in nodes]
    last = {a: k for k, needs in enumerate(needed) for a in needs}
    steps = [
        (node, node.args, [a for a in dict.fromkeys(needed[k]) if last[a] == k and a not in kept], checks.get(node, ()))
        for k, node in enumerate(nodes)
    ]
    first, has_choices = checks.get(None, ()), bool(sides.choices)

    def run(sizes: dict[Any, int], *values: Any) -> list[Any]:
        table: dict[Any, Any] = dict(zip(graph.parameters, values, strict=True))
        size = sizer(sizes, table)
        for guard in first:
            check(guard, size.atom)
        looks = one_sided_choices.Looks(sides, table)
        for node, operands, dead, guards in steps:
            if not has_choices or not looks.leaves_out(node):
                try:
                    taken = looks.taken(node) if has_choices else None
                    if taken is None:
                        table[node] = node.op.evaluate(node, [table[a] for a in operands], size)
                    else:
                        table[node] = table[taken]
                    if guards:
                        _check(graph, guards, size)
                except BaseException as error:
                    if getattr(error, "tensor_node", None) is None:  # not told by a node inside this one
                        error.tensor_node = node  # type: ignore[attr-defined] # where it came from, for whoever shows it
                    raise
            for a in dead:
                table.pop(a, None)
        return [table[r] for r in graph.results]

    return run


def _check(graph: Graph, guards: Iterable[Guard], size: sizer) -> None:
    """Check sizes; the error of a failed check names the node that asked for it."""
    for guard in guards:
        try:
            check(guard, size.atom)
        except ShapeError as error:
            error.tensor_node = next((n for n in graph.nodes if guard in guards_of(n)), None)  # type: ignore[attr-defined]
            raise


def _needed(node: Node, guards: Iterable[Guard], sides: one_sided_choices.Plan) -> tuple[Node, ...]:
    """Return what a node needs: operands, nodes in sizes and guards, and the conditions that may leave it out."""
    sizes = [n for a, _, b in guards for n in (*nodes_of(a), *nodes_of(b))]
    return (*node.needs, *sizes, *(condition for condition, _ in sides.skips.get(node, ())))


def least_seconds(graph: Graph, sizes: Mapping[Any, int], values: Sequence[Any] = ()) -> float:
    """Return a lower bound of the time of loops whose number of iterations is known before the run."""
    regions = [n for n in graph.nodes if n.op.kind == "region"]
    if not regions:
        return 0.0
    known = dict(zip(graph.parameters, values, strict=False))
    total = 0.0
    for node in regions:
        inner = [g for _, g in node.param_items if isinstance(g, Graph)]
        once = sum(_STEP * len(g.nodes) + least_seconds(g, {}) for g in inner)
        total += once * (_count(node.args[0], sizes, known) if node.op is LOOP else 1)
    return total


_STEP = 3e-7  # seconds of a node in an iteration


def _count(node: Node, sizes: Mapping[Any, int], known: Mapping[Node, Any]) -> int:
    """Return the number of iterations; 1 if it is not known."""
    if node.op is CONSTANT:
        return int(node["bits"].array())
    if node in known:
        return int(known[node])
    size = node.params.get("size", 1)
    return 1 if nodes_of(size) or any(a not in sizes for a in atoms(size)) else evaluate(size, sizes.__getitem__)


def refusal(graph: Graph, sizes: dict[Any, int], values: Sequence[Any]) -> CaptureError | None:
    """The CaptureError that a graph raises for some data, if any: it precedes errors of sizes and indices, which may follow from it."""
    table: dict[Any, Any] = dict(zip(graph.parameters, values, strict=True))
    size = sizer(sizes, table)
    refusing = [n for n in graph.nodes if n.op is CHECK and n["error"] == name_of(CaptureError)]
    for node in topological(refusing, stop=lambda n: n in table):
        if node in table:
            continue
        try:
            table[node] = node.op.evaluate(node, [table[a] for a in node.args], size)
        except CaptureError as error:
            return error
        except Exception:  # noqa: BLE001 (the first error is known)
            return None
    return None


def owned(results: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Writable results that share memory neither with ``values`` nor with each other."""
    roots = {id(_root(v)) for v in values if isinstance(v, np.ndarray)}
    found: list[Any] = []
    for result in results:
        shared = isinstance(result, np.ndarray) and (id(_root(result)) in roots or not result.flags.writeable)
        own = np.array(result, order=_order(result), copy=True) if shared else result
        if isinstance(own, np.ndarray):
            roots.add(id(_root(own)))
        found.append(own)
    return found


def _order(array: np.ndarray[Any, Any]) -> Literal["K", "C"]:
    """Return the layout of a copy: as the array, except C order for arrays that repeat elements (`np.broadcast_to`)."""
    repeats = any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True))
    return "C" if repeats else "K"


def _root(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array that owns the memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def evaluate_graph(graph: Graph, values: Sequence[Any]) -> list[Any]:
    """Return the results of ``graph`` for values of its parameters, by NumPy."""
    return compile(graph)(graph.bind([np.shape(v) for v in values]), *values)
