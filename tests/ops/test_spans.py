"""Long loops whose gradients keep what blocks of iterations begin with: the same numbers, and memory near the root of the iterations."""

import tracemalloc

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ops.reverse import spans

pytestmark = pytest.mark.usefixtures("by_numpy")
rng = np.random.default_rng(5)
U = rng.normal(size=(12, 9))
DRIVE = rng.normal(size=(150, 12, 9))


@pytest.fixture
def divided(monkeypatch):
    monkeypatch.setattr(spans, "MOST_BYTES", 10_000)


def constant_iterations(u, c):
    for t in range(150):
        u = u + c * np.sin(u) * (t + 1) / 150
    return np.sum(u**2)


def iterations_by_data(u, c, drive):
    for t in range(drive.shape[0]):
        u = u + c * np.sin(u) * drive[t]
    return np.sum(u**2)


def stencil(u, c):
    u = u.copy()
    for _ in range(101):
        m = u[1:-1]
        u[1:-1] = m + c * (u[:-2] + u[2:] - 2 * m) / (1 + m * m)
    return np.sum(u**3)


def kept(graph):
    """The checkpoints anywhere in a graph."""
    text = str(graph)
    return text.count(" checkpoint(")


CASES = [(constant_iterations, (U, 0.3)), (iterations_by_data, (U, 0.2, DRIVE)), (stencil, (U, 0.05))]


@pytest.mark.parametrize(("function", "values"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_blocks_change_no_number(function, values, monkeypatch):
    argnums = tuple(range(len(values)))
    whole = tm.value_and_grad(function, argnums)
    assert not kept(whole.graph(*values))
    expected, slopes = whole(*values)
    monkeypatch.setattr(spans, "MOST_BYTES", 10_000)
    both = tm.value_and_grad(function, argnums)
    assert kept(both.graph(*values))
    value, found = both(*values)
    assert value == expected
    for a, b in zip(found, slopes, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.usefixtures("divided")
@pytest.mark.parametrize("iterations", [1, 2, 11, 12, 13, 150])
def test_the_length_of_a_block_does_not_fix_the_number_of_iterations(iterations):
    both = tm.value_and_grad(iterations_by_data, (0, 1))
    both(U, 0.2, DRIVE)
    value, (slope, _) = both(U, 0.2, DRIVE[:iterations])
    step = 1e-6
    along = rng.normal(size=U.shape)
    ends = [iterations_by_data(U + s * along, 0.2, DRIVE[:iterations]) for s in (step, -step)]
    np.testing.assert_allclose(value, iterations_by_data(U, 0.2, DRIVE[:iterations]), rtol=1e-12)
    np.testing.assert_allclose(np.vdot(slope, along), (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


@pytest.mark.usefixtures("divided")
def test_second_derivatives_go_through_blocks():
    direction = rng.normal(size=U.shape)
    found = tm.hvp(lambda u: constant_iterations(u, 0.1), (U,), (direction,))
    found = found[0] if isinstance(found, tuple) else found
    slope = tm.grad(lambda u: constant_iterations(u, 0.1))
    step = 1e-6
    expected = (slope(U + step * direction) - slope(U - step * direction)) / (2 * step)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def peak(function, *values):
    function(*values)
    tracemalloc.start()
    try:
        function(*values)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_near_the_root_of_the_iterations(monkeypatch):
    u = rng.normal(size=(100, 100))
    monkeypatch.setattr(spans, "MOST_BYTES", 1 << 40)
    whole = peak(tm.grad(constant_iterations), u, 0.3)
    monkeypatch.setattr(spans, "MOST_BYTES", 1 << 20)
    blocks = peak(tm.grad(constant_iterations), u, 0.3)
    assert whole > 150 * u.nbytes
    assert blocks < 45 * u.nbytes


@pytest.mark.usefixtures("divided")
def test_a_loop_that_stores_elements_is_not_divided():
    """It records an element an iteration: what a block begins with, the whole array, would be more."""

    def running(x, a):
        x = x.copy()
        for i in range(1, 2000):
            x[i] = np.sin(x[i - 1]) * a + x[i]
        return np.sum(x)

    x = rng.normal(size=2000)
    assert not kept(tm.value_and_grad(running, (0, 1)).graph(x, 0.5))
