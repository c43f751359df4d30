"""Programs drawn at random that ask for numbers of arrays and move them about: lists, dictionaries, sets and tuples, chosen by data."""

import random

START = """
import numpy as np

rng = np.random.default_rng({seed})
x = rng.normal(size=60)
w = rng.normal(size=60)
k = rng.integers(0, 7, 60)
"""

LOOPS = (
    ("for i in range(60):", "x[i]", "k[i]"),
    ("for i, v in enumerate(x):", "v", "int(k[i])"),
    ("for i, (v, n) in enumerate(zip(x, k)):", "v", "n"),
    ("for i in range(len(l) - 1):", "l[i]", "k[i]"),
    ("for v in x:", "v", "int(np.floor(v * 2)) % 7"),
    ("for v, u, n in zip(x, w, k):", "(v if n < 4 else u)", "n"),
)
TESTS = (
    "{v} > 0",
    "{v} > best",
    "{n} == 3",
    "0 < {v} < 1",
    "{v} < 0 and {n} > 2",
    "not ({v} > 0.5 or {n} == 1)",
    "{v} + 0.5 > {n} - 3",
)
STEPS = (
    "a.append({v})",
    "b.append({n})",
    "(a if {v} > 0 else l).append({v})",
    "best = {v}",
    "best, second = {v}, best",
    "c[{n}] = c.get({n}, 0) + 1",
    "d[{n}] = {v}",
    "rows[{n}].append({v})",
    "rows[{n} % 2].append(({n}, {v}))",
    "l[{n}], l[{n} + 1] = l[{n} + 1], l[{n}]",
    "seen.add({n})",
    "count += 1",
    "steps += 0.5",
    "word = word + 'abcdefghij'[{n}]",
    "if a:\n    a.pop()",
    "if len(l) > 40:\n    l.pop(0)",
    "j = {n}\nwhile j > 0 and l[j - 1] > l[j]:\n    l[j], l[j - 1] = l[j - 1], l[j]\n    j -= 1",
    "count += int({v} * 3)",
    "total += {v}",  # is computed, and left: all of the loop is run as any other
    "a.append({v} * 2)",
    "d[{n}] = float({v})",
    "best = max(best, {v})",
)
BEFORE = """
a, b, l, c, d, rows, seen = [], [], list(x[:50]), {}, {}, [[] for _ in range(7)], set()
best, second, count, steps, total, word = x[3], 0.0, 0, 0.0, 0.0, ""
"""
AFTER = """
h = a, b, l, c, d, rows, sorted(seen), best, second, count, steps, total, word
kept = [v for v in [*l, *a, best, second, total, *[u for u in d.values()]]]
s = sum((n % 5 + 1) * v for n, v in enumerate(kept)) + x[0] * w[0]
s
"""


def program(seed: int) -> str:
    """One of them."""
    draw = random.Random(seed)
    lines = [BEFORE.strip()]
    for _ in range(draw.randint(1, 2)):
        head, v, n = draw.choice(LOOPS)
        lines.append(head)
        moves = STEPS if draw.random() < 0.3 else STEPS[:18]
        for _ in range(draw.randint(1, 4)):
            step = draw.choice(moves).format(v=v, n=n).replace("\n", "\n    ")
            if draw.random() < 0.6 and "\n" not in step:
                lines.append(f"    if {draw.choice(TESTS).format(v=v, n=n)}:\n        {step}")
            else:
                lines.append("    " + step)
    return "\n".join([*lines, AFTER.strip()])
