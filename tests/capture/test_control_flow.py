"""Branches and counted loops in functions: each computes what Python does, is one region of the graph, and differentiates."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, UndefinedError
from tests.capture.control_flow import Cases, M, V, check_gradient, check_value
from tests.capture.harness import check

CASES = Cases()
case = CASES.enter


# branches -------------------------------------------------------------------------------------------------------------


@case(2.0, -2.0, cond=1)
def if_else(x):
    if x > 0:
        y = x * x
        z = y
    else:
        z = -x
    return z


@case(0.5, 2.0, 7.0, cond=1)
def elif_chain(x):
    if x < 1:
        y = x
    elif x < 5:
        y = x * x
    else:
        y = x**3
    return y


@case(2.0, -2.0, cond=1)
def if_alone(x):
    y = x + 1
    if x > 0:
        y = y * 3
    return y


@case(2.0, -2.0, cond=1)
def early_return(x):
    if x > 0:
        return x * 2
    return -x * x


@case(3.0, 7.0, -1.0, -9.0, cond=1)
def ternary_and_or_not(x):
    return x * x if (x > 0 and x < 5) or not x > -3 else 3 * x


@case(1.0, 3.0, cond=1)
def chained_comparison(x):
    return x * 2 if 0 < x < 2 else x * 3


@case(V, -V, cond=2)
def and_guards_what_follows(x):
    k = (x > 3).sum() + (x > 100).sum() * 1000
    return x.sum() if k < 4 and x[k] < 2 else x[0] * 2


@case(2.0, cond=2)
def bound_in_one_branch(x):
    if x > 0:
        y = x * 3
    z = x + 1
    if x > 0:
        z = y * z
    return z


@case(V, -V, cond=1)
def store_in_branch(x):
    y = x.copy()
    if x[0] > 0:
        y[1:] = 2 * y[:-1]
    else:
        y[0] = 5.0
    return (y * y).sum()


@case(V, -V, cond=1)
def loop_in_branch(x):
    if x.sum() > 0:
        for _ in range(3):
            x = x * 2
    else:
        x = -x
    return x.sum()


@case(2.0, -2.0, cond=1)
def tuples_of_one_form(x):
    pair = (x, 1) if x > 0 else (x * x, 2)
    return pair[0] * pair[1]


# for ------------------------------------------------------------------------------------------------------------------


@case(1.5, loop=1)
def constant_range(x):
    total = 0.0
    for k in range(10):
        total = total + x * x * k
    return total


@case(V, loop=1)
def symbolic_range(x):
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k] * x[k] * k
    return total


@case(V, -V, loop=1)
def lazy_range(x):
    total = x[0]
    for k in range(1, (x > 0).sum() + 1):
        total = total * x[k]
    return total


@case(V, loop=1)
def stepped_range(x):
    total = 0.0
    for k in range(len(x) - 1, -1, -2):
        total = 0.5 * total + x[k]
    return total


@case(M, loop=1)
def rows(x):
    total = 0.0
    for row in x:
        total += np.exp(row).sum()
    return total


@case(V, loop=1)
def enumerated(x):
    total = 0.0
    for k, value in enumerate(x, 1):
        total += k * value * value
    return total


@case(V, loop=1)
def zipped(x):
    total = 0.0
    for a, b in zip(x, x[::-1], strict=True):
        total += a * b * b
    return total


@case(V, loop=1)
def backwards(x):
    total = 0.0
    for value in reversed(x):
        total = 0.5 * total + value * value
    return total


@case(V, loop=1)
def inner_bound_on_outer_index(x):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            total += x[i] * x[j] * x[j]
    return total


@case(V, np.array([1.0, -1.0, 20.0, 3.0]), while_=1)
def break_and_continue(x):
    total = 0.0
    for value in x:
        if value < 0:
            continue
        if value > 10:
            break
        total += value * value
    return total


@case((V, 2.0), (V, 100.0), while_=1, cond=1, smooth=False)
def return_inside_a_loop(x, limit):
    for k in range(x.shape[0]):
        if x[k] > limit:
            return k
    return -1


@case((V, 2.0), (V, 100.0), while_=1, cond=1)
def for_else(x, limit):
    for k in range(len(x)):
        if x[k] > limit:
            found = x[k] * k
            break
    else:
        found = x.sum()
    return found


@case(V, loop=1)
def branch_in_loop(x):
    y = np.zeros(4)
    for k in range(4):
        if x[k] > 0:
            y[k] = x[k] ** 2
        else:
            y[k] = -x[k]
    return (y * y).sum()


@case(V, loop=1)
def maximum(x):
    best = x[0]
    for k in range(1, len(x)):
        best = max(best, x[k])
    return best * best


@case(1.5, loop=1)
def tuple_swap(x):
    a, b = 0.0, x
    for _ in range(10):
        a, b = b, a + b * x
    return a


@case(V, loop=1)
def arrays_exchanged(x):
    u, v = x.copy(), np.zeros(4)
    for _ in range(5):
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
        u, v = v, u
    return (u + 2 * v).sum()


@case(V, loop=1)
def store_in_loop(x):
    y = np.ones(5)
    for k in range(1, 5):
        y[k] = y[k - 1] * x[k - 1]
    return y.sum()


@case(M, loop=1)
def view_stored_through(x):
    y = x.copy()
    for row in y:
        row[1:] *= row[:-1]
    return y.sum()


@case(V, loop=1)
def alias_sees_stores(x):
    w = x.copy()
    v = w
    for _ in range(3):
        w -= 0.5 * w
    return (v * w).sum()


@case(V, loop=1)
def dictionary_state(x):
    state = {"x": x, "n": 0}
    for _ in range(5):
        state["x"] = state["x"] * 1.5
        state["n"] = state["n"] + 1
    return (state["x"] + state["n"]).sum()


@case(V, loop=1)
def tuple_state(x):
    state = (x, 1.0)
    for k in range(4):
        state = (state[0] * state[1], state[1] + k)
    return state[0].sum()


@case(2.0, loop=1)
def closure(x):
    total = 0.0

    def add(value):
        nonlocal total
        total = total + value * value

    for k in range(4):
        add(x * k)
    return total


@case(V, loop=1)
def nested_function(x):
    def step(y, k):
        return y * 0.5 if k % 2 == 0 else y + x

    y = x
    for k in range(6):
        y = step(y, k)
    return y.sum()


def halve_or_grow(y):
    if y.sum() > 4:
        return y * 0.5
    return y * y + 1


@case(V, loop=1)
def another_function(x):
    for _ in range(6):
        x = halve_or_grow(x)
    return x.sum()


@case(V)
def last_iteration(x):
    """What the last iteration leaves depends on its index alone: it is worked out behind the loop, which is none."""
    for k in range(x.shape[0]):
        y = x[k] * 2
    return y * k


@case(V, loop=1)
def last_iteration_of_arrays(x):
    for k in range(x.shape[0]):
        y = x * x[k]
    return y * k


@case(V, loop=1)
def gradient_in_loop(w):
    def cost(w):
        return ((w - 1) ** 4).sum()

    for _ in range(3):
        w = w - 0.01 * tm.grad(cost)(w)
    return (w**3).sum()


@pytest.mark.parametrize("name", CASES)
def test_value_and_region(name):
    check_value(CASES[name])


@pytest.mark.parametrize("name", CASES.smooth)
def test_gradient(name):
    check_gradient(CASES[name])


# what is refused, and what is found out when the graph runs -----------------------------------------------------------


def test_a_name_that_is_not_bound():
    def one_way(x):
        if x > 0:
            y = x
        return y * 2

    f = tm.tensor(one_way)
    assert f(3.0) == 6.0
    with pytest.raises(UnboundLocalError, match="y is not bound here: only one branch of the `if`") as error:
        f(-3.0)
    assert isinstance(error.value, UndefinedError)

    def no_iteration(x):
        for k in range((x > 0).sum()):
            y = x[k]
        return y

    f = tm.tensor(no_iteration)
    assert f(V) == V[2]
    with pytest.raises(UndefinedError, match="y is not bound"):
        f(-np.abs(V))


def test_what_no_region_can_give():
    def ranks(x):
        y = x if x.sum() > 0 else x[None]
        return y * 2

    with pytest.raises(ValueError, match=r"shapes \(4,\) and \(1, 4\)"):
        tm.tensor(ranks).graph(V)

    def keys(x):
        out = {}
        while x < 10:
            x = x * 2
            out["last"] = x
        return out

    with pytest.raises(CaptureError, match="a dict grows"):
        tm.tensor(keys).graph(1.0)

    with pytest.raises(ValueError, match="ambiguous"):
        tm.tensor(lambda x: 1 if x > 0 else 2)(V)


def test_stores_into_arrays_that_may_be_one():
    def either(x, y):
        z = x if x[0] > 0 else y
        z[1] = 7.0
        return x + y

    for x in (V, -V):
        expected = either(x.copy(), M[0].copy())
        np.testing.assert_array_equal(tm.tensor(either)(x.copy(), M[0].copy()), expected)

    def later(x):
        x = x.copy()
        z = x if x[0] > 0 else x + 1
        x[1] = 7.0
        return z

    for x in (V, -V):
        np.testing.assert_array_equal(tm.tensor(later)(x), later(x))


def test_another_size_runs_the_same_graph():
    f = tm.tensor(symbolic_range)
    assert f.graph(V) == f.graph(np.arange(9.0))
    assert f(np.arange(9.0)) == symbolic_range(np.arange(9.0))


def test_assert():
    def checked(x):
        assert x.ndim == 1, "a vector"
        return x * 2

    np.testing.assert_array_equal(tm.tensor(checked)(V), V * 2)
    with pytest.raises(AssertionError, match="a vector"):
        tm.tensor(checked)(M)

    space: dict[str, Any] = {}
    source = "def on_data(x):\n    assert x.sum() > 0\n    return x\n"  # as pytest would not rewrite it
    linecache.cache["<on data>"] = (len(source), None, source.splitlines(keepends=True), "<on data>")
    exec(compile(source, "<on data>", "exec"), space)
    on_data = tm.tensor(space["on_data"])
    np.testing.assert_array_equal(on_data(V), V)
    with pytest.raises(AssertionError):
        on_data(-V)


@pytest.mark.parametrize(
    "code",
    [
        "v = np.array([z])\nn = 0\nfor r in v:\n    n += 1\n    v.shape = -1\n    last = r * 1",
        "v = np.array([z, z])\nn = 0\nfor i, r in enumerate(v):\n    n += 1\n    v.shape = (1, -1)\n    last = r * 1",
        "v = [z]\nn = 0\nfor r in v:\n    n += 1\n    if n < 4:\n        v.append(r * 2)\nlast = sum(v)",
        "v = np.array([z])\nn = sum(1 for r in v if not v.sort())\nlast = v[0]",
    ],
)
def test_a_loop_asks_at_each_iteration_how_much_there_is(code):
    check(code, z=np.arange(3.0))
