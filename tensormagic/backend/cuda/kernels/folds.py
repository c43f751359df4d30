"""Print reductions along some axes as kernels: of rows, and of columns, in two stages where there are few results.

The second stage reduces the partial results of the first in a fixed order; the sizes alone decide how many parts
there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from tensormagic.backend.cuda.kernels.bodies import words_of
from tensormagic.backend.cuda.kernels.calls import WARP, Calls, ceil_div, fold_text, inside, not_empty
from tensormagic.backend.cuda.kernels.flat import print_flat
from tensormagic.backend.cuda.kernels.launch import Launch, UnsupportedError
from tensormagic.backend.cuda.kernels.rows import MOST, Row, print_rows
from tensormagic.backend.cuda.kernels.text import CudaText
from tensormagic.backend.planning.lower import Stage, reordered
from tensormagic.backend.planning.schedule import Loop, Nest, Storage
from tensormagic.backend.printing.kernel_text import Line
from tensormagic.backend.printing.scalar_text import start_text, step_text
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, apply, product

THREADS = 256
ENOUGH = 1024  # blocks that keep the GPU busy
LONG = 16384  # columns from which a row is reduced in parts, where there are few rows
FEW = 512  # rows that count as few
STEPS = 16  # least number of elements of a thread in the first stage
Make = Callable[[], CudaText]


def print_fold(make: Make, stages: Sequence[Stage], names: Mapping[Node, str], nest: Nest) -> list[Launch]:
    """Return the launches of reductions over the same axes, and of maps over their operands.

    Parameters
    ----------
    make
        What makes an empty text.
    stages
        What is computed in one pass.
    names
        What the user calls values.
    nest
        What they are of: says which values are arrays.
    """
    first = next(s for s in stages if s.reduced)
    rank = len(first.domain)
    kept = [k for k in range(rank) if k not in first.reduced]
    by_rows = rank - 1 in first.reduced
    order = [*kept, *(k for k in range(rank) if k in first.reduced)]
    own = one_loop([reordered(s, order) for s in stages], len(kept), nest)
    if not by_rows:
        return _print_columns(make, own, names)
    if len(stages) > 1:
        return print_rows(make, own, names)
    rows, columns = product(own.rows), product(own.stages[0].domain[own.depth :])
    measure = apply("min", apply("floordiv", columns, LONG), apply("floordiv", FEW, apply("max", rows, 1)))
    start, *rest = _print_long(make, own, names)
    short = tuple(print_rows(make, own, names))
    return [replace(start, ranges=((measure, 1, MOST),), otherwise=short), *(_where(r, measure) for r in rest)]


def _where(launch: Launch, measure: Size) -> Launch:
    return replace(launch, ranges=((measure, 1, MOST),))


def one_loop(stages: Sequence[Stage], depth: int, of: Nest) -> Nest:
    """Return stages of a nest as one loop whose rows are the first ``depth`` axes."""
    own = Nest(list(stages), frozenset({depth}), depth=depth, storage={s.root: of.storage[s.root] for s in stages})
    own.loops = [Loop(stages[0].domain[depth:], own.stages)]
    return own


def printed(text: CudaText, nest: Nest) -> tuple[Row, Calls, list[Line]]:
    """Return the body of a reduction's element, its calls, and the lines that are computed once for a row."""
    body = Row(text, nest, nest.loops[0], None)
    body.begin()
    body.run()
    text.head += body.sections[0]
    calls = Calls(text, body, [*text.head, *body.sections[1]], ["i", "j"])
    return body, calls, list(body.sections[1])


def _print_columns(make: Make, nest: Nest, names: Mapping[Node, str]) -> list[Launch]:
    """Return launches for columns: neighbouring threads take neighbouring columns; with few columns a block takes several rows at once."""
    text, stage = make(), nest.stages[0]
    folds = [s for s in nest.stages if s.reduced]
    kept, extent = product(nest.rows), product(stage.domain[nest.depth :])
    wide = apply("min", kept, THREADS)
    together = apply("floordiv", THREADS, apply("max", wide, 1))
    across = ceil_div(kept, THREADS)
    most = apply("max", apply("floordiv", ENOUGH, apply("max", across, 1)), 1)
    parts = apply("max", apply("min", most, ceil_div(extent, STEPS * together)), 1)
    _, calls, row = printed(text, nest)
    first: list[Line] = []
    last: list[Line] = []
    for each, total in calls.totals:
        root, dtype = each.root, each.root.type.dtype.name
        room = text.fresh("room")
        out = text.store(text.room(("parts", root), parts * kept, dtype))
        text.head.append((f'{room} = shared("{dtype}", {THREADS})', None))
        first.append((f"{room}[thread()] = {total}", root))
        last += [
            ("    k = thread() + wide", None),
            ("    while k < rows * wide:", None),
            (f"        {total} = {step_text(root, total, f'{room}[k]', free=False, whole=True)}", root),
            ("        k = k + wide", None),
            (f"    {out}[part * columns + i] = {total}", root),
        ]
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
        *first,
        ("barrier()", None),
        ("if i < columns and thread() < wide:", None),
        *last,
    ]
    launch = text.launch("columns", across * parts, THREADS, names, not_empty=not_empty(folds))
    return [launch, *(finish(make, s, nest, parts, names, apart=True) for s in folds)]


