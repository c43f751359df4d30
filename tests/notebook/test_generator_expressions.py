"""Generator expressions and ``filter``: what is taken from them is gone, in cells and in captured functions."""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.notebook.sameness import difference, form

SPACE = {"np": np, "itertools": itertools, "functools": functools, "math": math, "statistics": statistics}
START = "import functools, itertools, math, statistics\nimport numpy as np\nx, L = np.linspace(-1.0, 2.0, 7), [3.0, 1.0, 2.0]"
TAKEN = [  # what is bound, and what is asked of it
    ("g = (v * 2 for v in x)", "sum(g), sum(g), list(g)"),
    ("g = (v * 2 for v in x if v > 0)", "list(g), sum(g), next(g, None)"),
    ("g = (v for v in x)", "max(g), max(g, default=-1)"),
    ("g = (i * v for i, v in enumerate(x))", "np.fromiter(g, float), list(g)"),
    ("g = (v for v in L)", "tuple(g), tuple(g)"),
    ("g = (v + 1 for v in L if v > 1.5)", "sorted(g), any(g), all(g)"),
    ("g = (v for v in x)\nfor v in g:\n    if v > 0: break", "list(g)"),
    ("g = (v for v in x); a = 0.0 in g", "list(g)"),
    ("g = (v for v in x if v > -2); h = (2 * v for v in g)", "sum(h), sum(g), sum(h)"),
    ("g = (v for v in x); a, b, *c = g", "c, list(g)"),
    ("g = (v for v in x); z = list(zip(g, L))", "z, list(g)"),
    ("g = (v for v in x); t = list(itertools.islice(g, 2)), list(itertools.islice(g, 2)), sum(g)", "t"),
    ("r = map(lambda v: v * 2, x)", "sum(r), sum(r)"),
    ("r = filter(lambda v: v > 0, x)", "sum(r), sum(r)"),
    ("g = (v for v in x); d = dict(zip('ab', g))", "d, len(list(g))"),
    ("g = (np.exp(v) for v in x); m = np.array(list(g)), list(g)", "m"),
    ("g = ((v, -v) for v in x)", "dict(g), dict(g)"),
    ("g = (v for v in x if v > 0)", "','.join(f'{v:.1f}' for v in g), list(g)"),
    ("g = (v for v in x)", "statistics.mean(g), list(g)"),
    ("g = (v for v in x)", "functools.reduce(lambda a, b: a + b, g), list(g), math.fsum(g)"),
]
REFUSED_IN_FUNCTIONS = {  # how many are taken depends on data, or library code asks for numbers
    "list(g)", "dict(g), dict(g)",
    "','.join(f'{v:.1f}' for v in g), list(g)", "statistics.mean(g), list(g)",
}  # fmt: skip


@pytest.mark.parametrize(("bound", "asked"), TAKEN)
def test_in_a_cell(notebook: Any, bound: str, asked: str) -> None:
    found: list[Any] = []
    for magic in ("", "%%tensor -q\n"):
        notebook.ok(START)
        notebook.ok(f"{magic}{bound}\nfound = ({asked},)")
        found.append(form(notebook["found"]))
    assert list(difference(*found)) == []


@pytest.mark.parametrize(("bound", "asked"), TAKEN)
def test_in_a_function(bound: str, asked: str) -> None:
    lines = "".join(f"    {line}\n" for line in bound.splitlines())
    plain = _function(f"def f(x, L=[3.0, 1.0, 2.0]):\n{lines}    return {asked},")
    function = tm.tensor(plain)
    for x in (np.linspace(-1.1, 2.0, 7), np.linspace(1.1, -2.0, 7)):
        if asked in REFUSED_IN_FUNCTIONS:
            with pytest.raises(CaptureError):
                function.graph(x)
            with pytest.warns(tm.PlainRunWarning) if x[0] < 0 else nullcontext():  # once for a reason
                assert list(difference(form(plain(x)), form(function(x)))) == []
            continue
        assert list(difference(form(plain(x)), form(function(x)))) == []


def _function(text: str) -> Any:
    import linecache

    name = f"<generated {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = dict(SPACE)
    exec(compile(text, name, "exec"), space)
    return space["f"]


LENGTHS = {  # which depend on data
    "list of a generator expression": lambda x: list(2 * v for v in x if v > 0),  # noqa: C400 (what is tested)
    "list of filter": lambda x: list(filter(lambda v: v > 0, x)),
    "a loop over filter": lambda x: [v * 2 for v in filter(lambda v: v > 0, x)],
    "sum of filter": lambda x: sum(filter(lambda v: v > 0, x), np.float64(1.0)),
}


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("kind", [np.array, list])
def test_lengths_that_depend_on_data(name: str, kind: Any) -> None:
    plain, function = LENGTHS[name], tm.tensor(LENGTHS[name])
    for values in ([1.5, -2.0, 0.5], [-1.0, -2.0, -0.5], [3.0, 2.0, 1.0]):
        assert list(difference(form(plain(kind(values))), form(function(kind(values))))) == []
