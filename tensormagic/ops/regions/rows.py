"""The axis of rows in the results of graphs in loops and branches, which have sizes of their own, and see one chunk alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, Symbol, atom, atoms
from tensormagic.ops.leaf import CONSTANT, IOTA, PARAMETER, SIZE
from tensormagic.ops.regions.lanes import TOGETHER, check_lanes
from tensormagic.ops.regions.region import matched, symbols_in
from tensormagic.ops.rows import FIRST, SUM, Axes, Mixed, axis_of_rows, is_linear, missing_rows

COUNTS = "counts rows in it, and a chunk has some of them alone"


def axes_of_results(graph: Graph, operands: Sequence[Node], axes: Axes, rows: Size, what: str) -> list[int | None]:
    """Return the axis of rows in each result of a graph; None for a result that all rows share, ``SUM`` for a sum over rows."""
    own, count = _own_rows(graph, operands, rows, what)
    table: dict[Node, Any] = dict(zip(graph.parameters, axes, strict=True))
    for node in graph.nodes:
        if node in table:
            continue
        table[node] = found = _axis(node, [table[a] for a in node.args], own, count)
        _check(node, found, own, count)
    return [table[r] for r in graph.results]


def axes_of_lanes(
    test: Graph, body: Graph, goes_on: Node, operands: Sequence[Node], axes: Axes, rows: Size, what: str
) -> None:
    """Raise unless each row of a loop goes on by itself as long as ``goes_on`` says."""
    own, count = _own_rows(body, operands, rows, what)

    def axis(node: Node, given: list[Any]) -> Any:
        found = _axis(node, given, own, count)
        _check(node, found, own, count)
        return found

    table: dict[Node, Any] = dict(zip(test.parameters, axes, strict=True))
    for node in test.nodes[: test.nodes.index(goes_on) + 1]:
        if node not in table:
            table[node] = axis(node, [table[a] for a in node.args])
    if table[goes_on] is None:
        raise Mixed(TOGETHER)
    check_lanes(body, axes, goes_on, axis)


def packed_axes(found: Sequence[int | None]) -> Any:
    """Return the axes in the form that a node's ``split`` returns: one axis, or a tuple."""
    return tuple(found) if len(found) > 1 else FIRST if found[0] is None else found[0]


def _own_rows(graph: Graph, operands: Sequence[Node], rows: Size, what: str) -> tuple[Symbol | None, Size]:
    """Return the graph's symbol for the number of rows, and the number of all rows in terms of it."""
    batch = set(atoms(rows))
    found = {s: size for s, size in matched(graph, operands, what)[0].items() if batch & set(atoms(size))}
    less = {s: missing_rows(size, rows) for s, size in found.items()}
    if not found:
        return None, rows
    (own, missing), *others = less.items()
    if others or missing is None or not isinstance(own, Symbol):
        raise Mixed("has sizes in it that follow from the number of rows")
    return own, atom(own) + missing


def _axis(node: Node, axes: list[Any], own: Symbol | None, count: Size) -> Any:
    if SUM in axes:
        if (own is None or not _mentions(node, own)) and is_linear(node, axes):
            return SUM
        raise Mixed(f"has {node.op.name} in it, of a sum over all rows")
    reads = any(a is not None for a in axes)
    if not reads and (node.op is CONSTANT or own is None or not _mentions(node, own)):
        return None
    if node.op in {SIZE, PARAMETER} or (
        node.op is IOTA and missing_rows(node["shape"][node["axis"]], count) is not None
    ):
        raise Mixed(COUNTS)  # also for an index below the number of rows
    try:
        found = axis_of_rows(node, axes, count)
    except Mixed as error:
        raise Mixed(f"has {node.op.name} in it, which {error}") from None
    if isinstance(found, str):
        if found not in {FIRST, SUM}:
            raise Mixed(f"has {node.op.name} over all rows in it")
        return None if found == FIRST else SUM
    return found


def _check(node: Node, found: Any, own: Symbol | None, count: Size) -> None:
    """Raise unless the number of rows occurs at the axis of rows, and nowhere else."""
    every = found if isinstance(found, tuple) else (found,) * len(node.types)
    for t, axis in zip(node.types, every, strict=True):
        for k, size in enumerate(t.shape):
            fits = missing_rows(size, count) is not None if k == axis else own is None or own not in atoms(size)
            if not fits:
                raise Mixed(f"has {node.op.name} in it, of a shape in which rows are not along one axis: {t}")


def _mentions(node: Node, symbol: Symbol) -> bool:
    """Return whether a symbol occurs in the sizes of a node."""
    return symbol in node.symbols or symbol in symbols_in(v for _, v in node.param_items)
