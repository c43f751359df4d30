"""The memory and the work of a compiled function, known from its plan, as formulas in the sizes' names and as numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensormagic.backend.planning import costs
from tensormagic.backend.planning.byte_counts import Amount
from tensormagic.backend.planning.plan import Plan
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.backend.running.memory_limit import readable
from tensormagic.ir import site
from tensormagic.ir.errors import GuardError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Atom, Size, Symbol, bare_atom, product
from tensormagic.ir.substituting import substitute
from tensormagic.ops.leaf import CONSTANT

_TYPE = re.compile(r"\w+\[(?P<shape>.*)\]\s*$")


@dataclass(frozen=True, eq=False)
class Sizes:
    """Names of sizes, and their values for arguments.

    Parameters
    ----------
    called
        The user's names of symbols and integers.
    numbers
        Their values, if arguments were given.
    """

    called: Mapping[Atom, str]
    numbers: Mapping[Atom, int] = field(default_factory=dict)

    def name(self, size: Atom) -> str:
        """Return the name of a symbol or integer in formulas; a data-dependent one is named by its operation and line."""
        found = self.called.get(size)
        if found is not None:
            return found
        return size.name if isinstance(size, Symbol) else f"{_told(size)}"

    def number(self, size: Atom) -> int:
        """Return the value of a size; raise LookupError if it is not known."""
        return self.numbers[size]


def _told(node: Node) -> str:
    """Return a value's operation and line, as text."""
    sites = site.of(node)
    return f"{node.op.name}({sites[0]})" if sites else node.op.name


@dataclass(frozen=True, eq=False)
class Formula:
    """A number that follows from sizes.

    ``str`` gives the formula in the names of sizes, ``int`` the number if all of them are known.
    """

    amount: Amount
    sizes: Sizes
    beside: int = 0  # a number that is known only for given arguments

    def __str__(self) -> str:
        number = self.number
        if number is not None:
            return str(number)
        return self.amount.written(self.sizes.name) + (f"+{self.beside}" if self.beside else "")

    def __repr__(self) -> str:
        return str(self)

    def __int__(self) -> int:
        number = self.number
        if number is None:
            raise GuardError(
                f"{self} is not known: {', '.join(self.open)} {'are' if len(self.open) > 1 else 'is'} not known",
                "Pass arguments, as in f.memory(x, w); what is data-dependent is known only after a run.",
            )
        return number

    __index__ = __int__

    @property
    def number(self) -> int | None:
        """The number, or None if a size is not known."""
        try:
            return self.amount.number(self.sizes.number) + self.beside
        except LookupError:
            return None

    @property
    def open(self) -> tuple[str, ...]:
        """The names of sizes that are not known."""
        return tuple(self.sizes.name(a) for a in self.amount.atoms if a not in self.sizes.numbers)


@dataclass(frozen=True, eq=False)
class StepMemory:
    """The memory of a kernel, or of a call of NumPy.

    Parameters
    ----------
    name
        The operations that it computes.
    taken
        The bytes allocated for it.
    live
        The maximum of bytes in use while it runs: results and operands of other kernels, without the arguments.
    """

    name: str
    taken: Formula
    live: Formula

    def __repr__(self) -> str:
        return f"{self.name}: takes {self.taken}, {self.live} are there"


