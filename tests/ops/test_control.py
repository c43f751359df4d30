"""Region ops: values as Python's own if, for and while, derivatives, sizes and text across their border."""

import numpy as np
import pytest

from tensormagic.ir.errors import DTypeError, GuardError, ShapeError
from tensormagic.ops.contract import matmul
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.leaf import constant
from tensormagic.ops.matrices.linalg import inv
from tensormagic.ops.op import registry
from tensormagic.ops.regions.control import call, cond, grad, interpret, loop, while_loop
from tensormagic.ops.scalars.scalar import cos, exp, less, sin
from tensormagic.transform.grad import jvp
from tests.ops.harness import BACKENDS, closed, place, run_nodes
from tests.ops.test_derivatives import check, richardson

RNG = np.random.default_rng(11)
A, B, T = (RNG.normal(size=(3, 3)) for _ in range(3))


def graph_of(function, *values):
    """A region made by example; a NumPy scalar stands for a rank-0 operand."""
    inputs = [place(v) for v in values]
    found = function(*inputs)
    return closed(list(found) if isinstance(found, tuple) else [found], inputs)


def both(x):
    return reduce_sum(x, tuple(range(x.type.ndim)))


THEN = graph_of(lambda a, b: (matmul(a, b), both(a)), A, B)
OTHERWISE = graph_of(lambda a, b: (sin(a) * b, both(b) * 2.0), A, B)


def choose(pred):
    return lambda x, y: cond(constant(np.bool_(pred)), THEN, OTHERWISE, [x, y])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("pred", [True, False])
def test_cond_runs_the_branch_that_is_meant(pred, backend):
    found = run_nodes(backend, lambda p, x, y: cond(p, THEN, OTHERWISE, [x, y]), [np.bool_(pred), A, B])
    expected = (A @ B, A.sum()) if pred else (np.sin(A) * B, B.sum() * 2)
    for ours, numpys in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, numpys)


def test_cond_runs_one_branch_only():
    fails = graph_of(inv, A)
    fine = graph_of(lambda a: a * 1.0, A)
    (result,) = run_nodes("reference", lambda x: cond(constant(np.bool_(False)), fails, fine, [x]), [np.zeros((3, 3))])
    np.testing.assert_array_equal(result, np.zeros((3, 3)))
    with pytest.raises(np.linalg.LinAlgError):
        run_nodes("reference", lambda x: cond(constant(np.bool_(True)), fails, fine, [x]), [np.zeros((3, 3))])


@pytest.mark.parametrize("pred", [True, False])
def test_derivatives_of_cond(pred):
    check("reference", choose(pred), [A, B])


def test_derivatives_of_cond_whose_results_meet():
    def function(x, y):
        product, total = choose(True)(x, y)
        other, _ = choose(False)(product, y)
        return matmul(other, x) * total

    check("reference", function, [A, B])


def test_derivatives_of_call_and_grad():
    check("reference", lambda x: call(THEN, [x, cos(x)]), [A])
    loss = graph_of(lambda a, b: both(sin(a) * b * a), A, B)
    check("reference", lambda x: grad(loss, [x, exp(x)], (0, 1)), [A])


def test_a_gradient_in_a_gradient_in_a_gradient():
    cube = graph_of(lambda x: x * x * x * x, np.float64(1))
    second = graph_of(lambda x: grad(cube, [x], (0,)), np.float64(1))
    third = graph_of(lambda x: grad(second, [x], (0,)), np.float64(1))
    (found,) = run_nodes("reference", lambda x: grad(third, [x], (0,)), [np.float64(2)])
    assert found == 48


BODY = graph_of(lambda k, a, s, c: (matmul(a, c) / 3.0, s + both(a) * k), np.int64(0), A, np.float64(0), B)


def repeated(count):
    return lambda x, c: loop(constant(count), BODY, [x, constant(np.float64(0.5))], [cos(c)])


def by_python(count, a, c):
    s = 0.5
    for k in range(count):
        a, s = a @ np.cos(c) / 3, s + a.sum() * k
    return a, s


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [0, 1, 4])
def test_loop(count, backend):
    for ours, pythons in zip(run_nodes(backend, repeated(count), [A, B]), by_python(count, A, B), strict=True):
        np.testing.assert_allclose(ours, pythons, rtol=1e-14)


def tangents_of(function, points, moves):
    inputs, movers = [place(p) for p in points], [place(m) for m in moves]
    found = jvp(list(function(*inputs)), dict(zip(inputs, movers, strict=True)))
    return BACKENDS["reference"](closed(found, [*inputs, *movers]))([*points, *moves])


