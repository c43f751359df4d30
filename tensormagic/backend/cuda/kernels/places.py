"""Argmax and argmin of rows as kernels: each thread keeps its best element with its index, and threads exchange both.

The first of equal elements wins, and nan beats every number, whatever the order in which they are met.
"""

from __future__ import annotations

from collections.abc import Mapping

from tensormagic.backend.cuda.kernels.calls import WARP, Calls, ceil_div, inside
from tensormagic.backend.cuda.kernels.folds import ENOUGH, STEPS, THREADS, Make, one_loop, printed
from tensormagic.backend.cuda.kernels.launch import Launch, UnsupportedError
from tensormagic.backend.cuda.kernels.rows import MOST
from tensormagic.backend.cuda.kernels.text import CudaText, called
from tensormagic.backend.planning.lower import reordered
from tensormagic.backend.planning.schedule import Nest
from tensormagic.backend.printing.kernel_text import Line
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, apply, product
from tensormagic.ops.fold import ARGMAX, ARGMIN

SIDE_BY_SIDE = 1024  # neighbouring rows from which each is given to one thread
WIDTHS = ((1, 32), (WARP, 1024), (THREADS, MOST))  # threads for a row, and the most columns for that


def print_places(make: Make, nest: Nest, names: Mapping[Node, str]) -> list[Launch]:
    """Return the launches of a nest that gives the index of an extreme element of each row."""
    (stage,) = nest.stages
    if stage.root.op not in {ARGMAX, ARGMIN} or not stage.reduced:
        raise UnsupportedError("places where a mask is true, and rows of one element")
    rank = len(stage.domain)
    order = [*(k for k in range(rank) if k not in stage.reduced), *(k for k in range(rank) if k in stage.reduced)]
    own = one_loop([reordered(stage, order)], rank - len(stage.reduced), nest)
    return _Places(make, own, names).launches(side_by_side=rank - 1 not in stage.reduced)


