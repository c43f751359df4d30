"""Walk a plan for its drivers in Python and in C: names of values, when they die, arguments of kernels.

It knows no language: subclasses write each statement by the methods at its end.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from tensormagic.backend.planning.inline import is_growing
from tensormagic.backend.planning.kinds import is_base, is_leaf, kind_of
from tensormagic.backend.planning.schedule import Kernel, Step
from tensormagic.backend.planning.shared_arrays import Memory
from tensormagic.backend.planning.size_bounds import RefusedError, is_fixed, upper
from tensormagic.backend.planning.steps import Block, below
from tensormagic.backend.printing.kernel_text import Entry, Fault, Printed, Raised
from tensormagic.backend.printing.ledger import Ledger, Planned
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, is_at_least, nodes_of, product
from tensormagic.ops.leaf import CONSTANT


class Walk:
    """A plan's steps in a straight line.

    Parameters
    ----------
    graph, block, memory, steps
        What is run.
    printed
        The text of each kernel, in their order.
    driven
        Regions that have plans of their own.
    carried
        Parameters that are this function's own, to be changed and given back.
    wanted
        For each kernel the nodes that something else needs.
    failed
        The numbers of kernels that do not compile: NumPy computes what they would.
    given
        Whether results are computed in arrays that a run is given: ``run(sizes, *values, into=...)``.
    """

    def __init__(
        self,
        graph: Graph,
        block: Block,
        memory: Memory,
        steps: Sequence[Step],
        printed: Sequence[Printed],
        driven: Mapping[Node, Mapping[str, Planned]] | None = None,
        carried: Container[Node] = (),
        wanted: Sequence[set[Node]] = (),
        failed: Container[int] = (),
        *,
        given: bool = False,
    ) -> None:
        self.graph = graph
        self.block = block
        self.results = block.results
        self.memory = memory
        self.given = given
        self.steps = steps
        self.printed = printed
        self.driven = driven or {}
        self.carried = carried
        self.wanted = wanted
        self.failed = failed
        self.kernels = len(printed)
        self.numbers = {step: k for k, step in enumerate(s for s in steps if isinstance(s, Kernel))}
        self.variables: dict[Any, str] = {}
        self.made: set[Node] = set()
        self.known: set[Node] = set(graph.parameters)  # those of `variables` that are there before a kernel
        self.seen = 0  # how many of these have been looked at
        self.region: Node | None = None
        self.packs: dict[Node, str] = {}
        self.symbols: dict[Any, str] = {}
        self.lines: list[str] = []
        self.parameters = [f"p{k}" for k in range(len(graph.parameters))]
        self.variables.update(zip(graph.parameters, self.parameters, strict=True))
        self.uses = self._uses()
        self.targets = self._targets() if given else {}
        self.ledger = Ledger(self.results, memory, self.driven)
        self._begin()
        self._print()

    def _print(self) -> None:
        dies: dict[int, list[Node]] = {}
        for node, users in self.uses.items():
            dies.setdefault(users[-1], []).append(node)
        for number in range(len(self.steps)):
            self._print_step(number)
            self.ledger.done()
            if number + 1 < len(self.steps):
                self._bury(dies.get(number, []))
        self._print_results()
        self.ledger.done()

    def _print_step(self, number: int) -> None:
        step = self.steps[number]
        if not isinstance(step, Kernel):
            self._print_library(step)
            return
        kernel = self.numbers[step]
        if kernel in self.failed:
            self._print_failed(step, self.wanted[kernel])
        else:
            self._print_kernel(step, kernel, self.printed[kernel])

    def _bury(self, dying: Sequence[Node]) -> None:
        """Drop arrays that nothing needs any more."""
        dead = [self.variables[n] for n in dying if n in self.variables]
        dead += [self.packs[n] for n in dying if self.packs.get(n, self.variables.get(n)) != self.variables.get(n)]
        if dead:
            self._print_deaths(dead)
            self.ledger.give_back(key for n in dying for key in (n, ("packed", n)))

    def _uses(self) -> dict[Node, list[int]]:
        """Return for each owner of an own array, the steps that need or make it."""
        found: dict[Node, list[int]] = {}
        owner = self.memory.owner
        for number, step in enumerate(self.steps):
            if isinstance(step, Kernel):
                entries = self.printed[self.numbers[step]].entries
                used = [e.key for e in entries if e.kind in {"array", "growing"}]
            else:
                used = [step, *(owner(n) for a in step.needs for n in (a, *below(a)))]
            for node in dict.fromkeys([*used, *self._sizes_of(step)]):
                found.setdefault(node, []).append(number)
        kept = {*map(owner, self.results), *self.graph.parameters}
        own = (n for n in found if n not in kept and not (is_base(n) and n.op is CONSTANT) and not is_leaf(n))
        return {n: found[n] for n in own}

    def _targets(self) -> dict[Node, int]:
        """Return the arrays that are results unchanged, with their numbers: a run can be given other arrays for them."""
        found: dict[Node, int] = {}
        for k, node in enumerate(self.results):
            owner = self.memory.owner(node)
            whole = node.type == owner.type and node.type.form == "array" and not is_growing(owner)
            made = not is_base(node) and kind_of(node) != "view" and owner not in self.graph.parameters
            if whole and made and not self.memory.traded and all(is_fixed(s, self.known) for s in owner.type.shape):
                found.setdefault(owner, k)
        return found

    def _sizes_of(self, step: Step) -> Iterator[Node]:
        """Yield the integers that the shapes of a step's results mention."""
        made = [step] if isinstance(step, Node) else [s.root for s in step.stages]
        for node in made:
            for t in node.types:
                yield from (n for s in t.shape for n in nodes_of(s))

    # parts

    def size(self, size: Size) -> str:
        """Return a size as an expression of Python."""
        if isinstance(size, int):
            return str(size)
        return " + ".join(
            "*".join([*([str(c)] if c != 1 or not m else []), *(self._atom(a) for a, p in m for _ in range(p))])
            for m, c in size.terms
        )

    def _new(self, node: Node) -> str:
        name = self.variables[node] = f"v{len(self.variables)}"
        return name

    def _extents(self, node: Node) -> tuple[Size, ...]:
        """Return the shape of a new array; if it changes from iteration to iteration, room for the largest."""
        if all(is_fixed(s, self.known) for s in node.type.shape):
            return node.type.shape
        return (self._most(node.type.size),)

    def _most(self, size: Size) -> Size:
        found = upper(size, self.known)
        if found is None:
            raise RefusedError(self.region)
        return found

    def _packed(self, node: Node) -> str:
        """Return the variable of a node's value as an array that kernels take."""
        if node in self.made:
            return self.variables[node]
        if node not in self.packs:
            self.packs[node] = self._pack(node)
        return self.packs[node]

    # steps

    def _begin_kernel(self, kernel: Kernel) -> None:
        self.known.update(n for n in islice(self.variables, self.seen, None) if n is self.memory.owner(n))
        self.seen = len(self.variables)
        self.region = next((s.root for s in (*kernel.regions, *kernel.stages)), None)

    def _print_kernel(self, kernel: Kernel, number: int, printed: Printed) -> None:
        self._begin_kernel(kernel)
        items: list[str] = []
        after: list[str] = []
        shared = any(entry.kind == "threads" for entry in printed.entries)
        for entry in printed.entries:
            if entry.kind == "size":
                items.append(self._atom(entry.key))
            elif entry.kind == "number":
                items.append(self._number(entry.key))
            elif entry.kind == "address":
                items.append(self._address(entry.key))
            elif entry.kind == "threads":
                items.append(self._threads)
            elif entry.kind == "tile":
                items.append(self._reference(self._tile(entry, len(items), shared=shared)))
            elif entry.kind == "parts":
                items.append(self._reference(self._parts(entry, len(items))))
            elif entry.kind == "fault":
                items.append(self._reference(self._faults))
                after += self._watch(printed.faults)
            elif entry.kind == "traded":
                name = self._traded(len(items))
                items.append(self._reference(name))
                after += self._trade(entry, name)
            else:
                items.append(self._reference(self._array(entry.key)))
        self._launch(number, items, after)

    def _array(self, owner: Node) -> str:
        there = owner in self.variables or owner.op is CONSTANT
        return self._packed(owner) if there else self._allocate(owner)

    def refusals(self) -> Iterator[tuple[Size, str]]:
        """Yield the extents that must not be 0, because a fold over them has no initial value, with the error message."""
        for stage in (s for step in self.steps if isinstance(step, Kernel) for s in step.stages):
            extent = product(tuple(stage.domain[k] for k in stage.reduced))
            open_ = not is_at_least(extent, 1) and not nodes_of(extent) and stage.kind == "fold"
            if stage.reduced and getattr(stage.root.op, "start", 0) is None and open_:
                yield extent, f"zero-size array to reduction operation {stage.root.op.name} which has no identity"

    # how it is written

    _threads: str  # what a kernel takes to hand out its loops
    _faults: str  # where a kernel says what has failed

    def _begin(self) -> None:
        """Print what precedes the first step."""
        raise NotImplementedError

    def _atom(self, a: Any) -> str:
        """Return the text of an atom of a size."""
        raise NotImplementedError

    def _allocate(self, node: Node) -> str:
        """Print a new array for a value."""
        raise NotImplementedError

    def _pack(self, node: Node) -> str:
        """Convert an available value to an array that kernels take."""
        raise NotImplementedError

    def operand(self, node: Node) -> str:
        """Return the text of a value as an operand of anything but a kernel."""
        raise NotImplementedError

    def _print_deaths(self, dead: list[str]) -> None:
        """Let go of arrays."""
        raise NotImplementedError

    def _print_failed(self, kernel: Kernel, wanted: set[Node]) -> None:
        """Print the replacement of a kernel that does not compile."""
        raise NotImplementedError

    def _print_library(self, node: Node) -> None:
        """Print a library call."""
        raise NotImplementedError

    def _print_results(self) -> None:
        """Print the results."""
        raise NotImplementedError

    def _number(self, number: int) -> str:
        """Return the text of a number in the table of a kernel."""
        raise NotImplementedError

    def _address(self, address: int) -> str:
        """Return the text of the address of a function."""
        raise NotImplementedError

    def _reference(self, name: str) -> str:
        """Return the text of an array as kernels take it."""
        raise NotImplementedError

    def _tile(self, entry: Entry, number: int, *, shared: bool = False) -> str:
        """Return the text of memory for a tile."""
        raise NotImplementedError

    def _parts(self, entry: Entry, number: int) -> str:
        """Return the text of memory in which shares of a loop accumulate a node."""
        raise NotImplementedError

    def _watch(self, faults: Sequence[Fault | Raised]) -> list[str]:
        """Allocate room for a kernel's fault record; returns the lines that raise the error."""
        raise NotImplementedError

    def _traded(self, number: int) -> str:
        """Return the variable in which a kernel reports which arrays it has swapped."""
        raise NotImplementedError

    def _trade(self, entry: Entry, traded: str) -> list[str]:
        """Return statements that rename arrays after a kernel has swapped them; a kernel that returns early does not report that."""
        raise NotImplementedError

    def _launch(self, number: int, items: Sequence[str], after: Sequence[str]) -> None:
        """Print the call of a kernel with its table, and the lines ``after`` that inspect its outcome."""
        raise NotImplementedError
