"""Folds that a number says are of nothing: their elements are not read, and what reads the folds gets what NumPy gives."""

import numpy as np
import pytest

import tensormagic as tm

FOLDS = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "any": False, "all": True}
SHAPES = {
    "one axis": ((7,), (None, 0)),
    "two axes": ((3, 40), (None, 0, 1, (0, 1))),
    "three axes": ((3, 4, 5), (1, (0, 2))),
}


pytestmark = pytest.mark.usefixtures("by_numba")


def leave_garbage() -> None:
    """Have NumPy free memory that holds no zeros: small arrays get it again."""
    junk = [np.full(size, 7.0) for size in ((), 3, 4, 7, 40, (3, 5)) for _ in range(6)]
    del junk


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("holds", [True, False])
def test_folds_of_nothing_along_axes(fold: str, shape: str, holds: bool):
    sizes, several = SHAPES[shape]
    x = np.random.default_rng(1).normal(size=sizes)
    for axis in several:

        def f(c, x, axis=axis):
            y = x > 0 if fold in {"any", "all"} else 2 * x
            found = getattr(np, fold)(np.where(c, FOLDS[fold], y) if holds else np.where(c, y, FOLDS[fold]), axis=axis)
            return found, found + 1.0, np.where(c, 3.0, found)

        captured = tm.tensor(f)
        for c in (np.array(True), np.array(False)):
            leave_garbage()
            for one, expected in zip(captured(c, x), f(c, x), strict=True):
                np.testing.assert_allclose(one, expected, rtol=1e-13, atol=1e-13)  # sums of 40 numbers


CONDS = {
    "a sum of what is given": (lambda v: np.sin(v), lambda v, x: v * x.sum()),
    "both": (lambda v: v * v, lambda v, x: v + x.mean()),
    "a product": (lambda v: np.cos(v), lambda v, x: np.outer(v, x).sum(0)),
    "two values": (lambda v: v, lambda v, x: v * x[0] + x[1]),
}


@pytest.mark.parametrize("name", CONDS)
@pytest.mark.parametrize("sign", [1, -1])
def test_jacobians_of_branches_that_read_what_is_outside(name: str, sign: int):
    first, second = CONDS[name]
    x = sign * np.array([0.1, 0.5, 0.3])

    def f(x):
        return tm.cond(x.sum() > 0, first, lambda v: second(v, x), x)

    def plain(x):
        return first(x) if x.sum() > 0 else second(x, x)

    expected = np.stack([(plain(x + 1e-20j * e)).imag / 1e-20 for e in np.eye(3)], axis=1)
    for derivative in (tm.jacobian(f), tm.tensor(lambda v: tm.jacobian(f)(v))):
        leave_garbage()
        np.testing.assert_allclose(derivative(x), expected, rtol=1e-13, atol=1e-15)
