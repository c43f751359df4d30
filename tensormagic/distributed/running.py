"""What is split, computed: chunks in any order, their parts put together in a tree whose form follows from their number alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensormagic import session
from tensormagic.config import config
from tensormagic.distributed.axes import COMBINED
from tensormagic.distributed.splitting import Split, Stage, Whole
from tensormagic.ir.errors import GuardError
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Symbol, evaluate
from tensormagic.ops.leaf import SIZE
from tensormagic.ops.op import as_form

Sizes = dict[Symbol, int]
Chunks = Sequence[Any]
"""One for each chunk: what :data:`Each` takes for it."""
Each = Callable[[Graph, Sizes, Symbol, Sequence[Any], Chunks, int], list[list[Any]]]
"""For a chunk's graph, the sizes, the symbol of a chunk's rows, whole values, chunks and the number of parts: the results of
each chunk, in their order. Parts come first, as values."""


def here(graph: Graph, sizes: Sizes, own: Symbol, reads: Sequence[Any], chunks: Chunks, parts: int) -> list[list[Any]]:
    """The results for chunks that are lists of arrays, one after the other in this process."""
    del parts
    return [of_chunk(graph, sizes, own, reads, chunk) for chunk in chunks]


def of_chunk(graph: Graph, sizes: Sizes, own: Symbol, reads: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """The results for one chunk."""
    return computed(graph, {**sizes, own: len(arrays[0])}, [*arrays, *reads], config.math, config.tier)


def computed(graph: Graph, sizes: Sizes, values: Sequence[Any], level: str, tier: str) -> list[Any]:
    """The results of a graph, with the same bits whatever was computed before: compiled code is waited for, where there is any."""
    executable = session.executable(graph, level)
    if tier == "numpy":
        return executable.by_numpy(sizes, *values)
    executable.compile().wait()
    return executable.here(sizes, *values)


def run(
    split: Split, shapes: Sequence[tuple[int, ...]], given: Mapping[int, Any], chunks: Chunks, each: Each = here
) -> list[Any]:
    """The results of a function that is split: those with rows as lists of chunks, the others as values.

    Parameters
    ----------
    split
        What is computed.
    shapes
        Those of all parameters, with all rows.
    given
        The values of the parameters that are not split, by number.
    chunks
        The chunks, none of them without rows.
    each
        What computes chunks.
    """
    sizes = split.source.bind(shapes)
    split.graph.bind(shapes)
    if not chunks:
        raise GuardError("there are no chunks")
    values: dict[Node, Any] = {split.graph.parameters[k]: v for k, v in given.items()}
    found: dict[int, Any] = {}
    for stage in split.stages:
        _once(stage.before, sizes, values)
        results = each(stage.chunk, sizes, split.own, [values[n] for n in stage.reads], chunks, len(stage.parts))
        _collect(stage, results, values, found)
    _once(split.last, sizes, values)
    return [found[k] if k in found else values[r] for k, r in enumerate(split.graph.results)]


def _once(whole: Whole, sizes: Sizes, values: dict[Node, Any]) -> None:
    """Compute what is whole."""
    if not whole.gives:
        return
    for node in whole.reads:
        if node.op is SIZE:
            values[node] = evaluate(node["size"], sizes.__getitem__)
    results = computed(whole.graph, sizes, [values[n] for n in whole.reads], config.math, config.tier)
    values.update(zip(whole.gives, results, strict=True))


def _collect(stage: Stage, results: list[list[Any]], values: dict[Node, Any], found: dict[int, Any]) -> None:
    """Put parts together, and chunks of rows in lists."""
    for k, (node, ufunc) in enumerate(stage.parts):
        value = combined([r[k] for r in results], COMBINED[ufunc])
        values[node] = value if node.type.shape else as_form(value, node.type.form)
    for k, (number, _) in enumerate(stage.rows, len(stage.parts)):
        found[number] = [r[k] for r in results]


def combined(parts: Sequence[Any], ufunc: np.ufunc) -> Any:
    """The parts of chunks put together in a binary tree: neighbours first, and then the results of these."""
    while len(parts) > 1:
        pairs = [ufunc(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    return parts[0]
