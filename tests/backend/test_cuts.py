"""Long expressions that stores share: what is stored to keep one stage short is there before all that read it."""

import numpy as np
import pytest

import tensormagic as tm
from tests.programs.test_programs import PROGRAMS


def chained(x, n):
    """Elements that are stored one after the other, each an expression of all before it."""
    out = np.zeros(n)
    total = x[0] * 1.5
    for k in range(n):
        for j in range(9):
            total = total * 0.5 + x[(k + j) % 8] / (1.0 + 0.1 * j)
        out[k] = total
    return out


@pytest.mark.parametrize("n", [2, 6, 9])
def test_elements_that_share_a_long_expression(n):
    x = np.linspace(0.5, 1.5, 8)
    with tm.config.using(tier="numba"):
        found = tm.tensor(lambda v: [chained(v, n), chained(v[::-1], n)])(x)
        slope = tm.grad(lambda v: chained(v, n).sum())(x)
    np.testing.assert_allclose(found, [chained(x, n), chained(x[::-1], n)], rtol=1e-12)
    with tm.config.using(tier="numpy"):
        np.testing.assert_allclose(slope, tm.grad(lambda v: chained(v, n).sum())(x), rtol=1e-12)


def test_a_recurrence_that_is_written_out():
    program = PROGRAMS["thomas"]
    given = program.make(program.small)
    weights = np.arange(1.0, given[3].shape[0] + 1)

    def along(x):
        return np.sum(program.function(given[0], x, *given[2:]) * weights)

    with tm.config.using(tier="numpy"):
        expected = tm.grad(along)(given[1])
    with tm.config.using(tier="numba"):
        np.testing.assert_allclose(tm.grad(along)(given[1]), expected, rtol=1e-9)
