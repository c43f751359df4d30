"""Print maps of transposed arrays as kernels: a block reads a square of such an array row by row into shared memory.

So both loads and stores are coalesced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tensormagic.backend.cuda.kernels.bodies import Element, flat_nest
from tensormagic.backend.cuda.kernels.calls import Calls, ceil_div, inside
from tensormagic.backend.cuda.kernels.flat import THREADS, Make
from tensormagic.backend.cuda.kernels.launch import Launch
from tensormagic.backend.cuda.kernels.text import CudaText
from tensormagic.backend.planning.lower import IndexTuple
from tensormagic.backend.planning.schedule import Loop, Nest, coefficients
from tensormagic.backend.printing.kernel_text import Line
from tensormagic.ir.node import Node
from tensormagic.ir.size import Size, apply, product
from tensormagic.ops.leaf import IOTA

SIDE = 32  # elements along the side of a square
APART = SIDE + 1  # stride of its rows, which puts the elements of a column into different banks
LEAST = 16  # least extent along an axis for which squares pay
AT_ONCE = THREADS // SIDE


@dataclass
class Square(Element):
    """An element given by its index along each axis; transposed arrays are read from shared memory."""

    across: int = -1  # the axis along which a transposed array is contiguous
    read: list[tuple[str, str, str, Node]] = field(default_factory=list)  # name, array, index, node

    def __post_init__(self) -> None:
        super().__post_init__()
        self.split_rows = True
        self.sections[1] = []

    def flat(self, node: Node, index: IndexTuple) -> str:
        """Return "": elements have no linear index here."""
        del node, index
        return ""

    def _load(self, node: Node, index: IndexTuple) -> str:
        if across(node, index, len(self.nest.rows)) != self.across:
            return super()._load(node, index)
        self.check(node)
        name = self.text.fresh("x")
        self.depth_of[name] = 1
        array, place, _ = self.address(node, index)
        self.read.append((name, array, place, node))
        return name


def across(node: Node, index: IndexTuple, rank: int) -> int:
    """Return the axis along which an array is contiguous if that is not the last one, else -1."""
    factors, _ = coefficients(node, index)
    own = {k: c for k, c in factors.items() if c != 0}
    in_order = [k for k, c in own.items() if c == 1]
    return in_order[0] if len(in_order) == 1 and in_order[0] != rank - 1 and rank - 1 in own else -1


def lies_across(nest: Nest) -> int:
    """Return the axis along which the arrays that maps read are contiguous if that is not the last one, else -1."""
    rank = len(nest.stages[0].domain)
    if rank < 2 or any(s.kind != "map" for s in nest.stages):
        return -1
    own = {s.root for s in nest.stages}
    found = [across(n, i, rank) for s in nest.stages for n, i in s.reads if n.op is not IOTA and n not in own and i]
    return next((k for k in found if k >= 0), -1)


def print_squares(make: Make, nest: Nest, names: Mapping[Node, str], otherwise: tuple[Launch, ...]) -> Launch:
    """Return the launch of a nest that reads transposed arrays."""
    axis, nest = lies_across(nest), flat_nest(nest)
    text, domain = make(), nest.rows
    last = len(domain) - 1
    body = Square(text, nest, Loop((), nest.stages), None, across=axis)
    body.run()
    places = [f"i{k}" for k in range(len(domain))]
    body.sections[1] = [line for line in body.sections[1] if line[0]]
    body.loads = [(name, "", 0, "") for name, _, _, _ in body.read]
    calls = Calls(text, body, body.sections[0], [*places[:-1], places[-1]])
    rooms = [text.fresh("room") for _ in body.read]
    for room, (_, _, _, node) in zip(rooms, body.read, strict=True):
        text.head.append((f'{room} = shared("{node.type.dtype.name}", {SIDE * APART})', node))
    text.lines += [*body.sections[0], *_begin(text, domain, axis)]
    loads: list[Line] = [
        (f"{room}[k * {APART} + column] = {array}[{place}]", node)
        for room, (_, array, place, node) in zip(rooms, body.read, strict=True)
    ]
    values = [f"{room}[column * {APART} + k]" for room in rooms]
    call = f"{calls.name}({', '.join([*places, *calls.shared, *values])})"
    within = f"if i{axis} < {text.size(domain[axis])} and i{last} < {text.size(domain[last])}:"
    text.lines += [
        (f"i{axis} = first_{axis} + column", None),
        *_loop(f"i{last} = first_{last} + k", within, loads),
        ("barrier()", None),
        (f"i{last} = first_{last} + column", None),
        *_loop(f"i{axis} = first_{axis} + k", within, [(call, None)]),
    ]
    squares = ceil_div(domain[axis], SIDE) * ceil_div(domain[last], SIDE)
    others = product(tuple(s for k, s in enumerate(domain) if k not in {axis, last}))
    least = apply("min", domain[axis], domain[last])
    ranges = ((least, LEAST, 1 << 62),)
    return text.launch("squares", squares * others, THREADS, names, ranges=ranges, otherwise=otherwise)


def _begin(text: CudaText, domain: tuple[Size, ...], axis: int) -> list[Line]:
    """Return statements that compute the corner of the square, and its indices along the other axes."""
    last = len(domain) - 1
    lines: list[Line] = [
        (f"column = rest(thread(), {SIDE})", None),
        (f"row = quotient(thread(), {SIDE})", None),
        ("place = block()", None),
    ]
    for k in (last, axis):
        count = text.size(ceil_div(domain[k], SIDE))
        lines += [(f"first_{k} = rest(place, {count}) * {SIDE}", None), (f"place = quotient(place, {count})", None)]
    for k in reversed([k for k in range(len(domain)) if k not in {axis, last}]):
        lines += [
            (f"i{k} = rest(place, {text.size(domain[k])})", None),
            (f"place = quotient(place, {text.size(domain[k])})", None),
        ]
    return lines


def _loop(place: str, within: str, body: list[Line]) -> list[Line]:
    """Return the loop over the rows of a square that a thread processes."""
    lines: list[Line] = [("k = row", None), (f"while k < {SIDE}:", None)]
    return [*lines, *inside([(place, None), (within, None), *inside(body), (f"k = k + {AT_ONCE}", None)])]
