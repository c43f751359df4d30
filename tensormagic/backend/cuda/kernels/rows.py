"""Print rows as kernels: threads go through a row several times, reduce it, and keep intermediate values in shared memory.

A row belongs to one thread, eight, a warp or a block, by its length. The threads of a row take the same columns
each time, so that each reads only what it has kept itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tensormagic.backend.cuda.kernels.bodies import Element, Output, whole
from tensormagic.backend.cuda.kernels.calls import WARP, Calls, ceil_div, fold_text, inside, not_empty
from tensormagic.backend.cuda.kernels.launch import Launch, UnsupportedError
from tensormagic.backend.cuda.kernels.text import CudaText
from tensormagic.backend.planning.lower import IndexTuple, Stage
from tensormagic.backend.planning.schedule import Nest, Storage, coefficients, collapses
from tensormagic.backend.printing.body_text import Group
from tensormagic.backend.printing.kernel_text import Line
from tensormagic.backend.printing.scalar_text import as_text
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, apply, product
from tensormagic.ops.leaf import CONSTANT

THREADS = 256
LANES = 4  # neighbouring columns that a thread takes at once
MOST_SHARED = 40 << 10  # bytes of shared memory for kept values, so that several blocks fit on a multiprocessor
MOST = 1 << 62
WIDTHS = ((1, 2), (8, 64), (32, 1024), (256, MOST))  # threads for a row, and the most columns for that
Make = Callable[[], CudaText]


@dataclass
class Row(Element):
    """One loop over the columns of row ``i``, or the part computed once for a row."""

    tiles: dict[Node, str] = field(default_factory=dict)  # the arrays in which values of a row are kept
    keeps: dict[Node, str] = field(default_factory=dict)  # arrays that are read once, and where their elements are kept
    known: set[Node] = field(default_factory=set)  # those of ``keeps`` that an earlier loop has read
    split_columns: bool = False

    def __post_init__(self) -> None:
        depth, stages = self.nest.depth, self.loop.stages
        domain = stages[0].domain
        positions = range(depth, len(domain))
        self.split_rows = not collapses(stages, range(depth))
        self.groups = [Group(tuple(range(depth)), "i", product(self.nest.rows))]
        if self.loop.inner:
            self.groups.append(Group(tuple(positions), "j", product(tuple(domain[depth:]))))
            self.split_columns = not collapses(stages, positions)
        self.sections = [[] for _ in range(len(self.groups) + 1)]
        self.endings = [[] for _ in range(len(self.groups) + 1)]

    def take_over(self, before: Row) -> None:
        """Take over the variables that an earlier loop has computed for the row."""
        self.memo.update({k: v for k, v in before.memo.items() if before._depth(v) <= 1})
        self.depth_of.update({n: d for n, d in before.depth_of.items() if d <= 1})

    def begin(self) -> None:
        """Print the scalars that are read, then the indices of the row and the column along each axis."""
        for stage in self.loop.stages:
            for node, index in stage.reads:
                if not index and node.op is not CONSTANT:
                    self.value(node, index)
        if self.split_rows:
            self._split_rows(self.nest.depth)
        if self.split_columns:
            self._split("j", self.loop.stages[0].domain, self.nest.depth, 2)

    def _depth(self, text: str) -> int:
        words = {w.lstrip("(") for w in text.replace(")", " ").split()}
        inner = self.split_columns and any(w[0] == "j" and w[1:].isdigit() for w in words if w)
        return 2 if inner else super()._depth(text)

    def _linear(self, factors: Mapping[int, Size], offset: Size) -> str:
        if not self.split_columns:
            return super()._linear(factors, offset)
        depth = self.nest.depth
        outer = {k: c for k, c in factors.items() if k < depth}
        terms = [super()._linear(outer, offset)]
        for k, c in factors.items():
            if k >= depth and c != 0:
                terms.append(f"j{k}" if c == 1 else f"j{k} * {self.text.product(c)}")
        return " + ".join(terms)

    def flat(self, node: Node, index: IndexTuple) -> str:
        """Return the index where neighbouring columns are contiguous, else ""."""
        if len(self.groups) != 2:
            return ""
        domain, depth = self.loop.stages[0].domain, self.nest.depth
        factors, offset = coefficients(node, index)
        own = {k: c for k, c in factors.items() if c != 0}
        if offset != 0:
            return ""
        if own == whole(domain, 0):
            return f"i * {self.text.product(self.groups[1].extent)} + j"
        return "j" if own == whole(domain, depth) else ""

    def _load(self, node: Node, index: IndexTuple) -> str:
        tile = self.tiles.get(node)
        if tile is None:
            place = self.flat(node, index) if node in self.keeps else ""
            return self._load_once(node, index) if place.startswith("i ") else super()._load(node, index)
        maker = next(s for s in self.nest.stages if s.root is node)
        if index != maker.identity() or maker.domain != self.loop.stages[0].domain:
            raise UnsupportedError("a kept value of another column")
        name = self.text.fresh("x")
        self.depth_of[name] = 2
        self.loads.append((name, tile, node.type.dtype.itemsize, "kept + j"))
        return name

    def _load_once(self, node: Node, index: IndexTuple) -> str:
        """Return a variable with an element of an array; the first read keeps it, later ones read the kept copy."""
        tile = self.keeps[node]
        if node not in self.known:
            self.known.add(node)
            name = super()._load(node, index)
            self.outputs.append(Output(tile, name, node, "kept + j"))
            return name
        name = self.text.fresh("x")
        self.depth_of[name] = 2
        self.loads.append((name, tile, node.type.dtype.itemsize, "kept + j"))
        return name

    def _print_map(self, stage: Stage) -> None:
        root = stage.root
        if len(self.groups) == 2 and root in self.tiles:
            value = self._named(as_text(root, self.result(stage, ())))
            self.memo[root, stage.identity()] = value
            self.outputs.append(Output(self.text.store(self.tiles[root]), value, root, "kept + j"))  # type: ignore[attr-defined]
            if self.nest.storage[root] is not Storage.FULL:
                return
        if len(self.groups) == 2:
            super()._print_map(stage)
            return
        value = self.result(stage, ())
        self.memo[root, stage.identity()] = value
        self.depth_of.setdefault(value, self._depth(value))
        if self.nest.storage[root] is Storage.FULL:
            self.keep(stage, as_text(root, value))

    def keep(self, stage: Stage, value: str) -> None:
        """Store a number of the row, by the first of its threads."""
        name, offset, _ = self.address(stage.root, stage.identity())
        self.endings[1] += [("if lane == 0:", None), (f"    {self.cuda.store(name)}[{offset}] = {value}", stage.root)]


def print_rows(make: Make, nest: Nest, names: Mapping[Node, str]) -> list[Launch]:
    """Return the launch of a nest whose rows can be computed independently, with alternatives for other widths."""
    _check(nest)
    width = _width(nest)
    found: tuple[Launch, ...] = ()
    for threads, most in reversed(WIDTHS):
        one = _print(make, nest, names, threads, kept_apart=False, ranges=((width, 0, most),), otherwise=found)
        found = (one,)
    if not kept_of_rows(nest):
        return list(found)
    apart = _print(make, nest, names, THREADS, kept_apart=True, ranges=(), otherwise=())
    widest = _print(make, nest, names, THREADS, kept_apart=False, ranges=(), otherwise=())
    room = ((widest.shared, 0, MOST_SHARED),)
    found = (_print(make, nest, names, THREADS, kept_apart=False, ranges=room, otherwise=(apart,)),)
    for threads, most in reversed(WIDTHS[:-1]):
        one = _print(make, nest, names, threads, kept_apart=False, ranges=((width, 0, most),), otherwise=found)
        more = ((one.shared, 0, MOST_SHARED),)
        one = _print(make, nest, names, threads, kept_apart=False, ranges=((width, 0, most), *more), otherwise=found)
        found = (one,)
    return list(found)


def _check(nest: Nest) -> None:
    """Raise where rows cannot be computed independently, or only a part of a row is reduced."""
    for loop in nest.loops:
        for s in loop.stages:
            inner = frozenset(range(nest.depth, len(s.domain)))
            if s.written is not None or (s.reduced and s.reduced != inner):
                raise UnsupportedError("folds of parts of rows, and stores")


def _width(nest: Nest) -> Size:
    found: Size = 1
    for loop in nest.loops:
        found = apply("max", found, product(loop.inner)) if loop.inner and found != product(loop.inner) else found
    return found


def kept_of_rows(nest: Nest) -> list[Stage]:
    """Return the stages that compute a value for each column which a later loop needs."""
    loop_of = {s.root: k for k, loop in enumerate(nest.loops) for s in loop.stages}
    later = {n for k, loop in enumerate(nest.loops) for s in loop.stages for n, _ in s.reads if loop_of.get(n, k) < k}
    return [s for loop in nest.loops if loop.inner for s in loop.stages if s.root in later and not s.reduced]


def _print(
    make: Make,
    nest: Nest,
    names: Mapping[Node, str],
    threads: int,
    *,
    kept_apart: bool,
    ranges: tuple[tuple[Size, int, int], ...],
    otherwise: tuple[Launch, ...],
) -> Launch:
    """Return the launch with ``threads`` threads per row; with ``kept_apart``, kept values are in global memory."""
    text = make()
    rows, together = product(nest.rows), THREADS // threads
    local = {n: s if s is Storage.FULL else Storage.LOCAL for n, s in nest.storage.items()}
    nest = Nest(nest.stages, nest.depths, depth=nest.depth, loops=nest.loops, storage=local)
    tiles, shared, widths = _tiles(text, nest, together, kept_apart=kept_apart)
    row: list[Line] = []
    body: Row | None = None
    for loop in nest.loops:
        before = body
        body = Row(text, nest, loop, None, tiles=tiles)
        if before is not None:
            body.take_over(before)
        row += print_loop(text, body, threads, row, widths)
    assert body is not None  # noqa: S101
    place = "block()" if together == 1 else f"block() * {together} + quotient(thread(), {threads})"
    lines: list[Line] = [(f"i = {place}", None), (f"lane = rest(thread(), {threads})", None)]
    if threads < WARP:
        lines.append((f"mask = {(1 << threads) - 1} << (rest(thread(), {WARP}) - rest(thread(), {threads}))", None))
    elif threads == WARP:
        lines.append(("mask = -1", None))
    text.lines += lines
    text.lines += [(f"if i < {text.size(rows)}:", None), *inside(row)] if together > 1 else row
    empty = not_empty([s for loop in nest.loops for s in loop.stages])
    blocks = rows if together == 1 else ceil_div(rows, together)
    return text.launch(
        "rows", blocks, THREADS, names, shared=shared, not_empty=empty, ranges=ranges, otherwise=otherwise
    )


def over_columns(extent: str, threads: int, one: Sequence[Line], many: Sequence[Line]) -> list[Line]:
    """Return a loop of the threads of a row over its columns, vectorised where their number is a multiple of the lanes."""
    single: list[Line] = [("j = lane", None), (f"while j < {extent}:", None)]
    single += inside([*one, (f"j = j + {threads}", None)])
    if not many:
        return single
    several: list[Line] = [(f"j = lane * {LANES}", None), (f"while j < {extent}:", None)]
    several += inside([*many, (f"j = j + {threads * LANES}", None)])
    return [(f"if rest({extent}, {LANES}) == 0:", None), *inside(several), ("else:", None), *inside(single)]


def _tiles(
    text: CudaText, nest: Nest, together: int, *, kept_apart: bool
) -> tuple[dict[Node, str], Size, dict[Node, Size]]:
    """Return the arrays in which values of rows are kept, the bytes of shared memory, and the widths."""
    tiles: dict[Node, str] = {}
    offset: Size = 0
    for stage in kept_of_rows(nest):
        root, width = stage.root, product(stage.domain[nest.depth :])
        dtype = root.type.dtype
        if kept_apart:
            tiles[root] = text.room(("kept", root), product(stage.domain), dtype.name)
            continue
        tiles[root] = text.fresh("tile")
        text.head.append((f'{tiles[root]} = dynamic("{dtype.name}", {text.size(offset)})', root))
        offset = offset + ceil_div(width * (together * dtype.itemsize), 16) * 16
    widths = {s.root: product(s.domain[nest.depth :]) for s in kept_of_rows(nest)}
    return tiles, offset, widths


def print_loop(
    text: CudaText, body: Row, threads: int, before: Sequence[Line], widths: Mapping[Node, Size]
) -> list[Line]:
    """Return the statements of one loop over a row, and of its reductions."""
    body.begin()
    body.run()
    text.head += body.sections[0]
    row = list(body.sections[1])
    if len(body.groups) == 1:
        return [*row, *body.endings[1]]
    width = body.groups[1].extent
    if widths:
        at = "i" if next(iter(body.tiles.values())).startswith("s") else f"quotient(thread(), {threads})"
        row.append((f"kept = {at} * {text.product(width)}", None))
    outer = [*text.head, *before, *row]
    calls = Calls(text, body, outer, ["i", "j"])
    row += calls.starts(text)
    # all loops distribute columns alike, so that each thread finds what it kept
    many = calls.many(LANES) if calls.lanes > 1 or body.keeps else []
    row += over_columns(text.product(width), threads, calls.one(), many)
    for stage, name in calls.totals:
        row += fold_text(text, stage, name, threads)
        body.memo[stage.root, stage.identity()] = name
        body.depth_of[name] = 1
        if body.nest.storage[stage.root] is Storage.FULL:
            body.keep(stage, name)
    return [*row, *body.endings[1]]
