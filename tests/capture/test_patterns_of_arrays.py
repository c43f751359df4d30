"""``match`` on arrays: patterns of sequences match them where NumPy's do, which is so since 2.5; and patterns beside classes of a cell."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm

from .harness import assert_equal, check

ARRAYS = {
    "three": np.array([1.0, 2.0, 3.0]),
    "one": np.array([4.0]),
    "nothing": np.zeros(0),
    "rows": np.arange(4.0).reshape(2, 2),
    "no axes": np.array(2.0),
    "a number": np.float64(2.0),
    "a list": [1.0, 2.0, 3.0],
}


def of_three(x):
    match x:
        case [a, b, c]:
            return a * b + c
        case _:
            return x * 5.0


def with_a_star(x):
    match x * 2.0:
        case [a, *rest]:
            return a, len(rest), rest
        case []:
            return "nothing"
        case _:
            return "other"


def in_a_loop(x):
    total = 0.0
    for k in range(3):
        match x, k:
            case [_, *_], 0 | 2:
                total = total + x.sum()
            case np.ndarray(), n:
                total = total - n
            case _:
                total = total + 100
    return total


def in_a_branch(x):
    if x.sum() > 1.0:
        match x:
            case [first, *_, last] if last > first:
                x = x * last
            case [[a, b], [c, d]]:
                x = x * (a * d - b * c)
    return x


def nested(x):
    match {"of": x, "k": [x, 2]}:
        case {"of": [a, b, c], "k": [[_, d, _], int(k)]}:
            return a + b * c + d * k
        case {"of": y}:
            return y


FUNCTIONS = [of_three, with_a_star, in_a_loop, in_a_branch, nested]


def _outcome(call, *args):
    try:
        return call(*args)
    except Exception as error:  # noqa: BLE001 (the class of errors is compared, too)
        return next(k.__name__ for k in (TypeError, IndexError, ValueError, Exception) if isinstance(error, k))


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
@pytest.mark.parametrize(
    "value", [v for k, v in ARRAYS.items() if k != "a list"], ids=[k for k in ARRAYS if k != "a list"]
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(function, value):
    assert_equal(_outcome(tm.tensor(function), value), _outcome(function, value), function.__name__)


@pytest.mark.parametrize("function", [of_three, in_a_branch, nested])
def test_compiled_and_differentiated(function):
    x = ARRAYS["three"]
    np.testing.assert_array_equal(tm.compile(function, x)(x), function(x))
    step = 1e-6 * np.eye(3)
    expected = np.stack([(function(x + d) - function(x - d)) / 2e-6 for d in step], axis=-1)
    np.testing.assert_allclose(tm.jacobian(function)(x), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("value", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize(
    "cell",
    [
        "match x:\n    case [a, b, c]: r = a * b + c\n    case _: r = 0",
        "match x:\n    case [a, *rest]: r = a, rest\n    case []: r = 1\n    case _: r = 2",
        "r = []\nfor k in range(3):\n    match (x, k):\n        case [[p, *_], 1]: r.append(p * 2)\n        case _, k: r.append(k)",
        "def f(v):\n    match v:\n        case [[a, b], *_]: return a * b\n        case [a, *_]: return a\n    return 7\nr = f(x)",
    ],
)
def test_cells(cell, value):
    check(cell, x=value)


BESIDE = """
class P:
    __match_args__ = ("a", "b")
    def __init__(self, a, b): self.a, self.b = a, b
match P(x, 2):
    case P(np.ndarray() as a, b): r = a * b
---
def g(v): return v * 2
match k * math.pi:
    case math.pi: r = x
    case math.inf | math.tau: r = g(x)
---
def g(v): return v * 2
match {math.pi: x, "k": k}:
    case {math.pi: v, **rest} if rest["k"] > math.e - 1: r = g(v)
---
g = lambda v: v * 3
match x, k:
    case np.ndarray(shape=(3,)) as v, int(n) | float(n): r = g(v) * n
---
def g(v):
    match v:
        case np.ndarray(ndim=1): return v * 2
for i in range(2):
    match i, x:
        case 1, np.ndarray(): r = g(x)
        case n, _: q = n
---
class A: pass
try:
    match x:
        case np.float64() | np.int64(): r = 1
        case np.ndarray(): r = x * 2
finally:
    s = 3
"""


@pytest.mark.parametrize("cell", BESIDE.strip().split("\n---\n"))
def test_patterns_beside_functions_and_classes(cell):
    """A cell that makes functions or classes is compiled twice: attributes in patterns are attributes in both."""
    check(cell, x=ARRAYS["three"], k=2)
