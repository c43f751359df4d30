"""An example of each theme of rewriting, as NumPy text: what the pages of the themes show, and what is measured for them."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import tensormagic as tm

Array = np.ndarray[Any, Any]
draw = np.random.default_rng(0)
ROWS = draw.normal(size=(500, 400))
SQUARE = draw.random((300, 300))
LONG = draw.normal(size=200_000)


@dataclass(frozen=True)
class Example:
    """A function as text, its arguments, and where its error is drawn.

    Parameters
    ----------
    text
        Statements; the last one is an expression, the result.
    given
        Its arguments by name, as large as for a measurement of time.
    told
        What the arguments are, in words.
    along
        By one number ``t`` the arguments for which the error is drawn; none where no digits change.
    span
        From where to where ``t`` goes.
    axis
        What ``t`` is.
    level
        Where its rules are.
    """

    text: str
    given: dict[str, Any]
    told: str
    along: Callable[[float], tuple[Any, ...]] | None = None
    span: tuple[float, float] = (1.0, 1.0)
    axis: str = "x"
    level: str = "stable"

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The text as a function."""
        *before, last = self.text.strip().splitlines()
        body = "".join(f"    {line}\n" for line in (*before, f"return {last}"))
        source, file = f"def example({', '.join(self.given)}):\n{body}", f"example of a theme: {last}"
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        space: dict[str, Any] = {"np": np, "tm": tm}
        exec(compile(source, file, "exec"), space)  # noqa: S102 (the texts of this file)
        return space["example"]


def spread(low: float, high: float, count: int = 200_000) -> Array:
    """Numbers of all magnitudes between two."""
    return 10.0 ** draw.uniform(np.log10(low), np.log10(high), count)


def one(t: float) -> tuple[Any, ...]:
    """An array of one element."""
    return (np.array([t, t]),)


EXAMPLES: dict[str, Example] = {
    "constants": Example(
        "u = np.full(x.shape, a)\nx * np.exp(-u) + np.sin(u)",
        {"x": LONG, "a": 0.3},
        "`x` has 200,000 numbers, `a` is a number.",
    ),
    "structure": Example(
        "y = np.zeros(x.size + 2)\ny[1:-1] = x\ny[1:-1] * 2 + np.concatenate([x, x])[: x.size]",
        {"x": LONG},
        "`x` has 200,000 numbers.",
    ),
    "assumed": Example(
        "x = tm.assume(x, (x > 0) & np.isfinite(x), check=False)\nnp.sqrt(x * x) + np.sign(x) * np.tanh(x / x)",
        {"x": np.abs(LONG)},
        "`x` has 200,000 positive numbers.",
    ),
    "triples": Example(
        "np.sqrt(x * x + y * y - 2 * x * y * np.cos(z))",
        {"x": spread(1, 100), "y": spread(1, 100), "z": spread(1e-12, 3)},
        "`x` and `y` have 200,000 numbers between 1 and 100, `z` between 1e-12 and 3; drawn for x = y = 2.",
        lambda t: (np.array([2.0, 2.0]), np.array([2.0, 2.0]), np.array([t, t])),
        (1e-12, 3),
        "z",
    ),
    "differences": Example(
        "np.arctan(x + y) - np.arctan(x)",
        {"x": spread(1, 100), "y": spread(1e-12, 1)},
        "`x` has 200,000 numbers between 1 and 100, `y` between 1e-12 and 1; drawn for x = 2.",
        lambda t: (np.array([2.0, 2.0]), np.array([t, t])),
        (1e-16, 1e2),
        "y",
    ),
    "identities": Example(
        "1 - np.sin(x)",
        {"x": spread(0.01, 1.5707)},
        "`x` has 200,000 numbers between 0.01 and 1.5707.",
        one,
        (0.01, 1.5707),
    ),
    "algebra": Example(
        "np.sqrt(x**2 + y**2)",
        {"x": LONG, "y": LONG[::-1].copy()},
        "`x` and `y` have 200,000 numbers; drawn for y = 0.7 x.",
        lambda t: (np.array([t, t]), np.array([0.7 * t, 0.7 * t])),
        (1e-200, 1e200),
    ),
    "explog": Example(
        "np.log(1 + np.exp(-x))",
        {"x": spread(0.1, 700)},
        "`x` has 200,000 numbers between 0.1 and 700.",
        one,
        (0.1, 740),
    ),
    "ranges": Example(
        "np.log(x**3 * np.exp(-x))",
        {"x": spread(0.1, 2000)},
        "`x` has 200,000 numbers between 0.1 and 2,000.",
        one,
        (0.1, 1e4),
    ),
    "reductions": Example(
        "np.log(np.sum(np.exp(x), axis=1))",
        {"x": ROWS},
        "`x` has 500 rows of 400 numbers; drawn for rows of 4, from t to t + 3.",
        lambda t: (np.array([[t, t + 1, t + 2, t + 3]] * 2),),
        (0.1, 1e4),
        "t",
    ),
    "remainders": Example(
        "x - np.sin(x)",
        {"x": spread(1e-8, 1)},
        "`x` has 200,000 numbers between 1e-8 and 1.",
        one,
        (1e-8, 10),
    ),
    "parts": Example("(a @ b)[:4]", {"a": SQUARE, "b": SQUARE.T.copy()}, "`a` and `b` are 300 by 300."),
    "structured": Example(
        "np.diag(d) @ a",
        {"d": SQUARE[0], "a": SQUARE},
        "`d` has 300 numbers, `a` is 300 by 300.",
        level="real",
    ),
    "linalg": Example(
        "np.linalg.inv(a) @ v * np.trace(a @ b)",
        {"a": SQUARE + 300 * np.eye(300), "b": SQUARE, "v": SQUARE[0]},
        "`a` and `b` are 300 by 300, `v` has 300 numbers.",
        level="real",
    ),
    "loops": Example(
        "out = np.zeros((300, 300))\nfor k in range(300):\n    out[k] = a[k] @ b\nout",
        {"a": SQUARE, "b": SQUARE.T.copy()},
        "`a` and `b` are 300 by 300.",
    ),
    "fusion": Example("np.exp(-x * x) * np.tanh(x) + 0.5 * x", {"x": LONG}, "`x` has 200,000 numbers."),
}
