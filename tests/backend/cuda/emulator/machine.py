"""The threads of a grid as lanes: those that are furthest behind run on, so that they meet again after branches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.backend.cuda.emulator.arithmetic import compute, kinds_of, product
from tests.backend.cuda.emulator.memory import EmulatorError, Memory, Shared, Traffic
from tests.backend.cuda.emulator.program import DTYPES, Instruction, Program

MOST_STEPS = 2_000_000
MOST_LANES = 1 << 15  # that run at once
WARP = 32
CARRIES = frozenset(["addc", "subc", "madc"])
RUNS, WAITS, ENDED = 0, 1, 2
_ADDRESS = re.compile(r"\[\s*([%$\w]+)\s*(?:\+\s*(-?\d+))?\s*\]")


@dataclass
class Report:
    """What was seen.

    Parameters
    ----------
    issues
        Races, reads of what nobody has written, barriers and shuffles that some do not reach; and how often.
    traffic
        For each load and store of global memory the sectors and bytes.
    steps
        How many instructions ran, for all lanes at once.
    """

    issues: Counter[str] = field(default_factory=Counter)
    traffic: dict[str, Traffic] = field(default_factory=dict)
    steps: int = 0


def launch(program: Program, blocks: int, threads: int, shared: int, arguments: Sequence[Any]) -> Report:
    """Run a kernel; arrays among the arguments, of bytes, are changed in place."""
    memory = Memory([])
    values = [memory.add(a) if isinstance(a, np.ndarray) else a for a in arguments]
    tables = {name: memory.add(table) for name, table in program.tables.items()}
    report = Report(memory.issues, memory.traffic)
    at_once = max(1, MOST_LANES // threads)
    for first in range(0, blocks, at_once):
        count = min(at_once, blocks - first)
        machine = _Machine(program, memory, (first, count, blocks), threads, shared, values, tables)
        report.steps += machine.run()
    return report


class _Machine:
    """Some blocks of a grid, at once."""

    def __init__(
        self,
        program: Program,
        memory: Memory,
        grid: tuple[int, int, int],
        threads: int,
        shared: int,
        arguments: Sequence[Any],
        tables: dict[str, int],
    ) -> None:
        first, count, blocks = grid
        self.program, self.memory, self.threads = program, memory, threads
        lanes = np.arange(count * threads)
        self.count = lanes.size
        self.block, within = lanes // threads, lanes % threads
        self.lane = within % WARP
        self.thread = lanes + first * threads
        self.warp = (self.block + first) * -(-threads // WARP) + within // WARP
        self.shared = Shared(count, program.shared_bytes + -(-shared // 16) * 16, memory.issues)
        self.arguments = {
            name: np.asarray(value).astype(dtype, copy=False)
            for (name, dtype), value in zip(program.parameters.items(), arguments, strict=True)
        }
        self.names: dict[str, Any] = {
            "%tid.x": within.astype(np.uint32),
            "%ctaid.x": (self.block + first).astype(np.uint32),
            "%ntid.x": np.full(1, threads, np.uint32),
            "%nctaid.x": np.full(1, blocks, np.uint32),
            **{name: np.full(1, place, np.uint64) for name, place in (tables | program.shared).items()},
        }
        self.registers = {name: np.zeros(self.count, dtype) for name, dtype in program.registers.items()}
        self.carry = np.zeros(self.count, bool)
        self.places = np.zeros(self.count, np.int64)
        self.state = np.full(self.count, RUNS, np.int8)
        self.meetings = set(program.labels.values())

    # running

    def run(self) -> int:
        """Run until all threads have ended; gives the number of steps."""
        steps = 0
        while (self.state == RUNS).any():
            running = self.state == RUNS
            place = int(self.places[running].min())
            active = np.nonzero(running & (self.places == place))[0]
            while True:
                steps += 1
                if steps > MOST_STEPS:
                    raise EmulatorError("the kernel does not end")
                following = self._step(place, active)
                if following is None:
                    break
                place = following
                if place in self.meetings:
                    self.places[active] = place
                    break
        if (self.state == WAITS).any():
            raise EmulatorError("some threads wait at a barrier that others do not reach")
        return steps

    def _step(self, place: int, active: np.ndarray) -> int | None:
        """One instruction; gives the next one, or None where the threads part, wait or end."""
        if place >= len(self.program.code):
            self._end(active)
            return None
        instruction = self.program.code[place]
        taken = active
        if instruction.guard:
            holds = self.registers[instruction.guard][active] != instruction.negated
            taken = active[holds]
            if instruction.name == "bra":
                self.places[active] = np.where(holds, self.program.labels[instruction.operands[0]], place + 1)
                return None
            if not taken.size:
                return place + 1
        if instruction.name == "bra":
            self.places[active] = self.program.labels[instruction.operands[0]]
            return None
        if instruction.name in {"ret", "exit"}:
            self.places[active] = place + 1
            self._end(taken)
            return None
        if instruction.name in {"bar", "barrier"}:
            self.places[active] = place + 1
            self.state[taken] = WAITS
            self._release()
            return None
        self._execute(instruction, taken)
        return place + 1

    def _end(self, active: np.ndarray) -> None:
        self.state[active] = ENDED
        self._release()

    def _release(self) -> None:
        """Let blocks go on all of whose threads wait."""
        state = self.state.reshape(-1, self.threads)
        ready = (state != RUNS).all(1) & (state == WAITS).any(1)
        if not ready.any():
            return
        if (state[ready] == ENDED).any():
            self.memory.issues["a barrier that part of a block does not reach"] += 1
        state[ready] = np.where(state[ready] == WAITS, RUNS, state[ready])
        self.shared.stretch[ready] += 1

    # operands

    def _value(self, operand: str, dtype: np.dtype[Any], active: np.ndarray) -> np.ndarray:
        negated = operand.startswith("!")
        operand = operand.lstrip("!")
        if operand in self.registers:
            found = self.registers[operand][active]
        elif operand in self.names:
            found = self.names[operand]
            found = found[active] if found.size > 1 else np.broadcast_to(found, active.shape)
        elif operand.startswith("%"):
            raise EmulatorError(f"this register is not known: {operand}")
        else:
            return np.broadcast_to(_immediate(operand, dtype), active.shape)
        if found.dtype.kind == "b":
            return found != negated
        if found.dtype.itemsize == dtype.itemsize:
            return found.view(dtype)
        unsigned = np.dtype(f"u{found.dtype.itemsize}")
        return found.view(unsigned).astype(f"u{dtype.itemsize}").view(dtype)

    def _put(self, register: str, value: np.ndarray, active: np.ndarray) -> None:
        """Store into a register; a narrower integer is widened by its own sign."""
        if register == "_":
            return
        target = self.registers[register]
        value = np.asarray(value)
        if value.dtype.kind == "b" or target.dtype == value.dtype:
            target[active] = value
        elif value.dtype.itemsize == target.dtype.itemsize:
            target[active] = np.ascontiguousarray(value).view(target.dtype)
        else:
            target[active] = value.astype(f"{value.dtype.kind}{target.dtype.itemsize}").view(target.dtype)

    # instructions

    def _execute(self, instruction: Instruction, active: np.ndarray) -> None:
        name, operands = instruction.name, instruction.operands
        if name == "ld":
            self._load(instruction, active)
        elif name == "st":
            self._store(instruction, active)
        elif name == "shfl":
            self._shuffle(instruction, active)
        elif name in CARRIES or "cc" in instruction.modifiers:
            self._carry(instruction, active)
        elif name == "mov" and "{" in "".join(operands):
            self._repack(instruction, active)
        else:
            kinds = kinds_of(instruction)
            given = [self._value(o, k, active) for o, k in zip(operands[1:], kinds[1:], strict=True)]
            self._put(operands[0], compute(instruction, given, kinds), active)

    def _address(self, operand: str, active: np.ndarray) -> np.ndarray:
        found = _ADDRESS.fullmatch(operand)
        if found is None:
            raise EmulatorError(f"this address is not known: {operand}")
        base = self._value(found[1], DTYPES["s64"], active)
        return base + int(found[2] or 0)

    def _load(self, instruction: Instruction, active: np.ndarray) -> None:
        dtype, width = instruction.dtype, instruction.width
        target, source = instruction.operands
        if "param" in instruction.modifiers:
            name = source.strip("[]").split("+")[0]
            self._put(target, np.broadcast_to(self.arguments[name].view(dtype), active.shape), active)
            return
        address = self._address(source, active)
        thread = self.thread[active]
        if "shared" in instruction.modifiers:
            found = self.shared.load(address, dtype, width, thread, self.block[active], instruction.text)
        elif "global" in instruction.modifiers:
            found = self.memory.load(address, dtype, width, thread, self.warp[active], instruction.text)
        else:
            raise EmulatorError(f"a load whose kind of memory is not said: {instruction.text}")
        for register, value in zip(_parts(target), found, strict=True):
            self._put(register, value, active)

    def _store(self, instruction: Instruction, active: np.ndarray) -> None:
        target, source = instruction.operands
        address, thread = self._address(target, active), self.thread[active]
        values = [self._value(part, instruction.dtype, active) for part in _parts(source)]
        if "shared" in instruction.modifiers:
            self.shared.store(address, values, thread, self.block[active], instruction.text)
        elif "global" in instruction.modifiers:
            self.memory.store(address, values, thread, self.warp[active], instruction.text)
        else:
            raise EmulatorError(f"a store whose kind of memory is not said: {instruction.text}")

    def _carry(self, instruction: Instruction, active: np.ndarray) -> None:
        """A sum, a difference or a product and a sum that takes the carry of the one before, or leaves one."""
        whole = np.dtype(f"u{instruction.dtype.itemsize}")
        given = [self._value(o, whole, active) for o in instruction.operands[1:]]
        taken = self.carry[active].astype(whole) if instruction.name in CARRIES else np.zeros(active.size, whole)
        if instruction.name in {"sub", "subc"}:
            first = given[0] - given[1]
            found = first - taken
            left = (given[0] < given[1]) | (first < taken)
        else:
            factor = given[0]
            if len(given) == 3:
                (factor,) = [product(instruction, given[:2], instruction.dtype).view(whole)]
            first = factor + given[-1]
            found = first + taken
            left = (first < factor) | (found < first)
        if "cc" in instruction.modifiers:
            self.carry[active] = left
        self._put(instruction.operands[0], found, active)

    def _repack(self, instruction: Instruction, active: np.ndarray) -> None:
        """Two halves as one number, or one as two."""
        target, source = instruction.operands
        whole = np.dtype(f"u{instruction.dtype.itemsize}")
        if source.startswith("{"):
            parts = _parts(source)
            half = np.dtype(f"u{whole.itemsize // len(parts)}")
            values = [self._value(p, half, active).astype(whole) for p in parts]
            shifted = [v << whole.type(8 * half.itemsize * k) for k, v in enumerate(values)]
            self._put(target, np.bitwise_or.reduce(shifted), active)
            return
        parts = _parts(target)
        half = np.dtype(f"u{whole.itemsize // len(parts)}")
        value = self._value(source, whole, active)
        for k, register in enumerate(parts):
            self._put(register, (value >> whole.type(8 * half.itemsize * k)).astype(half), active)

    def _shuffle(self, instruction: Instruction, active: np.ndarray) -> None:
        """Exchange with the lane whose number differs in the bits that are given."""
        if "bfly" not in instruction.modifiers:
            raise EmulatorError(f"this shuffle is not known: {instruction.text}")
        target, source, distance, _, mask = instruction.operands
        value = np.zeros(self.count, np.uint32)
        here = np.zeros(self.count, bool)
        value[active], here[active] = self._value(source, DTYPES["u32"], active), True
        other = active + ((self.lane[active] ^ self._value(distance, DTYPES["s32"], active)) - self.lane[active])
        if (other >= self.count).any() or not here[np.minimum(other, self.count - 1)].all():
            self.memory.issues[f"a shuffle with a lane that is not there: {instruction.text}"] += 1
        present = np.zeros(int(self.warp.max()) + 1, np.uint64)
        np.bitwise_or.at(present, self.warp[active], np.uint64(1) << self.lane[active].astype(np.uint64))
        named = self._value(mask, DTYPES["u32"], active)
        own = (named >> self.lane[active].astype(np.uint32)) & 1
        if (named & ~present[self.warp[active]].astype(np.uint32)).any() or not own.all():
            self.memory.issues[f"a shuffle whose mask names lanes that are not there: {instruction.text}"] += 1
        self._put(target, value[np.minimum(other, self.count - 1)], active)


def _parts(operand: str) -> list[str]:
    return [part.strip() for part in operand.strip("{}").split(",")]


def _immediate(text: str, dtype: np.dtype[Any]) -> np.ndarray:
    """A constant: the bits of a float, or an integer."""
    if text.startswith("0f"):
        return np.array(int(f"0x{text[2:]}", 0), np.uint32).view(np.float32).astype(dtype)
    if text.startswith("0d"):
        return np.array(int(f"0x{text[2:]}", 0), np.uint64).view(np.float64).astype(dtype)
    if dtype.kind == "b":
        return np.array(bool(int(text, 0)))
    return np.array(int(text, 0) % (1 << (8 * dtype.itemsize)), f"u{dtype.itemsize}").view(dtype)
