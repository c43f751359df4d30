"""Gradients of loops of data-dependent length, compiled: what iterations record is kept in arrays that grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.compiling import native
from tensormagic.backend.planning.plan import Plan
from tensormagic.backend.running import buffers
from tensormagic.session import executable

pytestmark = pytest.mark.usefixtures("by_numba")


def root(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def roots(a: Any) -> Any:
    y = np.zeros(a.shape)
    for i in range(len(a)):
        x = a[i]
        while np.abs(x * x - a[i]) > 1e-9:
            x = 0.5 * (x + a[i] / x)
        y[i] = x
    return y.sum()


def settles(A: Any, b: Any) -> Any:
    x = b
    while np.sum(x * x) < 100.0:
        x = np.tanh(A @ x) + x + b
    return x.sum()


def bouncing(v: Any, drag: Any) -> Any:
    height, count = 1.0 + 0 * v, 0
    while count < 5:
        height = height + v * 0.01
        v = v - 0.0981 - 0.001 * drag * v * v * v
        if height < 0:
            height, v, count = -height, -0.8 * v, count + 1
    return height + v


def walk(x: Any, n: Any) -> Any:
    for _ in range(int(n[0])):
        x = np.sin(x) * 1.5 + x[::-1]
    return x.sum()


CASES = [
    (root, (7.0,), (0,)),
    (roots, (np.array([2.0, 3.0, 500.0]),), (0,)),
    (settles, (np.array([[0.5, 0.2], [0.1, -0.3]]), np.array([0.4, 0.2])), (0, 1)),
    (bouncing, (2.0, 1.0), (0, 1)),
    (walk, (np.array([0.3, 0.4, 0.5]), np.array([6])), (0,)),
]


def plan_of(function: Any, *arguments: Any) -> Plan:
    types = [f"{np.asarray(a).dtype}[{', '.join(map(str, np.shape(a)))}]".replace("[]", "") for a in arguments]
    return executable(tm.trace(function, *types)).plan


@pytest.mark.parametrize(("function", "arguments", "wanted"), CASES, ids=[c[0].__name__ for c in CASES])
def test_gradients_against_finite_differences(function: Any, arguments: Any, wanted: Any) -> None:
    gradients = tm.grad(function, wanted)(*arguments)
    for k, gradient in zip(wanted, gradients, strict=True):
        found = np.zeros(np.shape(arguments[k]))
        for place in np.ndindex(found.shape):
            step = np.zeros(found.shape)
            step[place] = 1e-5
            up, down = ([a + s * step if j == k else a for j, a in enumerate(arguments)] for s in (1, -1))
            found[place] = (function(*up) - function(*down)) / 2e-5
        np.testing.assert_allclose(gradient, found, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("function", "arguments", "wanted"), [c for c in CASES if c[0] is not settles])
def test_all_of_it_is_machine_code(function: Any, arguments: Any, wanted: Any) -> None:
    plan = plan_of(tm.grad(function, wanted), *arguments)
    assert plan.grows
    assert not plan.library_steps


def test_a_loop_without_a_iteration_records_nothing() -> None:
    assert tm.grad(walk)(np.array([0.3, 0.4]), np.array([0])).tolist() == [1.0, 1.0]


def test_a_long_loop_gets_memory_as_it_goes() -> None:
    def decay(x: Any, rate: Any) -> Any:
        while x > 1e-9:
            x = x * rate
        return x

    x, rate = 1.0, 0.9999
    iterations = int(np.ceil(np.log(1e-9) / np.log(rate)))
    slope = tm.grad(decay, 1)(x, rate)
    np.testing.assert_allclose(slope, iterations * rate ** (iterations - 1), rtol=1e-9)


def test_second_derivatives() -> None:
    np.testing.assert_allclose(tm.grad(tm.grad(root))(7.0), -0.25 * 7.0**-1.5, rtol=1e-9)


def test_what_is_recorded_is_given_back() -> None:
    freed: list[int] = []
    kept, buffers._give_back = buffers._give_back, lambda memory: freed.append(memory[1])
    try:
        other = buffers.growing()
        other[1] = 17
        del other
    finally:
        buffers._give_back = kept
    assert freed == [17]


def test_where_a_kernel_does_not_compile_numpy_does_all_of_it() -> None:
    plan = plan_of(tm.grad(roots), np.array([2.0, 3.0]))
    handle = native.Handle(plan)
    first, *others = plan.sources
    handle.take(first, None, "not today")
    for source in others:
        handle.take(source, lambda *_: None)
    assert handle.state == "failed"


def test_tapes_of_batches_stay_in_numpy() -> None:
    many = np.array([2.0, 3.0, 500.0])
    np.testing.assert_allclose(tm.vmap(tm.grad(root))(many), 0.5 / np.sqrt(many), rtol=1e-9)
    assert not plan_of(tm.vmap(tm.grad(root)), many).grows
