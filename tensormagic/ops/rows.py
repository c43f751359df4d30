"""The axis along which the rows of a batch lie in the result of an op, given that in its operands: what the rules of the kinds share.

Rows are split into chunks of neighbours. A rule gives the axis of rows in the result, or, for a reduction over them,
the name of the ufunc that combines the results of two chunks. An axis of rows may be shorter than the batch by a
number: its element k is then computed from the rows from k on, as that of ``x[1:] - x[:-1]`` is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from tensormagic.ir.node import Node, moves
from tensormagic.ir.size import Size, atoms
from tensormagic.ir.substituting import substitute

Axes = Sequence[Any]
"""The axis of rows in each operand; None for one that is the same for all rows; a tuple for a node with several results."""
Found = int | str | tuple[int | None, ...]
"""The axis of rows in a result, or a tuple of these; for a reduction over rows, the ufunc that combines two of its parts."""
FIRST = "first"
"""In place of a ufunc: all chunks have the same value, and the first one's is taken."""


SUM = "add"
"""A sum over rows: the value of a chunk is a part of it."""


def is_linear(node: Node, axes: Axes) -> bool:
    """Return whether a node of partial sums over rows is itself a partial sum: the node of the sums is the sum of the parts' nodes."""
    summed = [a == SUM for a in axes]
    if any(a is not None and a != SUM for a in axes):
        return False
    match node.op.linear:
        case "together":
            return all(summed)
        case "each":
            return sum(summed) == 1
        case "rest":
            return not summed[0] and all(summed[1:])
        case linear:
            return summed[0] and not any(summed[1:]) and (moves(node) or linear == "first")


class Merged(int):
    """An axis merged from that of the rows and others, as in ``x.reshape(-1)``: chunks have parts of it in another order.

    Parameters
    ----------
    axis
        Its number.
    of
        The sizes merged into it; None for a value that is constant along it.
    at
        Which of these is that of the rows.
    """

    of: tuple[Size, ...] | None
    at: int

    def __new__(cls, axis: int, of: tuple[Size, ...] | None, at: int = 0) -> Self:
        made = super().__new__(cls, axis)
        made.of, made.at = of, at
        return made


def shifted(axis: int, by: int) -> int:
    """Return an axis of rows with its number changed by ``by``."""
    return Merged(axis + by, axis.of, axis.at) if isinstance(axis, Merged) else axis + by


class Mixed(Exception):  # noqa: N818 (caught where the user's line is known)
    """Raised if rows are combined in a way that has no rule."""


def common_axis(axes: Sequence[int | None]) -> int:
    """Return the axis of rows that all operands have; raise Mixed if it is not the same."""
    found = set(axes)
    if found == {None}:
        raise Mixed("has a size that follows from the number of rows")
    if None in found:
        raise Mixed("combines rows with a value that is not split")
    if len(found) != 1:
        raise Mixed("combines values whose rows are along different axes")
    merged = [a for a in axes if isinstance(a, Merged)]
    orders = {(a.of, a.at) for a in merged if a.of is not None}
    if len(orders) > 1 or (merged and len(merged) < len(axes)):
        raise Mixed("takes together rows that are put together with other axes in different ways")
    kinds: Sequence[int] = [a for a in merged if a.of is not None] or merged or [a for a in axes if a is not None]
    return kinds[0]


def other_axis(axes: Axes, own: Sequence[int]) -> int:
    """Return the axis of rows for an op that runs along its own axes and keeps the shape; raise Mixed if these are the same."""
    axis = common_axis(axes)
    if axis in own:
        raise Mixed("runs along the rows, and each of these depends on others")
    return axis


def missing_rows(size: Size, rows: Size) -> int | None:
    """Return how much smaller a size is than the number of rows, or None if that is not a known number of at least 0.

    Examples
    --------
    >>> from tensormagic.ir.size import symbol
    >>> n = symbol("n")
    >>> missing_rows(n - 2, n), missing_rows(n + 1, n), missing_rows(3, n)
    (2, None, None)
    """
    less = rows - size
    return less if isinstance(less, int) and less >= 0 else None


def is_multiple(size: Size, rows: Size) -> bool:
    """Return whether a size is a multiple of the number of rows for every such number."""
    own = atoms(rows)
    return bool(own) and set(own) <= set(atoms(size)) and size == substitute(size, dict.fromkeys(own, 1)) * rows


def rows_in(shape: Sequence[Size], rows: Size) -> int | None:
    """Return the first axis of a shape as long as the batch, or shorter by a fixed number, or None."""
    return next((k for k, size in enumerate(shape) if missing_rows(size, rows) is not None), None)


def axis_of_rows(node: Node, axes: Axes, rows: Size) -> Found:
    """Return the axis of rows in a result; for a partial result, the ufunc that combines two.

    Parameters
    ----------
    node
        A node that reads rows, or whose shape has their number.
    axes
        The axis of rows in each operand; None for an operand that is not split.
    rows
        The number of rows.
    """
    return node.op.split(node, axes, rows)
