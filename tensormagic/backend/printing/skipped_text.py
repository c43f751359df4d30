"""Print loops over rows without the inner loops of rows whose reduction would change nothing."""

from __future__ import annotations

from tensormagic.backend.planning.lower import Stage
from tensormagic.backend.planning.schedule import Nest, Storage
from tensormagic.backend.planning.skipped_folds import Skip, common, is_only_chosen
from tensormagic.backend.printing.body_text import Body, indented
from tensormagic.backend.printing.kernel_text import KernelText, Line
from tensormagic.backend.printing.region_text import number
from tensormagic.ir.size import product


def print_loop(body: Body) -> list[Line]:
    """Return the statements of one tile."""
    asked = _where_needed(body)
    lines = body.print_loop()
    if not body.only_where or body.split_rows:
        return lines
    some, rows = body.text.fresh("some"), f"for {body.groups[0].name} in range(start, stop):"
    asked.append((f"{some} = {some} + (1 if {body.only_where} else 0)", None))
    found: list[Line] = [(f"{some} = 0", None), (rows, None), *indented(asked)]
    found += [(f"if {some} > 0:", None), *indented(lines)]
    if _are_read(body):
        found += [("else:", None), *indented([(rows, None), *indented([*body.sections[1], *body.endings[1]])])]
    return found


def _where_needed(body: Body) -> list[Line]:
    """Restrict a body's inner loops to the rows that need them, and return the statements that find these rows."""
    stages = body.loop.stages
    skip = common(stages)
    if skip is None or not skip.index or not body.nest.depth or len(body.groups) < 2:  # of one number the whole nest is
        return []
    if not all(g.positions[0] in s.reduced for g in body.groups[1:] for s in stages):
        return []
    value = body.value(skip.condition, skip.index)
    body.only_where = skip.text(value)
    return list(body.sections[1])


def _are_read(body: Body) -> bool:
    """Return whether the folds are read even if they have no elements."""
    skip = common(body.loop.stages)
    return skip is None or not all(_is_unread(s, skip, body.nest, body.text) for s in body.loop.stages)


def _is_unread(stage: Stage, skip: Skip, nest: Nest, text: KernelText) -> bool:
    """Return whether nobody reads a fold that has no elements."""
    return nest.storage[stage.root] is Storage.TILE and is_only_chosen(stage.root, skip, nest.stages, text.stored)


def rows_of(text: KernelText, nest: Nest) -> str:
    """Return the number of rows of a nest; 0 if all its folds have no elements and none is read."""
    rows, skip = text.product(product(nest.rows)), common(nest.stages)
    if skip is None or skip.index:
        return rows
    if not all(len(s.reduced) == len(s.domain) or _is_unread(s, skip, nest, text) for s in nest.stages):
        return rows
    value, taken = number(text, skip.condition), text.fresh("taken")
    text.lines.append((f"{taken} = {rows} if {skip.text(value)} else 0", nest.stages[0].root))
    return taken
