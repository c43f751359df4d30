"""Running split functions: chunks in any order, their parts combined in a tree whose form follows from their number alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tensormagic import session
from tensormagic.config import config
from tensormagic.distributed.stages import Driven, Split, Stage, Whole
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Symbol, evaluate
from tensormagic.ops.leaf import SIZE
from tensormagic.ops.op import as_form
from tensormagic.ops.rows import FIRST

Sizes = dict[Symbol, int]


class Chunks(Protocol):
    """The rows of a call in chunks, wherever they are."""

    @property
    def arguments(self) -> Sequence[Any]:
        """The rows of each split parameter, as the class represents them."""
        ...

    def __call__(
        self, stage: Stage, sizes: Sizes, reads: Sequence[Any], inputs: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Return the combined parts of all chunks, and the results with rows.

        ``inputs`` are the rows that the stage reads, and ``reads`` the whole values.
        """
        ...

    def within(self, split: Split, arguments: Sequence[Any], node: Node) -> Chunks:
        """Return the same chunks for a graph of a loop or branch, over these arguments."""
        ...


def of_chunk(
    graph: Graph,
    sizes: Sizes,
    chunk: Sequence[Any],
    numbered: Sequence[Any],
    reads: Sequence[Any],
    how: tuple[str, str],
) -> list[Any]:
    """Return the results for one chunk."""
    return computed(graph, sizes, [*chunk, *numbered, *reads], *how)


def computed(graph: Graph, sizes: Sizes, values: Sequence[Any], level: str, tier: str) -> list[Any]:
    """Return the results of a graph, with reproducible bits: compiled code is waited for if the tier has it."""
    executable = session.executable(graph, level)
    if tier == "numpy":
        return executable.by_numpy(sizes, *values)
    executable.compile().wait()
    return executable.here(sizes, *values)


def run(split: Split, shapes: Sequence[tuple[int, ...]], given: Mapping[int, Any], chunks: Chunks) -> list[Any]:
    """Return the results of a split function; those with rows in chunks, and the others as values.

    Parameters
    ----------
    split
        The split function.
    shapes
        The shapes of all parameters, with all rows.
    given
        The values of the parameters that are not split, by number.
    chunks
        Computes the chunks.
    """
    sizes = split.source.bind(shapes)
    split.graph.bind(shapes)
    return _run(split, sizes, given, chunks)


def _run(split: Split, sizes: Sizes, given: Mapping[int, Any], chunks: Chunks) -> list[Any]:
    parameters = split.graph.parameters
    values: dict[Node, Any] = {parameters[k]: v for k, v in given.items()}
    rows: dict[Node, Any] = dict(zip((parameters[k] for k in split.places), chunks.arguments, strict=True))
    kept: dict[Node, Any] = {}
    for number in range(len(split.stages) + 1):
        for driven in split.driven:
            if driven.level == number:
                _drive(driven, sizes, values, rows, kept, chunks)
        for stage in split.stages[number : number + 1]:
            _once(stage.before, sizes, values)
            reads = [values[n] for n in stage.reads]
            parts, left = chunks(stage, sizes, reads, [rows[n] for n in stage.inputs])
            for (node, _), value in zip(stage.parts, parts, strict=True):
                values[node] = value if node.type.shape else as_form(value, node.type.form)
            kept.update(zip((node for node, _ in stage.rows), left, strict=True))
    _once(split.last, sizes, values)
    return [kept[r] if k in split.axes else values[r] for k, r in enumerate(split.graph.results)]


def _drive(
    driven: Driven,
    sizes: Sizes,
    values: dict[Node, Any],
    rows: dict[Node, Any],
    kept: dict[Node, Any],
    chunks: Chunks,
) -> None:
    """Run a loop or a branch whose graphs combine rows."""
    node = driven.node
    _once(driven.before, sizes, values)

    def call(name: str, state: Sequence[Any]) -> list[Any]:
        inner = driven.graphs[name]
        parameters, places = inner.split.graph.parameters, inner.split.places
        operands = [*state, *(rows[n] if n in rows else values[n] for n in inner.reads)]
        whole = {
            k: v if p.type.shape else as_form(v, p.type.form)
            for k, (p, v) in enumerate(zip(parameters, operands, strict=True))
            if k not in places
        }
        return _run(inner.split, sizes, whole, chunks.within(inner.split, [operands[k] for k in places], node))

    given = [kept[a] if a in kept else rows[a] if a in rows else values[a] for a in driven.begins]
    op: Any = node.op  # a loop or a branch: other ops are not driven
    for result, t, value in zip(driven.gives, node.types, op.driven(given, call), strict=True):
        if result in driven.left:
            rows[result] = kept[result] = value
        else:
            values[result] = value if t.shape else as_form(value, t.form)


def _once(whole: Whole, sizes: Sizes, values: dict[Node, Any]) -> None:
    """Compute the nodes that do not depend on rows."""
    if not whole.gives:
        return
    for node in whole.reads:
        if node.op is SIZE:  # of all rows, and of parts that are known
            values[node] = evaluate(node["size"], lambda a: int(values[a]) if isinstance(a, Node) else sizes[a])
    results = computed(whole.graph, sizes, [values[n] for n in whole.reads], config.math, config.tier)
    values.update(zip(whole.gives, results, strict=True))


def put_together(results: Sequence[Sequence[Any]], ufuncs: Sequence[str]) -> list[Any]:
    """Return the parts of all chunks combined, each by its ufunc."""
    return [
        results[0][k] if n == FIRST else combined([r[k] for r in results], getattr(np, n)) for k, n in enumerate(ufuncs)
    ]


def combined(parts: Sequence[Any], ufunc: np.ufunc) -> Any:
    """Return the parts of chunks combined in a binary tree: neighbours first, then the results."""
    while len(parts) > 1:
        pairs = [ufunc(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    return parts[0]
