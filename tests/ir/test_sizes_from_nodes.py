"""Sizes that mention integer nodes: arithmetic and bounds against integers, and every walk over graphs that has to follow them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensormagic.backend.numpy_tier import reference
from tensormagic.ir.bounds import floor_of_nodes
from tensormagic.ir.closing import close
from tensormagic.ir.errors import ParseError, ShapeError
from tensormagic.ir.node import replaced, substitute, topological, users
from tensormagic.ir.size import (
    apply,
    atom,
    evaluate,
    hint,
    is_at_least,
    lower_bound,
    nodes_of,
    size_text,
    symbol,
)
from tensormagic.ir.substituting import substitute as substitute_size
from tensormagic.ir.text import parse
from tensormagic.ir.type import Type, array, python
from tensormagic.ops.effects.checks import require
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.indices.position import position
from tensormagic.ops.leaf import INPUT, Source, constant, index_node, input_node, iota, parameter, size_node, size_of
from tensormagic.ops.move import broadcast, slice_
from tensormagic.ops.op import registry
from tensormagic.ops.pointwise import astype
from tensormagic.ops.regions import control
from tensormagic.ops.scalars import scalar
from tensormagic.transform.rewriting import rewrite
from tests.ops.harness import closed, place

N, M = symbol("n"), symbol("m")
I = index_node("i", 0, N)
J = index_node("j", atom(I), N + M)
FREE = input_node(Source("free"), python(int))
NUMBERS = st.fixed_dictionaries({"n": st.integers(2, 6), "m": st.integers(2, 6), "free": st.integers(-5, 5)}).flatmap(
    lambda v: st.integers(0, v["n"] - 1).flatmap(
        lambda i: st.integers(i, v["n"] + v["m"] - 1).map(lambda j: {**v, "i": i, "j": j})
    )
)
ATOMS = {"n": N, "m": M, "i": atom(I), "j": atom(J), "free": atom(FREE)}


def number(size, values):
    return evaluate(size, lambda a: values[str(a)])


@st.composite
def sizes(draw, depth=3):
    """A size, and the integer function that it stands for."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        if draw(st.booleans()):
            name = draw(st.sampled_from(sorted(ATOMS)))
            return ATOMS[name], lambda v: v[name]
        k = draw(st.integers(-2, 3))
        return k, lambda v: k
    left, f = draw(sizes(depth=depth - 1))
    right, g = draw(sizes(depth=depth - 1))
    match draw(st.sampled_from(["+", "-", "*", "floordiv", "mod", "min", "max"])):
        case "+":
            return left + right, lambda v: f(v) + g(v)
        case "-":
            return left - right, lambda v: f(v) - g(v)
        case "*":
            return left * right, lambda v: f(v) * g(v)
        case "floordiv":
            return apply("floordiv", left, 3), lambda v: f(v) // 3
        case "mod":
            return apply("mod", left, 2), lambda v: f(v) % 2
        case "min":
            return apply("min", left, right), lambda v: min(f(v), g(v))
        case _:
            return apply("max", left, right), lambda v: max(f(v), g(v))


@given(sizes(), NUMBERS)
def test_arithmetic_and_bounds_are_those_of_integers(pair, values):
    size, function = pair
    assert number(size, values) == function(values)
    bound = lower_bound(size)
    assert bound is None or bound <= function(values)


@given(sizes(depth=2), NUMBERS)
def test_a_floor_without_nodes_is_below(pair, values):
    size, function = pair
    seen = substitute_size(size, {a: symbol(str(a), 3) for a in map(_only, (N, M))})
    floor = floor_of_nodes(seen)
    if floor is not None:
        assert not nodes_of(floor)
        assert number(floor, values) <= function(values)


def _only(size):
    return size.terms[0][0][0][0]


@given(sizes(), sizes(), NUMBERS)
def test_equal_sizes_are_equal_numbers(left, right, values):
    (a, f), (b, g) = left, right
    if a == b:
        assert f(values) == g(values)
        assert hash(a) == hash(b)
    assert a - b == -1 * (b - a)
    assert a * (b + 1) == b * a + a


def test_one_normal_form():
    i, j = atom(I), atom(J)
    assert N - i - 1 == N - (i + 1)
    assert i * j + N == N + j * i
    assert str(N - i - 1) == "-1*i+n-1"
    assert size_text(i + 1) == "i+1"


