"""Loops: a graph repeated on its own results, a number of times (``loop``) or as long as a test holds (``while``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.ir.errors import DTypeError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make
from tensormagic.ir.size import Size
from tensormagic.ir.type import Type
from tensormagic.ops.interpret import Turns, formed, run
from tensormagic.ops.op import Guard, Tangent, Value
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.branches import packed
from tensormagic.ops.regions.region import (
    Pulled,
    Pushed,
    Region,
    agreed,
    derivatives,
    graph_over,
    like,
    matched,
    result_types,
    stand_in,
    tangent_type,
    unread,
    unused,
)

turning: list[list[int]] = []  # of each loop that NumPy runs, the outermost first: its turn, and how many there will be


@dataclass(frozen=True, eq=False, kw_only=True)
class Repeat(Region):
    """A body that takes ``params["carries"]`` carries, and constants, to the next carries.

    ``counted`` (``loop``): the first operand is the count, and the body's first parameter the index. Otherwise
    (``while``) a second graph on the same operands says whether to go on.
    """

    counted: bool

    def _typed(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> tuple[tuple[Type, ...], list[Guard]]:
        first = int(self.counted)
        for node in (*args[:first], *params["body"].parameters[:first]):
            if node.type.shape or node.type.dtype.kind not in "iu":
                raise DTypeError(f"the count and the index of a loop are integers, not {node.type}")
        carried = args[first : first + params["carries"]]
        symbols, guards = matched(unindexed(params["body"], first), args[first:], self.name)
        for p in params["body"].parameters[first : first + params["carries"]]:
            symbols.pop(p, None)  # differs from iteration to iteration
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

    # evaluation: what only ``values`` holds belongs to the loop

    def consume(self, node: Node, values: list[Value], size: Callable[[Size], int]) -> Value:
        del size
        body, carries, first = node["body"], node["carries"], int(self.counted)
        entry = [p.type for p in body.parameters[first:]]
        count = int(values.pop(0)) if first else None
        constants = [formed(v, t) for v, t in zip(values[carries:], entry[carries:], strict=True)]
        del values[carries:]
        state = [formed(values.pop(), t) for t in reversed(entry[:carries])][::-1]
        going = self._going(node["test"], state, constants) if count is None else range(count)
        turns = Turns(first + carries)
        turn = [0, count or 0]
        turning.append(turn)
        try:
            for index in going:
                turn[0] += 1
                given = [index, *state, *constants] if first else [*state, *constants]
                state.clear()
                state += run(body, given, turns)
        finally:
            turning.pop()
        return packed(state)

    def _going(self, test: Graph, state: list[Value], constants: list[Value]) -> Iterator[None]:
        turns = Turns(len(state))
        while run(test, [*state, *constants], turns)[0]:
            yield

    # derivatives

    def push(self, node: Node, tangents: Sequence[Tangent]) -> Pushed:
        """One loop over values and tangents together."""
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
        """The operands that have tangents at some turn, these, and a turn: what moves a carry moves it from then on."""
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
    """What a carry is from ``outside`` after the turns: of a size that no turn changes it is what it was."""
    if begin.ndim != end.ndim or entry.ndim != end.ndim:
        return outside
    sizes = zip(begin.shape, end.shape, entry.shape, outside.shape, strict=True)
    return outside.with_shape(tuple(before if a == b else after for a, b, before, after in sizes), outside.form)


def unindexed(body: Graph, first: int) -> Graph:
    """A body without its index, for matching: parameters only."""
    return Graph(body.parameters[first:], body.results, body.guards)


def widened(test: Graph, own: Sequence[Node], order: Sequence[Node]) -> Graph:
    """The test of a while loop that has more operands: ``own`` ones of the body at their places in ``order``."""
    place = dict(zip(own, test.parameters, strict=True))
    free = unused([*test.nodes, *order])
    parameters = [place.get(p) or unread(p.type, free) for p in order]
    return graph_over(parameters, test.results, test)


LOOP = Repeat(name="loop", counted=True, doc="A graph repeated a number of times on its own results.")
WHILE = Repeat(name="while", counted=False, doc="A graph repeated on its own results as long as another one says so.")


def loop(count: Node, body: Graph, carries: Sequence[Node], constants: Sequence[Node] = ()) -> tuple[Node, ...]:
    """The carries after ``count`` turns of ``body(index, *carries, *constants)``."""
    return items(make(LOOP, (count, *carries, *constants), body=body, carries=len(carries)))


def while_loop(test: Graph, body: Graph, carries: Sequence[Node], constants: Sequence[Node] = ()) -> tuple[Node, ...]:
    """The carries when ``test(*carries, *constants)`` is first false; a turn is ``body(*carries, *constants)``."""
    return items(make(WHILE, (*carries, *constants), test=test, body=body, carries=len(carries)))
