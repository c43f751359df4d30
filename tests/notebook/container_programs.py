"""Programs drawn over a few lists with several names, chosen by data-dependent conditions: in cells, and as functions."""

import random

START = """
import numpy as np
a, b, c = [1.0, 2.0], [3.0, -4.0], [0.5, 0.25]
t, d = a, {'k': c}
"""
SHOWN = "[[round(float(i), 7) for i in l] for l in (a, b, c, t, d['k'])]"
ALIKE = "[l is m for l in (a, b, c, t, d['k']) for m in (a, b, c, t, d['k'])]"
NAMES = "abct"
CONDITIONS = ("x[0] > 0", "x[1] > 0", "v > 0", "v > 0.5", "a[0] > b[0]", "x.sum() > 1")


def statement(draw: random.Random, *, inner: bool) -> list[str]:
    """Lines that bind or change one of the lists; ``v`` is a number."""
    n, m, p = (draw.choice(NAMES) for _ in range(3))
    condition = draw.choice(CONDITIONS)
    kinds = [
        [f"{n} = {m} if {condition} else {p}"],
        [f"if {condition}: {n} = {m}"],
        [f"if {condition}: {n}, {m} = {m}, {n}"],
        [f"{n}[0] += v"],
        [f"{n}[1] = {m}[0] * 0.5"],
        [f"{n} = [{m}[0] * 0.9, {p}[1] + v]"],
        [f"if {condition}: {n}[0] = v", f"else: {m}[1] = v"],
        [f"({n} if {condition} else {m})[1] += 1.0"],
        [f"{n} = {m}"],
        [f"{n} = list({m})"],
        [f"d['k'] = {n}", f"{m} = d['k']"],
    ]
    if inner and draw.random() < 0.1:
        return [f"if {condition}:", *(f"    {line}" for line in statement(draw, inner=False))]
    return draw.choice(kinds)


def program(seed: int) -> str:
    """A program over an array ``x``: statements, mostly a loop over its elements, statements."""
    draw = random.Random(seed)

    def some(least: int, most: int) -> list[str]:
        return [line for _ in range(draw.randint(least, most)) for line in statement(draw, inner=True)]

    before, body, after = some(0, 2), some(1, 3), some(0, 2)
    over = "x" if draw.random() < 0.7 else "x[:5]"
    loop = [f"for v in {over}:", *(f"    {line}" for line in body)] if draw.random() < 0.8 else []
    return "\n".join(["v = x[2]", *before, *loop, *after])
