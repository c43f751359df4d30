"""A graph with a derivative that its author defines: ``custom_gradient``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node, make, substitute
from tensormagic.ir.operation import Guard
from tensormagic.ir.size import Size
from tensormagic.ir.type import Type
from tensormagic.ops.interpret import run
from tensormagic.ops.loop_text import Given, Text, write_graph
from tensormagic.ops.op import Tangent, Value
from tensormagic.ops.opaque import items
from tensormagic.ops.regions.branches import call, packed
from tensormagic.ops.regions.region import (
    Pulled,
    Pushed,
    Region,
    derivatives,
    like,
    matched,
    result_types,
    stand_in,
    tangent_type,
)
from tensormagic.ops.regions.rows import axes_of_results, packed_axes
from tensormagic.ops.reverse.tape import zeros
from tensormagic.ops.rows import Axes, Found


@dataclass(frozen=True, eq=False, kw_only=True)
class Custom(Region):
    """``params["graph"]`` on operands; ``params["back"]`` gives cotangents of the first operands.

    ``back`` takes the operands and a cotangent of each float result.
    """

    def infer(self, args: tuple[Node, ...], params: Mapping[str, Any]) -> Type | tuple[Type, ...]:
        return packed(result_types(params["graph"], matched(params["graph"], args, self.name)[0]))

    def guards(self, node: Node) -> list[Guard]:
        return matched(node["graph"], node.args, self.name)[1]

    def split(self, node: Node, axes: Axes, rows: Size) -> Found:
        return packed_axes(axes_of_results(node["graph"], node.args, axes, rows, self.name))

    def consume(self, node: Node, values: list[Value], size: Callable[[Size], int]) -> Value:
        del size
        return packed(run(node["graph"], values))

    def written(self, node: Node, text: Text, given: Sequence[Given], targets: Sequence[str]) -> None:
        """Write the graph into the text of a loop."""
        write_graph(text, node["graph"], given, targets)

    def pull(
        self, node: Node, cotangents: Sequence[Tangent], wanted: Sequence[bool], sums: Sequence[Tangent]
    ) -> Pulled:
        del sums
        ends = items(node)
        given = [like(c, e) for c, e in zip(cotangents, ends, strict=True) if e.type.inexact]
        found = call(node["back"], [*node.args, *given])
        back: list[Tangent] = [None] * len(node.args)
        for k, part in enumerate(found):
            back[k] = part if wanted[k] else None
        return Pulled(ends, back, set())

    def push(self, node: Node, tangents: Sequence[Tangent]) -> Pushed:
        """Return the results and tangents by the transpose of ``back``, which is linear in cotangents: its own pullback at zero."""
        ends = items(node)
        moving = [k for k, e in enumerate(ends) if e.type.inexact]
        seeds = [stand_in("cotangent", tangent_type(ends[k].type)) for k in moving]
        found = call(node["back"], [*node.args, *seeds])
        given = [None if t is None else like(t, f) for t, f in zip(tangents, found, strict=False)]
        _, parts = derivatives().pull(found, given, seeds)
        at_zero = {s: zeros(s) for s in seeds}
        moved: list[Tangent] = [None] * len(ends)
        for k, part in zip(moving, parts, strict=True):
            moved[k] = None if part is None else substitute([part], at_zero)[0]
        return Pushed(ends, moved)


CUSTOM = Custom(name="custom_gradient", doc="A graph on operands, with a second graph that gives its derivative.")


def custom(graph: Graph, back: Graph, operands: Sequence[Node]) -> tuple[Node, ...]:
    """Return the results of ``graph`` on ``operands``, with ``back`` for its reverse mode."""
    return items(make(CUSTOM, operands, graph=graph, back=back))