class _Places:
    """Makes the launches of one nest."""

    def __init__(self, make: Make, nest: Nest, names: Mapping[Node, str]) -> None:
        self.make, self.nest, self.names = make, nest, names
        self.root = nest.stages[0].root
        self.dtype = self.root.args[0].type.dtype.name.replace("bool", "uint8")
        self.rows, self.count = product(nest.rows), product(nest.stages[0].domain[nest.depth :])
        self.empty = ((self.count, f"attempt to get {self.root.op.name} of an empty sequence"),)

    def launches(self, *, side_by_side: bool) -> list[Launch]:
        """Return the launches for any sizes; with ``side_by_side``, neighbouring elements belong to different rows."""
        most = apply("floordiv", ENOUGH, apply("max", self.rows, 1))
        parts = apply("max", apply("min", most, ceil_div(self.count, STEPS * THREADS)), 1)
        found: tuple[Launch, ...] = ()
        for threads, columns in reversed(WIDTHS):
            found = (self._rows(threads, 1, ((self.count, 0, columns),), found),)
        if side_by_side:
            found = (self._rows(1, 1, ((self.rows, SIDE_BY_SIDE, MOST),), found),)
        several = ((parts, 2, MOST),)
        return [self._rows(THREADS, parts, several, found), self._finish(parts, several)]

    def _text(self) -> CudaText:
        text = self.make()
        relation = ">" if self.root.op is ARGMAX else "<"
        body: list[Line] = [
            ("takes = False", None),
            ("if place >= 0:", None),
            ("    if at < 0:", None),
            ("        takes = True", None),
            (f"    elif x {relation} best:", None),
            ("        takes = True", None),
            ("    elif x == best:", None),
            ("        takes = place < at", None),
            ("    elif x != x:", None),
            ("        takes = best == best or place < at", None),
            ("best = x if takes else best", self.root),
            ("at = place if takes else at", self.root),
        ]
        text.functions.append(called("better", ["best", "at", "x", "place"], body, ["best", "at"]))
        return text

    def _rooms(self, text: CudaText, parts: Size) -> tuple[str, str]:
        """Return the scratch arrays for the best elements of parts of rows, and for their indices."""
        count = parts * self.rows
        return text.room(("best", self.root), count, self.dtype), text.room(("at", self.root), count, "int64")

    def _rows(
        self, threads: int, parts: Size, ranges: tuple[tuple[Size, int, int], ...], otherwise: tuple[Launch, ...]
    ) -> Launch:
        """Return the launch with ``threads`` threads for each row, or each part of one."""
        text = self._text()
        _, calls, row = printed(text, self.nest)
        calls.totals.clear()
        together = 1 if parts != 1 else THREADS // threads
        text.lines += [
            (f"parts = {text.size(parts)}", None),
            (f"count = {text.size(self.count)}", None),
            ("i = quotient(block(), parts)", None)
            if together == 1
            else (f"i = block() * {together} + quotient(thread(), {threads})", None),
            ("part = rest(block(), parts)", None),
            (f"lane = rest(thread(), {threads})", None),
            (f"best = np.{self.dtype}(0)", None),
            ("at = -1", None),
            (f"if i < {text.size(self.rows)}:", None),
            *inside(row),
            *inside(self._along(calls, threads)),
            *self._folded(text, threads),
        ]
        if parts == 1:
            ends: list[Line] = [(f"{text.store(text.array(self.root))}[i] = at", self.root)]
        else:
            best, at = self._rooms(text, parts)
            ends = [(f"{text.store(best)}[block()] = best", None), (f"{text.store(at)}[block()] = at", None)]
        text.lines += [(f"if lane == 0 and i < {text.size(self.rows)}:", None), *inside(ends)]
        name, blocks = (
            ("places", ceil_div(self.rows, together)) if parts == 1 else ("places in parts", self.rows * parts)
        )
        return text.launch(name, blocks, THREADS, self.names, not_empty=self.empty, ranges=ranges, otherwise=otherwise)

    def _along(self, calls: Calls, threads: int) -> list[Line]:
        """Return the loop over a thread's elements of a row."""
        return [
            (f"j = part * {threads} + lane", None),
            ("while j < count:", None),
            *inside([*calls.one(), (f"best, at = better(best, at, np.{self.dtype}({calls.result}), j)", self.root)]),
            (f"    j = j + parts * {threads}", None),
        ]

    def _folded(self, text: CudaText, threads: int) -> list[Line]:
        """Return statements that combine the findings of ``threads`` threads in the first of them, or in each of a warp."""
        if threads == 1:
            return []
        rounds: list[Line] = [
            (f"distance = {WARP // 2}", None),
            ("while distance > 0:", None),
            ("    x = shuffle(best, distance, -1)", None),
            ("    place = shuffle(at, distance, -1)", None),
            ("    best, at = better(best, at, x, place)", self.root),
            ("    distance = distance >> 1", None),
        ]
        text.functions.append(called("exchanged", ["best", "at"], rounds, ["best", "at"]))
        lines: list[Line] = [("best, at = exchanged(best, at)", None)]
        if threads == WARP:
            return lines
        warps = threads // WARP
        text.head += [
            (f'bests = shared("{self.dtype}", {warps})', None),
            (f'places = shared("int64", {warps})', None),
        ]
        return [
            *lines,
            (f"if rest(thread(), {WARP}) == 0:", None),
            (f"    bests[quotient(thread(), {WARP})] = best", None),
            (f"    places[quotient(thread(), {WARP})] = at", None),
            ("barrier()", None),
            ("k = 0", None),
            (f"while k < {warps}:", None),
            ("    best, at = better(best, at, bests[k], places[k])", self.root),
            ("    k = k + 1", None),
        ]

    def _finish(self, parts: Size, ranges: tuple[tuple[Size, int, int], ...]) -> Launch:
        """Return the launch in which a warp combines the parts of each row."""
        text = self._text()
        given, places = self._rooms(text, parts)
        text.lines += [
            (f"parts = {text.size(parts)}", None),
            (f"i = block() * {THREADS // WARP} + quotient(thread(), {WARP})", None),
            (f"best = np.{self.dtype}(0)", None),
            ("at = -1", None),
            (f"if i < {text.size(self.rows)}:", None),
            (f"    k = rest(thread(), {WARP})", None),
            ("    while k < parts:", None),
            (f"        best, at = better(best, at, {given}[i * parts + k], {places}[i * parts + k])", self.root),
            (f"        k = k + {WARP}", None),
            *self._folded(text, WARP),
            (f"if rest(thread(), {WARP}) == 0 and i < {text.size(self.rows)}:", None),
            (f"    {text.store(text.array(self.root))}[i] = at", self.root),
        ]
        return text.launch("finish", ceil_div(self.rows, THREADS // WARP), THREADS, self.names, ranges=ranges)
