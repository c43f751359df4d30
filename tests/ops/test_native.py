"""Every op of the registry on compiled code, against the NumPy tier: each dtype's ops in a few graphs, so that they compile together.

One op's own tests have its name; they run where `-k` or a path names it.
"""

# tests named elsewhere

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import tensormagic  # noqa: F401 (fills the registry)
from tensormagic.backend.compiling.native import compiled
from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.backend.planning.plan import plan_graph
from tensormagic.ir.closing import close
from tensormagic.ir.errors import DTypeError
from tensormagic.ir.node import Node
from tensormagic.ops import fold
from tensormagic.ops.leaf import INPUT, Source, input_node, open_type, parameter
from tensormagic.ops.move import broadcast, flip, reshape, slice_, transpose
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import Cast, Pointwise, astype
from tests.precise import off

DTYPES = "?bhilBHILfdFD"
# Units in the last place that compiled functions may be off; vector math documents at most these (benchmarks/results/vecmath.md).
ULPS = {"softplus": 3, "logaddexp": 4, "erfc": 4, "logaddexp2": 4, "log1mexp": 6, "sigmoid": 4, "xlogy": 3, "power": 2}
LOOSE = 2
COMPLEX = {"exp": 4, "power": 8}  # its parts are products of two functions, rounded once more, on either side
TURNED = {"power", "log"}  # of which a part may cancel: the angle of a power, and the logarithm of a length near 1
EDGES = {
    "f": [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-30, -1e-8, 30.0, -40.0, 80.0, -85.0, 1e5, 3.7],
    "i": [0, 1, -1, 2, 7, -8, 100, -100, 127, -128],
    "u": [0, 1, 2, 3, 7, 8, 100, 127, 128, 255],
    "b": [False, True],
    "c": [0, 1, -1j, 1 + 2j, -0.5 - 3j, complex(np.inf, 0), complex(np.nan, 1), 1e5j],
}


def samples(char: str) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of operands: every pair of edges, limits of the dtype, and random ones."""
    dtype = np.dtype(char)
    rng = np.random.default_rng(7)
    edges = np.array(EDGES[dtype.kind], dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        edges = np.append(edges, np.array([limits.min, limits.max, limits.max - 1], dtype))
    x, y = (v.ravel() for v in np.meshgrid(edges, edges))
    size = 1500
    if dtype.kind == "f":
        more = [(rng.normal(size=size) * 10 ** rng.uniform(-3, 1.5, size)).astype(dtype) for _ in range(2)]
    elif dtype.kind == "c":
        more = [(rng.normal(size=size) + 1j * rng.normal(size=size)).astype(dtype) for _ in range(2)]
    else:
        top = 2 if dtype.kind == "b" else min(np.iinfo(dtype).max, 1000)
        low = 0 if dtype.kind in "bu" else -top
        more = [rng.integers(low, top, size).astype(dtype) for _ in range(2)]
    return np.concatenate([x, more[0]]), np.concatenate([y, more[1]])


SCALAR = [op for op in registry.values() if isinstance(op, Pointwise) and not isinstance(op, Cast) and op.arity <= 3]
FOLDS = [
    op for op in registry.values() if isinstance(op, fold.Fold)
]  # (hyp2f1 has four operands, and is SciPy's alone)


def applied(op: Pointwise, x: Node, y: Node) -> Iterator[tuple[str, Node]]:
    """A scalar function of operands of this dtype, if it takes them."""
    operands = {
        1: (x,),
        2: (x, y),
        3: (registry["less"](x, y) if x.type.dtype.kind != "c" else registry["equal"](x, y), x, y),
    }
    if op.name == "power" and x.type.dtype.kind == "i":  # NumPy refuses negative integer exponents
        operands[2] = (x, registry["bitwise_and"](y, 3))
    with suppress(DTypeError):
        yield op.name, op(*operands[op.arity])


def pointwise(x: Node, y: Node) -> Iterator[tuple[str, Node]]:
    """Every scalar function that takes operands of this dtype, and every cast."""
    for op in SCALAR:
        yield from applied(op, x, y)
    for char in DTYPES:
        if not (x.type.dtype.kind == "c" and np.dtype(char).kind != "c"):
            yield f"astype to {char}", astype(x, char)


def run_both(results: list[Node]) -> tuple[list[Any], list[Any]]:
    found = close(results, lambda n: n.op is INPUT, parameter)
    values = [leaf["source"].value for leaf in found.leaves]
    handle = compiled(plan_graph(found.graph), timeout=240)
    assert handle.ready(), handle.error
    with np.errstate(all="ignore"):
        expected = evaluate_graph(found.graph, values)
        got = handle.run(found.graph.bind([np.shape(v) for v in values]), *values)
    return got, expected


def variable(name: str, value: np.ndarray) -> Node:
    source = Source(name, value)
    return input_node(source, open_type(source, value.dtype, value.shape))


def assert_near(name: str, found: Any, expected: Any, ulps: float, operands: tuple[np.ndarray, ...] = ()) -> None:
    """Within ``ulps`` of NumPy's; of the real number where NumPy's differs and is a function of ``operands``."""
    a, b = np.asarray(found), np.asarray(expected)
    assert (type(found), a.dtype, a.shape) == (type(expected), b.dtype, b.shape), name
    if a.dtype.kind not in "fc":
        advice = (
            "compiled code (ACTUAL) is not what NumPy gives: look at the op's source, body or step, start and joins"
        )
        np.testing.assert_array_equal(a, b, err_msg=f"{name}: {advice}")
        return
    parts = [(a.real, b.real), (a.imag, b.imag)] if a.dtype.kind == "c" else [(a, b)]
    for left, right in parts:
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(left - right) <= ulps * np.spacing(np.abs(b if name in TURNED else right))
        same = (left == right) | (np.isnan(left) & np.isnan(right)) | near
        for k in np.flatnonzero(~same.ravel()):
            point = [v[k] for v in operands]
            true = a.dtype.kind == "f" and off(name, left.ravel()[k], point, a.dtype) <= ulps
            assert true, (
                f"compiled code gives {left.ravel()[k]!r} for {name} of {point}, NumPy {right.ravel()[k]!r}: "
                "the op's source, body or step (or its start or joins) is not what its numpy computes"
            )


def is_open_cast(name: str, x: np.ndarray) -> bool:
    """Casts of floats that do not fit an integer type: what C gives is the processor's own."""
    return name.startswith("astype to") and x.dtype.kind == "f" and np.dtype(name[-1]).kind in "iu"


