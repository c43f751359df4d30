"""Every op of the registry on stacks: values and gradients are those of single calls, for any stacked operands."""

# tests named elsewhere

import itertools

import numpy as np
import pytest

from tensormagic.backend.numpy_tier import reference
from tensormagic.ir import site
from tensormagic.ir.closing import close
from tensormagic.ir.graph import Graph
from tensormagic.ir.node import make
from tensormagic.ir.type import array
from tensormagic.ops.contract import einsum
from tensormagic.ops.leaf import INPUT, Source, constant, input_node, open_type, parameter
from tensormagic.ops.move import broadcast, transpose
from tensormagic.ops.op import Op, registry
from tensormagic.ops.regions import control
from tensormagic.ops.scalars.scalar import less, sin, where
from tensormagic.ops.update import zeros_like
from tensormagic.transform import grad as modes
from tensormagic.transform.batch import batch
from tests.ops.cases import CASES as OF_OPS
from tests.transform.batch_cases import CASES, RNG, SIZES, cases


def test_every_op_is_tried():
    tried = {param.id.rsplit("-", 1)[0] if param.id.rsplit("-", 1)[0] in registry else param.id for param in cases()}
    leaves = {name for name, o in registry.items() if o.kind == "leaf" and name != "item"}
    calls = {
        "outside",
        "converted",
        "settled",
        "works",
    }  # test_foreign.py: refused in batches; what is as it was taken for
    assert tried | leaves | calls | {case.op for case in OF_OPS} == set(registry)  # test_batch_cases.py


def place(value, name):
    source = Source(name)
    return input_node(source, open_type(source, value.dtype, value.shape, "array" if value.ndim else "scalar"))


def evaluate(results, inputs, values):
    graph = close(results, lambda n: n.op is INPUT, parameter, leaves=inputs).graph
    with np.errstate(all="ignore"):
        return reference.evaluate_graph(graph, values)


def of_single(build, values, cotangents):
    """The results, and with cotangents the gradient of each float operand."""
    inputs = [place(v, f"x{k}") for k, v in enumerate(values)]
    results = build(*inputs)
    if cotangents is None:
        return evaluate(results, inputs, values)
    given = [place(c, f"c{k}") for k, c in enumerate(cotangents)]
    floats = [n for n in inputs if n.type.inexact]
    found = [zeros_like(n) if c is None else c for n, c in zip(floats, modes.vjp(results, given, floats), strict=True)]
    return evaluate(found, [*inputs, *given], [*values, *cotangents])


def of_stack(build, values, flags, cotangents):
    """The same for a stack: operands that are not stacked get the sum of the gradients."""
    stacks = [place(v, f"s{k}") for k, v in enumerate(values)]
    singles = [
        input_node(Source("x"), s.type.with_shape(s.type.shape[1:])) if f else s
        for s, f in zip(stacks, flags, strict=True)
    ]
    lead = next(s.type.shape[0] for s, f in zip(stacks, flags, strict=True) if f)
    results = build(*singles)
    found = batch(results, {n: s for n, s, f in zip(singles, stacks, flags, strict=True) if f}, lead)
    found = [broadcast(r, (lead, *r.type.shape)) if f is None else f for r, f in zip(results, found, strict=True)]
    for node, single in zip(found, results, strict=True):
        assert node.type.dtype == single.type.dtype
        assert node.type.ndim == single.type.ndim + 1
    if cotangents is None:
        return evaluate(found, stacks, values)
    given = [place(c, f"c{k}") for k, c in enumerate(cotangents)]
    floats = [n for n in stacks if n.type.inexact]
    pulled = [zeros_like(n) if c is None else c for n, c in zip(floats, modes.vjp(found, given, floats), strict=True)]
    return evaluate(pulled, [*stacks, *given], [*values, *cotangents])


def example(values, flags, k):
    return [np.asarray(v[k]) if f else v for v, f in zip(values, flags, strict=True)]


@pytest.mark.share(5)
@pytest.mark.parametrize(("operands", "build", "differentiable"), list(cases()))
def test_a_stack_is_its_single_calls(operands, build, differentiable):
    combinations = [f for f in itertools.product((True, False), repeat=len(operands)) if any(f)]
    for flags in combinations:
        for size in SIZES[:2]:
            values = [np.asarray(make_one((size,) if f else ())) for make_one, f in zip(operands, flags, strict=True)]
            singles = [of_single(build, example(values, flags, k), None) for k in range(size)]
            found = of_stack(build, values, flags, None)
            for stack, parts in zip(found, zip(*singles, strict=True), strict=True):
                np.testing.assert_allclose(stack, np.stack(parts), rtol=1e-12, atol=1e-12)
            if differentiable:
                assert_gradients(build, values, flags, size, found)


