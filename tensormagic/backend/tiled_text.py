"""Counted loops whose iterations work on each element by itself, as text: all iterations for a tile of elements, then the next tile.

``for k in range(50): x = x * x + c`` goes 50 times over arrays that fit no cache, if it is printed as it stands. No element
needs another one, so the loops are interchanged: a tile stays in the cache through all iterations, and threads share the
tiles once and not at each iteration. The arithmetic of an element is the same, so are its bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensormagic.backend.body_text import indented
from tensormagic.backend.kernel_text import KernelText, Line
from tensormagic.backend.lower import ANYWHERE, IndexTuple, Stage, variable
from tensormagic.backend.region_text import moved, number, printed_inside
from tensormagic.backend.schedule import Nest, Storage
from tensormagic.backend.steps import Region
from tensormagic.ir.node import Node
from tensormagic.ir.size import nodes_of
from tensormagic.ops.move import Index

PrintParts = Callable[[KernelText, list[Any]], None]


def is_tiled(text: KernelText, region: Region) -> bool:
    """Whether a region is such a loop: one nest or several over the same elements, of arrays that only their own element reads."""
    body = region.blocks.get("body")
    if text.depth or body is None or region.head is None or region.index is None or not body.parts:
        return False
    if not all(isinstance(p, Nest) and _is_flat(p) for p in body.parts):
        return False
    nests: list[Nest] = body.parts
    stages = [s for nest in nests for s in nest.stages]
    if any(s.domain != stages[0].domain for s in stages) or any(s.root in text.copied.get(s.root, ()) for s in stages):
        return False
    if not all(c.type.shape for c in region.carries) or any(nodes_of(e) for e in stages[0].domain):
        return False
    owner = text.memory.owner
    changed = {owner(n) for pair in body.latch for n in pair}
    changed |= {owner(s.root) for nest in nests for s in nest.stages if nest.storage[s.root] is Storage.FULL}
    return all(_is_own(s, index) for s in stages for index in _touched(s, changed, owner))


def _is_flat(nest: Nest) -> bool:
    """Whether a nest is one loop over all elements of its stages, and each of these stores or keeps an element."""
    return (
        len(nest.loops) == 1
        and nest.depth > 0
        and not nest.loops[0].inner
        and Storage.TILE not in nest.storage.values()
        and all(s.kind in {"map", "store"} and not s.reduced and len(s.domain) == nest.depth for s in nest.stages)
        and all(s.written is None or "slices" in s.root.params for s in nest.stages)
    )


def _touched(stage: Stage, changed: set[Node], owner: Callable[[Node], Node]) -> list[IndexTuple]:
    """The indices at which a stage reads and writes arrays that the loop changes."""
    found = [index for node, index in stage.reads if node.type.shape and owner(node) in changed]
    return found if stage.written is None else [*found, stage.written]


def _is_own(stage: Stage, index: IndexTuple) -> bool:
    """Whether an index is the element that an iteration of the loop over elements is about, in a part that is the same for all of them."""
    depth = len(stage.domain)
    before, own = index[: len(index) - depth], index[len(index) - depth :]
    return (
        len(own) == depth
        and all(i == Index(variable(k)) for k, i in enumerate(own))
        and all(i.variable is None and i != ANYWHERE for i in before)
    )


def print_tiled(text: KernelText, region: Region, parts: PrintParts, over_tiles: Callable[..., None]) -> None:
    """The loop; ``over_tiles(text, nest, lines, iterations)`` prints the loop over tiles, of which each runs ``lines``."""
    body = region.blocks["body"]
    nest: Nest = body.parts[0]
    iterations = number(text, region.head) if region.head is not None else "0"
    index = text.fresh("iteration")
    if region.index is not None:
        text.scalars[region.index, ()] = index
    moves = moved(text, body)
    real = {n: text.array(n) for pair in moves for n in pair}
    trades = text.trade(moves)
    own = {n: f"own_{name}" for n, name in real.items()}
    text.names.update(own)
    text.tiled = True
    inside = printed_inside(text, body, parts, lambda: [(line, None) for line in text.swap(moves)])
    text.tiled = False
    text.names.update(real)
    lines: list[Line] = [(f"{own[n]} = {name}", None) for n, name in real.items()]
    lines.append((f"for {index} in range(np.int64({iterations})):", region.root))
    lines += indented([("if stopped(table):", None), ("    return", None), *inside])
    over_tiles(text, nest, lines, iterations)
    if trades:  # the arrays are called after the last iteration what they are called in it
        text.lines.append((f"for {index} in range(np.int64({iterations})):", region.root))
        text.lines += indented([(line, None) for line in trades])
