"""The cost model of ``--device auto``: estimates from sizes alone how long a graph takes on the CPU and on the device, copies included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from tensormagic.ir.cost import weight
from tensormagic.ir.graph import Graph, bare_symbol
from tensormagic.ir.node import Node, as_size
from tensormagic.ir.size import Size, Symbol, evaluate
from tensormagic.ops.regions.loops import LOOP, WHILE

UNKNOWN = 32  # assumed for a size or a number of iterations that depends on data
CPU_RATE, DEVICE_RATE = 4e9, 4e12  # in units of half an addition, per second
CPU_BYTES, DEVICE_BYTES, COPIED_BYTES = 1e10, 1e12, 1e10  # per second
LAUNCH = 1e-5  # seconds of overhead of each call on the device
ENOUGH = 1.5  # the device is chosen where it is this many times faster


@dataclass(frozen=True)
class Work:
    """The amount of work in a graph: operations in units of half an addition, bytes written, and calls."""

    operations: float = 0.0
    written: float = 0.0
    calls: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(self.operations + other.operations, self.written + other.written, self.calls + other.calls)

    def __mul__(self, times: float) -> Work:
        return Work(self.operations * times, self.written * times, self.calls * times)


def work(graph: Graph, sizes: Mapping[Symbol, int]) -> Work:
    """Return the work in a graph for the given sizes of its parameters."""

    def size(s: Size) -> int:
        return s if isinstance(s, int) else evaluate(s, lambda a: sizes.get(a, UNKNOWN))

    return sum((work_of(node, size) for node in graph.nodes if node.args), Work())


def work_of(node: Node, size: Callable[[Size], int]) -> Work:
    """Return the work of one operation."""
    kind = node.op.kind
    if kind == "region":
        return _region(node, size)
    if kind in {"move", "leaf"}:
        return Work()
    own = sum(prod(map(size, t.shape)) for t in node.types)
    most = max(own, *(prod(map(size, t.shape)) for a in node.args for t in a.types))
    operations = weight(node) * most
    if kind == "contract":
        letters = node["subscripts"].partition("->")[0].replace(",", "")
        extents = [size(s) for a in node.args for s in a.type.shape]
        operations = 4 * prod(dict(zip(letters, extents, strict=True)).values())
    elif kind == "opaque":
        operations = 10 * most * max((size(s) for s in node.args[0].types[0].shape[-1:]), default=1)
    return Work(operations, sum(prod(map(size, t.shape)) * t.dtype.itemsize for t in node.types), 1)


def _region(node: Node, size: Callable[[Size], int]) -> Work:
    """Return the work of the graphs of a region, times the number of iterations where that is known.

    The last parameters of each graph are bound to the last operands of the region.
    """
    found = Work()
    for graph in (v for v in node.params.values() if isinstance(v, Graph)):
        known: dict[Symbol, int] = {}
        for own, operand in zip(reversed(graph.parameters), reversed(node.args), strict=False):
            for inner, outer in zip(own.type.shape, operand.types[0].shape, strict=False):
                symbol = bare_symbol(inner)
                if symbol is not None:
                    known[symbol] = size(outer)
        found += work(graph, known)
    if node.op not in {LOOP, WHILE}:
        return found
    iterations = as_size(node.args[0]) if node.op is LOOP else None
    return found * (UNKNOWN if iterations is None else size(iterations))


def on_device(node: Node, size: Callable[[Size], int]) -> float:
    """Return the estimated seconds that the device takes for one operation, without the launch."""
    done = work_of(node, size)
    return done.operations / DEVICE_RATE + done.written / DEVICE_BYTES


def seconds(done: Work, copied: int) -> tuple[float, float]:
    """Return the estimated seconds on the CPU, and on the device with so many bytes copied to it and from it."""
    here = done.operations / CPU_RATE + done.written / CPU_BYTES
    there = LAUNCH * done.calls + done.operations / DEVICE_RATE + done.written / DEVICE_BYTES + copied / COPIED_BYTES
    return here, there


def chosen(graph: Graph, sizes: Mapping[Symbol, int], copied: int) -> tuple[bool, str]:
    """Return whether the device is faster by enough, and a sentence that says so with both estimates.

    Parameters
    ----------
    graph
        What is run.
    sizes
        Those of its parameters.
    copied
        The bytes that a run on the device copies.
    """
    here, there = seconds(work(graph, sizes), copied)
    pays = here > ENOUGH * there
    where = "on the device" if pays else "on the CPU"
    return pays, f"{where}: about {_text(here)} on the CPU, {_text(there)} on the device, copies included"


def _text(time: float) -> str:
    return f"{time:.2g} s" if time >= 1 else f"{time * 1e3:.2g} ms" if time >= 1e-3 else f"{time * 1e6:.2g} µs"
