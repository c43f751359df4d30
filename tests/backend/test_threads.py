"""Loops that threads share: the same bits for any number of threads, errors, interrupts, calls from several threads."""

from __future__ import annotations

import _thread
import ctypes
import threading
import time
import warnings

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.cpu.by_numba import lowered_by_numba
from tensormagic.backend.printing import kernel_source
from tensormagic.backend.running import threads
from tensormagic.backend.running.threads import ALONE, team

ACTIVE, JOINED, LOOPS_SHARED = (
    5,
    6,
    12,
)  # words of a pool: threads at work, those in the last loop, loops that were shared
rng = np.random.default_rng(11)
COUNTS = (1, 2, 3, 16)

needs_threads = pytest.mark.skipif(not threads.available(), reason="no threads that share loops here")
pytestmark = needs_threads


pytestmark = pytest.mark.usefixtures("on_two_threads")


def standardized(x):
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def cross_entropy(x, labels):
    top = x.max(axis=1)
    return np.mean(np.log(np.sum(np.exp(x - top[:, None]), axis=1)) + top - x[np.arange(len(labels)), labels])


def heat(u):
    new = u.copy()
    new[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (
        u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    )
    return new, new.sum()


def logistic(X, y, w):
    return np.mean(np.log1p(np.exp(-y * (X @ w))))


def totals(x):
    return x.sum(), x.min(), x.max(), x.mean(), (x > 0).any(), (x > -100).all(), (x * x).sum(), np.var(x)


def whole(k):
    return k.sum(), k.min(), k.max(), np.prod(k % 3 + 1), k // 7


def long_rows(x):
    return np.cumsum(x[:2, :4]), (np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)).sum(axis=1), np.exp(x) * 2


FLAT, ROWS, LONG = rng.standard_normal(100_003), rng.standard_normal((700, 143)), rng.standard_normal((9, 20_011))
CASES = {
    "chain": (lambda x: np.tanh(x) * 2 + np.exp(-x * x), (FLAT,)),
    "single": (lambda x: np.tanh(x) * np.float32(2), (FLAT.astype("f4"),)),
    "totals": (totals, (FLAT,)),
    "single totals": (totals, (FLAT.astype("f4"),)),
    "extremes": (lambda x: (x.max(), x.min(), x.sum()), (np.where(rng.random(100_000) < 1e-4, np.nan, FLAT[:100_000]),)),
    "integers": (whole, (rng.integers(-50, 1000, 100_000),)),
    "narrow": (whole, (rng.integers(0, 100, 100_000).astype("u1"),)),
    "truths": (lambda b: (b.any(), b.all(), b.sum(), ~b), (FLAT > 0,)),
    "rows": (lambda x: (x.sum(axis=1), x.max(axis=1), (x > 0).any(axis=1)), (ROWS,)),
    "softmax": (softmax, (ROWS,)),
    "standardized": (standardized, (ROWS,)),
    "long rows": (long_rows, (LONG,)),
    "cross entropy": (cross_entropy, (ROWS, rng.integers(0, 143, 700))),
    "gather": (lambda x, k: x[k] * 2, (FLAT, rng.integers(-100_003, 100_003, 90_000))),
    "stencil": (heat, (ROWS,)),
    "transposed": (lambda x: x.T * 2 + 1, (ROWS,)),
    "product with a vector": (lambda x, w: np.tanh(x @ w), (np.tile(ROWS, (3, 1)), ROWS[0])),
    "loss": (logistic, (np.tile(ROWS, (3, 1)), np.sign(FLAT[:2100]), ROWS[0] / 100)),
    "gradient": (lambda X, y, w: tm.grad(lambda w: logistic(X, y, w))(w), (np.tile(ROWS, (3, 1)), np.sign(FLAT[:2100]), ROWS[0] / 100)),
    "columns": (lambda x: (x.sum(axis=0), np.exp(x).mean(axis=0), x.max(axis=0)), (np.tile(ROWS, (3, 1)),)),
    "columns of integers": (lambda k: (k.sum(axis=0), (k > 5).any(axis=0), k.min(axis=0)), (rng.integers(0, 9, (5000, 11)),)),
    "wide columns": (lambda x: (x * 2).sum(axis=0), (rng.standard_normal((300, 3001)),)),
    "planes": (lambda x: x.sum(axis=(0, 2)), (rng.standard_normal((400, 7, 31)),)),
    "columns and rows": (lambda x: (x.sum(axis=0), x.sum(axis=1), x.sum(), np.tanh(x)), (np.tile(ROWS, (3, 1)).astype("f4"),)),
    "complex": (lambda x: np.exp(1j * x) * (1 + 2j), (FLAT,)),
}  # fmt: skip

