"""Work that is done for all iterations of a loop, or for both branches, and has no finite derivative where none takes it."""

import numpy as np
import pytest

import tensormagic as tm

X = np.array([0.0, 2.0, -1.0])


def in_a_branch(x):
    logarithm = np.log(x)
    total = 0.0
    for k in range(3):
        if x * k > 0:  # noqa: SIM108 (a branch is meant)
            total = total + logarithm * k
        else:
            total = total + x
    return total


def in_a_where(x):
    total = 0.0
    for k in range(3):
        total = total + np.where(x * k > 0, np.log(x) * k, x)
    return np.sum(total)


def by_hand(x):
    return tm.fori_loop(0, 3, lambda k, s: s + tm.cond(x * k > 0, lambda: np.log(x) * k, lambda: x), 0.0)


def while_it_lasts(x):
    def iteration(state):
        k, s = state
        return k + 1, s + tm.cond(x * k > 0, lambda: np.log(x) * k, lambda: x)

    return tm.while_loop(lambda state: state[0] < 3, iteration, (0, 0.0))[1]


def two_ways(x):
    total = 0.0
    for k in range(3):
        total = total + np.where(x * k > 0, np.log(x) * k, 0.0) + np.where(x * k > 3, np.sqrt(x), x)
    return np.sum(total)


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("function", [in_a_branch, in_a_where, by_hand, while_it_lasts])
def test_a_loop_of_which_no_iteration_takes_it(function):
    with np.errstate(all="ignore"):
        captured = tm.tensor(function)
        for x, first, second in [(0.0, 3.0, 0.0), (2.0, 1 + 3 / 2, -3 / 4), (-1.0, 3.0, 0.0)]:
            assert tm.grad(captured)(x) == first
            assert tm.jvp(captured, (x,), (1.0,))[1] == first
            assert tm.grad(tm.grad(captured))(x) == second
            assert tm.hvp(captured, x, 2.0) == 2 * second


@pytest.mark.usefixtures("tier")
def test_elements_of_which_some_are_taken():
    with np.errstate(all="ignore"):
        captured = tm.tensor(in_a_where)
        np.testing.assert_allclose(tm.grad(captured)(X), [3, 2.5, 3], rtol=1e-15)
        np.testing.assert_allclose(tm.hessian(captured)(X), np.diag([0, -0.75, 0]), rtol=1e-15)
        np.testing.assert_allclose(tm.grad(captured)(np.append(X, 4.0)), [3, 2.5, 3, 1.75], rtol=1e-15)
        np.testing.assert_allclose(tm.vmap(tm.grad(tm.tensor(by_hand)))(X), [3, 2.5, 3], rtol=1e-15)


def test_conditions_of_several_parts_are_taken_together():
    with np.errstate(all="ignore"):
        expected = [3, 3 / 2 + 2 + 0.5 / np.sqrt(2.0), 3]
        np.testing.assert_allclose(tm.grad(tm.tensor(two_ways))(X), expected, rtol=1e-15)


def test_what_else_is_added_to_keeps_its_cotangent():
    def outside_too(x):
        root = np.exp(x)
        total = 0.0
        for k in range(3):
            total = total + np.where(x * k > 0, root * k, 0.0)
        return np.sum(total + 2 * root)

    np.testing.assert_allclose(tm.grad(tm.tensor(outside_too))(X), np.exp(X) * [2, 5, 2], rtol=1e-15)
