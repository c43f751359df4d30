"""Pictures of shapes that do not fit: aligned as NumPy aligns them, with the axis that fails marked. As text, and as a picture.

The shapes are those that the error's message names, in NumPy's own words or in ours; the operands' names are those in the
user's line. It computes nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from tensormagic.ir.errors import TensorError
from tensormagic.notebook.pictures.labels import clean, width
from tensormagic.notebook.speeds.sheet import SCOPE, Sheet, style

_MOST_NAME = 28
_MOST_TEXT = 60
_MOST_AXES = 8
_SHAPE = r"\((?:\w+,(?: ?\w+)?(?:, ?\w+)*|)\)"
_BROADCAST = "compared from the right, sizes must be equal, or one of them 1"
_PRODUCT = "a product sums along the last axis of the left and an axis of the right, which must be equally long"
_JOINED = "all sizes must be equal, except along the axis that is joined"

# what messages say: a pattern, how the shapes are aligned, and the rule
_KNOWN: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile(rf"could not be broadcast together with shapes ((?:{_SHAPE} ?)+)"), "right", _BROADCAST),
    (re.compile(rf"could not broadcast input array from shape ({_SHAPE} into shape {_SHAPE})"), "into", _BROADCAST),
    (re.compile(rf"an array of shape ({_SHAPE} cannot be broadcast to shape {_SHAPE})"), "into", _BROADCAST),
    (re.compile(rf"shapes ({_SHAPE} and {_SHAPE}) (?:do not fit|not aligned)"), "product", _PRODUCT),
    (re.compile(rf"axis must match exactly: ({_SHAPE}(?:, {_SHAPE})+) along axis (\d+)"), "left", _JOINED),
)


@dataclass(frozen=True)
class Misfit:
    """Operands in columns: each has a name and, by column, extents.

    Parameters
    ----------
    names
        What the operands are called.
    shapes
        Their shapes.
    offsets
        The column in which each shape begins.
    clash
        The columns that do not fit.
    rule
        What would.
    kind
        How they are aligned: from the right, for a product, into the second one, or from the left.
    text
        The operation, as the user wrote it; nothing where the operands are not known in it.
    hint
        What would fit.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[str, ...], ...]
    offsets: tuple[int, ...]
    clash: tuple[int, ...]
    rule: str
    kind: str = "right"
    text: str = ""
    hint: str = ""

    @property
    def columns(self) -> int:
        """Return how many columns there are."""
        return max(offset + len(shape) for offset, shape in zip(self.offsets, self.shapes, strict=True))

    def extent(self, operand: int, column: int) -> str:
        """Return an extent; nothing where the operand has no such axis."""
        k = column - self.offsets[operand]
        return self.shapes[operand][k] if 0 <= k < len(self.shapes[operand]) else ""

    def guilty(self, column: int) -> list[int]:
        """Return the operands whose extents do not fit: a 1 does, where others do not."""
        there = [k for k in range(len(self.shapes)) if self.extent(k, column)]
        long = [k for k in there if self.extent(k, column) != "1"]
        return long if len({self.extent(k, column) for k in long}) > 1 else there

    @property
    def told(self) -> str:
        """Return the mismatch in words."""
        pairs = [" and ".join(dict.fromkeys(self.extent(k, c) for k in self.guilty(c))) for c in self.clash]
        return f"{', '.join(pairs)} do not fit"

    @property
    def axes(self) -> str:
        """Return the axes that do not fit: ``the last axis of X and the only axis of y``; empty if several pairs clash."""
        if len(self.clash) != 1:
            return ""
        (column,) = self.clash
        guilty = self.guilty(column)
        found = [f"{self._axis(k, column)} of {self.names[k]}" for k in guilty]
        return f"{', '.join(found[:-1])} and {found[-1]}" if len(found) > 1 else ""

    def _axis(self, operand: int, column: int) -> str:
        """Return an axis in words: the only, the last, the first one, or its number from 0."""
        k, count = column - self.offsets[operand], len(self.shapes[operand])
        return (
            "the only axis"
            if count == 1
            else "the last axis"
            if k == count - 1
            else "the first axis"
            if k == 0
            else f"axis {k}"
        )

    @property
    def heading(self) -> str:
        """Return the operation, and what does not fit in it."""
        return f"{self.text}: {self.told}" if self.text else self.told

    @property
    def words(self) -> tuple[str, ...]:
        """Return the lines below the drawing: the axes, the rule that they break, and what would fit."""
        told = (
            f"a product sums along {self.axes}, which must be equally long"
            if self.kind == "product"
            else f"{self.axes}: {self.rule}"
        )
        return tuple(filter(None, (told if self.axes else self.rule, self.hint)))


