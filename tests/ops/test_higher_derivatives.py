"""Every differentiable op at orders 2 and 3, by forward mode alone and by reverse mode alone, and its derivatives over a stack.

Each order is held against differences of the one before it, and its two modes against each other. The suite takes one case
of each op for each dtype; ``scripts/check_derivatives.py`` takes them all.
"""

# tests named elsewhere

import numpy as np
import pytest

from tensormagic.ops.leaf import constant, input_node
from tensormagic.transform.batch import batch
from tensormagic.transform.grad import jvp, vjp
from tests.ops.harness import BACKENDS, FIXED, closed, listed, place
from tests.ops.test_derivatives import (
    POINTWISE,
    cases,
    check,
    directions,
    inside,
    of_moving,
    seeds,
    takes,
    zeros_where_none,
)


def pushed(function):
    """The derivative along fixed directions, as a function of nodes."""

    def derivative(*nodes):
        results = [r for r in listed(function(*nodes)) if r.type.inexact]
        moves = seeds(lambda *_: nodes, nodes)
        return tuple(zeros_where_none(jvp(results, dict(zip(nodes, moves, strict=True))), results))

    return derivative


def pulled(function):
    """The gradient for fixed cotangents, as a function of nodes."""
    return lambda *nodes: tuple(zeros_where_none(vjp(listed(function(*nodes)), seeds(function, nodes), nodes), nodes))


def items():
    """A name, a function of nodes and a point, for every case of every op."""
    for op in POINTWISE:
        for dtype in (d for d in "dD" if takes(op, d)):
            points = inside(op, np.random.default_rng(8), dtype)
            fixed = FIXED.get(op.name, [])
            yield (
                f"{op.name}-{dtype}",
                lambda *nodes, op=op, fixed=fixed: op(*map(constant, fixed), *nodes),
                points[len(fixed) :],
            )
    for case, dtype in cases():
        values = case.operands(np.random.default_rng(10), dtype)
        moving = [k for k, v in enumerate(values) if v.dtype.kind in "fc"]
        yield f"{case.op}-{dtype}-{case}", of_moving(case, values, moving), [values[k] for k in moving]


def share():
    """One case of each op for each dtype: the largest of the small ones."""
    chosen = {}
    for name, function, points in items():
        key = "-".join(name.split("-")[:2])
        size = sum(np.size(p) for p in points)
        if size <= 24 and (key not in chosen or size > chosen[key][0]):
            chosen[key] = size, name, function, points
    return [pytest.param(f, p, id=name) for _, name, f, p in chosen.values()]


SHARE = share()


@pytest.mark.share(8)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", [pushed, pulled], ids=["forward", "reverse"])
@pytest.mark.parametrize(("function", "points"), SHARE)
def test_third_order(function, points, mode, backend):
    check(backend, mode(mode(function)), points, twice=False)


@pytest.mark.share(6)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("function", "points"), SHARE)
def test_second_order_by_forward_mode(function, points, backend):
    check(backend, pushed(function), points, twice=False)


def check_stack(backend, function, points):
    """Values, tangents and cotangents of a stack of points are those of each point."""
    rng = np.random.default_rng(11)
    inputs = [place(p) for p in points]
    results = [r for r in listed(function(*inputs)) if r.type.inexact]
    movers = [place(d) for d in directions(rng, points)]
    values = BACKENDS[backend](closed(results, inputs))(points)
    pullers = [place(d) for d in directions(rng, [np.asarray(v) for v in values])]
    forward = jvp(results, dict(zip(inputs, movers, strict=True)))
    backward = vjp(results, pullers, inputs)
    nodes = [n for n in [*results, *forward, *backward] if n is not None]
    leaves = [*inputs, *movers, *pullers]
    single = BACKENDS[backend](closed(nodes, leaves))
    rows = [
        [np.asarray(n["source"].value) * (1 + 1e-3 * k) for n in leaves[: len(inputs)]]
        + [np.asarray(n["source"].value) * (1 - 0.3 * k) for n in leaves[len(inputs) :]]
        for k in range(3)
    ]
    stacks = [np.stack(column) for column in zip(*rows, strict=True)]
    stacked = {n: input_node(n["source"], n.type.with_shape((3, *n.type.shape))) for n in leaves}
    found = batch(nodes, stacked, 3)
    known = [k for k, n in enumerate(found) if n is not None]
    expected = [np.stack(column) for column in zip(*(single(row) for row in rows), strict=True)]
    together = BACKENDS[backend](closed([found[k] for k in known], list(stacked.values())))(stacks)
    for k, ours in zip(known, together, strict=True):
        scale = max(float(np.max(np.abs(expected[k]), initial=0)), 1e-2)
        assert ours.shape == expected[k].shape
        assert np.max(np.abs(ours - expected[k]), initial=0) <= 1e-12 * scale
    for k in set(range(len(nodes))) - set(known):
        assert (expected[k] == expected[k][:1]).all()


@pytest.mark.share(6)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("function", "points"), [p for p in SHARE if not str(p.id).startswith("tell-")])  # refused
def test_stacks_of_derivatives(function, points, backend):
    check_stack(backend, function, points)
    check_stack(backend, pulled(function), points)
