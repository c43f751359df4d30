"""Print loops over narrow rows that call a function such as exp: it is computed over all rows of a tile in one loop.

A row of 7 elements is less than a vector, and one of 30 leaves 6 over, each of which takes the time of a vector.
Where rows turn out narrow when the kernel runs, the operands of the function are packed for all rows of the tile,
the function is computed over them in one loop, and the loop over rows reads its results. The arithmetic of each
element is unchanged.
"""

from __future__ import annotations

import re

from tensormagic.backend.cpu.rows import ROW_STEP, TILE_ROOM
from tensormagic.backend.planning.kinds import is_heavy, is_map
from tensormagic.backend.printing.body_text import Body
from tensormagic.backend.printing.kernel_text import Line, indented
from tensormagic.ir.node import Node
from tensormagic.ir.size import is_at_least

NARROW = TILE_ROOM // ROW_STEP  # elements: a tile of narrower rows has at most TILE_ROOM elements
_ASSIGNED = re.compile(r"(\w+) = (.+)")
_WORD = re.compile(r"[A-Za-z_]\w*")


def in_two_ways(body: Body, lines: list[Line]) -> list[Line]:
    """Return the loop of a tile, printed as ``lines``, with a second version for narrow rows if there is one."""
    if body.only_where or len(body.groups) != 2 or body.width is None or is_at_least(body.groups[1].extent, NARROW):
        return lines
    inside = body.sections[2]
    calls = [k for k, line in enumerate(inside) if _is_call(*line)]
    if len(calls) != 1 or any(text.startswith((" ", "if ")) for text, _ in (*body.sections[1], *inside)):
        return lines
    line, node = inside[calls[0]]
    name, call = line.split(" = ", 1)
    given = [w for w in dict.fromkeys(_WORD.findall(call)) if body.depth_of.get(w, 0) > 0]
    if node is None or not given:
        return lines
    text, dtype = body.text, node.type.dtype.name
    width, (result, *more) = text.product(body.groups[1].extent), [_room(body, dtype) for _ in given]
    before, here = [*body.sections[1], *inside[: calls[0]]], f"(i - start) * {width} + j"
    read = {value: f"{room}[j]" for value, room in zip(given, (result, *more), strict=True)}
    fill: list[Line] = []
    for value, room in list(read.items()):
        loaded = next((t for t, _ in before if t.startswith(f"{value} = ") and t.endswith(f"[i * {width} + j]")), None)
        if loaded is None:
            fill.append((f"{room[:-3]}[{here}] = {value}", node))
        else:
            read[value] = loaded.split(" = ", 1)[1].replace("[i *", "[start *")
    side: list[Line] = []
    if fill:
        inner = [*_values(inside[: calls[0]]), *fill]
        rows: list[Line] = [*_values(body.sections[1]), (f"for j in range({width}):", node), *indented(inner)]
        side = [("for i in range(start, stop):", node), *indented(rows)]
    along: list[Line] = [(f"{value} = {place}", node) for value, place in read.items()]
    along += [(line, node), (f"{result}[j] = {name}", node)]
    side += [(f"for j in range((stop - start) * {width}):", node), *indented(along)]
    narrow = [
        *side,
        *((t.replace(line, f"{name} = {result}[{here}]") if n is node else t, n) for t, n in body.printed(narrow=True)),
    ]
    return [(f"if {width} < {NARROW}:", None), *indented(narrow), ("else:", None), *indented(lines)]


def _is_call(line: str, node: Node | None) -> bool:
    """Return whether a line assigns the value of a heavy function whose operands have the result's dtype."""
    if node is None or not is_map(node) or not is_heavy(node) or _ASSIGNED.fullmatch(line) is None:
        return False
    return node.type.dtype.kind == "f" and all(a.type.dtype == node.type.dtype for a in node.args)


def _room(body: Body, dtype: str) -> str:
    """Return memory for one value per element of a tile of narrow rows."""
    sharing = body.text.sharing
    return body.text.scratch("side", TILE_ROOM, dtype, body.text.head if sharing is None else sharing.lines)


def _values(lines: list[Line]) -> list[Line]:
    """Return the statements that only compute, without additions to sums and stores."""
    pairs = [(line, _ASSIGNED.fullmatch(line[0])) for line in lines]
    return [line for line, match in pairs if match is not None and match[1] not in _WORD.findall(match[2])]
