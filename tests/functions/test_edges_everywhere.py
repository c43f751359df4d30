"""The derivatives of ``test_edges`` are the same in loops, branches and batches, ahead and back."""

import numpy as np
import pytest

import tensormagic as tm
from tests.functions.test_edges import CASES

SHARED = [name for name in CASES if name != "log of a sum of exp"]  # which takes the rules of ``stable``


pytestmark = pytest.mark.usefixtures("quietly_by_numpy")


def in_a_loop(f, x):
    def looped(x, k):
        result = 0.0
        for _ in range(k):
            result = f(x)
        return result

    return tm.grad(looped)(x, 1)


def in_the_last_iteration(f, x):
    def looped(x, k):
        result = 0.0
        for _ in range(k):
            x = x * 1.0
            result = f(x)
        return result

    return tm.grad(looped)(x, 2)


def in_a_while_loop(f, x):
    def looped(x, k):
        iteration, result = 0, 0.0
        while iteration < k:
            x = x * 1.0
            result = f(x)
            iteration += 1
        return result

    return tm.grad(looped)(x, 2)


def stored_in_a_loop(f, x):
    def looped(x, k):
        found = np.zeros(3)
        for i in range(k):
            found[i] = f(x)
        return found.sum()

    return tm.grad(looped)(x, 1)


def in_a_branch(f, x):
    def chosen(x, s):
        if s > 0:
            return f(x)
        return 0.0 * f(x)

    return tm.grad(chosen)(x, 1.0)


def in_a_batch(f, x):
    return tm.vmap(tm.grad(f))(np.stack([x, x]))[1]


def ahead(f, x):
    if np.asarray(x).dtype.kind == "c":
        return tm.grad(f)(x)
    found = np.zeros(np.shape(x))
    for index in np.ndindex(np.shape(x)):
        move = np.zeros(np.shape(x))
        move[index] = 1.0
        found[index] = tm.jvp(f, (x,), (move if np.ndim(x) else 1.0,))[1]
    return found


@pytest.mark.parametrize(
    "how", [in_a_loop, in_the_last_iteration, in_a_while_loop, stored_in_a_loop, in_a_branch, in_a_batch, ahead]
)
def test_the_same_everywhere(how):
    for name in SHARED:
        f, x, expected, *_ = CASES[name]
        assert np.allclose(how(f, x), expected, rtol=1e-6, atol=1e-9), name


def test_what_the_next_iteration_replaces_has_no_slope():
    def rooted(x, k):
        result = 0.0
        for _ in range(k):
            result = np.sqrt(x)
            x = x + 1.0
        return result

    assert tm.grad(rooted)(0.0, 2) == 0.5


def test_spread_of_what_is_equal_in_a_loop():
    def spread(y):
        for _ in range(2):
            y[:] = np.std(y)
        return y.sum()

    assert not tm.grad(spread)(np.array([1.0, 2.0, 4.0])).any()
    assert not tm.grad(np.std)(np.ones(3) * (1 + 1j)).any()


def test_the_next_number_moves_with_the_first():
    assert tm.grad(lambda x: np.nextafter(x, 3.0))(1.0) == 1.0


def joins(x):
    return np.c_[x, 2 * x].sum()


def test_joins_in_a_function_that_is_an_argument():
    def applied(x, inner=joins):
        return inner(x)

    assert np.array_equal(tm.grad(applied)(np.ones(2)), [3.0, 3.0])
