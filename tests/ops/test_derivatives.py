"""Derivatives of every op: forward mode against finite differences, reverse against forward, and both of the gradient."""

# tests named elsewhere

import numpy as np
import pytest

from tensormagic.ir.errors import DTypeError
from tensormagic.ops.leaf import constant, iota
from tensormagic.ops.pointwise import ASTYPE, Pointwise, astype
from tensormagic.ops.update import zeros_like
from tensormagic.transform.grad import jvp, vjp
from tests.ops.cases import CASES
from tests.ops.harness import BACKENDS, FIXED, closed, listed, place, registry, sample

POINTWISE = [op for op in registry.values() if isinstance(op, Pointwise) and op is not ASTYPE and op.step is not True]


def richardson(function, points, directions, h=4e-3):
    """Directional derivatives by central differences of three steps, extrapolated to an error of order h**6."""

    def central(step):
        plus = function([x + step * d for x, d in zip(points, directions, strict=True)])
        minus = function([x - step * d for x, d in zip(points, directions, strict=True)])
        return [(p - m) / (2 * step) for p, m in zip(plus, minus, strict=True)]

    table = [central(h / 2**k) for k in range(3)]
    once = [[(4 * b - a) / 3 for a, b in zip(table[k], table[k + 1], strict=True)] for k in range(2)]
    return [(16 * b - a) / 15 for a, b in zip(*once, strict=True)]


def assert_near(found, expected, tolerance=1e-6):
    for a, b in zip(found, expected, strict=True):
        size = max(float(np.max(np.abs(b), initial=0)), 1e-2)
        assert np.max(np.abs(a - b), initial=0) <= tolerance * size, (
            f"the derivative is {a}, differences of values say {b}: the op's partials (or its linearise or tangent) are not "
            "the derivative of what its numpy computes, or its domain=(low, high) is where it is not smooth"
        )


def assert_alike(found, expected):
    assert [(np.asarray(a).dtype, np.shape(a)) for a in found] == [(np.asarray(b).dtype, np.shape(b)) for b in expected]


def pairing(left, right):
    """The real bilinear product that transposes are taken in: without conjugation, as gradients are."""
    terms = [(np.asarray(a) * np.asarray(b)).real for a, b in zip(left, right, strict=True)]
    return sum(float(t.sum()) for t in terms), sum(float(np.abs(t).sum()) for t in terms)


def zeros_where_none(found, like):
    return [zeros_like(n) if t is None else t for t, n in zip(found, like, strict=True)]


def directions(rng, arrays):
    return [sample(rng, a.dtype, np.shape(a)) / 2 for a in arrays]


def check(backend, function, points, *, twice=True):
    """Both modes of ``function`` (nodes to nodes) at ``points``; then both modes of its gradient."""
    rng = np.random.default_rng(7)
    inputs = [place(p) for p in points]
    results = [r for r in listed(function(*inputs)) if r.type.inexact]
    assert results
    moves = directions(rng, points)
    movers = [place(m) for m in moves]
    forward = zeros_where_none(jvp(results, dict(zip(inputs, movers, strict=True))), results)
    run = BACKENDS[backend](closed([*results, *forward], [*inputs, *movers]))
    values = run([*points, *moves])
    count = len(results)
    tangents = values[count:]
    primal = BACKENDS[backend](closed(results, inputs))
    assert_near(tangents, richardson(primal, points, moves))
    assert_alike(tangents, values[:count])

    pulls = directions(rng, [np.asarray(v) for v in values[:count]])
    pullers = [place(p) for p in pulls]
    backward = zeros_where_none(vjp(results, pullers, inputs), inputs)
    cotangents = BACKENDS[backend](closed(backward, [*inputs, *pullers]))([*points, *pulls])
    (left, scale), (right, other) = pairing(cotangents, moves), pairing(pulls, tangents)
    assert abs(left - right) <= 1e-12 * max(scale, other, 1), (
        f"reverse mode gives {left} where forward mode gives {right}: the op's back is not the transpose of its tangent"
    )
    assert_alike(cotangents, points)
    if twice:
        check(
            backend,
            lambda *nodes: tuple(zeros_where_none(vjp(listed(function(*nodes)), seeds(function, nodes), nodes), nodes)),
            points,
            twice=False,
        )


def seeds(function, nodes):
    """Cotangents that are constant and of no symmetry: ramps over all elements."""
    return [
        astype(1 + 0.3 * sum_of_indices(r), r.type.dtype) if r.type.inexact else None for r in listed(function(*nodes))
    ]


def sum_of_indices(node):
    return sum((iota(node.type.shape, k) * (k + 1) for k in range(node.type.ndim)), constant(0.7))


def inside(op, rng, dtype):
    """Operands within the domain in which the op is smooth, away from its ends."""
    low, high = op.domain
    a = low + 0.2 if np.isfinite(low) else -1.5
    b = high - 0.2 if np.isfinite(high) else a + 2.5
    if b <= a:
        a, b = low, high
    found = []
    for _ in range(op.arity):
        x = rng.uniform(a, b, 4)
        found.append((x + 1j * rng.uniform(0.1, 0.4, 4)).astype(dtype) if np.dtype(dtype).kind == "c" else x)
    return found