def _print_long(make: Make, nest: Nest, names: Mapping[Node, str]) -> list[Launch]:
    """Return launches for a few long rows: several blocks for each."""
    text, stage = make(), nest.stages[0]
    rows, extent = product(nest.rows), product(stage.domain[nest.depth :])
    most = apply("floordiv", ENOUGH, apply("max", rows, 1))
    parts = apply("max", apply("min", most, ceil_div(extent, STEPS * THREADS)), 1)
    _, calls, row = printed(text, nest)
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
    return [first, finish(make, stage, nest, parts, names, apart=False)]


def finish(make: Make, stage: Stage, nest: Nest, parts: Size, names: Mapping[Node, str], *, apart: bool) -> Launch:
    """Return the launch in which a warp reduces the parts of each result; with ``apart``, the parts of one result are strided."""
    text = make()
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
    """Return launches for the stages of a nest in as few passes as possible; values passed between them are in scratch memory."""
    private = {s.root: s.root.type.size for s in nest.stages if nest.storage[s.root] is not Storage.FULL}

    def text() -> CudaText:
        made = make()
        made.private.update(private)
        return made

    found: list[Launch] = []
    stages = nest.stages
    totals = [s for s in stages if nest.is_total(s)]
    if totals and len(totals) < len(stages) and len(_groups(stages)) > 1:
        with suppress(UnsupportedError):
            found += print_rows(text, _without(nest, totals), names)
            stages = totals
    groups = _groups(stages)
    group_of = {s.root: k for k, group in enumerate(groups) for s in group}
    shared = {n for k, g in enumerate(groups) for s in g for n, _ in s.reads if group_of.get(n, k) != k}
    storage = {s.root: Storage.FULL if s.root in shared or s.reduced else nest.storage[s.root] for s in stages}
    rest = Nest(stages, nest.depths, depth=nest.depth, storage=storage)
    for group in groups:
        if any(0 < len(s.reduced) < len(s.domain) for s in group):
            found += print_fold(text, group, names, rest)
        else:
            found += print_flat(text, one_loop(group, len(group[0].domain), rest), names)
    return found


def _without(nest: Nest, totals: Sequence[Stage]) -> Nest:
    """Return a nest without some stages, storing what these read."""
    read = {n for s in totals for n, _ in s.reads}
    stages = [s for s in nest.stages if s not in totals]
    loops = [Loop(loop.inner, [s for s in loop.stages if s in stages]) for loop in nest.loops]
    storage = {s.root: Storage.FULL if s.root in read else nest.storage[s.root] for s in stages}
    return Nest(stages, nest.depths, depth=nest.depth, loops=[p for p in loops if p.stages], storage=storage)


def _groups(stages: Sequence[Stage]) -> list[list[Stage]]:
    """Return stages in groups, each computed by one pass: same domain, reductions over the same axes, none of which another one reads."""
    groups: list[list[Stage]] = []
    where: dict[Node, int] = {}
    for stage in stages:
        first = max((where[n] + (not _joins(stage, groups[where[n]])) for n, _ in stage.reads if n in where), default=0)
        number = next((k for k in range(first, len(groups)) if _joins(stage, groups[k])), len(groups))
        if number == len(groups):
            groups.append([])
        groups[number].append(stage)
        where[stage.root] = number
    return groups


def _joins(stage: Stage, group: Sequence[Stage]) -> bool:
    """Return whether a pass can compute one more stage."""
    own = {s.root: s for s in group}
    if any(s.domain != stage.domain or s.written is not None for s in group) or stage.written is not None:
        return False
    axes = {s.reduced for s in (*group, stage) if s.reduced}
    reads = [(own[n], index) for n, index in stage.reads if n in own]
    return len(axes) <= 1 and all(not made.reduced and index == made.identity() for made, index in reads)
