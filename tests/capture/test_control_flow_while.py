"""``while``, lists and sequences in functions: each computes what Python does, is one region of the graph, and differentiates."""

from __future__ import annotations

import numpy as np
import pytest

from tests.capture.control_flow import Cases, M, V, check_gradient, check_value

CASES = Cases()
case = CASES.enter


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


@pytest.mark.parametrize("name", CASES)
def test_value_and_region(name):
    check_value(CASES[name])


@pytest.mark.parametrize("name", CASES.smooth)
def test_gradient(name):
    check_gradient(CASES[name])