@dataclass(frozen=True, eq=False)
class Memory:
    """The bytes that a run of a compiled function needs, known before it runs.

    Each is a formula in the names of sizes; called with arguments, this gives the same with numbers.

    Parameters
    ----------
    peak
        The most that a run allocates at once: working arrays and results. What earlier arrays have left at hand is not in it, 256 MiB at
        most, which is given back where memory is short.
    working
        The most that is there at once of what is neither argument nor result.
    results
        What is handed back.
    inputs
        The arguments, which are the caller's.
    kept
        What is there between runs: constants, and arrays that the function reads beside its arguments.
    steps
        The same by kernel and call of NumPy, in the order of their runs.
    unknown
        What allocates more than this counts, by name and line: what NumPy takes inside of a function of its own, and arrays that
        grow with data.

    Examples
    --------
    >>> import tensormagic as tm
    >>> f = tm.compile(lambda x: np.exp(x) @ np.exp(x).T, "float64[rows, 3]")
    >>> f.memory.results
    8*rows^2
    >>> int(f.memory(np.ones((10, 3))).results)
    800
    """

    peak: Formula
    working: Formula
    results: Formula
    inputs: Formula
    kept: Formula
    steps: tuple[StepMemory, ...]
    unknown: tuple[str, ...]
    _at: Callable[..., Memory] = field(repr=False)

    def __call__(self, *args: Any) -> Memory:
        """Return the same for arguments, without running anything."""
        return self._at(*args)

    def __repr__(self) -> str:
        def shown(value: Formula) -> str:
            number = value.number
            return str(value) if number is None else f"{number} ({readable(number)})"

        names = ("peak", "working", "results", "inputs", "kept")
        lines = [f"{name:8} {shown(getattr(self, name))}" for name in names]
        lines += [f"  {step}" for step in self.steps]
        lines += [f"not counted: {what}" for what in self.unknown]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class StepWork:
    """The work of a kernel, or of a call of NumPy, or of all of them.

    Parameters
    ----------
    name
        The operations that it computes.
    operations
        The number of applications of scalar functions: an addition and an ``exp`` are one each.
    flops
        The same in floating-point operations: an ``exp`` is the additions, multiplications and divisions in it.
    moved
        The bytes of the arrays that are read and written, each once in a pass.
    known
        Whether the count is exact. How many iterations a ``while`` runs and which branch is taken is not known before:
        the costlier branch is counted, and one iteration of a ``while``.
    """

    name: str
    operations: Formula
    flops: Formula
    moved: Formula
    known: bool

    @property
    def intensity(self) -> float | str:
        """Floating-point operations per byte; a formula if sizes are not known. Infinite if no array is touched."""
        flops, moved = self.flops.number, self.moved.number
        if moved == 0:
            return float("inf")
        return f"({self.flops})/({self.moved})" if flops is None or moved is None else flops / moved

    def __repr__(self) -> str:
        found = self.intensity
        ratio = found if isinstance(found, str) else f"{found:.3g}"
        more = "" if self.known else ", and what is data-dependent"
        return f"{self.name}: {self.operations} operations, {self.flops} flops, {self.moved} bytes, {ratio} flops a byte{more}"


@dataclass(frozen=True, eq=False, repr=False)
class Work(StepWork):
    """The work of a run of a compiled function, counted in its plan; called with arguments, this gives the same with numbers.

    Parameters
    ----------
    name, operations, flops, moved, known
        As for a step: of all steps together.
    steps
        The same by kernel and call of NumPy, in the order of their runs.

    Examples
    --------
    >>> import tensormagic as tm
    >>> f = tm.compile(lambda x: np.sum(x * x), "float64[n]")
    >>> f.cost.flops, f.cost.moved, f.cost(np.ones(1000)).intensity
    (2*n, 8*n, 0.25)
    """

    steps: tuple[StepWork, ...]
    _at: Callable[..., Work] = field(repr=False)

    def __call__(self, *args: Any) -> Work:
        """Return the same for arguments, without running anything."""
        return self._at(*args)

    def __repr__(self) -> str:
        return "\n".join([super().__repr__(), *(f"  {step}" for step in self.steps)])


def work_of(plan: Plan, sizes: Sizes, name: str, at: Callable[..., Work]) -> Work:
    """Return the work of a plan as formulas, or as numbers if the sizes are known; ``at`` gives it for arguments."""

    def number(size: Size) -> Size:
        return substitute(size, sizes.numbers)

    def described(called: str, cost: costs.Cost) -> tuple[str, Formula, Formula, Formula, bool]:
        operations, flops, moved = (Formula(Amount((n,)), sizes) for n in (cost.operations, cost.flops, cost.moved))
        return called, operations, flops, moved, cost.known

    found = costs.of_plan(plan, number)
    steps = tuple(StepWork(*described(called, cost)) for called, cost in zip(_names(plan), found, strict=True))
    return Work(*described(name, costs.total(found)), steps, at)


