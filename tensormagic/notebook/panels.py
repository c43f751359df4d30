"""Panels beside a value, by the names that ``--show`` takes: rewrites, code, the cell's lines, times by line."""

from __future__ import annotations

from collections.abc import Callable

from tensormagic.backend.cuda.listing import device_source
from tensormagic.ir.node import Node
from tensormagic.notebook.forms import Panel, listing, table
from tensormagic.notebook.pictures.adaptor import Portrait
from tensormagic.notebook.pictures.labels import symbol

__all__ = ["PANELS", "Draw", "nan"]


_HEAD = ("rule", "level", "where", "source")


def rewrites(shown: Portrait) -> Panel:
    """Every rule that fired: its text, level, the user's lines, and its own source line."""
    logs = [shown.first, shown.executable.rewritten] if shown.gradients else [shown.first]
    fired = {
        (f.rule.name, f.rule.level, _lines(shown, f.before), f.rule.source.rpartition("/")[2]): None
        for log in logs
        for f in log.fired
    }
    rows = [list(key) for key in fired]
    rows += [
        [f"withheld: {w.rule.name}", w.rule.level, _lines(shown, w.node), f"{symbol(w.shared.op.name)} {w.why}"]
        for w in logs[-1].withheld
    ]
    rows += [[f"assumed: {text}", "real", "", ""] for log in logs for text in log.assumptions]
    return table("rewrites", _HEAD, rows) if rows else table("rewrites: no rule has changed anything", (), [])


def _lines(shown: Portrait, node: Node) -> str:
    return ", ".join(dict.fromkeys(str(s) for s in shown.spans(node) or shown.lens.of(node)))


def code(shown: Portrait) -> Panel:
    """What is compiled, and what it is compiled from: the kernels' source, and the rewritten graph."""
    if shown.device == "gpu":
        parts = [listing("kernels for the GPU", device_source(shown.executable.graph))]
    else:
        from tensormagic.notebook.annotate import statements

        kernels = [statements(shown, kernel) for kernel in shown.plan.kernels]
        told = ["\n".join(f"{t}  # line {n}" if n else t for t, n in lines) for lines in kernels]
        parts = [listing(f"kernel {k}", text) for k, text in enumerate(told, 1)]
    parts.append(listing("rewritten graph", shown.executable.graph.text))
    return "".join(page for page, _ in parts), "\n\n".join(text for _, text in parts)


# those that are seldom asked for are imported then


def _annotate(shown: Portrait, source: str) -> Panel:
    from tensormagic.notebook.annotate import annotate

    return annotate(shown, source)


def _profile(shown: Portrait, source: str) -> Panel:
    from tensormagic.notebook.speeds.panel import profile

    return profile(shown, source)


def nan(shown: Portrait, source: str) -> Panel:
    """Where the first nan came from."""
    from tensormagic.notebook.nan import nan_panel

    return nan_panel(shown, source)


Draw = Callable[[Portrait, str], Panel]

PANELS: dict[str, Draw] = {  # a new one is a new line: `--show`, its completion and its help go by this table
    "rewrites": lambda shown, source: rewrites(shown),
    "code": lambda shown, source: code(shown),
    "annotate": _annotate,
    "profile": _profile,
}
