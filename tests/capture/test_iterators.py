"""Loops that are left take from an iterator what Python takes, and no more: by variations, against Python itself."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

ITERATORS = {
    "iter": "iter([1.0, 2.0, 3.0, 4.0, 5.0])",
    "range": "iter(range(1, 6))",
    "generator": "(v for v in [1.0, 2.0, 3.0, 4.0, 5.0])",
    "map": "map(float, '12345')",
    "filter": "filter(None, [0.0, 1.0, 2.0, 0.0, 3.0, 4.0, 5.0])",
    "reversed": "reversed([5.0, 4.0, 3.0, 2.0, 1.0])",
    "dictionary": "iter({1.0: 'a', 2.0: 'b', 3.0: 'c', 4.0: 'd'})",
    "islice": "itertools.islice([1.0, 2.0, 3.0, 4.0, 5.0], 4)",
    "chain": "itertools.chain([1.0, 2.0], [3.0, 4.0])",
}
LOOPS = {
    "break": "    for v in it:\n        if v > 2: break\n        s = s + x * v\n",
    "break last": "    for v in it:\n        s = s + x * v\n        if v == 2: break\n    else:\n        s = s * 7\n",
    "data": "    for v in it:\n        if v > x[1]: break\n        s = s + x * v\n",
    "continue": "    for v in it:\n        if v == 1: continue\n        s = s + x * v\n        if v == 3: break\n",
    "nested": "    for k in range(3):\n        for v in it:\n            s = s + x * v\n            break\n",
    "next": "    for k in range(40):\n        s = s + x * k\n        if k == 35: s = s * next(it)\n",
    "listed": "    for k in range(3):\n        s = s + x * sum(it)\n",
    "drawn": "    for k in range(3):\n        s = s + x * sum([v for v in it])\n",
    "twice": "    for v in it:\n        if v == 2: break\n    for v in it:\n        s = s + x * v\n        if v == 3: break\n",
    "return": "    for v in it:\n        s = s + x * v\n        if v == 3: return s\n",
    "through enumerate": "    for k, v in enumerate(it):\n        s = s + x * v\n        if k == 1: break\n",
    "through zip": "    for v, w in zip(it, [1.0, 2.0, 3.0]):\n        s = s + x * v * w\n        if w == 2: break\n",
}


def _function(loop: str, after: str) -> Any:
    text = f"def f(x, it):\n    s = x * 0\n{loop}    {after}\n"
    name = f"<iterators {hash(text)}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    space: dict[str, Any] = {"np": np, "itertools": itertools, "__name__": "iterators"}
    exec(compile(text, name, "exec"), space)
    return space["f"]


@pytest.mark.parametrize("made", ITERATORS)
@pytest.mark.parametrize("loop", LOOPS)
def test_what_a_loop_leaves_in_an_iterator(loop: str, made: str) -> None:
    """The result, and what is left, of an iterator that is given, and of one that the function makes and goes on with."""
    x = np.array([1.0, 2.5])
    make = eval(f"lambda: {ITERATORS[made]}", {"itertools": itertools})
    for after, text in (
        ("return s", LOOPS[loop]),
        ("return s + sum(it)", f"    it = {ITERATORS[made]}\n{LOOPS[loop]}"),
    ):
        plain = _function(text, after)
        captured = tm.tensor(_function(text, after))
        for _ in range(2):
            here, there = make(), make()
            expected = plain(x, here)
            if loop == "data":
                with pytest.raises(CaptureError, match="a data-dependent number of values from a"):
                    captured(x, there)
                continue
            found = captured(x, there)
            np.testing.assert_array_equal(found, expected)
            assert list(there) == list(here)


@pytest.mark.parametrize(
    "over",
    [
        "itertools.product(range(2), range(3))",
        "zip([1, 2, 3], [4, 5, 6])",
        "((k, 2 * k) for k in [1, 2, 3])",
        "itertools.combinations([1, 2, 3], 2)",
        "enumerate(iter([5, 6, 7]))",
    ],
)
@pytest.mark.parametrize("limit", [0.0, 4.0, 1000.0])
def test_an_iterator_that_only_the_loop_has(over: str, limit: float) -> None:
    """Data may say when a loop over it is left: nobody can tell what it has taken."""
    loop = f"    for a, b in {over}:\n        s = s + x * (a + b)\n        if s[0] > it: break\n"
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(
        tm.tensor(_function(loop, "return s"))(x, limit), _function(loop, "return s")(x, limit)
    )


@pytest.mark.parametrize("count", ["itertools.count()", "itertools.count(3)", "itertools.count(2, -1)"])
def test_a_loop_that_counts(count: str) -> None:
    """`itertools.count` has no end: a loop over it becomes one that data end."""
    loop = f"    for k in {count}:\n        s = s + x\n        if s[0] > it: break\n"
    x = np.array([1.0, 2.0])
    plain, captured = _function(loop, "return s, k"), tm.tensor(_function(loop, "return s, k"))
    for limit in (0.0, 2.5, 300.0):
        (found, k), (expected, last) = captured(x, limit), plain(x, limit)
        np.testing.assert_array_equal(found, expected)
        assert k == last


def test_a_generator_without_an_end() -> None:
    """What no loop of the graph can hold is refused, and not captured for ever."""
    loop = "    def halves(a):\n        while True:\n            yield a\n            a = a / 2\n"
    loop += "    for s in halves(x):\n        if s[0] < it: break\n"
    with pytest.raises(CaptureError, match=r"more than 250 iterations, a data-dependent number of which is done"):
        tm.tensor(_function(loop, "return s"))(np.array([1.0, 2.0]), 0.1)
