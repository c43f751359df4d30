"""Scans as kernels: running sums, products, maxima and minima along an axis.

Long lines are scanned in parts: a launch reduces each part, one scans these results, and one scans the parts, each
from the end of the one before. In a block each thread takes four neighbours, lanes exchange their results by
shuffles, and warps through shared memory. Of many neighbouring lines a thread takes each. The sizes alone decide
how many parts there are, and so the order of every step: repeated runs give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tensormagic.backend.cuda.kernels.calls import WARP, Calls, ceil_div, inside
from tensormagic.backend.cuda.kernels.folds import ENOUGH, THREADS, Make, one_loop, printed
from tensormagic.backend.cuda.kernels.launch import Launch, UnsupportedError
from tensormagic.backend.cuda.kernels.rows import LANES, MOST
from tensormagic.backend.cuda.kernels.text import CudaText, called
from tensormagic.backend.planning.lower import Stage, reordered
from tensormagic.backend.planning.schedule import Nest
from tensormagic.backend.printing.kernel_text import Line
from tensormagic.backend.printing.scalar_text import accumulate_text
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, apply, product
from tensormagic.ops.fold import CUMMAX, CUMMIN, CUMPROD, CUMSUM

TILES = 4  # tiles of a part at least, where a line is split into parts
SHORT = 32  # elements of a line up to which one thread scans it
MIDDLING = 256  # and up to which a warp does
SIDE_BY_SIDE = 1024  # lines from which each is scanned by a thread
PIECES, STEPS = 128, 64  # parts of such a line at most, and elements of a part at least
WALKERS = 1 << 16  # threads that scan lines, if there are enough parts
RUNNING = frozenset([CUMSUM, CUMPROD, CUMMAX, CUMMIN])

Range = tuple[Size, int, int]
Read = Callable[[str], list[Line]]  # returns statements that assign the element at ``j`` to a name


def print_scan(make: Make, nest: Nest, names: Mapping[Node, str]) -> list[Launch]:
    """Return the launches of a scan."""
    (stage,) = nest.stages
    if stage.root.op not in RUNNING or len(stage.reduced) != 1:
        raise UnsupportedError("places of extremes, and lines of one element")
    return _Scan(make, stage, nest, names).launches()


class _Scan:
    """One scan over ``lines`` of ``count`` elements each, with stride ``inner``."""

    def __init__(self, make: Make, stage: Stage, nest: Nest, names: Mapping[Node, str]) -> None:
        (axis,) = stage.reduced
        rank = len(stage.domain)
        order = [*(k for k in range(rank) if k != axis), axis]
        self.make, self.names = make, names
        self.nest = one_loop([reordered(stage, order)], rank - 1, nest)
        self.root, self.dtype = stage.root, stage.root.type.dtype.name
        self.kind = f"np.{self.dtype.replace('bool', 'bool_')}"
        self.lines, self.count = product(self.nest.rows), stage.domain[axis]
        self.inner = product(stage.domain[axis + 1 :])

    def launches(self) -> list[Launch]:
        """Return the launches for any sizes."""
        if self.inner != 1:
            return self._walked((self.lines, SIDE_BY_SIDE, MOST), self._tiled(THREADS, None, ()))
        short = self._walk(1, (), ())
        middling = self._tiled(WARP, (self.count, SHORT + 1, MIDDLING), (short,))
        return self._tiled(THREADS, (self.count, MIDDLING + 1, MOST), middling)

    def _tiled(self, threads: int, where: Range | None, otherwise: Sequence[Launch]) -> list[Launch]:
        """Return launches with a block, or a warp, for each part of a line."""
        ranges = (where,) if where else ()
        if threads < THREADS:
            return [self._tile(threads, 1, ranges, tuple(otherwise))]
        least = ceil_div(self.count, TILES * LANES * threads)
        parts = apply("max", apply("min", apply("floordiv", ENOUGH, apply("max", self.lines, 1)), least), 1)
        several = (*ranges, (parts, 2, MOST))
        first = self._tile(threads, parts, several, (), totals=True)
        scan = self._tile(threads, parts, ranges, tuple(otherwise))
        return [first, self._tile_of_parts(parts, several), scan]

    def _walked(self, where: Range, otherwise: Sequence[Launch]) -> list[Launch]:
        """Return launches with a thread for each part of a line."""
        most = apply("min", apply("floordiv", WALKERS, apply("max", self.lines, 1)), ceil_div(self.count, STEPS))
        parts = apply("max", apply("min", most, PIECES), 1)
        several = (where, (parts, 2, MOST))
        first, scan = self._walk(parts, several, (), totals=True), self._walk(parts, (where,), tuple(otherwise))
        return [first, self._walk_of_parts(parts, several), scan]

    # shared by all launches

    def _text(self) -> CudaText:
        """Return an empty text with the function that combines two values in order."""
        text = self.make()
        step = accumulate_text(self.root, "first", "second")
        text.functions.append(
            called("joined", ["first", "second"], [(f"value = {self.kind}({step})", self.root)], ["value"])
        )
        return text

    def _element(self, text: CudaText) -> tuple[Calls, list[Line]]:
        """Return the calls of the element, and what is computed once for its line."""
        _, calls, row = printed(text, self.nest)
        calls.totals.clear()
        return calls, row

    def _totals(self, text: CudaText, parts: Size) -> str:
        """Return the scratch array for the results of the parts."""
        return text.room(("parts", self.root), parts * self.lines, self.dtype)

    def _one(self, calls: Calls) -> Read:
        return lambda name: [*calls.one(), (f"{name} = {self.kind}({calls.result})", self.root)]

    def _base(self, text: CudaText) -> tuple[list[Line], str]:
        """Return statements that compute where a line begins in the result, and the stride of its elements as text."""
        if self.inner == 1:
            return [("base = i * count", None)], ""
        inner = text.product(self.inner)
        return [(f"base = quotient(i, {inner}) * (count * {inner}) + rest(i, {inner})", None)], f" * {inner}"

    # a thread for each part of a line

    def _walk(
        self, parts: Size, ranges: tuple[Range, ...], otherwise: tuple[Launch, ...], *, totals: bool = False
    ) -> Launch:
        """Return the launch in which each thread scans its part of a line."""
        text = self._text()
        calls, row = self._element(text)
        base, apart = self._base(text)
        one = self._one(calls)
        out = text.store(self._totals(text, parts) if totals else text.array(self.root))
        kept: list[Line] = [] if totals else [(f"{out}[base + j{apart}] = total", self.root)]
        first: list[Line] = one("total")
        if parts != 1 and not totals:
            before = self._totals(text, parts)
            first += [
                ("if part > 0:", None),
                (f"    total = joined({before}[(part - 1) * lines + i], total)", self.root),
            ]
        step: list[Line] = [*one("value"), ("total = joined(total, value)", self.root), *kept, ("j = j + 1", None)]
        body: list[Line] = [
            *row,
            *base,
            ("each = quotient(count + parts - 1, parts)", None),
            ("j = part * each", None),
            ("stop = j + each if j + each < count else count", None),
            (f"total = {self.kind}(0)", None),
            ("if j < stop:", None),
            *inside([*first, *kept, ("j = j + 1", None), ("while j < stop:", None), *inside(step)]),
        ]
        if totals:
            body.append((f"{out}[part * lines + i] = total", self.root))
        text.lines += [
            (f"lines = {text.size(self.lines)}", None),
            (f"count = {text.size(self.count)}", None),
            (f"parts = {text.size(parts)}", None),
            (f"i = block() * {THREADS} + thread()", None),
            ("if i < lines * parts:", None),
            *inside([("part = quotient(i, lines)", None), ("i = rest(i, lines)", None), *body]),
        ]
        blocks = ceil_div(self.lines * parts, THREADS)
        return text.launch(
            "parts of lines" if totals else "lines", blocks, THREADS, self.names, ranges=ranges, otherwise=otherwise
        )

    def _walk_of_parts(self, parts: Size, ranges: tuple[Range, ...]) -> Launch:
        """Return the launch that computes the running result at the end of each part."""
        text = self._text()
        given = text.store(self._totals(text, parts))
        text.lines += [
            (f"lines = {text.size(self.lines)}", None),
            (f"parts = {text.size(parts)}", None),
            (f"i = block() * {THREADS} + thread()", None),
            ("if i < lines:", None),
            (f"    total = {given}[i]", None),
            ("    part = 1", None),
            ("    while part < parts:", None),
            (f"        total = joined(total, {given}[part * lines + i])", self.root),
            (f"        {given}[part * lines + i] = total", self.root),
            ("        part = part + 1", None),
        ]
        return text.launch("ends of parts", ceil_div(self.lines, THREADS), THREADS, self.names, ranges=ranges)

    # a block for each part of a line

    def _tile(
        self,
        threads: int,
        parts: Size,
        ranges: tuple[Range, ...],
        otherwise: tuple[Launch, ...],
        *,
        totals: bool = False,
    ) -> Launch:
        """Return the launch in which each block scans its part of a line, a tile at a time."""
        text, tile = self._text(), threads * LANES
        calls, row = self._element(text)
        base, apart = self._base(text)
        many: list[Line] = []
        if calls.lanes > 1:
            many = [*calls.many(LANES), *((f"v{k} = {self.kind}({calls.result}{k})", self.root) for k in range(LANES))]
        start: list[Line] = [("begun = 0", None), (f"carry = {self.kind}(0)", None)]
        if parts != 1 and not totals:
            ends = self._totals(text, parts)
            start += [("if part > 0:", None), (f"    carry = {ends}[block() - 1]", None), ("    begun = 1", None)]
        out = text.store(self._totals(text, parts) if totals else text.array(self.root))
        keep = [] if totals else _stored(out, apart)
        text.lines += [
            (f"parts = {text.size(parts)}", None),
            (f"count = {text.size(self.count)}", None),
            (f"each = quotient(quotient(count + parts - 1, parts) + {tile - 1}, {tile}) * {tile}", None),
            ("i = quotient(block(), parts)", None),
            ("part = rest(block(), parts)", None),
            *row,
            *base,
            *start,
            ("first = part * each", None),
            ("stop = first + each if first + each < count else count", None),
            ("while first < stop:", None),
            *inside(self._step(text, threads, many, self._one(calls), keep)),
            *inside([(f"first = first + {tile}", None)]),
        ]
        if totals:
            text.lines += [("if thread() == 0:", None), (f"    {out}[block()] = carry", self.root)]
        name = "parts of lines" if totals else "scan"
        return text.launch(name, self.lines * parts, threads, self.names, ranges=ranges, otherwise=otherwise)

    def _tile_of_parts(self, parts: Size, ranges: tuple[Range, ...]) -> Launch:
        """Return the launch that computes the running result at the end of each part; a block takes all parts of a line at once."""
        text = self._text()
        given = text.store(self._totals(text, parts))
        read: Read = lambda name: [(f"{name} = {given}[base + j]", None)]  # noqa: E731
        text.lines += [
            (f"count = {text.size(parts)}", None),
            ("base = block() * count", None),
            ("stop = count", None),
            ("first = 0", None),
            ("begun = 0", None),
            (f"carry = {self.kind}(0)", None),
            *self._step(text, THREADS, [], read, _stored(given, "")),
        ]
        return text.launch("ends of parts", self.lines, THREADS, self.names, ranges=ranges)

    def _step(self, text: CudaText, threads: int, many: list[Line], one: Read, keep: list[Line]) -> list[Line]:
        """Return the statements of a block for the tile at ``first``: read some neighbours in each thread, scan, and store them.

        ``carry`` is the result of all before, valid where ``begun`` is set. A thread beyond the end holds zeros,
        which no element follows.
        """
        single: list[Line] = []
        for k in range(LANES):
            single += [("if j < stop:", None), *inside([*one(f"v{k}"), ("j = j + 1", None)])]
        read = single
        if many:
            read = [
                (f"if rest(count, {LANES}) == 0:", None),
                ("    if j < stop:", None),
                *inside(many, 2),
                ("else:", None),
                *inside(single),
            ]
        text.functions.append(_exchanged(self.kind))
        return [
            (f"at = first + thread() * {LANES}", None),
            ("j = at", None),
            *((f"v{k} = {self.kind}(0)", None) for k in range(LANES)),
            *read,
            *((f"v{k} = joined(v{k - 1}, v{k})", self.root) for k in range(1, LANES)),
            (f"lane = rest(thread(), {WARP})", None),
            (f"before, total = exchanged(v{LANES - 1}, lane)", None),
            *self._across(text, threads),
            ("if lane > 0:", None),
            ("    start = joined(start, before) if has == 1 else before", self.root),
            ("    has = 1", None),
            *(
                [("if has == 1:", None), *inside([(f"v{k} = joined(start, v{k})", self.root) for k in range(LANES)])]
                if keep
                else []
            ),
            *keep,
        ]

    def _across(self, text: CudaText, threads: int) -> list[Line]:
        """Return statements that give each warp the result before it as ``start`` (valid if ``has``), and update ``carry``."""
        after: list[Line] = [("begun = 1", None)]
        if threads == WARP:
            join = "carry = joined(carry, total) if begun == 1 else total"
            return [("start = carry", None), ("has = begun", None), (join, self.root), *after]
        room = text.fresh("room")
        text.head.append((f'{room} = shared("{self.dtype}", {threads // WARP})', None))

        def along(end: str) -> list[Line]:
            return [
                (f"while warp < {end}:", None),
                (f"    carry = joined(carry, {room}[warp]) if begun == 1 else {room}[warp]", self.root),
                ("    begun = 1", None),
                ("    warp = warp + 1", None),
            ]

        return [
            (f"if lane == {WARP - 1}:", None),
            (f"    {room}[quotient(thread(), {WARP})] = total", None),
            ("barrier()", None),
            ("warp = 0", None),
            *along(f"quotient(thread(), {WARP})"),
            ("start = carry", None),
            ("has = begun", None),
            *along(str(threads // WARP)),
            ("barrier()", None),
        ]


def _exchanged(kind: str) -> list[Line]:
    """Return the function that gives the reduction of all lanes before a lane, and of all lanes, by doubling."""
    body: list[Line] = [
        (f"before = {kind}(0)", None),
        ("distance = 1", None),
        (f"while distance < {WARP}:", None),
        ("    other = shuffle(total, distance, -1)", None),
        ("    if lane & distance:", None),
        ("        before = joined(other, before) if rest(lane, distance) != 0 else other", None),
        ("        total = joined(other, total)", None),
        ("    else:", None),
        ("        total = joined(total, other)", None),
        ("    distance = distance << 1", None),
    ]
    return called("exchanged", ["total", "lane"], body, ["before", "total"])


def _stored(out: str, apart: str) -> list[Line]:
    """Return statements that store a thread's scanned elements, by one vector store where they are contiguous."""
    single: list[Line] = []
    for k in range(LANES):
        place = f"at + {k}" if k else "at"
        single += [(f"if {place} < stop:", None), (f"    {out}[base + ({place}){apart}] = v{k}", None)]
    if apart:
        return single
    values = ", ".join(f"v{k}" for k in range(LANES))
    many: list[Line] = [("    if at < stop:", None), (f"        store({out}, base + at, ({values}))", None)]
    return [(f"if rest(count, {LANES}) == 0:", None), *many, ("else:", None), *inside(single)]
