"""What is fused with what: the number of kernels, of passes over the data, and of temporaries."""

import numpy as np
import pytest

from tensormagic.backend.planning.plan import plan_graph
from tensormagic.backend.planning.schedule import Storage
from tensormagic.ops import contract, move
from tensormagic.ops.fold import ALL, ANY, LOG_SOFTMAX, LOGSUMEXP, MAX, SOFTMAX, SUM, fold, mean, row
from tensormagic.ops.leaf import iota
from tensormagic.ops.scalars import scalar, special
from tensormagic.ops.scalars.scalar import absolute, equal, exp, log, log1p, maximum, tanh, where
from tensormagic.transform.grad import gradient
from tests.backend.graphs import check, closed, planned, variable

rng = np.random.default_rng(7)


def matrix(n=37, m=11):
    return variable("x", rng.normal(size=(n, m)))


def passes(plan):
    """How many nests go over data."""
    return sum(bool(nest.depth) for k in plan.kernels for nest in k.kernel.nests)


def full_temporaries(plan):
    """Stored nodes of the rank of the largest that are no results."""
    rank = max(s.root.type.ndim for k in plan.kernels for s in k.kernel.stages)
    stored = [
        n
        for k in plan.kernels
        for nest in k.kernel.nests
        for n, where_ in nest.storage.items()
        if where_ is Storage.FULL
    ]
    return [n for n in stored if n.type.ndim == rank and n not in plan.driver.results]


@pytest.mark.parametrize("function", [SOFTMAX, LOG_SOFTMAX])
def test_softmax_over_rows_is_one_nest_without_temporaries(function):
    plan = check(row(function, matrix(), (1,)), ulps=16)
    (_kernel,) = plan.kernels
    assert passes(plan) == 1
    assert not full_temporaries(plan)
    assert not plan.library_steps


def test_softmax_over_columns_and_over_leading_axes():
    check(row(SOFTMAX, matrix(), (0,)), ulps=16)
    x = variable("x", rng.normal(size=(3, 4, 5, 6)))
    plan = check(row(SOFTMAX, x, (3,)), ulps=16)
    assert passes(plan) == 1
    check(row(SOFTMAX, x, (1, 2)), ulps=16)


def test_cross_entropy_and_its_gradient_are_one_nest():
    logits, labels = matrix(50, 7), variable("labels", rng.integers(0, 7, 50))
    shape = logits.type.shape
    hot = equal(spread_column(labels, shape), iota(shape, 1))
    picked = fold(SUM, where(hot, row(LOG_SOFTMAX, logits, (1,)), 0), (1,))
    loss = -mean(picked, (0,))
    plan = check(loss, ulps=16)
    assert passes(plan) == 1
    plan = check(loss, *gradient(loss, [logits]), ulps=16, scale=0.1)
    assert len(plan.kernels) == 1
    assert not full_temporaries(plan)


def spread_column(x, shape):
    return move.broadcast(move.expand_dims(x, (1,)), shape)


def test_a_chain_of_pointwise_functions_is_one_nest():
    x = y = variable("x", rng.normal(size=300))
    for _ in range(12):
        y = absolute(y * 2 + x) - 1
    plan = check(y)
    assert passes(plan) == 1
    assert not full_temporaries(plan)


def test_two_results_share_what_they_have_in_common():
    x = variable("x", rng.normal(size=3000))
    e = exp(x)
    total = fold(SUM, log1p(e), (0,))
    plan = check(total, e / (1 + e), ulps=16)
    (kernel,) = plan.kernels
    assert passes(plan) == 1
    assert kernel.printed.source.count(" = exp(") == 1


def test_logistic_loss_with_gradient_reads_the_matrix_once():
    X, w, b = variable("X", rng.normal(size=(700, 30))), variable("w", rng.normal(size=30)), variable("b", 0.25)
    y = variable("y", np.sign(rng.normal(size=700)))
    loss = mean(log1p(exp(-y * (contract.matmul(X, w) + b))), (0,))
    plan = check(loss, *gradient(loss, [w, b]), ulps=64, scale=1.0)
    assert passes(plan) == 1
    assert not plan.library_steps


def test_equal_kernels_are_compiled_once():
    x, w, b = (variable(name, rng.normal(size=50)) for name in "xwb")
    for _ in range(700):
        x = tanh(x * w + b)
    plan = check(x, ulps=1e3)
    assert len(plan.kernels) > 20
    assert len(plan.sources) < 5
    y = variable("y", rng.normal(size=50))
    for k in range(400):
        y = y * (1 + 1e-3 * k) + 0.1 * k
    plan = planned(y)
    assert len(plan.sources) < 6 < len(plan.kernels)


def test_constants_are_arguments_but_for_plain_ones():
    x = variable("x", rng.normal(size=50))
    assert planned(x * 1.25).sources == planned(x * 7.5).sources
    assert planned(x * 2.0).sources != planned(x * 7.5).sources
    check(x * 1.25 + 7.5, ulps=0)


def test_a_shifted_read_of_something_expensive_is_stored_once():
    e = exp(variable("x", rng.normal(size=100)))
    left, right = (move.slice_(e, ((begin, e.type.shape[0] - 1, 1),)) for begin in (0, 1))
    plan = check(right - left, ulps=64)
    assert sum(k.printed.source.count(" = exp(") for k in plan.kernels) == 1


def test_transposed_operands_are_read_in_order():
    x, r = matrix(), variable("r", rng.normal(size=37))
    plan = check(contract.matmul(move.transpose(x), r), ulps=64, scale=1.0)
    (kernel,) = plan.kernels
    assert "x[i * n" in kernel.source


