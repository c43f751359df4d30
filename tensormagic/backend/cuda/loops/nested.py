"""Loops inside an iteration of a loop as launches: bound once, with arrays of their own, and run again in each iteration.

The initial values are copied into the arrays of the loop, and its results out of them, so that nothing is allocated
while it runs. A loop with a fixed number of equal iterations may be part of a recording of the loop around it; a
long one has a recording of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tensormagic.backend.cuda.device import DeviceArray
from tensormagic.backend.cuda.loops.frames import Frame, Numbers, Slot, UnfixedError
from tensormagic.backend.cuda.loops.guarded import COUNT, copied
from tensormagic.backend.planning.kinds import stored_below
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import bare_atom, nodes_of
from tensormagic.ops.leaf import PARAMETER
from tensormagic.ops.regions.loops import turning

if TYPE_CHECKING:
    from tensormagic.backend.cuda.loops.looped import Repetition

MOST_WITHIN = 1024  # most launches of an inner loop that become part of a recording of the loop around it
KEPT = 8  # recordings kept for one loop, since the arrays around it are swapped


class Nested:
    """A loop inside an iteration of another loop.

    Parameters
    ----------
    outer
        The iteration that it is part of.
    run
        The loop, which shares kernels and the flag for faults with what is around it.
    node
        Where it stands.
    results
        Where what it leaves goes.

    Attributes
    ----------
    is_fixed
        Whether it is the same launches each time.
    launches
        How many these are.
    """

    def __init__(self, outer: Frame, run: Repetition, node: Node, results: Sequence[Slot]) -> None:
        self.outer, self.run, self.results = outer, run, results
        plan = run.plan
        self.counted, first = plan.counted, plan.first
        operands = node.args[first:]
        shapes = [tuple(map(outer.sizes, a.type.shape)) for a in operands]
        if any(nodes_of(s) for a in operands for s in a.type.shape):
            raise UnfixedError
        own = plan.parameters[first:]
        self.count = node.args[0] if self.counted else None
        self.numbers = {p: a for p, a in zip(own, operands, strict=False) if p in plan.hosted}
        self.number = partial(_number, outer.sizes)
        run.known = {p: self.number(a) for p, a in self.numbers.items()}
        given: list[Slot] = []
        if self.counted:
            run.known[plan.parameters[0]] = 0
            given.append(run.index_slot())
            shapes = [(), *shapes]
        self.copies: list[Callable[[], None]] = []
        self.filled: list[tuple[DeviceArray, Node]] = []  # integers of the outer loop, which change with its iterations
        self.shared: list[Slot] = []
        for k, (p, a, shape) in enumerate(zip(own, operands, shapes[first:], strict=False)):
            given.append(self._given(p, a, shape, moves=k < plan.carries))
        given += self._once(given[first + plan.carries :], shapes[first + plan.carries :], shapes)
        run.bind(given, shapes)
        self.homes = [(s, s.array) for s in dict.fromkeys([*given, *(s for pair in run.moves for s in pair)])]
        self.homes = [(s, array) for s, array in self.homes if s not in self.shared]
        self.starts = self._starts()
        self.ends = [self._end(k, p, node, shapes[first + k]) for k, p in enumerate(own[: plan.carries])]
        self._recordings: dict[tuple[int, ...], tuple[Any, list[Any]]] = {}
        self._say_how_much()

    # inputs

    def _given(self, parameter: Node, operand: Node, shape: tuple[int, ...], *, moves: bool) -> Slot:
        """Return the slot of a parameter: that of the operand where nothing stores into it, else one for a copy."""
        empty, dtype = self.run.device.library.empty, parameter.type.dtype
        if parameter in self.numbers:
            array = self.run.device.library.full((), self.number(operand), dtype)
            if not moves and not _is_constant(operand):
                self.filled.append((array, operand))
            return Slot(array)
        source = self.outer.slot(self.outer.part.owner(operand))
        if not moves and stored_below(operand) is operand:
            self.shared.append(source)
            return source
        target = Slot(empty(shape, dtype))
        self.copies.append(self._copy(target, source, int(np.prod(shape)), dtype.name))
        return target

    def _copy(self, target: Slot, source: Slot, count: int, dtype: str) -> Callable[[], None]:
        bound = self.outer.bind(copied(dtype), [target, source, np.int64(count)], {bare_atom(COUNT): count})
        return (lambda: None) if bound is None else partial(bound, self.run.device)

    def _once(
        self, given: Sequence[Slot], known: Sequence[tuple[int, ...]], shapes: list[tuple[int, ...]]
    ) -> list[Slot]:
        """Return the slots of hoisted values, computed before the first iteration, and append their shapes to ``shapes``."""
        plan = self.run.plan
        if plan.once_part is None or plan.once is None:
            self.before: Frame | None = None
            return []
        at = dict(zip(plan.once.parameters, plan.parameters[plan.first + plan.carries :], strict=False))
        sizes = Numbers(plan.once.bind(list(known)), lambda p: self.run.known[at[p]])
        self.before = Frame(self.run, plan.once_part, sizes, list(given), None)
        shapes += [tuple(map(sizes, r.type.shape)) for r in plan.once.results]
        if self.before.part.calls:
            raise UnfixedError  # the library returns new arrays each time
        return self.before.ends

    def _starts(self) -> list[Callable[[], None]]:
        """Return the steps that reset flags and counters before the first iteration."""
        run = self.run
        zero, one = Slot(run.device.library.zeros((), np.int64)), run.flag(1)
        found: list[Callable[[], None]] = []
        if run.plan.test is not None:
            found += [self._copy(run.live, one, 1, "int64"), self._copy(run.done, zero, 1, "int64")]
        if run.tick is not None:
            found.append(self._copy(run.given[0], zero, 1, "int64"))
        return found

    def _end(self, k: int, parameter: Node, node: Node, shape: tuple[int, ...]) -> Callable[[], None]:
        """Return the step that copies a final value into its target."""
        run, target, dtype = self.run, self.results[k], node.types[k].dtype
        if parameter not in run.plan.hosted:
            return self._copy(target, run.given[run.plan.first + k], int(np.prod(shape)), dtype.name)

        def fill() -> None:
            target.array = run.device.library.full((), run.known[parameter], dtype)

        return fill

    # runs

    def _say_how_much(self) -> None:
        run = self.run
        steps = 0 if self.count is None else self.number(self.count)
        self.launches = steps * max(1, run.frame.launches) + len(self.copies) + len(self.ends) + len(self.starts)
        constant = self.count is not None and _is_constant(self.count) and not self.filled
        ends = not any(p in run.plan.hosted for p in run.plan.parameters[run.plan.first :][: run.plan.carries])
        before = self.before is None or self.before.is_fixed
        self.is_fixed = constant and ends and before and run.is_fixed and self.launches <= MOST_WITHIN

    def __call__(self) -> None:
        """Run the loop once."""
        run = self.run
        run.known.update({p: self.number(a) for p, a in self.numbers.items()})
        for slot, array in self.homes:
            slot.array = array
        for array, node in self.filled:
            array[...] = self.number(node)  # in place: recordings contain its address
        for step in (*self.starts, *self.copies):
            step()
        if self.before is not None:
            self.before()
        if self.count is None:
            turning.loops.append([0, 0])
            try:
                run.tested(0)
            finally:
                turning.loops.pop()
        else:
            self._counted(self.number(self.count))
        for step in self.ends:
            step()

    def _counted(self, count: int) -> None:
        run = self.run
        if run.plan.parameters[0] in run.plan.hosted:
            run.known[run.plan.parameters[0]] = 0
        unit = 0 if run.is_recording else run.unit(count)
        replay = self._replayed(unit) if unit else None
        done = 0
        while replay is not None and done + unit <= count:
            replay()
            done += unit
        for _ in range(count - done):
            run.iterate()

    def _replayed(self, unit: int) -> Callable[[], None] | None:
        """Return a recording of ``unit`` iterations for the arrays that are around the loop now."""
        arrays = [s.array for s in self.shared]
        key = (unit, *map(id, arrays))
        found = self._recordings.get(key)
        if found is None:
            if len(self._recordings) == KEPT:
                self._recordings.clear()
            found = self._recordings[key] = (self.run.recorded(unit), arrays)
        return found[0]


def _is_constant(node: Node) -> bool:
    """Return whether an integer is the same in every iteration of the outer loop."""
    return not any(n.op is PARAMETER for n in topological([node]))


def _number(sizes: Numbers, node: Node) -> int:
    return int(sizes[node])