def assert_gradients(build, values, flags, size, found):
    cotangents = [RNG.normal(size=np.shape(v)) for v in found]
    floats = [k for k, v in enumerate(values) if v.dtype.kind == "f"]
    pulled = of_stack(build, values, flags, cotangents)
    parts = [of_single(build, example(values, flags, k), [np.asarray(c[k]) for c in cotangents]) for k in range(size)]
    for number, k in enumerate(floats):
        each = np.stack([p[number] for p in parts])
        expected = each if flags[k] else each.sum(axis=0)
        np.testing.assert_allclose(pulled[number], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "name", ["contract", "gather", "scatter_add", "sort", "solve", "cond", "loop", "while", "set", "fft"]
)
def test_an_empty_stack_has_empty_results(name):
    operands, build, _ = CASES[name][0]
    flags = [True] * len(operands)
    values = [np.asarray(make_one((0,))) for make_one in operands]
    singles = of_single(build, [np.asarray(make_one(())) for make_one in operands], None)
    for stack, single in zip(of_stack(build, values, flags, None), singles, strict=True):
        assert stack.shape == (0, *np.shape(single))


def test_a_stack_of_stacks():
    """Two new axes, one after the other, for an op that moves axes and one with letters."""
    x, w = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(2, 5))
    single, vector = place(x[0, 0], "x"), place(w[0], "w")
    result = transpose(einsum("ij,j->i", transpose(single, (0, 1)), vector) * 2.0, (0,))
    inner, outer = place(x[0], "xs"), place(x, "xss")
    (once,) = batch([result], {single: inner}, inner.type.shape[0])
    weights = place(w, "ws")
    (twice,) = batch([once], {inner: outer, vector: weights}, outer.type.shape[0])
    (value,) = evaluate([twice], [outer, weights], [x, w])
    np.testing.assert_allclose(value, 2 * np.einsum("abij,aj->abi", x, w))


def test_what_no_stack_reaches_stays():
    stack, y = place(np.ones((4, 3)), "s"), place(np.ones(3), "y")
    x = input_node(Source("x"), stack.type.with_shape(stack.type.shape[1:]))
    kept, moved = batch([sin(y), sin(x)], {x: stack}, stack.type.shape[0])
    assert kept is None
    assert moved is sin(stack)


def test_sites_are_inherited():
    stack = place(np.ones((4, 3)), "s")
    x = input_node(Source("x"), stack.type.with_shape(stack.type.shape[1:]))
    node = sin(x) * 5.25
    site.record(node, site.Site("In[1]", 1, 2))
    (moved,) = batch([node], {x: stack}, stack.type.shape[0])
    assert [s.line for s in site.of(moved)] == [2]


def test_an_op_without_a_rule_is_named():
    class Strange(Op):
        pass

    strange = Strange(name="strange_without_batches")
    try:
        x, stack = place(np.ones(3), "x"), place(np.ones((4, 3)), "s")
        with pytest.raises(NotImplementedError, match="strange_without_batches has no rule for batches"):
            batch([make(strange, (x,), type=array(float, 3))], {x: stack}, stack.type.shape[0])
    finally:
        del registry["strange_without_batches"]


def test_where_keeps_its_condition():
    condition, x = place(np.array([True, False]), "c"), place(np.ones(2), "x")
    conditions = place(np.array([[True, False], [False, False], [True, True]]), "cs")
    (moved,) = batch([where(condition, x, constant(0.0))], {condition: conditions}, conditions.type.shape[0])
    (value,) = evaluate(
        [moved], [conditions, x], [np.array([[True, False], [False, False], [True, True]]), np.array([2.0, 3.0])]
    )
    np.testing.assert_array_equal(value, [[2, 0], [0, 0], [2, 3]])


def test_a_while_whose_body_knows_more_of_a_number_than_its_test():
    x, k = parameter(0, array(float)), parameter(1, array(np.int64), (0, None))
    loose = parameter(1, array(np.int64))
    iteration, going = Graph((x, k), (x * 2.0,)), Graph((x, loose), (less(x, loose),))
    stack, limit = place(np.ones(3), "s"), place(np.array(9), "k")
    single = input_node(Source("x"), array(float))
    (result,) = control.while_loop(going, iteration, (single,), (limit,))
    (moved,) = batch([result], {single: stack}, stack.type.shape[0])
    (value,) = evaluate([moved], [stack, limit], [np.array([1.0, 3.0, 20.0]), np.array(9)])
    np.testing.assert_array_equal(value, [16.0, 12.0, 20.0])