def test_ranges_decide_extremes():
    i, j = atom(I), atom(J)
    assert apply("min", i, N) == i
    assert apply("max", i, 0) == i
    assert apply("min", i + 1, N) == i + 1
    assert apply("max", N - i - 1, 0) == N - i - 1
    assert apply("max", j - i, 0) == j - i
    assert apply("min", j, N + M) == j
    assert lower_bound(N - i) == 1
    assert lower_bound(i - 1) == -1
    assert lower_bound(N * N - i * N) == 2
    assert lower_bound(atom(FREE)) is None
    assert lower_bound(apply("max", atom(FREE), 0)) == 0
    k = atom(position(atom(FREE), N, 0))
    assert apply("min", k + 1, N) == k + 1
    assert lower_bound(apply("floordiv", i + 2, 2)) == 1
    assert lower_bound(i + 1 - 2 * apply("floordiv", i + 1, 2)) == 0


def test_sizes_and_nodes_are_the_same_thing():
    assert size_of(I) == atom(I)
    assert size_node(atom(I)) is I
    assert size_of(size_node(atom(I) + 1)) == atom(I) + 1
    assert size_of(I + 1) == atom(I) + 1
    assert size_of(scalar.minimum(I + 1, size_node(N))) == atom(I) + 1
    assert size_of(scalar.multiply(I, I)) == atom(I * I)
    assert size_of(scalar.floor_divide(I, constant(2))) == apply("floordiv", atom(I), 2)
    whole = input_node(Source("k"), array(np.int64))
    assert size_of(whole) == atom(whole)
    assert size_node(atom(whole)).type == python(int)
    assert size_of(size_node(atom(whole))) == atom(whole)
    assert size_of(input_node(Source("x"), array(np.float64))) is None
    assert size_of(input_node(Source("x"), array(np.int64, 3))) is None
    assert size_of(astype(whole, np.int32)) == atom(astype(whole, np.int32))  # it may wrap


def ramp_to(k):
    return iota((size_of(k) + 1,), 0)


def test_nodes_are_followed():
    k = input_node(Source("k"), python(int))
    ramp = ramp_to(k * k)
    assert ramp.sized_by == (k * k,)
    assert topological([ramp]) == [k, k * k, ramp]
    assert users([ramp]) == {k * k: [ramp]}
    (other,) = substitute([ramp], {k: constant(3)})
    assert other.type.shape == (10,)
    (swapped,) = substitute([reduce_sum(ramp, (0,))], {k: J})
    assert swapped.args[0].type.shape == (atom(J * J) + 1,)
    assert replaced(ramp, {}) is ramp


def test_what_is_known_of_a_value_is_not_needed_to_have_it():
    assert J.needs == ()
    assert J.bounds == (atom(I), N + M - 1)


def test_text_goes_there_and_back():
    x, k = place(np.ones(5), "x"), place(np.int64(2), "k")
    part = slice_(x, ((atom(k), x.type.shape[0] - atom(k), 1),))
    graph = closed([reduce_sum(part, (0,)), ramp_to(k), size_node(atom(k) * 2)], [x, k])
    assert "slices=((%1,-1*%1+n0,1),)" in graph.text
    assert parse(graph.text, registry) == graph
    assert [line.strip() for line in graph.text.splitlines() if "guard" in line] == [
        "guard %1 >= 0",
        "guard -1*%1+n0 >= 0",
    ]


def test_ranges_of_parameters_are_text_too():
    head = "graph(%0: int from %1 below %1+n0, %1: int from 0, %2: float64[n0], %3: float64[any0], %4: int below 3) {"
    graph = parse(f"{head}\n  %5 = iota() shape=(%0-%1,) axis=0 : int64[%0-%1]\n  return %5\n}}", registry)
    assert graph.text.splitlines()[0] == head
    assert graph.nodes[-1].type.shape == (atom(graph.parameters[0]) - atom(graph.parameters[1]),)
    assert lower_bound(graph.nodes[-1].type.shape[0]) == 0
    assert parse(graph.text, registry) == graph
    with pytest.raises(ParseError):
        parse("graph(%0: int below %7) {\n  return %0\n}", registry)


def test_values_of_sizes_come_from_the_run():
    x, k = place(np.arange(6.0), "x"), place(np.int64(2), "k")
    n = x.type.shape[0]
    part = slice_(x, ((atom(k * k), apply("max", n - atom(k * k), 0), 1),))
    graph = closed([part, broadcast(constant(1.0), (atom(k) + 1,))], [x, k])
    found = reference.evaluate_graph(graph, [np.arange(6.0), np.int64(2)])
    np.testing.assert_array_equal(found[0], [4, 5])
    np.testing.assert_array_equal(found[1], [1, 1, 1])


def test_guards_of_data_are_checked_in_the_run():
    x, y, k = place(np.ones(5), "x"), place(np.ones(3), "y"), place(np.int64(3), "k")
    graph = closed([slice_(x, ((0, atom(k), 1),)) + y], [x, y, k])
    assert graph.checks
    np.testing.assert_array_equal(reference.evaluate_graph(graph, [np.ones(4), np.ones(2), np.int64(2)])[0], [2, 2])
    for values in ([np.ones(5), np.ones(3), np.int64(2)], [np.ones(2), np.ones(3), np.int64(3)]):
        with pytest.raises(ShapeError):
            reference.evaluate_graph(graph, values)


