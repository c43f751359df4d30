"""Print what one thread computes: the element of a flat loop, or the statements of a row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tensormagic.backend.cuda.kernels.launch import UnsupportedError
from tensormagic.backend.cuda.kernels.text import CudaText
from tensormagic.backend.planning.lower import IndexTuple, Stage
from tensormagic.backend.planning.schedule import Nest, Storage, coefficients, strides
from tensormagic.backend.printing.body_text import Body
from tensormagic.backend.printing.kernel_text import Line
from tensormagic.backend.printing.scalar_text import as_text
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, product


@dataclass
class Output:
    """A value that is stored at the index of the element."""

    array: str
    value: str
    node: Node
    place: str = "i"


@dataclass
class Element(Body):
    """The body of a loop with index ``i``; loads and stores at ``i`` itself can be vectorised."""

    loads: list[tuple[str, str, int, str]] = field(default_factory=list)  # name, array, bytes of an element, index
    outputs: list[Output] = field(default_factory=list)
    folds: list[tuple[Stage, str]] = field(default_factory=list)

    @property
    def cuda(self) -> CudaText:
        """Return the text, typed as CudaText."""
        assert isinstance(self.text, CudaText)  # noqa: S101
        return self.text

    def _split_rows(self, depth: int) -> None:
        self._split("i", self.nest.rows[:depth], 0, 1)

    def _split(self, name: str, domain: Sequence[Size], first: int, section: int) -> None:
        """Print the index along each axis, computed from the linear index of an element."""
        for k in range(first, len(domain)):
            below = product(tuple(domain[k + 1 :]))
            line = f"quotient({name}, {self.text.size(below)})" if below != 1 else name
            line = f"rest({line}, {self.text.size(domain[k])})" if k > first else line
            self.sections[section].append((f"{name}{k} = {line}", None))

    def flat(self, node: Node, index: IndexTuple) -> str:
        """Return ``i`` where neighbouring threads access neighbouring elements, so that access can be vectorised, else ""."""
        factors, offset = coefficients(node, index)
        own = {k: c for k, c in factors.items() if c != 0}
        return "i" if len(self.groups) == 1 and offset == 0 and own == whole(self.nest.rows, 0) else ""

    def _load(self, node: Node, index: IndexTuple) -> str:
        self.check(node)
        place = self.flat(node, index)
        if not place:
            return super()._load(node, index)
        name = self.text.fresh("x")
        self.depth_of[name] = len(self.groups)
        self.loads.append((name, self.text.array(node), node.type.dtype.itemsize, place))
        return name

    def check(self, node: Node) -> None:
        """Raise where a value of the same nest is held by another thread, which may not have computed it yet."""
        if self.groups and any(s.root is node for s in self.nest.stages):
            raise UnsupportedError("a value that other threads compute")

    def _outside(self, name: str, given: str, count: str, axis: int) -> Iterable[str]:
        """Set the fault flag and continue with index 0: a thread cannot leave the kernel."""
        del given, count
        return (*self.text.fault(IndexError, str(axis)), f"{name} = 0")

    def run(self) -> None:
        """Print all stages of the loop."""
        for stage in self.loop.stages:
            if stage.reduced:
                places = getattr(
                    stage.root.op, "positional", False
                )  # argmax and the like compare the elements unchanged
                value = self.value(*stage.body[0]) if places else self.element(stage)
                self.folds.append((stage, self._named(value)))
            elif stage.written is not None:
                self.cuda.store(self.text.array(stage.root))
                self.print_store(stage)
            else:
                self._print_map(stage)

    def _print_map(self, stage: Stage) -> None:
        root = stage.root
        value = self.result(stage, ())
        self.memo[root, stage.identity()] = value
        self.depth_of.setdefault(value, self._depth(value))
        if self.nest.storage[root] is not Storage.FULL:
            return
        kept = as_text(root, value)
        place = self.flat(root, stage.identity())
        if place:
            self.outputs.append(Output(self.cuda.store(self.text.array(root)), self._named(kept), root, place))
            return
        name, offset, _ = self.address(root, stage.identity())
        self.emit(len(self.groups), f"{self.cuda.store(name)}[{offset}] = {kept}", root)

    def _named(self, value: str) -> str:
        """Return the name of a variable that holds a value, assigned if need be, for a function to return."""
        return (
            value
            if value in self.depth_of and value.isidentifier()
            else self.assign("y", value, len(self.groups), None)
        )

    def inside(self) -> list[Line]:
        """Return the statements of one element."""
        return self.sections[len(self.groups)]


def whole(domain: Sequence[Size], first: int) -> dict[int, Size]:
    """Return the strides, in the linear index of a domain, of the axes from ``first`` on."""
    return {k: c for k, c in enumerate(strides(domain)) if k >= first}


def is_flat_nest(nest: Nest) -> bool:
    """Return whether one loop over all axes computes every stage: maps, stores and total reductions over the same domain."""
    domain = nest.stages[0].domain
    if any(s.domain != domain or len(s.reduced) not in {0, len(domain)} for s in nest.stages):
        return False
    own = {s.root: s for s in nest.stages}
    reads = [(own[n], index) for s in nest.stages for n, index in s.reads if n in own]
    return all(not maker.reduced and index == maker.identity() for maker, index in reads)


def flat_nest(nest: Nest) -> Nest:
    """Return the nest as one loop over all axes, each value in a register of its thread or stored in full."""
    kept = {n: s if s is Storage.FULL else Storage.LOCAL for n, s in nest.storage.items()}
    return Nest(nest.stages, nest.depths, depth=len(nest.stages[0].domain), storage=kept)


def words_of(lines: Sequence[Line]) -> set[str]:
    """Return every word in the texts of lines."""
    return {w for text, _ in lines for w in re.findall(r"[A-Za-z_]\w*", text)}


def names_in(lines: Sequence[Line]) -> list[str]:
    """Return the names of the variables that lines assign, in order."""
    found = (re.match(r"([A-Za-z_]\w*) = ", text) for text, _ in lines)
    return list(dict.fromkeys(m[1] for m in found if m))
