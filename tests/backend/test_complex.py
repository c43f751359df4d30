"""Complex numbers in compiled code: their functions with all edges, stores, loops, branches; what stays with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensormagic.backend.planning.plan import plan_graph
from tensormagic.ops import fold, move
from tensormagic.ops.contract import matmul
from tensormagic.ops.indices.gather import gather
from tensormagic.ops.indices.scatter import scatter_add
from tensormagic.ops.leaf import constant
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import add_at, set_at
from tests.backend.graphs import check, closed, planned
from tests.backend.regions import branch, compiled_alike, element, put, repeat, repeat_while, total, variable

EDGES = np.array([0.0, -0.0, 1.0, -2.5, 1e-310, 3e200, 1e308, np.inf, -np.inf, np.nan])
random = np.random.default_rng(4)
Z = variable("z", random.normal(size=7) + 1j * random.normal(size=7))
W = variable("w", random.normal(size=7) - 2j * random.normal(size=7))
(N,) = Z.type.shape


def every() -> tuple[Any, Any]:
    """All pairs of two complex numbers with such parts."""
    numbers = np.empty((len(EDGES), len(EDGES)), complex)
    numbers.real, numbers.imag = EDGES[:, None], EDGES[None, :]
    left, right = np.broadcast_arrays(numbers.ravel()[:, None], numbers.ravel()[None, :])
    return variable("left", left.copy()), variable("right", right.copy())


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "equal", "not_equal"])
def test_functions_of_two_complex_numbers(name: str) -> None:
    function = getattr(scalar, name)
    compiled_alike(function(*every()))
    compiled_alike(function(Z, W))


@pytest.mark.parametrize(
    "name",
    ["negative", "conjugate", "real", "imag", "absolute", "isnan", "isinf", "isfinite", "reciprocal", "positive"],
)
def test_functions_of_a_complex_number(name: str) -> None:
    function = getattr(scalar, name)
    compiled_alike(function(every()[0]))
    compiled_alike(function(Z))


def test_the_exponential_of_complex_numbers() -> None:
    parts = np.array([*EDGES, 709.0, 709.9, 710.2, -745.0, 0.5, np.pi])
    values = np.empty((len(parts), len(parts)), complex)
    values.real, values.imag = parts[:, None], parts[None, :]
    with np.errstate(all="ignore"):
        definite = values[~(np.isinf(np.exp(values).real) & (values.real < 1e4))]
    compiled_alike(scalar.exp(variable("x", definite)), ulps=8)
    compiled_alike(scalar.exp(Z), ulps=8)


NEAR = np.array([0.6, -0.8, 0.7071067811865476, 1 + 1e-10, -5e-324, -1.7e308])


@pytest.mark.parametrize("name", ["log", "sqrt"])
def test_logarithms_and_roots_of_complex_numbers(name: str) -> None:
    function = getattr(scalar, name)
    parts = np.concatenate([EDGES, NEAR])
    values = np.empty((len(parts), len(parts)), complex)
    values.real, values.imag = parts[:, None], parts[None, :]
    compiled_alike(function(variable("x", values)), ulps=4)
    compiled_alike(function(Z), ulps=4)
    turned = np.exp(1j * random.uniform(-np.pi, np.pi, 300))  # whose logarithms are next to nothing but the angle
    compiled_alike(function(variable("x", turned)), function(variable("y", turned * (1 + 1e-9))), ulps=4)


def test_powers_of_complex_numbers() -> None:
    parts = np.concatenate([EDGES, NEAR])
    values = np.empty((len(parts), len(parts)), complex)
    values.real, values.imag = parts[:, None], parts[None, :]
    powers = [0, 1, 2, 3, -1, -2, 7, -7, 99, 100, 0.5, -1.5, 2 + 1j, 1j, 0.3 - 2j, np.nan, np.inf, complex(0, np.inf)]
    x, y = np.broadcast_arrays(values.ravel()[:, None], np.array(powers, complex))
    with np.errstate(all="ignore"):
        apart = np.abs(np.log(np.power(x, y))) < 650  # what a rounding error of the logarithm leaves finite
        definite = apart | ~np.isfinite(x) | (x == 0) | (y == y.real.round())
    compiled_alike(
        scalar.power(variable("x", x[definite]), variable("y", y[definite])), ulps=1500
    )  # of exponents up to 650
    small = np.array([2, 3, -1, -2, 7, -7, 40, 99], complex)  # by products, each rounded as NumPy's are
    x, y = np.broadcast_arrays((random.normal(size=9) - 2j * random.normal(size=9))[:, None], small)
    compiled_alike(scalar.power(variable("x", x.copy()), variable("y", y.copy())), ulps=2)


def test_powers_choices_and_casts() -> None:
    x = variable("x", np.array([1.5, -0.0, np.inf]))
    two = constant(np.complex128(2))
    compiled_alike(
        scalar.power(Z, move.broadcast(two, (N,))),
        scalar.where(scalar.greater(scalar.real(Z), move.broadcast(constant(np.float64(0)), (N,))), Z, W),
        astype(x, np.complex128),
    )


def test_moves_stores_and_elements() -> None:
    index = variable("index", np.array([3, -1, 3]))
    part = element(W, slice(0, 3))
    compiled_alike(
        move.flip(Z, (0,)) * 2j,
        set_at(Z, part, ((2, 3, 1),)),
        add_at(Z, part, ((2, 3, 1),)),
        gather(Z * W, index, 0),
        scatter_add(Z, index, part),
        move.concatenate([Z, W], 0),
    )


def test_loops_and_branches_carry_complex_numbers() -> None:
    def orbit(k: Any, counts: Any, c: Any) -> Any:
        def test(z: Any, n: Any, _c: Any) -> Any:
            return scalar.logical_and(scalar.less(n, 30), scalar.less_equal(scalar.absolute(z), 2.0))

        here = element(c, k)
        _, found = repeat_while(
            [constant(np.complex128(0)), constant(np.int64(0))], test, lambda z, n, c: (z * z + c, n + 1), here
        )
        return put(counts, found, k)

    compiled_alike(*repeat(N, [move.broadcast(constant(np.int64(0)), (N,))], orbit, Z))
    far = scalar.greater(scalar.absolute(element(Z, 0)), 1.0)
    compiled_alike(*branch(far, lambda a, b: (a * 2, b), lambda a, b: (a + b, a), Z, W))
    compiled_alike(*repeat(3, [Z, W], lambda k, a, b: (b, a * 1j + astype(k, np.complex128))))


def test_sums_of_complex_numbers_are_numpys() -> None:
    many = variable("many", random.normal(size=5000) * 1e8 + 1j)
    plan = planned(total(many * 2))
    assert [n.op.name for n in plan.library_steps] == ["sum"]
    check(total(many * 2), fold.row(fold.CUMSUM, many, (0,)))


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_products_and_sums_within_loops_are_those_of_parts(size: int) -> None:
    def numbers(*shape: int) -> Any:
        return (random.normal(size=shape) + 1j * random.normal(size=shape)) / shape[-1]

    a, b = variable("a", numbers(size, size)), variable("b", numbers(size, size))
    v = variable("v", numbers(size))

    def step(_: Any, x: Any, y: Any, s: Any, right: Any) -> Any:
        turned = matmul(x, move.transpose(scalar.conjugate(right), (1, 0)))
        ones = move.broadcast(fold.reduce_sum(x, (0,)), (x.type.shape[1],))
        return turned + 1j, matmul(right, y) + ones, s * 0.5 + matmul(y, ones)

    compiled_alike(*repeat(3, [a, v, constant(np.complex128(0))], step, b), ulps=64, scale=1.0)


def test_single_precision_stays_with_numpy() -> None:
    narrow = variable("narrow", np.ones(3, np.complex64))
    plan = plan_graph(closed([narrow * narrow])[0])
    assert not plan.kernels
