"""Prints kernels as Python source, in the part of Python that Numba compiles; a worker process does, in `cpu_text` or by Numba.

A kernel is ``def kernel(table)``: the table holds the address of the stop flag, those of the array objects, sizes, and
constants. The source that is compiled has neutral names, so that equal loops are compiled once; people are shown the
same text with their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tensormagic.backend.cpu.rows import SHARE, STRIDED, TILED
from tensormagic.backend.planning.inline import is_growing
from tensormagic.backend.planning.loop_interchange import surrounded
from tensormagic.backend.planning.lower import Stage
from tensormagic.backend.planning.schedule import Kernel, Loop, Nest, Part, Region, Storage
from tensormagic.backend.planning.shared_arrays import Memory
from tensormagic.backend.planning.skipped_folds import skip_of
from tensormagic.backend.printing.body_text import Body, indented
from tensormagic.backend.printing.kernel_text import FLAT_TILE, WIDE_TILE, KernelText, Line, Printed, Sharing
from tensormagic.backend.printing.narrow_text import in_two_ways
from tensormagic.backend.printing.product_text import print_product
from tensormagic.backend.printing.region_text import print_check, print_region
from tensormagic.backend.printing.sequence_text import print_sequence
from tensormagic.backend.printing.several_rows_text import ABREAST, FEW, abreast, may_be_abreast
from tensormagic.backend.printing.skipped_text import print_loop, rows_of
from tensormagic.backend.printing.total_text import folds_columns
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, is_at_least, nodes_of, product
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.fold import SUM

EIGHTHS = 8  # in an operation; one of a product of matrices, in blocks or by BLAS, takes an eighth of the time and less
INSIDE = 1 << 20  # eighths of an operation from which on a nest in a loop is one that threads share


def print_kernel(
    kernel: Kernel,
    memory: Memory,
    copied: Mapping[Node, set[Node]],
    stored: Callable[[Node], bool],
    exported: Callable[[Node], bool],
    names: Mapping[Node, str],
) -> Printed:
    """Return the source of ``kernel``.

    Parameters
    ----------
    kernel
        What to print.
    memory
        Which values share an array.
    copied
        Steps that begin with a copy of what they change.
    stored
        Whether a node has an array of its own, or is computed by a stage.
    exported
        Whether a node is needed after the kernel.
    names
        The user's names of nodes.
    """
    text = KernelText(stored, exported, memory, copied)
    if kernel.regions and len(kernel.parts) > 1:
        print_region(text, kernel.regions[0], _print_parts, lambda text, _: _print_interchanged(text, kernel.parts))
    else:
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
            print_region(text, part, _print_parts, lambda text, region: _print_interchanged(text, [region]))
        else:
            print_check(text, part)


# nests ----------------------------------------------------------------------------------------------------------------


def _print_nest(text: KernelText, nest: Nest) -> None:
    for stage in nest.stages:
        print_before(text, stage)
    if nest.alone and nest.stages[0].kind == "sequence":
        print_sequence(text, nest)
    elif nest.alone and print_product(text, nest):
        return
    elif nest.depth:
        _print_rows(text, nest)
    else:
        body = Body(text, nest, nest.loops[0], None)
        for stage in nest.stages:
            print_scalar(body, stage)
        text.lines += body.sections[0]


def print_before(text: KernelText, stage: Stage) -> None:
    """Print the copy of an array that is stored into, if its old contents are still needed."""
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
    if text.depth and may_share(nest, inside=True):
        _print_twice(text, nest)
    else:
        _print_loop(text, nest, shared=not text.depth and may_share(nest))


def _print_twice(text: KernelText, nest: Nest) -> None:
    """Print a nest that runs many times in two versions: shared among threads if it is large, else as plain as possible."""
    lines, scalars = text.lines, text.scalars
    printed: list[tuple[list[Line], dict[Any, str]]] = []
    for shared in (True, False):
        text.lines, text.scalars = [], dict(scalars)
        _print_loop(text, nest, shared=shared)
        printed.append((text.lines, text.scalars))
    (together, theirs), (alone, own) = printed
    totals = [k for k in own if k not in scalars and any(k[0] is s.root for s in nest.stages)]
    together += [(f"{own[k]} = {theirs[k]}", k[0]) for k in totals]
    text.scalars = {**scalars, **{k: own[k] for k in totals}}
    work = _work(text, nest, text.product(product(nest.rows)))
    text.lines = [*lines, (f"if {work} >= {INSIDE}:", None), *indented(together), ("else:", None), *indented(alone)]


def _print_loop(text: KernelText, nest: Nest, *, shared: bool) -> None:
    tiled = shared or not text.depth or _needs_tiles(nest)
    inner = list(dict.fromkeys(product(loop.inner) for loop in nest.loops if loop.inner))
    width: Size | None = sum(inner[1:], inner[0]) if inner else None
    if shared:
        added: Size = sum((s.root.type.size for s in nest.stages if folds_columns(s)), 0)
        names = text.fresh("rows"), text.fresh("share"), text.fresh("shares")
        text.sharing = Sharing(*names, rows_in_all=product(nest.rows), width=width or 1, kept=added)
    bodies: list[Body] = []
    tiles: list[Line] = []
    beside = shared and not text.depth and may_be_abreast(nest, width)
    for loop in nest.loops:
        bodies.append(Body(text, nest, loop, width))
        printed = print_loop(bodies[-1])
        printed = abreast(bodies[-1], printed) if beside else printed
        tiles += in_two_ways(bodies[-1], printed) if tiled and not beside else printed
    sharing, text.sharing = text.sharing, None
    text.lines += [line for body in bodies for line in body.sections[0] + body.frame.before]
    after = [line for body in bodies for line in body.frame.after]
    rows = rows_of(text, nest)
    if not tiled:
        text.lines += [("start = 0", None), (f"stop = {rows}", None), *tiles, *after]
        return
    step, each = _tile(text, nest, width, sharing, least=ABREAST if beside else 1)
    first, last = ("0", rows) if sharing is None else ("first", "last")
    lines: list[Line] = [(f"for start in range({first}, {last}, {step}):", None)]
    lines += indented([("if stopped(table):", None), ("    return", None)])
    lines += indented([(f"stop = start + {step} if start + {step} < {last} else {last}", None), *tiles])
    if sharing is None:
        text.lines += lines
    else:
        begins = [line for body in bodies for line in body.frame.share[0]]
        ends = [line for body in bodies for line in body.frame.share[1]]
        _print_shares(text, sharing, (step, each), [*begins, *lines, *ends], _work(text, nest, rows), rows)
    text.lines += after


def _tile(text: KernelText, nest: Nest, width: Size | None, sharing: Sharing | None, least: int) -> tuple[str, str]:
    """Return the texts for the number of rows in a tile and of elements in a row, by the width of rows if there is one."""
    if width is not None:
        each, rows = text.fresh("width"), sharing.rows if sharing else text.fresh("rows")
        found = rows if least == 1 else text.fresh("few")
        text.lines += [(f"{each} = {text.size(width)}", None), (f"{found} = tile_rows({each})", None)]
        text.lines += [] if found == rows else [(f"{rows} = {least} if {found} < {FEW} else {found}", None)]
        return rows, each
    number = str(FLAT_TILE if _needs_tiles(nest) else SHARE if sharing else WIDE_TILE)
    if sharing is None:
        return number, "0"
    text.lines.append((f"{sharing.rows} = {number}", None))
    return sharing.rows, "0"


def _print_shares(
    text: KernelText, sharing: Sharing, tile: tuple[str, str], lines: list[Line], work: str, rows: str
) -> None:
    """Print the loop over shares of rows, given the texts of :func:`_tile` and the lines that a share runs."""
    share, end = sharing.share, f"first + {sharing.share}"
    text.lines += [
        (f"{share} = share_rows({rows}, {tile[0]}, {tile[1]}, {text.size(sharing.kept)})", None),
        (f"{sharing.count} = ({rows} + {share} - 1) // {share}", None),
        (f"for first in parallel({rows}, {share}, {text.threads()}, {work}):", None),
        *indented([(f"last = {end} if {end} < {rows} else {rows}", None), *sharing.lines, *lines]),
    ]


def _print_interchanged(text: KernelText, parts: list[Part]) -> bool:
    """Print a loop, with the nests around it, by tiles of elements, if its iterations treat each element separately."""
    loop = None if text.depth else surrounded(parts, text.copied, text.memory.owner)
    if loop is None:
        return False
    iterations, lines = loop.print_tile(text)
    names = text.fresh("rows"), text.fresh("share"), text.fresh("shares")
    sharing, rows = Sharing(*names, rows_in_all=product(loop.nest.rows)), text.product(product(loop.nest.rows))
    text.lines.append((f"{sharing.rows} = {STRIDED if loop.is_strided else TILED}", None))
    stop = f"stop = start + {sharing.rows} if start + {sharing.rows} < last else last"
    tiles: list[Line] = [(f"for start in range(first, last, {sharing.rows}):", None), *indented([(stop, None), *lines])]
    work = " + ".join([f"{_work(text, loop.nest, rows)} * {iterations}", *(_work(text, n, rows) for n in loop.around)])
    _print_shares(text, sharing, (sharing.rows, "0"), tiles, work, rows)
    return True


def may_share(nest: Nest, *, inside: bool = False) -> bool:
    """Return whether threads may share the rows of a nest: each stores its own elements, or a part of a total.

    ``inside`` a region, where a nest is printed twice, only for nests that may be large and whose extents are the same
    in each iteration.
    """
    if inside and (
        any(nodes_of(e) for s in nest.stages for e in s.domain) or is_at_least(INSIDE - 1 - work_in(nest), 0)
    ):
        return False
    for stage in nest.stages:
        scatters = stage.written is not None and "slices" not in stage.root.params
        sized = folds_columns(stage) and (inside or any(nodes_of(s) for other in nest.stages for s in other.domain))
        if scatters or sized or stage.kind == "sequence":
            return False
    return True


def work_in(nest: Nest, depth: int = 0) -> Size:
    """Return the estimated eighths of an operation in a nest, without rare parts; with ``depth``, in one iteration of its outer loops."""
    done = [s for s in nest.stages if skip_of(s) is None] or nest.stages
    return sum((product(tuple(s.domain[depth:])) * EIGHTHS * (s.ops + 1) for s in done), 0)


def _work(text: KernelText, nest: Nest, rows: str) -> str:
    return f"{rows} * {text.product(work_in(nest, nest.depth))}"


def _needs_tiles(nest: Nest) -> bool:
    """Return whether a nest of flat loops keeps values for a tile, or sums in chunks of one."""
    sums = any(s.reduced and s.root.op in {SUM, CONTRACT} for s in nest.stages)
    return sums or Storage.TILE in nest.storage.values() or len(nest.loops) > 1


def print_scalar(body: Body, stage: Stage) -> None:
    """Print a scalar, or a store of one."""
    if stage.written is not None:
        body.print_store(stage)
        return
    value = body.result(stage, ())
    body.text.scalars[stage.root, stage.identity()] = value
    if body.text.exported(stage.root):
        body.emit(0, f"{body.text.array(stage.root)}[0] = {value}", stage.root)
