"""Functions all of whose steps are kernels, run by the emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cuda.compiling.compiler import compiled, is_there
from tensormagic.backend.cuda.kernels.launch import Array, Count, Fault, Launch, Number, Scratch, chosen
from tensormagic.backend.cuda.kernels.lowering import lower
from tensormagic.backend.cuda.plan import plan_device
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.ir.node import Node
from tensormagic.ir.size import evaluate
from tensormagic.ops.leaf import CONSTANT
from tests.backend.cuda.emulator import Report, blank, launch, parse

ROOM = 16  # bytes that an array has at least
compiles = pytest.mark.skipif(not is_there(), reason="needs numba-cuda and nvidia-nvvm, which compile kernels")


_WIDE = {"float16": np.float32, "float32": np.float64, "complex64": np.complex128} | {
    "float64": np.longdouble,
    "complex128": np.clongdouble,
}


class Emulation:
    """One run of a function; arrays are bytes, by their owners."""

    def __init__(self, function: Callable[..., Any], *values: Any) -> None:
        names = iter("abcdefghijklmnopqrstuvwxyz")
        like = [
            v if np.size(v) < 2 else f"{v.dtype}[{', '.join(self._size(s, names) for s in v.shape)}]" for v in values
        ]
        self.graph = tm.trace(function, *like)
        self.plan = plan_device(self.graph)
        self.sizes = self.graph.bind([np.shape(v) for v in values])
        self.held: dict[Any, np.ndarray] = {}
        for p, v in zip(self.graph.parameters, values, strict=True):
            data = np.ascontiguousarray(v, p.type.dtype).reshape(-1).view(np.uint8)
            self.held[p] = np.concatenate([data, np.zeros(max(0, ROOM - data.size), np.uint8)])
        self.fault = np.zeros(4, np.int64)
        self.launches: list[Launch] = []
        self.reports: list[Report] = []
        for step in self.plan.steps:
            launches = lower(step, self.plan) if isinstance(step, Kernel) else None
            assert launches is not None, f"there is no kernel for {step}"
            for one in chosen(launches, self.sizes):
                self._launch(one)

    @staticmethod
    def _size(size: int, names: Any) -> str:
        return next(names) if size > 1 else str(size)

    def _launch(self, one: Launch) -> None:
        blocks, threads, shared = one.grid(self.sizes)
        self.launches.append(one)
        if blocks:
            program = parse(compiled(one).data.decode())
            report = launch(program, blocks, threads, shared, [self._argument(p) for p in one.parameters])
            assert not report.issues, report.issues
            self.reports.append(report)

    def _argument(self, parameter: Any) -> Any:
        if isinstance(parameter, Count):
            return np.int64(evaluate(parameter.size, self.sizes.__getitem__))
        if isinstance(parameter, Number):
            return parameter.value
        if isinstance(parameter, Fault):
            return self.fault.view(np.uint8)
        if isinstance(parameter, Array) and parameter.node.op is CONSTANT:
            return np.ascontiguousarray(parameter.node["bits"].array()).reshape(-1).view(np.uint8)
        key = parameter.key if isinstance(parameter, Scratch) else parameter.node
        if key not in self.held:
            count = parameter.count if isinstance(parameter, Scratch) else parameter.node.type.size
            dtype = np.dtype(parameter.type.lstrip("*"))
            size = max(ROOM, evaluate(count, self.sizes.__getitem__) * dtype.itemsize)
            self.held[key] = blank(np.full(size, 0xCB, np.uint8))
        return self.held[key]

    @property
    def names(self) -> list[str]:
        """What was launched, in order."""
        return [one.name for one in self.launches]

    def results(self) -> list[np.ndarray]:
        """What was computed."""
        return [self._value(r) for r in self.plan.block.results]

    def _value(self, node: Node) -> np.ndarray:
        shape = tuple(evaluate(s, self.sizes.__getitem__) for s in node.type.shape)
        if 0 in shape:
            return np.empty(shape, node.type.dtype)
        data = self.held[self.plan.memory.owner(node)].view(node.type.dtype)
        return data[: int(np.prod(shape))].reshape(shape)


def holds(function: Callable[..., Any], *values: Any, ulps: float = 2) -> Emulation:
    """Assert that a function gives what NumPy gives: floats within so many units of the last place of the largest number there.

    NumPy has wider floats there, so that its own rounding does not count.
    """
    found = Emulation(function, *(v.copy() for v in values))
    wide = [v.astype(_WIDE.get(v.dtype.name, v.dtype)) for v in values]
    expected = function(*(v.copy() for v in wide))
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for ours, theirs in zip(found.results(), map(np.asarray, wanted), strict=True):
        assert ours.shape == theirs.shape
        own, numpys = (np.stack([v.real, v.imag]) if ours.dtype.kind == "c" else v for v in (ours, theirs))
        if own.dtype.kind != "f":
            assert own.dtype == numpys.dtype
            np.testing.assert_array_equal(own, numpys)
        elif own.size:
            taken = [np.abs(v[np.isfinite(v)]).max(initial=0) for v in (numpys, *wide) if v.dtype.kind in "fc"]
            unit = np.spacing(own.dtype.type(max(taken)))
            np.testing.assert_allclose(own.astype(np.longdouble), numpys, rtol=0, atol=float(unit) * ulps)
    return found


def integers(count: int | Sequence[int], dtype: str, most: int = 100) -> np.ndarray:
    """Numbers from 1 on, the same each time."""
    return np.random.default_rng(1).integers(1, most, count).astype(dtype)


def normals(count: int | Sequence[int], dtype: str = "float64") -> np.ndarray:
    """Numbers of both signs, the same each time."""
    return np.random.default_rng(2).normal(size=count).astype(dtype)
