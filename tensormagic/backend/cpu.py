"""Prints kernels as Python source, in the part of Python that Numba compiles; a worker process does, in `cpu_text` or by Numba.

A kernel is ``def kernel(table)``: the table holds the address of the stop flag, those of the array objects, sizes, and
constants. The source that is compiled has neutral names, so that equal loops are compiled once; people are shown the
same text with their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tensormagic.backend.body_text import Body, folds_columns, indented
from tensormagic.backend.inline import is_growing
from tensormagic.backend.kernel_text import (
    FLAT_TILE,
    MOST_SHARES,
    ROW_TILE,
    WIDE_TILE,
    KernelText,
    Line,
    Printed,
    Sharing,
)
from tensormagic.backend.lower import Stage
from tensormagic.backend.memory import Memory
from tensormagic.backend.product_text import print_product
from tensormagic.backend.region_text import print_check, print_region
from tensormagic.backend.schedule import Kernel, Loop, Nest, Part, Region, Storage
from tensormagic.backend.sequence_text import print_sequence
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, is_at_least, nodes_of, product
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.fold import SUM

EIGHTHS = 8  # in an operation; one of a product of matrices, in blocks or by BLAS, takes an eighth of the time and less
SHARE = 1 << 14  # elements, about, that a share of a loop has at least
ADDED_ROWS = 64  # rows that a share has at least which adds up columns: these are added once more
MOST_PARTS = 1 << 22  # elements, about, of memory for that
ROW_STEP = 16  # rows come in multiples of this where there are that many: whole vectors
TILE_ROOM = (
    1024  # elements of a tile's rows, as far as one row does not hold more: the first cache holds several such tiles
)


def tile_rows(width: int) -> int:
    """The number of rows in a tile, for ``width`` elements in a row: the same rule as in the printed source."""
    if width * ROW_TILE <= TILE_ROOM:
        return ROW_TILE
    if width * ROW_STEP <= TILE_ROOM:
        return TILE_ROOM // (width * ROW_STEP) * ROW_STEP
    return TILE_ROOM // width if width < TILE_ROOM else 1


def print_kernel(
    kernel: Kernel,
    memory: Memory,
    copied: Mapping[Node, set[Node]],
    stored: Callable[[Node], bool],
    exported: Callable[[Node], bool],
    names: Mapping[Node, str],
) -> Printed:
    """The source of ``kernel``.

    Parameters
    ----------
    kernel
        What to print.
    memory
        Which values share an array.
    copied
        What begins with a copy of what it changes.
    stored
        Whether a node has an array of its own, or is computed by a stage.
    exported
        Whether a node is needed when the kernel has run.
    names
        What the user calls values.
    """
    text = KernelText(stored, exported, memory, copied)
    _print_parts(text, kernel.parts)
    for region in kernel.regions:
        for item, _ in region.results:
            if not item.type.shape and exported(item):
                text.lines.append((f"{text.array(item)}[0] = {text.scalars[item, ()]}", item))
    return text.finish(names)


def _print_parts(text: KernelText, parts: list[Part]) -> None:
    for part in parts:
        if isinstance(part, Nest):
            _print_nest(text, part)
        elif isinstance(part, Region):
            print_region(text, part, _print_parts)
        else:
            print_check(text, part)


# nests ----------------------------------------------------------------------------------------------------------------


def _print_nest(text: KernelText, nest: Nest) -> None:
    for stage in nest.stages:
        _print_before(text, stage)
    if nest.alone and nest.stages[0].kind == "sequence":
        print_sequence(text, nest)
    elif nest.alone and print_product(text, nest):
        return
    elif nest.depth:
        _print_rows(text, nest)
    else:
        body = Body(text, nest, nest.loops[0], None)
        for stage in nest.stages:
            _print_scalar(body, stage)
        text.lines += body.sections[0]


def _print_before(text: KernelText, stage: Stage) -> None:
    """The copy of what is stored into, where that is still needed as it was."""
    root = stage.root
    if root in text.copied.get(root, ()):
        text.lines += text.copy(root, root.args[0])
    if stage.written is not None and is_growing(text.memory.owner(root)):
        start, length, _ = root["slices"][0]
        body = Body(text, Nest([stage]), Loop((), [stage]), None)
        text.lines += body.sections[0]
        text.lines += text.grow(root, text.size((start + length) * product(root.type.shape[1:])))
    if stage.kind == "fold" and stage.reduced and getattr(root.op, "start", 0) is None:
        extent = product(tuple(stage.domain[k] for k in stage.reduced))
        if not is_at_least(extent, 1) and (text.depth or nodes_of(extent)):
            message = f"zero-size array to reduction operation {root.op.name} which has no identity"
            body = Body(text, Nest([stage]), Loop((), [stage]), None)
            text.lines += [*body.sections[0], (f"if {text.product(extent)} == 0:", root)]
            text.lines += indented([(line, root) for line in text.fault(ValueError, message)])


def _print_rows(text: KernelText, nest: Nest) -> None:
    inner = list(dict.fromkeys(product(loop.inner) for loop in nest.loops if loop.inner))
    width: Size | None = sum(inner[1:], inner[0]) if inner else None
    if not text.depth and may_share(nest):
        kept: Size = sum((s.root.type.size for s in nest.stages if folds_columns(s)), 0)
        names = text.fresh("rows"), text.fresh("share"), text.fresh("shares")
        text.sharing = Sharing(*names, rows_in_all=product(nest.rows), width=width or 1, kept=kept)
    bodies: list[Body] = []
    tiles: list[Line] = []
    for loop in nest.loops:
        bodies.append(Body(text, nest, loop, width))
        tiles += bodies[-1].print_loop()
    sharing, text.sharing = text.sharing, None
    text.lines += [line for body in bodies for line in body.sections[0] + body.before]
    after = [line for body in bodies for line in body.after]
    rows = text.product(product(nest.rows))
    if text.depth and not _needs_tiles(nest):
        text.lines += [("start = 0", None), (f"stop = {rows}", None), *tiles, *after]
        return
    step = str(FLAT_TILE if _needs_tiles(nest) else SHARE if sharing else WIDE_TILE)
    each = ""
    if width is not None:
        each = text.fresh("width")
        rule = (
            f"{ROW_TILE} if {each} * {ROW_TILE} <= {TILE_ROOM} else {TILE_ROOM} // ({each} * {ROW_STEP}) * {ROW_STEP} "
            f"if {each} * {ROW_STEP} <= {TILE_ROOM} else {TILE_ROOM} // {each} if {each} < {TILE_ROOM} else 1"
        )
        step = sharing.rows if sharing else text.fresh("rows")
        text.lines += [(f"{each} = {text.size(width)}", None), (f"{step} = {rule}", None)]
    elif sharing:
        text.lines.append((f"{sharing.rows} = {step}", None))
        step = sharing.rows
    first, last = ("0", rows) if sharing is None else ("first", "last")
    lines: list[Line] = [(f"for start in range({first}, {last}, {step}):", None)]
    lines += indented([("if stopped(table):", None), ("    return", None)])
    lines += indented([(f"stop = start + {step} if start + {step} < {last} else {last}", None), *tiles])
    if sharing is None:
        text.lines += lines
    else:
        text.lines += _sizes_of_shares(text, sharing, f"{step} * ({each} + 1)" if each else step)
        end = f"first + {sharing.share}"
        begins = [line for body in bodies for line in body.share[0]]
        ends = [line for body in bodies for line in body.share[1]]
        text.lines += [
            (f"for first in parallel({rows}, {sharing.share}, {text.threads()}, {_work(text, nest, rows)}):", None),
            *indented([(f"last = {end} if {end} < {rows} else {rows}", None), *sharing.lines, *begins, *lines, *ends]),
        ]
    text.lines += after


def _sizes_of_shares(text: KernelText, sharing: Sharing, elements: str) -> list[Line]:
    """How many rows a share has: the same rule as in `share_rows`."""
    step, share, rows = sharing.rows, sharing.share, text.product(sharing.rows_in_all)
    least = [f"{step} * ({SHARE} // ({elements}))"]
    if sharing.kept != 0:
        least.append(f"{step} * ({ADDED_ROWS} // {step} + 1)")
        least.append(f"{step} * ({rows} * {text.product(sharing.kept)} // {MOST_PARTS} // {step} + 1)")
    return [
        (f"{share} = {step} * (({rows} + {step} - 1) // {step} // {MOST_SHARES} + 1)", None),
        *((f"{share} = {share} if {share} > {other} else {other}", None) for other in least),
        (f"{sharing.count} = ({rows} + {share} - 1) // {share}", None),
    ]


def share_rows(rows: int, width: int, kept: int) -> int:
    """How many rows a share has, which sizes alone decide: whole tiles, not too few, in not too many shares.

    Parameters
    ----------
    rows, width
        How many rows there are, and how many elements each has.
    kept
        How many elements a share adds up; 0 for none.
    """
    step = tile_rows(width)
    share = max(step * (-(-rows // step) // MOST_SHARES + 1), step * (SHARE // (step * (width + 1))))
    if kept:
        share = max(share, step * (ADDED_ROWS // step + 1), step * (rows * kept // MOST_PARTS // step + 1))
    return share


def part_room(rows: int, width: int, kept: int, count: int) -> int:
    """How many elements of memory the shares but the first need, where each adds up ``count`` of its ``kept`` elements."""
    share = share_rows(rows, width, kept)
    return max(-(-rows // share) - 1, 0) * count


def may_share(nest: Nest) -> bool:
    """Whether the rows of a nest can be computed in any order: each stores elements of its own, or is a part of a total."""
    for stage in nest.stages:
        scatters = stage.written is not None and "slices" not in stage.root.params
        sized = folds_columns(stage) and any(nodes_of(s) for other in nest.stages for s in other.domain)
        if scatters or sized or stage.kind == "sequence":
            return False
    return True


def _work(text: KernelText, nest: Nest, rows: str) -> str:
    """About how many eighths of an operation a nest is."""
    each: Size = 0
    for stage in nest.stages:
        each = each + product(tuple(stage.domain[nest.depth :])) * EIGHTHS * (stage.ops + 1)
    return f"{rows} * {text.product(each)}"


def _needs_tiles(nest: Nest) -> bool:
    """Whether a nest of flat loops keeps values for a tile, or sums in chunks of one."""
    sums = any(s.reduced and s.root.op in {SUM, CONTRACT} for s in nest.stages)
    return sums or Storage.TILE in nest.storage.values() or len(nest.loops) > 1


def _print_scalar(body: Body, stage: Stage) -> None:
    if stage.written is not None:
        body.print_store(stage)
        return
    value = body.result(stage, ())
    body.text.scalars[stage.root, stage.identity()] = value
    if body.text.exported(stage.root):
        body.emit(0, f"{body.text.array(stage.root)}[0] = {value}", stage.root)
