"""What functions do in Python's own words: orders by keys, functions as values, tables of several kinds, integers without an end."""

import warnings

import numpy as np
import pandas as pd
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, ConstantGradientWarning

pytestmark = pytest.mark.usefixtures("by_numpy")
X = np.array([3.0, -1.0, 2.0, -1.0, 0.5])
TABLE = {np.mean: 2.0, np.sum: 3.0}
HELD = {"h": np.zeros(3)}
STATE = np.zeros(3)


class Model:
    def __init__(self):
        self.w = np.ones(3)


def by_index(x):
    HELD["h"][1:] = np.tanh(x)[1:]
    return (HELD["h"] ** 2).sum()


def by_operator(x, model):
    model.w -= 0.5 * x
    return (model.w * x).sum()


def by_name(x):
    STATE[:] = x * 2
    return (STATE**2).sum()


def through_a_helper(x):
    return by_name(x) + x[0]


ORDERS = {
    "sorted": lambda x: sorted(x),
    "by a key, backwards": lambda x: sorted(x, key=abs, reverse=True),
    "of pairs": lambda x: [i for _, i in sorted(zip(x, range(5), strict=True))],
    "of indices": lambda x: sorted(range(5), key=lambda i: (i % 2, -x[i])),
    "in place": lambda x: (rows := list(x), rows.sort(key=lambda v: -v), rows)[2],
    "the least by a key": lambda x: min(x, key=lambda v: (v - 1) ** 2),
    "the index of the largest": lambda x: max(range(len(x)), key=x.__getitem__),
    "the largest of pairs": lambda x: max(enumerate(x), key=lambda p: p[1])[0],
    "a default": lambda x: max([], key=abs, default=x[0]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_are_pythons(name):
    expected, found = ORDERS[name](X), tm.tensor(ORDERS[name])(X)
    assert repr(found) == repr(expected)


@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_slopes_go_through_orders_and_nan_has_none():
    np.testing.assert_array_equal(
        tm.grad(lambda x: sum(a * b for a, b in zip(sorted(x), range(5), strict=True)))(X), [4, 0, 3, 1, 2]
    )
    with pytest.raises(CaptureError, match="finds a nan"):
        tm.grad(lambda x: sorted(x)[1])(np.array([1.0, np.nan, 0.0]))
    assert repr(tm.tensor(lambda x: sorted(x))(np.array([1.0, np.nan, 0.0]))) == repr(
        sorted(np.array([1.0, np.nan, 0.0]))
    )


def test_functions_of_numpy_are_themselves():
    assert tm.tensor(lambda x, f=np.mean: x.sum() * TABLE[f] * (f is np.mean) * (np.sum in TABLE))(X) == 7.0
    assert tm.tensor(lambda x: x.sum() * list(TABLE).index(np.sum))(X) == 3.5


def test_a_table_has_columns_of_their_own_kinds():
    table = pd.DataFrame({"a": [1.0, 2.0], "n": [3, 4], "s": ["u", "v"], "g": [1.0, np.nan]})
    assert tm.grad(lambda w, d: (d["a"] * w - d.n)[d.a > 1].sum() * len(d))(1.5, table) == 4.0
    np.testing.assert_array_equal(tm.tensor(lambda d: d[["a", "n"]].to_numpy())(table), table[["a", "n"]].to_numpy())
    for wrong in (lambda d: d["s"].sum(), lambda d: d["g"].sum(), lambda d: d.mean(), lambda d: d + 1):
        with pytest.raises(tm.TensorError, match=r"several kinds|differ in kind"):
            tm.tensor(wrong).graph(table)


TRANSFORMS = {
    "grad": lambda f: tm.grad(f)(X[:3]),
    "value and grad": lambda f: tm.value_and_grad(f)(X[:3])[1],
    "checkpoint": lambda f: tm.grad(tm.checkpoint(f))(X[:3]),
    "vjp": lambda f: tm.vjp(f, X[:3])[1](1.0)[0],
    "vjp, again": lambda f: (pull := tm.vjp(f, X[:3])[1], pull(1.0), pull(1.0))[2][0],
    "jvp": lambda f: np.array([tm.jvp(f, (X[:3],), (e,))[1] for e in np.eye(3)[:1]]),
    "linearize": lambda f: (along := tm.linearize(f, X[:3])[1], np.array([along(e) for e in np.eye(3)]))[1],
}
STORING = {
    "by index": (by_index, lambda: HELD["h"], lambda x: np.r_[0, 2 * np.tanh(x[1:]) / np.cosh(x[1:]) ** 2]),
    "by name": (by_name, lambda: STATE, lambda x: 8 * x),
    "through a helper": (through_a_helper, lambda: STATE, lambda x: 8 * x + [1, 0, 0]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_stores_reach_arrays_through_every_transform(name):
    for told, (function, held, slope) in STORING.items():
        held()[:] = 0
        found = TRANSFORMS[name](function)
        np.testing.assert_allclose(found, slope(X[:3])[: len(found)], rtol=1e-14, err_msg=told)
        stored = held().copy()
        held()[:] = 0
        function(X[:3])
        np.testing.assert_allclose(stored, held(), rtol=1e-15, err_msg=told)


def test_a_map_is_that_of_the_values_as_they_were():
    model = Model()
    value, pull = tm.vjp(lambda x: by_operator(x, model), X[:3])
    model.w += 1
    assert value == (X[:3] * (1 - 0.5 * X[:3])).sum()
    np.testing.assert_allclose(pull(1.0)[0], 1 - X[:3], rtol=1e-15)
    np.testing.assert_array_equal(model.w, 2 - 0.5 * X[:3])


def test_two_runs_that_differ_are_no_value_and_its_derivative():
    rng = np.random.default_rng(0)

    def drawn(x):
        STATE[:] = rng.normal(size=3) * x
        return STATE.sum()

    with pytest.raises(CaptureError, match="come from two different runs"):
        tm.vjp(drawn, X[:3])


def test_stores_by_name_of_functions_on_lazy_values_and_in_cells():
    STATE[:] = 0
    assert float(tm.tensor(by_name)(tm.tensor(X[:3]))) == 56.0
    np.testing.assert_array_equal(STATE, 2 * X[:3])


def test_numbers_that_numpy_takes_are_told():
    x = tm.tensor(X)
    taken = np.array([x[0] * 2, x[1]])
    with pytest.warns(ConstantGradientWarning, match="leaves that out"):
        (taken * x[:2]).sum().grad(x)
    with warnings.catch_warnings(action="error"):
        np.testing.assert_array_equal((np.stack([x[0] * 2, x[1]]) * x[:2]).sum().grad(x), [12, -2, 0, 0, 0])


def test_an_expression_that_is_written_out_again_is_told():
    a, b = tm.tensor(2.0), tm.tensor(3.0)
    u = a * b
    with pytest.warns(UserWarning, match="counts both"):
        (u * (a * b)).grad(u)


def fibonacci(x):
    a, b = 0, 1
    for _ in range(int(x[0])):
        a, b = b, a + b
    return a


def power(x):
    base, left, result = int(x[0]), int(x[1]), 1
    while left > 0:
        if left % 2:
            result = result * base % int(x[2])
        base, left = base * base % int(x[2]), left // 2
    return result


def test_integers_of_data_need_no_end(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numba")

    def all_of_them(x):
        return fibonacci(x[:1]), power(x[1:4]), int(x[4]) * int(x[5]) + abs(int(x[6])), -int(x[6])

    given = np.array([100, 123456789, 1000, 10**12 + 39, 2**32, 2**33, -(2**63)])
    assert tm.tensor(all_of_them)(given) == all_of_them(given)
