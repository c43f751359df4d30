"""Run a loop as launches: arrays stay on the device and are swapped between iterations, and the host reads no value.

A loop with a known number of iterations is not waited for at all. Of a data-dependent one, several iterations are
launched ahead, each of which returns at once after the test has failed; the host then reads how many ran. Repeated
launches are recorded by the device and replayed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tensormagic.backend.cuda.device import Device, DeviceArray
from tensormagic.backend.cuda.kernels.launch import Launch
from tensormagic.backend.cuda.loops.ahead import Ahead
from tensormagic.backend.cuda.loops.frames import ALIGNED, Compute, Frame, Numbers, Slot, UnfixedError
from tensormagic.backend.cuda.loops.guarded import counted, goes_on
from tensormagic.backend.cuda.loops.loop_plan import LoopPlan, Part
from tensormagic.backend.cuda.loops.nested import Nested
from tensormagic.backend.planning.purpose import for_device
from tensormagic.ir.node import Node
from tensormagic.ops.op import Value, as_form
from tensormagic.ops.regions.loops import turning

MOST_PERIOD = 8  # most iterations after which arrays are back in their slots, for a recording
RECORDED = 64  # least number of launches in a recording, if the loop has as many


class Repetition:
    """One run of a loop.

    Parameters
    ----------
    plan
        The loop, whose kernels are ready.
    device
        Where it runs.
    compute
        What computes one node that has no kernel.
    around
        The run of the loop that it is part of, with which it shares kernels and the flag for faults.
    """

    def __init__(self, plan: LoopPlan, device: Device, compute: Compute, around: Repetition | None = None) -> None:
        self.plan, self.device, self.compute, self.around = plan, device, compute, around
        self.fault = Slot(device.library.zeros(4, np.int64)) if around is None else around.fault
        self.always = self.flag(1) if around is None else around.always
        self.parts: dict[tuple[Frame, Node], list[Slot]] = {}
        self._recording = False
        self.known: dict[Node, int] = {}
        self.filled: dict[Node, Slot] = {}

    def flag(self, value: int) -> Slot:
        """Return a slot with one integer on the device."""
        return Slot(self.device.library.full((1,), value, np.int64))

    def loaded(self, one: Launch) -> Any:
        """Return a kernel loaded on the device."""
        return self.plan.codes.loaded(self.device, one) if self.around is None else self.around.loaded(one)

    def nested(self, frame: Frame, node: Node, results: Sequence[Slot]) -> Nested:
        """Return what runs a loop inside an iteration of this one."""
        plan = frame.part.loops[node]
        return Nested(frame, Repetition(plan, self.device, self.compute, self), node, results)

    @property
    def is_recording(self) -> bool:
        """Return whether an iteration of this loop, or of one around it, is being recorded."""
        return self._recording or (self.around is not None and self.around.is_recording)

    def index_slot(self) -> Slot:
        """Return a slot for the iteration's index, read by kernels."""
        return Slot(self.device.library.zeros((), self.plan.parameters[0].type.dtype))

    def constant(self, node: Node) -> DeviceArray:
        """Return the array of a constant, copied once."""
        found = self.plan.constants.get(node)
        if found is None or not self.device.is_array(found):
            found = self.plan.constants[node] = self.placed(node["bits"].array(), node)
        return found

    # inputs

    def _copied(self, value: Value, node: Node) -> DeviceArray:
        """Return a copy of a value that the loop may overwrite."""
        if not self.device.is_array(value):
            return self.placed(value, node)
        return value.astype(node.type.dtype) if value.dtype != node.type.dtype else value.copy()

    def placed(self, value: Value, node: Node) -> DeviceArray:
        """Return a value in an array of the layout that kernels read."""
        if not self.device.is_array(value):
            array = np.asarray(value, node.type.dtype)
            return self.device.put(array) if array.ndim else self.device.library.full((), array[()], array.dtype)
        if value.dtype != node.type.dtype:
            return value.astype(node.type.dtype)
        fine = value.flags.c_contiguous and not self.device.address(value) % ALIGNED
        return value if fine else value.copy()

    def _number(self, value: Value) -> int:
        return int(self.device.read(value) if self.device.is_array(value) else value)

    @for_device
    def run(
        self, begin: int, count: int | None, state: Sequence[Value], constants: Sequence[Value]
    ) -> list[Value] | None:
        """Return the final values of the carries, or None where the library has to run the loop.

        Parameters
        ----------
        begin
            How many there were already.
        count
            How many there are in all; None for a loop on data.
        state, constants
            What the next iteration begins with.
        """
        try:
            self._prepare(begin, state, constants)
        except UnfixedError:
            return None
        if count is None:
            self.tested(begin)
        else:
            self._counted(begin, count)
        if bool(self.device.read(self.device.library.any(self.fault.array))):
            return None
        return self._left()

    def _prepare(self, begin: int, state: Sequence[Value], constants: Sequence[Value]) -> None:
        plan, first = self.plan, self.plan.first
        own = plan.parameters
        values: list[Value] = [*([begin] if first else []), *state, *constants]
        shapes = [np.shape(v) for v in values]
        self.known = {p: self._number(v) for p, v in zip(own, values, strict=True) if p in plan.hosted}
        changing = set(own[first : first + plan.carries])
        given: list[Slot] = []
        for p, v in zip(own, values, strict=True):
            moves = p in changing or (first and p is own[0])
            given.append(Slot(self._copied(v, p) if moves else self.placed(v, p)))
        self.bind(given, shapes)

    def bind(self, given: Sequence[Slot], shapes: Sequence[tuple[int, ...]]) -> None:
        """Bind an iteration and the test to the slots of the parameters, given the shapes of their arrays."""
        plan, first = self.plan, self.plan.first
        own = plan.parameters
        changing = set(own[first : first + plan.carries])
        sizes = Numbers(plan.graph.bind(shapes), self.known.__getitem__)
        self.live = self.flag(1)
        live = None if plan.test is None else self.live
        self.frame = Frame(self, plan.body, sizes, given, live)
        self.given = given
        self.filled = {
            p: s
            for p, s in zip(own, given, strict=True)
            if p in plan.hosted and p in self.frame.read and (p in changing or (first and p is own[0]))
        }
        if plan.test is not None and plan.tests is not None and live is not None:
            self._prepare_test(plan.test, given, shapes, live)
        carried = [s for p, s in zip(own, given, strict=True) if p in changing and p not in plan.hosted]
        self.moves = _trades(carried, self.frame.ends)
        ticks = bool(first) and own[0] in self.frame.read and own[0] not in plan.hosted
        self.tick = self.frame.bind(counted(), [given[0]], {}) if ticks else None

    def _prepare_test(self, test: Part, given: Sequence[Slot], shapes: Sequence[tuple[int, ...]], live: Slot) -> None:
        """Bind the test of the loop, and the counter of iterations."""
        graph, hosted = test.graph, self.plan.hosted
        at = dict(zip(graph.parameters, self.plan.parameters, strict=False))
        known = len(graph.parameters)
        numbers = Numbers(graph.bind(list(shapes[:known])), lambda p: self.known[at[p]])
        self.tests = Frame(self, test, numbers, list(given[:known]), live)
        self.filled |= {
            at[p]: given[k] for k, p in enumerate(graph.parameters) if p in self.tests.read and at[p] in hosted
        }
        self.done = Slot(self.device.library.zeros((), np.int64))
        self.tests.small(goes_on(), self.tests.ends[0], live, self.done)

    # iterations

    def fill(self) -> None:
        """Copy the host's integers that kernels read in this iteration to the device."""
        for p, slot in self.filled.items():
            slot.array = self.device.library.full((), self.known[p], p.type.dtype)

    def iterate(self) -> None:
        """Run one iteration, and swap the arrays for the next one."""
        self.fill()
        self.launch()
        self.count_on()

    def launch(self) -> None:
        """Launch the kernels of an iteration."""
        self.frame()
        arrays = [source.array for _, source in self.moves]
        for (target, _), array in zip(self.moves, arrays, strict=True):
            target.array = array
        if self.tick is not None:
            self.tick(self.device)

    def count_on(self) -> None:
        """Advance the host's integers to the next iteration."""
        plan, first = self.plan, self.plan.first
        found: dict[Node, int] = {}
        for k, p in enumerate(plan.parameters[first : first + plan.carries]):
            if p in plan.hosted:
                found[p] = int(self.frame.sizes[plan.graph.results[k]])
        index = plan.parameters[0]
        if first and index in self.known:
            found[index] = self.known[index] + 1
        self.known.update(found)

    def _counted(self, begin: int, count: int) -> None:
        told = turning.loops[-1] if turning.loops else [0, 0]
        done = begin
        unit = self.unit(count - done)
        replay = self.recorded(unit) if unit else None
        while done < count:
            many = unit if replay is not None and count - done >= unit else 1
            if replay is not None and many == unit:
                replay()
                for _ in range(unit):
                    self.count_on()
            else:
                self.iterate()
            done += many
            told[0] = done

    def tested(self, begin: int) -> None:
        """Run a data-dependent loop, ahead of its test where sizes are fixed."""
        if self.plan.ahead and self.frame.is_steady and self.tests.is_steady:
            self._tested_ahead(begin)
        else:
            self._tested_each(begin)

    def _tested_ahead(self, begin: int) -> None:
        told = turning.loops[-1] if turning.loops else [0, 0]
        ahead = Ahead(self)
        while True:
            ahead.launch()
            done = int(self.device.read(self.done.array))
            told[0] = begin + done
            if done < ahead.launched:
                ahead.back(done)
                return
            ahead.longer()

    def _tested_each(self, begin: int) -> None:
        """Run iterations while the test holds, reading it before each, as sizes change between iterations."""
        told = turning.loops[-1] if turning.loops else [0, 0]
        done = 0
        while True:
            self.fill()
            self.tests()
            if int(self.device.read(self.done.array)) == done:
                return
            self.iterate()
            done += 1
            told[0] = begin + done

    # recordings

    @property
    def is_fixed(self) -> bool:
        """Return whether each iteration makes the same launches."""
        return self.frame.is_fixed and not self.filled

    def unit(self, left: int) -> int:
        """Return how many iterations to record, after which arrays are back in their slots, or 0 where that does not pay."""
        if not self.is_fixed:
            return 0
        period = _period(self.moves)
        launches = max(1, self.frame.launches)
        unit = period * max(1, math.ceil(RECORDED / (period * launches)))
        return unit if period <= MOST_PERIOD and left >= 2 * unit else 0

    def recorded(self, unit: int, iterate: Callable[[], None] | None = None) -> Callable[[], None] | None:
        """Return a function that replays ``unit`` iterations, or None where the device cannot record them."""
        iterate = iterate or self.launch
        arrays = [(slot, slot.array) for pair in self.moves for slot in pair]
        self._recording = True
        try:
            replay = self.device.recorded(partial(_times, unit, iterate))
        finally:
            self._recording = False
        for slot, array in arrays:
            slot.array = array
        return replay

    # results

    def _left(self) -> list[Value]:
        plan, first = self.plan, self.plan.first
        found: list[Value] = []
        for k in range(first, first + plan.carries):
            p = plan.parameters[k]
            found.append(as_form(self.known[p], p.type.form) if p in plan.hosted else self.given[k].array)
        return found


def _times(count: int, function: Callable[[], None]) -> None:
    for _ in range(count):
        function()


def _trades(targets: Sequence[Slot], sources: Sequence[Slot]) -> list[tuple[Slot, Slot]]:
    """Return pairs of a slot and the slot whose array it takes after an iteration; spare arrays fill the slots left."""
    wanted = {t: s for t, s in zip(targets, sources, strict=True) if t is not s}
    taken = set(wanted.values())
    moves = list(wanted.items())
    for source in [s for s in wanted.values() if s not in wanted]:
        end = next(t for t, s in wanted.items() if s is source)
        while end in taken:
            end = next(t for t, s in wanted.items() if s is end)
        moves.append((source, end))
    return moves


def _period(moves: Sequence[tuple[Slot, Slot]]) -> int:
    """Return the number of iterations after which every array is back in its slot."""
    following, period = {id(t): id(s) for t, s in moves}, 1
    for start, after in following.items():
        length, at = 1, after
        while at != start:
            length, at = length + 1, following[at]
        period = math.lcm(period, length)
    return period
