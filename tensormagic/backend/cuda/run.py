"""Run a closed graph with arrays on a device: node by node through the table of library calls, with control flow on the host.

Numbers of Python's and NumPy's stay on the host and go to the device as arguments of its functions; a number that
is computed from data on the device stays there until control flow asks for it. What the library lacks is computed
on the host, with copies that are counted.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensormagic.backend.cuda import clock, memory, transfers
from tensormagic.backend.cuda.device import Device, DeviceArray, LaunchError, current
from tensormagic.backend.cuda.kernels import draws
from tensormagic.backend.cuda.library.call import LIBRARY, Call, Raises
from tensormagic.backend.cuda.library.table import lacking, named, simpler
from tensormagic.backend.cuda.loops import tapes
from tensormagic.backend.cuda.loops.loop_plan import LoopPlan, planned_loop
from tensormagic.backend.cuda.loops.looped import Repetition
from tensormagic.backend.cuda.loops.small_loops import alone
from tensormagic.backend.cuda.offending import CHECKS, CONTROL, hidden, offenders
from tensormagic.backend.cuda.planned import Execution, planned
from tensormagic.backend.cuda.streams import Arriving, copied_out
from tensormagic.backend.planning.purpose import for_device
from tensormagic.backend.running.thread_warnings import tell_once
from tensormagic.config import config
from tensormagic.ir import site
from tensormagic.ir.errors import TensorError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ops.draws.random import DRAW, SEED
from tensormagic.ops.effects.checks import SETTLED
from tensormagic.ops.effects.raising import CHECK
from tensormagic.ops.effects.telling import TELL
from tensormagic.ops.indices.gather import ADD_ALONG_AXIS
from tensormagic.ops.indices.position import POSITION
from tensormagic.ops.indices.scatter import SCATTER_ADD, SCATTER_MAXIMUM, SCATTER_MINIMUM, SCATTER_MULTIPLY, SCATTER_SET
from tensormagic.ops.interpret import Iterations, Step, bind, elsewhere, formed, interpret, is_alone, schedule
from tensormagic.ops.interpret import run as interpreted
from tensormagic.ops.leaf import IOTA
from tensormagic.ops.move import BROADCAST
from tensormagic.ops.op import Value
from tensormagic.ops.regions.branches import packed
from tensormagic.ops.regions.loops import LOOP, WHILE, turning
from tensormagic.ops.reverse.tape import Chosen, Tape
from tensormagic.ops.update import ADD_AT, SET

_MAKERS = frozenset([IOTA, BROADCAST])  # make an array on the device from numbers alone
_SCATTERS = [SCATTER_SET, SCATTER_ADD, SCATTER_MULTIPLY, SCATTER_MAXIMUM, SCATTER_MINIMUM]
_STORES = frozenset([SET, ADD_AT, ADD_ALONG_AXIS, *_SCATTERS])
_ASIDE = frozenset([CHECK, TELL])  # return their first operand unchanged, and look at the others
_LOOPS = frozenset([LOOP, WHILE])
_PENDING = 256  # checks that are pending before the device is asked about all of them at once


class Runner:
    """One run of a graph on a device; `tensormagic.ops.interpret` calls it for the value of each step."""

    def __init__(self, device: Device, arriving: Arriving | None = None) -> None:
        self.device = device
        self._arriving = arriving or Arriving(device)
        self._pending: list[tuple[DeviceArray, Raises, Node | None]] = []
        self._copies: dict[
            int, tuple[Any, DeviceArray]
        ] = {}  # device copies of host arrays, by id, for as long as the host arrays live
        self._node: Node | None = None
        self._refused: set[Graph | tuple[Graph, str]] = (
            set()
        )  # graphs left to the library, and (graph, "alone") for loops that no single thread may run

    def __call__(self, step: Step, given: list[Value], size: Any) -> Value:
        node = step.node
        if clock.runs():
            with clock.at(node):
                return self._told(node, given, size)
        return self._told(node, given, size)

    def _told(self, node: Node, given: list[Value], size: Any) -> Value:
        """Return the value of a node, and attach the node to any error raised while it is computed."""
        try:
            return self.computed(node, given, size)
        except BaseException as error:
            if isinstance(error, MemoryError) and not isinstance(error, TensorError):
                raise memory.short(self.device, error, node) from error
            if getattr(error, "tensor_node", None) is None:  # not yet set by an inner node
                error.tensor_node = node  # type: ignore[attr-defined] # where the error came from, for its display
            raise

    def computed(self, node: Node, given: list[Value], size: Any) -> Value:
        """Return the value of a node for these operands; an op that stores may overwrite operands that only the list refers to."""
        self._arriving.need(given)
        consume = getattr(node.op, "consume", None)
        if consume is not None:
            if node.op in _LOOPS and any(map(self._is_here, given)):
                return self._repeated(node, given, size)
            return consume(node, given, size)
        if node.op in CHECKS and self._is_here(given[1]):
            return self._checked(node, given)
        if node.op is POSITION and not node.type.shape and self._is_here(given[0]):
            given = [self.device.read(given[0])]
        if tapes.is_on_tapes(node) and not any(map(tapes.has_own, given)):
            return tapes.taped(self.device, node, given, size)
        if node.op in _ASIDE and any(map(self._is_here, given)):
            return self._aside(node, given)
        here = any(map(self._is_here, given))
        if not here and not (node.op in _MAKERS and node.type.shape):
            return self._on_host(node, given, size)
        return self._done(node, given, size)

    def _done(self, node: Node, given: list[Value], size: Any) -> Value:
        """Return the value of a node on the device: by a library call, by simpler ops, or by a step on the host."""
        if node.op in CONTROL or lacking(node):
            return self._by_host(node, given, size)
        instead = simpler(node)
        if instead:
            return self._instead(node, instead, given, size)
        if node.op in _STORES:
            given[0] = self._owned(given)
        return self._called(node, given, size)

    def whole(self, graph: Graph, values: list[Value], moving: int | None) -> list[Value] | None:
        """Return the results by kernels where these are ready, or None where the library is to run the graph node by node.

        The body of a loop gets kernels after enough iterations, as a graph does after enough time.
        """
        found = self._by_kernels(graph, values, moving)
        if found is None and moving is None:
            memory.afford(self.device, *memory.least(graph, values))
        return found

    def ranks(self, graph: Graph) -> tuple[int, ...]:
        """Return the order in which the parameters of the graph arrive from the host."""
        return self._arriving.order.ranks if self._arriving.graph is graph else ()

    def _by_kernels(self, graph: Graph, values: list[Value], moving: int | None) -> list[Value] | None:
        if config.tier == "numpy" or graph in self._refused:
            return None
        if moving is not None:
            _noted(graph, ITERATION)
        if not _pays(graph):
            return None
        found = planned(graph)
        if found is None or not found.has_kernels or (moving is not None and not _is_light(graph, moving)):
            self._refused.add(graph)
            return None
        found.codes.start(self.device.capability)
        if config.tier == "numba":
            found.codes.wait()
        if not found.codes.ready():
            return None
        symbols = bind(graph, values)
        memory.afford(self.device, *found.peak(symbols))
        results = _launched(Execution(found, self.device, self.computed, self._arriving).run, symbols, values)
        if results is None:
            self._refused.add(graph)
            return None
        return [formed(v, r.type) for v, r in zip(results, graph.results, strict=True)]

    def _repeated(self, node: Node, given: list[Value], size: Any) -> Value:
        """Run a loop: by one kernel if it is small, else by the library until launches for it are compiled."""
        found = self._by_one_thread(node, given)
        if found is not None:
            given.clear()
            return packed(found)
        plan = planned_loop(node) if config.tier != "numpy" and node["body"] not in self._refused else None
        if plan is None:
            return node.op.consume(node, given, size)  # type: ignore[attr-defined]
        first = plan.first
        count = int(self.host(given.pop(0))) if first else None
        values = [formed(v, p.type) for v, p in zip(given, node["body"].parameters[first:], strict=True)]
        given.clear()
        constants = values[plan.carries :]
        del values[plan.carries :]
        iteration = [0, count or 0]
        turning.loops.append(iteration)
        try:
            return packed(self._turned(node, plan, values, constants, iteration, count))
        finally:
            turning.loops.pop()

    def _by_one_thread(self, node: Node, given: list[Value]) -> list[Value] | None:
        """Return the results of a loop over few numbers by a single-thread kernel, or None where that does not pay or has failed."""
        body: Graph = node["body"]
        one = None if config.tier == "numpy" or (body, "alone") in self._refused else alone(node)
        if one is None:
            return None
        values = [formed(given[k], p.type) for k, p in zip(one.given, one.graph.parameters, strict=True)]
        symbols = bind(one.graph, values)
        count = None if node.op is WHILE or self.device.is_array(given[0]) else int(given[0])
        codes = one.planned.codes
        if not one.pays(count, symbols, values):
            return None
        if config.tier == "numba" or _pays(body) or _will_pay(body, count or 0):
            codes.start(self.device.capability)
        if config.tier == "numba":
            codes.wait()
        if not codes.ready():
            return None
        self._arriving.need(values)
        results = _launched(one.run, self.device, self.computed, symbols, values)
        if results is None:
            self._refused.add((body, "alone"))
            return None
        return [formed(v, r.type) for v, r in zip(results, one.graph.results, strict=True)]

    def _turned(
        self,
        node: Node,
        plan: LoopPlan,
        state: list[Value],
        constants: list[Value],
        iteration: list[int],
        count: int | None,
    ) -> list[Value]:
        body, cc = node["body"], self.device.capability
        if config.tier == "numba":
            plan.codes.start(cc)
            plan.codes.wait()
        iterations, tests = Iterations(plan.first + len(state)), Iterations(len(state))
        while count is None or iteration[0] < count:
            if plan.codes.ready() and body not in self._refused:
                once = interpreted(plan.once, [*constants]) if plan.once is not None else []
                run, begin = Repetition(plan, self.device, self.computed).run, iteration[0]
                found = _launched(run, begin, count, state, [*constants, *once])
                iteration[0] = begin
                if found is not None:
                    return [formed(v, p.type) for v, p in zip(found, plan.parameters[plan.first :], strict=False)]
                self._refused.add(body)
            if plan.tests is not None and not interpreted(plan.tests, [*state, *constants], tests)[0]:
                break
            given = [iteration[0], *state, *constants] if plan.first else [*state, *constants]
            iteration[0] += 1
            state.clear()
            state += interpreted(body, given, iterations)
            _noted(body, ITERATION)
            left = (count or 0) - iteration[0]
            if not plan.codes.is_asked_for and (_pays(body) or _will_pay(body, left)):
                plan.codes.start(cc)
        return state

    # values on the device

    def _is_here(self, value: Value) -> bool:
        if isinstance(value, Chosen):
            return self._is_here(value.mask) or self._is_here(value.first) or self._is_here(value.second)
        if isinstance(value, tuple | Tape):
            return any(map(self._is_here, value.entries if isinstance(value, Tape) else value))
        return self.device.is_array(value)

    def _instead(self, node: Node, instead: list[Node], given: list[Value], size: Any) -> Value:
        """Return the value of a node by running the simpler nodes ``instead``, the last of which holds it."""
        table = dict(zip(node.args, given, strict=True))
        for one in instead:
            values = [table[a] for a in one.args]
            table[one] = one.op.evaluate(one, (), size) if one.op.kind == "leaf" else self.computed(one, values, size)
        return table[instead[-1]]

    def _called(self, node: Node, given: list[Value], size: Any) -> Value:
        self._node = node
        values = [self._operand(v, a) for v, a in zip(given, node.args, strict=True)]
        value = LIBRARY.get(node.op.name, named)(Call(self.device, node, values, size, self._fails))
        if len(node.types) > 1:
            return tuple(self._typed(v, t.dtype) for v, t in zip(value, node.types, strict=True))
        return self._typed(value, node.type.dtype)

    def _typed(self, value: Value, dtype: np.dtype[Any]) -> Value:
        return value.astype(dtype) if self.device.is_array(value) and value.dtype != dtype else value

    def _operand(self, value: Value, node: Node) -> Value:
        """Return an operand in the form that the library takes: an array of the device, or a NumPy scalar."""
        if len(node.types) > 1 or self.device.is_array(value):
            return value
        array = np.asarray(value)
        return self._put(array) if array.ndim else array.astype(node.type.dtype)[()]

    def _put(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        """Return the copy on the device of an array of the host; it is reused as long as that array lives."""
        known = self._copies.get(id(array))
        if known is not None and known[0]() is array:
            return known[1]
        key = id(array)
        made = self.device.put(array)
        self._copies[key] = (weakref.ref(array, lambda _: self._copies.pop(key, None)), made)
        return made

    def _owned(self, given: list[Value]) -> DeviceArray:
        """Return the array to store into: the operand itself if nothing else refers to it, else a copy."""
        value = given[0]
        if not self.device.is_array(value):
            return self.device.put(np.asarray(value))
        del value
        own = is_alone(given) and given[0].base is None and given[0].flags.c_contiguous
        return given[0] if own else given[0].copy()

    # pending checks

    def _fails(self, flag: DeviceArray, raises: Raises) -> None:
        self._pending.append((flag, raises, self._node))
        if len(self._pending) > _PENDING:
            self.look()

    def look(self) -> None:
        """Raise the first error that the device has found since checks were last looked at."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        xp = self.device.library
        flags = xp.stack([xp.reshape(flag, ()) for flag, _, _ in pending])
        if not self.device.read(xp.any(flags)):
            return
        for flag, raises, node in pending:
            if not self.device.read(flag):
                continue
            try:
                raises()
            except BaseException as error:
                if getattr(error, "tensor_node", None) is None:
                    error.tensor_node = node  # type: ignore[attr-defined]
                raise

    def _checked(self, node: Node, given: list[Value]) -> Value:
        """Return the first operand; whether the second holds is checked later."""
        value, holds = given
        xp = self.device.library
        self._node = node

        def raises() -> None:
            node.op.numpy(None, self.host(holds), **node.params)

        if node.op is SETTLED and node["real"] is False:
            self._fails(xp.all(holds), raises)
        else:
            self._fails(xp.logical_not(xp.all(holds)), raises)
        return value

    def _aside(self, node: Node, given: list[Value]) -> Value:
        """Return the first operand of a check or a print, after evaluating it; a check that holds reads one flag only."""
        value, *rest = given
        self.look()
        holds = rest[0] if node.op is CHECK else False
        if self.device.is_array(holds) and self.device.read(self.device.library.all(holds)):
            return value
        node.op.numpy(None, *map(self.host, rest), **node.params)
        return value

    # steps on the host

    def _on_host(self, node: Node, given: list[Value], size: Any) -> Value:
        """Compute a node whose operands are on the host; arrays that random generators draw are copied to the device."""
        if node.op in {CHECK, TELL}:
            self.look()
        if node.op is DRAW and (here := draws.drawn(self.device, node, given, size)) is not None:
            return here
        value = node.op.evaluate(node, given, size)
        if node.op is DRAW:
            state, sample = value
            if np.ndim(sample) and draws.may_be_here(node):
                transfers.fallbacks([hidden(node, "np.random draws it on the host", site.of(node))])
            return state, self.device.put(sample) if np.ndim(sample) else sample
        return value

    def _by_host(self, node: Node, given: list[Value], size: Any) -> Value:
        """Compute on the host what the device cannot: copy the operands to the host, and the result back."""
        self.look()
        fetched = [self.host(v) for v in given]
        given.clear()
        value = self._on_host(node, fetched, size)
        return self._back(value) if node.op not in {DRAW, SEED} else value

    def host(self, value: Value) -> Value:
        """Return a value copied to the host, including the entries of tuples and tapes."""
        if self.device.is_array(value):
            return copied_out(self.device, value) if value.ndim else self.device.read(value)
        if isinstance(value, tuple):
            return tuple(map(self.host, value))
        if isinstance(value, Chosen):
            return Chosen(self.host(value.mask), self.host(value.first), self.host(value.second))
        if isinstance(value, Tape):
            return Tape([None if e is None else self.host(e) for e in value.entries])
        return value

    def _back(self, value: Value) -> Value:
        if isinstance(value, tuple):
            return tuple(map(self._back, value))
        if isinstance(value, Chosen):
            return Chosen(value.mask, self._back(value.first), self._back(value.second))
        if isinstance(value, Tape):
            return Tape(list(map(self._back, value.entries)))
        return self.device.put(value) if isinstance(value, np.ndarray) and value.ndim else value


