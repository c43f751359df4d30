"""Plan loops as launches: whether an iteration consists of kernels and library calls, and what the host has to know of it.

The host starts an iteration without reading any value from the device: sizes are known, integers in sizes follow
from the index and other integers on the host, and of a branch both sides are launched, one of which does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tensormagic.backend.cuda.compiling.compiler import Codes
from tensormagic.backend.cuda.kernels.launch import Array, Launch, UnsupportedError
from tensormagic.backend.cuda.loops.guarded import choice, copied, counted, goes_on, guarded
from tensormagic.backend.cuda.planned import Planned, every
from tensormagic.backend.planning.kinds import is_base, stored_below
from tensormagic.backend.planning.purpose import for_device
from tensormagic.backend.planning.schedule import Kernel
from tensormagic.backend.planning.shared_arrays import Memory
from tensormagic.backend.planning.steps import Check, produced
from tensormagic.backend.running.thread_warnings import tell_once
from tensormagic.ir.graph import Graph, Guard
from tensormagic.ir.node import Node, moves, topological
from tensormagic.ops.draws.random import DRAW, SEED
from tensormagic.ops.effects.raising import CHECK
from tensormagic.ops.effects.telling import TELL
from tensormagic.ops.interpret import schedule
from tensormagic.ops.leaf import CONSTANT, PARAMETER
from tensormagic.ops.opaque import ITEM
from tensormagic.ops.regions.control import COND, LOOP, WHILE
from tensormagic.ops.regions.region import graph_over

_HOSTS = frozenset([CHECK, TELL, DRAW, SEED])  # ops that run on the host only
LOOPS = frozenset([LOOP, WHILE])
_HELD = frozenset(["pointwise", "leaf"])  # kinds of ops by which the host computes integers
_HARMLESS = frozenset(
    ["contract", "fold", "pointwise", "move"]
)  # kinds of library calls that may run even if their results are unused


class Part:
    """A graph as launches, branches and library calls, in order.

    Parameters
    ----------
    graph
        What is run.
    changed
        The numbers of the parameters that may be stored into.
    dependent
        Whether a flag says if it runs: launches do nothing then; what the library computes, it computes all the same.
    side
        Whether it is a side of a branch: then it is launches alone.

    Attributes
    ----------
    branches
        For each branch its sides.
    loops
        For each loop inside how it is run.
    calls
        Whether the library computes anything.
    """

    @for_device
    def __init__(
        self, graph: Graph, changed: Sequence[int] = (), *, dependent: bool = False, side: bool = False
    ) -> None:
        self.graph = graph
        self.dependent = dependent
        self.side = side
        for node in graph.nodes:
            if node.op in _HOSTS or any(t.form == "tape" for t in node.types):
                raise UnsupportedError(f"{node.op.name} is the host's")
        self.planned = Planned(graph, changed)
        self.memory: Memory = self.planned.plan.memory
        self.branches: dict[Node, tuple[Part, Part]] = {}
        self.loops: dict[Node, LoopPlan] = {}
        self.calls = False
        self.launches: dict[Kernel, tuple[Launch, ...]] = {}
        self.checks: dict[Kernel, list[Guard]] = {}
        for step in self.planned.plan.steps:
            if isinstance(step, Kernel):
                self._take(step)
            else:
                self._take_node(step)
        self._check_operands()
        self.copies = self._copies(changed)
        self.calls = self.calls or any(side.calls for sides in self.branches.values() for side in sides)

    def _take(self, step: Kernel) -> None:
        """Add one kernel of the plan, or guards on integers."""
        guards = [part.guard for part in step.parts if isinstance(part, Check)]
        if guards and len(guards) == len(step.parts) and not self.dependent:
            self.checks[step] = guards
            return
        found = self.planned.launches[step]
        if found is None:
            raise UnsupportedError("nodes of a kernel that the library computes")
        self.launches[step] = tuple(map(guarded, found)) if self.dependent else found

    def _take_node(self, step: Node) -> None:
        """Add one node without a kernel: a branch, a result of one, or a library call."""
        if step.op is COND:
            then, otherwise = (Part(step[name], dependent=True, side=True) for name in ("then", "otherwise"))
            self.branches[step] = then, otherwise
        elif step.op in LOOPS and not self.dependent:
            self.loops[step] = within(step)
        elif step.op is not ITEM or not (step.args[0] in self.branches or step.args[0] in self.loops):
            self.calls = True
            if self.side or step.op.kind == "region" or (self.dependent and step.op.kind not in _HARMLESS):
                raise UnsupportedError(f"{step.op.name} inside")

    def owner(self, node: Node) -> Node:
        """Return the node that the array of a value is named after."""
        return self.memory.owner(node)

    @property
    def results(self) -> tuple[Node, ...]:
        """Return the results of the graph."""
        return self.planned.plan.block.results

    def _check_operands(self) -> None:
        """Raise if an operand of a branch, or a result, has no array."""
        known = {self.owner(n) for step in self.planned.plan.steps for n in self._made(step)}
        inside = (a for node, plan in self.loops.items() for a in plan.read_by(node))
        wanted = [*self.results, *(a for node in self.branches for a in node.args), *inside]
        for node in wanted:
            below = stored_below(node)
            if self.owner(node) not in known and not is_base(below) and below.op is not CONSTANT:
                raise UnsupportedError(f"{below.op.name} has no array")

    @staticmethod
    def _made(step: Kernel | Node) -> list[Node]:
        if isinstance(step, Node):
            return [step]
        return [n for part in step.steps for n in produced(part)]

    def _copies(self, changed: Sequence[int]) -> set[int]:
        """Return the positions of results to be copied: those without an array of their own, or sharing one."""
        own = {self.owner(self.graph.parameters[k]) for k in changed}
        found: set[int] = set()
        seen: set[Node] = set()
        for k, result in enumerate(self.results):
            owner = self.owner(result)
            if owner in seen or owner.op is CONSTANT or (is_base(owner) and owner not in own):
                found.add(k)
            seen.add(owner)
        return found

    def every(self) -> Iterator[Launch]:
        """Yield every launch that may be made."""
        for found in self.launches.values():
            yield from every(found)
        for k in self.copies:
            name = self.results[k].type.dtype.name
            yield guarded_copy(name) if self.dependent else copied(name)
        for sides in self.branches.values():
            yield choice()
            for side in sides:
                yield from side.every()
        for node, plan in self.loops.items():
            yield from plan.every()
            if plan.once_part is not None:
                yield from plan.once_part.every()
            for name in {"int64", *(t.dtype.name for t in node.types), *(a.type.dtype.name for a in node.args)}:
                yield copied(name)

    def arrays(self) -> set[Node]:
        """Return the owners of arrays that launches access, and that branches and results refer to."""
        launches = (one for found in self.launches.values() for one in every(found))
        own = {p.node for one in launches for p in one.parameters if isinstance(p, Array)}
        own |= {self.owner(a) for node in self.branches for a in node.args}
        own |= {self.owner(a) for node, plan in self.loops.items() for a in plan.read_by(node)}
        return own | set(map(self.owner, self.results))


@lru_cache(maxsize=64)
def guarded_copy(dtype: str) -> Launch:
    """Return a copy kernel that a flag can disable."""
    return guarded(copied(dtype))


@dataclass(eq=False)
class LoopPlan:
    """A loop whose iterations are launches.

    Parameters
    ----------
    counted
        Whether the number of iterations is known before: the first parameter of the body is the index then.
    body, test
        An iteration, and the test of a loop on data.
    once
        What is the same in every iteration: its results are the last parameters of the body.
    graph, tests
        The graphs of both: parameters are the index where there is one, what an iteration changes, and what stays.
    carries
        How many there are that an iteration changes.
    hosted
        The integers that the host has to know in each iteration: parameters of the body.
    ahead
        Whether iterations of a loop on data may be launched before the test of the last one is known.
    """

    counted: bool
    body: Part
    test: Part | None
    once: Graph | None
    graph: Graph
    tests: Graph | None
    carries: int
    hosted: frozenset[Node]
    ahead: bool

    def __post_init__(self) -> None:
        self.codes = Codes(self.every(), whole=True)
        self.constants: dict[Node, Any] = {}
        self.once_part: Part | None = None

    def arguments(self, node: Node) -> dict[Node, Node]:
        """Return the operand of the loop for each parameter except the index."""
        return dict(zip(self.parameters[self.first :], node.args[self.first :], strict=False))

    def read_by(self, node: Node) -> list[Node]:
        """Return the operands of the loop that the device needs in arrays."""
        return [a for p, a in self.arguments(node).items() if p not in self.hosted]

    @property
    def parameters(self) -> tuple[Node, ...]:
        """Return the parameters of the body."""
        return self.graph.parameters

    @property
    def first(self) -> int:
        """Return the position of the first carry."""
        return int(self.counted)

    def every(self) -> Iterator[Launch]:
        """Yield every launch that may be made."""
        yield from self.body.every()
        if self.test is None:
            yield counted()
        else:
            yield goes_on()
            yield from self.test.every()


def planned_loop(node: Node) -> LoopPlan | None:
    """Return the plan of a loop, or None where its iterations cannot be launches."""
    return _planned_loop(node.op is LOOP, node.params.get("test"), node["body"], node["carries"])


@lru_cache(maxsize=128)
@for_device
def _planned_loop(is_counted: bool, test: Graph | None, body: Graph, carries: int) -> LoopPlan | None:
    first = int(is_counted)
    once, body = apart(body, first + carries)
    try:
        hosted = _hosted(body, test, first, carries)
        for ahead in (True, False) if test is not None else (False,):
            with suppress(UnsupportedError):
                return LoopPlan(
                    is_counted,
                    *_parts(body, test, first, carries, hosted, ahead),
                    once,
                    body,
                    test,
                    carries,
                    hosted,
                    ahead,
                )
    except UnsupportedError:
        return None
    except Exception as error:  # noqa: BLE001 (the library runs it, node by node)
        tell_once(f"a loop has no plan for the device, the library runs it: {type(error).__name__}: {error}")
    return None


def _parts(
    body: Graph, test: Graph | None, first: int, carries: int, hosted: frozenset[Node], ahead: bool
) -> tuple[Part, Part | None]:
    """Return the parts for an iteration and for the test, without values that are kept on the host."""
    kept = [r for k, r in enumerate(body.results) if body.parameters[first + k] not in hosted]
    own = Graph(body.parameters, tuple(kept), body.guards)
    changed = [k for k in range(first, first + carries) if body.parameters[k] not in hosted]
    return Part(own, changed, dependent=ahead), None if test is None else Part(test, dependent=ahead)


def apart(body: Graph, moving: int) -> tuple[Graph | None, Graph]:
    """Hoist loop-invariant arrays: return their graph, or None, and the body with them as further parameters."""
    still = [step.node for step in schedule(body, moving).once]
    own = set(still)
    read = {a for n in body.nodes if n not in own for a in n.needs} | set(body.results) | set(body.checked)
    wanted = [n for n in still if n in read and n.type.shape and not moves(n) and n.op.kind != "leaf"]
    if not wanted:
        return None, body
    return graph_over(body.parameters[moving:], wanted), graph_over([*body.parameters, *wanted], body.results, body)


def within(node: Node) -> LoopPlan:
    """Return the plan of a loop inside an iteration.

    Raises
    ------
    UnsupportedError
        Where its iterations are no launches.
    """
    plan = planned_loop(node)
    if plan is None:
        raise UnsupportedError(f"{node.op.name} inside")
    if plan.once is not None and plan.once_part is None:
        plan.once_part = Part(plan.once)
    return plan


# values on the host
# ---------------------------------------------------------------------------------------------------


def _hosted(body: Graph, test: Graph | None, first: int, carries: int) -> frozenset[Node]:
    """Return the integers of an iteration that sizes mention, and those that these are computed from."""
    found = set(mentioned(body))
    if test is not None:
        found |= {body.parameters[test.parameters.index(p)] for p in mentioned(test)}
    results = dict(zip(body.parameters[first : first + carries], body.results, strict=False))
    waiting = list(found)
    while waiting:
        result = results.get(waiting.pop())
        if result is None:
            continue
        new = _from(result) - found
        found |= new
        waiting += new
    return frozenset(found)


def mentioned(graph: Graph) -> set[Node]:
    """Return the parameters of a graph from which its sizes are computed.

    Raises
    ------
    UnsupportedError
        Where a size follows from what only the device has.
    """
    found: set[Node] = set()
    for node in graph.nodes:
        for n in node.sized_by:
            found |= _from(n)
        if node.op is COND:
            for side in (node["then"], node["otherwise"]):
                for p in mentioned(side):
                    found |= _from(node.args[1 + side.parameters.index(p)])
        if node.op in LOOPS:
            found |= _known_to(node)
    for n in graph.checked:
        found |= _from(n)
    return found


def _known_to(node: Node) -> set[Node]:
    """Return the parameters from which the iterations and the host's integers of an inner loop are computed."""
    plan = within(node)
    found = _from(node.args[0]) if plan.counted else set[Node]()
    for p, a in plan.arguments(node).items():
        if p in plan.hosted:
            found |= _from(a)
    return found


def _from(node: Node) -> set[Node]:
    """Return the parameters from which an integer is computed; raise if the host cannot compute it."""
    found: set[Node] = set()
    for n in topological([node]):
        if n.type.shape or n.op.kind not in _HELD or n.type.dtype.kind not in "iub":
            raise UnsupportedError(f"a size follows from {n.op.name}")
        if n.op is PARAMETER:
            found.add(n)
    return found
