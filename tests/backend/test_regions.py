"""Compiled loops against the NumPy tier: values, order of reads and writes, sizes that change."""

import numpy as np
import pytest

from tensormagic.ir.size import atom
from tensormagic.ops import fold
from tensormagic.ops.fold import MAX
from tensormagic.ops.leaf import constant
from tensormagic.ops.move import broadcast, flip, reshape, slice_
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scalars import scalar
from tensormagic.ops.update import add_at, set_at
from tests.backend.graphs import prepared
from tests.backend.regions import (
    ITERATIONS,
    A,
    L,
    M,
    N,
    V,
    compiled_alike,
    element,
    number,
    put,
    repeat,
    repeat_while,
    rng,
    total,
    variable,
)

# numbers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_numbers_are_carried(iterations):
    def body(k, a, b):
        return scalar.add(a, k), b * 0.5 + astype(a, np.float64)

    compiled_alike(*repeat(iterations, [constant(np.int64(3)), number(1.0)], body))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "float32", "bool"])
def test_numbers_of_narrow_dtypes_wrap_as_numpys(dtype):
    start = constant(np.dtype(dtype).type(1))

    def body(k, a):
        del k
        return scalar.logical_not(a) if dtype == "bool" else astype(a * np.dtype(dtype).type(7), dtype)

    compiled_alike(*repeat(5, [start], body))


def test_numbers_trade_places():
    compiled_alike(*repeat(5, [number(1), number(2), number(3)], lambda _k, a, b, c: (b, c, a + b)))


def test_a_python_loop_variable_is_an_integer():
    (found,) = repeat(7, [constant(0)], lambda k, s: scalar.add(s, k * k))
    compiled_alike(found)


# arrays ---------------------------------------------------------------------------------------------------------------


@pytest.mark.share(3)
@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize(
    "body",
    [
        lambda k, a, b: (a * 0.5 + b, b - k),
        lambda k, a, b: (flip(a, (0,)) * 0.5 + k, b + a),
        lambda k, a, b: (b, 2.0 * b - a + flip(b, (0,)) * 0.1),
        lambda k, a, b: (b, a),
        lambda k, a, b: (b, b),
        lambda k, a, b: (a, a + b),
        lambda k, a, b: (a + b, a + b),
        lambda k, a, b: (flip(b, (0,)), flip(a, (0,))),
        lambda k, a, b: (a * total(b), b * (1 / (1 + total(a * a)))),
        lambda k, a, b: (scalar.exp(-a * a) / (1 + scalar.exp(b)), scalar.exp(a) * 0.1),
        lambda k, a, b: (broadcast(total(a), a.type.shape), b + broadcast(element(a, 0), b.type.shape)),
        lambda k, a, b: (broadcast(number(1), a.type.shape), b + a),
    ],
)
def test_arrays_are_carried(iterations, body):
    found = repeat(iterations, [V, V + 1], body)
    compiled_alike(*found, found[0] + V, ulps=256, scale=1.0)


@pytest.mark.parametrize("iterations", ITERATIONS)
def test_the_same_array_begins_two_carries_and_is_a_constant(iterations):
    start = V * 3
    found = repeat(iterations, [start, start], lambda _k, a, b, c: (a + c, b * 0.5 + a), start)
    compiled_alike(*found, start)


def test_what_is_carried_stays_as_it_was_outside():
    x = V * 2
    (found,) = repeat(3, [x], lambda k, a: put(a, number(7.0), k))
    compiled_alike(found, x, V)


def test_the_stencil_copies_nothing_but_its_beginning():
    inside = (slice(1, N - 1), slice(1, M - 1))

    def around(x):
        parts = [
            slice_(x, ((1 + i, N - 2, 1), (1 + j, M - 2, 1))) for i, j in ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))
        ]
        return 0.2 * (parts[0] + parts[1] + parts[2] + parts[3] + parts[4])

    def body(_k, a, b):
        b = put(b, around(a), *inside)
        return put(a, around(b), *inside), b

    plan = compiled_alike(*repeat(6, [A, A * 2.0], body))
    text = plan.kernels[-1].printed.source
    before, _, iteration = text.partition("for iteration")
    assert before.count("for k_") == 1  # A, which is an input, is copied once; A * 2.0 is nobody else's
    assert iteration.count("for i in") == 4  # two nests, each with shares and plain
    assert iteration.count("parallel(") == 2


@pytest.mark.parametrize("iterations", ITERATIONS)
@pytest.mark.parametrize(
    "body",
    [
        lambda k, a: put(a, slice_(a, ((0, L - 1, 1),)), slice(1, L)),  # a[1:] = a[:-1]
        lambda k, a: put(a, slice_(a, ((1, L - 1, 1),)), slice(0, L - 1)),
        lambda k, a: put(a, flip(a, (0,)), slice(0, L)),
        lambda k, a: put(a, element(a, slice(0, 2)) + element(a, slice(1, 3)), slice(2, 4)),
        lambda k, a: add_at(a, slice_(a, ((0, L - 1, 1),)), ((1, L - 1, 1),)),
        lambda k, a: add_at(a, slice_(a, ((L - 1, L, -1),)), ((0, L, 1),)),
        lambda k, a: set_at(a, slice_(a, ((0, 3, 1),)), ((5, 3, -2),)),
        lambda k, a: put(put(a, element(a, 3), 0), element(a, 0), 3),  # both read before either is stored
        lambda k, a: put(a, total(a), 2),
        lambda k, a: put(put(a, number(1), 0), element(a, 0) + 2, 1) * 0.5,
    ],
)
def test_a_store_never_reads_what_it_has_written(iterations, body):
    compiled_alike(*repeat(iterations, [V], body), ulps=16, scale=1.0)


