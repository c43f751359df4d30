"""Draws in functions that are batched, differentiated, or given to control flow and to NumPy: each as the function itself draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

pytestmark = pytest.mark.usefixtures("by_numpy")


def test_vmap_gives_every_example_the_generator_of_its_seed() -> None:
    def f(x: Any) -> Any:
        r = np.random.default_rng(3)
        return r.normal(x, x * x, size=3) + r.uniform()

    x = np.array([0.5, 1.0, 2.0])
    assert np.array_equal(tm.vmap(f)(x), np.stack([f(v) for v in x]))


def test_vmap_over_seeds() -> None:
    def f(seed: Any) -> Any:
        r = np.random.default_rng(seed)
        return r.normal(size=3) + r.choice(5)

    seeds = np.array([3, 4, 5])
    assert np.array_equal(tm.vmap(f)(seeds), np.stack([f(v) for v in seeds]))


def test_vmap_draws_from_a_shared_generator_example_by_example() -> None:
    def f(r: Any, x: Any) -> Any:
        return r.normal(x, x * x, size=2) * r.uniform()

    generator, twin = np.random.default_rng(2), np.random.default_rng(2)
    x = np.array([0.5, 1.0, 2.0])
    batched = tm.vmap(lambda x: f(generator, x))
    for _ in range(2):
        assert np.array_equal(batched(x), np.stack([f(twin, v) for v in x]))
    assert generator.bit_generator.state == twin.bit_generator.state


def test_gradients_draw_as_the_value_does(tier: str) -> None:
    generator = np.random.default_rng(2)

    def f(r: Any, x: Any) -> Any:
        return (np.stack([r.normal(v, v * v, size=2) * r.uniform() for v in x]) ** 2).sum()

    x = np.array([0.5, 1.0, 2.0])
    slopes = [
        (f(np.random.default_rng(2), x + e) - f(np.random.default_rng(2), x - e)) / 2e-6 for e in 1e-6 * np.eye(3)
    ]
    batched = tm.vmap(lambda v: generator.normal(v, v * v, size=2) * generator.uniform())
    found = tm.grad(lambda x: (batched(x) ** 2).sum())(x)
    assert np.allclose(found, slopes, rtol=1e-6)
    twin = np.random.default_rng(2)
    f(twin, x)
    assert generator.bit_generator.state == twin.bit_generator.state


@pytest.mark.parametrize("how", ["vjp", "linearize"])
def test_derivatives_that_are_asked_for_later_draw_as_the_value_did(how: str) -> None:
    generator, twin = np.random.default_rng(2), np.random.default_rng(2)

    def f(x: Any) -> Any:
        return x * x * generator.normal()

    value, derivative = getattr(tm, how)(f, 3.0)
    factor = twin.normal()
    assert value == 9.0 * factor
    found = derivative(1.0)
    assert (found[0] if how == "vjp" else found) == 6.0 * factor
    assert generator.bit_generator.state == twin.bit_generator.state


def test_draws_in_functions_of_control_flow_are_refused() -> None:
    generator = np.random.default_rng(2)
    with pytest.raises(CaptureError, match="made outside"):
        tm.tensor(lambda x: tm.fori_loop(0, 5, lambda _k, c: c + generator.normal(), x)).graph(1.0)
    assert generator.bit_generator.state == np.random.default_rng(2).bit_generator.state


def test_draws_in_a_function_that_numpy_calls_for_each_element_are_refused() -> None:
    generator = np.random.default_rng(2)
    with pytest.raises(CaptureError, match="made outside"):
        tm.tensor(lambda x: np.vectorize(lambda v: v + generator.random())(x)).graph(np.zeros(3))
    assert generator.bit_generator.state == np.random.default_rng(2).bit_generator.state
