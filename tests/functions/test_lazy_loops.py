"""Lazy values that are computed from themselves over and over: constant time, values that nobody has let go, gradients all the same."""

import gc
import weakref

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tensormagic.capture.values import live_values
from tensormagic.ir.node import topological

pytestmark = pytest.mark.usefixtures("by_numpy")


@pytest.fixture
def eager_search(monkeypatch):
    """It is looked for values that nobody has at each demand, however small they are."""
    monkeypatch.setattr(live_values, "SEARCH_BYTES", 0)
    monkeypatch.setattr(live_values, "LARGE", 8)


def loss(w):
    return ((w - 3.0) ** 2).sum()


slope = tm.grad(loss)
height = tm.tensor(loss)
X = np.arange(5.0)


def test_where_only_a_number_is_asked_for_each_iteration_starts_from_a_value(run_sizes):
    w, expected, found = tm.tensor(X), X, []
    for _ in range(70):
        w = w - 0.01 * slope(w)
        expected = expected - 0.02 * (expected - 3)
        found.append(float(height(w)))
    assert max(run_sizes) < 2 * live_values.LONG
    assert len(set(run_sizes[-30:])) < 25  # the same few graphs over and over
    assert found[-1] == pytest.approx(((expected - 3) ** 2).sum(), rel=1e-12)
    np.testing.assert_allclose(w, expected, rtol=1e-12)


def test_values_that_nobody_has_are_let_go(eager_search):
    w, chain = tm.tensor(X), []
    for _ in range(30):
        w = w - 0.01 * slope(w)
        w.numpy()
        chain.append(w.node)
    gc.collect()
    (w * 1.0).numpy()
    assert [session.is_computed(n) for n in chain] == [False] * 29 + [True]


def test_what_somebody_has_or_waits_for_is_kept(eager_search):
    w, held, waiting = tm.tensor(X), [], []
    for k in range(12):
        w = w * 1.5
        w.numpy()
        if k == 4:
            held.append(w)
        if k == 7:
            waiting.append((w.node, w + 1.0))
    (w * 1.0).numpy()
    assert session.is_computed(held[0].node)
    assert session.is_computed(waiting[0][0])
    np.testing.assert_allclose(waiting[0][1], X * 1.5**8 + 1.0, rtol=1e-14)


def test_a_leaf_whose_value_was_let_go_is_computed_again(eager_search):
    w = tm.tensor(X) * 2.0
    w.numpy()
    closed = session.close_over([(w + 1.0).node])
    (leaf,) = closed.leaves
    assert session.is_computed(leaf)
    del w
    gc.collect()
    (tm.tensor(X + 1.0) * 3.0).numpy()
    assert not session.is_computed(leaf)
    np.testing.assert_array_equal(session.value_of(leaf), X * 2.0)


def test_calls_keep_no_array_alive():
    def run():
        data = np.arange(7.0)

        def total(x):
            def scaled(v):
                return v * data

            return scaled(x + data).sum() + data.sum()

        lazy = tm.tensor(np.zeros(7)) + 0.0
        result = tm.tensor(total)(lazy)
        needed = topological([result.node])
        assert float(result) == 91.0 + 21.0
        return [weakref.ref(t) for t in live_values.held() if t.node in needed]

    seen = run()
    gc.collect()
    assert len(seen) >= 2
    assert [r() for r in seen] == [None] * len(seen)
