"""What a graph that is split over chunks of rows is made of: what is computed once, stages over the chunks, and regions that are driven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.ir.size import Symbol


@dataclass(frozen=True, eq=False)
class Whole:
    """What is computed once: a graph over whole values.

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
    """What is computed for each chunk, after what it reads has been computed once.

    Parameters
    ----------
    before
        What is computed once, of parameters and of the parts of earlier stages.
    inputs
        What a chunk reads of rows: the parameters that are split, and rows that driven regions have left.
    chunk
        The graph of a chunk: its parameters are its rows of ``inputs``, with the halo; where it is ``numbered``, how many rows
        come before it; then whole values.
    end
        The same for the last chunk, which has no halo.
    numbered
        Whether a chunk reads which rows it has.
    reads
        The whole values that it reads.
    parts
        The nodes whose parts are its first results, each with the name of what combines two of them.
    rows
        Its other results, each with the axis of the rows: results of the function, and what driven regions read.
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
    """A loop or a branch that this process drives, as its graphs take rows together: each of them is split as a function is.

    Parameters
    ----------
    node
        The loop or branch.
    before
        What is computed once: what it and its graphs read without rows.
    begins
        Its operands that are read before its graphs run: a choice, or a count and what the iterations begin with.
    graphs
        Its graphs, by the names of the parameters that hold them.
    gives, left
        Its results, and those of them that have rows.
    level
        How many stages come before it.
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
        The graph after rewriting: what is put together has the number of all rows.
    places
        The parameters that are split.
    batch
        The symbol of the number of rows.
    own
        The symbol of the number of rows of a chunk, with its halo.
    halo
        How many rows of the next chunk a chunk reads.
    short
        Chunks of so few rows are joined with the one before: they cannot lend it its halo, or are captured in no loop or branch.
    missing
        For each result with rows, how many it has less than the arguments.
    stages
        What chunks compute, in order.
    driven
        What is driven before, between and behind the stages, in order.
    axes
        The axis of rows of each result that has some, by its number.
    last
        What is computed of all parts: the results without rows.
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