def test_forward_mode_through_a_loop_and_through_its_tangents():
    expected = richardson(lambda p: list(by_python(4, *p)), [A, B], [T, T @ T])
    for ours, numeric in zip(tangents_of(repeated(4), [A, B], [T, T @ T]), expected, strict=True):
        np.testing.assert_allclose(ours, numeric, rtol=1e-8)

    def first(x, c):
        return tuple(jvp(list(repeated(3)(x, c)), {x: constant(T), c: constant(T)}))

    expected = richardson(lambda p: tangents_of(repeated(3), p, [T, T]), [A, B], [T, T])
    for ours, numeric in zip(tangents_of(first, [A, B], [T, T]), expected, strict=True):
        np.testing.assert_allclose(ours, numeric, rtol=1e-8)


def test_a_carry_that_moves_only_after_the_first_iteration_has_a_tangent():
    swap = graph_of(lambda k, a, b, c: (b, c, a), np.int64(0), *np.float64([1, 2, 3]))

    def function(x):
        return loop(constant(2), swap, [constant(np.float64(0)), constant(np.float64(0)), x * 5.0])

    assert [float(t) for t in tangents_of(lambda x: function(x)[:1], [np.float64(1)], [np.float64(1)])] == [5]


@pytest.mark.parametrize("count", [0, 1, 4])
def test_both_modes_through_a_loop(count):
    check("reference", repeated(count), [A, B])


TEST = graph_of(lambda a, c: less(both(abs(a)), 100.0), A, B)
GROW = graph_of(lambda a, c: a * 2.0 + c, A, B)


def grown(a, c):
    while np.abs(a).sum() < 100:
        a = a * 2 + c
    return a


@pytest.mark.parametrize("backend", BACKENDS)
def test_while(backend):
    def function(x, c):
        return while_loop(TEST, GROW, [x], [sin(c)])

    (found,) = run_nodes(backend, function, [A, B])
    np.testing.assert_allclose(found, grown(A, np.sin(B)), rtol=1e-14)
    (tangent,) = tangents_of(function, [A, B], [T, T])
    (expected,) = richardson(lambda p: [grown(p[0], np.sin(p[1]))], [A, B], [T, T])
    np.testing.assert_allclose(tangent, expected, rtol=1e-8)


def test_sizes_cross_the_border():
    twice = graph_of(matmul, np.ones((2, 3)), np.ones((3, 4)))
    x, y = place(np.ones((5, 6))), place(np.ones((6, 7)))
    (result,) = call(twice, [x, y])
    assert result.type.shape == (x.type.shape[0], y.type.shape[1])
    graph = closed([result], [x, y])
    assert graph.parameters[0].type.shape[1] == graph.parameters[1].type.shape[0]
    with pytest.raises(GuardError):
        graph.bind([(5, 6), (4, 7)])


def test_operands_that_do_not_fit_are_refused():
    x = place(A)
    with pytest.raises(ShapeError, match="takes 2 operands, 1 are given"):
        call(THEN, [x])
    with pytest.raises(DTypeError, match="its graph takes float64"):
        call(THEN, [x, place(A.astype(np.float32))])
    with pytest.raises(ShapeError, match="operand 1 has shape"):
        call(THEN, [x, place(A[0])])
    with pytest.raises(ShapeError, match="a size is"):
        call(THEN, [x, place(np.ones((4, 4)))])
    with pytest.raises(ShapeError, match="at least 2"):
        call(THEN, [place(np.ones((1, 3))), x])
    with pytest.raises(DTypeError, match="predicate"):
        cond(place(np.float64(1)), THEN, OTHERWISE, [x, x])
    with pytest.raises(DTypeError, match="branches"):
        cond(constant(np.bool_(True)), THEN, graph_of(lambda a, b: a, A, B), [x, x])
    with pytest.raises(DTypeError, match="carry"):
        loop(constant(3), graph_of(lambda k, a: both(a), np.int64(0), A), [x])
    with pytest.raises(DTypeError, match="integers"):
        loop(constant(3.0), BODY, [x, constant(np.float64(0))], [x])
    with pytest.raises(DTypeError, match="bool"):
        while_loop(GROW, GROW, [x], [x])


def test_regions_in_regions_round_trip_as_text():
    inner = graph_of(lambda a: call(THEN, [a, a])[0], A)
    outer = graph_of(lambda a: cond(less(both(a), 0.0), inner, graph_of(cos, A), [a]), A)
    assert outer.text.startswith("@0 = graph(")
    np.testing.assert_array_equal(interpret(outer, [A])[0], A @ A if A.sum() < 0 else np.cos(A))
    assert {"cond", "loop", "while", "call", "grad"} <= set(registry)
