"""Truth values that are known are folded, by operators, comparisons and extremes as by NumPy's logic, and arrays of equal ones are one."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.transform.rewriting import rewrite

X, Y, B = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0]), np.array([True, False, True])
ONES = np.array([True, True, True])
GONE = {
    "and True": lambda x, y, b: b & True,
    "and False": lambda x, y, b: b & False,
    "or False": lambda x, y, b: b | False,
    "or True": lambda x, y, b: b | True,
    "xor False": lambda x, y, b: b ^ False,
    "of arrays": lambda x, y, b: b & np.array([True, True, True]),
    "equal to True": lambda x, y, b: b == True,  # noqa: E712
    "unequal to False": lambda x, y, b: b != False,  # noqa: E712
    "largest": lambda x, y, b: np.maximum(b, False),
    "least": lambda x, y, b: np.minimum(True, b),
    "twice not": lambda x, y, b: ~~b,
    "and itself": lambda x, y, b: b & b,
    "unlike itself": lambda x, y, b: b ^ b,
    "a mask of the text": lambda x, y, b: np.where(np.array([True, True, True]), x, y),
    "a mask that was read": lambda x, y, b: np.where(ONES, x, y),
    "a comparison of the text": lambda x, y, b: np.where(np.greater(2, 1), x, y),
    "all of a mask": lambda x, y, b: np.where(np.all(np.array([True, True])), x, y),
}
NOT = {
    "xor True": lambda x, y, b: b ^ True,
    "equal to False": lambda x, y, b: b == False,  # noqa: E712
    "logical xor": lambda x, y, b: np.logical_xor(b, True),
}


def ops(f):
    return [n.op.name for n in rewrite(tm.trace(f, X, Y, B), "exact").graph.nodes if n.op.kind != "leaf"]


def same(f):
    for g in (tm.tensor(f), tm.compile(f, X, Y, B)):
        found, expected = g(X, Y, B), f(X, Y, B)
        np.testing.assert_array_equal(found, expected)
        assert np.asarray(found).dtype == expected.dtype


@pytest.mark.parametrize("name", GONE)
def test_nothing_is_computed(name):
    if name != "a mask that was read":
        assert not set(ops(GONE[name])) - {"broadcast"}
    same(GONE[name])


@pytest.mark.parametrize("name", NOT)
def test_one_operation_is_left(name):
    assert ops(NOT[name]) == ["logical_not"]
    same(NOT[name])


def test_masks_of_both_values_and_operands_of_other_types_stay():
    same(lambda x, y, b: np.where(np.array([True, False, True]), x, y))
    same(lambda x, y, b: b & 3)
    same(lambda x, y, b: b.reshape(3, 1) & np.array([[True, True]]))
    same(lambda x, y, b: (x > 0.15) ^ True)


def test_branches_and_loops_and_gradients():
    @tm.tensor
    def f(x, b, times):
        found = x * 0
        for _ in range(times):
            found = found + np.where(b & True, x * x, 2 * x)
        return found if times > 2 else -found

    np.testing.assert_allclose(f(X, B, 3), 3 * np.where(B, X * X, 2 * X))
    np.testing.assert_allclose(tm.grad(lambda x: np.sum(f(x, B, 3)))(X), 3 * np.where(B, 2 * X, 2))
