"""Run a graph by the kernels of its plan, and by library calls where there is no kernel.

The library runs the first runs of a graph, node by node; a graph that has taken long enough has its kernels
compiled beside those runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any

import numpy as np

from tensormagic.backend.cuda import clock, memory
from tensormagic.backend.cuda.compiling.compiler import Codes
from tensormagic.backend.cuda.device import Device, DeviceArray
from tensormagic.backend.cuda.kernels.launch import (
    Array,
    Count,
    Fault,
    Launch,
    Number,
    Parameter,
    Scratch,
    UnsupportedError,
    chosen,
)
from tensormagic.backend.cuda.kernels.lowering import lower
from tensormagic.backend.cuda.plan import plan_device
from tensormagic.backend.cuda.step_order import by_arrival
from tensormagic.backend.cuda.streams import Arriving
from tensormagic.backend.planning.inline import is_room
from tensormagic.backend.planning.kinds import is_base, kind_of
from tensormagic.backend.planning.plan import Arranged, nodes_of_kernel
from tensormagic.backend.planning.purpose import for_device
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.backend.planning.steps import Check, needed, produced
from tensormagic.backend.running.thread_warnings import tell_once
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph, check
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import Size, Symbol, evaluate
from tensormagic.ops.leaf import CONSTANT
from tensormagic.ops.op import Value, as_form

Compute = Callable[[Node, list[Value], Any], Value]
ALIGNED = 16  # bytes of the alignment that vector loads of kernels need


class Planned:
    """The plan of a graph, with its kernels as far as they are compiled.

    Parameters
    ----------
    graph
        What is run.
    changed
        The numbers of the parameters that belong to it, and may be stored into.
    plan
        What makes the plan.
    """

    @for_device
    def __init__(self, graph: Graph, changed: Iterable[int] = (), plan: Callable[..., Arranged] = plan_device) -> None:
        self.plan = plan(graph, changed)
        self.launches = {s: lower(s, self.plan) for s in self.plan.steps if isinstance(s, Kernel)}
        self.has_kernels = any(self.launches.values())
        self.codes = Codes((one for found in self.launches.values() for one in every(found or ())), whole=False)
        self._dies = self._deaths(self.plan.steps)
        self._orders: dict[tuple[int, ...], tuple[Sequence[Kernel | Node], dict[int, list[Node]]]] = {}

    @for_device
    def in_order(self, ranks: tuple[int, ...]) -> tuple[Sequence[Kernel | Node], dict[int, list[Node]]]:
        """Return the steps in the order in which parameters arrive, and for each step number the arrays that are dead after it."""
        if not ranks:
            return self.plan.steps, self._dies
        if ranks not in self._orders:
            known = dict(zip(self.plan.graph.parameters, ranks, strict=True))
            steps = by_arrival(self.plan.steps, self.plan.memory.owner, lambda s: every(self.launched(s) or ()), known)
            self._orders[ranks] = steps, self._deaths(steps)
        return self._orders[ranks]

    def launched(self, step: Kernel | Node) -> tuple[Launch, ...] | None:
        """Return the launches of a step, or None where the library computes it."""
        found = self.launches.get(step) if isinstance(step, Kernel) else None
        refused = self.codes.errors
        return None if found is None or (refused and any(one in refused for one in every(found))) else found

    def _deaths(self, steps: Sequence[Kernel | Node]) -> dict[int, list[Node]]:
        """Return for each step number the arrays that nothing needs after it."""
        last: dict[Node, int] = {}
        for number, step in enumerate(steps):
            parts = step.steps if isinstance(step, Kernel) else [step]
            used = [n for part in parts for n in (*needed(part), *produced(part))]
            launches = self.launched(step)
            used += [p.node for one in every(launches or ()) for p in one.parameters if isinstance(p, Array)]
            last.update((self.plan.memory.owner(n), number) for n in used)
        kept = {self.plan.memory.owner(r) for r in self.plan.block.results}
        found: dict[int, list[Node]] = {}
        for node, number in last.items():
            if node not in kept:
                found.setdefault(number, []).append(node)
        return found

    @for_device
    def peak(self, symbols: Mapping[Symbol, int]) -> tuple[int, Node | None]:
        """Return the peak bytes of a run beside its inputs, and the node with the largest array; data-dependent sizes count as nothing."""
        live = most = 0
        largest: tuple[int, Node | None] = (0, None)
        taken: dict[Node, int] = {}
        for number, step in enumerate(self.plan.steps):
            for node in map(self.plan.memory.owner, self._stored(step)):
                if node not in taken and not is_base(node):
                    taken[node] = _bytes(node, symbols)
                    live += taken[node]
                    largest = max(largest, (taken[node], node), key=lambda pair: pair[0])
            most = max(most, live)
            live -= sum(taken.pop(node, 0) for node in self._dies.get(number, ()))
        return most, largest[1]

    def _stored(self, step: Kernel | Node) -> list[Node]:
        """Return the nodes that a step stores in memory: for a kernel those its launches have as arrays, not values in registers."""
        launches = self.launched(step)
        if launches is None:
            return [n for part in (step.steps if isinstance(step, Kernel) else [step]) for n in produced(part)]
        return [p.node for one in launches for p in one.parameters if isinstance(p, Array)]


def _bytes(node: Node, symbols: Mapping[Symbol, int]) -> int:
    try:
        return sum(
            math.prod(s if isinstance(s, int) else evaluate(s, symbols.__getitem__) for s in t.shape) * t.dtype.itemsize
            for t in node.types
        )
    except LookupError:
        return 0


def every(launches: Sequence[Launch]) -> Iterator[Launch]:
    """Yield launches, with their alternatives for other sizes."""
    for one in launches:
        yield one
        yield from every(one.otherwise)


@lru_cache(maxsize=256)
def planned(graph: Graph) -> Planned | None:
    """Return the plan of a graph, or None where it cannot be planned."""
    try:
        return Planned(graph)
    except Exception as error:  # noqa: BLE001 (the library runs it, node by node)
        tell_once(f"a graph has no plan for the device, the library runs it: {type(error).__name__}: {error}")
        return None


class _Sizes(Mapping[Any, int]):
    """A mapping from symbols and computed integers to their numbers, each looked up when asked for."""

    def __init__(self, symbols: Mapping[Symbol, int], value: Callable[[Node], Value]) -> None:
        self.symbols = symbols
        self.value = value

    def __getitem__(self, a: Any) -> int:
        return self.symbols[a] if isinstance(a, Symbol) else int(self.value(a))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.symbols)

    def __len__(self) -> int:
        return len(self.symbols)

    def __call__(self, size: Size) -> int:
        """Return the number that a size evaluates to."""
        return size if isinstance(size, int) else evaluate(size, self.__getitem__)

    def atom(self, a: Any) -> int:
        """Return the number of a symbol or a node."""
        return self[a]


class Execution:
    """One run of a plan.

    Parameters
    ----------
    of
        The plan, whose kernels are ready.
    device
        Where it runs.
    compute
        What computes one node that has no kernel.
    arriving
        Arrays that are on their way to the device.
    """

    def __init__(self, of: Planned, device: Device, compute: Compute, arriving: Arriving | None = None) -> None:
        self.arriving = arriving or Arriving(device)
        self.of = of
        self.plan = of.plan
        self.device = device
        self.compute = compute
        self.held: dict[Node, Value] = {}
        self.packs: dict[Node, DeviceArray] = {}
        self.faults: list[DeviceArray] = []
        self.sizes = _Sizes({}, self.operand)

    @for_device
    def run(self, symbols: Mapping[Symbol, int], values: Sequence[Value]) -> list[Value] | None:
        """Return the results, or None where a kernel has set a fault flag, so that the library has to raise the error."""
        self.sizes = _Sizes(symbols, self.operand)
        self.held.update(zip(self.plan.graph.parameters, values, strict=True))
        arriving = self.arriving
        steps, dies = self.of.in_order(arriving.order.ranks if arriving.graph is self.plan.graph else ())
        for number, step in enumerate(steps):
            with clock.at(*self._computed(step)) if clock.runs() else nullcontext():
                self._step(step)
            for node in dies.get(number, ()):
                self.held.pop(node, None)
                self.packs.pop(node, None)
        if self._is_wrong():
            return None
        return [self.operand(r) for r in self.plan.block.results]

    def _step(self, step: Kernel | Node) -> None:
        launches = self.of.launched(step)
        if launches is not None and isinstance(step, Kernel):
            self._at_line(launches, step)
        elif isinstance(step, Kernel):
            self._by_library(step)
        else:
            self.held[step] = self._own(self._called(step))

    def _computed(self, step: Kernel | Node) -> Sequence[Node]:
        return nodes_of_kernel(step, self.plan.is_stored) if isinstance(step, Kernel) else (step,)

    def _is_wrong(self) -> bool:
        if not self.faults:
            return False
        xp = self.device.library
        return bool(self.device.read(xp.any(xp.concatenate(self.faults))))

    def _at_line(self, launches: Sequence[Launch], kernel: Kernel) -> None:
        """Run the launches of a kernel; running out of memory is an error at the line of what they compute."""
        try:
            self._launched(launches)
        except MemoryError as error:
            if isinstance(error, TensorError):
                raise
            node = next((n for part in kernel.steps for n in produced(part)), None)
            raise memory.short(self.device, error, node) from error

    # values of nodes

    def operand(self, node: Node) -> Value:
        """Return the value of a node in the form that the library takes."""
        if is_base(node) and node.op is not CONSTANT:
            if is_room(node):
                return self._packed(node)
            self.arriving.need([self.held[node]])
            return self.held[node]
        if node.op is CONSTANT:
            return as_form(node["bits"].array(), node.type.form)
        if kind_of(node) == "view":
            return self._reshaped(self.operand(node.args[0]), node)
        owner = self.plan.memory.owner(node)
        if owner in self.held:
            return self.held[owner]
        return self._called(node)

    def _reshaped(self, value: Value, node: Node) -> Value:
        shape = tuple(map(self.sizes, node.type.shape))
        if self.device.is_array(value):
            return self.device.library.reshape(value, shape)
        return np.reshape(value, shape)

    def _called(self, node: Node) -> Value:
        self.arriving.need(map(self.held.get, node.args))
        return self.compute(node, [self.operand(a) for a in node.args], self.sizes)

    def _by_library(self, kernel: Kernel) -> None:
        """Compute what a kernel would compute by library calls, node by node."""
        results = [n for step in kernel.steps for n in produced(step)]
        table: dict[Node, Value] = {}

        def is_there(node: Node) -> bool:
            return node.op is CONSTANT or is_base(node) or self.plan.memory.owner(node) in self.held

        for node in topological(results, stop=lambda n: n not in results and is_there(n)):
            if node not in results and is_there(node):
                table[node] = self.operand(node)
            else:
                table[node] = self.compute(node, [table[a] for a in node.args], self.sizes)
        for node in results:
            self._keep(node, table[node])
        for step in kernel.steps:
            if isinstance(step, Check):
                check(step.guard, self.sizes.__getitem__)

    def _keep(self, node: Node, value: Value) -> None:
        """Store a value in the array of its owner, which other values may share."""
        owner = self.plan.memory.owner(node)
        if owner is not node and owner in self.held and node.type.shape:
            self._packed(owner)[...] = value
        else:
            self.held[owner] = self._own(value)
            self.packs.pop(owner, None)

    def _own(self, value: Value) -> Value:
        """Return a value in memory of its own, copied if another value shares it, so that a kernel may store into it."""
        if isinstance(value, tuple):
            return tuple(map(self._own, value))
        if not self.device.is_array(value):
            return value
        shared = value.base is not None or any(value is other for other in self.held.values())
        return value.copy() if shared or not value.flags.c_contiguous else value

    # launches of kernels

    def _packed(self, node: Node) -> DeviceArray:
        """Return the array of an owner in the layout that kernels read, allocated where there is none yet."""
        if node in self.packs:
            return self.packs[node]
        dtype = node.type.dtype
        if node not in self.held and node.op is not CONSTANT:
            made = self.device.library.empty(tuple(map(self.sizes, node.type.shape)), dtype)
            self.held[node] = self.packs[node] = made
            return made
        value = self.operand(node)
        if not self.device.is_array(value):
            array = np.asarray(value, dtype)
            value = self.device.put(array) if array.ndim else self.device.library.full((), array[()], dtype)
        elif not value.flags.c_contiguous or self.device.address(value) % ALIGNED:
            value = value.copy()
        self.packs[node] = value
        if node in self.plan.carries or is_base(node):
            return value
        self.held[node] = value
        return value

    def _launched(self, launches: Sequence[Launch]) -> None:
        scratch: dict[Any, DeviceArray] = {}
        for one in chosen(launches, self.sizes):
            self.arriving.need(self.held.get(p.node) for p in one.parameters if isinstance(p, Array))
            blocks, threads, shared = one.grid(self.sizes)
            arguments = [self._argument(p, scratch) for p in one.parameters]
            if blocks:
                self.device.launch(self.of.codes.loaded(self.device, one), (blocks,), (threads,), arguments, shared)

    def _argument(self, parameter: Parameter, scratch: dict[Any, DeviceArray]) -> Any:
        if isinstance(parameter, Count):
            return np.int64(self.sizes(parameter.size))
        if isinstance(parameter, Number):
            return parameter.value
        if isinstance(parameter, Fault):
            self.faults.append(self.device.library.zeros(4, np.int64))
            return self.faults[-1]
        if isinstance(parameter, Array):
            return self._packed(parameter.node)
        if not isinstance(parameter, Scratch):
            raise UnsupportedError("a flag that a loop has")
        if parameter.key not in scratch:
            scratch[parameter.key] = self.device.library.empty(max(1, self.sizes(parameter.count)), parameter.dtype)
        return scratch[parameter.key]