@pytest.mark.share(3)
@pytest.mark.parametrize("char", DTYPES)
def test_scalar_functions(char):
    x, y = samples(char)
    a, b = variable("x", x), variable("y", y)
    named = list(pointwise(a, b))
    assert len(named) > {"b": 25, "c": 25}.get(np.dtype(char).kind, 50)
    hold_scalars(named, x, y)


def hold_scalars(named: list[tuple[str, Node]], x: np.ndarray, y: np.ndarray) -> None:
    got, expected = run_both([node for _, node in named])
    for (name, _), left, right in zip(named, got, expected, strict=True):
        known = np.abs(x) < 100 if is_open_cast(name, x) else slice(None)
        ulps = (COMPLEX if right.dtype.kind == "c" else ULPS).get(name, LOOSE)
        operands = (x[known], y[known])[: registry[name].arity if name in registry else 1]
        assert_near(name, left[known], right[known], ulps, operands)


@pytest.mark.by_name
@pytest.mark.parametrize("op", SCALAR, ids=lambda op: op.name)
def test_one_scalar_function(op):
    for char in DTYPES:
        x, y = samples(char)
        hold_scalars(list(applied(op, variable("x", x), variable("y", y))), x, y)


def folded(op: fold.Fold, x: Node) -> Iterator[tuple[str, Node]]:
    """A fold over each axis and several, if it takes this dtype."""
    for axes in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)):
        if op.sequential and len(axes) > 1:
            continue
        with suppress(DTypeError):
            yield f"{op.name} over {axes}", fold.fold(op, x, axes)


def in_table(char: str) -> Node:
    """Small integers of a dtype, of either sign: sums are exact in any order, and only quotients and exponentials round."""
    rng = np.random.default_rng(3)
    low = -4 if np.dtype(char).kind in "ifc" else 0
    return variable("x", rng.integers(low, 2 if char == "?" else 5, (7, 6, 5)).astype(char))


def hold_folds(named: list[tuple[str, Node]]) -> None:
    got, expected = run_both([node for _, node in named])
    for (name, _), left, right in zip(named, got, expected, strict=True):
        if any(
            word in name for word in ("soft", "exp")
        ):  # off by digits of the elements, which may be larger than the result
            eps = np.finfo(right.dtype).eps
            np.testing.assert_allclose(left, right, rtol=8 * eps, atol=8 * eps, err_msg=name, strict=True)
        else:
            assert_near(name, left, right, 0)


@pytest.mark.by_name
@pytest.mark.parametrize("op", FOLDS, ids=lambda op: op.name)
def test_one_fold(op):
    for char in DTYPES:
        hold_folds(list(folded(op, in_table(char))))


@pytest.mark.share(6)
@pytest.mark.parametrize("char", DTYPES)
def test_folds_and_moves(char):
    x = in_table(char)
    dtype = x.type.dtype
    named = [pair for op in FOLDS for pair in folded(op, x)]
    one = astype(x, dtype)
    named += [
        ("transpose", transpose(one, (2, 0, 1))),
        ("flip", flip(one, (0, 2))),
        ("slice", slice_(one, ((1, 3, 2), (5, 3, -2), (0, 5, 1)))),
        ("reshape", reshape(one, (42, 5))),
        ("broadcast", broadcast(reshape(one, (7, 6, 5, 1)), (7, 6, 5, 3))),
    ]
    hold_folds(named)