def test_a_matrix_product_is_numpys():
    plan = check(contract.matmul(matrix(5, 6), variable("y", rng.normal(size=(6, 4)))) * 2, ulps=64, scale=1.0)
    assert [n.op.name for n in plan.library_steps] == ["contract"]
    assert len(plan.kernels) == 1


def test_a_library_call_between_loops():
    a = variable("a", rng.normal(size=(6, 6)))
    product = contract.matmul(exp(a), move.transpose(a))
    plan = check(fold(MAX, absolute(product), (1,)), product, ulps=256, scale=1.0)
    assert len(plan.kernels) == 2


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(5, 6, 7), (1, 6, 1), (3, 1, 2000)])
def test_folds_over_any_axes(shape, axes):
    x = variable("x", rng.normal(size=shape))
    check(fold(SUM, x, axes), fold(MAX, x * x, axes), ulps=64, scale=10.0)
    check(fold(SUM, variable("k", rng.integers(-99, 99, shape).astype("int16")), axes))


def test_row_functions_with_masks_that_leave_out_axes():
    x = variable("x", rng.normal(size=(3, 4, 5, 6)))
    mask = variable("mask", rng.random((5, 6)) > 0.3)
    check(row(SOFTMAX, where(move.broadcast(mask, x.type.shape), x, -1e9), (3,)), ulps=16)
    check(x + move.broadcast(variable("b", rng.normal(size=(4, 1, 6))), x.type.shape))


def test_logsumexp_of_infinities():
    values = np.array([[-np.inf, -np.inf], [np.inf, 1], [np.nan, 1], [800.0, 800], [-800.0, -900]])
    check(fold(LOGSUMEXP, variable("x", values), (1,)), fold(LOGSUMEXP, variable("y", values), (0,)), ulps=8)


def test_planning_a_long_chain_is_quick():
    import time

    x = variable("x", rng.normal(size=50))
    for _ in range(3000):
        x = tanh(x * x + 0.3)
    graph, _ = closed([x])
    begin = time.process_time()
    plan = plan_graph(graph)
    assert time.process_time() - begin < 10
    assert len(plan.sources) < 6


def test_scalars_only():
    a, b = variable("a", 2.5), variable("b", np.float64(0.5))
    check(exp(a) * b, a + a, ulps=8)
    check(scalar.maximum(variable("k", 3), 2))


def test_maximum_and_log_keep_one_pass():
    x, y = (variable(n, rng.normal(size=5000)) for n in "xy")
    plan = check(mean(log(1 + exp(-absolute(x))) + maximum(x, 0) - x * y, (0,)), ulps=8)
    assert passes(plan) == 1


def test_functions_without_vector_code_are_numpys_for_arrays_only():
    x, s = variable("x", rng.random(40)), variable("s", np.float64(0.5))
    plan = check(special.gammaln(x) + scalar.arctan(s), scalar.sinh(s), scalar.power(x, 1.3), ulps=8)
    assert [n.op.name for n in plan.library_steps] == ["gammaln"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("number", [-1, 0.5, 2, 3, 4])
def test_small_powers_are_products(number, dtype):
    values = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-30, 3.7, -2.1], dtype)
    plan = check(scalar.power(variable("x", values), number), ulps=2)
    assert not plan.library_steps


def test_any_and_all():
    x, b = variable("x", rng.integers(0, 3, (7, 50))), variable("b", rng.random((7, 50)) > 0.5)
    check(*(fold(op, v, axes) for op in (ANY, ALL) for v in (x, b) for axes in ((0,), (1,), (0, 1))))


def apart(n=50):
    """Two chains over different arrays, each with a function that is stored for what reads it twice."""
    x, y = variable("x", rng.uniform(1, 2, n)), variable("y", rng.uniform(1, 2, n))
    a, b = exp(x * x), log(y + 1)
    return a, b


def test_chains_that_meet_later_are_one_nest():
    a, b = apart()
    plan = check(tanh(a * 2 + b) + log1p(a) * absolute(b), ulps=16)
    assert passes(plan) == 1
    assert not full_temporaries(plan)


def test_chains_of_rows_that_meet_later_are_one_nest():
    x, y = matrix(30, 5), variable("y", rng.uniform(1, 2, (30, 5)))
    s, t = row(SOFTMAX, x, (1,)), fold(MAX, exp(-y), (1,))
    plan = check(s * contract.einsum("i,ij->ij", t, s), ulps=16)
    assert passes(plan) == 1


def test_chains_stay_apart_where_the_first_has_to_run_between_them():
    a, b = apart()
    total = fold(SUM, a, (0,))
    plan = check(tanh(b * move.broadcast(total, b.type.shape)) + a, ulps=16)
    assert passes(plan) == 2


def test_chains_that_do_not_meet_stay_apart():
    a, b = apart()
    plan = check(tanh(a), log1p(b), ulps=16)
    assert passes(plan) == 2


@pytest.mark.parametrize("count", [2, 3, 5, 12, 60])
def test_chains_meet_again_and_again(count):
    """A nest that runs within a later one is empty until all are arranged, and nothing joins it."""
    x = variable("x", rng.uniform(0.1, 1, 50))
    y = x
    for k in range(count):
        y = y + log1p(x * (k + 0.5)) * tanh(y)
    plan = planned(y)
    assert all(nest.stages for k in plan.kernels for nest in k.kernel.nests)
