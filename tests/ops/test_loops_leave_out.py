"""Elements that the iterations of a loop leave out have the slope 0, also where that of what they follow from is infinite."""

import numpy as np
import pytest

import tensormagic as tm

X = np.array([0.0, 1.0, 4.0])


def elements(x):
    y = np.log(x)
    total = 0.0
    for i in range(1, 3):
        total = total + y[i] * 2
    return total


def stores(x):
    y = np.sqrt(x)
    found = np.zeros(3)
    for i in range(1, 3):
        found[i] = y[i] * i
    return found.sum()


def slices(x):
    y = np.sqrt(x) * 3
    total = 0.0
    for i in range(2):
        total = total + (y[i + 1 :] ** 2).sum() + y[-1]
    return total


def nested(x):
    y = 1 / x
    total = 0.0
    for i in range(1, 3):
        for j in range(2):
            total = total + y[i] * j
    return total


def both(x):
    y = np.sqrt(x)
    total = 0.0
    for i in range(3):
        if i > 0:
            total = total + y.sum() * 0 + y[i]
    return total


def whole(x):
    y = np.sqrt(x)
    total = 0.0
    for i in range(3):
        if i > 0:
            total = total + y.sum() + y[i]
    return total


EXPECTED = {
    elements: [0, 2, 0.5],
    stores: [0, 0.5, 0.5],
    slices: [0, 9, 2 * 9 + 2 * 0.75],
    nested: [0, -1, -1 / 16],
    both: [0, 0.5, 0.25],
}


@pytest.mark.parametrize("function", EXPECTED, ids=lambda f: f.__name__)
def test_slopes(function, tier):
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(tm.grad(function)(X), EXPECTED[function], rtol=1e-14)


def test_second_derivatives():
    with tm.config.using(tier="numpy"):
        tm.check_grads(elements, (X + 0.3,), order=2)


def test_what_is_read_is_not_left_out():
    with tm.config.using(tier="numpy"), np.errstate(all="ignore"):
        assert tm.grad(whole)(X)[0] == np.inf


def test_nothing_is_noted_where_slopes_are_finite():
    def function(x):
        y = np.sin(x)
        total = 0.0
        for i in range(1, 3):
            total = total + y[i]
        return total

    for steep, program in ((False, function), (True, elements)):
        graph = tm.grad(program).graph(X)
        noted = [t for n in graph.nodes if n.op.name == "loop" for t in n.types if t.dtype == bool]
        assert bool(noted) is steep
