"""Loops that begin with a number of Python's, over data of another dtype: value, class and dtype are NumPy's, in cells and in functions."""

from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tests.notebook.conftest import Notebook

STARTS = ("0", "0.0", "0.1", "1", "0.5", "3", "-2.7")
DTYPES = ("float32", "float32", "float64", "int32", "uint8")
STEPS = (
    "s = s + v",
    "s += v",
    "s = s*0.3 + v",
    "s = 0.5*(s + v)",
    "s = s - v*0.1",
    "s = max(s, v)",
    "s = v if v > s else s",
    "s = np.maximum(s, v)",
    "s = s + abs(v)",
    "s = (s + v) / 2",
    "s = s + t\n    t = v",
    "if v > 0:\n        s = s + v",
    "if v > 0:\n        s += v\n        t += 1",
)
HELD = ("0", "0.0", "1", "0.5", "3")  # exactly a number of each floating dtype: a branch may leave them as they are
FORMS = ("for v in a:", "for k in range(len(a)):\n    v = a[k]", "k = 0\nwhile k < len(a):\n    v = a[k]\n    k += 1")


def drawn(seed: int) -> tuple[str, np.ndarray[Any, Any]]:
    """A program, as the text of a cell, and its data."""
    r = random.Random(seed)
    step, dtype = STEPS[seed % len(STEPS)], r.choice(DTYPES)
    start = r.choice(HELD if step.startswith("if") else STARTS)
    data = np.random.default_rng(seed).normal(size=r.choice((2, 40))) * 1.3
    data = np.abs(data * 5) if dtype == "uint8" else data * 10 if dtype == "int32" else data
    return f"t = 1.5\ns = {start}\n{r.choice(FORMS)}\n    {step}\n", data.astype(dtype)


def said(*values: Any) -> list[tuple[str, str]]:
    """Classes and texts of values."""
    return [(type(v).__name__, repr(v)) for v in (v.numpy() if hasattr(v, "numpy") else v for v in values)]


@pytest.mark.parametrize("seed", range(52))
def test_numbers_are_those_of_python(notebook: Notebook, monkeypatch: pytest.MonkeyPatch, seed: int):
    monkeypatch.setattr(tm.config, "math", "exact")
    text, data = drawn(seed)
    plain: dict[str, Any] = {"np": np, "a": data}
    exec(text, plain)
    want = said(plain["s"], plain["t"])
    notebook["a"] = data
    notebook.ok("%%tensor --quiet\n" + text)
    assert said(notebook["s"], notebook["t"]) == want, text
    source = "def f(a):\n" + "".join(f"    {line}\n" for line in text.splitlines()) + "    return s, t\n"
    name = f"<weak start {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {"np": np}
    exec(compile(source, name, "exec"), space)
    assert said(*tm.tensor(space["f"])(data)) == want, text
