"""Where a rewritten expression is less accurate than NumPy's own text: drawn expressions, all kinds of numbers, many digits.

    python scripts/check_accuracy.py [--count 400] [--inputs 4000] [--seed 0] [--dtype float32]

Formulas (`tests/transform/never_worse.py`) are drawn with what stands in their places (`x`, `2 * x`, `x + 1`, `1 / x`, ...), and
run as NumPy text and as rewritten at *stable* over the same inputs: numbers of all sizes, special values, the ends of the range,
numbers near 0, near 1 and near each other. Where both differ by more than a unit of the last place, and the machine's longest
numbers do not say that the form is as near, the real value decides, to as many digits as the numbers on the way ask for.

An input counts as *lost* where the text has a number (or the right infinity) and the rewritten form has not; as *worse* where its error
is larger by more than a unit, and over 24 inputs within 8 units and 100 inputs around them, too, on average by half (at one point either
of two roundings may be the lucky one). All inputs where it is larger by more than a unit are counted beside.
`benchmarks/results/never_worse.md` holds a run.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from datetime import date
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.transform.never_worse import Compared, compared, texts  # noqa: E402


def main() -> None:
    """Print what is found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--inputs", type=int, default=4000)
    parser.add_argument("--most", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", default="float64 float32")
    given = parser.parse_args()
    rows: list[Compared] = []
    for number, (subject, text) in enumerate(texts(given.count, given.seed)):
        for dtype in given.dtype.split():
            row = compared(subject, text, np.dtype(dtype), given.inputs, given.seed + number, given.most)
            rows.append(row)
            if row.worse or row.lost:
                print(told(row), file=sys.stderr, flush=True)
    fired = [r for r in rows if r.rules]
    options = f"--count {given.count} --inputs {given.inputs} --most {given.most} --seed {given.seed}"
    worse, lost = [r for r in rows if r.worse], [r for r in rows if r.lost]
    told_date = f"{date.today():%Y-%m-%d}"  # noqa: DTZ011 (the date of the machine that measures)
    print(f"# Where rewritten forms are less accurate than NumPy's text, measured on {told_date}\n")
    print(f"`python scripts/check_accuracy.py {options}`, at *stable*.\n")
    print(
        f"- {len(rows)} texts and dtypes, {sum(r.tried for r in rows)} inputs; rules change digits in {len(fired)} of them."
    )
    print(
        f"- Of the inputs at which both differ by more than a unit, {sum(r.judged for r in rows)} were held against the real value."
    )
    print(f"- Larger errors by more than a unit: {sum(r.above for r in rows)} inputs;")
    print(f"  on the average around them, too: {sum(len(r.worse) for r in rows)}, in {len(worse)} texts.")
    print(f"- Numbers lost: {sum(len(r.lost) for r in rows)} inputs, in {len(lost)} texts.\n")
    print("| dtype | text | rules | inputs | worst: input, error of the text and of the form |\n|---|---|---|---|---|")
    for row in rows:
        if row.worse or row.lost:
            print(told(row))
    guilty = Counter(rule for row in rows if row.worse or row.lost for rule in row.rules)
    print("\n" + "\n".join(f"- {count} texts: `{rule}`" for rule, count in guilty.most_common(12)))


def told(row: Compared) -> str:
    """A row of the table."""
    worst = max(row.worse, key=lambda w: w[-2] - w[-3], default=None)
    shown = ", ".join(f"{float(v):.9g}" for v in worst[:-3]) + f": {worst[-3]:.1f}, {worst[-2]:.1f}" if worst else ""
    if row.lost:
        shown += " lost at " + ", ".join(str(v) for v in row.lost[0])
    rules = "; ".join(f"`{r}`" for r in row.rules)
    return f"| {row.dtype} | `{row.text.replace('np.', '')}` | {rules} | {len(row.worse)} + {len(row.lost)} | {shown} |"


if __name__ == "__main__":
    main()