def test_a_range_that_fits_what_was_seen_is_a_guard_of_shapes():
    x = place(np.ones(9), "x")
    i = index_node("i", 0, 5)
    graph = close([slice_(x, ((atom(i), 1, 1),))], lambda n: n.op is INPUT, parameter, leaves=[i, x]).graph
    assert graph.checks == ()
    assert [f"{a} {r} {b}" for a, r, b in graph.guards] == ["n0-5 >= 0"]


def test_rewriting_maps_sizes_and_guards():
    x, y, k = place(np.ones(5), "x"), place(np.ones(3), "y"), place(np.int64(3), "k")
    doubled = scalar.add(scalar.add(k, k) * 1, 0)
    graph = closed([slice_(x, ((0, atom(scalar.absolute(doubled)), 1),)) * 1 + y * 1], [x, y, k])
    new = rewrite(graph, "exact").graph
    assert set(new.checked) <= set(new.nodes)
    values = [np.ones(9), np.ones(4), np.int64(2)]
    np.testing.assert_array_equal(reference.evaluate_graph(new, values)[0], reference.evaluate_graph(graph, values)[0])
    with pytest.raises(ShapeError):
        reference.evaluate_graph(new, [np.ones(9), np.ones(4), np.int64(1)])


def test_an_array_that_is_handed_in_says_its_size():
    x, k = place(np.arange(6.0), "x"), place(np.int64(2), "k")
    part = slice_(x, ((0, atom(k), 1),))
    found = close([part * ramp_to(k - 1)], lambda n: n is part, parameter)
    assert found.leaves == (part,)
    assert str(found.graph.parameters[0].type) == "float64[any0]"
    for length in range(4):
        (value,) = reference.evaluate_graph(found.graph, [np.full(length, 2.0)])
        np.testing.assert_array_equal(value, 2.0 * np.arange(length))


def region(results, leaves):
    return close(results, lambda n: n in leaves, parameter, leaves=leaves).graph


def test_sizes_inside_and_outside_of_regions():
    x, k = place(np.arange(6.0), "x"), place(np.int64(2), "k")
    inner_x, inner_k = (input_node(Source("a"), n.type) for n in (x, k))
    n = inner_x.type.shape[0]
    tail = region([slice_(inner_x, ((atom(inner_k), n - atom(inner_k), 1),))], [inner_x, inner_k])
    (called,) = control.call(tail, [x, k])
    assert called.type.shape == (x.type.shape[0] - atom(k),)
    graph = closed([called * 2], [x, k])
    np.testing.assert_array_equal(reference.evaluate_graph(graph, [np.arange(6.0), np.int64(4)])[0], [8.0, 10.0])
    with pytest.raises(ShapeError):
        reference.evaluate_graph(graph, [np.arange(6.0), np.int64(7)])


def test_a_size_that_is_computed_inside_does_not_leave():
    x = place(np.arange(6.0), "x")
    stand_in = input_node(Source("a"), x.type)
    count = reduce_sum(scalar.greater(stand_in, 0.0), (0,))
    body = region([iota((atom(count),), 0)], [stand_in])
    with pytest.raises(ShapeError, match="depends on data"):
        control.call(body, [x])
    index, carry = index_node("index", 0, 3), input_node(Source("carry"), array(np.int64))
    iteration = region([iota((atom(carry),), 0)], [index, carry])
    with pytest.raises(ShapeError, match="depends on data"):
        control.loop(constant(3), iteration, [constant(np.int64(1))])


def test_hints_are_of_shapes_alone():
    assert hint(atom(I)) is None
    assert hint(symbol("n", 3) + 1) == 4
    assert isinstance(array(np.float64, atom(I)), Type)


def test_a_power_a_choice_and_what_is_checked_lie_between_sizes():
    few = index_node("few", 0, 9)
    below = scalar.less(few, 3)
    two = constant(2)
    power = scalar.power(two, few)
    assert power.bounds == (1, 256)
    assert scalar.power(two, FREE).bounds == (None, None)
    assert scalar.power(two, scalar.subtract(few, 1)).bounds == (None, None)  # an error, perhaps
    assert scalar.power(constant(1000), few).bounds == (None, None)  # it may wrap around
    checked = require(power, below, "no")
    assert is_at_least(atom(checked), 1)
    assert is_at_least(256 - atom(checked), 0)
    choice = scalar.where(below, checked, constant(7))
    assert is_at_least(atom(choice), 1)
    assert not is_at_least(atom(choice), 2)
    assert is_at_least(256 - atom(choice), 0)
