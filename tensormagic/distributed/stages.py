"""The parts of a graph that is split over chunks of rows: graphs that run once, stages over the chunks, and regions that are driven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Symbol


@dataclass(frozen=True, eq=False)
class Whole:
    """A graph over whole values that runs once.

    Parameters
    ----------
    graph
        Its parameters are the values of ``reads``.
    reads
        Nodes of the graph that was split.
    gives
        Nodes of the graph that was split, which its results are.
    """

    graph: Graph
    reads: tuple[Node, ...]
    gives: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Stage:
    """A computation on each chunk, with the values that it reads computed once before.

    Parameters
    ----------
    before
        What is computed once, from parameters and from the parts of earlier stages.
    inputs
        The rows that a chunk reads: the split parameters, and rows that driven regions have left.
    chunk
        The graph of a chunk. Its parameters are its rows of ``inputs``, with the halo; if ``numbered``, the number of
        rows before it; then whole values.
    end
        The graph of the last chunk, which has no halo.
    numbered
        Whether a chunk reads its row numbers.
    reads
        The whole values that it reads.
    parts
        The nodes whose parts are its first results, each with the name of the ufunc that combines two of them.
    rows
        Its other results, each with the axis of the rows: results of the function, and values that driven regions read.
    """

    before: Whole
    inputs: tuple[Node, ...]
    chunk: Graph
    end: Graph
    numbered: bool
    reads: tuple[Node, ...]
    parts: tuple[tuple[Node, str], ...]
    rows: tuple[tuple[Node, int], ...]


@dataclass(frozen=True, eq=False)
class Inner:
    """A graph of a loop or branch, split.

    Parameters
    ----------
    split
        What it computes: of a state that changes from run to run, and then of ``reads``.
    reads
        Nodes of the graph around it: whole ones, and rows.
    """

    split: Split
    reads: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Driven:
    """A loop or a branch that this process drives, because its graphs combine rows: each of them is split like a function.

    Parameters
    ----------
    node
        The loop or branch.
    before
        What is computed once: the whole values that it and its graphs read.
    begins
        The operands that are read before its graphs run: the choice, or the count and the initial carries.
    graphs
        Its graphs, by the names of the parameters that hold them.
    gives, left
        Its results, and those of them that have rows.
    level
        The number of stages before it.
    """

    node: Node
    before: Whole
    begins: tuple[Node, ...]
    graphs: Mapping[str, Inner]
    gives: tuple[Node, ...]
    left: frozenset[Node]
    level: int


@dataclass(frozen=True, eq=False)
class Split:
    """A graph that is split over chunks of rows.

    Parameters
    ----------
    source
        The graph before rewriting: its guards are those of all rows.
    graph
        The graph after rewriting, in which combined values have the number of all rows.
    places
        The parameters that are split.
    batch
        The symbol for the number of rows.
    own
        The symbol for the number of rows of a chunk, with its halo.
    halo
        The number of rows of the next chunk that a chunk reads.
    short
        Chunks of at most so many rows are joined with the one before: they cannot lend it its halo, or no loop or
        branch was captured for so few.
    missing
        For each result with rows, how many fewer it has than the arguments.
    stages
        The computations of chunks, in order.
    driven
        The regions driven before, between and after the stages, in order.
    axes
        The axis of rows of each result that has some, by its number.
    last
        The computation of the results without rows from all parts.
    """

    source: Graph
    graph: Graph
    places: tuple[int, ...]
    batch: Symbol
    own: Symbol
    halo: int
    short: int
    missing: Mapping[int, int]
    stages: tuple[Stage, ...]
    driven: tuple[Driven, ...]
    axes: Mapping[int, int]
    last: Whole
