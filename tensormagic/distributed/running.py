"""What is split, computed: chunks in any order, their parts put together in a tree whose form follows from their number alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.config import config
from tensormagic.distributed.splitting import Split, Stage, Whole
from tensormagic.ir.errors import GuardError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Symbol, evaluate
from tensormagic.ops.leaf import SIZE
from tensormagic.ops.op import as_form
from tensormagic.ops.rows import FIRST

Sizes = dict[Symbol, int]
Each = Callable[[Stage, Sizes, Sequence[Any]], tuple[list[Any], list[list[Any]]]]
"""For a stage, the sizes and the whole values that it reads: the parts of all chunks, put together; and the results with rows of each."""


@dataclass(frozen=True, eq=False)
class Here:
    """Chunks that are computed one after the other in this process.

    Parameters
    ----------
    own
        The symbol of the number of rows of a chunk, with its halo.
    chunks
        The arrays of each chunk, with its halo.
    before
        How many rows come before each chunk.
    """

    own: Symbol
    chunks: Sequence[Sequence[Any]]
    before: Sequence[int]

    def __call__(self, stage: Stage, sizes: Sizes, reads: Sequence[Any]) -> tuple[list[Any], list[list[Any]]]:
        last = len(self.chunks) - 1
        results = [
            of_chunk(
                stage.end if k == last else stage.chunk,
                {**sizes, self.own: len(chunk[0])},
                chunk,
                [np.int64(before)] if stage.numbered else [],
                reads,
                (config.math, config.tier),
            )
            for k, (chunk, before) in enumerate(zip(self.chunks, self.before, strict=True))
        ]
        count = len(stage.parts)
        parts = put_together([r[:count] for r in results], [ufunc for _, ufunc in stage.parts])
        return parts, [r[count:] for r in results]


def of_chunk(
    graph: Graph,
    sizes: Sizes,
    chunk: Sequence[Any],
    numbered: Sequence[Any],
    reads: Sequence[Any],
    how: tuple[str, str],
) -> list[Any]:
    """The results for one chunk."""
    return computed(graph, sizes, [*chunk, *numbered, *reads], *how)


def computed(graph: Graph, sizes: Sizes, values: Sequence[Any], level: str, tier: str) -> list[Any]:
    """The results of a graph, with the same bits whatever was computed before: compiled code is waited for, where there is any."""
    executable = session.executable(graph, level)
    if tier == "numpy":
        return executable.by_numpy(sizes, *values)
    executable.compile().wait()
    return executable.here(sizes, *values)


def run(split: Split, shapes: Sequence[tuple[int, ...]], given: Mapping[int, Any], each: Each) -> list[Any]:
    """The results of a function that is split: those with rows as lists of chunks, the others as values.

    Parameters
    ----------
    split
        What is computed.
    shapes
        Those of all parameters, with all rows.
    given
        The values of the parameters that are not split, by number.
    each
        What computes chunks.
    """
    sizes = split.source.bind(shapes)
    split.graph.bind(shapes)
    values: dict[Node, Any] = {split.graph.parameters[k]: v for k, v in given.items()}
    found: dict[int, Any] = {}
    for stage in split.stages:
        _once(stage.before, sizes, values)
        parts, rows = each(stage, sizes, [values[n] for n in stage.reads])
        if not rows:
            raise GuardError("there are no chunks")
        for (node, _), value in zip(stage.parts, parts, strict=True):
            values[node] = value if node.type.shape else as_form(value, node.type.form)
        for k, (number, _) in enumerate(stage.rows):
            found[number] = [r[k] for r in rows]
    _once(split.last, sizes, values)
    return [found[k] if k in found else values[r] for k, r in enumerate(split.graph.results)]


def _once(whole: Whole, sizes: Sizes, values: dict[Node, Any]) -> None:
    """Compute what is whole."""
    if not whole.gives:
        return
    for node in whole.reads:
        if node.op is SIZE:  # of all rows, and of parts that are there
            values[node] = evaluate(node["size"], lambda a: int(values[a]) if isinstance(a, Node) else sizes[a])
    results = computed(whole.graph, sizes, [values[n] for n in whole.reads], config.math, config.tier)
    values.update(zip(whole.gives, results, strict=True))


def put_together(results: Sequence[Sequence[Any]], ufuncs: Sequence[str]) -> list[Any]:
    """The parts of all chunks put together, each by its ufunc."""
    return [
        results[0][k] if n == FIRST else combined([r[k] for r in results], getattr(np, n)) for k, n in enumerate(ufuncs)
    ]


def combined(parts: Sequence[Any], ufunc: np.ufunc) -> Any:
    """The parts of chunks put together in a binary tree: neighbours first, and then the results of these."""
    while len(parts) > 1:
        pairs = [ufunc(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    return parts[0]