SERIAL: set[str] = set()


def bits(found):
    found = found if isinstance(found, tuple) else (found,)
    return [(np.asarray(f).dtype.str, np.asarray(f).shape, np.asarray(f).tobytes()) for f in found]


def word(number):
    """A word of the pool that there is."""
    return (ctypes.c_int64 * 16).from_address(threads._current.address)[number]


@pytest.mark.parametrize("name", CASES)
def test_any_number_of_threads_gives_the_same_bits(name, monkeypatch):
    function, arguments = CASES[name]
    ours = tm.tensor(function)
    found = []
    for count in COUNTS:
        monkeypatch.setattr(tm.config, "threads", count)
        found += [bits(ours(*arguments)) for _ in range(3)]
    assert all(f == found[0] for f in found)
    assert (word(LOOPS_SHARED) > 0) == (name not in SERIAL)
    with np.errstate(all="ignore"):
        expected = function(*arguments)
    for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (ours(*arguments), expected)), strict=True):
        rtol, atol = (
            (2e-5, 1e-3) if np.asarray(b).dtype == "f4" else (1e-10, 1e-9)
        )  # NumPy's own sums of float32 are off by that
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=atol)


def diffuse(u, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
    return u


def relaxed(u):
    count, change = 0, 1.0
    while change > 0.5 and count < 40:
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        change = np.sqrt(np.sum((new - u) ** 2))
        u = new
        count = count + 1
    return u, count, change


def picked(x, k, steps):
    for _ in range(steps):
        x = np.tanh(x[:, k] * 1.01 + x.max(axis=1, keepdims=True)) - x.mean(axis=1, keepdims=True)
    return x


def branched(x, steps):
    total = 0.0
    for i in range(steps):
        if total > 3:
            x = np.exp(-x * x) + x[:, :1]
            total = total - 1
        else:
            x = np.sin(x) * 2
        total = total + np.abs(x).max() + i
    return x, total


def growing(x, steps):
    return tm.grad(lambda y: np.sum(diffuse(y, steps) ** 2))(x)


def paths(prices, shocks):
    for k in range(shocks.shape[0]):
        prices = prices * np.exp(0.01 * shocks[k] - 0.0001)
        prices = np.where(prices > 3, 3.0, prices)
    return prices, np.maximum(prices - 1, 0).mean()


LOOPS = {
    "paths": (paths, (np.ones(50_000), rng.standard_normal((6, 50_000)))),
    "diffuse": (diffuse, (ROWS, 7)),
    "relaxed": (relaxed, (ROWS,)),
    "picked": (picked, (ROWS, rng.integers(0, 143, 143), 5)),
    "branched": (branched, (ROWS, 6)),
    "growing": (growing, (ROWS, 4)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_nests_inside_of_loops_have_the_same_bits_too(name, monkeypatch):
    monkeypatch.setattr(kernel_source, "INSIDE", 1 << 10)
    function, arguments = LOOPS[name]
    ours = tm.tensor(function)
    found = []
    for count in COUNTS:
        monkeypatch.setattr(tm.config, "threads", count)
        found += [bits(ours(*arguments)) for _ in range(2)]
    assert all(f == found[0] for f in found)
    assert word(LOOPS_SHARED) > 0
    expected = function(*arguments)
    for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (ours(*arguments), expected)), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("count", [1, 3])
def test_an_error_inside_of_a_loop_is_the_first_one(count, monkeypatch):
    monkeypatch.setattr(kernel_source, "INSIDE", 1 << 10)
    monkeypatch.setattr(tm.config, "threads", count)
    k = rng.integers(0, 143, 143)
    k[100], k[120] = 500, 600
    ours = tm.tensor(picked)
    with pytest.raises(IndexError, match="500"):
        np.asarray(ours(ROWS, k, 5))


def test_threads_take_part(monkeypatch):
    monkeypatch.setattr(tm.config, "threads", 3)
    x = rng.standard_normal(3_000_000)
    ours = tm.tensor(lambda x: np.tanh(np.exp(-x * x)).sum())
    seen = 0
    for _ in range(20):
        float(ours(x))
        seen = max(seen, word(JOINED))
    assert 1 <= seen <= 2


def test_small_work_is_done_by_the_caller(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(tm.config, "tier", "numba")
    monkeypatch.setattr(tm.config, "threads", 16)
    before = threads._current
    x = rng.standard_normal(1000)
    ours = tm.tensor(lambda x: (np.exp(x) * 2).sum())
    for _ in range(3):
        float(ours(x))
    assert threads._current is before
    assert team(threads.least() - 1) == ALONE
    assert team(threads.least())[1] == 16


def test_one_thread_is_none_but_the_caller(monkeypatch):
    monkeypatch.setattr(tm.config, "threads", 1)
    assert team(1 << 60) == ALONE


@pytest.mark.parametrize("count", COUNTS)
def test_the_first_of_several_errors_is_raised(count, monkeypatch):
    monkeypatch.setattr(tm.config, "threads", count)
    k = rng.integers(0, 1000, 200_000)
    k[70_001], k[70_003], k[150_000] = 5001, 5003, 6000
    ours = tm.tensor(lambda x, k: np.exp(x[k]))
    x = rng.standard_normal(1000)
    for _ in range(5):
        with pytest.raises(IndexError, match="5001"):
            np.asarray(ours(x, k))
    np.testing.assert_array_equal(ours(x, k % 1000), np.asarray(ours(x, k % 1000)))


def test_what_threads_divide_by_zero_is_warned_of():
    x = np.ones(400_000)
    x[-5] = 0.0
    flagged = 0
    from tensormagic.backend.running import flags

    ours = tm.tensor(lambda x: 1 / x)
    for _ in range(10):
        flags.clear()
        np.asarray(ours(x))
        flagged += bool(flags.seen())
    flags.clear()
    assert flagged == 10
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        assert np.isinf(np.asarray(ours(x))[-5])


def test_calls_from_several_threads_at_once(monkeypatch):
    monkeypatch.setattr(tm.config, "threads", 3)
    ours = tm.tensor(lambda x: (np.exp(x).sum(), np.tanh(x)))
    inputs = [rng.standard_normal(60_000 + 5000 * k) for k in range(8)]
    monkeypatch.setattr(tm.config, "threads", 1)
    expected = [bits(ours(x)) for x in inputs]
    monkeypatch.setattr(tm.config, "threads", 3)
    wrong = []

    def work(number):
        wrong.extend(number for _ in range(25) if bits(ours(inputs[number])) != expected[number])

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_the_number_may_change_while_others_compute(monkeypatch):
    ours = tm.tensor(lambda x: np.exp(np.sin(x)).sum())
    expected = float(ours(FLAT))
    wrong, done = [], threading.Event()

    def work():
        while not done.is_set():
            if float(ours(FLAT)) != expected:
                wrong.append(1)

    worker = threading.Thread(target=work)
    worker.start()
    for count in (1, 4, 2, 7, 3, 5) * 4:
        tm.config.threads = count
        time.sleep(0.005)
    done.set()
    worker.join()
    assert not wrong
    tm.config.threads = 8
    assert float(ours(FLAT)) == expected
    assert not threads._past  # pools of other sizes have ended


def test_an_interrupt_stops_all_threads():
    def long(x):
        for _ in range(40):
            x = np.sin(x) + np.exp(-x * x)
        return x.mean()

    ours, x = tm.tensor(long), rng.standard_normal(8_000_000)
    float(ours(x[:1000]))
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        [float(ours(x)) for _ in range(50)]
    assert time.perf_counter() - begin < 3
    timer.join()
    assert float(ours(x[:100_000])) == float(ours(x[:100_000]))
    assert word(ACTIVE) == 0


@pytest.mark.parametrize("value", [0, -1, 2.0, "2", True, None])
def test_a_number_of_threads_is_at_least_one(value):
    with pytest.raises(ValueError, match="number of threads"):
        tm.config.threads = value


def test_numba_reads_the_text_of_shared_loops():
    source = (
        "def kernel(table):\n    a = array(table, 1, 'float64', 0)\n    share_1 = 4\n"
        "    for first in parallel(table[2], share_1, table[3], table[2] * (2 + 1)):\n"
        "        for i in range(first, first + share_1):\n            a[i] = 1.0\n"
    )
    module, symbol = lowered_by_numba(source)
    assert symbol in {f.name for f in module.functions}
