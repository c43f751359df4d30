"""Panels beside a value, by the names that ``--show`` takes: rewrites, code, the cell's lines, times by line."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from math import log10
from typing import Any

import numpy as np

from tensormagic.functions.accuracy import Errors
from tensormagic.functions.explaining import UNIT, Explained, tidying
from tensormagic.ir.node import Node
from tensormagic.ir.site import Site
from tensormagic.ir.type import Type
from tensormagic.notebook.display.forms import Panel, listing, table
from tensormagic.notebook.pictures.adaptor import Portrait, written_in
from tensormagic.notebook.pictures.labels import changes, placeholders, symbol
from tensormagic.ops.meaning import brought_in

_HEAD = ("rule", "what may change", "your line", "rule written in")
_COLUMNS = {  # what the columns mean, where a pointer rests on their heads
    "rule": "what stood there, and what stands there now",
    "what may change": "what the rule may do to the digits of a result; --math exact, stable or real chooses which rules are used",
    "your line": "the cell and the line in which the rule has changed something",
    "rule written in": "the file of tensormagic, or the cell of yours, that states the rule, and the line there",
    "gain and cost": "measured on your values: the error before and after, against many more digits; flops (additions, multiplications and "
    "divisions, those within an exp as well); bytes read and written",
}
_ALONE = "the error of a row is that of its step alone, with exact numbers put in: a row need not begin where the one above it ends"


def rewrites(shown: Portrait) -> Panel:
    """Return every rule that fired: its text, level, the user's lines, and its own source line; those that only tidy up are counted."""
    logs = [shown.first, shown.executable.rewritten] if shown.gradients else [shown.first]
    written = {f.before for f in shown.first.fired}
    rows = list(dict.fromkeys(_row(shown, f, written) for log in logs for f in log.notable))
    return _table(_HEAD, [*rows, *_rest(shown, logs)], logs)


def rules(shown: Portrait) -> Panel:
    """Return the rules with what each step gained in errors, flops and bytes; steps that change no digits are joined."""
    steps = list(Explained(shown.primal, shown.first, lambda: shown.values).steps())
    rows: list[tuple[str, ...]] = []
    for step in steps:
        told = dict.fromkeys(_row(shown, f) for f in step.fired)
        rows += [(*row, "" if k else str(step.bought)) for k, row in enumerate(told)]
    rows += [(*row, "") for row in _rest(shown, [shown.first])]
    measured = [(step.fired[0].before.type, e) for step in steps if isinstance(e := step.bought.errors, Errors)]
    said = [_unit(measured), *[_ALONE] * (len(measured) > 1)] if measured else []
    return _table((*_HEAD, "gain and cost"), rows, [shown.first], of=f" of {shown.called}", said=said)


def _unit(measured: Sequence[tuple[Type, Errors]]) -> str:
    """Return what a unit in the last place is, and how many digits the largest of the errors leaves."""
    told = f"{UNIT}; an error is measured against many more digits"
    found = [
        (t, e)
        for t, errors in measured
        for e in (errors.before, errors.after)
        if 1 < e < np.inf and t.dtype.kind == "f"
    ]
    if not found:
        return f"{told}: one of 0.5 is no more than rounding, and errors below 1 differ little"
    t, error = max(found, key=lambda each: each[1])
    have = -log10(float(np.finfo(t.dtype).eps))
    left = max(have - log10(error), 0.0)
    return f"{told}; of the {have:.1f} digits that a {t.dtype} has, an error of {error:.2g} of them leaves {left:.1f}"


def _table(
    head: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    logs: Sequence[Any],
    *,
    of: str = "",
    said: Sequence[str] = (),
) -> Panel:
    """Return the rows, after them how many steps only tidied up, and what the operations are that rules have brought in."""
    if not rows:
        return table("rewrites: no rule has changed anything", (), [])
    letters = placeholders(" ".join(row[0] for row in rows), "{} in a rule: whatever stands there")
    meant = [f"{name}: {text}" for name, text in brought_in([row[0] for row in rows]).items()]
    notes = [*filter(None, [letters, *said]), *meant]
    left = tidying(max(len(log.fired) - len(log.notable) for log in logs))
    blank = [""] * (len(head) - 2)
    rows = [*rows, *((line, changes("exact"), *blank) for line in left)]
    return table(f"rewrites{of}", head, rows, meant=_COLUMNS, notes=notes)


def _row(shown: Portrait, firing: Any, written: Container[Node] | None = None) -> tuple[str, ...]:
    """Return a rule that fired; ``written`` are the nodes of the value that rules have changed, where others are its gradient's."""
    rule, node = firing.rule, firing.before
    of_value = written is None or node in written or any(s.role == "value" for s in shown.lens.of(node))
    where = _lines(shown, node) or _told(firing.sites)
    return (
        rule.name,
        changes(rule.level),
        where if of_value or not where else f"{where}, gradient",
        written_in(rule),
    )


def _rest(shown: Portrait, logs: Sequence[Any]) -> list[tuple[str, ...]]:
    """Return the rules that were withheld, and the assumptions made."""
    withheld = [
        (
            f"withheld: {w.rule.name}",
            f"not used, {changes(w.rule.level)}",
            _lines(shown, w.node),
            f"{symbol(w.shared.op.name)} {w.why}",
        )
        for w in logs[-1].withheld
    ]
    return withheld + [
        (f"assumed: {text}", "holds where this is so", "", "") for log in logs for text in log.assumptions
    ]


def _lines(shown: Portrait, node: Node) -> str:
    """Return the node's lines in this cell, or else in others, as text: ``In[3] line 2``, ``In[3] lines 2, 4``."""
    return _told(shown.spans(node) or shown.lens.of(node))


def _told(spans: Iterable[Site]) -> str:
    """Return cells and lines of spans as text."""
    found: dict[str, dict[int, None]] = {}
    for place in spans:
        found.setdefault(place.cell, {})[place.line] = None
    return ", ".join(
        f"{cell} line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}" for cell, lines in found.items()
    )


def code(shown: Portrait) -> Panel:
    """Return the kernels' source, and the rewritten graph that it was compiled from."""
    if shown.device == "gpu":
        from tensormagic.backend.cuda.kernels.listing import device_source

        parts = [listing("kernels for the GPU", device_source(shown.executable.graph))]
    else:
        from tensormagic.notebook.display.annotate import statements

        kernels = [statements(shown, kernel) for kernel in shown.executable.plan.kernels]
        told = ["\n".join(f"{t}  # line {n}" if n else t for t, n in lines) for lines in kernels]
        parts = [listing(f"kernel {k}", text) for k, text in enumerate(told, 1)]
    parts.append(listing("rewritten graph", shown.executable.graph.text))
    return "".join(page for page, _ in parts), "\n\n".join(text for _, text in parts)


# those that are seldom asked for are imported then


def _annotate(shown: Portrait, source: str) -> Panel:
    from tensormagic.notebook.display.annotate import annotate

    return annotate(shown, source)


def _profile(shown: Portrait, source: str) -> Panel:
    from tensormagic.notebook.speeds.profile import profile

    return profile(shown, source)


def nan(shown: Portrait, source: str) -> Panel:
    """Return where the first nan came from."""
    from tensormagic.notebook.nan import nan_panel

    return nan_panel(shown, source)


Draw = Callable[[Portrait, str], Panel]

PANELS: dict[str, Draw] = {  # a new one is a new line: `--show`, its completion and its help go by this table
    "rewrites": lambda shown, source: rewrites(shown),
    "code": lambda shown, source: code(shown),
    "annotate": _annotate,
    "profile": _profile,
}
