"""Control flow in functions: each construct computes what Python does, is one region of the graph, and differentiates."""

from __future__ import annotations

import copy
import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, UndefinedError

RNG = np.random.default_rng(7)
V = np.array([1.3, -2.1, 3.2, 4.4])
M = RNG.normal(size=(3, 4))


@dataclass(frozen=True)
class Case:
    """A function, arguments to try it with, and the regions that its graph has."""

    function: Callable[..., Any]
    arguments: list[tuple[Any, ...]]
    regions: dict[str, int] = field(default_factory=dict)
    smooth: bool = True


CASES: dict[str, Case] = {}


def case(*arguments: Any, smooth: bool = True, **regions: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        given = [a if isinstance(a, tuple) else (a,) for a in arguments]
        CASES[function.__name__] = Case(function, given, {k.rstrip("_"): n for k, n in regions.items()}, smooth)
        return function

    return enter


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


@case(V, loop=1)
def last_turn(x):
    for k in range(x.shape[0]):
        y = x[k] * 2
    return y * k


@case(V, loop=1)
def gradient_in_loop(w):
    def cost(w):
        return ((w - 1) ** 4).sum()

    for _ in range(3):
        w = w - 0.01 * tm.grad(cost)(w)
    return (w**3).sum()


# while ----------------------------------------------------------------------------------------------------------------


@case(3.0, 0.5, while_=1)
def while_on_data(x):
    y = x
    while y < 100:
        y = y * y + 1
    return y


@case(3.0, while_=1)
def newton(a):
    x = a
    while abs(x * x - a) > 1e-13:
        x = 0.5 * (x + a / x)
    return x


@case(3.0, while_=1)
def begun_with_a_number(a):
    x, error = a, 1.0
    while error > 1e-12:
        step = (x * x - a) / (2 * x)
        x = x - step
        error = abs(step)
    return x


@case(3.0, while_=1)
def while_true(a):
    x = a
    while True:
        step = (x * x - a) / (2 * x)
        x = x - step
        if abs(step) < 1e-12:
            break
    return x


@case(7.3, 50.3, while_=1, cond=1)
def while_else(x):
    k = 0
    while x > 1:
        x = x / 2
        k += 1
        if k > 5:
            x = x * 3
            break
    else:
        x = x + 100
    return x


@case((V, 3.0), (V, 30.0), while_=1, smooth=False)
def while_within_bounds(x, limit):
    k = 0
    while k < x.shape[0] and x[k] < limit:
        k += 1
    return k


@case(5.3, while_=1)
def nested_while(x):
    total = 0.0
    while x > 1:
        y = x
        while y > 1:
            y = y / 2
            total = total + y
        x = x - 1
    return total


@case((0.0, 3.0), while_=1, smooth=False)
def bisection(low, high):
    while high - low > 1e-9:
        middle = (low + high) / 2
        if middle**3 > 5:
            high = middle
        else:
            low = middle
    return (low + high) / 2


@case(10.0, 3.0, while_=1, smooth=False)
def collatz(n):
    steps = 0
    while n != 1:
        n = n / 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


# what Python runs -----------------------------------------------------------------------------------------------------


@case(V)
def list_append_then_stack(x):
    out = []
    for k in range(4):
        out.append(x)
        x = x * k
    return np.stack(out).sum(axis=0) @ x


@case(V)
def grown_by_concatenate(x):
    y = x
    for _ in range(3):
        y = np.concatenate([y, x * x])
    return y.sum()


@case(V)
def comprehension(x):
    return sum([x[k] ** 2 for k in range(3)])


@case(V)
def generator(x):
    def pieces():
        for k in range(3):
            yield x[k] * k

    return sum(pieces())


@case(M)
def the_index_as_an_axis(x):
    for k in (1, 0):
        x = x.sum(axis=k)
    return x * x


@case(M)
def the_index_in_a_list(x):
    functions = [np.exp, np.sin, np.cos]
    for k in range(3):
        x = functions[k](x)
    return x.sum()


@case(V)
def a_short_list(x):
    for factor in [1, 2.5, 3]:
        x = x * factor
    return x.sum()


def regions(graph: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in graph.nodes:
        if node.op.kind == "region":
            found[node.op.name] = found.get(node.op.name, 0) + 1
    return found


@pytest.mark.parametrize("name", CASES)
def test_value_and_region(name):
    tried = CASES[name]
    captured = tm.tensor(tried.function)
    for arguments in tried.arguments:
        expected = tried.function(*copy.deepcopy(arguments))
        np.testing.assert_allclose(captured(*arguments), expected, rtol=1e-12)
        assert regions(captured.graph(*arguments)) == tried.regions


def slopes(function: Callable[..., Any], x: Any) -> Any:
    """Derivatives by differences of fourth order."""
    x, h = np.asarray(x, float), 1e-4
    found = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = h

        def value(k: int, step: Any = step) -> float:
            moved = x + k * step
            return float(function(moved if moved.ndim else float(moved)))

        found[at] = (8 * (value(1) - value(-1)) - (value(2) - value(-2))) / (12 * h)
    return found


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.smooth])
def test_gradient(name):
    tried = CASES[name]
    for first, *rest in tried.arguments:

        def along(x: Any, rest: Any = tuple(rest)) -> Any:
            return tried.function(x, *rest)

        np.testing.assert_allclose(tm.grad(along)(first), slopes(along, first), rtol=1e-6, atol=1e-8)


