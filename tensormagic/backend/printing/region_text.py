"""Print loops and branches around the text of their blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensormagic.backend.planning.schedule import Loop, Nest
from tensormagic.backend.planning.steps import Block, Check, Region
from tensormagic.backend.printing.body_text import Body, indented
from tensormagic.backend.printing.kernel_text import KernelText, Line
from tensormagic.ir.errors import DataShapeError, ShapeError
from tensormagic.ir.graph import NOT_STRETCHED, singles
from tensormagic.ir.node import Node

PrintParts = Callable[[KernelText, list[Any]], None]


def number(text: KernelText, node: Node) -> str:
    """Return the text of a number, computed at the current place of the text."""
    body = Body(text, Nest(), Loop(()), None)
    value = body.value(node, ())
    text.lines += body.sections[0]
    return value


def print_check(text: KernelText, check: Check) -> None:
    """Print a guard on computed integers, with NumPy's error message."""
    left, relation, right = check.guard
    for node in check.nodes:
        number(text, node)
    a, b = text.size(left), text.size(right)
    message = "a size is {0} where it has to be at least {1}"
    found: list[Line] = []
    if relation == "==":
        message = "sizes do not fit: {0} and {1}"
        found.append((f"if {' or '.join(f'({text.size(s)}) == 1' for s in singles(check.guard))}:", None))
        fault = text.fault(DataShapeError, message, a, b, advice=NOT_STRETCHED)
        found += indented([(line, None) for line in fault])
    found += [(line, None) for line in text.fault(ShapeError, message, a, b)]
    text.lines.append((f"if not ({a}) {relation} ({b}):", None))
    text.lines += indented(found)


def print_region(
    text: KernelText, region: Region, parts: PrintParts, otherwise: Callable[[KernelText, Region], bool]
) -> None:
    """Print a region and name its results; ``otherwise`` may print the region itself and is asked first."""
    for carry, start in zip(region.carries, region.starts, strict=True):
        if carry.type.shape and carry in text.copied.get(region.root, ()):
            text.lines += text.copy(carry, start)
        elif carry.type.shape:
            text.array(start)
    if otherwise(text, region):
        return
    if "body" in region.blocks:
        _print_loop(text, region, parts)
    else:
        _print_choice(text, region, parts)
    for item, inner in region.results:
        if not item.type.shape:
            text.scalars[item, ()] = text.scalars[inner, ()]


def cast(node: Node, value: str) -> str:
    """Return a number cast to its dtype, so that a variable has one type throughout."""
    dtype = node.type.dtype
    return f"bool({value})" if dtype.kind == "b" else f"np.{dtype.name}({value})"


def _inside(text: KernelText, block: Block, parts: PrintParts, after: Callable[[], Sequence[Line]]) -> list[Line]:
    """Return the lines of a block; the names of numbers it computes end with it."""
    kept, scalars = text.lines, dict(text.scalars)
    text.lines = []
    text.depth += 1
    parts(text, block.parts)
    ends = after()
    found, text.lines = [*text.lines, *ends], kept
    text.depth -= 1
    text.scalars = scalars
    return found or [("pass", None)]


def _moves(text: KernelText, block: Block) -> list[Line]:
    """Let each carried array become the array of its next value."""
    owner = text.memory.owner
    wanted = {owner(carry): owner(result) for carry, result in block.latch}
    wanted = {target: source for target, source in wanted.items() if target is not source}
    return text.latched(wanted) if wanted else []


def _print_loop(text: KernelText, region: Region, parts: PrintParts) -> None:
    numbers = [(c, s) for c, s in zip(region.carries, region.starts, strict=True) if not c.type.shape]
    names = {c: text.fresh("carry") for c, _ in numbers}
    starts = [(names[c], cast(c, number(text, s))) for c, s in numbers]
    text.lines += [(f"{name} = {value}", region.root) for name, value in starts]
    text.scalars.update({(c, ()): name for c, name in names.items()})
    block = region.blocks["body"]
    ends = dict(zip(region.carries, block.results, strict=False))

    def latch() -> list[Line]:
        values = [(names[c], cast(c, number(text, ends[c]))) for c, _ in numbers if ends[c] is not c]
        lines: list[Line] = [(f"next_{name} = {value}", region.root) for name, value in values]
        return [*lines, *((f"{name} = next_{name}", region.root) for name, _ in values), *_moves(text, block)]

    inner = any(not isinstance(p, Nest) for p in block.parts)
    if region.head is not None and region.index is not None:
        iterations, index = f"np.int64({number(text, region.head)})", text.fresh("iteration")
        text.scalars[region.index, ()] = index
        text.lines.append((f"for {index} in range({iterations}):", region.root))
        polls = text.polls(index, iterations, inner=inner)
        text.lines += indented([*polls, *_inside(text, block, parts, latch)])
        return
    test, done = region.blocks["test"], text.fresh("done")
    counts = text.counts_iterations
    text.lines += [(f"{done} = 0", None)] if counts else []
    text.lines.append(("while True:", region.root))

    def stop() -> list[Line]:
        return [(f"if not {number(text, test.results[0])}:", region.root), ("    break", region.root)]

    polls = [*text.polls(done, "0", inner=inner), *([(f"{done} = {done} + 1", None)] if counts else [])]
    text.lines += indented([*polls, *_inside(text, test, parts, stop), *_inside(text, block, parts, latch)])


def _print_choice(text: KernelText, region: Region, parts: PrintParts) -> None:
    if region.head is None:
        return
    names = {end: text.fresh("chosen") for _, end in region.results if not end.type.shape}
    choice = number(text, region.head)
    for line, name in ((f"if {choice}:", "then"), ("else:", "otherwise")):
        block = region.blocks[name]

        def latch(block: Block = block) -> list[Line]:
            found: list[Line] = []
            for (_, end), result in zip(region.results, block.results, strict=False):
                if end in names:
                    found.append((f"{names[end]} = {cast(end, number(text, result))}", region.root))
            return [*found, *_moves(text, block)]

        text.lines.append((line, region.root))
        text.lines += indented(_inside(text, block, parts, latch))
    text.scalars.update({(end, ()): name for end, name in names.items()})
