"""Values that are there already: code that works with a rounding gets the same one, whatever was computed before."""

import itertools

import numpy as np
import pytest

import tensormagic as tm

X = np.array([1e-18, 3e-17, 1e-16, 3e-9, 1e-12, 0.25, -1e-12, 0.7, -3e-16])
STEPS = {
    "log1p": ("u = 1 + x", "l = np.log(u)", "d = u - 1", "y = np.where(d == 0, x, x * l / d)"),
    "log1p in parts": ("u = x + 1", "d = -(1 - u[:])", "l = np.log(u[:, None])[:, 0]", "q = x / d", "y = np.where(u == 1, x, l * q)"),
    "expm1": ("u = np.exp(x)", "l = np.log(u)", "d = u - 1", "q = x / l", "y = np.where(u == 1, x, d * q)"),
    "expm1 by a reciprocal": ("u = 1 / np.exp(-x)", "d = u - 1", "l = np.log(u[:])", "y = np.where(u == 1, x, d * x / l)"),
}  # fmt: skip
TRUE = {"log1p": np.log1p, "expm1": np.expm1}
ORDERS = [(), *itertools.permutations("ldu", 1), *itertools.permutations("ldu", 2), *itertools.permutations("ldu", 3)]


def run(name, demanded, *, late):
    """The value of ``y``, after some of the names before it were computed: each in its turn, or all before the last line."""
    space = {"np": np, "x": tm.tensor(X)}
    for line in STEPS[name]:
        bound = line[0]
        for other in demanded if late and bound == "y" else ():
            space[other].numpy()
        exec(line, space)
        if not late and bound in demanded:
            space[bound].numpy()
    return space["y"].numpy()


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("late", [False, True])
def test_the_order_of_demands_decides_no_digits(name, late):
    with np.errstate(all="ignore"):
        for demanded in ORDERS:
            np.testing.assert_allclose(
                run(name, demanded, late=late), TRUE[name.split()[0]](X), rtol=1e-15, err_msg=str(demanded)
            )


def test_other_values_are_used():
    """A value that disagrees with nothing is where the graph is cut."""
    from tensormagic import session

    x = tm.tensor(X)
    accurate, other = np.log(1 + x), np.cos(x) * 3
    accurate.numpy(), other.numpy()
    closed = session.close_over([(accurate * other).node])
    assert set(closed.leaves) == {accurate.node, other.node}
