"""``tm.tensor`` with options: arguments that are looked up, a level of rewriting, a dtype; containers stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.usefixtures("by_numpy")


def test_missing_arguments_are_looked_up_at_each_call() -> None:
    names = {"X": np.eye(3)[:, :2], "y": np.ones(3), "w": np.zeros(2)}

    @tm.tensor(missing=names)
    def loss(X, w, y):
        return np.sum((X @ w - y) ** 2)

    assert loss() == 3.0
    assert loss(w=np.ones(2)) == 1.0
    assert loss(2 * names["X"], np.ones(2)) == 3.0
    names["y"] = np.zeros(3)
    assert loss() == 0.0
    value, slope = tm.value_and_grad(loss, "w")(w=np.ones(2))
    assert value == 2.0
    assert slope.tolist() == [2.0, 2.0]
    assert tm.grad(lambda a: loss(w=a))(np.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="multiple values"):
        loss(names["X"], X=names["X"])
    del names["y"]
    with pytest.raises(TypeError, match="y"):
        loss()


def test_a_level_and_a_dtype_of_its_own() -> None:
    x = np.array([1e-17, 1.0])
    exact = tm.tensor(math="exact")(lambda x: np.log(1 + x))
    stable = tm.tensor(math="stable")(lambda x: np.log(1 + x))
    assert exact(x)[0] == 0.0
    assert stable(x)[0] == pytest.approx(1e-17)
    narrow = tm.tensor(dtype="float32")(lambda x, n: x * n)
    assert narrow(x, 2).dtype == np.float32
    assert type(narrow(1.5, 2)) is float


@pytest.mark.parametrize("given", [[1.0, 2.0], {"a": 1.0}])
def test_a_container_that_a_function_changes_is_the_callers(given) -> None:
    def change(held, x):
        held[next(iter(held)) if isinstance(held, dict) else 0] = x * 2
        return held

    expected = change(given.copy(), 3.0)
    assert tm.tensor(change)(given, 3.0) is given
    assert given == expected
