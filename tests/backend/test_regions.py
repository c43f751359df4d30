"""Compiled loops, branches and stores against the NumPy tier: values, order of reads and writes, sizes that change, errors."""

import numpy as np
import pytest

from tensormagic.backend.plan import plan_graph
from tensormagic.ir.size import apply, atom
from tensormagic.ops import contract, fold, move, scalar
from tensormagic.ops.fold import CUMSUM, MAX, SUM
from tensormagic.ops.gather import gather
from tensormagic.ops.leaf import constant, size_node
from tensormagic.ops.linalg import solve
from tensormagic.ops.move import broadcast, flip, reshape, slice_, transpose
from tensormagic.ops.pointwise import astype
from tensormagic.ops.scatter import scatter_add
from tensormagic.ops.update import add_at, set_at
from tests.backend.graphs import closed, prepared
from tests.backend.regions import branch, compiled_alike, element, number, put, repeat, repeat_while, variable

rng = np.random.default_rng(17)
TURNS = [0, 1, 2, 5]
V = variable("v", rng.normal(size=6))
A = variable("A", rng.normal(size=(5, 6)))
N, M = A.type.shape
(L,) = V.type.shape


def total(x):
    return fold.reduce_sum(x, tuple(range(x.type.ndim)))


# numbers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", TURNS)
def test_numbers_are_carried(turns):
    def body(k, a, b):
        return scalar.add(a, k), b * 0.5 + astype(a, np.float64)

    compiled_alike(*repeat(turns, [constant(np.int64(3)), number(1.0)], body))


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


@pytest.mark.parametrize("turns", TURNS)
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
def test_arrays_are_carried(turns, body):
    found = repeat(turns, [V, V + 1], body)
    compiled_alike(*found, found[0] + V, ulps=256, scale=1.0)


@pytest.mark.parametrize("turns", TURNS)
def test_the_same_array_begins_two_carries_and_is_a_constant(turns):
    start = V * 3
    found = repeat(turns, [start, start], lambda _k, a, b, c: (a + c, b * 0.5 + a), start)
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
    before, _, turn = text.partition("for turn")
    assert before.count("for k_") == 1  # A, which is an input, is copied once; A * 2.0 is nobody else's
    assert turn.count("for i in") == 2


@pytest.mark.parametrize("turns", TURNS)
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
def test_a_store_never_reads_what_it_has_written(turns, body):
    compiled_alike(*repeat(turns, [V], body), ulps=16, scale=1.0)


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


def test_zeros_from_outside_begin_an_inner_loop_at_every_turn():
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

    for turns in TURNS:
        compiled_alike(*repeat(turns, [V], body))
        compiled_alike(*repeat(turns, [V], lambda k, a: repeat(3, [a], inner)[0]))


# while ----------------------------------------------------------------------------------------------------------------


def test_while_with_several_carries():
    def test(x, count, _array):
        return scalar.logical_and(scalar.less(scalar.absolute(x * x - 2.0), 1e3), scalar.less(count, 9))

    def body(x, count, array):
        return 0.5 * (x + 2.0 / x), scalar.add(count, 1), array * x + element(array, 0)

    compiled_alike(*repeat_while([number(9.0), constant(0), V], test, body), ulps=64)


def test_while_that_never_turns():
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


# branches -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pred", [True, False])
def test_branches(pred):
    p = variable("p", np.bool_(pred))
    found = branch(p, lambda a, b: (a * 2, total(b), b), lambda a, b: (b + 1, total(a) * 3, a), V, V * 2)
    compiled_alike(*found, ulps=16)


def test_branches_in_loops_store_in_place():
    def body(k, a, count):
        positive = scalar.greater(element(a, k), 0.0)

        def then(x, c, j):
            return put(x, element(x, j) * 10.0, j), c + 1

        return branch(positive, then, lambda x, c, j: (x, c), a, count, k)

    plan = compiled_alike(*repeat(L, [V, constant(np.int64(0))], body))
    assert "for k_" not in plan.kernels[-1].printed.source.partition("for turn")[2]


def test_one_branch_makes_what_the_other_leaves():
    def body(k, a):
        even = scalar.equal(scalar.remainder(k, 2), 0)
        return branch(even, lambda x: flip(x, (0,)) * 2.0, lambda x: x, a)[0]

    for turns in TURNS:
        compiled_alike(*repeat(turns, [V], body))


def test_a_search_whose_branches_give_sizes_and_operands():
    ordered = variable("ordered", np.sort(rng.normal(size=20)))
    (n,) = ordered.type.shape

    def body(low, high, x, wanted):
        middle = size_node(apply("floordiv", atom(low) + atom(high), 2))
        below = scalar.less(reshape(gather(x, middle, 0), ()), wanted)
        return branch(below, lambda _l, h, m: (size_node(atom(m) + 1), h), lambda lo, _h, m: (lo, m), low, high, middle)

    for wanted in (-9.0, 0.1, 9.0):
        compiled_alike(
            *repeat_while(
                [constant(0), size_node(n)], lambda a, b, *_: scalar.less(a, b), body, ordered, number(wanted)
            )
        )


