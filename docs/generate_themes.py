"""Writes docs/themes/ from the rules, their examples and ``benchmarks/results/ablation.md``.

``python docs/generate_themes.py``: the pages; with ``draw`` the curves of errors, too. A test holds that the pages are up to date.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import numpy as np  # noqa: E402
from generate_rules import loops, remark  # noqa: E402

import tensormagic as tm  # noqa: E402
from benchmarks.ablation import curves, points  # noqa: E402
from benchmarks.theme_examples import EXAMPLES, Example  # noqa: E402
from tensormagic.config import leveled  # noqa: E402
from tensormagic.functions.explaining import name_in  # noqa: E402
from tensormagic.ir.graph import Graph  # noqa: E402
from tensormagic.ir.rewriting.rule_text import expression  # noqa: E402
from tensormagic.ir.rewriting.rules import LEVELS  # noqa: E402
from tensormagic.transform.rewriting import THEMES, rewrite, rules_in, theme  # noqa: E402

PAGES = ROOT / "docs" / "themes"
MODULES = {theme(module): module for module in THEMES}
WITHOUT_RULES = {
    "loops": """Loops on data whose iterations need nothing of each other become operations on whole arrays, loops that store running
sums or products become scans, what is the same in each iteration is computed before the loop, loops over one range that carry numbers are
one, and what nobody reads is not carried along.""",
    "fusion": """What goes over the same elements is one kernel: each element is read once, and what is in between is stored
