"""Writes docs/rules.md from the tables of rules. ``python docs/generate_rules.py``; a test holds that it is up to date."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import tensormagic  # noqa: F401 (every op that rules speak of)  # pyright: ignore[reportUnusedImport]
from tensormagic.ir.rewriting.rules import LEVELS, Rule
from tensormagic.transform.loops.loop_rules import OF_LOOPS
from tensormagic.transform.rewriting import THEMES, rules, rules_in

HEAD = """# Rules

Made by `python docs/generate_rules.py` from the tables of rules. There are {count} of them on three levels, and each level
contains the ones before it:

- **exact**: the same bits for every input, inf, nan and -0.0 included (every nan counts as the same).
- **stable**, the default: never less accurate than what is replaced. The sign of a zero may differ, and what is nan in the
  replaced form has a value where the remark and the display say so. A rule changes the rounding of a part for all that reads
  its digits, or for none: where a part has another use that stays, the rule is withheld, and the display says so.
- **real**: true of real numbers. What is assumed of the values is listed with the result.

A chapter is a file of `tensormagic/transform/rewriting`; {{doc}}`themes/index` shows what each is good for. Every
rule is tested on its level: bits against bits, or errors
against 700 digits. Variables `c` and `d` are constants, `p` is
what is provably not negative. A rule fires only where it makes the term lighter, or a fixed number of times (*bounded*).
What is done to loops and branches as a whole has names, too: the last chapter.
"""


LOOPS = """What is done to loops and branches as a whole, before and after all other rules. It is told of with its line and with
what it bought: iterations that Python does not go through for a first result, operations, and bytes. What is *stable* here adds
in another order, or computes functions of whole arrays, whose last digit may be another one. `--without loops` leaves all of it
out."""


def remark(rule: Rule) -> str:
    """What has to be known of a rule beside its text."""
    parts = []
    if rule.assumptions:
        parts.append("assumes " + " and ".join(rule.assumptions))
    if rule.extends:
        parts.append(rule.extends)
    if rule.fuel:
        parts.append("bounded")
    return "; ".join(parts)


def page() -> str:
    """The page."""
    lines = [HEAD.format(count=len(rules("real")))]
    for module in THEMES:
        name = module.__name__.rpartition(".")[2]
        lines += [f"\n## {name}\n", (module.__doc__ or "").strip(), "", "| rule | level | remark |", "|---|---|---|"]
        for rule in sorted(rules_in(module), key=lambda r: LEVELS.index(r.level)):
            text = rule.name.replace("|", "\\|")
            lines.append(f"| `{text}` | {rule.level} | {remark(rule)} |")
    lines += ["\n## loops\n", LOOPS, "", "| what is done | level | remark |", "|---|---|---|", *loops()]
    return "\n".join(lines) + "\n"


def loops() -> Iterator[str]:
    """The rows of what is done to loops."""
    for rule in OF_LOOPS:
        if not rule.quiet:
            yield f"| `{rule.name}` | {rule.level} | {rule.extends} |"


if __name__ == "__main__":
    Path(__file__).with_name("rules.md").write_text(page())
