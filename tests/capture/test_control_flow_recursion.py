"""Functions that call themselves: loops, functions of the graph, and what is refused."""

from __future__ import annotations

import linecache
import sys
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.control_flow import Cases, V, check_gradient, check_value, regions
from tests.capture.harness import captured, check

CASES = Cases()
case = CASES.enter


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
    assert tm.tensor(fibonacci)(9.0) == 34.0
    assert regions(tm.tensor(lambda n: fibonacci(n)).graph(9.0)) == {"recursive": 1}


def test_a_name_that_means_another_function():
    space: dict[str, Any] = {}
    source = "def f(x):\n    if x > 1:\n        return x\n    return f(x + 1)\n"
    linecache.cache["<renamed>"] = (len(source), None, source.splitlines(keepends=True), "<renamed>")
    exec(compile(source, "<renamed>", "exec"), space)
    first, space["f"] = space["f"], lambda x: -x
    assert tm.tensor(first)(0.0) == first(0.0) == -1.0


# recursion that does more than return its own call --------------------------------------------------------------------


@case((1.0, 4.6), recursive=1)
def product_down(scale, x):
    def down(x):
        if x <= 1:
            return scale
        return x * down(x - 1)

    return down(x)


@case((0.3, 7), (0.3, 0), recursive=1)
def damped(x, n):
    def step(y, n):
        return y if n == 0 else 0.5 * y + np.sin(step(y, n - 1))

    return step(x, np.int64(n) + (x > 100))


@case(V, recursive=1)
def quadrature(x):
    def f(t):
        return np.sin(t * x[0]) + t * t * x[1]

    def rule(a, b):
        return (b - a) * (f(a) + 4 * f((a + b) / 2) + f(b)) / 6

    def adapt(a, b, tolerance):
        m = (a + b) / 2
        left, right = rule(a, m), rule(m, b)
        if abs(left + right - rule(a, b)) < tolerance:
            return left + right
        return adapt(a, m, tolerance / 2) + adapt(m, b, tolerance / 2)

    return adapt(0.0, 2.0, 1e-4)


@case(V, any_regions=True)
def each_other(x):
    def even(n):
        return 0.0 if n == 0 else x[0] * odd(n - 1)

    def odd(n):
        return x[1] if n == 0 else even(n - 1) + 1

    return even((x[3] * 2).astype(int) + 1) + odd(3)


@case(V, any_regions=True)
def pair_of_results(x):
    def walk(n, y):
        if n <= 0:
            return y, 1
        down, count = walk(n - 1, y * 0.5)
        other, more = walk(n - 2, y + 1)
        return down + other, count + more

    total, count = walk(int(x[3]), x)
    return total.sum() * count


@case(V, any_regions=True)
def loop_around_calls(x):
    def tree(y, depth):
        if y < 0.5 or depth > 4:
            return y * y
        total = 0.0
        for k in range(1, 3):
            total = total + tree(y / (k + 1), depth + 1)
        return total

    return tree(x[2], 0)


@case(V)
def halves(x):
    def transform(v):
        n = len(v)
        if n == 1:
            return v
        even, odd = transform(v[::2]), transform(v[1::2])
        return np.concatenate([even + 0.5 * odd, even - 0.5 * odd])

    return transform(x) @ np.arange(4.0)


@pytest.mark.parametrize("name", CASES)
def test_value_and_region(name):
    check_value(CASES[name])


@pytest.mark.parametrize("name", CASES.smooth)
def test_gradient(name):
    check_gradient(CASES[name])


def deep(n, x):
    return x if n == 0 else np.cos(deep(n - 1, x)) * 0.5 + x


def test_derivatives_of_derivatives_and_batches():
    def f(x):
        return deep(np.int64(5) + (x > 100), x)

    assert tm.grad(tm.grad(f))(0.7) == pytest.approx((tm.grad(f)(0.7 + 1e-6) - tm.grad(f)(0.7 - 1e-6)) / 2e-6, rel=1e-6)
    tangent = tm.jvp(f, (0.7,), (1.0,))[1]
    assert tangent == pytest.approx(tm.grad(f)(0.7), rel=1e-12)
    many = np.array([0.1, 0.7, 2.0])
    np.testing.assert_allclose(tm.vmap(f)(many), [f(v) for v in many], rtol=1e-12)
    np.testing.assert_allclose(tm.vmap(tm.grad(f))(many), [tm.grad(f)(v) for v in many], rtol=1e-12)


def test_it_goes_as_deep_as_python_does():
    f = tm.tensor(deep)
    assert f(np.int64(500), 0.7) == pytest.approx(deep(500, 0.7), rel=1e-12)
    with pytest.raises(RecursionError):
        f(np.int64(5000), 0.7)


def test_checks_in_it_are_made():
    source = "def f(n, x):\n    if n <= 0:\n        return x\n    assert x < 100, f'{x} is too much'\n    return f(n - 1, x * 2) + 1\n"
    linecache.cache["<checked>"] = (len(source), None, source.splitlines(keepends=True), "<checked>")
    space: dict[str, Any] = {}
    exec(compile(source, "<checked>", "exec"), space)
    f = tm.tensor(space["f"])
    assert f(np.int64(3), 2.0) == space["f"](3, 2.0)
    with pytest.raises(AssertionError, match=r"128\.0 is too much"):
        f(np.int64(9), 2.0)


def test_what_it_may_not_do():
    seen = []

    def notes(n):
        seen.append(n)
        return 0.0 if n <= 0 else notes(n - 1) + notes(n - 2)

    with pytest.raises(CaptureError):
        tm.tensor(lambda n: notes(n)).graph(np.float64(3.0))
    assert seen == []

    def sort(v):
        if len(v) <= 1:
            return v
        rest = v[1:]
        return np.concatenate([sort(rest[rest < v[0]]), v[:1], sort(rest[rest >= v[0]])])

    with pytest.raises(CaptureError, match="sort always calls itself"):
        tm.tensor(lambda v: sort(v)).graph(V)


def test_it_is_as_deep_as_in_python():
    def deep(v, n):
        return v if n == 0 else np.sin(deep(v, n - 1)) + v

    limit, n = sys.getrecursionlimit(), 600
    captured_deep = tm.tensor(deep)
    assert captured_deep(0.5, n) == deep(0.5, n)
    assert np.isclose(
        tm.grad(lambda v: captured_deep(v, n))(0.5), (deep(0.5 + 1e-6, n) - deep(0.5 - 1e-6, n)) / 2e-6, rtol=1e-8
    )
    check(
        f"def deep(v, n):\n    return v if n == 0 else np.sin(deep(v, n - 1)) + v\nt = deep(x, {n})",
        x=np.linspace(0.1, 0.9, 3),
    )
    assert sys.getrecursionlimit() == limit


def test_recursion_without_end_is_pythons_error():
    error = captured("def f(v, n):\n    return f(v, n + 1) + v\ny = f(x, 0)", {"x": np.ones(3)}).error
    assert isinstance(error, RecursionError)
    assert captured("y = x + 1", {"x": np.ones(3)}).error is None
