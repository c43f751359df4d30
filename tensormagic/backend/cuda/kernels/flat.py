"""Print flat loops as kernels: each thread computes a few neighbouring elements by vector loads; totals are reduced in two stages.

A fixed number of blocks reduces a total, in an order that depends on the size alone, so that repeated runs and
other GPUs give the same bits: each block leaves one value, and one block reduces these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tensormagic.backend.cuda.kernels.bodies import Element, flat_nest
from tensormagic.backend.cuda.kernels.calls import WARP, Calls, ceil_div, fold_text, inside, not_empty
from tensormagic.backend.cuda.kernels.launch import Launch
from tensormagic.backend.cuda.kernels.text import CudaText
from tensormagic.backend.planning.lower import Stage
from tensormagic.backend.planning.schedule import Loop, Nest
from tensormagic.backend.printing.kernel_text import Line
from tensormagic.backend.printing.scalar_text import start_text, step_text
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, apply, product
from tensormagic.ops.move_kind import Index

THREADS = 256
MOST_BLOCKS = 1024  # blocks that reduce a total

Make = Callable[[], CudaText]


def print_flat(make: Make, nest: Nest, names: Mapping[Node, str], tail: Sequence[Nest] = ()) -> list[Launch]:
    """Return the launches of a nest that is one loop; ``tail`` holds scalar nests computed after its totals."""
    nest = flat_nest(nest)
    text = make()
    body = Element(text, nest, Loop((), nest.stages), None)
    body.run()
    total = product(nest.rows) if nest.depth else 1
    calls = Calls(text, body, body.sections[0], ["i"])
    lanes = calls.lanes
    folds = [stage for stage, _ in calls.totals]
    text.lines += [*body.sections[0], (f"count = {text.size(total)}", None), *calls.starts(text)]
    text.lines.append((f"i = (block() * {THREADS} + thread()) * {lanes}", None))
    text.lines += _loop(calls, lanes)
    blocks = ceil_div(total, THREADS * lanes)
    if not folds:
        return [text.launch("elements", blocks, THREADS, names)]
    blocks = apply("min", blocks, MOST_BLOCKS)
    for stage, name in calls.totals:
        text.lines += fold_text(text, stage, name, THREADS)
        parts = text.store(text.room(("parts", stage.root), MOST_BLOCKS, stage.root.type.dtype.name))
        text.lines += [("if thread() == 0:", None), (f"    {parts}[block()] = {name}", stage.root)]
    first = text.launch("totals", blocks, THREADS, names, not_empty=not_empty(folds))
    return [first, _finish(make, folds, blocks, names, tail)]


def _loop(calls: Calls, lanes: int) -> list[Line]:
    """Return the loop over a thread's elements: vectors, then the rest one by one; for totals as a grid-stride loop."""
    folds = bool(calls.totals)
    step: list[Line] = [(f"i = i + blocks() * {THREADS * lanes}", None)] if folds else []
    outer = "while" if folds else "if"
    if lanes == 1:
        return [(f"{outer} i < count:", None), *inside([*calls.one(), *step])]
    one = [("while i < count:", None), *inside([*calls.one(), ("i = i + 1", None)])]
    lines = [(f"{outer} i + {lanes} <= count:", None), *inside([*calls.many(lanes), *step])]
    return [*lines, *one] if folds else [*lines, ("else:", None), *inside(one)]


def _finish(
    make: Make, stages: Sequence[Stage], blocks: Size, names: Mapping[Node, str], tail: Sequence[Nest]
) -> Launch:
    """Return the launch of one block that reduces the partial results of the blocks, and computes the scalars that follow."""
    text = make()
    text.lines.append((f"count = {text.size(blocks)}", None))
    found: list[tuple[Stage, str]] = []
    for stage in stages:
        name = text.fresh("total")
        parts = text.room(("parts", stage.root), MOST_BLOCKS, stage.root.type.dtype.name)
        text.lines += [
            (f"{name} = {start_text(stage.root, text)}", stage.root),
            ("k = thread()", None),
            ("while k < count:", None),
            (f"    {name} = {step_text(stage.root, name, f'{parts}[k]', free=False, whole=True)}", stage.root),
            (f"    k = k + {THREADS}", None),
        ]
        text.lines += fold_text(text, stage, name, THREADS)
        found.append((stage, name))
    last: list[Line] = []
    for stage, name in found:
        text.scalars[stage.root, tuple(Index(None) for _ in stage.place)] = name
        if text.exported(stage.root):
            last.append((f"{text.store(text.array(stage.root))}[0] = {name}", stage.root))
    for nest in tail:
        last += numbers(text, nest)
    text.lines += [("if thread() == 0:", None), *inside(last or [("pass", None)])]
    return text.launch("finish", 1, THREADS, names)


def print_copy(make: Make, stage: Stage, names: Mapping[Node, str]) -> Launch:
    """Return the launch that copies an array that a store changes, where its old content is still needed."""
    text = make()
    given, target = text.array(stage.root.args[0]), text.store(text.array(stage.root))
    count = stage.root.type.size
    text.lines += [
        (f"i = block() * {THREADS} + thread()", None),
        (f"if i < {text.size(count)}:", None),
        (f"    {target}[i] = {given}[i]", stage.root),
    ]
    return text.launch("copy", ceil_div(count, THREADS), THREADS, names)


def numbers(text: CudaText, nest: Nest) -> list[Line]:
    """Return statements that compute the scalars of a nest without axes, one after another."""
    body = Element(text, nest, Loop((), []), None)
    for stage in nest.stages:
        if stage.written is not None:
            text.store(text.array(stage.root))
            body.print_store(stage)
            continue
        value = body.result(stage, ())
        text.scalars[stage.root, stage.identity()] = value
        if text.exported(stage.root):
            body.emit(0, f"{text.store(text.array(stage.root))}[0] = {value}", stage.root)
    return body.sections[0]


def print_numbers(make: Make, nests: Sequence[Nest], names: Mapping[Node, str]) -> list[Launch]:
    """Return a launch in which one thread computes scalars."""
    text = make()
    last = [line for nest in nests for line in numbers(text, nest)]
    text.lines += [("if thread() == 0:", None), *inside(last or [("pass", None)])]
    return [text.launch("numbers", 1, WARP, names)]
