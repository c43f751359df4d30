"""Reduce rows, and columns of results that need those rows, in one pass over the matrix.

Some threads share a row: they reduce it and add what follows from it to their partial sums of each column, in
shared memory, where each has columns of its own. The sums of the blocks are added up afterwards, in the order of
the blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensormagic.backend.cuda.kernels.calls import Calls, ceil_div, fold_text, inside
from tensormagic.backend.cuda.kernels.folds import ENOUGH, Make, finish, one_loop
from tensormagic.backend.cuda.kernels.launch import Launch, UnsupportedError
from tensormagic.backend.cuda.kernels.rows import (
    LANES,
    MOST_SHARED,
    THREADS,
    Row,
    kept_of_rows,
    over_columns,
    print_loop,
)
from tensormagic.backend.cuda.kernels.text import CudaText
from tensormagic.backend.planning.lower import Stage, reordered
from tensormagic.backend.planning.schedule import Loop, Nest, Storage
from tensormagic.backend.printing.kernel_text import Line
from tensormagic.backend.printing.scalar_text import start_text, step_text
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, apply, product
from tensormagic.ops.contract import CONTRACT
from tensormagic.ops.fold import SUM

OF_A_ROW = 8  # threads that share a row
TOGETHER = THREADS // OF_A_ROW  # rows that a block processes at once
ROWS, COLUMNS = frozenset([0]), frozenset([1])  # the axes reduced


def print_passes(make: Make, nest: Nest, names: Mapping[Node, str], otherwise: Sequence[Launch]) -> list[Launch]:
    """Return the launch of a nest whose column reductions need row reductions, and launches that combine the blocks.

    Parameters
    ----------
    make
        What makes an empty text.
    nest
        What is computed.
    names
        What the user calls values.
    otherwise
        What is launched for rows that are too long for fast memory.
    """
    late = [s for s in nest.stages if s.reduced == ROWS]
    shared = _check(nest, late)
    rows = nest.rows[0]
    blocks = apply("max", apply("min", ceil_div(rows, TOGETHER), ENOUGH), 1)
    text = make()
    local = {n: s if s is Storage.FULL else Storage.LOCAL for n, s in nest.storage.items()}
    one = _Pass(text, Nest(nest.stages, nest.depths, depth=1, loops=nest.loops, storage=local), blocks, shared)
    for loop in nest.loops:
        one.fold([s for s in loop.stages if s not in late], loop.inner)
    for stage in late:
        one.add(stage)
    text.lines += [
        (f"slot = quotient(thread(), {OF_A_ROW})", None),
        (f"lane = rest(thread(), {OF_A_ROW})", None),
        (f"mask = {(1 << OF_A_ROW) - 1} << (rest(thread(), 32) - lane)", None),
        (f"kept = slot * {text.product(one.width)}", None),
        *one.before,
        (f"i = block() * {TOGETHER} + slot", None),
        (f"while i < {text.size(rows)}:", None),
        *inside([*one.row, (f"i = i + blocks() * {TOGETHER}", None)]),
        ("barrier()", None),
        *one.behind,
    ]
    fits = ((one.shared, 0, MOST_SHARED),)
    first = text.launch("one pass", blocks, THREADS, names, shared=one.shared, ranges=fits, otherwise=tuple(otherwise))
    return [first, *(replace(_put_together(make, s, nest, blocks, names), ranges=fits) for s in late)]


def _check(nest: Nest, late: Sequence[Stage]) -> list[Node]:
    """Return the arrays that both reductions read in every row and column; raise where one pass cannot compute all."""
    if nest.depth != 1 or kept_of_rows(nest) or any(s.written is not None for s in nest.stages):
        raise UnsupportedError("stores, and values of columns that are kept")
    if any(len(s.domain) > 2 or (s.reduced and s.reduced not in {ROWS, COLUMNS}) for s in nest.stages):
        raise UnsupportedError("more axes")
    roots = {s.root for s in late}
    if any(n in roots for s in nest.stages for n, _ in s.reads):
        raise UnsupportedError("what needs whole columns")
    kinds = [(s.root.op, s.root.type.dtype) for s in late]
    if any(op not in {SUM, CONTRACT} or dtype.kind == "c" or dtype.itemsize < 4 for op, dtype in kinds):
        raise UnsupportedError("folds of columns that are no sums")
    wide = [s for s in nest.stages if len(s.domain) == 2]
    first, behind = (
        {n: None for s in wide if s.reduced == axis for n, i in s.reads if len(i) == 2} for axis in (COLUMNS, ROWS)
    )
    if len({s.domain for s in wide}) != 1 or not first.keys() & behind.keys():
        raise UnsupportedError("nothing that both read")
    return [n for n in first if n in behind]


class _Pass:
    """The statements of one pass over rows.

    Parameters
    ----------
    text
        Where they go.
    nest
        What is computed.
    blocks
        How many blocks go through rows.
    keeps
        The arrays that are read once.

    Attributes
    ----------
    before, row, behind
        Statements before the loop over rows, of a row, and behind all.
    shared
        Bytes of fast memory.
    """

    def __init__(self, text: CudaText, nest: Nest, blocks: Size, keeps: Sequence[Node]) -> None:
        self.text = text
        self.nest = nest
        self.blocks = blocks
        self.width = product(next(s.domain for s in nest.stages if len(s.domain) == 2)[1:])
        self.before: list[Line] = []
        self.row: list[Line] = []
        self.behind: list[Line] = []
        self.shared: Size = 0
        self.keeps = {n: self._room(n, "tile") for n in keeps}
        self.known: set[Node] = set()
        self.body: Row | None = None

    def _room(self, node: Node, name: str) -> str:
        """Allocate shared memory for one matrix row for each row that the block processes, and return its name."""
        found, dtype = self.text.fresh(name), node.type.dtype
        self.text.head.append((f'{found} = dynamic("{dtype.name}", {self.text.size(self.shared)})', node))
        self.shared = self.shared + ceil_div(self.width * (TOGETHER * dtype.itemsize), 16) * 16
        return found

    def _next(self, stages: list[Stage], inner: Sequence[Size]) -> Row:
        body = Row(self.text, self.nest, Loop(tuple(inner), stages), None, keeps=self.keeps, known=self.known)
        if self.body is not None:
            body.take_over(self.body)
        return body

    def fold(self, stages: list[Stage], inner: Sequence[Size]) -> None:
        """Print what is computed of a row in one loop over its columns."""
        if stages:
            self.body = self._next(stages, inner)
            self.row += print_loop(self.text, self.body, OF_A_ROW, self.row, {})

    def add(self, stage: Stage) -> None:
        """Print a reduction over rows."""
        text, root = self.text, stage.root
        body = self._next([stage], stage.domain[1:])
        body.begin()
        body.run()
        text.head += body.sections[0]
        self.row += body.sections[1]
        parts = self.blocks * product(stage.domain[1:])
        out = text.store(text.room(("parts", root), parts, root.type.dtype.name))
        if len(stage.domain) == 2:
            self._column(stage, body, out)
        else:
            self._number(stage, body, out)

    def _number(self, stage: Stage, body: Row, out: str) -> None:
        """Print a sum over all rows of one number per row, which the first thread of each row accumulates."""
        text, root, total = self.text, stage.root, self.text.fresh("total")
        ((_, value),) = body.folds
        self.before.append((f"{total} = {start_text(root, text)}", root))
        self.row += [("if lane == 0:", None), (f"    {total} = {step_text(root, total, value, free=False)}", root)]
        self.behind += [
            *fold_text(text, stage, total, THREADS),
            ("if thread() == 0:", None),
            (f"    {out}[block()] = {total}", root),
        ]

    def _column(self, stage: Stage, body: Row, out: str) -> None:
        """Print sums of columns: each thread adds up the columns that it reads of its rows, and the block adds up its rows at the end."""
        text, root, extent = self.text, stage.root, self.text.product(self.width)
        own, at, total = self._room(root, "columns"), text.fresh("at"), text.fresh("total")
        calls = Calls(text, body, [*text.head, *self.row], ["i", "j"])
        ((_, name),) = calls.totals
        start = start_text(root, text)

        def added(lines: Sequence[Line], lanes: int) -> list[Line]:
            """Return calls whose last ``lanes`` statements each add one element, with a load before and a store after each."""
            found = list(lines[: len(lines) - lanes])
            for k, step in enumerate(lines[len(lines) - lanes :]):
                place = f"{own}[kept + j{f' + {k}' if k else ''}]"
                found += [(f"{name} = {place}", root), step, (f"{place} = {name}", root)]
            return found

        self.before += over_columns(
            extent,
            OF_A_ROW,
            [(f"{own}[kept + j] = {start}", root)],
            [(f"{own}[kept + j{f' + {k}' if k else ''}] = {start}", root) for k in range(LANES)],
        )
        self.row += over_columns(extent, OF_A_ROW, added(calls.one(), 1), added(calls.many(LANES), LANES))
        self.behind += [
            (f"{at} = thread()", None),
            (f"while {at} < {extent}:", None),
            (f"    {total} = {start}", root),
            ("    k = 0", None),
            (f"    while k < {TOGETHER}:", None),
            (
                f"        {total} = {step_text(root, total, f'{own}[k * {extent} + {at}]', free=False, whole=True)}",
                root,
            ),
            ("        k = k + 1", None),
            (f"    {out}[block() * {extent} + {at}] = {total}", root),
            (f"    {at} = {at} + {THREADS}", None),
        ]


def _put_together(make: Make, stage: Stage, nest: Nest, blocks: Size, names: Mapping[Node, str]) -> Launch:
    """Return the launch that adds up the partial sums of the blocks, in order."""
    kept = [k for k in range(len(stage.domain)) if k not in stage.reduced]
    own = one_loop([reordered(stage, [*kept, *stage.reduced])], len(kept), nest)
    return finish(make, own.stages[0], own, blocks, names, apart=True)
