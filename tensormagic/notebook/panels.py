"""Panels beside a value: rewrites, code, the cell's lines with their ops, times by line. Each as HTML and as text."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from xml.sax.saxutils import escape

import numpy as np

from tensormagic.ir.node import Node
from tensormagic.ir.type import product
from tensormagic.notebook.pictures.adaptor import Portrait, steps_of
from tensormagic.notebook.pictures.labels import symbol
from tensormagic.ops.contract import CONTRACT, split

__all__ = ["PANELS", "Panel", "seconds_text", "table"]

Panel = tuple[str, str]
_YELLOW = "background:#f5e27a;color:#111"
_PRE = "margin:2px 0;white-space:pre;overflow-x:auto"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], marked: Sequence[bool] = ()) -> Panel:
    """A table as HTML and as text; the first column is code, marked rows are yellow (and have a sign in the text)."""
    marks = [*marked, *[False] * (len(rows) - len(marked))]
    cells = [[str(cell) for cell in row] for row in rows]
    wide = [max(len(row[k]) for row in [list(head), *cells]) for k in range(len(head))]
    sign = any(marks)

    def line(row: Sequence[str], mark: bool) -> str:
        text = "  ".join(cell.ljust(n) for cell, n in zip(row, wide, strict=True)).rstrip()
        return f"{'*' if mark else ' '} {text}".rstrip() if sign else text

    text = "\n".join(
        [
            title,
            *([line(head, mark=False)] if any(head) else []),
            *(line(row, mark) for row, mark in zip(cells, marks, strict=True)),
        ]
    )
    top = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in head)
    body = "".join(_row(row, mark) for row, mark in zip(cells, marks, strict=True))
    return (
        f"<div><strong>{escape(title)}</strong><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>",
        text,
    )


def _row(cells: Sequence[str], mark: bool) -> str:
    code = "text-align:left;font-family:monospace;white-space:pre"
    styles = [code, *["text-align:left"] * (len(cells) - 1)]
    inside = "".join(f'<td style="{style}">{escape(cell)}</td>' for style, cell in zip(styles, cells, strict=True))
    return f'<tr style="{_YELLOW}">{inside}</tr>' if mark else f"<tr>{inside}</tr>"


def listing(title: str, text: str) -> Panel:
    """Program text under a title, closed until it is asked for."""
    return (
        f'<details open=""><summary>{escape(title)}</summary><pre style="{_PRE}">{escape(text)}</pre></details>',
        f"{title}\n{text}",
    )


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
        [f"withheld: {w.rule.name}", w.rule.level, _lines(shown, w.node), f"{symbol(w.shared.op.name)} has another use"]
        for w in logs[-1].withheld
    ]
    rows += [[f"assumed: {text}", "real", "", ""] for log in logs for text in log.assumptions]
    return table("rewrites" if rows else "rewrites: none", ("rule", "level", "where", "source"), rows)


def _lines(shown: Portrait, node: Node) -> str:
    return ", ".join(dict.fromkeys(str(s) for s in shown.spans(node) or shown.lens.of(node)))


def code(shown: Portrait) -> Panel:
    """What is compiled, and what it is compiled from: the kernels' source, and the rewritten graph."""
    parts = [listing(f"kernel {k}", kernel.source) for k, kernel in enumerate(shown.plan.kernels, 1)]
    parts.append(listing("rewritten graph", shown.executable.graph.text))
    return "".join(page for page, _ in parts), "\n\n".join(text for _, text in parts)


@dataclass
class _Line:
    """What is known of one line of the cell."""

    ops: Counter[str] = field(default_factory=Counter[str])
    work: int = 0
    kernels: set[int] = field(default_factory=set[int])
    yellow: bool = False


def by_line(shown: Portrait) -> dict[int, _Line]:
    """The operations of the rewritten graph by the lines of the cell that they come from."""
    kernel, yellow = steps_of(shown.plan)
    found: dict[int, _Line] = {}
    for node in shown.executable.graph.nodes:
        line = shown.line(node)
        if line is None or not node.args:
            continue
        about = found.setdefault(line, _Line())
        about.ops[symbol(shown.label(node))] += 1
        about.work += work(shown, node)
        about.kernels |= {kernel[node]} if node in kernel else set()
        about.yellow |= node in yellow
    return found


def work(shown: Portrait, node: Node) -> int:
    """How many operations on single numbers a node is: none for what only moves them."""
    kind = getattr(node.op, "kind", "")
    if kind in {"leaf", "move"}:
        return 0
    sizes = [shown.number(product(t.shape)) for n in (node, *node.args) for t in n.types]
    if node.op is CONTRACT:
        (left, right), _ = split(node["subscripts"])
        extents = {
            letter: shown.number(size)
            for part, arg in zip((left, right), node.args, strict=True)
            for letter, size in zip(part, arg.type.shape, strict=True)
        }
        return 2 * prod(extents.values())
    return max(sizes)


def annotate(shown: Portrait, source: str) -> Panel:
    """The cell's lines, each with its ops, estimated cost and kernels; yellow where it stays in NumPy."""
    found = by_line(shown)
    rows: list[list[str]] = []
    marks: list[bool] = []
    for number, text in enumerate(source.splitlines(), 1):
        about = found.get(number)
        if number == 1 and not text.strip():
            continue
        if about is None:
            rows.append([f"{number:3} {text}", "", "", ""])
        else:
            ops = ", ".join(name if count == 1 else f"{count} {name}" for name, count in about.ops.items())
            rows.append(
                [f"{number:3} {text}", ops, _count(about.work), ", ".join(map(str, sorted(about.kernels))) or "–"]
            )
        marks.append(about is not None and about.yellow)
    return table("lines (yellow, *: stays in NumPy)", ("line", "ops", "operations", "kernel"), rows, marks)


def profile(shown: Portrait, source: str) -> Panel:
    """The time that each line takes in NumPy, after rewriting: one run, node by node."""
    found: dict[int, float] = {}
    total = 0.0
    for node, seconds in timed_nodes(shown):
        total += seconds
        line = shown.line(node)
        if line is not None:
            found[line] = found.get(line, 0.0) + seconds
    rows = [
        [
            f"{number:3} {text}",
            seconds_text(found[number]) if number in found else "",
            f"{100 * found[number] / total:.0f} %" if number in found and total else "",
        ]
        for number, text in enumerate(source.splitlines(), 1)
        if number > 1 or text.strip()
    ]
    return table(f"profile: {seconds_text(total)} in NumPy, one run", ("line", "time", "share"), rows)


def timed_nodes(shown: Portrait) -> list[tuple[Node, float]]:
    """Each node of the rewritten graph with the time that NumPy takes for it."""
    graph = shown.executable.graph
    values = dict(zip(graph.parameters, shown.values, strict=True))
    found: list[tuple[Node, float]] = []
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node in values:
                continue
            begin = time.perf_counter()
            values[node] = node.op.evaluate(node, [values[a] for a in node.args], shown.number)  # type: ignore[attr-defined]
            found.append((node, time.perf_counter() - begin))
    return found


def seconds_text(seconds: float) -> str:
    """A time with three digits and its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _count(number: int) -> str:
    for unit, size in ((" G", 10**9), (" M", 10**6), (" k", 10**3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)


PANELS: dict[str, Callable[[Portrait, str], Panel]] = {
    "rewrites": lambda shown, source: rewrites(shown),
    "code": lambda shown, source: code(shown),
    "annotate": annotate,
    "profile": profile,
}
