"""Which rewrites of the field's catalogue are made: by number, from NumPy text.

    python benchmarks/rewrites.py

Prints Markdown. `benchmarks/results/rewrites.md` holds a run.
"""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.transform.catalogue import ELSEWHERE, MISSING, ROWS, fires, normal  # noqa: E402


def cell(text: str) -> str:
    """Text as code within a table."""
    return f"`{text}`".replace("|", "\\|")


def main() -> None:
    """Print the table."""
    found = {number: fires(row) for number, row in ROWS.items()}
    whole = {n.rstrip("abc") for n in ROWS} | set(ELSEWHERE)
    partly = {n.rstrip("abc") for n in found if not found[n]}
    some = {n.rstrip("abc") for n in found if found[n]}
    print(f"# The catalogue of rewrites, measured on {date.today():%Y-%m-%d}\n")  # noqa: DTZ011 (the date of the machine that measures)
    print(
        f"Of {len(whole)} rewrites {len(whole - partly)} are made, {len(partly & some)} of them in part and "
        f"{len(partly - some)} not. 35 and 36 would be wrong, and are made when nothing happens.\n"
    )
    print("| # | text | becomes | level | made by |\n|---|---|---|---|---|")
    for number, row in ROWS.items():
        rules = dict.fromkeys(f.rule.name for f in normal(row.text, row.level).fired if not f.rule.quiet)
        own = [r for r in rules if found[number] and r not in NOISE]
        by = "; ".join(map(cell, own)) if not row.caught else "capture"
        after = cell(row.after) if row.after else " ".join([*(f"no {n}" for n in row.gone.split()), row.made])
        done = by or "nothing, rightly" if found[number] else f"**not**: {MISSING[number]}"
        print(f"| {number} | {cell(row.text)} | {after or cell(row.text)} | {row.level} | {done} |")
    print("\n## Made elsewhere than by rules\n\n| # | where |\n|---|---|")
    for number, where in ELSEWHERE.items():
        print(f"| {number} | {where} |")


NOISE = {r.rule.name for r in normal("x", "real").fired}

if __name__ == "__main__":
    main()
