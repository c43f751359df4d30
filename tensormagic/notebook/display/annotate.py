"""The cell's own lines, each with its operations, what they cost, the kernels they fused into, and the code made of it.

A page needs no script for it: a line is a ``details`` element, which a click or Enter opens. Lines of which NumPy runs a
part are yellow, and say so.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from tensormagic.backend.planning.costs import Cost, by_node
from tensormagic.backend.planning.plan import Plan, PlannedKernel
from tensormagic.functions.explaining import FLOPS
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import Node
from tensormagic.notebook.display.forms import Drawn, count_text, table
from tensormagic.notebook.pictures.adaptor import Portrait
from tensormagic.notebook.pictures.carrying import CARRIES
from tensormagic.notebook.pictures.labels import clean, counted, operation, symbol
from tensormagic.notebook.speeds.sheet import SCOPE, Sheet, style
from tensormagic.ops.effects.checks import REQUIRE
from tensormagic.ops.form import FORM

if TYPE_CHECKING:
    from tensormagic.backend.cuda.outline import Outline


_MARKED = "yellow, *: NumPy runs a part of it"
_WIDE = 820.0
_MOST_ROWS = 60
_STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
_WORD = re.compile(r"[^\W\d]\w*")
_ARRAY = re.compile(r"\b([^\W\d]\w*) = (?:array|growing)\(")  # what a kernel is given by the user's name
_SHORT = 40  # lines of a kernel that is shown whole
_HEADS = ("becomes", "flops", "runs in")
_HEAD = f"<span></span>{''.join(f'<span>{head}</span>' for head in _HEADS)}"
_UNWRITTEN = (FORM, REQUIRE)  # what changes the class of a number, and what asks whether a value is allowed


@dataclass
class Line:
    """What is known of one line of the cell.

    Parameters
    ----------
    ops
        The operations, by name.
    cost
        What they are in numbers, loops as often as they run.
    kernels
        The numbers of the kernels that they have become a part of.
    calls
        The library calls that they have become, and those of them that NumPy does for want of a kernel.
    """

    ops: Counter[str] = field(default_factory=Counter[str])
    cost: Cost = field(default_factory=Cost)
    kernels: set[int] = field(default_factory=set[int])
    calls: list[str] = field(default_factory=list[str])
    slow: list[str] = field(default_factory=list[str])

    @property
    def yellow(self) -> bool:
        """Return whether NumPy runs a part of it."""
        return bool(self.slow)

    @property
    def where(self) -> str:
        """Return where it runs, in words."""
        parts = (
            [f"kernel{'s' * (len(self.kernels) > 1)} {', '.join(map(str, sorted(self.kernels)))}"]
            if self.kernels
            else []
        )
        parts += ["NumPy" if self.slow else "library"] if self.calls else []
        return " + ".join(parts) or "–"


def annotate(shown: Portrait, source: str) -> Drawn:
    """Return the panel."""
    kernels = list(shown.outline.kernels)
    found, yours = by_line(shown, kernels), _variables(source)
    whole = sum(line.cost.flops for line in found.values()) or 1
    gone = merged(shown, found)
    texts = [(k, text) for k, text in enumerate(source.splitlines(), 1) if k > 1 or text.strip()]
    rows: list[list[str]] = []
    pages: list[str] = []
    for number, text in texts:
        line = found.get(number)
        cells = [gone.get(number, ""), "", ""] if line is None else [_ops(line), _cost(line), line.where]
        rows.append([f"{number:3} {text}", *cells])
        if line is None:
            told = f"<span>{gone[number]}</span>" if number in gone else ""
            pages.append(f'<div class="bare">{_summary(number, text, None, 0.0)}{told}</div>')
            continue
        summary = _summary(number, text, line, line.cost.flops / whole)
        body = "".join(_code(shown, kernels[k - 1], k, number, yours) for k in sorted(line.kernels)) + _calls(line)
        kind = (
            "yellow" if line.yellow else "other"
        )  # no class that a page may have, as nbconvert's classic one has `row`
        pages.append(f'<details class="{kind}"><summary>{summary}</summary><div class="made">{body}</div></details>')
    marks = [number in found and found[number].yellow for number, _ in texts]
    keys = _keys(rows, gradients=bool(shown.gradients))
    head = ("line", "becomes", "flops", "runs in")
    words = table(f"lines ({_MARKED})" if any(marks) else "lines", head, rows, marks, notes=keys)[1]
    head = f'<div class="bare head"><span class="number">line</span>{_HEAD}</div>'
    note = "click a line for its code" + (f"; {_MARKED.replace(', *', '')}" if any(marks) else "")
    note = "<br/>".join(map(escape, [note, *keys]))
    title = f'<strong>lines of the cell</strong> · <span class="note">{note}</span>'
    page = f'<div class="{SCOPE} tm-lines"><style>{style(page=True)}{_STYLE}</style>{title}{head}{"".join(pages)}</div>'
    return Drawn(page, words, _picture(texts, found, gone, whole, keys).picture("lines of the cell", words))


# what is known --------------------------------------------------------------------------------------------------------


def by_line(shown: Portrait, kernels: list[PlannedKernel]) -> dict[int, Line]:
    """Return the nodes of the rewritten graph, grouped by the line of the cell that they come from."""
    found: dict[int, Line] = {}
    lines: dict[Node, int] = {}
    for node, cost, around in by_node(shown.executable.graph.nodes, shown.number):
        number = line_of(shown, node)
        if number is None and node is not around:  # rewritten inside a loop: as its operands, else as the loop
            number = next((lines[a] for a in node.args if a in lines), None) or line_of(shown, around)
        if number is None or not node.args:
            continue
        lines[node] = number
        if node.op in _UNWRITTEN:
            continue
        line = found.setdefault(number, Line())
        line.ops[operation(shown.label(node))] += 1
        line.cost += cost
    for k, kernel in enumerate(kernels, 1):
        for number in {line_of(shown, n) for n in kernel.printed.origins if n is not None}:
            if number in found:
                found[number].kernels.add(k)
    for node in _library(shown.outline):
        number = line_of(shown, node)
        if number is not None:
            _note_call(shown, found.setdefault(number, Line()), node)
    return found


def merged(shown: Portrait, found: Mapping[int, Line]) -> dict[int, str]:
    """Return what became of lines whose operations rules have removed: ``merged into line 5``."""
    told: dict[int, str] = {}
    graphs = [shown.primal]
    for graph in graphs:
        into: dict[Node, int | None] = {}  # the line that computes with what a node gives
        for node in reversed(graph.nodes):
            graphs += [inner for inner in node.params.values() if isinstance(inner, Graph)]
            line = line_of(shown, node) if node.args and node.op not in _UNWRITTEN else None
            users = line if line in found else into.get(node)
            if line is not None and line not in found:
                told[line] = f"merged into line {users}" if users is not None else "left out: rules have replaced it"
            for arg in node.args:
                into.setdefault(arg, users)
    return told


def _note_call(shown: Portrait, line: Line, node: Node) -> None:
    operands = ", ".join(_type(shown, a) for a in node.args)
    told = f"{symbol(shown.label(node))}({operands}) -> {_type(shown, node)}"
    line.calls.append(told)
    if shown.outline.is_slow(node):
        line.slow.append(told)


def _type(shown: Portrait, node: Node) -> str:
    return ", ".join(map(shown.type_text, node.types))


def _library(plan: Plan | Outline) -> Iterator[Node]:
    """Yield what NumPy computes, also in regions whose iterations Python runs."""
    for node in plan.library_steps:
        if node not in plan.regions:
            yield node
        for inner in plan.regions.get(node, {}).values():
            yield from _library(inner)


def line_of(shown: Portrait, node: Node) -> int | None:
    """Return the line of the cell that a node comes from, also for a node inside a loop."""
    return shown.line_within(node)


# pages ----------------------------------------------------------------------------------------------------------------


def _ops(line: Line) -> str:
    told = {name: count for name, count in line.ops.items() if name not in CARRIES} or line.ops
    return ", ".join(counted(told))


def _keys(rows: Sequence[Sequence[str]], *, gradients: bool) -> list[str]:
    """Return explanations of the signs and words that occur in the rows."""
    becomes, runs = (" ".join(row[k] for row in rows) for k in (1, 3))
    known = {
        "what the gradient of a line computes is counted at that line": gradients,
        FLOPS: True,
        "a dot \N{MIDDLE DOT}: the value of another operation": "\N{MIDDLE DOT}" in becomes,
        "(2): two such operations": re.search(r"\(\d+\)(,|$| )", becomes) is not None,
        "kernel: a compiled function that does the work of one line or of several": "kernel" in runs,
        "library: a compiled routine that NumPy or SciPy brings": "library" in runs,
    }
    return [key for key, there in known.items() if there]


def _cost(line: Line) -> str:
    return f"{'' if line.cost.known else '≥ '}{count_text(line.cost.flops)}"


def _summary(number: int, text: str, line: Line | None, share: float) -> str:
    """Return the row of a line: number, code, operations, how many, and where they run."""
    shown = f'<span class="number">{number}</span><code>{escape(clean(text))}</code>'
    if line is None:
        return shown
    bar = f'<i style="width:{100 * share:.0f}%"></i>' if share >= 0.005 else ""
    told = (("", escape(_ops(line))), (" cost", f"{bar}<b>{_cost(line)}</b>"), ("", escape(line.where)))
    return shown + "".join(
        f'<span class="told{kind}"><i class="of">{head}: </i>{text}</span>'
        for head, (kind, text) in zip(_HEADS, told, strict=True)
    )


def statements(shown: Portrait, kernel: PlannedKernel) -> list[tuple[str, int | None]]:
    """Return the lines of a kernel's source, and the line of the cell that each is for.

    What an earlier cell of the same graph has written is told in a comment: the kernel's own name the cell that was printed first.
    """
    numbers = [None if node is None else line_of(shown, node) for node in (None, *kernel.printed.origins)]
    texts = [text.partition("  # ")[0] for text in kernel.source.splitlines()]
    others = [
        "",
        *(min((str(s) for s in shown.lens.of(n)), default="") if n is not None else "" for n in kernel.printed.origins),
    ]
    return [
        (f"{text}  # {other}" if other and number is None else text, number)
        for text, number, other in zip(texts, numbers, others, strict=True)
    ]


def _variables(source: str) -> set[str]:
    """Return the names that a cell has for values."""
    try:
        tree = ast.parse("\n".join(f"#{row}" if row.startswith("%%") else row for row in source.splitlines()))
    except SyntaxError:
        return set()
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - {"np", *dir(builtins)}


def _not_yours(texts: Sequence[str], whole: str, yours: AbstractSet[str]) -> list[str]:
    """Return the names in a kernel's lines that the cell has for something else: no arrays that the user calls so."""
    words = {word for text in texts for word in _WORD.findall(text.partition("  # ")[0])}
    return sorted(words & yours - set(_ARRAY.findall(whole)))


