"""Numbers and arrays that objects hold, with another value at each call: inputs of one trace, where that is right."""

from __future__ import annotations

import types
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.calls import specialised

pytestmark = pytest.mark.usefixtures("by_numpy")
X = np.array([0.5, 1.0, -2.0])
RATES = [0.5, 0.25, 0.75, 0.125, 0.6, -0.0]


class Plain:
    """Holds anything."""

    fixed = 0.5

    def __init__(self, v: Any = 0.5) -> None:
        self.v = v

    @property
    def twice(self) -> Any:
        """What Python runs as it is written."""
        return self.v * 2.0

    @property
    def kind(self) -> float:
        """Asks for a type, and then for a value."""
        return 5.0 if isinstance(self.v, float) and self.v > 0.55 else 6.0

    def step(self, x: Any) -> Any:
        """A method."""
        return x - self.v * x


class Slots:
    """Holds one thing."""

    __slots__ = ("v",)


@dataclass
class Data:
    """The same."""

    v: Any


P, S, N, D, C, L, Q = Plain(), Slots(), types.SimpleNamespace(v=0.5), Data(0.5), {"v": 0.5}, [1, 0.5], deque([0.5])
S.v = 0.5
P.inner = {"a": [Plain()]}
MODULE = types.ModuleType("rates")
exec("v = 0.5\ndef h(x): return x * v", MODULE.__dict__)


def put(holder: Any, key: Any, value: Any) -> None:
    """Have a holder hold a value."""
    if isinstance(holder, dict | list | deque):
        holder[key] = value
    else:
        setattr(holder, key, value)


@pytest.fixture
def traces(monkeypatch):
    """How often anything is traced."""
    count = []
    real = specialised.trace

    def counted(*args: Any, **options: Any) -> Any:
        count.append(args)
        return real(*args, **options)

    monkeypatch.setattr(specialised, "trace", counted)
    return count


PLACES = {
    "attribute": (lambda x: x * P.v, P, "v"),
    "nested": (lambda x: P.inner["a"][0].step(x), P.inner["a"][0], "v"),
    "slots": (lambda x: x * S.v, S, "v"),
    "namespace": (lambda x: x * N.v, N, "v"),
    "dataclass": (lambda x: x * D.v, D, "v"),
    "dictionary": (lambda x: x * C["v"], C, "v"),
    "list": (lambda x: x * L[1], L, 1),
    "deque": (lambda x: x * Q[0], Q, 0),
    "module": (lambda x: MODULE.h(x), MODULE, "v"),
    "class": (lambda x: x * Plain.fixed, Plain, "fixed"),
    "property": (lambda x: x * P.twice, P, "v"),
    "branch": (lambda x: x * (2.0 if P.v > 0.3 else P.v), P, "v"),
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_another_value_is_no_other_trace(name, kind, traces):
    f, holder, key = PLACES[name]
    captured, slope = tm.tensor(f), tm.grad(lambda x: np.sum(f(x)))
    for rate in RATES:
        put(holder, key, kind(rate))
        np.testing.assert_array_equal(captured(X), f(X))
        np.testing.assert_array_equal(slope(X), f(np.ones(3)))
    assert len(traces) <= 6  # of each: with a constant, with another, with an input
    put(holder, key, 2)
    np.testing.assert_array_equal(captured(X), f(X))
    put(holder, key, kind(0.5))
    np.testing.assert_array_equal(captured(X), f(X))


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x * float(f"{P.v:.3f}"),
        lambda x: x * np.zeros(int(abs(P.v) * 8)).size,
        lambda x: x * {0.5: 1.0, 0.25: 2.0}.get(P.v, 3.0),
        lambda x: x * P.kind,
        lambda x: x * (P.v in (0.5, 0.75)),
        lambda x: x * sum(range(int(P.v * 8))),
    ],
)
def test_what_needs_its_value_stays_a_constant(use):
    captured = tm.tensor(use)
    for rate in [*RATES, 0.55]:
        P.v = rate
        np.testing.assert_array_equal(captured(X), use(X))


def test_an_argument_and_its_stores(traces):
    class Layer:
        def __init__(self) -> None:
            self.w, self.b, self.rate = np.ones((3, 2)), np.zeros(2), 0.5

        def loss(self, x: Any) -> Any:
            return ((x @ self.w + self.b) ** 2).sum()

        def step(self, x: Any) -> Any:
            out = x @ self.w + self.b
            self.w -= self.rate * np.outer(x, out)
            self.b -= self.rate * out
            return out

    ours, theirs = Layer(), Layer()
    step, loss = tm.tensor(lambda layer, x: layer.step(x)), tm.grad(lambda x, layer: layer.loss(x))
    for rate in (0.1, 0.05, 0.02, 0.01, 0.005):
        ours.rate = theirs.rate = rate
        np.testing.assert_allclose(step(ours, X), theirs.step(X), rtol=1e-12)
        np.testing.assert_allclose(ours.w, theirs.w, rtol=1e-12)
        np.testing.assert_allclose(loss(X, ours), 2 * theirs.w @ (X @ theirs.w + theirs.b), rtol=1e-12)
    before = len(traces)
    ours.w, theirs.w = ours.w * 2.0, theirs.w * 2.0  # another array
    ours.rate = theirs.rate = 0.001
    np.testing.assert_allclose(loss(X, ours), 2 * theirs.w @ (X @ theirs.w + theirs.b), rtol=1e-12)
    np.testing.assert_allclose(step(ours, X), theirs.step(X), rtol=1e-12)
    assert len(traces) - before <= 2
    other = Layer()
    np.testing.assert_allclose(step(other, X), Layer().step(X), rtol=1e-12)


def test_arrays_of_objects_are_inputs_from_the_second_trace(traces):
    model = types.SimpleNamespace(w=np.ones((40, 40)), pair=(np.ones(3),))
    forward, fixed = tm.tensor(lambda x: np.tanh(x @ model.w)), tm.tensor(lambda x: x * model.pair[0])
    x = np.ones(40)
    for k in range(6):
        model.w = np.full((40, 40), 0.01 * k)
        model.w[0] += 1.0
        np.testing.assert_allclose(forward(x), np.tanh(x @ model.w), rtol=1e-13)
        np.testing.assert_array_equal(fixed(X), X * model.pair[0])
    assert len(traces) <= 5
    model.pair[0][1] = 7.0
    np.testing.assert_array_equal(fixed(X), X * model.pair[0])


def test_one_array_in_two_places():
    model = types.SimpleNamespace(a=np.ones(3), b=None)
    model.b = model.a
    captured = tm.tensor(lambda x: x * model.a + model.b)
    for k in range(5):
        model.a = np.full(3, float(k))
        if k < 3:
            model.b = model.a
        np.testing.assert_array_equal(captured(X), X * model.a + model.b)


@pytest.mark.parametrize(
    "make", [lambda f, x: tm.vjp(f, x)[1](np.ones(3))[0], lambda f, x: tm.linearize(f, x)[1](np.ones(3))]
)
def test_maps(make, traces):
    f = lambda x: np.sin(x) * P.v  # noqa: E731
    for rate in RATES:
        P.v = rate
        np.testing.assert_allclose(make(f, X), np.cos(X) * rate, rtol=1e-13)
    assert len(traces) <= 12