@for_device
def run(
    graph: Graph, values: Sequence[Value], device: Device | None = None, arriving: Arriving | None = None
) -> list[Value]:
    """Return the results of a closed graph for values of its parameters; arrays on the device stay there."""
    device = device or current()
    runner = Runner(device, arriving)
    token = elsewhere.set(runner)
    try:
        with device.errors():
            begin = time.perf_counter()
            results = interpret(graph, values)
            runner.look()
            _noted(graph, time.perf_counter() - begin)
        if arriving is not None:
            arriving.need_all()
        return _apart(device, results, values)
    except MemoryError as error:
        memory.give_back(device, error)
        if isinstance(error, TensorError):
            raise
        raise memory.short(device, error, None) from error
    finally:
        elsewhere.reset(token)
        if arriving is not None:
            arriving.need_all()


def _launched(run: Callable[..., list[Value] | None], *given: Any) -> list[Value] | None:
    """Return ``run(*given)``, or None where a launch fails, after which the library starts again from the same operands."""
    try:
        return run(*given)
    except LaunchError as error:
        tell_once(f"{error.message}; the library does its work")
        return None


def _noted(graph: Graph, seconds: float) -> None:
    _spent[graph] = _spent.pop(graph, 0.0) + seconds
    while len(_spent) > KEPT:
        del _spent[next(iter(_spent))]