def test_rows_are_stored_and_exchanged():
    def body(k, a):
        upper, lower = element(a, k), element(a, slice(atom(k) + 1, atom(k) + 2))
        return put(put(a, reshape(lower, (M,)) * 2.0, k), upper, slice(atom(k) + 1, atom(k) + 2))

    compiled_alike(*repeat(N - 1, [A], body))


def test_elimination_with_inner_loops_that_begin_at_the_outer_index():
    value = rng.random((7, 7)) + 7 * np.eye(7)
    x = variable("x", value)
    n = x.type.shape[0]

    def row(i, a, k):
        r = atom(k) + 1 + atom(i)
        ratio = element(a, slice(r, r + 1), k) / element(a, slice(atom(k), atom(k) + 1), k)
        a = put(a, ratio, slice(r, r + 1), k)
        width = n - 1 - atom(k)
        rest = slice_(a, ((r, 1, 1), (atom(k) + 1, width, 1)))
        pivot = slice_(a, ((atom(k), 1, 1), (atom(k) + 1, width, 1)))
        return set_at(
            a, rest - broadcast(reshape(ratio, (1, 1)), (1, width)) * pivot, ((r, 1, 1), (atom(k) + 1, width, 1))
        )

    def step(k, a):
        return repeat(n - 1 - atom(k), [a], row, k)

    (found,) = repeat(n, [x], step)
    compiled_alike(found)
    expected = value.copy()
    for k in range(7):
        expected[k + 1 :, k] /= expected[k, k]
        expected[k + 1 :, k + 1 :] -= np.outer(expected[k + 1 :, k], expected[k, k + 1 :])
    handle, sizes, values = prepared(found)
    np.testing.assert_allclose(handle.run(sizes, *values)[0], expected, rtol=1e-13)


def test_temporary_arrays_whose_length_changes():
    def body(k, a):
        head = slice_(a, ((0, atom(k) + 1, 1),))
        weights = scalar.exp(head - fold.spread(fold.fold(MAX, head, (0,)), head, (0,)))
        return put(a, total(weights * head) / total(weights), k)

    compiled_alike(*repeat(L, [V], body), ulps=64)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_nested_loops_over_empty_ranges(count):
    def inner(j, a, k):
        return put(a, element(a, j) + astype(k, np.float64), j)

    compiled_alike(*repeat(count, [V], lambda k, a: repeat(atom(k), [a], inner, k)[0]))


def test_zeros_from_outside_begin_an_inner_loop_at_every_iteration():
    def body(k, a, zeros):
        (around,) = repeat(2, [zeros], lambda j, s, x: s + x * astype(j, np.float64), a)
        return put(a, total(around), k)

    compiled_alike(*repeat(L, [V], body, broadcast(number(0), (L,))), ulps=64, scale=1.0)


def test_an_outer_array_that_an_inner_loop_replaces():
    def inner(_j, a):
        return flip(a, (0,)) * 0.5 + 1

    def body(k, a):
        (b,) = repeat(3, [a], inner)
        return b + a * astype(k, np.float64)

    for iterations in ITERATIONS:
        compiled_alike(*repeat(iterations, [V], body))
        compiled_alike(*repeat(iterations, [V], lambda k, a: repeat(3, [a], inner)[0]))


# while ----------------------------------------------------------------------------------------------------------------


def test_while_with_several_carries():
    def test(x, count, _array):
        return scalar.logical_and(scalar.less(scalar.absolute(x * x - 2.0), 1e3), scalar.less(count, 9))

    def body(x, count, array):
        return 0.5 * (x + 2.0 / x), scalar.add(count, 1), array * x + element(array, 0)

    compiled_alike(*repeat_while([number(9.0), constant(0), V], test, body), ulps=64)


def test_while_that_never_iterations():
    compiled_alike(*repeat_while([V], lambda a: scalar.less(total(a * a), -1.0), lambda a: a * 2))


def test_collatz_in_each_element():
    values = variable("n", np.arange(1, 30))
    (n,) = values.type.shape

    def steps(k, counts, x):
        def test(a, c):
            return scalar.not_equal(a, 1)

        def body(a, c):
            even = scalar.equal(scalar.remainder(a, 2), 0)
            return scalar.where(even, scalar.floor_divide(a, 2), a * 3 + 1), c + 1

        _, found = repeat_while([element(x, k), constant(np.int64(0))], test, body)
        return put(counts, found, k)

    compiled_alike(*repeat(n, [broadcast(constant(np.int64(0)), (n,))], steps, values))
