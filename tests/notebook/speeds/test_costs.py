"""Operations and bytes of graphs and plans, against counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cpu.flops import flops_of
from tensormagic.backend.planning import costs
from tensormagic.notebook.pictures.adaptor import portrait


def counted(value):
    """What the plan does for a value, and what NumPy does for what was captured: operations, bytes, whether that is all."""
    shown = portrait({"value": value.node}, {}, "")
    plan = costs.total(costs.of_plan(shown.executable.plan, shown.number))
    return plan, costs.of_graph(shown.primal.nodes, shown.number)


@pytest.fixture
def given():
    random = np.random.default_rng(0)
    arrays = {"x": random.normal(size=1000), "y": random.normal(size=1000), "A": random.normal(size=(40, 30))}
    return {name: tm.tensor(array) for name, array in arrays.items()}


# by hand, with n = 1000 and 8 bytes a number: what the plan's loops do, and what NumPy does one call after the other
BY_HAND = {
    # exp, multiply, add: 3 n. In a kernel x and y are read and the result is written; in NumPy exp reads one array and
    # writes one, multiply reads two and writes one, add reads one and writes one (1 is a number that is stretched: none
    # is read for it, but the stretched view counts as an operand)
    "fused": (lambda g: np.exp(g["x"]) * g["y"] + 1, 3000, 24_000, 3000, (2 + 3 + 3) * 8_000),
    # n products and n additions; the number that comes of it is not counted
    "sum of products": (lambda g: (g["x"] * g["y"]).sum(), 2000, 16_000, 2000, (3 + 1) * 8_000),
    # 40 x 30 products and as many additions; the matrix, the vector (30) and the result (40)
    "matrix times vector": (lambda g: g["A"] @ g["x"][:30], 2400, 8 * (1200 + 30 + 40), 2400, 8 * (1200 + 30 + 40)),
    # 2 * 30 * 40 * 30 by a library call: the matrix is read once, by NumPy as two operands, one of them a view
    "a library's product": (lambda g: g["A"].T @ g["A"], 72_000, 8 * (1200 + 900), 72_000, 8 * (1200 + 1200 + 900)),
    # 999 subtractions; the whole of x is below both slices, of which 999 elements each are touched
    "slices": (lambda g: g["x"][1:] - g["x"][:-1], 999, 2 * 999 * 8, 999, 3 * 999 * 8),
    # three elements taken: indices read (3), elements read (3), result written (3); nothing is computed
    "taken": (lambda g: g["x"][np.array([1, 2, 3])], 0, 72, 0, 72),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_counts_agree_with_those_by_hand(given, name):
    made, operations, moved, by_numpy, moved_by_numpy = BY_HAND[name]
    plan, graph = counted(made(given))
    assert (plan.operations, plan.moved, plan.known) == (operations, moved, True)
    assert (graph.operations, graph.moved, graph.known) == (by_numpy, moved_by_numpy, True)


def test_a_loop_counts_as_often_as_it_iterations(given):
    @tm.tensor
    def repeated(h):
        for _ in range(7):
            h = np.tanh(h * 1.5)
        return h

    plan, graph = counted(repeated(given["x"]))
    assert plan.operations == graph.operations == 7 * 2 * 1000
    assert plan.flops == 7 * 1000 * (1 + flops_of("tanh"))


def test_stores_in_a_loop_move_what_is_stored(given):
    x = given["x"]

    @tm.tensor
    def filled(x):
        s = np.zeros(50)
        for k in range(50):
            s[k] = np.sin(x[k]) if k else x[0]
            s[k] += s[k - 1] * 0.5
        return s

    graph = counted(filled(x))[1]
    assert graph.moved < 50 * 8 * 20  # and not 50 copies of the whole


def test_a_while_is_known_for_one_iteration_only(notebook):
    notebook["x"] = np.ones(1000)
    notebook.ok("%%tensor -q\nh = x\nwhile h.sum() > 5:\n    h = np.sin(h) * 0.5\nr = h + 0")
    plan, graph = counted(notebook["r"])
    assert not plan.known
    assert not graph.known
    assert plan.operations >= 2000


def test_a_gradient_in_one_kernel_reads_its_arrays_once(given):
    A = given["A"]
    slope = tm.grad(lambda w: np.sum(np.exp(-(A @ w))))(given["x"][:30])
    plan, _ = counted(slope)
    assert plan.moved <= 8 * (1200 + 2 * 30) + 8 * 40 * 4


def test_flops_of_functions_are_those_of_their_formulas():
    assert flops_of("add") == flops_of("no such operation") == 1
    assert flops_of("hypot") > 2
    assert flops_of("exp", 32) < flops_of("exp") < flops_of("power")
    assert flops_of("sin") > 10