def test_loops_in_branches():
    p = variable("p", np.bool_(True))
    found = branch(p, lambda a: repeat(3, [a], lambda k, x: put(x, total(x), k))[0], lambda a: a, V)
    compiled_alike(*found, ulps=16)


# stores, joins and running folds without loops around them -------------------------------------------------------------------


def test_stores_into_values_inputs_and_one_another():
    first = put(V, number(3.0), 1)
    second = put(first, element(first, slice(0, 3)) * 2, slice(2, 5))
    compiled_alike(first, second, put(V * 2, number(1.0), 0), add_at(second, V, ((0, L, 1),)))


def test_rank_0_and_empty_stores():
    nothing = variable("nothing", np.zeros((0, 3)))
    compiled_alike(
        set_at(variable("number", np.array(2.0)), number(5.0), ()),
        add_at(variable("other", np.array(2.0)), number(5.0), ()),
        set_at(V, slice_(V, ((0, 0, 1),)), ((2, 0, 1),)),
        add_at(nothing, nothing * 2, ((0, 0, 1), (0, 3, 1))),
    )


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64"])
def test_running_folds_and_places_of_extremes(dtype):
    data = rng.integers(0, 2 if dtype == "bool" else 4, (3, 4, 5)).astype(dtype)
    x = variable("x", data)
    found = [fold.row(op, x, (k,)) for op in (CUMSUM, fold.CUMPROD, fold.CUMMAX, fold.CUMMIN) for k in range(3)]
    found += [fold.fold(op, x, axes) for op in (fold.ARGMAX, fold.ARGMIN) for axes in ((0,), (1,), (2,), (0, 1, 2))]
    compiled_alike(*found)


def test_the_first_nan_is_the_extreme():
    values = np.array([[1.0, np.nan, 3, np.nan], [np.nan, 1, 2, 3], [1, 1, 0, 0], [-np.inf, np.inf, np.inf, -np.inf]])
    x = variable("x", values)
    compiled_alike(
        *(fold.fold(op, x, (1,)) for op in (fold.ARGMAX, fold.ARGMIN)),
        *(fold.row(op, x, (1,)) for op in (fold.CUMMAX, fold.CUMMIN)),
    )


def test_joins():
    compiled_alike(
        move.concatenate([V, V * 2, flip(V, (0,))], 0),
        move.concatenate([A, A + 1], 0),
        move.concatenate([A, transpose(transpose(A)) * 2, broadcast(reshape(V, (1, L)), A.type.shape)], 1),
    )


# indices --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint32"])
def test_elements_by_index_arrays(dtype):
    places = np.array([[0, 3, 2], [2, 1, 4]])
    given = places if dtype[0] == "u" else np.where(places % 2, places - 5, places)
    index = variable("index", given.astype(dtype))
    compiled_alike(
        gather(A, index, 0), gather(A, index, 1), gather(scalar.exp(V), index, 0), total(gather(V * 2, index, 0))
    )


@pytest.mark.parametrize("wrong", [5, -6, 100])
def test_an_index_out_of_bounds_is_numpys_error(wrong):
    index = variable("index", np.array([0, wrong, 2]))
    handle, sizes, values = prepared(gather(A, index, 0) * 2)
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0 with size 5"):
        handle.run(sizes, *values)
    good = [np.array([1, 2, 3]) if v.ndim == 1 else v for v in values]
    np.testing.assert_array_equal(handle.run(sizes, *good)[0], A["source"].value[[1, 2, 3]] * 2)


def test_stores_by_index_arrays_happen_in_order():
    index = variable("index", np.array([4, 0, 4, -1, 4, 2]))
    compiled_alike(scatter_add(V, index, V * 2), scatter_add(A, index, broadcast(reshape(V, (L, 1)), (L, M)), 0))
    compiled_alike(*repeat(3, [V], lambda _k, a, i: scatter_add(a, i, a), index), ulps=16, scale=1.0)


def test_counts_by_a_computed_index():
    data = variable("data", rng.integers(0, 5, 40))
    (n,) = data.type.shape

    def body(k, counts, d):
        return scatter_add(counts, reshape(element(d, k), (1,)), broadcast(constant(np.int64(1)), (1,)))

    compiled_alike(*repeat(n, [broadcast(constant(np.int64(0)), (5,))], body, data))


def test_an_error_in_a_loop_leaves_it():
    index = variable("index", np.array([1, 2, 9, 0]))

    def body(k, a, i):
        return put(a, reshape(gather(a, element(i, k), 0), ()), 0)

    handle, sizes, values = prepared(*repeat(4, [V], body, index))
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 6"):
        handle.run(sizes, *values)


