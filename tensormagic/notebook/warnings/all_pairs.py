"""The warning for a loss over all pairs where one over all rows was meant: a column minus a flat array of equal length.

``X @ w`` of a column ``w`` is ``[100, 1]``, ``y`` is ``[100]``, and NumPy makes ``[100, 100]`` of their difference.
It looks at nodes and at the text of the cell, and computes nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tensormagic.ir import site
from tensormagic.ir.node import Node, topological
from tensormagic.ir.size import hint
from tensormagic.notebook.pictures.adaptor import source_of
from tensormagic.notebook.pictures.naming import parsed
from tensormagic.ops.move import BROADCAST, RESHAPE
from tensormagic.transform.grad import depends

MOST_NODES = 2_000  # of a graph that is looked at
MOST_WRITTEN = (24, 24, 40)  # characters of operands, and of a result, that are called as they were written


@dataclass(frozen=True)
class _Pair:
    """An operation of a column and of an array with one axis."""

    node: Node
    column: Node
    plain: Node
    is_left: bool  # whether the column is the left one


def pairs_told(target: Node, moving: Collection[Node], cell: str = "") -> str:
    """Return one sentence about the first operation of a loss that pairs each row with each, or nothing.

    Told is what looks like a slip alone: one of both operands, as a prediction, depends on a variable that a gradient is asked for,
    the other does not, both have the same number of rows, nobody wrote that axis, and the result is summed over both of its axes.
    It begins with the line; without a ``cell``, with the cell and the line.
    """
    nodes = topological([target]) if moving and not target.type.ndim else []
    if not 0 < len(nodes) <= MOST_NODES:
        return ""
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        for arg in node.args:
            users.setdefault(arg, []).append(node)
    found = [pair for pair in _pairs(nodes) if _is_slip(pair, users, moving)]
    for pair in found:
        rows = hint(pair.column.type.shape[0])
        if rows is not None and rows > 1 and rows == hint(pair.plain.type.shape[0]):
            return _in_words(pair, rows, cell)
    return ""


class Pairs:
    """Such sentences about functions that get gradients by a call, ``tm.grad(f)``: they are said below the cell that makes it."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._new: list[str] = []

    def look(self, target: Node, moving: Sequence[Node]) -> None:
        """Look at a value of a function whose gradient is made."""
        text = pairs_told(target, moving)
        if text and text not in self._told:
            self._told.add(text)
            self._new.append(text)

    def tell(self) -> None:
        """Report new pairs."""
        new, self._new = self._new, []
        if new:
            print("\n".join(new))  # noqa: T201 (a line below the cell, as under a captured one)


def _pairs(nodes: Iterable[Node]) -> Iterator[_Pair]:
    """Yield the operations on elements that stretch a column and an array with one axis alike."""
    for node in nodes:
        if node.op.kind != "pointwise" or node.type.ndim != 2 or len(node.args) != 2:
            continue
        given = [arg.args[0] if arg.op is BROADCAST else arg for arg in node.args]
        for column, plain, is_left in ((*given, True), (*given[::-1], False)):
            if (
                column.type.ndim == 2
                and column.type.shape[1] == 1
                and plain.type.ndim == 1
                and plain.type.shape[0] != 1
            ):
                yield _Pair(node, column, plain, is_left)


def _is_slip(pair: _Pair, users: Mapping[Node, list[Node]], moving: Collection[Node]) -> bool:
    predicts = [any(depends([n], m) for m in moving) for n in (pair.column, pair.plain)]
    return predicts[0] is not predicts[1] and not _is_written(pair.column) and _is_summed(pair.node, users)


def _is_written(column: Node) -> bool:
    """Return whether somebody has made a column of an array with one axis, ``x[:, None]``; what ``keepdims`` keeps is none."""
    stack = [column]
    while stack:
        node = stack.pop()
        if node.op is RESHAPE and node.args[0].type.ndim == 1 and node.args[0].op.kind != "fold":
            return True
        if node.op.kind == "pointwise":
            stack += [arg for arg in node.args if arg.type.ndim == 2]
    return False


def _is_summed(node: Node, users: Mapping[Node, list[Node]]) -> bool:
    """Return whether an array only feeds elementwise operations that end in one sum."""
    stack, seen = [node], set[Node]()
    while stack:
        for user in users.get(stack.pop(), ()):
            if user.type.ndim == 2 and user.op.kind == "pointwise":
                stack += [user] if user not in seen else []
                seen.add(user)
            elif user.type.ndim:
                return False
    return True


def _in_words(pair: _Pair, rows: int, cell: str) -> str:
    spans = [s for s in site.of(pair.node) if s.cell == (cell or s.cell) and s.role == "value"]
    if not spans:
        return ""
    place = max(spans, key=lambda s: s.run)
    left, right, whole = _written(source_of(place.cell), place)
    column, plain = (left, right) if pair.is_left else (right, left)
    sides = ("left", "right") if pair.is_left else ("right", "left")
    names = [text or f"the {side} operand" for text, side in zip((column, plain), sides, strict=True)]
    at = f"line {place.line}" if cell else str(place)
    shapes = f"{names[0]} has shape ({rows}, 1) and {names[1]} has shape ({rows},)"
    told = f"{at}: {shapes}, so {whole or 'the result'} has shape ({rows}, {rows})"
    better = f"{plain}[:, None]" if plain.isidentifier() else f"{column}[:, 0]" if column.isidentifier() else ""
    advice = f"write {better}" if better else "give both the same shape"
    return f"{told}: every row with every row. To pair them one by one, {advice}."


def _written(source: str, place: site.Site) -> tuple[str, str, str]:
    """Return the source of both operands of an operator, and of the whole expression; empty strings for long ones."""
    tree = parsed(source)
    for part in ast.walk(tree) if tree is not None else ():
        if isinstance(part, ast.BinOp) and _site_of(part, place) == place:
            texts = (ast.get_source_segment(source, one) or "" for one in (part.left, part.right, part))
            left, right, whole = (
                text if len(text) <= most else "" for text, most in zip(texts, MOST_WRITTEN, strict=True)
            )
            return left, right, whole
    return "", "", ""


def _site_of(part: ast.expr, place: site.Site) -> site.Site:
    """Return a site like another one, at the place of a part of the text."""
    end = part.end_lineno or 0, part.end_col_offset or 0
    return replace(place, line=part.lineno, column=part.col_offset, end_line=end[0], end_column=end[1])
