"""Print outer loops: chunks whose elements are summed in any order, while the chunks are summed in order; rows along several axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensormagic.backend.printing.kernel_text import KernelText, Line, indented
from tensormagic.ir.size import Size, is_at_least, product

CHUNK = 1024  # elements that are summed in any order, before chunks are added in order
SHORT = 8  # operations of a loop that is printed for one chunk and for several: what it takes to set up is much of a short row's time


@dataclass(frozen=True)
class Group:
    """Loops over neighbouring positions of the domain, run as one."""

    positions: tuple[int, ...]
    name: str
    extent: Size


def in_chunks(
    loop: tuple[str, str],
    body: list[Line],
    sums: Sequence[tuple[str, str, str]],
    *,
    narrow: bool = False,
    twice: bool = False,
) -> list[Line]:
    """Return a loop of sums.

    Parameters
    ----------
    loop
        The name of its variable, and its extent.
    body
        Its statements.
    sums
        For each sum the names of the total and of a chunk's part, and the initial value of the part.
    narrow
        Whether the loop is one chunk.
    twice
        Whether to print a separate loop for a single chunk: it halves the time of a short one.
    """
    name, extent = loop
    begins: list[Line] = [(f"{part} = {zero}", None) for _, part, zero in sums]
    ends: list[Line] = [(f"{total} = {total} + {part}", None) for total, part, _ in sums]
    one: list[Line] = [*begins, (f"for {name} in range({extent}):", None), *indented(body), *ends]
    known = int(extent) if extent.isdecimal() else None
    if narrow or (known is not None and known <= CHUNK):
        return one
    first = f"{name}0"
    end = f"{first} + {CHUNK} if {first} + {CHUNK} < {extent} else {extent}"
    chunk: list[Line] = [
        *begins,
        (f"{name}1 = {end}", None),
        (f"for {name} in range({first}, {name}1):", None),
        *indented(body),
        *ends,
    ]
    several: list[Line] = [(f"for {first} in range(0, {extent}, {CHUNK}):", None), *indented(chunk)]
    if not twice or known is not None:
        return several
    return [(f"if {extent} <= {CHUNK}:", None), *indented(one), ("else:", None), *indented(several)]


def counted(text: KernelText, extents: Sequence[Size]) -> tuple[list[Line], list[Line]]:
    """Return a row's index along each axis, counted from row to row: a division takes the time of twenty operations.

    Returns statements before the loop over rows, and statements at the start of each row.
    """
    begin: list[Line] = []
    steps: list[Line] = []
    for k, extent in enumerate(extents):
        below, own = (_divisor(text, e) for e in (product(tuple(extents[k + 1 :])), extent))
        first = f"(start - 1) // {below}" if below != "(1)" else "(start - 1)"
        begin.append((f"i{k} = {first} % {own}" if k else f"i{k} = {first}", None))
    for k in reversed(range(len(extents))):
        later, wraps = " + ".join(f"i{m}" for m in range(k + 1, len(extents))), text.size(extents[k])
        step = f"i{k} + 1 if i{k} + 1 < {wraps} else 0" if k else f"i{k} + 1"
        steps.append((f"i{k} = i{k} if {later} > 0 else {step}" if later else f"i{k} = {step}", None))
    return begin, steps


def _divisor(text: KernelText, extent: Size) -> str:
    """Return a number of rows as a divisor, never 0 (inside a region it may be before the loop over rows)."""
    size = text.size(extent)
    return f"({size} if {size} > 0 else 1)" if text.depth and not is_at_least(extent, 1) else f"({size})"
