"""Large graphs and long loops: derivatives, rewriting and plans in time and memory that grow with the size, and no faster."""

import time
import tracemalloc

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.planning.plan import plan_graph
from tensormagic.config import config
from tensormagic.transform.grad import value_and_gradient
from tensormagic.transform.rewriting import rewrite

pytestmark = pytest.mark.usefixtures("by_numpy")


def chain(links):
    """A function of about ``links`` operations, written out."""

    def function(x):
        for k in [*range(links // 4)]:
            x = np.sin(x) * 0.5 + x
            x = x * 1.0001 if k % 2 else x - 0.1
        return np.sum(x)

    return function


def cpu(program):
    """CPU seconds of a call, the best of four, with its result."""
    times = []
    for _ in range(4):
        begin = time.process_time()
        result = program()
        times.append(time.process_time() - begin)
    return min(times), result


@pytest.fixture(scope="module")
def graphs():
    x = np.ones(5)
    return {n: tm.tensor(chain(n)).graph(x) for n in (1000, 5000)}


def gradient(graph):
    return graph.with_results(value_and_gradient(graph.results[0], graph.parameters)[1])


def test_the_gradient_of_a_graph_of_5000_nodes_is_no_larger_than_four(graphs):
    found = gradient(graphs[5000])
    assert len(found.nodes) < 4 * len(graphs[5000].nodes)


def test_the_time_of_a_gradient_is_linear_in_the_nodes(graphs):
    small, _ = cpu(lambda: gradient(graphs[1000]))
    large, _ = cpu(lambda: gradient(graphs[5000]))
    assert large < 2 * 5 * small


def test_rewriting_makes_no_graph_larger(graphs):
    found = rewrite(graphs[5000]).graph
    assert len(found.nodes) <= len(graphs[5000].nodes)


def test_a_graph_that_is_in_normal_form_is_not_copied(graphs):
    found = rewrite(graphs[5000]).graph
    again = rewrite(found).graph
    assert all(a is b for a, b in zip(again.results, found.results, strict=True))


def test_kernels_of_a_gradient_are_as_many_as_its_size_says(graphs):
    counts = [
        len(plan_graph(rewrite(gradient(tm.tensor(chain(n)).graph(np.ones(5)))).graph).kernels) for n in (300, 1200)
    ]
    assert counts[1] < 5 * counts[0]


@pytest.mark.parametrize("links", [8, 40])
def test_a_chain_of_elementwise_operations_is_one_kernel(links):
    graph = tm.tensor(chain(links)).graph(np.ones(5))
    assert len(plan_graph(rewrite(graph).graph).kernels) == 1


def test_a_million_iterations_are_one_loop_and_one_back():
    def function(x, a):
        for _ in range(1_000_000):
            x = np.sin(x) * a + 0.1
        return x

    seconds, graph = cpu(lambda: tm.value_and_grad(function, (0, 1)).graph(0.3, 0.9))
    assert len(graph.nodes) < 30
    assert seconds < 1


def running(v, a):
    x = np.zeros(v.shape[0])
    for i in range(1, v.shape[0]):
        x[i] = np.sin(x[i - 1]) * a + v[i]
    return np.sum(x)


def test_a_hundred_thousand_stores_are_differentiated_in_place(monkeypatch):
    monkeypatch.setattr(config, "tier", "numba")
    both = tm.value_and_grad(running, (0, 1))
    both(np.ones(10), 0.5)
    peaks, times = {}, {}
    for n in (10_000, 100_000):
        v = np.random.default_rng(0).normal(size=n)
        tracemalloc.start()
        try:
            value, (slope, by_a) = both(v, 0.5)
            peaks[n] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        times[n], _ = cpu(lambda v=v: both(v, 0.5))
    assert peaks[100_000] < 12 * 8 * 100_000
    assert times[100_000] < 40 * times[10_000]
    assert times[100_000] < 0.2
    x, back, expected = np.zeros(n), 0.0, 0.0
    for i in range(1, n):
        x[i] = np.sin(x[i - 1]) * 0.5 + v[i]
    for i in range(n - 1, 0, -1):
        back = 1 + back * np.cos(x[i]) * 0.5
        expected += back * np.sin(x[i - 1])
        assert abs(slope[i] - back) < 1e-12
    np.testing.assert_allclose([value, by_a], [np.sum(x), expected], rtol=1e-10)
