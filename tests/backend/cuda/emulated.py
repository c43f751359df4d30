"""Graphs whose steps are all kernels, run by the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensormagic.backend.cuda.emulator import Report, launch, parse
from tensormagic.backend.cuda.kernels import lower
from tensormagic.backend.cuda.launch import Array, Count, Fault, Launch, Number, Scratch, chosen
from tensormagic.backend.cuda.plan import plan_device
from tensormagic.backend.schedule import Kernel
from tensormagic.backend.steps import arrays
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import evaluate
from tests.backend.graphs import closed

ROOM = 16  # bytes that an array has at least


class Emulation:
    """One run of a graph; arrays are bytes, by their owners."""

    def __init__(self, graph: Graph, values: Sequence[Any]) -> None:
        self.plan = plan_device(graph)
        self.sizes = graph.bind([np.shape(v) for v in values])
        self.held: dict[Any, np.ndarray] = {}
        for p, v in zip(graph.parameters, values, strict=True):
            data = np.ascontiguousarray(v, p.type.dtype).reshape(-1).view(np.uint8)
            self.held[p] = np.concatenate([data, np.zeros(max(0, ROOM - data.size), np.uint8)])
        self.fault = np.zeros(4, np.int64)
        self.launches: list[Launch] = []
        self.reports: list[Report] = []
        for step in self.plan.steps:
            assert isinstance(step, Kernel), f"the library has to compute {step}"
            launches = lower(step, self.plan)
            assert launches is not None, "there is no kernel"
            for one in chosen(launches, self.sizes):
                self._launch(one)

    def _launch(self, one: Launch) -> None:
        blocks, threads, shared = one.grid(self.sizes)
        self.launches.append(one)
        if blocks:
            program = parse(one.compile().data.decode())
            self.reports.append(launch(program, blocks, threads, shared, [self._argument(p) for p in one.parameters]))
            for report in self.reports:
                assert not report.issues, report.issues

    def _argument(self, parameter: Any) -> Any:
        if isinstance(parameter, Count):
            return np.int64(evaluate(parameter.size, self.sizes.__getitem__))
        if isinstance(parameter, Number):
            return parameter.value
        if isinstance(parameter, Fault):
            return self.fault.view(np.uint8)
        key = parameter.key if isinstance(parameter, Scratch) else parameter.node
        if key not in self.held:
            count = parameter.count if isinstance(parameter, Scratch) else parameter.node.type.size
            dtype = np.dtype(parameter.type.lstrip("*"))
            size = max(ROOM, evaluate(count, self.sizes.__getitem__) * dtype.itemsize)
            self.held[key] = np.full(size, 0xCB, np.uint8)
        assert isinstance(parameter, Array | Scratch)
        return self.held[key]

    def value(self, node: Node) -> np.ndarray:
        """What a stored node is."""
        shape = tuple(evaluate(s, self.sizes.__getitem__) for s in node.type.shape)
        if 0 in shape:
            return np.empty(shape, node.type.dtype)
        data = self.held[self.plan.memory.owner(node)].view(node.type.dtype)
        return data[: int(np.prod(shape))].reshape(shape)


def emulated(*results: Node) -> list[np.ndarray]:
    """The values of results, and whether something went wrong is asserted."""
    graph, values = closed(results)
    found = Emulation(graph, values)
    assert arrays(found.plan.block.results) or found.plan.block.results
    return [found.value(r) for r in found.plan.block.results]