def _code(shown: Portrait, kernel: PlannedKernel, number: int, line: int, yours: AbstractSet[str]) -> str:
    """Return a kernel's source with the statements of this line marked; of long source only these and the lines around them."""
    texts, lines = zip(*statements(shown, kernel), strict=True)
    kept = (
        set(range(len(texts)))
        if len(texts) <= _SHORT
        else _around(list(texts), [k for k, n in enumerate(lines) if n == line])
    )
    rows: list[str] = []
    for k, (text, own) in enumerate(zip(texts, lines, strict=True)):
        if k not in kept:
            rows += [] if rows[-1:] == ["⋮"] else ["⋮"]
            continue
        body = escape(text, quote=False)
        told = "" if own is None else f"<em>  # line {own}</em>"
        rows.append(f"<mark>{body}</mark>{told}" if own == line else f"{body}{told}")
    others = sorted({n for n in lines if n is not None} - {line})
    shared = f", shared with line{'s' * (len(others) > 1)} {', '.join(map(str, others))}" if others else ""
    code = "\n".join(rows)
    same = _not_yours([text for k, text in enumerate(texts) if k in kept], kernel.source, yours)
    names = (
        f"the compiler's, {' and '.join(filter(None, [', '.join(same[:-1]), same[-1]]))} too"
        if same
        else "the compiler's"
    )
    told = f"kernel {number}{shared}; the code of this line is marked; its names are {names}"
    return f'<p>{told}</p><pre tabindex="0">{code}</pre>'


