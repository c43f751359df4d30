"""The parts of a plan: stages, regions, checks and calls of NumPy, in blocks; what each produces, and what it needs."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from tensormagic.backend.planning.kinds import is_inline, is_inline_move, stored_below
from tensormagic.backend.planning.lower import Stage
from tensormagic.ir.graph import Guard
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ops.leaf import IOTA


@dataclass(eq=False)
class Block:
    """Steps that run one after the other.

    Parameters
    ----------
    results
        What they compute.
    steps
        Stages, regions, and nodes that NumPy computes, in order.
    before
        For each step those that must run before it.
    copied
        Stores, and numbers of regions' carries, that begin with a copy of what they change.
    latch
        For carried arrays, the array of the next iteration.
    """

    results: tuple[Node, ...]
    steps: list[Step] = field(default_factory=list)
    before: dict[Step, set[Step]] = field(default_factory=dict)
    copied: dict[Node, set[Node]] = field(default_factory=dict)
    latch: list[tuple[Node, Node]] = field(default_factory=list)
    parts: list[Any] = field(default_factory=list)  # nests, regions and checks, once all homes are known


@dataclass(eq=False)
class Region:
    """A loop or a choice that becomes part of one function.

    Parameters
    ----------
    root
        The node.
    head
        The count of a loop, the predicate of a choice; None for ``while``.
    index
        What stands for the index of a loop.
    carries
        What stands for the values that an iteration changes, and for arrays that a branch may change.
    starts
        What these begin with.
    results
        The results, each with what it is in the text: a carry, or what both branches compute.
    blocks
        ``"body"``, ``"test"``; ``"then"``, ``"otherwise"``.
    reads
        What is stored before it and read in it.
    """

    root: Node
    head: Node | None
    index: Node | None
    carries: tuple[Node, ...]
    starts: tuple[Node, ...]
    results: tuple[tuple[Node, Node], ...]
    blocks: dict[str, Block]
    reads: tuple[Node, ...] = ()


@dataclass(eq=False)
class Check:
    """A guard about integers that are computed."""

    guard: Guard
    nodes: tuple[Node, ...]


Step = Stage | Region | Check | Node


def produced(step: Step) -> list[Node]:
    """Return the nodes that a step computes."""
    if isinstance(step, Check):
        return []
    if isinstance(step, Stage):
        return [step.root]
    return [step] if isinstance(step, Node) else [n for n, _ in step.results]


def needed(step: Step) -> list[Node]:
    """Return the stored nodes that a step reads, below views."""
    if isinstance(step, Stage):
        found = [n for n, _ in step.reads if n.op is not IOTA]
        if step.written is not None:
            found += [step.root.args[0], *(n for s in step.root.type.shape for n in nodes_of(s))]
    elif isinstance(step, Check):
        found = list(step.nodes)
    elif isinstance(step, Node):
        found = [n for a in step.needs for n in below(a)]
    else:
        found = [*step.reads, *arrays(step.starts)]
    return list(dict.fromkeys(map(stored_below, found)))


def below(operand: Node) -> list[Node]:
    """Return the nodes that a NumPy call needs for an operand: moves (each may be stored), the node under them, and integers in shapes.

    A rank-0 operand is stored itself.
    """
    found: list[Node] = []
    has_axes = bool(operand.types[0].shape)
    while has_axes and is_inline_move(operand):
        found += [operand, *operand.sized_by]
        operand = operand.args[0]
    return [*found, *operand.sized_by, operand]


def arrays(nodes: Iterable[Node]) -> list[Node]:
    """Return those that have axes."""
    return [n for n in nodes if n.type.shape]


def leaves_of(node: Node, stored: Container[Node]) -> list[Node]:
    """Return the stored nodes that are read for an inlined value."""
    found: dict[Node, None] = {}
    stack = [node]
    while stack:
        n = stack.pop()
        if n in stored or not is_inline(n):
            found[n] = None
        else:
            stack += n.needs
    return list(found)
