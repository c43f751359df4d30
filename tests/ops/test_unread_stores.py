"""What an iteration of a loop stores and nobody reads has the slope 0, also where that of what is stored is infinite."""

import numpy as np
import pytest

import tensormagic as tm

X = np.array([0.0, 1.0, 4.0])


def filled(x):
    a = np.zeros(len(x))
    for i in range(len(x)):
        a[i] = np.sqrt(x[i])
    return a


def one_element(x):
    return filled(x)[1]


def the_rest(x):
    return np.sum(filled(x)[1:])


def overwritten(x):
    a = filled(x)
    a[0] = 3.0
    return np.sum(a)


def read_by_a_loop(x):
    a = filled(x)
    total = 0.0
    for i in range(1, len(x)):
        total += a[i]
    return total


def column(x):
    a = np.zeros((len(x), 2))
    for i in range(len(x)):
        a[i, 0] = np.sqrt(x[i])
        a[i, 1] = np.log(x[i] + 1)
    return np.sum(a[1:, 0]) + np.sum(a[:, 1])


def rows(x):
    a = np.zeros((4, len(x)))
    a[0] = x
    for t in range(1, 4):
        a[t] = np.sqrt(a[t - 1])
    return np.sum(a[:, 1:])


def carried(x):
    for _ in range(3):
        x = np.sqrt(x)
    return np.sum(x[1:])


def product(x):
    a = np.zeros(len(x))
    for i in range(len(x)):
        a[i] = np.sqrt(x[i]) * x[0]
    return np.sum(a[1:])


def scanned(x):
    return np.sum(tm.scan(lambda c, v: (c, np.sqrt(v)), 0.0, x)[1][1:])


def unrolled(x):
    a = [0.0] * 3
    b = np.zeros(3)
    for i in range(3):
        b[i] = np.sqrt(x[i])
        a[i] = b[i] * 2
    return a[1] + b[2]


FUNCTIONS = (one_element, the_rest, overwritten, read_by_a_loop, column, rows, carried, product, scanned, unrolled)
FIRST = {product: 3.0, column: 1.0}  # of x[0], which these read otherwise, too


@pytest.mark.parametrize("function", FUNCTIONS)
def test_reverse_is_forward_and_differences(function):
    slope = tm.grad(function)(X)
    forward = [float(tm.jvp(function, (X,), (e,))[1]) for e in np.eye(3)]
    np.testing.assert_allclose(slope, forward, rtol=1e-12)
    assert slope[0] == FIRST.get(function, 0.0)
    if function is not scanned:
        steps = 1e-6 * np.eye(3)[1:]
        differences = [(function(X + e) - function(X - e)) / 2e-6 for e in steps]
        np.testing.assert_allclose(slope[1:], differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("function", [the_rest, column])
def test_second_derivatives(function):
    second = tm.hessian(function)(X + 0.25)
    forward = [tm.jvp(tm.grad(function), (X + 0.25,), (e,))[1] for e in np.eye(3)]
    np.testing.assert_allclose(second, forward, rtol=1e-12)