nowhere.""",
}
HOW = """Errors are in units of the last place of the true value: NumPy's evaluation of both graphs against 700 digits. At the
upper end no digit is right, or a finite number became inf or nan."""
STYLE = """<style>text { font: 12px sans-serif; fill: #333 } .word { font-weight: 600 } .grid { stroke: #ddd }
.with { fill: #0b62a8 } .without { fill: #c2410c }</style>"""
COUNT = 160
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BELOW = 640, 300, 64, 36, 16, 44
MOST = 1e17
"""The errors at the upper end: all digits are wrong there, or a number became inf or nan."""


def page(name: str) -> str:
    """The page of a theme."""
    example, module = EXAMPLES[name], MODULES.get(name)
    said = (module.__doc__ or "").strip() if module else WITHOUT_RULES[name]
    lines = [f"# {name}", "", "Made by `python docs/generate_themes.py`.", "", said, "", "## An example", ""]
    lines += [example.told, "", "```text", example.text, "```", "", *becomes(name, example)]
    lines += measured(name, example)
    if module:
        lines += ["## The rules", "", *table_of(module)]
    if name == "loops":
        lines += ["## What is told of", "", "| what is done | level | remark |", "|---|---|---|", *loops(), ""]
    return "\n".join([*lines, f"`--without {name}` leaves the theme out ({{doc}}`../options`)."]) + "\n"


def graph_of(example: Example) -> Graph:
    """The example, as it is captured."""
    return tm.trace(example.function, *example.given.values())


def becomes(name: str, example: Example) -> Iterator[str]:
    """The rules of the theme that fire, and what becomes of the example."""
    module = MODULES.get(name)
    graph = graph_of(example)
    found = rewrite(graph, leveled(example.level))
    own = {id(rule) for rule in rules_in(module)} if module else set()
    fired = list(dict.fromkeys(f.rule.name for f in found.fired if id(f.rule) in own))
    if example.level != "stable":
        yield from (f"At *{example.level}*:", "")
    if fired:
        yield from ("These rules of the theme fire:", "", *(f"- `{rule}`" for rule in fired), "")
    shown = name_in(graph)
    new = expression(found.graph.results[0], shown, 110)
    if name != "fusion" and new != expression(graph.results[0], shown, 110):
        yield from ("What runs, with all themes:", "", "```text", new, "```", "")


def measured(name: str, example: Example) -> Iterator[str]:
    """What was measured with the theme and without it."""
    text = (ROOT / "benchmarks" / "results" / "ablation.md").read_text(encoding="utf-8")
    date = re.search(rf"row \*{name}\* was measured on ([\d-]+)", text) or re.search(r"measured on (\S+)", text)
    row = re.search(rf"^\| {name} \| (.*) \|$", text.partition("## Each theme")[2], re.MULTILINE)
    if row is None or date is None:
        raise LookupError(f"benchmarks/results/ablation.md has no row {name}")
    kernels, moved, operations, spent, errors = (tuple(c.split(" / ")) for c in row[1].split(" | "))
    yield from ("## What it is good for", "")
    if example.along:
        yield from (
            f"![Error of the example over {example.axis}, with the theme and without it](../images/theme-{name}.svg)",
            "",
            HOW,
            "",
        )
    yield from ("| | with it | without it |", "|---|---|---|")
    yield f"| kernels, calls of libraries aside | {kernels[0]} | {kernels[1]} |"
    yield f"| megabytes that kernels move | {moved[0]} | {moved[1]} |"
    yield f"| millions of operations | {operations[0]} | {operations[1]} |"
    yield f"| milliseconds of processor time | {spent[0]} | {spent[1]} |"
    if example.along:
        yield f"| worst error at 60 places of the span, in units of the last place | {errors[0]} | {errors[1]} |"
    yield from ("", f"Measured on {date[1]} (`benchmarks/ablation.py`).", "")


def table_of(module: object) -> Iterator[str]:
    """The rules of a theme."""
    yield from ("| rule | level | remark |", "|---|---|---|")
    for rule in sorted(rules_in(module), key=lambda r: LEVELS.index(r.level)):  # type: ignore[arg-type]
        escaped = rule.name.replace("|", "\\|")
        yield f"| `{escaped}` | {rule.level} | {remark(rule)} |"
    yield ""


# the curves -----------------------------------------------------------------------------------------------------------


def drawing(name: str) -> str:
    """The errors of an example over its span, with its theme and without it, as SVG."""
    example = EXAMPLES[name]
    places = points(example, COUNT)
    found = curves(example, name, COUNT)
    low, high = np.log10(example.span)

    def across(t: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(t) - low) / (high - low)

    def up(error: float) -> float:
        share = math.log10(min(max(error, 0.1), MOST) / 0.1) / math.log10(MOST / 0.1)
        return TOP + (HEIGHT - TOP - BELOW) * (1 - share)

    size, told = f'width="{WIDTH}" height="{HEIGHT}"', f'role="img" aria-label="Errors of the example of {name}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {size} {told}>', STYLE]
    lines.append(f'<rect {size} fill="#fff"/>')
    for power in (0, 4, 8, 12, 16):
        y = up(10.0**power)
        lines.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_number(power)}</text>')
    for power in ticks(low, high):
        x = across(10.0**power)
        lines.append(f'<path class="grid" d="M{x:.1f} {TOP}V{HEIGHT - BELOW}"/>')
        lines.append(f'<text x="{x:.1f}" y="{HEIGHT - BELOW + 18}" text-anchor="middle">{_number(power)}</text>')
    for column, kind in ((1, "without"), (0, "with")):
        lines += [_mark(across(t), up(errors[column]), kind) for t, errors in zip(places, found, strict=True)]
    lines += [
        f'<text x="{(WIDTH + LEFT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{example.axis}</text>',
        f'<text x="{LEFT}" y="20">error, units of the last place:</text>',
        _mark(LEFT + 190, 16, "with"),
        f'<text class="word" x="{LEFT + 200}" y="20">with {name}</text>',
        _mark(LEFT + 330, 16, "without"),
        f'<text class="word" x="{LEFT + 340}" y="20">without</text>',
    ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _mark(x: float, y: float, kind: str) -> str:
    """A disc with the theme, a square without it: no colour has to be seen."""
    if kind == "with":
        return f'<circle class="with" cx="{x:.1f}" cy="{y:.1f}" r="2.4"/>'
    return f'<rect class="without" x="{x - 2.2:.1f}" y="{y - 2.2:.1f}" width="4.4" height="4.4"/>'


def _number(power: int) -> str:
    return str(10**power) if 0 <= power < 4 else f"1e{power}"


def ticks(low: float, high: float) -> Sequence[int]:
    """Powers of ten along the axis, seven of them at most."""
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    step = max(1, math.ceil((last - first) / 6))
    return range(first, last + 1, step)


def index() -> str:
    """The page that lists the others."""
    names = [*MODULES, *WITHOUT_RULES]
    lines = ["# Themes of rewriting", "", "Made by `python docs/generate_themes.py`.", ""]
    lines += [
        "Each theme on a page of its own: what it does, an example, what that gains, and its rules. {doc}`../rules` lists all rules."
    ]
    lines += ["", "```{toctree}", ":maxdepth: 1", "", *names, "```"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the pages, and draw."""
    PAGES.mkdir(exist_ok=True)
    (PAGES / "index.md").write_text(index(), encoding="utf-8")
    for name, example in EXAMPLES.items():
        (PAGES / f"{name}.md").write_text(page(name), encoding="utf-8")
        if "draw" in sys.argv and example.along:
            (ROOT / "docs" / "images" / f"theme-{name}.svg").write_text(drawing(name), encoding="utf-8")


if __name__ == "__main__":
    main()
