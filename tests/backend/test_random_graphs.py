"""Graphs drawn at random: compiled code gives NumPy's values, exactly for what is exact."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensormagic.ops import fold as folds
from tensormagic.ops import move
from tensormagic.ops.fold import MAX, MIN, SUM, fold
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tests.backend.graphs import check, variable

EXACT = [scalar.add, scalar.subtract, scalar.multiply, scalar.maximum, scalar.minimum]
COMPARE = [scalar.less, scalar.less_equal, scalar.equal, scalar.not_equal]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
few = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def integers(draw, dtype, shape):
    values = draw(st.lists(st.integers(-9, 9), min_size=7, max_size=7))
    return np.resize(np.array(values, np.int64), shape).astype(dtype)


@st.composite
def programs(draw, leaf, unary, binary, combine):
    """A few nodes over one to three axes, each built from earlier ones."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 5, 33]), min_size=1, max_size=3)))
    nodes = [leaf(draw, shape, "x"), leaf(draw, shape, "y")]
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["binary", "unary", "slice", "flip", "transpose", "spread"]))
        x = draw(st.sampled_from(nodes))
        axis = draw(st.integers(0, x.type.ndim - 1))
        if kind == "binary":
            y = draw(st.sampled_from([n for n in nodes if n.type.shape == x.type.shape]))
            nodes.append(draw(st.sampled_from(binary))(x, y))
        elif kind == "unary":
            nodes.append(draw(st.sampled_from(unary))(x))
        elif kind == "slice":
            slices = tuple((1, s - 1, 1) if k == axis and s != 1 else (0, s, 1) for k, s in enumerate(x.type.shape))
            nodes.append(move.slice_(x, slices))
        elif kind == "flip":
            nodes.append(move.flip(x, (axis,)))
        elif kind == "transpose":
            nodes.append(move.transpose(x))
        else:
            op = draw(st.sampled_from(combine))
            nodes.append(scalar.subtract(x, folds.spread(fold(op, x, (axis,)), x, (axis,))))
    wanted = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=2))
    last = nodes[-1]
    axes = tuple(sorted(draw(st.sets(st.integers(0, last.type.ndim - 1), min_size=1))))
    return [*wanted, last, fold(draw(st.sampled_from(combine)), last, axes)]


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint16"])
def test_integers_are_exact(dtype):
    def leaf(draw, shape, name):
        return variable(name, integers(draw, dtype, shape))

    def narrow(op):
        return lambda *x: astype(op(*x), dtype)

    @few
    @given(
        programs(
            leaf,
            [narrow(scalar.square), narrow(scalar.negative)] if dtype != "uint16" else [narrow(scalar.square)],
            EXACT,
            [MAX, MIN],
        )
    )
    def holds(results):
        check(*results)

    holds()


def test_floats_agree_to_rounding():
    def leaf(draw, shape, name):
        return variable(name, integers(draw, "int64", shape) / 8.0)

    @few
    @given(
        programs(
            leaf,
            [scalar.exp, scalar.tanh, scalar.absolute, lambda x: 1 / (1 + x * x)],
            [scalar.add, scalar.subtract, scalar.maximum],
            [MAX, SUM],
        )
    )
    def holds(results):
        check(*results, ulps=64, scale=1e4)  # chains of exp and sums reach that, and cancel

    holds()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_operators_wrap_as_numpy(dtype):
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.max, limits.max // 3, 0, 1, 2, 3, 7, limits.max - 1], dtype)
    x = variable("x", np.repeat(values, len(values)))
    y = variable("y", np.tile(values, len(values)))
    operators = [
        scalar.add,
        scalar.subtract,
        scalar.multiply,
        scalar.floor_divide,
        scalar.remainder,
        scalar.bitwise_xor,
    ]
    plan = check(
        *(op(x, y) for op in (*operators, *EXACT, *COMPARE)),
        scalar.square(x),
        scalar.negative(x),
        scalar.absolute(x),
        scalar.sign(x),
    )
    assert not plan.library_steps


@pytest.mark.parametrize("dtype", ["bool", "float32", "float64", *INTEGERS])
def test_casts(dtype):
    values = np.array([0, 1, 2, 3, 100, 7, 1, 0], dtype)
    x = variable("x", values)
    check(*(astype(x, other) for other in ["bool", "float32", "float64", *INTEGERS] if other != dtype))
