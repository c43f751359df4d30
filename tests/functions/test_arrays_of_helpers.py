"""Arrays that functions called by a captured function read: inputs of its program, whatever their size."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.calls.function import Function

pytestmark = pytest.mark.usefixtures("by_numpy")
RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 4))
Y = RNG.normal(size=300)
UNREAD = RNG.normal(size=1000)
SCALE = 2.0


def cost(w):
    return np.mean((X @ w - Y) ** 2) * SCALE


def deeper(w):
    return cost(w) + cost(2 * w)


def chosen(w, other=False):
    return np.sum(UNREAD) * w[0] if other else w @ w


def row(k):
    return X[k] @ X[k]


def made() -> Callable[[Any], Any]:
    held = X.copy()

    def inner(w):
        return np.sum(np.exp(held @ w))

    return inner


INNER = made()

FUNCTIONS = {
    "a helper": lambda w: cost(w) * 2,
    "a helper's helper": lambda w: deeper(w) / 2,
    "in a comprehension": lambda w: sum([cost(w * k) for k in range(3)]),
    "in a loop": lambda w: functools.reduce(lambda s, k: s + cost(w * k), range(3), 0.0),
    "a closure's": lambda w: INNER(w) + 1,
    "by map": lambda w: sum(map(row, range(3))) + w @ w,
    "not read by this branch": lambda w: chosen(w) * 2,
    "as an argument": lambda w: np.sum(np.apply_along_axis(np.sum, 0, X)) * cost(w),
}


def counted(patch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    before = Function.specialise

    def specialise(self, *args, **options):
        made.append(args)
        return before(self, *args, **options)

    patch.setattr(Function, "specialise", specialise)
    return made


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_is_captured_once_and_follows_the_arrays(name: str, monkeypatch: pytest.MonkeyPatch):
    own = FUNCTIONS[name]
    f, captures = tm.value_and_grad(own), counted(monkeypatch)
    w = np.linspace(-0.5, 0.5, 4)

    def check():
        value, slope = f(w)
        np.testing.assert_allclose(value, own(w), rtol=1e-12)
        for k in range(4):
            step = 1e-6 * np.eye(4)[k]
            np.testing.assert_allclose(slope[k], (own(w + step) - own(w - step)) / 2e-6, rtol=1e-5, atol=1e-7)

    for _ in range(4):
        check()
    assert len(captures) == 1
    kept = X[0].copy()
    try:
        X[0] *= 3
        check()
        monkeypatch.setitem(globals(), "X", X * 2)
        check()
        monkeypatch.setitem(globals(), "SCALE", 5.0)
        check()
        monkeypatch.setitem(globals(), "UNREAD", UNREAD + 1)
        check()
        assert len(captures) <= 2  # again at most for what the branch did not read
        monkeypatch.setitem(globals(), "X", X.astype("f4"))
        value, _ = f(w)
        np.testing.assert_allclose(value, own(w), rtol=1e-5)
    finally:
        monkeypatch.undo()
        X[0] = kept


def test_a_store_by_a_helper_is_there_after_the_call():
    space: dict[str, Any] = {"np": np}
    exec(
        "a = np.zeros(400)\ndef put(w):\n    a[:4] += w\n    return np.sum(a)\ndef f(w):\n    return put(w) * 2\n",
        space,
    )
    g = tm.value_and_grad(space["f"])
    for k in range(3):
        try:
            value, _ = g(np.ones(4))
        except tm.CaptureError:
            assert not space["a"].any()
            return
        assert value == 8.0 * (k + 1)
        assert space["a"].sum() == 4.0 * (k + 1)
