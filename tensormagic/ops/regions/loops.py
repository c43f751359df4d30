"""Loops: a graph repeated on its own results, a number of times (``loop``) or as long as a test holds (``while``)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import Size, nodes_of
from tensormagic.ir.type import Type, python
from tensormagic.ops.interpret import Iterations, formed, is_plain, run
from tensormagic.ops.leaf import constant, constant_value, is_constant_zero
from tensormagic.ops.loop_text import Given, Scope, Text, is_heavy
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.branches import packed
from tensormagic.ops.regions.lanes import wants
from tensormagic.ops.regions.region import (
    Pulled,
    Pushed,
    Region,
    agreed,
    derivatives,
    graph_over,
    instantiated,
    like,
    matched,
    result_types,
    stand_in,
    tangent_type,
    unread,
    unused,
)
from tensormagic.ops.regions.rows import axes_of_lanes, axes_of_results, packed_axes
from tensormagic.ops.rows import SUM, Axes, Found, Mixed


class _Turning(threading.local):
    """For each loop that Python runs on this thread, outermost first: the current iteration, and the number of iterations."""

    def __init__(self) -> None:
        self.loops: list[list[int]] = []


turning = _Turning()


@dataclass(frozen=True, eq=False, kw_only=True)
class Repeat(Region):
    """A body that takes ``params["carries"]`` carries, and constants, to the next carries.

    ``counted`` (``loop``): the first operand is the count, and the body's first parameter the index. Otherwise
    (``while``) a second graph on the same operands says whether to go on.
    """

    def _typed(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[tuple[Type, ...], list[Guard]]:
        first = int(self.counted)
        for node in (*args[:first], *params["body"].parameters[:first]):
            if node.type.shape or node.type.dtype.kind not in "iu":
                raise DTypeError(f"the count and the index of a loop are integers, not {node.type}")
        carried = args[first : first + params["carries"]]
        symbols, guards = matched(unindexed(params["body"], first), args[first:], self.name)
        for p in params["body"].parameters[first : first + params["carries"]]:
            symbols.pop(p, None)  # it differs between iterations
        own = [p.type for p in params["body"].parameters[first : first + params["carries"]]]
        entry = [Type(t.dtype, a.type.shape, t.form) for t, a in zip(own, carried, strict=True)]
        types = result_types(params["body"], symbols)
        ends = [_kept(*of) for of in zip(own, (r.type for r in params["body"].results), entry, types, strict=True)]
        guards += agreed(entry, ends, "a carry changes its type")
        if not self.counted:
            guards += matched(params["test"], args, self.name)[1]
            answer = params["test"].results[0].type
            if answer.shape or answer.dtype != np.dtype(bool):
                raise DTypeError(f"the test of a while loop gives a bool, not {answer}")
        return tuple(entry), guards

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        return packed(self._typed(args, params)[0])

    def guards(self, node: Node) -> list[Guard]:
        return self._typed(node.args, node.params)[1]

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        first, carries = int(self.counted), node["carries"]
        own = list(axes[first:])
        if any(a is not None for a in axes[:first]):
            raise Mixed("has a number of iterations that differs between rows")
        goes_on = None if self.counted else wants(node["test"])
        if goes_on is not None and any(a is not None for a in own):
            axes_of_lanes(node["test"], node["body"], goes_on, node.args, own, rows, self.name)
            return packed_axes(own[:carries])
        found: list[Any] = []
        while (
            found != own[:carries]
        ):  # a carry that begins with zeros, and becomes a sum over rows, counts as a sum from the beginning
            found = axes_of_results(unindexed(node["body"], first), node.args[first:], own, rows, self.name)
            for k, (before, after) in enumerate(zip(own[:carries], found, strict=True)):
                if before == after:
                    continue
                if before is not None or after != SUM or not is_constant_zero(node.args[first + k]):
                    raise Mixed("has a carry that begins without rows, or with others")
                own[k] = SUM
        if not self.counted:
            axes_of_results(node["test"], node.args, own, rows, self.name)
        return packed_axes(found)

    def apart(self, node: Node) -> tuple[Node, ...] | None:
        """Return the iterations unrolled, if they are few and their number is constant, or None."""
        count = constant_value(node.args[0]) if self.counted else None
        body = node["body"]
        if (
            count is None
            or int(count) * len(body.nodes) > MOST_APART
            or any(nodes_of(a) or nodes_of(b) for a, _, b in body.guards)
        ):
            return None
        carries, state, others = (
            node["carries"],
            list(node.args[1 : 1 + node["carries"]]),
            node.args[1 + node["carries"] :],
        )
        for k in range(int(count)):
            given = [
                constant(k) if body.parameters[0].type.form == "python" else constant(np.int64(k)),
                *state,
                *others,
            ]
            sizes, _ = matched(body, given, self.name)  # the other conditions were checked when the loop was made
            state = instantiated(body.results, dict(zip(body.parameters, given, strict=True)), sizes)
        return tuple(state[:carries])

    def driven(self, begins: Sequence[Value], call: Callable[[str, Sequence[Value]], list[Value]]) -> list[Value]:
        """Return the results, if the caller runs the graphs: ``call(name, state)`` runs the named one."""
        count = int(begins[0]) if self.counted else None
        state, iteration = [*begins[int(self.counted) :]], [0, count or 0]
        turning.loops.append(iteration)
        try:
            while iteration[0] < count if count is not None else call("test", state)[0]:
                index = iteration[:1] if self.counted else []
                iteration[0] += 1
                state = call("body", [*index, *state])
        finally:
            turning.loops.pop()
        return state

    # evaluation: arrays that only ``values`` holds may be stored into

    def consume(self, node: Node, values: list[Value], size: Callable[[Size], int]) -> Value:
        del size
        body, carries, first = node["body"], node["carries"], int(self.counted)
        entry = [p.type for p in body.parameters[first:]]
        count = int(values.pop(0)) if first else None
        constants = [formed(v, t) for v, t in zip(values[carries:], entry[carries:], strict=True)]
        del values[carries:]
        state = [formed(values.pop(), t) for t in reversed(entry[:carries])][::-1]
        iteration = [0, count or 0]
        turning.loops.append(iteration)
        try:
            return packed(self._repeated(node, state, constants, iteration, count))
        finally:
            turning.loops.pop()

    def _repeated(
        self, node: Node, state: list[Value], constants: list[Value], iteration: list[int], count: int | None
    ) -> list[Value]:
        """Return the state after the iterations: a few are interpreted, many run as generated Python."""
        body, first = node["body"], int(self.counted)
        test = None if first else node["test"]
        loop = self, test, body, len(state)
        known = _runs.get(loop, 0)  # the compiled function, or how often the loop was interpreted
        if is_plain() and (callable(known) or (count or 0) + known > FEW):
            return _run_of(*loop)(state, constants, iteration, count)
        iterations, tests = Iterations(first + len(state)), Iterations(len(state))
        while count is None or iteration[0] < count:
            if count is None and iteration[0] >= FEW and is_plain():
                return _run_of(*loop)(state, constants, iteration, 0)
            if test is not None and not run(test, [*state, *constants], tests)[0]:
                break
            given = [iteration[0], *state, *constants] if first else [*state, *constants]
            iteration[0] += 1
            state.clear()
            state += run(body, given, iterations)
        if not callable(known):
            _remember(loop, known + iteration[0])
        return state

    def written(self, node: Node, text: Text, given: Sequence[Given], targets: Sequence[str]) -> None:
        """Write the loop into the text of another one."""
        first, carries = int(self.counted), node["carries"]
        body: Graph = node["body"]
        own = [p.type for p in body.parameters]
        starts = given[first : first + carries]
        text.move([text.formed(g.name, g.type, t) for g, t in zip(starts, own[first:], strict=False)], targets)
        text.drop([g.name for g in starts if g.owned and is_heavy(g.type)])
        state = [Given(name, t, owned=True) for name, t in zip(targets, own[first:], strict=False)]
        constants = [Given(g.name, g.type, owned=False) for g in given[first + carries :]]
        if first:
            count = text.fresh("n")
            text.line(f"{count} = int({given[0].name})")
            self.counted_text(text, body, state, constants, count, "")
        else:
            self.tested_text(text, node["test"], body, state, constants, "")

    def counted_text(
        self, text: Text, body: Graph, state: Sequence[Given], constants: Sequence[Given], count: str, each: str
    ) -> None:
        """Write a loop that runs ``count`` times; each iteration begins with the line ``each``."""
        kind = body.parameters[0].type
        index = text.fresh("i")
        place = index if kind.form == "python" else text.fresh("i")
        scope = Scope(text, body, [Given(place, kind, owned=False), *state, *constants], 1 + len(state))
        with text.block(f"if {count} > 0:"):
            scope.begin()
        with text.block(f"for {index} in range({count}):"):
            if each:
                text.line(each)
            text.move([text.formed(index, python(int), kind)], [place])
            scope.first()
            if scope.repeats:
                with text.block(f"if not {index}:"):
                    scope.once()
            scope.steps([g.name for g in state])
        scope.end()

    def tested_text(
        self, text: Text, test: Graph, body: Graph, state: Sequence[Given], constants: Sequence[Given], each: str
    ) -> None:
        """Write a loop that runs while a test holds; each iteration begins with the line ``each``."""
        fixed = [g._replace(owned=False) for g in state]
        tests, scope = (
            Scope(text, test, [*fixed, *constants], len(state)),
            Scope(text, body, [*state, *constants], len(state)),
        )
        goes, begins = text.fresh(), text.fresh()
        tests.begin()
        text.line(f"{begins} = True")
        with text.block("while True:"):
            tests.first()
            if tests.repeats:
                with text.block(f"if {begins}:"):
                    tests.once()
            tests.steps([goes])
            text.line(f"if not {goes}: break")
            if each:
                text.line(each)
            with text.block(f"if {begins}:"):
                scope.begin()
                if scope.is_checked:
                    scope.first()
                scope.once()
                text.line(f"{begins} = False")
            if scope.is_checked:
                with text.block("else:"):
                    scope.first()
            scope.steps([g.name for g in state])
        tests.end()
        scope.end()

    # derivatives

    def push(self, node: Node, tangents: Sequence[Tangent]) -> Pushed:
        """Return the results and tangents of one loop over values and tangents together."""
        first, carries, body = int(self.counted), node["carries"], node["body"]
        operands, given = node.args[first:], tangents[first:]
        moving, extra, ends, changes = self._moved(body, [k for k, t in enumerate(given) if t is not None], carries)
        carried = [k for k in moving if k < carries]
        if not carried:
            return Pushed(items(node), [None] * carries)
        own = body.parameters[first:]
        order = [*own[:carries], *extra[: len(carried)], *own[carries:], *extra[len(carried) :]]
        results = [*ends, *(like(changes[k], ends[k]) for k in carried)]
        params: dict[str, Any] = {
            "body": graph_over([*body.parameters[:first], *order], results, body),
            "carries": carries + len(carried),
        }
        if not self.counted:
            params["test"] = widened(node["test"], own, order)
        starts = [like(given[k], operands[k]) for k in moving]
        arguments = [
            *node.args[:first],
            *operands[:carries],
            *starts[: len(carried)],
            *operands[carries:],
            *starts[len(carried) :],
        ]
        found = items(make(self, arguments, **params))
        moved: list[Tangent] = [None] * carries
        for k, end in zip(carried, found[carries:], strict=True):
            moved[k] = end
        return Pushed(found[:carries], moved)

    def _moved(
        self, body: Graph, moving: list[int], carries: int
    ) -> tuple[list[int], list[Node], list[Node], list[Tangent]]:
        """Return the operands that have tangents at some iteration, these tangents, and one iteration with its tangents."""
        own = body.parameters[int(self.counted) :]
        while True:
            extra = {k: stand_in("tangent", tangent_type(own[k].type)) for k in moving}
            ends, changes = derivatives().push(body.results, {own[k]: t for k, t in extra.items()})
            grown = sorted({*moving, *(k for k in range(carries) if changes[k] is not None)})
            if grown == moving:
                return moving, list(extra.values()), ends, changes
            moving = grown

    def pull(
        self, node: Node, cotangents: Sequence[Tangent], wanted: Sequence[bool], sums: Sequence[Tangent]
    ) -> Pulled:
        from tensormagic.ops.reverse.rewind import Rewind

        return Rewind(node, cotangents, wanted, sums).pulled()


def _kept(begin: Type, end: Type, entry: Type, outside: Type) -> Type:
    """Return the type of a carry after the loop: sizes that no iteration changes are those before the loop."""
    if begin.ndim != end.ndim or entry.ndim != end.ndim:
        return outside
    sizes = zip(begin.shape, end.shape, entry.shape, outside.shape, strict=True)
    return outside.with_shape(tuple(before if a == b else after for a, b, before, after in sizes), outside.form)


def unindexed(body: Graph, first: int) -> Graph:
    """Return a body without its index, for matching; parameters only."""
    return Graph(body.parameters[first:], body.results, body.guards)


def widened(test: Graph, own: Sequence[Node], order: Sequence[Node]) -> Graph:
    """Return the test of a while loop with more operands, its own (``own``) at their places in ``order``."""
    place = dict(zip(own, test.parameters, strict=True))
    free = unused([*test.nodes, *order])
    parameters = [place.get(p) or unread(p.type, free) for p in order]
    return graph_over(parameters, test.results, test)


_runs: dict[tuple[Any, ...], Callable[..., list[Value]] | int] = {}
_KEPT = 256


def _run_of(*loop: Any) -> Callable[..., list[Value]]:
    """Return the loop compiled to a function of state, constants, the current iteration (which it updates) and the count."""
    found = _runs.get(loop)
    if not callable(found):
        found = _written(*loop)
        _remember(loop, found)
    return found


def _remember(loop: tuple[Any, ...], known: Callable[..., list[Value]] | int) -> None:
    """Store what is known of a loop in the cache, and drop the oldest entries."""
    _runs[loop] = known
    while len(_runs) > _KEPT:
        _runs.pop(next(iter(_runs)), None)


def _written(op: Repeat, test: Graph | None, body: Graph, carries: int) -> Callable[..., list[Value]]:
    text = Text()
    names = [text.fresh("s") for _ in range(carries)]
    own = body.parameters[int(op.counted) :]
    for name in reversed(names):
        text.line(f"{name} = state.pop()")
    others = [text.fresh("c") for _ in own[carries:]]
    if others:
        text.line(f"{', '.join(others)}, = constants")
    state = [Given(name, p.type, owned=True) for name, p in zip(names, own, strict=False)]
    constants = [Given(name, p.type, owned=False) for name, p in zip(others, own[carries:], strict=True)]
    if test is None:
        op.counted_text(text, body, state, constants, "count", "iteration[0] += 1")
    else:
        op.tested_text(text, test, body, state, constants, "iteration[0] += 1")
    text.line(f"return [{', '.join(names)}]")
    return text.function("run", "state, constants, iteration, count")


MOST_APART = 4000  # nodes of iterations that are unrolled when rows are split
FEW = 8  # iterations that are interpreted, as making a text takes longer

LOOP = Repeat(name="loop", counted=True, doc="A graph repeated a number of times on its own results.")
WHILE = Repeat(name="while", counted=False, doc="A graph repeated on its own results as long as another one says so.")


def loop(count: Node, body: Graph, carries: Sequence[Node], constants: Sequence[Node] = ()) -> tuple[Node, ...]:
    """Return the carries after ``count`` iterations of ``body(index, *carries, *constants)``."""
    return items(make(LOOP, (count, *carries, *constants), body=body, carries=len(carries)))


def while_loop(test: Graph, body: Graph, carries: Sequence[Node], constants: Sequence[Node] = ()) -> tuple[Node, ...]:
    """Return the carries when ``test(*carries, *constants)`` is first false; an iteration is ``body(*carries, *constants)``."""
    return items(make(WHILE, (*carries, *constants), test=test, body=body, carries=len(carries)))
