"""Print loops over several rows of a matrix at once: an operand that is read along each row is read once for all of them.

A matrix-vector product takes the time of reading the matrix, and a processor reads four streams of memory faster
than one. The arithmetic of each row is unchanged, and accumulations over rows keep their order.
"""

from __future__ import annotations

import re

from tensormagic.backend.cpu.rows import TILE_ROOM
from tensormagic.backend.planning.schedule import Nest, Storage
from tensormagic.backend.printing.body_text import Body, indented
from tensormagic.backend.printing.kernel_text import Line
from tensormagic.ir.size import Size, is_at_least
from tensormagic.ops.contract import CONTRACT

ABREAST = 4  # rows
WIDE = 512  # elements of a row, from which on there are several at once
FEW = TILE_ROOM // WIDE + 1  # rows: a tile of fewer has several in their place
_MOST = 8  # operations of a row's elements: more need the registers that several rows would
_ASSIGNED = re.compile(r"(\w+) = (.+)")
_STORED = re.compile(r"(\w+\[.+?\]) = (.+)")
_WORD = re.compile(r"[A-Za-z_]\w*")


def may_be_abreast(nest: Nest, width: Size | None) -> bool:
    """Return whether a nest multiplies a matrix with one or more vectors, with rows that may be wide."""
    if nest.depth != 1 or width is None or is_at_least(WIDE - 1 - width, 0):
        return False
    if not any(s.root.op is CONTRACT for s in nest.stages) or nest.ops > _MOST:
        return False
    plain = all(s.kind in {"map", "fold"} and not s.heavy and s.root.type.dtype.kind == "f" for s in nest.stages)
    lodged = [s for s in nest.stages if nest.storage.get(s.root) is Storage.TILE]
    return plain and all(p is None or p < nest.depth for s in lodged for p in s.place)


def abreast(body: Body, lines: list[Line]) -> list[Line]:
    """Return the loop of a tile, printed as ``lines``, rewritten to process several rows at once if rows are wide."""
    if len(body.groups) != 2 or body.only_where or body.split_rows or body.chunked or any(body.frame.tile):
        return lines
    before, inside, after = body.sections[1], body.sections[2], [*body.endings[2], *body.endings[1]]
    own = _of_rows([text for text, _ in (*before, *inside, *after)])
    if body.endings[2] or own is None:
        return lines
    text, along = body.text, body.groups[1]
    even, width = text.fresh("even"), text.product(along.extent)
    several: list[Line] = [
        *_copies(before, own),
        (f"for {along.name} in range({width}):", None),
        *indented(_copies(inside, own)),
        *_copies(after, own),
    ]
    whole = f"start + (stop - start) // {ABREAST} * {ABREAST}"
    return [
        (f"{even} = {whole} if {width} >= {WIDE} else start", None),
        (f"for i in range(start, {even}, {ABREAST}):", None),
        *indented(several),
        *[
            (line.replace("(start, stop)", f"({even}, stop)") if k == 0 else line, n)
            for k, (line, n) in enumerate(lines)
        ],
    ]


def _of_rows(lines: list[str]) -> set[str] | None:
    """Return the names that differ between rows in straight-line statements, or None if the lines are anything else."""
    pairs: list[tuple[str, str]] = []
    known = set[str]()
    for line in lines:
        match = _ASSIGNED.fullmatch(line)
        if match is None and _STORED.fullmatch(line) is None:
            return None
        if match is not None:
            pairs.append((match[1], match[2]))
    names = {name for name, _ in pairs}
    for name, value in pairs:
        if not names.isdisjoint(set(_WORD.findall(value)) - known):
            return None  # it goes on from row to row
        known.add(name)
    own = {"i", *(name for name, _ in pairs if [n for n, _ in pairs].count(name) > 1)}
    while True:
        more = {name for name, value in pairs if not own.isdisjoint(_WORD.findall(value))} - own
        if not more:
            return own
        own |= more


def _copies(lines: list[Line], own: set[str]) -> list[Line]:
    """Return statements for several rows: each repeated for all rows, or once if it depends on no row and stores nothing."""
    found: list[Line] = []
    for line, node in lines:
        match = _ASSIGNED.fullmatch(line)
        rows = range(ABREAST if match is None or match[1] in own else 1)
        found += [(_WORD.sub(lambda word, k=k: _named(word[0], k, own), line), node) for k in rows]
    return found


def _named(word: str, row: int, own: set[str]) -> str:
    if not row or word not in own:
        return word
    return f"(i + {row})" if word == "i" else f"{word}_{'abcd'[row]}"
