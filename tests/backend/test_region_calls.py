"""Regions with calls of NumPy in them, and kernels that do not compile."""

import numpy as np
import pytest

from tensormagic.backend.planning.plan import plan_graph
from tensormagic.ops import contract, fold
from tensormagic.ops.fold import SUM
from tensormagic.ops.indices.sorting import sort
from tensormagic.ops.leaf import size_node
from tensormagic.ops.matrices.linalg import solve
from tensormagic.ops.move import transpose
from tensormagic.ops.scalars import scalar
from tests.backend.graphs import closed, prepared
from tests.backend.regions import (
    ITERATIONS,
    A,
    L,
    V,
    branch,
    compiled_alike,
    element,
    put,
    repeat,
    repeat_while,
    rng,
    total,
    variable,
)

# what Python runs iteration by iteration -----------------------------------------------------------------------------------------------


SQUARE = variable("S", rng.normal(size=(4, 4)) / 4)


def called(a, c):
    """What NumPy computes of two matrices."""
    return sort(a * c, 0)


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize(
    "body",
    [
        lambda k, a, b, c: (called(a, c) * 0.3 + k, a + b),
        lambda k, a, b, c: (b, called(a, c) * 0.3 + 1),
        lambda k, a, b, c: (b, a * 2 + called(a, c)),
        lambda k, a, b, c: (transpose(called(a, c)), a * 2),
        lambda k, a, b, c: (put(a, element(called(a, c) * 1.5, 0), 1), b + a),
        lambda k, a, b, c: (called(a, c), called(a, c) + 1),
        lambda k, a, b, c: (c, b + called(b, c)),
    ],
)
def test_library_calls_in_loops(iterations, body):
    found = repeat(iterations, [SQUARE, SQUARE + 1], body, SQUARE * 2)
    plan = compiled_alike(*found, SQUARE, library=3, ulps=256, scale=1.0)
    assert plan.regions


def test_library_calls_in_while_and_branches():
    def body(a, c):
        small = scalar.less(total(a * a), 50.0)
        (b,) = branch(small, lambda x, y: contract.matmul(x, y) * 3.0 + x, lambda x, y: solve(x, y) * 9.0 + 1, a, c)
        return b * 1.5

    compiled_alike(
        *repeat_while([SQUARE], lambda a, c: scalar.less(total(a * a), 1e6), body, SQUARE + 1), library=1, ulps=1e5
    )


def test_products_with_vectors_are_loops():
    plan = compiled_alike(
        *repeat(4, [element(SQUARE, 0)], lambda _k, v, c: contract.matmul(c, v) / (1 + contract.matmul(v, v)), SQUARE),
        ulps=64,
    )
    assert not plan.regions


# everything else ------------------------------------------------------------------------------------------------------


def test_a_kernel_that_does_not_compile_is_left_to_numpy():
    x = contract.matmul(SQUARE, SQUARE) * 2
    results = [
        scalar.exp(x) + 1,
        contract.matmul(x, SQUARE) * 3,
        *repeat(3, [SQUARE], lambda k, a: put(a, element(a, 1), k)),
    ]
    graph, values = closed(results)
    sizes = graph.bind([v.shape for v in values])
    plan = plan_graph(graph)
    (handle, _, _), count = prepared(*results), len(plan.sources)
    whole = handle.run(sizes, *values)
    functions = [handle._functions[s] for s in handle.plan.sources]
    assert count > 2
    for missing in range(count):
        run = plan.compile([None if k == missing else f for k, f in enumerate(functions)])
        for ours, others in zip(run(sizes, *values), whole, strict=True):
            np.testing.assert_allclose(ours, others, rtol=1e-13)


def test_a_iteration_that_does_not_compile_still_changes_what_it_carries():
    results = repeat(3, [SQUARE, V], lambda k, a, v: (solve(a, a) + a * 2 + k, put(v, total(a) + k, 1)))
    graph, values = closed(results)
    plan = plan_graph(graph)
    (handle, _, _) = prepared(*results)
    sizes = graph.bind([v.shape for v in values])
    whole = handle.run(sizes, *values)
    functions = [handle._functions[s] for s in handle.plan.sources]
    assert plan.regions
    for missing in range(len(functions)):
        run = plan.compile([None if k == missing else f for k, f in enumerate(functions)])
        for ours, others in zip(run(sizes, *values), whole, strict=True):
            np.testing.assert_allclose(ours, others, rtol=1e-13)


def test_a_region_is_compiled_once_for_all_sizes():
    handle, _, _ = prepared(*repeat(size_node(L), [V], lambda k, a: put(a, total(a), k)))
    for n in (2, 9, 40):
        value = rng.normal(size=n)
        expected = value.copy()
        for k in range(n):
            expected[k] = expected.sum()
        np.testing.assert_allclose(handle.run(handle.plan.graph.bind([(n,)]), value)[0], expected, rtol=1e-12)


def test_sums_in_loops_are_of_what_is_there():
    compiled_alike(fold.fold(SUM, repeat(3, [A], lambda k, a: a * 2 + k)[0], (0, 1)), ulps=16)
