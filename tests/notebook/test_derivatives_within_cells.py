"""Derivatives and batches that a cell takes itself, of functions that may fail: these are given what has no value there."""

import numpy as np
import pytest

SETUP = """
import math
import numpy as np, tensormagic as tm

A = 2 * np.eye(2)

def cubic(x):
    return 2 * x**3 + 8

def quotients(x):
    return np.exp(x) + 1 / x

def heron(x):
    y = x
    for _ in range(3):
        y = 0.5 * (y + x / y)
    return y

def branches(x):
    if x > 0:
        return x**3
    return 1 / x

def total(M):
    return np.linalg.inv(M).sum()
"""

CASES = {
    "tm.grad(cubic)(1.0)": 6.0,
    "tm.value_and_grad(cubic)(2.0)": (24.0, 24.0),
    "tm.grad(tm.grad(cubic))(1.0)": 12.0,
    "tm.jvp(cubic, (1.0,), (1.0,))": (10.0, 6.0),
    "tm.vjp(cubic, 1.0)[0]": 10.0,
    "tm.linearize(cubic, 1.0)[0]": 10.0,
    "tm.hessian(cubic)(1.5)": 18.0,
    "tm.grad(tm.checkpoint(cubic))(1.0)": 6.0,
    "tm.grad(quotients)(2.0)": np.exp(2) - 0.25,
    "tm.grad(branches)(2.0)": 12.0,
    "tm.grad(branches)(-2.0)": -0.25,
    "tm.grad(lambda x: math.sqrt(x) + math.log(x))(4.0)": 0.5,
    "tm.grad(lambda x, y: x**3 / y)(1.0, 2.0)": 1.5,
    "tm.grad(lambda d: d['a'] ** 3 / d['b'])({'a': 1.0, 'b': 2.0})['b']": -0.25,
    "tm.jacobian(lambda x: np.array([x**3, 1 / x]))(2.0)": [12.0, -0.25],
    "[tm.grad(lambda z: z**k)(1.5) for k in range(4)]": [0.0, 1.0, 3.0, 6.75],
    "sum(tm.grad(cubic)(float(k)) for k in range(3))": 30.0,
    "tm.grad(total)(A)": -np.full((2, 2), 0.25),
    "tm.vmap(np.linalg.inv)(np.stack([A, 2 * A]))[1]": np.eye(2) / 4,
    "tm.vmap(tm.grad(total))(np.stack([A, 2 * A]))[0]": -np.full((2, 2), 0.25),
    "round(tm.grad(cubic)(1.0), 2)": 6.0,
    "float(tm.grad(cubic)(1.0))": 6.0,
}


@pytest.mark.parametrize("text", CASES)
def test_functions_that_may_fail_are_differentiated(notebook, text: str):
    notebook.ok(SETUP)
    np.testing.assert_allclose(np.asarray(notebook.ok(f"%%tensor\n{text}").value), CASES[text], rtol=1e-12)


def test_heron_by_steps_and_in_a_loop_of_descent(notebook):
    notebook.ok(SETUP)
    notebook.ok("%%tensor\ns = tm.grad(heron)(2.0)\nx = 1.0\nfor i in range(5):\n    x = x - 0.01 * tm.grad(cubic)(x)")
    x = 1.0
    for _ in range(5):
        x -= 0.06 * x**2
    h = 1e-6
    difference = (notebook.ok(f"heron(2 + {h})").value - notebook.ok(f"heron(2 - {h})").value) / (2 * h)
    assert float(notebook["s"]) == pytest.approx(difference, rel=1e-8)
    assert float(notebook["x"]) == pytest.approx(x, rel=1e-12)


@pytest.mark.parametrize("text", ["tm.grad(lambda x: 1 / x)(0.0)", "tm.value_and_grad(quotients)(0.0)"])
@pytest.mark.parametrize(
    "used", ["{}", "y = {}\ny", "print('before')\ny = {}\nprint('after')", "try:\n    {}\nfinally:\n    done = 1"]
)
def test_what_the_function_raises_is_raised(notebook, text: str, used: str):
    notebook.ok(SETUP)
    assert isinstance(notebook("%%tensor\n" + used.format(text)).error, ZeroDivisionError)


def test_prints_wait_for_what_fails_before_them(notebook):
    notebook.ok(SETUP)
    failed = notebook("%%tensor\ntm.grad(total)(A * 0)\nprint(6 * 111)")
    assert isinstance(failed.error, np.linalg.LinAlgError)
    assert "666" not in failed.out
    assert "666" in notebook.ok("%%tensor\ntm.grad(total)(A)\nprint(6 * 111)").out
