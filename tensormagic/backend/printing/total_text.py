"""Print reductions over all rows: the total of a tile is added to that of its share, and the shares are added in order."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensormagic.backend.cpu.rows import MOST_SHARES
from tensormagic.backend.planning.lower import Stage
from tensormagic.backend.planning.schedule import Nest
from tensormagic.backend.printing.kernel_text import KernelText, Line, Sharing, indented
from tensormagic.backend.printing.scalar_text import start_text, step_text
from tensormagic.ir.node import Node
from tensormagic.ops.fold import SUM


@dataclass
class Frame:
    """The lines around the loops of a body.

    Parameters
    ----------
    before, after
        Around all of it.
    share, tile
        The first and last lines of a share of the rows, and of a tile of a share.
    """

    before: list[Line] = field(default_factory=list)
    after: list[Line] = field(default_factory=list)
    share: tuple[list[Line], list[Line]] = field(default_factory=lambda: ([], []))
    tile: tuple[list[Line], list[Line]] = field(default_factory=lambda: ([], []))


def total_of(text: KernelText, frame: Frame, root: Node, part: str) -> str:
    """Return the name of a total, with statements that add a tile's result; float sums carry their rounding errors."""
    sharing = text.sharing
    carries = root.op is SUM and root.type.dtype.kind == "f"
    names = _begin(text, root, frame.before if sharing is None else frame.share[0], carries=carries)
    _add(text, root, names, part, frame.tile[1])
    total, lost = names if sharing is None else _gathered(text, frame, root, names, sharing)
    if not carries:
        return total
    value = text.fresh("sum")
    frame.after.append((f"{value} = {total} + {lost} if {lost} - {lost} == 0 else {total}", root))
    return value


def _begin(text: KernelText, root: Node, lines: list[Line], *, carries: bool) -> tuple[str, str]:
    """Return the names of a total and of its rounding error, if that is carried, initialised."""
    zero = start_text(root, text)
    names = text.fresh("total"), text.fresh("lost") if carries else ""
    lines += [(f"{name} = {zero}", root) for name in names if name]
    return names


def _add(text: KernelText, root: Node, names: tuple[str, str], part: str, lines: list[Line]) -> None:
    """Append statements that add a part to a total."""
    total, lost = names
    if not lost:
        lines.append((f"{total} = {step_text(root, total, part, free=False, whole=True)}", root))
        return
    new, back = text.fresh("new"), text.fresh("back")
    lines += [
        (f"{new} = {total} + {part}", root),
        (f"{back} = {new} - {total}", root),
        (f"{lost} = {lost} + (({total} - ({new} - {back})) + ({part} - {back}))", root),
        (f"{total} = {new}", root),
    ]


def _gathered(text: KernelText, frame: Frame, root: Node, names: tuple[str, str], sharing: Sharing) -> tuple[str, str]:
    """Return the total of the shares' parts, in their order, whichever thread ran them."""
    dtype = root.type.dtype
    kind = {"i": "int64", "u": "uint64"}.get(dtype.kind, dtype.name)  # sums of narrow integers are wider
    parts = {name: text.scratch("parts", MOST_SHARES, kind, frame.before) for name in names if name}
    frame.share[1].extend((f"{kept}[first // {sharing.share}] = {name}", root) for name, kept in parts.items())
    total, lost = _begin(text, root, frame.after, carries=bool(names[1]))
    k, part = text.fresh("k"), text.fresh("part")
    inside: list[Line] = [(f"{part} = {parts[names[0]]}[{k}]", root)]
    _add(text, root, (total, lost), part, inside)
    if lost:
        inside.append((f"{lost} = {lost} + {parts[names[1]]}[{k}]", root))
    frame.after += [(f"for {k} in few(0, {sharing.count}):", root), *indented(inside)]
    return total, lost


def own_part(text: KernelText, frame: Frame, nest: Nest, root: Node) -> str:
    """Return the array in which a thread's share accumulates a fold of rows; empty if that is the fold's own array."""
    sharing, key = text.sharing, ("own part", root)
    stage = next(s for s in nest.stages if s.root is root)
    if sharing is None or not folds_columns(stage):
        return ""
    if key not in text.names:
        array, parts, count = text.array(root), text.parts(root, sharing), text.size(root.type.size)
        own, k = text.fresh("own"), text.fresh("k")
        text.names[key] = own
        sharing.lines.append((f"{own} = part_of({array}, {parts}, first // {sharing.share}, {count})", root))
        place = f"{array}[{k}]"
        frame.after += [  # without rows there is no share that would
            (f"for share in few({sharing.count}, 1):", root),
            (f"    for {k} in few(0, {count}):", root),
            (f"        {place} = {start_text(root, text)}", root),
        ]
        added = step_text(root, place, f"{parts}[(share - 1) * ({count}) + {k}]", free=False, whole=True)
        frame.after += [
            (f"for share in few(1, {sharing.count}):", root),
            (f"    for {k} in few(0, {count}):", root),
            (f"        {place} = {added}", root),
        ]
    return text.names[key]


def folds_columns(stage: Stage) -> bool:
    """Return whether a stage folds the rows, with one result for each position along other axes."""
    return 0 in stage.reduced and len(stage.reduced) < len(stage.domain)
