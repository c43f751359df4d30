"""Suggestions for shapes that do not fit: operands transposed, swapped or with an added axis; otherwise the shapes that would fit."""

from __future__ import annotations

from tensormagic.notebook.errors.shape_pictures import Misfit

_TURNS = ("", ".T")
_Shape = tuple[str, ...]


def fits_instead(misfit: Misfit) -> str:
    """Return what to write in place of operands that do not fit; empty unless there are two.

    >>> from tensormagic.notebook.errors.shape_pictures import Misfit
    >>> fits_instead(Misfit(("X", "np.ones(7)"), (("50", "3"), ("7",)), (0, 1), (1,), "", "product"))
    'np.ones(7) has 7 elements, and to the right of X go 3, one for each of its columns.'
    """
    if len(misfit.shapes) != 2:
        return ""
    left, right = misfit.shapes
    first, second = misfit.names
    named = first.isidentifier() and second.isidentifier()
    if misfit.kind == "product":
        return (_turned(first, left, second, right) if named else "") or _beside(first, left, second, right)
    if misfit.kind == "right":
        return _stretched(first, left, second, right, named=named)
    if misfit.kind == "into" and misfit.text:
        return f"{second} takes {_shapes(_all_into(right))}." if right else ""
    return ""


def _turned(first: str, left: _Shape, second: str, right: _Shape) -> str:
    """Return a product of the same two that fits."""
    orders = ((first, left, second, right), (second, right, first, left))
    ways = [(*order, x, y) for order in orders for x in _TURNS for y in _TURNS]
    for one, a, other, b, x, y in sorted(ways, key=lambda way: len(way[4] + way[5])):
        sides = a[::-1] if x else a, b[::-1] if y else b
        flat = (x and len(a) < 2) or (y and len(b) < 2)
        if not flat and all(sides) and sides[0][-1] == sides[1][max(len(b) - 2, 0)]:
            return f"{one}{x} @ {other}{y} fits: is that what you meant?"
    return ""


def _beside(first: str, left: _Shape, second: str, right: _Shape) -> str:
    """Return the size that the second operand of a product must have to fit the first."""
    if not left or not right or not left[-1].isdigit():
        return ""
    has, goes = right[max(len(right) - 2, 0)], left[-1]
    what = "rows" if len(right) > 1 else "elements"
    whole = "one for each of its columns" if len(left) > 1 else "as many as it has elements"
    return f"{second} has {has} {what}, and to the right of {first} go {goes}, {whole}."


def _stretched(first: str, left: _Shape, second: str, right: _Shape, *, named: bool) -> str:
    """Return a remark on the operand that would be broadcast against the one with more axes."""
    for (one, a), (other, b) in (((first, left), (second, right)), ((second, right), (first, left))):
        if len(a) == len(b) + 1 and a[: len(b)] == b and len(b) == 1 and named:
            return f"{other}[:, None] has one row for each row of {one}: write that instead."
    one, a = (first, left) if len(left) >= len(right) else (second, right)
    return f"With {one}, of shape ({', '.join(a)}{',' * (len(a) == 1)}), goes {_shapes(_all_into(a))}."


def _all_into(shape: _Shape) -> list[_Shape]:
    """Return the shapes that broadcast to ``shape``: a row, a column, the whole."""
    column = [(*shape[:-1], "1")] if len(shape) > 1 else []
    return [*([shape[-1:]] if len(shape) > 1 else []), *column, shape]


def _shapes(shapes: list[_Shape]) -> str:
    told = [f"({', '.join(shape)}{',' * (len(shape) == 1)})" for shape in shapes]
    return f"an array of shape {', '.join(told)}, or a single number"