def takes(op, dtype):
    try:
        op(*[place(np.ones(2, dtype))] * op.arity)
    except DTypeError:
        return False
    return True


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("op", "dtype"), [(op, d) for op in POINTWISE for d in "dD" if takes(op, d)], ids=lambda v: getattr(v, "name", v)
)
def test_pointwise(op, dtype, backend):
    points = inside(op, np.random.default_rng(8), dtype)
    fixed = FIXED.get(op.name, [])
    try:
        check(backend, lambda *nodes: op(*map(constant, fixed), *nodes), points[len(fixed) :])
    except RuntimeWarning as warning:
        pytest.fail(f"{warning}, at {points}: say where {op.name} is smooth, by domain=(low, high)")


def check_dtypes(function, points):
    """Tangents and cotangents in single precision are of single precision, like what they belong to."""
    inputs = [place(p) for p in points]
    results = [r for r in listed(function(*inputs)) if r.type.inexact]
    forward = zeros_where_none(jvp(results, {x: x for x in inputs}), results)
    backward = zeros_where_none(vjp(results, results, inputs), inputs)
    with np.errstate(all="ignore"):
        values = BACKENDS["reference"](closed([*results, *forward, *backward], inputs))(points)
    assert_alike(values[len(results) :], [*values[: len(results)], *points])
    assert all(np.asarray(v).dtype.itemsize == 4 * (1 + (v.dtype.kind == "c")) for v in values)


@pytest.mark.parametrize(
    ("op", "dtype"), [(op, d) for op in POINTWISE for d in "fF" if takes(op, d)], ids=lambda v: getattr(v, "name", v)
)
def test_single_precision_of_pointwise_ops(op, dtype):
    points = [p.astype(dtype) for p in inside(op, np.random.default_rng(8), dtype)]
    fixed = [f.astype(dtype) if f.dtype.kind == "f" else f for f in FIXED.get(op.name, [])]
    check_dtypes(lambda *nodes: op(*map(constant, fixed), *nodes), points[len(fixed) :])


@pytest.mark.parametrize(
    "op", [op for op in registry.values() if isinstance(op, Pointwise) and op.step is True], ids=lambda op: op.name
)
def test_steps_have_zero_derivatives(op):
    for dtype in "dl":
        if takes(op, dtype):
            nodes = [place(np.ones(2, dtype)) for _ in range(op.arity)]
            assert jvp([op(*nodes)], {n: n for n in nodes}) == [None]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("before", "after"), [("d", "f"), ("d", "D"), ("D", "F"), ("D", "d"), ("f", "d")])
def test_casts(before, after, backend):
    rng = np.random.default_rng(9)
    x, t = (place(sample(rng, before, (4,))) for _ in range(2))
    c = place(sample(rng, after, (4,)))
    node = astype(x, after)
    (forward,), (backward,) = jvp([node], {x: t}), vjp([node], [c], [x])
    values = [n["source"].value for n in (x, t, c)]
    pushed, pulled = BACKENDS[backend](closed([forward, backward], [x, t, c]))(values)
    assert (pushed.dtype, pulled.dtype) == (np.dtype(after), np.dtype(before))
    assert np.isclose(pairing([pushed], [values[2]])[0], pairing([values[1]], [pulled])[0], rtol=1e-5)


def cases():
    for case in CASES:
        yield from (
            (case, d) for d in "dD" if case.derivative and d in case.dtypes and not (d == "D" and case.op == "rfft")
        )


@pytest.mark.share(5)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("case", "dtype"), list(cases()), ids=str)
def test_other_ops(case, dtype, backend):
    values = case.operands(np.random.default_rng(10), dtype)
    moving = [k for k, v in enumerate(values) if v.dtype.kind in "fc"]

    check(backend, of_moving(case, values, moving), [values[k] for k in moving])


def of_moving(case, values, moving):
    def function(*nodes):
        operands = [constant(v) for v in values]
        for k, node in zip(moving, nodes, strict=True):
            operands[k] = node
        return case.settle(case.build(*case.smooth(*operands)))

    return function


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("case", "dtype"),
    [(c, {"d": "f", "D": "F"}[d]) for c, d in cases() if {"d": "f", "D": "F"}[d] in c.dtypes],
    ids=str,
)
def test_single_precision_of_other_ops(case, dtype):
    values = case.operands(np.random.default_rng(10), dtype)
    moving = [k for k, v in enumerate(values) if v.dtype.kind in "fc"]
    check_dtypes(of_moving(case, values, moving), [values[k] for k in moving])


def test_every_op_with_a_derivative_is_tried():
    tried = {op.name for op in POINTWISE} | {case.op for case, _ in cases()} | {"astype"}
    steps = {
        name
        for name, op in registry.items()
        if getattr(op, "step", False) is True or not getattr(op, "differentiable", True)
    }
    regions = {name for name, op in registry.items() if op.kind == "region"}  # test_control.py
    leaves = {name for name, op in registry.items() if op.kind == "leaf"}
    assert set(registry) - tried - steps - regions - leaves == {
        "argsort", "searchsorted", "position", "places", "unique", "count_unique", "extent",  # places, counts and lengths
        "fixed", "argpartition",
        "settled", "works", "converted", "outside",  # what is as it was taken for; calls as they are, which have none
        "schur", "pivots", "pivoted",  # schur has none by name; places of rows, and rows in that order: test_matrices.py
        "packbits", "unpackbits", "reinterpret", "row_order",  # bits and places: tests/capture/test_bits.py
        "draw", "random_state", "gamma_slope", "beta_slopes", "von_mises_slope",  # test_random.py
    }  # fmt: skip
