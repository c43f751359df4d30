"""Names that a loop both stores into and binds anew, where something else than a name knows the array as it was."""

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import check

X = np.array([[2.0, 5.0, 3.0], [2.0, 4.25, 2.0], [1.0, -3.0, 7.0]])
STORES = "for i in range(5):\n    x[...] = i\n    x = x + 1\n"
INSIDE = "    for i in range(5):\n        x[...] = i\n        x = x + 1\n"
CALLED = f"def f(a):\n    global x\n{INSIDE}    return a + 0\n"


def test_rows_of_an_array_that_a_iteration_stores_into_and_binds_anew():
    check("x = x + 0\nfor r in x:\n    x[...] = r * 2\n    x = x + 1\n", x=X)
    check("x = x + 0\nv = 0\nfor r, q in zip(x, x):\n    v += r.sum()\n    x[...] = v\n    x = x + 1\n", x=X)


def test_a_row_goes_through_a_function_that_stores_and_gives_another_array():
    swap = "def swap(p, q):\n    t = p.copy()\n    p[...] = q\n    return q, t\n"
    loops = "for i in range(3):\n    for r, _ in zip(x, y):\n        v, x = swap(x, r)\n"
    check(swap + loops, x=X[:2], y=np.arange(3.0))


@pytest.mark.parametrize(
    ("holder", "use"),
    [
        ("e = enumerate(x)", "v = [r for _, r in e]"),
        ("e = iter(x)", "v = list(e)"),
        ("e = iter([x])", "v = list(e)"),
        ("e = (r + 1 for r in x)", "v = list(e)"),
        ("e = map(np.sum, [x])", "v = list(e)"),
        ("e = {1: x}.items()", "v = [a for _, a in e]"),
        ("e = x.sum", "v = e()"),
        ("e = x.flat", "v = e[:]"),
        ("import functools\ne = functools.partial(np.sum, x)", "v = e()"),
        ("import collections\ne = collections.deque([x])", "v = e[0] + 1"),
        ("class E:\n    w = x", "v = E.w + 1"),
    ],
)
def test_what_holds_the_array_sees_the_first_store(holder: str, use: str):
    check(f"x = x + 0\n{holder}\n{STORES}{use}\n", x=X)


@pytest.mark.parametrize(
    "loop",
    [
        f"v = 0\nfor a in (y, x):\n{INSIDE}    v = v + a\n",
        f"v = 0\nfor a in x:\n    v = v + a\n    a = 0\n{INSIDE}",
        f"{CALLED}v = [f(a) for a in (y, x)]\n",
        f"{CALLED}v = [f(a) for a in (y, x) if a.shape]\n",
        f"{CALLED}v = sum(f(a) for a in (y, x))\n",
    ],
)
def test_an_array_that_a_loop_around_goes_over(loop: str):
    check(f"x = x + 0\ny = x * 3\n{loop}", x=X)


def test_rows_of_such_an_array_where_data_say_how_often():
    def program(x: Any, n: Any) -> Any:
        x = x + 0
        total = 0.0
        for _ in range(n.sum()):
            for r in x:
                x[...] = r * 2
                x = x + 1
                total = total + r.sum()
        return total

    x, n = np.arange(100.0).reshape(50, 2), np.array([2])
    assert tm.tensor(program)(x, n) == program(x, n)


def test_an_array_that_nothing_else_holds_stays_in_a_loop_of_the_graph():
    def program(x: Any, n: Any) -> Any:
        x = x + 0
        for i in range(n.sum()):
            x[0] += i
            x = x * 2
        return x

    x, n = X.copy(), np.array([3, 2])
    assert np.array_equal(tm.tensor(program)(x, n), program(x, n))
