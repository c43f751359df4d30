"""Results of compiled functions in arrays that are given: nothing is allocated, memory may be shared, and refusals are NumPy's."""

import tracemalloc

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.running.buffers import pool

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(30, 4)), RNG.normal(size=(4, 5))


def several(x, w):
    return np.exp(x) * 2, x @ w, x.sum(0), x.T, np.cumsum(x, 0), x, x.max(), np.linalg.inv(w[:, :4])


@pytest.fixture(scope="module", params=["numpy", "numba"])
def function(request):
    before, tm.config.tier = tm.config.tier, request.param
    yield tm.compile(several, "float64[n, 4]", "float64[4, 5]")
    tm.config.tier = before


def test_every_kind_of_result(function):
    expected = several(X, W)
    arrays = tuple(np.full_like(v, 7.0) for v in expected)
    found = function(X, W, out=arrays)
    for ours, array, value in zip(found, arrays, expected, strict=True):
        assert ours is array
        np.testing.assert_allclose(ours, value, rtol=1e-13, atol=1e-14)
    some = (None, arrays[1], *[None] * 6)
    assert function(X * 2, W, out=some)[1] is arrays[1]
    np.testing.assert_allclose(arrays[1], 2 * X @ W, rtol=1e-13, atol=1e-14)


def test_other_layouts_dtypes_and_shared_memory_are_as_if_apart(function):
    expected = several(X, W)
    turned, wider = np.empty((5, 30)).T, np.empty((30, 4), np.complex128)
    found = function(X, W, out=(wider, turned, *[None] * 6))
    assert (found[0] is wider, found[1] is turned) == (True, True)
    np.testing.assert_allclose(wider, expected[0])
    np.testing.assert_allclose(turned, expected[1])
    own = X.copy()
    function(own, W, out=(own, None, None, None, own.copy(), *[None] * 3))
    np.testing.assert_allclose(own, expected[0])
    room = np.zeros((31, 4))
    room[:30] = X
    function(room[:30], W, out=(None, None, None, None, room[1:], *[None] * 3))
    np.testing.assert_allclose(room[1:], expected[4], atol=1e-14)


def said(call):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    return caught.value


def test_refusals_are_numpys():
    f = tm.compile(lambda x: x + 1.5, "float64[n]")
    x, fixed = np.ones(4), np.ones(4)
    fixed.flags.writeable = False
    for out in (np.ones(1), fixed, [1.0, 2.0, 3.0, 4.0], (np.ones(4), np.ones(4))):
        ours, theirs = said(lambda out=out: f(x, out=out)), said(lambda out=out: np.add(x, 1.5, out=out))
        assert type(theirs) in type(ours).__mro__
        assert str(ours).partition(": ")[0] == str(theirs), (ours, theirs)
    for out in (np.ones(3), np.ones((4, 1))):
        assert isinstance(said(lambda out=out: f(x, out=out)), ValueError)
    assert str(said(lambda: f(x, out=np.ones(4, int)))) == str(said(lambda: np.copyto(np.ones(4, int), x)))
    with pytest.raises(tm.GuardError, match="float32"):
        f(x.astype("f4"), out=x)
    np.testing.assert_array_equal(x, np.ones(4))


def test_d3_nothing_is_allocated_in_a_loop_of_calls(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numba")
    f = tm.compile(lambda x, w: (np.exp(x) - x, x[:1000].reshape(100, 10) @ w, x.sum()), "float64[n]", "float64[10, m]")
    x, w = np.linspace(0, 1, 100_000), np.ones((10, 900))
    out = np.empty_like(x), np.empty((100, 900)), np.empty(())
    f(x, w, out=out)
    g = tm.compile(lambda x: np.exp(x) - x, "float64[n]")
    g(x, out=out[0])
    tracemalloc.start()
    try:
        for _ in range(5):
            f(x, w, out=out)
            assert g(x, out=out[0]) is out[0]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200_000, "where two results have 800,000 and 720,000 bytes, and other threads are counted, too"
    np.testing.assert_allclose(out[0], np.exp(x) - x, rtol=1e-14)
    np.testing.assert_allclose(out[1], x[:1000].reshape(100, 10) @ w, rtol=1e-14)


def test_b43_the_most_bytes_at_once_are_known_before_a_run(monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numba")
    f = tm.compile(lambda x: np.cumsum(x)[::-1] @ np.sin(np.cumsum(x * 2)) + np.cumsum(x), "float64[n]")
    x = np.linspace(0, 1, 100_000)
    known = f.memory(x)
    f(x)
    pool.clear()  # what is at hand would not be counted
    tracemalloc.start()
    try:
        f(x)
        measured = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert int(known.results) == 800_000
    assert int(known.peak) == pytest.approx(measured, rel=0.1)
    assert "n" in str(f.memory.peak)