def memory_of(plan: Plan, sizes: Sizes, outside: int, at: Callable[..., Memory], args: Sequence[Any] | None) -> Memory:
    """Return the memory of a plan whose last ``outside`` parameters are no arguments; ``at`` gives it for arguments."""
    ledger, graph = plan.ledger, plan.graph
    count = len(graph.parameters) - outside

    def formula(*found: Any, beside: int = 0) -> Formula:
        return Formula(Amount((sum(found, 0),)), sizes, beside)

    def arrays(nodes: Sequence[Node]) -> list[Any]:
        return [product(t.shape) * t.dtype.itemsize for n in nodes for t in n.types if t.shape]

    copied = 0 if args is None else _copied(graph, ledger.copies, args)
    constants = sum(n["bits"].array().nbytes for n in _constants(plan))
    names = [*_names(plan), "results"]
    steps = [
        StepMemory(n, Formula(s.taken, sizes), Formula(s.live, sizes, copied))
        for n, s in zip(names, ledger.steps, strict=True)
    ]
    return Memory(
        Formula(ledger.peak, sizes, copied), Formula(ledger.working, sizes, copied),
        formula(*arrays(graph.results)), formula(*arrays(graph.parameters[:count])),
        formula(*arrays(graph.parameters[count:]), constants),
        tuple(s for s in steps[:-1]) + tuple(s for s in steps[-1:] if s.taken.number != 0),
        tuple(dict.fromkeys(f"{_told(node)}: {why}" for node, why in ledger.unknown.items())), at,
    )  # fmt: skip


def _constants(plan: Plan) -> list[Node]:
    return [n for n in plan.graph.nodes if n.op is CONSTANT and n.type.shape]


def _copied(graph: Graph, packed: Mapping[Node, None], args: Sequence[Any]) -> int:
    """Return the bytes of arguments that are copied because they are not in C order."""
    pairs = [(n, v) for n, v in zip(graph.parameters, args, strict=False) if n in packed]
    return sum(
        v.nbytes for _, v in pairs if isinstance(v, np.ndarray) and not (v.flags.c_contiguous and v.flags.aligned)
    )


def _names(plan: Plan) -> list[str]:
    """Return the names of the steps."""
    kernels = iter(plan.kernels)
    found: list[str] = []
    for step in plan.steps:
        if isinstance(step, Kernel):
            ops = list(dict.fromkeys(n.op.name for n in next(kernels).nodes if n.args))
            found.append(f"kernel of {', '.join(ops[:6])}{', …' * (len(ops) > 6)}")
        else:
            found.append(f"NumPy's {step.op.name}")
    return found


def sizes_of(graph: Graph, running: Graph, arguments: Sequence[Any]) -> Sizes:
    """Return names for the sizes of a graph, from its types and integer parameters."""
    called: dict[Atom, str] = {}
    taken: set[str] = set()
    for parameter, given in zip(graph.parameters, arguments, strict=False):
        found = _TYPE.match(given) if isinstance(given, str) else None
        own = [part.strip() for part in found["shape"].split(",")] if found else []
        for size, name in zip(parameter.type.shape, own, strict=False):
            atom = bare_atom(size)
            if atom is not None and name.isidentifier() and atom not in called and name not in taken:
                called[atom] = name
                taken.add(name)
    called.update(zip(running.parameters, running.names or (), strict=False))
    return Sizes(called)


def numbers_of(running: Graph, sizes: Mapping[Any, int], values: Sequence[Any]) -> dict[Atom, int]:
    """Return the values of symbols and integers among the arguments."""
    found: dict[Atom, int] = dict(sizes)
    for node, value in zip(running.parameters, values, strict=False):
        if not node.type.shape and node.type.dtype.kind in "iub":
            found[node] = int(value)
    return found
