"""Random programs of a join, behind which a name is one of several arrays, and of stores through views; how they are held against NumPy."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np

import tensormagic as tm
from tests.programs.errors_of_programs import DifferenceError, is_refusal, places, quiet, told
from tests.programs.growing import INDENT, Program, compiled
from tests.programs.storing import COPIES, HELPERS, NUMBERS, PARTS, STORES, TESTS, arguments

# Statements behind which ``x`` is one of several arrays, or of several parts of one.
JOINS = [
    "if {t}:\n    pass\nelse:\n    for i in range(2):\n        x[i] += 1.0\n        if {t}:\n            x = np.tanh(x)",
    "if {t}:\n    x = y",
    "if {t}:\n    x = {view}\nelse:\n    x = {other}",
    "if {t}:\n    x = {view}\n    if {t}:\n        x = {copy}\n    if {t}:\n        x = {other}",
    "if {t}:\n    if {t}:\n        x = {copy}\n    else:\n        x = {view}\n    x[0] = 2.0\n    if {t}:\n        x = y",
    "if {t}:\n    for i in range(n):\n        if x[i] > y[0]:\n            x = {view}\n            break",
    "for i in range(k[1] + 1):\n    if x[i] > y[0]:\n        x = {view}\n        break",
    "for i in range(n):\n    if x[i] > 0.25:\n        continue\n    x = {copy}\n    if {t}:\n        break",
    "for i in range(2):\n    if {t}:\n        x, y = y, x\n    x[i] += 0.5",
    "for i in range(2):\n    if {t}:\n        x = {view}\n    else:\n        x[:1] = 3.0\n        x = {other}",
    "j = 0\nwhile x[j] < y[0] and j < n - 1:\n    j += 1\n    if {t}:\n        x = {view}",
    "j = 0\nwhile j < 2:\n    j += 1\n    if {t}:\n        x = {copy}\n    x[::-1][0] -= 0.5",
    "try:\n    x = {view} if {t} else x\nfinally:\n    x[1:] += 0.5",
    "x = h_or(x, y, s)",
    "x = h_or({view}, y, x[0])\nif {t}:\n    x = h_new(x, s)",
    "x = h_new(x, s)\nx = h_new(x, y[0])\nx = h_new(x, y[1])",
    "x = [x if s > q else y for q in (0.0, 0.5)][-1]",
    "x = [h_or(x, y, q) for q in (y[0], s)][0]",
    "l = [x, y]\nif {t}:\n    l[0] = l[1]\nx = l[0]",
    "d = {{'a': x}}\nif {t}:\n    d['a'] = {view}\nx = d['a']",
    "def iteration():\n    nonlocal x\n    x = {view}\nif {t}:\n    iteration()",
    "w = x\nif {t}:\n    w = {copy}\nif {t}:\n    x = w",
    "w = y\nif {t}:\n    x, w = w, x\n    if {t}:\n        w = {copy}\nw[1:] = 0.5",
    "for r in (x, y):\n    if r[0] > s:\n        break\nx = r",
    "x = x if {t} else y if {t} else {view}",
    "x = {view}\nif {t}:\n    x = x[::-1]\nif {t}:\n    x = x[::-1]",
    "x = z[0]\nif {t}:\n    x = z[:, 0]",
    "for i in range(2):\n    x = z[i]\n    if x[0] > s:\n        break",
    "x = c.real\nif {t}:\n    x = c.imag",
    "if {t}:\n    x = x[::-1]\n    for i in range(2):\n        if {t}:\n            x = y\n        else:\n            x[i] = 0.25",
    "if {t}:\n    x = x.reshape(-1, 1)[:, 0]\nelif {t}:\n    x = {copy}",
    "(x := {view}) if {t} else None",
]
JOIN_VIEWS = [
    "x[::-1]",
    "y",
    "y[::-1]",
    "x[...]",
    "z[0]",
    "z.T[-1]",
    "c.real",
    "x.reshape(-1)",
    "y[None][0]",
    "x.view()",
]


def joined(seed: int) -> Program:
    """A join, and stores through views of what it leaves: every kind of each comes with some seed."""
    draw = random.Random(seed)

    def test() -> str:
        return draw.choice([*TESTS[:7], "flag", "y[-1] > 0.0"]).format(v="x", w="y", n="0.25")

    text = JOINS[seed % len(JOINS)]
    while "{t}" in text:
        text = text.replace("{t}", test(), 1)
    text = text.format(
        view=draw.choice(JOIN_VIEWS), other=draw.choice(JOIN_VIEWS), copy=draw.choice(COPIES).format(v="x", w="y")
    )
    body = text.split("\n")
    if "nonlocal" in text:  # a cell name: the arrays are those of a function around it
        body = ["def whole(x, y):", *(INDENT + line for line in body), INDENT + "return x", "x = whole(x, y)"]
    stores: list[str] = []
    for _ in range(draw.choice([1, 1, 2])):
        store = draw.choice(STORES)
        number = draw.choice(NUMBERS).format(w="y")
        part = draw.choice(PARTS).format(v="x")
        stores.append(store.format(v="x", w=draw.choice(["x", "y"]), n=number, p=part, i="1"))
    return Program(seed, ["x0 = x", *body, *stores], HELPERS, ["x", "y", "x0", "z", "c"])


def function_of(made: Program) -> Any:
    """A program as a function of what it begins with."""
    space: dict[str, Any] = {"np": np}
    exec(compiled(f"{made.helpers}\n{made.function(tuple(arguments(made.seed)))}", f"storing {made.seed}"), space)
    return space["f"]


def ends(made: Program, variants: int, rounding: float = 0.0) -> Counter[str]:
    """How a program ends as a function, at several sizes: its results and the arrays that it was given as in NumPy, or a refusal.

    Raises
    ------
    DifferenceError
        Where something is different.
    """
    plain = function_of(made)
    captured = tm.tensor(plain)
    found: Counter[str] = Counter()
    for variant in range(variants):
        ours, numpys = arguments(made.seed, variant), arguments(made.seed, variant)
        expected = quiet(lambda given=numpys: plain(*given.values()))
        try:
            results = quiet(lambda given=ours: captured(*given.values()))
        except Exception as error:
            if not is_refusal(error) or not places(error):
                raise DifferenceError(f"variant {variant}: {type(error).__name__}: {error}") from error
            found[f"refused: {told(error)}"] += 1
            continue
        pairs = [(f"result {n}", a, b) for n, a, b in zip(made.names, results, expected, strict=True)]
        pairs += [(f"the argument {n}", ours[n], given) for n, given in numpys.items()]
        for name, a, b in pairs:
            if np.shape(a) != np.shape(b) or not np.allclose(a, b, rtol=rounding, atol=rounding, equal_nan=True):
                raise DifferenceError(f"variant {variant}: {name} is {a} for {b}")
        found["same"] += 1
    return found
