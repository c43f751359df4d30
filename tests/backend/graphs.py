"""Small graphs for the tests of the backend, and how results are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.backend.compiling.native import Handle, compiled
from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.backend.planning.plan import Plan, plan_graph
from tensormagic.ir.closing import close
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.leaf import INPUT, Source, input_node, open_type, parameter


def variable(name: str, value: Any) -> Node:
    """An input that holds ``value``: an array, a NumPy scalar or a Python number."""
    form = "array" if isinstance(value, np.ndarray) else "scalar" if isinstance(value, np.generic) else "python"
    source = Source(name, value)
    array = np.asarray(value)
    return input_node(source, open_type(source, array.dtype, array.shape, form))


def closed(results: Sequence[Node]) -> tuple[Graph, list[Any]]:
    """The graph of ``results``, and the values of its parameters."""
    found = close(results, lambda n: n.op is INPUT, parameter)
    return found.graph, [leaf["source"].value for leaf in found.leaves]


def planned(*results: Node) -> Plan:
    return plan_graph(closed(results)[0])


def prepared(*results: Node) -> tuple[Handle, dict[Any, int], list[Any]]:
    """A handle that is ready, the sizes, and the values to run it with."""
    graph, values = closed(results)
    return compiled(plan_graph(graph)), graph.bind([np.shape(v) for v in values]), values


def run(*results: Node) -> list[Any]:
    handle, sizes, values = prepared(*results)
    return handle.run(sizes, *values)


def reference(*results: Node) -> list[Any]:
    graph, values = closed(results)
    return evaluate_graph(graph, values)


def assert_same(found: Any, expected: Any, ulps: float = 4, scale: Any = 0.0) -> None:
    """Same class, dtype, shape and value; floats within ``ulps`` units of the last place of value or ``scale``."""
    assert type(found) is type(expected)
    a, b = np.asarray(found), np.asarray(expected)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    if a.dtype.kind == "c":  # rounding is in units of the larger part
        with np.errstate(invalid="ignore"):
            scales = np.maximum(np.maximum(np.abs(b.real), np.abs(b.imag)), scale)
        finite = np.where(np.isfinite(scales), scales, 0.0)
        for ours, others in ((a.real, b.real), (a.imag, b.imag)):
            assert_same(np.array(ours), np.array(others), ulps, finite)
        return
    if a.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            near = np.abs(a - b) <= ulps * np.spacing(np.maximum(np.abs(b), np.asarray(scale, b.dtype)))
        wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | near)
        assert not wrong.any(), f"{a[wrong][:5]} instead of {b[wrong][:5]}"
    else:
        np.testing.assert_array_equal(a, b)


def check(*results: Node, ulps: float = 4, scale: float = 0.0) -> Plan:
    """Compiled code and NumPy agree."""
    graph, values = closed(results)
    before = [np.array(v, copy=True) for v in values]
    handle = compiled(plan_graph(graph))
    found = handle.run(graph.bind([np.shape(v) for v in values]), *values)
    with np.errstate(all="ignore"):
        expected = evaluate_graph(graph, values)
    for f, e in zip(found, expected, strict=True):
        assert_same(f, e, ulps, scale)
    arrays = [f for f in found if isinstance(f, np.ndarray)]
    for k, f in enumerate(arrays):
        assert not any(np.shares_memory(f, v) for v in (*values, *arrays[:k]))
    for v, b in zip(values, before, strict=True):
        np.testing.assert_array_equal(v, b)
    return handle.plan
