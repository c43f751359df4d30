"""The structure of derivatives holds every entry that is not zero: for each op, and for each program of the collection."""

# tests named elsewhere

import copy

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.numpy_tier import reference
from tensormagic.ir.closing import close
from tensormagic.ops.leaf import INPUT, parameter
from tensormagic.ops.update import zeros_like
from tensormagic.transform.grad import jvp, vjp
from tensormagic.transform.sparse.sparsity import UNKNOWN, structure
from tests.ops.harness import place as input_of
from tests.programs import discrete, matrices, nets, physics, solvers, stencils  # noqa: F401 (they enter the collection)
from tests.programs.program import PROGRAMS
from tests.transform.batch_cases import RNG, cases


def columns_of(graph, moving, values):
    """The matrix of the linear map that a graph is in some parameters, column by column."""
    columns = []
    for k in moving:
        for entry in range(values[k].size):
            direction = np.zeros(values[k].shape)
            direction.flat[entry] = 1
            given = [direction if j == k else np.zeros_like(v) if j in moving else v for j, v in enumerate(values)]
            with np.errstate(all="ignore"):
                found = reference.evaluate_graph(graph, given)
            columns.append(np.concatenate([np.asarray(r).ravel() for r in found]))
    return np.stack(columns, axis=1)


def held(results, inputs, directions, values, unknown):
    graph = close(results, lambda n: n.op is INPUT, parameter, leaves=[*directions, *inputs]).graph
    count = len(directions)
    shown = [(UNKNOWN, np.shape(v)) if k < count or k - count in unknown else v for k, v in enumerate(values)]
    pattern, _ = structure(graph, range(count), shown)
    matrix = columns_of(graph, range(count), values)
    assert pattern.shape == matrix.shape
    np.testing.assert_array_equal((matrix != 0) & ~pattern.toarray(), False)
    return pattern


@pytest.mark.parametrize(("operands", "build", "differentiable"), [c for c in cases() if c.values[2]])
def test_both_modes_of_every_op(operands, build, differentiable):
    assert differentiable
    values = [np.asarray(make_one(())) for make_one in operands]
    inputs = [input_of(v, f"x{k}") for k, v in enumerate(values)]
    results = [r for r in build(*inputs) if r.type.inexact]
    wrt = [k for k, v in enumerate(values) if v.dtype.kind == "f"]
    directions = [input_of(RNG.normal(size=values[k].shape), f"t{k}") for k in wrt]
    moved = jvp(results, dict(zip([inputs[k] for k in wrt], directions, strict=True)))
    forward = [zeros_like(r) if m is None else m for r, m in zip(results, moved, strict=True)]
    primals = [np.zeros(values[k].shape) for k in wrt]
    held(forward, inputs, directions, [*primals, *values], wrt)
    cotangents = [input_of(np.ones([1 if n is None else n for n in shape_of(r, inputs, values)]), "c") for r in results]
    pulled = vjp(results, cotangents, [inputs[k] for k in wrt])
    backward = [zeros_like(inputs[k]) if p is None else p for k, p in zip(wrt, pulled, strict=True)]
    weights = [np.zeros(shape_of(r, inputs, values)) for r in results]
    held(backward, inputs, cotangents, [*weights, *values], wrt)


def shape_of(result, inputs, values):
    graph = close([result], lambda n: n.op is INPUT, parameter, leaves=inputs).graph
    with np.errstate(all="ignore"):
        return np.shape(reference.evaluate_graph(graph, values)[0])


def leaves(value):
    if isinstance(value, tuple | list):
        return [leaf for v in value for leaf in leaves(v)]
    return [] if value is None else [value]


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("name", "position"), [(p.name, k) for p in PROGRAMS.values() for k in p.derivative], ids=lambda v: str(v)
)
def test_the_jacobian_of_every_program(name, position, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    program = PROGRAMS[name]
    arguments = program.make(program.small)

    def function(*args):
        return program.function(*(a + 0 if isinstance(a, tm.Tensor) else a for a in args))

    found = leaves(tm.jacobian(function, position, sparse=True)(*copy.deepcopy(arguments)))
    expected = leaves(tm.jacobian(function, position)(*copy.deepcopy(arguments)))
    assert len(found) == len(expected)
    for ours, dense in zip(found, expected, strict=True):
        flat = np.reshape(dense, ours.shape)
        np.testing.assert_allclose(ours.toarray(), flat, rtol=1e-9, atol=1e-9 * (1 + np.max(np.abs(flat), initial=0)))


N = 8


def stored(r):
    k = int(r.integers(1, N))

    def step(x):
        y = x.copy()
        y[k:] *= x[:-k]
        y[::3] += 1.0
        return y

    return step


def turned(r):
    count = int(r.integers(1, 4))

    def step(x):
        for i in range(count):
            y = np.zeros(N)
            y[i:] = x[i:] * 0.5
            for j in range(1, N):
                y[j] += np.sin(x[j - 1])
            x = y
        return x

    return step


def ended(_):
    def step(x):
        k = 0
        while k < 3 and abs(x).max() < 10:
            x = x * 1.5 + np.roll(x, 1) * (x[0] > 0)
            k += 1
        return x

    return step


def rolled(r):
    k = int(r.integers(-2, 3))
    return lambda x: x * np.roll(x, k)


def taken(r):
    places = r.integers(N, size=N)
    return lambda x: x[places]


def multiplied(r):
    matrix = np.where(r.random((N, N)) < 0.2, r.normal(size=(N, N)), 0)
    return lambda x: matrix @ x


def mixed(r):
    mask = r.random(N) < 0.5
    return lambda x: np.where(mask, x, x[::-1])


def by_one(r):
    k = int(r.integers(N))
    return lambda x: x + x[k]


STEPS = [
    stored,
    turned,
    ended,
    rolled,
    taken,
    multiplied,
    mixed,
    by_one,
    lambda _: np.sin,
    lambda _: lambda x: np.concatenate([x[2:] ** 2, x[:2]]),
    lambda _: lambda x: np.where(x > 0, x, x**2),
    lambda _: lambda x: np.concatenate([x[: N // 2] * x[: N // 2].sum(), x[N // 2 :]]),
    lambda _: lambda x: np.concatenate([np.sort(x[:3]), x[3:]]),
    lambda _: lambda x: np.convolve(x, np.array([1.0, 0.0, -0.5]), mode="same"),
    lambda _: lambda x: np.diff(x, append=1.0),
    lambda _: lambda x: (x.reshape(2, -1).T * 2.0).ravel(),
    lambda _: lambda x: x - np.maximum(x, np.roll(x, 1)),
]


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    r = np.random.default_rng(seed)
    chain = [STEPS[k](r) for k in r.integers(len(STEPS), size=4)]

    def function(x):
        for step in chain:
            x = step(x)
        return x

    x, weights = r.normal(size=N), r.normal(size=N)
    sparse, dense = tm.jacobian(function, sparse=True)(x), tm.jacobian(function)(x)
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-9, atol=1e-9 * (1 + np.abs(dense).max()))
    if seed % 3:
        return  # second derivatives of a third of them
    curved = tm.hessian(lambda x: (function(x) ** 2) @ weights, sparse=True)(x)
    full = tm.hessian(lambda x: (function(x) ** 2) @ weights)(x)
    np.testing.assert_allclose(curved.toarray(), full, rtol=1e-9, atol=1e-9 * (1 + np.abs(full).max()))
