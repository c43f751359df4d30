"""A part of a loop with arrays for its values: launches bound to slots, guarded branches, library calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from tensormagic.backend.cuda.choice import on_device
from tensormagic.backend.cuda.device import Device, DeviceArray
from tensormagic.backend.cuda.kernels.launch import (
    Array,
    Count,
    Fault,
    Launch,
    Live,
    Number,
    Parameter,
    Scratch,
    chosen,
)
from tensormagic.backend.cuda.loops.guarded import COUNT, choice, copied
from tensormagic.backend.cuda.loops.loop_plan import LoopPlan, Part, guarded_copy
from tensormagic.backend.cuda.planned import every
from tensormagic.backend.planning.inline import is_room
from tensormagic.backend.planning.kinds import stored_below
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.ir.graph import Guard, check
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, Symbol, bare_atom, evaluate, nodes_of
from tensormagic.ops.effects.failing import has_sizes_of_data
from tensormagic.ops.leaf import CONSTANT, PARAMETER
from tensormagic.ops.op import Value, as_form
from tensormagic.ops.opaque import ITEM

Compute = Callable[[Node, list[Value], Any], Value]
ALIGNED = 16  # bytes of the alignment that vector loads of kernels need


class Owner(Protocol):
    """The interface of the run that frames belong to.

    Attributes
    ----------
    plan, device, compute
        The loop, where it runs, and what computes a node that has no kernel.
    fault, always
        Where kernels note that something went wrong, and a flag that is never 0.
    parts
        Where the results of branches go.
    """

    plan: LoopPlan
    device: Device
    compute: Compute
    fault: Slot
    always: Slot
    parts: dict[tuple[Frame, Node], list[Slot]]

    def flag(self, value: int) -> Slot:
        """Return a slot with one integer on the device."""
        ...

    def loaded(self, one: Launch) -> Any:
        """Return a kernel loaded on the device."""
        ...

    def constant(self, node: Node) -> DeviceArray:
        """Return the array of a constant, copied once."""
        ...

    def placed(self, value: Value, node: Node) -> DeviceArray:
        """Return a value in an array of the layout that kernels read."""
        ...

    def nested(self, frame: Frame, node: Node, results: Sequence[Slot]) -> Inner:
        """Return what runs a loop inside an iteration of this one."""
        ...


class Inner(Protocol):
    """A loop inside an iteration: whether it always makes the same launches, how many, and how to run it."""

    is_fixed: bool
    launches: int

    def __call__(self) -> None:
        """Run the loop once."""
        ...


class Slot:
    """A reference to the array of an owner: kernels are bound to slots, and iterations swap their arrays."""

    __slots__ = ("array",)

    def __init__(self, array: DeviceArray | None = None) -> None:
        self.array = array


@dataclass(eq=False)
class Bound:
    """A launch with its grid and its arguments: slots and numbers."""

    kernel: Any
    grid: tuple[int, int, int]
    arguments: list[Any]

    def __call__(self, device: Device) -> None:
        blocks, threads, shared = self.grid
        given = [a.array if type(a) is Slot else a for a in self.arguments]
        device.launch(self.kernel, (blocks,), (threads,), given, shared)


class Numbers(Mapping[Any, int]):
    """A mapping from symbols and integers that the host knows to their numbers.

    Parameters
    ----------
    symbols
        Of the graph.
    known
        The value of a parameter.
    """

    def __init__(self, symbols: Mapping[Symbol, int], known: Callable[[Node], int]) -> None:
        self.symbols = symbols
        self.known = known

    def __getitem__(self, a: Any) -> int:
        if isinstance(a, Symbol):
            return self.symbols[a]
        if a.op is PARAMETER:
            return self.known(a)
        return int(a.op.evaluate(a, [self[x] for x in a.args], self))

    def __call__(self, size: Size) -> int:
        """Return the number that a size evaluates to."""
        return size if isinstance(size, int) else evaluate(size, self.__getitem__)

    def __iter__(self) -> Any:
        return iter(self.symbols)

    def __len__(self) -> int:
        return len(self.symbols)


class Frame:
    """A part of a loop with arrays for its values: the steps of an iteration, in order.

    Parameters
    ----------
    run
        The loop.
    part
        Its graph.
    sizes
        Of the graph.
    given
        The slots of the parameters; others are made.
    live
        Where the flag is that the part depends on; None where it always runs.
    results
        Where results go; None for those that stay where they are.

    Attributes
    ----------
    is_steady
        Whether each iteration has the same sizes, and there is nothing that the host has to check.
    launches
        How many there are.
    called
        Seconds that the library is taken for to compute what it does.
    """

    def __init__(
        self,
        run: Owner,
        part: Part,
        sizes: Numbers,
        given: Sequence[Slot | None],
        live: Slot | None,
        results: Sequence[Slot] | None = None,
    ) -> None:
        self.run, self.part, self.sizes, self.live = run, part, sizes, live
        self.slots: dict[Node, Slot] = {
            p: s for p, s in zip(part.graph.parameters, given, strict=True) if s is not None
        }
        self.read = {n for n in part.arrays() if n.op is PARAMETER}
        self.steps: list[Callable[[], None]] = []
        self.is_steady = True
        self.launches = 0
        self.called = 0.0
        self._varying: list[Node] = []
        self.ends: list[Slot] = []
        ends = self._directly(results)
        for step in part.planned.plan.steps:
            self._add(step)
        self._finish(results, ends)

    @property
    def is_fixed(self) -> bool:
        """Return whether a run makes the same launches each time, and nothing else."""
        return self.is_steady and not self.part.calls

    def __call__(self) -> None:
        """Run the part once."""
        for owner in self._varying:
            shape, slot = tuple(map(self.sizes, owner.type.shape)), self.slots[owner]
            if slot.array is None or slot.array.shape != shape:
                slot.array = self.run.device.library.empty(shape, owner.type.dtype)
        for step in self.steps:
            step()

    # where values are kept

    def _directly(self, results: Sequence[Slot] | None) -> set[int]:
        """Bind results that can be computed directly in their target to it, and return their positions."""
        found: set[int] = set()
        for k, result in enumerate(self.part.results if results is not None else ()):
            owner = self.part.owner(result)
            if k not in self.part.copies and owner not in self.slots and owner.op is not PARAMETER:
                assert results is not None  # noqa: S101
                self.slots[owner] = results[k]
                found.add(k)
        return found

    def slot(self, owner: Node) -> Slot:
        """Return the slot of an owner, allocated where there is none."""
        found = self.slots.get(owner)
        if found is None:
            found = self.slots[owner] = Slot(self._made(owner))
        return found

    def _made(self, owner: Node) -> DeviceArray | None:
        if owner.op is CONSTANT:
            return self.run.constant(owner)
        if has_sizes_of_data(owner):
            self.is_steady = False
            self._varying.append(owner)
            return None
        if owner.op is PARAMETER and not is_room(owner):
            raise UnfixedError  # the value is known to the host alone
        shape = tuple(map(self.sizes, owner.type.shape))
        return self.run.device.library.empty(shape, owner.type.dtype)

    def argument(self, parameter: Parameter, scratch: dict[Any, Slot]) -> Any:
        """Return the argument of a launch for a parameter."""
        if isinstance(parameter, Array):
            return self.slot(parameter.node)
        if isinstance(parameter, Count):
            return np.int64(self.sizes(parameter.size))
        if isinstance(parameter, Number):
            return parameter.value
        if isinstance(parameter, Fault):
            return self.run.fault
        if isinstance(parameter, Live):
            return self.live
        if parameter.key not in scratch:
            count = max(1, self.sizes(parameter.count))
            scratch[parameter.key] = Slot(self.run.device.library.empty(count, parameter.dtype))
        return scratch[parameter.key]

    # steps

    def _add(self, step: Kernel | Node) -> None:
        part = self.part
        if isinstance(step, Kernel):
            if step in part.checks:
                self.is_steady = False
                self.steps.append(partial(self._check, part.checks[step]))
                return
            self._add_launches(part.launches[step])
        elif step in part.branches:
            self._add_branch(step)
        elif step in part.loops:
            self._add_loop(step)
        elif step.op is ITEM and (step.args[0] in part.branches or step.args[0] in part.loops):
            self.slots[part.owner(step)] = self._parts_of(step.args[0])[step["index"]]
        else:
            self._add_call(step)

    def _add_call(self, node: Node) -> None:
        if any(map(has_sizes_of_data, (node, *node.args))):
            self.is_steady = False
        else:
            self.called += on_device(node, self.sizes)
        self.steps.append(lambda: self._call(node))

    def _check(self, guards: Sequence[Guard]) -> None:
        for guard in guards:
            check(guard, self.sizes.__getitem__)

    def _launch(self, launches: Sequence[Launch]) -> None:
        """Run launches that depend on integers of this iteration."""
        for bound in self._bound(launches, {}):
            bound(self.run.device)

    def _add_launches(self, launches: Sequence[Launch]) -> None:
        if any(_depends(one) for one in launches):
            self.is_steady = False
            for one in every(launches):
                for p in one.parameters:
                    if isinstance(p, Array):
                        self.slot(p.node)
            self.steps.append(partial(self._launch, launches))
            return
        for bound in self._bound(launches, {}):
            self.launches += 1
            self.steps.append(lambda bound=bound: bound(self.run.device))

    def _bound(self, launches: Sequence[Launch], scratch: dict[Any, Slot]) -> list[Bound]:
        found = [
            self.bind(one, [self.argument(p, scratch) for p in one.parameters], self.sizes)
            for one in chosen(launches, self.sizes)
        ]
        return [b for b in found if b is not None]

    def bind(self, one: Launch, arguments: list[Any], sizes: Mapping[Any, int]) -> Bound | None:
        """Return a launch with its arguments, or None where its grid is empty."""
        grid = one.grid(sizes)
        return Bound(self.run.loaded(one), grid, arguments) if grid[0] else None

    def small(self, one: Launch, *arguments: Slot) -> None:
        """Append a launch of one of the small kernels."""
        bound = self.bind(one, list(arguments), {})
        assert bound is not None  # noqa: S101
        self.launches += 1
        self.steps.append(lambda: bound(self.run.device))

    def copy(self, target: Slot, node: Node, *, guard: bool) -> None:
        """Append a copy of a value."""
        if has_sizes_of_data(node):
            raise UnfixedError
        count = self.sizes(node.type.size)
        arguments = [target, self.slot(self.part.owner(node)), np.int64(count)]
        one = guarded_copy(node.type.dtype.name) if guard else copied(node.type.dtype.name)
        bound = self.bind(one, [*arguments, self.live] if guard else arguments, {bare_atom(COUNT): count})
        if bound is not None:
            self.launches += 1
            self.steps.append(lambda: bound(self.run.device))

    def _parts_of(self, node: Node) -> list[Slot]:
        """Return the slots for the results of a branch."""
        found = self.run.parts.get((self, node))
        if found is None:
            if has_sizes_of_data(node):
                raise UnfixedError
            empty = self.run.device.library.empty
            items = {
                s["index"]: s
                for s in self.part.planned.plan.steps
                if isinstance(s, Node) and s.args[:1] == (node,) and s.op is ITEM
            }
            named = [node] if len(node.types) == 1 else [items.get(k) for k in range(len(node.types))]
            known = [None if n is None else self.slots.get(self.part.owner(n)) for n in named]
            found = [
                Slot(empty(tuple(map(self.sizes, t.shape)), t.dtype)) if slot is None else slot
                for t, slot in zip(node.types, known, strict=True)
            ]
            self.run.parts[self, node] = found
        return found

    def _add_branch(self, node: Node) -> None:
        results = self._parts_of(node)
        if len(node.types) == 1:
            self.slots[self.part.owner(node)] = results[0]
        predicate, *operands = node.args
        if any(map(has_sizes_of_data, operands)):
            raise UnfixedError
        flags = [self.run.flag(0), self.run.flag(0)]
        self.small(choice(), self.slot(self.part.owner(predicate)), self.live or self.run.always, *flags)
        for side, flag in zip(self.part.branches[node], flags, strict=True):
            owners = [self.part.owner(a) for a in operands]
            shapes = [tuple(map(self.sizes, a.type.shape)) for a in operands]
            outer = dict(zip(side.graph.parameters, operands, strict=True))
            sizes = Numbers(side.graph.bind(shapes), lambda p, outer=outer: self.sizes[outer[p]])
            needed = side.arrays()
            given = [self.slot(o) if p in needed else None for p, o in zip(side.graph.parameters, owners, strict=True)]
            frame = Frame(self.run, side, sizes, given, flag, results)
            self.is_steady = self.is_steady and frame.is_steady
            self.launches += frame.launches
            self.steps.append(frame)

    def _add_loop(self, node: Node) -> None:
        results = self._parts_of(node)
        if len(node.types) == 1:
            self.slots[self.part.owner(node)] = results[0]
        inner = self.run.nested(self, node, results)
        self.is_steady = self.is_steady and inner.is_fixed
        self.launches += inner.launches
        self.steps.append(inner)

    def _finish(self, results: Sequence[Slot] | None, ends: set[int]) -> None:
        """Copy results into their targets, and give each an array of its own."""
        for k, result in enumerate(self.part.results):
            if results is not None:
                if k not in ends:
                    self.copy(results[k], result, guard=True)
                continue
            if k in self.part.copies:
                shape = tuple(map(self.sizes, result.type.shape))
                target = Slot(self.run.device.library.empty(shape, result.type.dtype))
                self.copy(target, result, guard=self.part.dependent)
                self.ends.append(target)
            elif has_sizes_of_data(self.part.owner(result)):
                raise UnfixedError
            else:
                self.ends.append(self.slot(self.part.owner(result)))

    def _call(self, node: Node) -> None:
        """Compute a node by the library, which returns a new array."""
        values = [self._operand(a) for a in node.args]
        value = self.run.compute(node, values, self.sizes)
        slot = self.slots.setdefault(self.part.owner(node), Slot())
        slot.array = self._own(value, node)

    def _own(self, value: Value, node: Node) -> Any:
        """Return a result of the library in memory of its own."""
        device = self.run.device
        if isinstance(value, tuple):
            return value
        if not device.is_array(value):
            return self.run.placed(value, node)
        fine = value.base is None and value.flags.c_contiguous and not device.address(value) % ALIGNED
        return value if fine and not any(s.array is value for s in self.slots.values()) else value.copy()

    def _operand(self, node: Node) -> Value:
        if node.op is CONSTANT:
            return as_form(node["bits"].array(), node.type.form)
        if node in self.run.plan.hosted:
            return as_form(self.sizes[node], node.type.form)
        owner = self.part.owner(node)
        if owner not in self.slots:
            values = [self._operand(a) for a in node.args]
            return self.run.compute(node, values, self.sizes)
        array = self.slots[owner].array
        if stored_below(node) is node:
            return array
        return self.run.device.library.reshape(array, tuple(map(self.sizes, node.type.shape)))


class UnfixedError(Exception):
    """Raised where the sizes of loop state change between iterations; the library then runs the loop."""


def _depends(one: Launch) -> bool:
    """Return whether a launch depends on integers that change from iteration to iteration."""
    sizes = [one.blocks, one.shared, *(s for s, _ in one.not_empty), *(s for s, _, _ in one.ranges)]
    sizes += [p.size for p in one.parameters if isinstance(p, Count)]
    sizes += [p.count for p in one.parameters if isinstance(p, Scratch)]
    return any(map(nodes_of, sizes)) or any(map(_depends, one.otherwise))