def _around(texts: list[str], marked: list[int]) -> set[int]:
    """Return the marked statements, and the heads of the loops and branches around them."""
    kept = {0, *marked}
    for k in marked:
        depth = len(texts[k]) - len(texts[k].lstrip())
        for above in range(k - 1, 0, -1):
            own = len(texts[above]) - len(texts[above].lstrip())
            if own < depth:
                kept.add(above)
                depth = own
    return kept


def _calls(line: Line) -> str:
    """Return the library calls of a line."""
    quick = [c for c in line.calls if c not in line.slow]
    parts = [("computed by a library", quick), ("computed by NumPy, outside of kernels", line.slow)]
    return "".join(
        f'<p>{head}</p><pre tabindex="0">{escape(chr(10).join(calls), quote=False)}</pre>'
        for head, calls in parts
        if calls
    )


def _picture(
    texts: list[tuple[int, str]], found: dict[int, Line], gone: Mapping[int, str], whole: int, keys: Sequence[str]
) -> Sheet:
    """Return the rows as a picture that stands alone: without the code, which takes a page that opens."""
    sheet = Sheet(_WIDE)
    sheet.text(14, 26, "lines", "ink bold")
    if any(line.yellow for line in found.values()):
        sheet.text(54, 26, _MARKED, "soft small")
    columns = (46.0, 380.0, 550.0, 685.0)
    for x, name in zip(columns[1:], ("becomes", "flops", "runs in"), strict=True):
        sheet.text(x, 26, name, "soft small")
    y = 30.0
    for number, text in texts[:_MOST_ROWS]:
        y += 20
        line = found.get(number)
        if line is not None and line.yellow:
            sheet.bar(6, y - 14, _WIDE - 12, 19, "yellow")
            sheet.text(10, y, "*", "ink bold")
        sheet.text(38, y, str(number), "ink small" if line is not None and line.yellow else "soft small", anchor="end")
        sheet.text(columns[0], y, text, "ink mono", room=325)
        if line is None:
            sheet.text(columns[1], y, gone.get(number, ""), "ink small", room=165, size=11)
            continue
        sheet.bar(columns[2] - 4, y - 12, 125 * line.cost.flops / whole, 15, 'heat" fill-opacity="0.45', round_by=1)
        for x, cell, room in zip(columns[1:], (_ops(line), _cost(line), line.where), (165, 130, 132), strict=True):
            sheet.text(x, y, cell, "ink small", room=room, size=11)
    if len(texts) > _MOST_ROWS:
        y += 20
        sheet.text(46, y, f"… {len(texts) - _MOST_ROWS} more lines", "soft small")
    for key in keys:
        y += 18
        sheet.text(columns[0], y + 8, key, "soft small")
    return sheet
