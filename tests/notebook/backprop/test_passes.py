"""Both passes of small graphs: adjoints are those of ``tm.grad`` and of finite differences, and the sums of their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.tree import flatten
from tensormagic.ir.errors import CaptureError, DifferentiationError
from tensormagic.ir.graph import sizer
from tensormagic.ir.node import Node, topological
from tensormagic.notebook.backprop.passes import MOST_ELEMENTS, MOST_NODES, Passes
from tensormagic.notebook.backprop.subject import of_function
from tensormagic.notebook.live.variables import function_of

pytestmark = pytest.mark.usefixtures("by_numpy")
RANDOM = np.random.default_rng(0)
VECTOR, MATRIX = RANDOM.normal(size=4), RANDOM.normal(size=(4, 3))
SQUARE = RANDOM.normal(size=(3, 3)) + 3 * np.eye(3)


def logistic(X, w, b, y):
    z = X @ w + b
    return np.mean(np.log(1 + np.exp(-y * z))) * 2


def neuron(x, w, b):
    z = x * w + b
    a = 1 / (1 + np.exp(-z))
    return (a - 1.0) ** 2 + x * x


def stores(x):
    y = x.copy()
    y[1:] = y[:-1] * 2
    y[0] += x[2]
    return y.sum() * x[0]


def recurrent(w, X):
    h = np.zeros(3)
    for k in range(4):
        h = np.tanh(w @ h + X[k])
    return np.sum(h**2)


def two_carries(x):
    a, b = x, x * x
    for _ in range(3):
        a, b = b, a + b * 0.5
    return a * b


def grows(x):
    s = x
    while s < 10:
        s = s * x + 1
    return s


def branches(x):
    if x > 0:  # noqa: SIM108 (a branch with a store is what is captured)
        y = np.log(x)
    else:
        y = x**2
    return y * 3


def of_a_dictionary(p, x):
    return np.sum((x @ p["w"] + p["b"][0]) ** 2)


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (neuron, (0.5, 1.5, 0.1)),
    (logistic, (MATRIX, RANDOM.normal(size=3), 0.1, np.sign(VECTOR))),
    (stores, (VECTOR,)),
    (recurrent, (SQUARE / 5, MATRIX)),
    (two_carries, (0.7,)),
    (grows, (1.5,)),
    (branches, (1.3,)),
    (branches, (-1.3,)),
    (of_a_dictionary, ({"w": np.ones(3), "b": [0.5]}, MATRIX)),
    (lambda A, b: np.linalg.solve(A, 2 * b).sum(), (SQUARE, np.ones(3))),
    (lambda x: np.linalg.eigvalsh(x + x.T).max(), (SQUARE,)),
    (lambda x: np.abs(np.fft.fft(x)).sum(), (VECTOR,)),
    (lambda x: np.cumsum(np.sort(x))[2] + np.prod(x) * np.max(x), (VECTOR,)),
    (lambda x: np.concatenate([x, 2 * x]).reshape(2, -1).T[1] @ np.array([1.0, 2.0]), (VECTOR,)),
    (lambda x: np.where(x > 0, np.log(x), 0.0).sum(), (np.array([-1.0, 2.0, 0.5]),)),
    (lambda x: tm.grad(lambda y: y**3)(x) * x, (2.0,)),
    (lambda x, n: x * n + (x + 1j * x).real, (2.0, 3)),
    (lambda x: x, (2.0,)),
]
IDS = [getattr(f, "__name__", "lambda") + str(k) for k, (f, _) in enumerate(CASES)]


def floats(args: tuple[Any, ...]) -> tuple[int, ...]:
    """The positions of arguments that gradients are with respect to."""
    return tuple(k for k, a in enumerate(args) if not isinstance(a, int))


@pytest.mark.parametrize(("function", "args"), CASES, ids=IDS)
def test_adjoints_of_inputs_are_the_gradient(function, args):
    passes = Passes(of_function(function, args))
    found = passes.run(passes.subject.values)
    expected = flatten(tm.grad(function, floats(args))(*args))[0]
    moving = [p for p in passes.graph.parameters if p.type.inexact]
    assert len(moving) == len(expected)
    for parameter, gradient in zip(moving, expected, strict=True):
        np.testing.assert_allclose(found.adjoints[parameter], gradient, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(("function", "args"), CASES, ids=IDS)
def test_an_adjoint_is_the_sum_of_its_parts(function, args):
    passes = Passes(of_function(function, args))
    found = passes.run(passes.subject.values)
    summed = 0
    for node in passes.nodes:
        own = [p for u, p in zip(passes.uses, found.parts, strict=True) if u.source is node and p is not None]
        adjoint = found.adjoints.get(node)
        if node is passes.result or len(node.types) > 1 or adjoint is None:
            continue
        total = np.sum(np.stack(own), axis=0) if own else np.zeros(np.shape(adjoint))
        np.testing.assert_allclose(adjoint, total, rtol=1e-12, atol=1e-14)
        summed += 1
    assert summed >= len(passes.nodes) - 3


def downstream(passes: Passes, node: Node, value: Any) -> float:
    """The result where a node in the middle of the graph has another value."""
    values = passes.subject.values
    table: dict[Node, Any] = dict(zip(passes.graph.parameters, values, strict=True)) | {node: value}
    size = sizer(passes.graph.bind([np.shape(v) for v in values]), table)
    for one in topological([passes.result]):
        if one not in table:
            table[one] = one.op.evaluate(one, [table[a] for a in one.args], size)
    return float(table[passes.result])


@pytest.mark.parametrize("number", [0, 1, 2, 3, 8, 9], ids=lambda k: IDS[k])
def test_every_adjoint_is_the_slope_of_the_result_in_that_node(number):
    function, args = CASES[number]
    passes = Passes(of_function(function, args))
    found = passes.run(passes.subject.values)
    checked = 0
    for node, adjoint in found.adjoints.items():
        start = np.asarray(found.values[node])
        way = np.random.default_rng(checked).normal(size=start.shape)
        step = 1e-3
        far = {k: downstream(passes, node, (start + k * step * way)[()]) for k in (-2, -1, 1, 2)}
        slope = (8 * (far[1] - far[-1]) - (far[2] - far[-2])) / (12 * step)
        assert np.sum(adjoint * way) == pytest.approx(slope, rel=1e-6, abs=1e-9)
        checked += 1
    assert checked >= 5


@pytest.mark.parametrize("number", [0, 1, 2, 8, 9], ids=lambda k: IDS[k])
def test_a_part_is_the_adjoint_times_the_local_derivative(number):
    function, args = CASES[number]
    passes = Passes(of_function(function, args))
    found = passes.run(passes.subject.values)
    kinds = set()
    for use, part, local in zip(passes.uses, found.parts, found.locals, strict=True):
        if use.local is None or local is None:
            continue
        adjoint = found.adjoints[use.target]
        kinds.add(use.local.kind)
        if use.local.kind == "matrix":
            expected = (np.ravel(adjoint) @ local).reshape(np.shape(part))
        else:
            expected = np.sum(adjoint * local) if use.local.kind == "column" else adjoint * local
        np.testing.assert_allclose(part, expected, rtol=1e-12, atol=1e-14)
    assert kinds >= (
        {"number"} if number == 0 else {"number", "row", "column", "elements", "matrix"} if number == 1 else set()
    )


def test_an_operand_that_is_used_twice_gets_two_parts():
    passes = Passes(of_function(lambda x: x * x, (3.0,)))
    found = passes.run([3.0])
    assert [float(p) for p in found.parts] == [3.0, 3.0]
    assert float(found.adjoints[passes.nodes[0]]) == 6.0


def test_a_region_is_one_node_with_its_adjoint_at_the_border():
    passes = Passes(of_function(recurrent, CASES[3][1]))
    assert [n.op.name for n in passes.nodes].count("loop") == 1
    loop = next(n for n in passes.nodes if n.op.name == "loop")
    found = passes.run(passes.subject.values)
    np.testing.assert_allclose(found.adjoints[loop], 2 * found.values[loop], rtol=1e-12)


def test_where_rewriting_saves_a_gradient_both_are_known():
    big = np.array([1000.0, -2.0])
    passes = Passes(of_function(lambda x: np.mean(np.log(1 + np.exp(x))), (big,)))
    found = passes.run([big])
    x = passes.graph.parameters[0]
    assert np.isnan(found.adjoints[x][0])
    np.testing.assert_allclose(found.rewritten[x], tm.grad(lambda x: np.mean(np.log(1 + np.exp(x))))(big), rtol=1e-12)


def test_a_mask_keeps_infinite_slopes_out():
    passes = Passes(of_function(lambda x: np.where(x > 0, np.sqrt(x), 0.0).sum(), (np.array([0.0, 4.0]),)))
    found = passes.run(passes.subject.values)
    assert found.adjoints[passes.graph.parameters[0]].tolist() == [0.0, 0.25]


def test_an_operand_without_a_derivative_says_so_and_the_others_go_on():
    from scipy import special

    passes = Passes(of_function(lambda order, x: special.jv(order, x) * x, (1.0, 2.0)))
    found = passes.run(passes.subject.values)
    order, x = passes.graph.parameters
    assert float(found.adjoints[x]) == pytest.approx(special.jvp(1.0, 2.0) * 2.0 + special.jv(1.0, 2.0), rel=1e-9)
    whys = [u.why for u in passes.uses if u.source is order]
    assert len(whys) == 1
    assert "no derivative with respect to its first operand" in whys[0]


def test_what_cannot_be_shown_is_refused():
    def deep(x):
        for power in (1.0, 2.0, 3.0) * (MOST_NODES // 3):
            x = np.sin(x * power)
        return x

    with pytest.raises(ValueError, match="at most 60 nodes, and deep has"):
        Passes(of_function(deep, (1.0,)))
    with pytest.raises(DifferentiationError, match=r"one real number, but value is float64\[3\]"):
        Passes(of_function(lambda x: x * 2, (np.ones(3),)))
    with pytest.raises(DifferentiationError, match="returns 2 values"):
        of_function(lambda x: (x, x), (1.0,))
    with pytest.raises(CaptureError, match="changes its arguments"):
        of_function(fills, (np.ones(3),))
    large = Passes(of_function(lambda x: x.sum(), (np.ones(3),)))
    with pytest.raises(ValueError, match="at most 200000 elements"):
        Passes(of_function(lambda x: (x * 2).sum(), (np.ones(MOST_ELEMENTS + 1),))).run([np.ones(MOST_ELEMENTS + 1)])
    assert len(large.nodes) == 2


def fills(x):
    x[0] = 5.0
    return x.sum()


def test_lazy_values_are_shown_down_to_their_inputs():
    x = tm.tensor(np.array([1.0, 2.0]))
    value = (x * x).sum() * 2.0
    assert float(value) == 10.0  # what is known does not cut the graph
    passes = Passes(of_function(function_of(value, "value", {}, {}), ()))
    found = passes.run(passes.subject.values)
    assert found.adjoints[passes.nodes[0]].tolist() == [4.0, 8.0]


def stretched(b, column):
    named = np.broadcast_to(b, (4, 3))
    return np.sum((MATRIX[:4] + b) * column[:, None] + named)


def test_what_repeats_elements_is_no_node_of_its_own_but_where_the_user_has_named_it():
    passes = Passes(of_function(stretched, (RANDOM.normal(size=3), RANDOM.normal(size=4))))
    found = passes.run(passes.subject.values)
    b, column = passes.graph.parameters[:2]
    assert [n.op.name for n in passes.nodes if n.op.name in {"broadcast", "reshape"}] == ["broadcast"]
    sums = np.asarray(passes.subject.values[1]).sum()
    np.testing.assert_allclose(found.adjoints[b], np.full(3, sums + 4), rtol=1e-12)
    parts = {u.target.op.name: p for u, p in zip(passes.uses, found.parts, strict=True) if u.source is b}
    assert {name: p.shape for name, p in parts.items()} == {"add": (3,), "broadcast": (3,)}
    np.testing.assert_allclose(found.adjoints[column], (MATRIX[:4] + passes.subject.values[0]).sum(1), rtol=1e-12)