# what is refused, and what is found out when the graph runs -----------------------------------------------------------


def test_a_name_that_is_not_bound():
    def one_way(x):
        if x > 0:
            y = x
        return y * 2

    f = tm.tensor(one_way)
    assert f(3.0) == 6.0
    with pytest.raises(UnboundLocalError, match="y is not bound here: only one way of the `if`") as error:
        f(-3.0)
    assert isinstance(error.value, UndefinedError)

    def no_turn(x):
        for k in range((x > 0).sum()):
            y = x[k]
        return y

    f = tm.tensor(no_turn)
    assert f(V) == V[2]
    with pytest.raises(UndefinedError, match="y is not bound"):
        f(-np.abs(V))


def test_what_no_region_can_give():
    def words(x):
        return "large" if x > 1 else "small"

    with pytest.raises(CaptureError, match="'large' and 'small'"):
        tm.tensor(words)(2.0)

    def shapes(x):
        y = x if x.sum() > 0 else x[1:]
        return y * 2

    with pytest.raises(ValueError, match=r"shapes \(4,\) and \(3,\)"):
        tm.tensor(shapes)(V)

    def prints(x):
        while x < 10:
            print(x)
            x = x * 2
        return x

    with pytest.raises(CaptureError, match="print"):
        tm.tensor(prints)(1.0)

    def grows(x):
        out = []
        while x < 10:
            x = x * 2
            out.append(x)
        return out

    with pytest.raises(CaptureError, match="list grows"):
        tm.tensor(grows)(1.0)

    with pytest.raises(ValueError, match="ambiguous"):
        tm.tensor(lambda x: 1 if x > 0 else 2)(V)


def test_arrays_that_may_be_one_are_not_stored_into():
    def either(x, y):
        z = x if x[0] > 0 else y
        z[1] = 7.0
        return x + y

    with pytest.raises(CaptureError, match="shares memory with"):
        tm.tensor(either)(V, M[0])

    def later(x):
        x = x.copy()
        z = x if x[0] > 0 else x + 1
        x[1] = 7.0
        return z

    with pytest.raises(CaptureError, match="stored since"):
        tm.tensor(later)(V)


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


# recursion ------------------------------------------------------------------------------------------------------------


def factorial(r, x):
    return r if x <= 1 else factorial(r * x, x - 1)


def greatest_common_divisor(a, b):
    if b == 0:
        return a
    return greatest_common_divisor(b, a % b)


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def integer_power(x, n):
    if n == 0:
        return 1.0
    return x * integer_power(x, n - 1)


def test_a_call_of_itself_at_the_end_is_a_loop():
    f = tm.tensor(factorial)
    assert f(1.0, 3.0) == 6.0
    assert f(1.0, 170.0) == pytest.approx(factorial(1.0, 170.0))
    assert regions(f.graph(1.0, 3.0)) == {"while": 1}
    assert tm.grad(lambda r: factorial(r, 4.0))(2.0) == 24.0
    g = tm.tensor(greatest_common_divisor)
    assert g(48.0, 18.0) == 6
    assert regions(g.graph(48.0, 18.0)) == {"while": 1}


def test_other_recursion():
    assert tm.tensor(integer_power)(2.0, 5) == 32.0
    assert tm.grad(integer_power)(2.0, 5) == 80.0
    with pytest.raises(CaptureError, match="a function that calls itself as data say"):
        tm.tensor(fibonacci)(5.0)


def test_a_name_that_means_another_function():
    space: dict[str, Any] = {}
    source = "def f(x):\n    if x > 1:\n        return x\n    return f(x + 1)\n"
    linecache.cache["<renamed>"] = (len(source), None, source.splitlines(keepends=True), "<renamed>")
    exec(compile(source, "<renamed>", "exec"), space)
    first, space["f"] = space["f"], lambda x: -x
    assert tm.tensor(first)(0.0) == first(0.0) == -1.0
