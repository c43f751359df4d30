"""Closing a graph: leaves become parameters, sizes that use makes equal become one symbol, and the rest is guarded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensormagic.ir.closing import close
from tensormagic.ir.errors import GuardError, ShapeError
from tensormagic.ops.contract import matmul
from tensormagic.ops.fold import reduce_sum
from tensormagic.ops.leaf import INPUT, parameter
from tensormagic.ops.move import concatenate, reshape, slice_
from tensormagic.ops.scalars.scalar import add, sin
from tests.ops.harness import closed, place


def shapes_of(graph):
    return [str(p.type) for p in graph.parameters]


def test_sizes_that_use_makes_equal_share_a_symbol():
    x, w, b = place(np.ones((50, 3)), "X"), place(np.ones(3), "w"), place(np.ones(50), "b")
    graph = closed([matmul(x, w) + b], [x, w, b])
    assert shapes_of(graph) == ["float64[n0, n1]", "float64[n1]", "float64[n0]"]
    assert graph.guards == ()
    assert {str(k): v for k, v in graph.bind([(7, 4), (4,), (7,)]).items()} == {"n0": 7, "n1": 4}
    with pytest.raises(GuardError, match="a size is 5 where n1 = 4 was expected"):
        graph.bind([(7, 4), (5,), (7,)])


def test_sizes_that_nothing_relates_stay_apart():
    x, y = place(np.ones(5)), place(np.ones(5))
    assert shapes_of(closed([reduce_sum(x, (0,)) + reduce_sum(y, (0,))], [x, y])) == ["float64[n0]", "float64[n1]"]


def test_extents_of_0_and_1_are_fixed():
    x, y = place(np.ones((1, 4))), place(np.ones((0, 4)))
    graph = closed([add(x, y)], [x, y])
    assert shapes_of(graph) == ["float64[1, n0]", "float64[0, n0]"]
    with pytest.raises(GuardError):
        graph.bind([(2, 4), (0, 4)])
    with pytest.raises(GuardError, match="at least 2"):
        closed([sin(place(np.ones(3)))], []).bind([(1,)])


def test_another_rank_is_refused():
    x = place(np.ones(3))
    with pytest.raises(GuardError, match="2 axes"):
        closed([sin(x)], [x]).bind([(3, 3)])


def test_what_cannot_be_solved_is_guarded():
    x, y = place(np.ones((6, 4))), place(np.ones((8, 3)))
    graph = closed([add(reshape(x, (24,)), reshape(y, (24,)))], [x, y])
    assert graph.guards
    graph.bind([(6, 4), (8, 3)])
    with pytest.raises(GuardError, match="does not hold"):
        graph.bind([(6, 4), (8, 4)])


def test_a_part_that_must_be_inside_is_guarded():
    x = place(np.ones(9))
    graph = closed([slice_(x, ((5, 3, 1),))], [x])
    graph.bind([(8,)])
    with pytest.raises(GuardError):
        graph.bind([(7,)])


def test_a_size_that_a_sum_solves():
    x, y, z = place(np.ones(3)), place(np.ones(4)), place(np.ones(7))
    graph = closed([add(concatenate([x, y], 0), z)], [x, y, z])
    assert shapes_of(graph) == ["float64[n0]", "float64[n1]", "float64[n0+n1]"]
    with pytest.raises(GuardError):
        graph.bind([(3,), (4,), (8,)])


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6))
def test_sums_of_vectors_unify_like_sets(pairs):
    inputs = [place(np.ones(6)) for _ in range(5)]
    graph = closed([add(inputs[a], inputs[b]) for a, b in pairs], inputs)
    group = list(range(5))
    for a, b in pairs:
        group = [group[b] if g == group[a] else g for g in group]
    names = shapes_of(graph)
    assert all((names[a] == names[b]) == (group[a] == group[b]) for a in range(5) for b in range(5))
    lengths = [3 + g for g in group]
    graph.bind([(n,) for n in lengths])
    for a, b in pairs:
        if a != b:
            wrong = [(n + (k == a),) for k, n in enumerate(lengths)]
            with pytest.raises(GuardError):
                graph.bind(wrong)


def test_leaves_that_are_asked_for_come_first_and_stay():
    x, y = place(np.ones(3), "x"), place(np.ones(3), "y")
    found = close([sin(y)], lambda n: n.op is INPUT, parameter, leaves=[x])
    assert found.leaves == (x, y)
    assert found.graph.names == ("x", "y")
    assert found.mapping[y] is found.graph.parameters[1]


def test_a_value_may_be_cut_in_its_middle():
    x = place(np.ones(3))
    middle = sin(x)
    found = close([middle * 2], lambda n: n is middle, parameter)
    assert found.leaves == (middle,)
    assert [n.op.name for n in found.graph.nodes] == ["parameter", "constant", "broadcast", "multiply"]


def test_shapes_that_were_seen_to_differ_are_refused_at_once():
    with pytest.raises(ShapeError, match=r"could not be broadcast together with shapes \(3,\) \(4,\)"):
        add(place(np.ones(3)), place(np.ones(4)))
    with pytest.raises(GuardError, match="assumed equal"):
        close([place(np.ones(3))], lambda n: n.op is INPUT, parameter, extra_guards=[(2, "==", 3)])