def _pays(graph: Graph) -> bool:
    """Return whether a graph has taken so long, over all runs, that its kernels are worth compiling."""
    return config.tier == "numba" or _spent.get(graph, 0.0) > max(WORTH_COMPILING, PLANNING * len(graph.nodes))


def _will_pay(graph: Graph, iterations: int) -> bool:
    """Return whether so many more iterations take so long that the kernels are worth compiling."""
    return iterations * ITERATION > max(COMPILING, PLANNING * len(graph.nodes))


def _is_light(graph: Graph, moving: int) -> bool:
    """Return whether a body has no expensive loop-invariant part, which the library hoists and a plan repeats in each iteration."""
    return all(s.node.op.kind in {"move", "leaf"} or not s.node.types[0].shape for s in schedule(graph, moving).once)


_spent: dict[Graph, float] = {}  # seconds that library calls have taken for a graph, over all runs
KEPT = 256
WORTH_COMPILING = 1e-3  # seconds of library calls after which the kernels of a graph are compiled
COMPILING = 0.5  # estimated seconds to compile the kernels of a loop
ITERATION = 2e-4  # estimated seconds of one iteration of a loop
PLANNING = 1e-4  # estimated seconds of planning per node: library calls have to have taken as long before


def _apart(device: Device, results: list[Value], values: Sequence[Value]) -> list[Value]:
    """Return the results, copied where one is an operand or a view into a larger array, which would stay in memory with it."""
    seen = {id(v) for v in values}
    found: list[Value] = []
    for one in results:
        result = one
        if device.is_array(one) and (id(one) in seen or one.base is not None or not one.flags.c_contiguous):
            result = one.copy()
        seen.add(id(result))
        found.append(result)
    return found


__all__ = ["Runner", "offenders", "run"]