def test_a_maximum_of_nothing_in_a_loop_is_an_error_only_where_it_is_reached():
    def body(k, a):
        return put(a, fold.fold(MAX, slice_(a, ((0, atom(k), 1),)), (0,)), k)

    handle, sizes, values = prepared(*repeat(L, [V], body))
    with pytest.raises(ValueError, match="zero-size array to reduction operation max"):
        handle.run(sizes, *values)
    compiled_alike(*repeat(0, [V], body))


# what Python runs turn by turn -----------------------------------------------------------------------------------------------


SQUARE = variable("S", rng.normal(size=(4, 4)) / 4)


@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize(
    "body",
    [
        lambda k, a, b, c: (contract.matmul(a, c) * 0.3 + k, a + b),
        lambda k, a, b, c: (b, contract.matmul(a, c) * 0.3 + 1),
        lambda k, a, b, c: (b, a * 2 + contract.matmul(a, c)),
        lambda k, a, b, c: (transpose(contract.matmul(a, c)), a * 2),
        lambda k, a, b, c: (put(a, element(contract.matmul(a, c) * 1.5, 0), 1), b + a),
        lambda k, a, b, c: (contract.matmul(a, c), contract.matmul(a, c) + 1),
        lambda k, a, b, c: (c, b + contract.matmul(b, c)),
    ],
)
def test_library_calls_in_loops(turns, body):
    found = repeat(turns, [SQUARE, SQUARE + 1], body, SQUARE * 2)
    plan = compiled_alike(*found, SQUARE, library=3, ulps=256, scale=1.0)
    assert plan.regions


def test_library_calls_in_while_and_branches():
    def body(a, c):
        small = scalar.less(total(a * a), 50.0)
        (b,) = branch(small, lambda x, y: contract.matmul(x, y) * 3.0 + x, lambda x, y: solve(x, y) * 9.0 + 1, a, c)
        return b * 1.5

    compiled_alike(
        *repeat_while([SQUARE], lambda a, c: scalar.less(total(a * a), 1e6), body, SQUARE + 1), library=1, ulps=1e5
    )


def test_products_with_vectors_are_loops():
    plan = compiled_alike(
        *repeat(4, [element(SQUARE, 0)], lambda _k, v, c: contract.matmul(c, v) / (1 + contract.matmul(v, v)), SQUARE),
        ulps=64,
    )
    assert not plan.regions


# everything else ------------------------------------------------------------------------------------------------------


def test_a_kernel_that_does_not_compile_is_left_to_numpy():
    x = contract.matmul(SQUARE, SQUARE) * 2
    results = [
        scalar.exp(x) + 1,
        contract.matmul(x, SQUARE) * 3,
        *repeat(3, [SQUARE], lambda k, a: put(a, element(a, 1), k)),
    ]
    graph, values = closed(results)
    sizes = graph.bind([v.shape for v in values])
    plan = plan_graph(graph)
    (handle, _, _), count = prepared(*results), len(plan.sources)
    whole = handle.run(sizes, *values)
    functions = [handle._functions[s] for s in handle.plan.sources]
    assert count > 2
    for missing in range(count):
        run = plan.compile([None if k == missing else f for k, f in enumerate(functions)])
        for ours, others in zip(run(sizes, *values), whole, strict=True):
            np.testing.assert_allclose(ours, others, rtol=1e-13)


def test_a_turn_that_does_not_compile_still_changes_what_it_carries():
    results = repeat(3, [SQUARE, V], lambda k, a, v: (solve(a, a) + a * 2 + k, put(v, total(a) + k, 1)))
    graph, values = closed(results)
    plan = plan_graph(graph)
    (handle, _, _) = prepared(*results)
    sizes = graph.bind([v.shape for v in values])
    whole = handle.run(sizes, *values)
    functions = [handle._functions[s] for s in handle.plan.sources]
    assert plan.regions
    for missing in range(len(functions)):
        run = plan.compile([None if k == missing else f for k, f in enumerate(functions)])
        for ours, others in zip(run(sizes, *values), whole, strict=True):
            np.testing.assert_allclose(ours, others, rtol=1e-13)


def test_a_region_is_compiled_once_for_all_sizes():
    handle, _, _ = prepared(*repeat(size_node(L), [V], lambda k, a: put(a, total(a), k)))
    for n in (2, 9, 40):
        value = rng.normal(size=n)
        expected = value.copy()
        for k in range(n):
            expected[k] = expected.sum()
        np.testing.assert_allclose(handle.run(handle.plan.graph.bind([(n,)]), value)[0], expected, rtol=1e-12)


def test_sums_in_loops_are_of_what_is_there():
    compiled_alike(fold.fold(SUM, repeat(3, [A], lambda k, a: a * 2 + k)[0], (0, 1)), ulps=16)