def found_in(error: BaseException, texts: Sequence[str], space: Mapping[str, Any]) -> Misfit | None:
    """Return the shapes that an error is about, or None for one that is about something else.

    Parameters
    ----------
    error
        What was raised.
    texts
        The expression that raised it, as the user wrote it; its whole line.
    space
        The variables that it reads.
    """
    if not isinstance(error, ValueError):
        return None
    message = error.message if isinstance(error, TensorError) else str(error)
    for pattern, kind, rule in _KNOWN:
        found = pattern.search(message)
        if found is None:
            continue
        shapes = tuple(tuple(re.findall(r"\w+", shape)) for shape in re.findall(_SHAPE, found[1]))
        offsets, clash = _aligned(shapes, kind, int(found[2]) if kind == "left" else -1)
        if not clash or max(map(len, shapes)) > _MOST_AXES:
            return None
        names, text = _names(texts, shapes, space, kind)
        return Misfit(names, shapes, offsets, clash, rule, kind, text)
    return None


# alignment ------------------------------------------------------------------------------------------------------------

_Shapes = tuple[tuple[str, ...], ...]


def _aligned(shapes: _Shapes, kind: str, joined: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the column in which each shape begins, and the columns that do not fit."""
    if kind == "product":
        return _of_product(*shapes)
    if kind == "left":
        clash = [
            k
            for k in range(max(map(len, shapes)))
            if k != joined and len({s[k] if k < len(s) else "" for s in shapes}) > 1
        ]
        return (0,) * len(shapes), tuple(clash)
    wide = max(map(len, shapes))
    offsets = tuple(wide - len(s) for s in shapes)
    clash = []
    for column in range(wide):
        here = [s[column - at] if column >= at else "1" for s, at in zip(shapes, offsets, strict=True)]
        stretched = [e for e in here if e != "1"]
        if kind == "into":  # the second one stays as it is
            stretched = [here[1], *([here[0]] if here[0] != "1" else [])]
        if len(set(stretched)) > 1:
            clash.append(column)
    return offsets, tuple(clash)


def _of_product(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the last axis of the left one stands above the axis of the right one that it is summed with."""
    inner = max(len(right) - 2, 0)
    column = max(len(left) - 1, inner)
    offsets = (column - len(left) + 1, column - inner)
    return offsets, (column,) if left[-1:] != right[inner : inner + 1] else ()


# names ----------------------------------------------------------------------------------------------------------------


def _names(texts: Sequence[str], shapes: _Shapes, space: Mapping[str, Any], kind: str) -> tuple[tuple[str, ...], str]:
    """Return the operands' names in the user's line, as far as their shapes agree, and the operation."""
    for text in texts:
        operands = _operands(text, kind)
        if len(operands) != len(shapes):
            continue
        for order in (operands, operands[::-1]):
            if all(_may_be(expr, shape, space) for expr, shape in zip(order, shapes, strict=True)):
                written = " ".join(text.split())
                return tuple(_short(ast.unparse(expr)) for expr in order), written if len(written) <= _MOST_TEXT else ""
    if kind == "into":
        return ("value", "place"), ""
    return ("left", "right") if len(shapes) == 2 else tuple(f"operand {k}" for k in range(1, len(shapes) + 1)), ""


def _short(text: str) -> str:
    return text if len(text) <= _MOST_NAME else text[: _MOST_NAME - 1] + "…"


def _operands(text: str, kind: str) -> list[ast.expr]:
    try:
        statement = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return []
    if len(statement) != 1:
        return []
    (first,) = statement
    if isinstance(first, ast.AugAssign):
        return [first.target, first.value]
    if isinstance(first, ast.Assign) and kind == "into":
        return [first.value, first.targets[0]]
    value = getattr(first, "value", None)
    return _within(value) if isinstance(value, ast.expr) else []


def _within(value: ast.expr) -> list[ast.expr]:
    """Return the operands of an operator, a comparison or a call."""
    if isinstance(value, ast.BinOp):
        return [value.left, value.right]
    if isinstance(value, ast.Compare):
        return [value.left, *value.comparators]
    if isinstance(value, ast.Call):
        if len(value.args) == 1 and isinstance(value.args[0], ast.List | ast.Tuple):
            return value.args[0].elts
        if len(value.args) == 1 and isinstance(value.func, ast.Attribute):
            return [value.func.value, *value.args]
        return [a for a in value.args if not (isinstance(a, ast.Constant) and isinstance(a.value, str))]
    return []


def _may_be(expression: ast.expr, shape: tuple[str, ...], space: Mapping[str, Any]) -> bool:
    """Return whether an expression may have that shape: of names that is known."""
    flipped = isinstance(expression, ast.Attribute) and expression.attr == "T"
    name = expression.value if isinstance(expression, ast.Attribute) and flipped else expression
    if not isinstance(name, ast.Name):
        return True
    known = getattr(space.get(name.id), "shape", None)
    if not isinstance(known, tuple):
        return not shape if isinstance(space.get(name.id), int | float | complex) else True
    extents = [str(getattr(s, "hint", s)) for s in (known[::-1] if flipped else known)]
    return len(extents) == len(shape) and all(a == b or not a.isdigit() for a, b in zip(extents, shape, strict=True))


# as text --------------------------------------------------------------------------------------------------------------


def rows(misfit: Misfit) -> list[str]:
    """Return the drawing in monospaced text: a row for each operand, and a mark below what does not fit."""
    count = len(misfit.shapes)
    wide = [max(len(misfit.extent(k, c)) for k in range(count)) for c in range(misfit.columns)]
    first = max(map(len, misfit.names))
    lines: list[str] = []
    for k, name in enumerate(misfit.names):
        cells = [misfit.extent(k, c).rjust(n) for c, n in enumerate(wide)]
        shown = cells[0]
        for c, cell in enumerate(cells[1:], 1):
            both = misfit.extent(k, c - 1) and misfit.extent(k, c)
            shown += (" × " if both else "   ") + cell
        lines.append(f"    {clean(name).ljust(first)}  {shown}".rstrip())
    marks = [("^" if c in misfit.clash else " ") * n for c, n in enumerate(wide)]
    lines.append(f"    {' ' * first}  {'   '.join(marks).rstrip()}  {misfit.told}")
    return lines


# as a picture ---------------------------------------------------------------------------------------------------------


def forms(misfit: Misfit) -> dict[str, str]:
    """Return the drawing in every form that a page may ask for."""
    told = "\n".join(rows(misfit))
    # an image has no name where a page shows it, and this has; words are wrapped where there is little room
    boxes = sheet(misfit, words=False).inline(misfit.told)
    notes = "".join(f'<p class="note">{escape(clean(line))}</p>' for line in misfit.words)
    words = f'<p class="bold">{escape(clean(misfit.heading))}</p>{boxes}{notes}'
    page = f'<div class="{SCOPE}"><style>{style(page=True)}</style>{words}</div>'
    return {"image/svg+xml": sheet(misfit).picture(misfit.heading, told), "text/html": page, "text/plain": told}


_BOX, _TALL, _GAP = 58.0, 34.0, 20.0


def sheet(misfit: Misfit, *, words: bool = True) -> Sheet:
    """Return the drawing as a picture: a box for each axis, those that do not fit with a thick outline and a sign between them.

    ``words`` says whether it stands alone, and so needs its own.
    """
    called = [
        f"{name} ({', '.join(s)}{',' * (len(s) == 1)})" for name, s in zip(misfit.names, misfit.shapes, strict=True)
    ]
    names = max(80.0, min(8.2 * max(map(len, called)) + 14, 300.0))
    told = max(width(misfit.heading, 13, bold=True), *(width(line, 12) for line in misfit.words)) + 28
    wide = names + misfit.columns * (_BOX + _GAP) + 14
    made = Sheet(max(wide, told) if words else wide)
    top = 44.0 if words else 6.0
    if words:
        made.text(14, 26, clean(misfit.heading), "ink bold")
    for k, name in enumerate(called):
        y = top + k * (_TALL + 22)
        made.text(14, y + 22, name, "ink mono", room=names, size=12)
        for column in range(misfit.columns):
            _axis(made, misfit, k, column, names + 14 + column * (_BOX + _GAP), y)
    for column in misfit.clash:
        guilty = misfit.guilty(column)
        for k in [k for k in guilty if k + 1 in guilty and misfit.extent(k, column) != misfit.extent(k + 1, column)]:
            x = names + 14 + column * (_BOX + _GAP) + _BOX / 2
            made.text(x, top + (k + 1) * (_TALL + 22) - 5, "≠", "warn bold", anchor="middle")
    for k, line in enumerate(misfit.words if words else ()):
        made.text(14, top + len(misfit.names) * (_TALL + 22) + 4 + 18 * k, clean(line), "soft small")
    return made


def _axis(made: Sheet, misfit: Misfit, operand: int, column: int, x: float, y: float) -> None:
    extent = misfit.extent(operand, column)
    clashes = column in misfit.clash and operand in misfit.guilty(column)
    box = f"M{x:g} {y:g}h{_BOX:g}v{_TALL:g}h-{_BOX:g}Z"
    if not extent:  # an axis that is not there counts as 1
        if misfit.rule is _BROADCAST:
            made.path(box, "axis dashed")
            made.text(x + _BOX / 2, y + 22, "–", "soft", anchor="middle")
        return
    if clashes:
        made.bar(x, y, _BOX, _TALL, "warn-ground", round_by=0)
    made.path(box, "warn-line thick" if clashes else "axis")
    made.text(x + _BOX / 2, y + 23, extent, "ink bold" if clashes else "ink", anchor="middle")
