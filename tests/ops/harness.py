"""What the generated tests of ops share: backends, running nodes on arrays, bits, layouts and samples."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tensormagic.backend.numpy_tier import reference
from tensormagic.ir.closing import close
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import evaluate, nodes_of
from tensormagic.ir.text import parse
from tensormagic.ops.leaf import INPUT, Source, input_node, open_type, parameter
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import Pointwise

DTYPES = [np.dtype(t) for t in ["?", "b", "h", "i", "l", "B", "H", "I", "L", "f", "d", "F", "D"]]
Backend = Callable[[Graph], Callable[[Sequence[Any]], list[Any]]]
BACKENDS: dict[str, Backend] = {
    "reference": lambda graph: lambda values: reference.evaluate_graph(graph, values),
}
# Operands that have no derivative: the condition of where, the orders of special functions.
FIXED = {op.name: [np.array(f) for f in op.fixed] for op in registry.values() if isinstance(op, Pointwise) and op.fixed}
ERRORS = (TypeError, IndexError, ValueError, OverflowError)


def place(value: Any, name: str = "x") -> Node:
    """An input for a value: an array's sizes stay open, a Python number is weak."""
    form = (
        "python"
        if type(value) in {bool, int, float, complex}
        else "scalar"
        if isinstance(value, np.generic)
        else "array"
    )
    array = np.asarray(value)
    source = Source(name, value)
    return input_node(source, open_type(source, array.dtype, array.shape, form))


def closed(results: Sequence[Node], inputs: Sequence[Node]) -> Graph:
    """The closed graph of results, with its text round trip checked."""
    graph = close(results, lambda n: n.op is INPUT, parameter, leaves=inputs).graph
    assert parse(graph.text, registry) == graph, graph.text
    return graph


def listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


def outcome(run: Callable[[], Any]) -> Any:
    """The list of results, or the class of error that a NumPy user would catch."""
    try:
        with np.errstate(all="ignore"):
            return listed(run())
    except ERRORS as error:
        return next(kind for kind in ERRORS if isinstance(error, kind))


def run_nodes(backend: str, build: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
    """The results of ``build`` on inputs with these values; the nodes' types are held against what comes out."""
    inputs = [place(v) for v in values]
    graph = closed(listed(build(*inputs)), inputs)
    before = [np.array(v) for v in values]
    results = BACKENDS[backend](graph)(values)
    for node, result in zip(graph.results, results, strict=True):
        assert_type(graph, node, result, values)
    for value, old in zip(values, before, strict=True):
        assert_bits(np.asarray(value), old)
    return results


def assert_type(graph: Graph, node: Node, result: Any, values: Sequence[Any]) -> None:
    sizes = graph.bind([np.shape(v) for v in values])
    extents = zip(node.type.shape, np.shape(result), strict=True)  # a size that depends on data is what came out
    shape = tuple(n if nodes_of(s) else evaluate(s, sizes.__getitem__) for s, n in extents)
    form = "array" if isinstance(result, np.ndarray) else "scalar" if isinstance(result, np.generic) else "python"
    assert (np.asarray(result).dtype, np.shape(result), form) == (node.type.dtype, shape, node.type.form), graph.text


def assert_bits(ours: Any, numpys: Any) -> None:
    """Same dtype, shape and bits; one nan is as good as another."""
    a, b = np.asarray(ours), np.asarray(numpys)
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    for left, right in ((a.real, b.real), (a.imag, b.imag)) if a.dtype.kind == "c" else ((a, b),):
        x, y = np.ascontiguousarray(left), np.ascontiguousarray(right)
        different = np.frombuffer(x.tobytes(), f"V{x.itemsize}") != np.frombuffer(y.tobytes(), f"V{y.itemsize}")
        if x.dtype.kind == "f":
            different &= ~(np.isnan(x) & np.isnan(y)).ravel()
        assert not different.any(), (x.ravel()[different][:5], y.ravel()[different][:5])


def assert_same(
    backend: str, build: Callable[..., Any], oracle: Callable[..., Any], values: Sequence[Any], ulp: int = 0
) -> bool:
    """Values as NumPy's, or an error of the same class; whether there were values.

    ``ulp`` is for what NumPy does not have, and is held against another formula.
    """
    expected = outcome(lambda: oracle(*values))
    ours = outcome(lambda: tuple(run_nodes(backend, build, values)))
    if isinstance(expected, type) or isinstance(ours, type):
        assert ours == expected, values
        return False
    for a, b in zip(ours, expected, strict=True):
        if ulp:
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(
                a, b, rtol=ulp * np.finfo(np.asarray(b).dtype).eps, atol=np.finfo(np.asarray(b).dtype).tiny
            )
        else:
            assert_bits(a, b)
    return True


def sample(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Random elements of moderate size."""
    dtype = np.dtype(dtype)
    match dtype.kind:
        case "b":
            return np.asarray(rng.integers(0, 2, shape)).astype(bool)
        case "u":
            return np.asarray(rng.integers(0, 10, shape)).astype(dtype)
        case "i":
            return np.asarray(rng.integers(-9, 10, shape)).astype(dtype)
        case "f":
            return np.asarray(rng.normal(size=shape) * 2).astype(dtype)
        case _:
            return np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def layouts(x: np.ndarray) -> Iterator[np.ndarray]:
    """The same elements in other places of memory, and read-only."""
    yield x
    if x.ndim:
        yield np.asfortranarray(x)
        wide = np.repeat(x, 2, axis=-1)
        yield wide[..., ::2]
        yield np.ascontiguousarray(x[::-1])[::-1]
        yield np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    locked = np.array(x)
    locked.flags.writeable = False
    yield locked
