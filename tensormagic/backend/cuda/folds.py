"""Folds along some axes as kernels: of rows, and of columns, in two stages where there are few of them.

The second stage folds what the first has left, in the order of the parts; how many parts there are the sizes say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tensormagic.backend.cuda.bodies import words_of
from tensormagic.backend.cuda.calls import WARP, Calls, ceil_div, fold_text, inside, not_empty
from tensormagic.backend.cuda.flat import print_flat
from tensormagic.backend.cuda.launch import Launch
from tensormagic.backend.cuda.rows import MOST, Row, print_rows
from tensormagic.backend.cuda.text import CudaText
from tensormagic.backend.kernel_text import Line
from tensormagic.backend.lower import Stage, reordered
from tensormagic.backend.scalar_text import start_text, step_text
from tensormagic.backend.schedule import Loop, Nest, Storage
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, apply, product

THREADS = 256
ENOUGH = 1024  # blocks
LONG = 16384  # columns from which few rows are folded in parts
FEW = 512  # rows
STEPS = 16  # of a thread, at least, in the first stage
Make = Callable[[], CudaText]


def print_fold(make: Make, stage: Stage, names: Mapping[Node, str]) -> list[Launch]:
    """The launches of one fold."""
    rank = len(stage.domain)
    kept = [k for k in range(rank) if k not in stage.reduced]
    if not kept:
        return print_flat(make, _alone(stage, rank), names)
    by_rows = rank - 1 in stage.reduced
    stage = reordered(stage, [*kept, *(k for k in range(rank) if k in stage.reduced)])
    nest = _alone(stage, len(kept))
    if not by_rows:
        return _print_columns(make, nest, names)
    rows, columns = product(nest.rows), product(stage.domain[nest.depth :])
    measure = apply("min", apply("floordiv", columns, LONG), apply("floordiv", FEW, apply("max", rows, 1)))
    short = print_rows(make, nest, names)
    parts = _print_long(make, nest, names)
    first, *rest = parts
    chosen = replace(first, ranges=((measure, 1, MOST),), otherwise=tuple(short))
    return [chosen, *(_where(r, measure) for r in rest)]


def _where(launch: Launch, measure: Size) -> Launch:
    return replace(launch, ranges=((measure, 1, MOST),))


def _alone(stage: Stage, depth: int) -> Nest:
    nest = Nest([stage], frozenset({depth}), depth=depth, storage={stage.root: Storage.FULL})
    nest.loops = [Loop(stage.domain[depth:], [stage])]
    return nest


def _printed(text: CudaText, nest: Nest) -> tuple[Row, Calls, list[Line]]:
    """The element of a fold: its body, its calls, and the lines of its row."""
    body = Row(text, nest, nest.loops[0], None)
    body.begin()
    body.run()
    text.head += body.sections[0]
    calls = Calls(text, body, [*text.head, *body.sections[1]], ["i", "j"])
    return body, calls, list(body.sections[1])


def _print_columns(make: Make, nest: Nest, names: Mapping[Node, str]) -> list[Launch]:
    """Threads side by side take columns side by side; few columns leave room for several rows at once."""
    text, stage = make(), nest.stages[0]
    kept, extent = product(nest.rows), product(stage.domain[nest.depth :])
    wide = apply("min", kept, THREADS)
    together = apply("floordiv", THREADS, apply("max", wide, 1))
    across = ceil_div(kept, THREADS)
    most = apply("max", apply("floordiv", ENOUGH, apply("max", across, 1)), 1)
    parts = apply("max", apply("min", most, ceil_div(extent, STEPS * together)), 1)
    _, calls, row = _printed(text, nest)
    ((root_stage, total),) = calls.totals
    root = root_stage.root
    dtype = root.type.dtype.name
    room = text.fresh("room")
    out = text.store(text.room(("parts", root), parts * kept, dtype))
    text.head.append((f'{room} = shared("{dtype}", {THREADS})', None))
    text.lines += [
        (f"columns = {text.size(kept)}", None),
        (f"wide = columns if columns < {THREADS} else {THREADS}", None),
        (f"rows = quotient({THREADS}, wide)", None),
        (f"across = {text.size(across)}", None),
        (f"count = {text.size(extent)}", None),
        (f"parts = {text.size(parts)}", None),
        ("part = quotient(block(), across)", None),
        ("each = quotient(count + parts - 1, parts)", None),
        ("stop = (part + 1) * each", None),
        ("stop = stop if stop < count else count", None),
        ("i = rest(block(), across) * wide + rest(thread(), wide)", None),
        *calls.starts(text),
        ("if i < columns and thread() < rows * wide:", None),
        *inside(row),
        ("    j = part * each + quotient(thread(), wide)", None),
        ("    while j < stop:", None),
        *inside([*calls.one(), ("j = j + rows", None)], 2),
        (f"{room}[thread()] = {total}", root),
        ("barrier()", None),
        ("if i < columns and thread() < wide:", None),
        ("    k = thread() + wide", None),
        ("    while k < rows * wide:", None),
        (f"        {total} = {step_text(root, total, f'{room}[k]', free=False, whole=True)}", root),
        ("        k = k + wide", None),
        (f"    {out}[part * columns + i] = {total}", root),
    ]
    first = text.launch("columns", across * parts, THREADS, names, not_empty=not_empty([stage]))
    return [first, _finish(make, nest, parts, names, apart=True)]


def _print_long(make: Make, nest: Nest, names: Mapping[Node, str]) -> list[Launch]:
    """A few long rows: several blocks for each."""
    text, stage = make(), nest.stages[0]
    rows, extent = product(nest.rows), product(stage.domain[nest.depth :])
    most = apply("floordiv", ENOUGH, apply("max", rows, 1))
    parts = apply("max", apply("min", most, ceil_div(extent, STEPS * THREADS)), 1)
    _, calls, row = _printed(text, nest)
    ((_, total),) = calls.totals
    root = stage.root
    out = text.store(text.room(("parts", root), parts * rows, root.type.dtype.name))
    text.lines += [
        (f"parts = {text.size(parts)}", None),
        (f"count = {text.size(extent)}", None),
        ("i = quotient(block(), parts)", None),
        ("part = rest(block(), parts)", None),
        *row,
        *calls.starts(text),
        (f"j = part * {THREADS} + thread()", None),
        ("while j < count:", None),
        *inside([*calls.one(), (f"j = j + parts * {THREADS}", None)]),
        *fold_text(text, stage, total, THREADS),
        ("if thread() == 0:", None),
        (f"    {out}[block()] = {total}", root),
    ]
    first = text.launch("long rows", rows * parts, THREADS, names, not_empty=not_empty([stage]))
    return [first, _finish(make, nest, parts, names, apart=False)]


def _finish(make: Make, nest: Nest, parts: Size, names: Mapping[Node, str], *, apart: bool) -> Launch:
    """A warp for each result folds its parts, which are ``apart`` by the number of results, or side by side."""
    text, stage = make(), nest.stages[0]
    root, kept = stage.root, product(nest.rows)
    body = Row(text, nest, Loop((), [stage]), None)
    body.begin()
    name, offset, _ = body.address(root, stage.identity())
    given = text.room(("parts", root), parts * kept, root.type.dtype.name)
    total = text.fresh("total")
    place = f"{given}[k * columns + i]" if apart else f"{given}[i * parts + k]"
    row = body.sections[1] if any(w in words_of(body.sections[1]) for w in words_of([(offset, None)])) else []
    text.lines += [
        (f"columns = {text.size(kept)}", None),
        (f"parts = {text.size(parts)}", None),
        (f"i = block() * {THREADS // WARP} + quotient(thread(), {WARP})", None),
        ("mask = -1", None),
        ("if i < columns:", None),
        *inside(row),
        *inside([(f"{total} = {start_text(root, text)}", root)]),
        (f"    k = rest(thread(), {WARP})", None),
        ("    while k < parts:", None),
        (f"        {total} = {step_text(root, total, place, free=False, whole=True)}", root),
        (f"        k = k + {WARP}", None),
        *inside(fold_text(text, stage, total, WARP)),
        (f"    if rest(thread(), {WARP}) == 0:", None),
        (f"        {text.store(name)}[{offset}] = {total}", root),
    ]
    return text.launch("finish", ceil_div(kept, THREADS // WARP), THREADS, names)


def print_apart(make: Make, nest: Nest, names: Mapping[Node, str]) -> list[Launch]:
    """The stages of a nest one by one; what only they need is kept in scratch memory."""
    private = {s.root: s.root.type.size for s in nest.stages if nest.storage[s.root] is not Storage.FULL}

    def text() -> CudaText:
        made = make()
        made.scratch.update(private)
        return made

    found: list[Launch] = []
    for stage in nest.stages:
        found += (
            print_fold(text, stage, names)
            if stage.reduced
            else print_flat(text, _alone(stage, len(stage.domain)), names)
        )
    return found
