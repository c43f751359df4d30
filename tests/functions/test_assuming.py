"""``tm.assume``: rules use what was said, and what is false is an error."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.transform.rewriting import rewrite


def ops(function, *values, level="stable"):
    done = rewrite(tm.trace(function, *values), level)
    return str(done.graph), done


def test_roots_of_squares_are_the_value_itself():
    text, _ = ops(lambda x: np.sqrt(tm.assume(x, x > 0) ** 2), np.ones(3))
    assert "sqrt" not in text
    assert "absolute" not in text
    text, _ = ops(lambda x: np.abs(tm.assume(x, x >= 0)), np.ones(3))
    assert "absolute" not in text
    text, _ = ops(lambda x: np.abs(tm.assume(x, x < 3)), np.ones(3))
    assert "absolute" in text


def test_logarithms_of_products_need_no_assumption_of_their_own():
    def f(x, y):
        return np.log(tm.assume(x, x > 0) * tm.assume(y, y > 0.5))

    text, done = ops(f, np.ones(3), np.ones(3), level="real")
    assert "multiply" not in text
    assert not done.assumptions
    assert ops(lambda x, y: np.log(x * y), np.ones(3), np.ones(3), level="real")[1].assumptions


def test_equals_cancel_where_they_are_numbers_and_the_check_stays():
    def f(x):
        x = tm.assume(x, (x > 0) & (x < 10))
        return x / x

    assert "divide" not in ops(f, np.ones(3), level="exact")[0]
    np.testing.assert_array_equal(tm.tensor(f)(np.array([2.0, 3.0])), [1.0, 1.0])
    with pytest.raises(ValueError, match="is false"):
        np.asarray(tm.tensor(f)(np.array([2.0, 0.0])))


def test_a_fact_goes_no_further_than_its_value():
    def f(x):
        x = tm.assume(x, x > 0, np.isfinite(x))
        return np.abs(x - x - 1.0)

    np.testing.assert_array_equal(tm.tensor(f)(np.array([2.0])), [1.0])


@pytest.mark.parametrize("form", [np.array, np.float64, float, lambda x: np.full(3, x)])
def test_what_does_not_hold_is_an_error(tier, form):
    def f(x):
        return np.log(tm.assume(x, x > 0))

    assert np.all(np.asarray(tm.tensor(f)(form(1.0))) == 0)
    for wrong in (-1.0, 0.0, np.nan):
        with pytest.raises(ValueError, match=r"is false.*> 0.*test_assuming"):
            np.asarray(tm.tensor(f)(form(wrong)))


def test_it_can_be_left_unchecked():
    f = tm.tensor(lambda x: np.sqrt(tm.assume(x, x > 0, check=False) ** 2))
    np.testing.assert_array_equal(f(np.array([-2.0])), [-2.0])


def test_derivatives_compiled_code_and_batches():
    def f(x):
        x = tm.assume(x, x > 0)
        return np.sum(np.sqrt(x**2) * x)

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(tm.grad(f)(x), 2 * x)
    assert float(tm.compile(f, x)(x)) == 5.0
    np.testing.assert_allclose(tm.vmap(lambda r: tm.assume(r, r > 0) * 2)(np.ones((2, 3))), np.full((2, 3), 2.0))
    with pytest.raises(ValueError, match="is false"):
        np.asarray(tm.grad(f)(-x))


def test_in_plain_python_it_is_a_check():
    x = np.array([1.0, 2.0])
    assert tm.assume(x, x > 0) is x
    with pytest.raises(ValueError, match="is false"):
        tm.assume(x, x > 1)
    assert tm.assume(x, x > 1, check=False) is x


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: tm.assume(x > 0),
        lambda x: tm.assume(x, 2 * x > 0),
        lambda x: tm.assume(x, x > x.sum()),
        lambda x: tm.assume(x, True),
        lambda x: tm.assume(x, (x > 0) | (x < -1)),
        lambda x: tm.assume(x, x == 1),
    ],
)
def test_what_says_nothing_of_the_value_is_refused(wrong):
    with pytest.raises(TypeError, match=r"tm\.assume"):
        tm.tensor(wrong)(np.ones(3))


def test_graphs_with_facts_are_read_back():
    graph = tm.trace(lambda x: np.abs(tm.assume(x, x > 0.1, np.isfinite(x))), np.ones(3))
    assert tm.parse(str(graph)) == graph
