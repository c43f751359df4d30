"""Print loops over few numbers as one kernel, in which a single thread runs all iterations with the loops and branches inside.

The text is that for the processor, without tiles and threads. Iterations depend on each other, and a launch for
each step of one would take longer than the step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.backend.cuda.kernels.launch import Array, Count, Launch, Parameter, UnsupportedError
from tensormagic.backend.cuda.kernels.text import CudaText
from tensormagic.backend.planning.inline import is_growing
from tensormagic.backend.planning.lower import Stage
from tensormagic.backend.planning.schedule import Kernel, Nest, Part, Region, Storage
from tensormagic.backend.printing.body_text import Body, indented
from tensormagic.backend.printing.kernel_source import print_before, print_scalar
from tensormagic.backend.printing.kernel_text import KernelText, Line, Local
from tensormagic.backend.printing.region_text import print_check, print_region
from tensormagic.backend.printing.scalar_text import start_text, step_text
from tensormagic.backend.printing.sequence_text import print_sequence
from tensormagic.ir.node import Node
from tensormagic.ir.size import Symbol, atom, nodes_of, product
from tensormagic.ops.move_kind import Index

MOST_ITERATIONS = 1 << 20  # of a data-dependent loop, before the library takes over: a kernel cannot be interrupted
_STORE = re.compile(r"\s*([A-Za-z_]\w*)\[.*\] = ")


@dataclass
class OneText(CudaText):
    """The text of a kernel that one thread runs."""

    @property
    def counts_iterations(self) -> bool:
        """Return True: all data-dependent loops count their iterations."""
        return True

    def polls(self, done: str, count: str, *, inner: bool) -> list[Line]:
        """Return lines that set the fault flag in a data-dependent loop that runs too long."""
        del inner
        if count != "0":
            return []
        return [(f"if {done} >= {MOST_ITERATIONS}:", None), *indented([(s, None) for s in self.leave(None)])]

    def leave(self, fault: Any, *values: str) -> list[str]:
        """Return statements that set the fault flag and leave the kernel; the library then raises the error."""
        return [*super().leave(fault, *values), "return"]

    def latched(self, wanted: Mapping[Node, Node]) -> list[Line]:
        """Return lines that copy loop state element by element; pointers cannot be swapped, as the host knows the arrays."""
        given = {s: self._kept(s) if s in wanted else None for s in dict.fromkeys(wanted.values())}
        lines = [line for s, kept in given.items() if kept is not None for line in self._filled(kept, self.array(s), s)]
        for target, source in wanted.items():
            lines += self._filled(self.array(target), given[source] or self.array(source), source)
        return lines

    def _kept(self, node: Node) -> str:
        return self.room(("kept", node), node.type.size, node.type.dtype.name)

    def copy(self, to: Node, of: Node) -> list[Line]:
        """Return a loop that copies a whole array."""
        return self._filled(self.array(to), self.array(of), to)

    def _filled(self, target: str, source: str, like: Node) -> list[Line]:
        k = self.fresh("k")
        return [(f"for {k} in range({self.size(like.type.size)}):", like), (f"    {target}[{k}] = {source}[{k}]", like)]

    def _atom(self, a: Any) -> str:
        """Return the name of a symbol, which is a parameter, or of a number that the kernel computes."""
        if isinstance(a, Symbol) and not isinstance(a, Local):
            return self.parameter(a, "n", Count(atom(a)))
        return KernelText._atom(self, a)  # noqa: SLF001


class OneBody(Body):
    """A loop of a nest that runs over all its elements in order."""

    def _split_rows(self, depth: int) -> None:
        for k in range(depth):
            below = product(self.nest.rows[k + 1 :])
            line = f"quotient(i, {self.text.size(below)})" if below != 1 else "i"
            line = f"rest({line}, {self.text.size(self.nest.rows[k])})" if k else line
            self.sections[1].append((f"i{k} = {line}", None))

    def printed(self, *, woven: bool = False, narrow: bool = False) -> list[Line]:
        """Return the loops around what has been printed."""
        del woven, narrow
        return [*self.frame.tile[0], *self._nested(0, narrow=False), *self.frame.tile[1]]

    def _accumulator(self, stage: Stage, value: str, suffix: int) -> str:
        root = stage.root
        total = self.text.fresh(root.op.name)
        begin = self.frame.tile[0] if suffix == 0 else self.sections[suffix]
        begin.append((f"{total} = {start_text(root, self.text)}", root))
        self.emit(len(self.groups), f"{total} = {step_text(root, total, value, free=False)}", root)
        return total

    def _finish_total(self, stage: Stage, part: str) -> None:
        root = stage.root
        self.text.scalars[root, tuple(Index(None) for _ in stage.place)] = part
        if self.text.exported(root):
            self.frame.after.append((f"{self.text.array(root)}[0] = {part}", root))


def print_region_alone(make: Callable[..., CudaText], kernel: Kernel, names: Mapping[Node, str]) -> list[Launch]:
    """Return the launch of a loop or a branch that one thread runs."""
    text = make(OneText)
    assert isinstance(text, OneText)  # noqa: S101
    _print_parts(text, kernel.parts)
    for region in kernel.regions:
        for item, _ in region.results:
            if not item.type.shape and text.exported(item):
                text.lines.append((f"{text.array(item)}[0] = {text.scalars[item, ()]}", item))
    text.written |= {m[1] for line, _ in text.lines if (m := _STORE.match(line))}
    _known(text.parameters)
    return [text.launch("loop", 1, 1, names)]


def _known(parameters: Sequence[Parameter]) -> None:
    """Raise if the size of an array depends on the kernel: the host allocates every array before."""
    for p in parameters:
        shape = p.node.type.shape if isinstance(p, Array) else ()
        if any(nodes_of(s) for s in shape):
            raise UnsupportedError("an array whose size the kernel computes")


def _print_parts(text: KernelText, parts: Sequence[Part]) -> None:
    assert isinstance(text, OneText)  # noqa: S101
    for part in parts:
        if isinstance(part, Nest):
            _print_nest(text, part)
        elif isinstance(part, Region):
            print_region(text, part, _print_parts, lambda text, region: False)
        else:
            print_check(text, part)


def _print_nest(text: OneText, nest: Nest) -> None:
    if any(is_growing(text.memory.owner(s.root)) for s in nest.stages):
        raise UnsupportedError("an array that grows")
    for stage in nest.stages:
        print_before(text, stage)
    if nest.alone and nest.stages[0].kind == "sequence":
        print_sequence(text, nest)
        return
    if not nest.depth:
        body = OneBody(text, nest, nest.loops[0], None)
        for stage in nest.stages:
            print_scalar(body, stage)
        text.lines += body.sections[0]
        return
    nest = _whole(text, nest)
    text.lines += [("start = 0", None), (f"stop = {text.product(product(nest.rows))}", None)]
    bodies: list[OneBody] = []
    printed: list[Line] = []
    for loop in nest.loops:
        bodies.append(OneBody(text, nest, loop, None))
        printed += bodies[-1].print_loop()
    text.lines += [line for body in bodies for line in body.sections[0] + body.frame.before]
    text.lines += [*printed, *(line for body in bodies for line in body.frame.after)]


def _whole(text: OneText, nest: Nest) -> Nest:
    """Return the nest with every value that passes between its loops in an array."""
    for node, storage in nest.storage.items():
        if storage is Storage.TILE:
            text.private[text.memory.owner(node)] = node.type.size
    kept = {n: Storage.LOCAL if s is Storage.LOCAL else Storage.FULL for n, s in nest.storage.items()}
    return Nest(nest.stages, nest.depths, nest.alone, nest.depth, nest.loops, kept)
