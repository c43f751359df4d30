"""Calls in the background: results and errors as in the foreground, inputs as they were, cancelling, the end of a process."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError, as_completed, wait

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session

X = np.linspace(0.0, 1.0, 1000)


def long(x, count):
    for _ in range(count):
        x = np.sin(x) + x * 0.5
    return x


def test_results_are_those_of_the_foreground(tier):
    later = [tm.submit(lambda x, k=k: np.exp(x) * k, X) for k in range(8)]
    for k, future in enumerate(later):
        np.testing.assert_allclose(future.result(60), np.exp(X) * k, rtol=1e-14)
        assert future.done()
        assert future.exception() is None
    assert set(as_completed(later)) == set(later)
    assert wait(later).not_done == set()


def test_containers_gradients_and_compiled_functions():
    def loss(p, y):
        return np.mean((p["w"] * y - p["b"]) ** 2)

    p = {"w": X.copy(), "b": 2.0}
    found = tm.submit(tm.grad(loss), p, X).result(60)
    expected = tm.grad(loss)(p, X)
    np.testing.assert_allclose(found["w"], expected["w"])
    assert found["b"] == pytest.approx(expected["b"])
    made = tm.compile(lambda x: (x + 1, x.sum()), "float64[n]")
    plus, total = tm.submit(made, X).result(60)
    assert np.array_equal(plus, X + 1)
    assert total == pytest.approx(X.sum())
    assert np.array_equal(tm.submit(made, tm.tensor(X) * 2).result(60)[0], X * 2 + 1)


def test_later_stores_change_neither_arguments_nor_what_is_read_beside_them(tier):
    x, table = np.ones(200_000), np.full(200_000, 2.0)

    def slow(a):
        for _ in range(50):
            a = np.cos(a)
        return a * 0 + x[:1] + table

    first = tm.submit(slow, x)
    table[:], x[:] = 7.0, 5.0
    second = tm.submit(slow, x)
    assert set(first.result(60)) == {3.0}
    assert set(second.result(60)) == {12.0}


def test_it_returns_before_the_work_is_done_and_runs_side_by_side(tier):
    tm.submit(long, X, 10).result(60)
    begin = time.perf_counter()
    future = tm.submit(long, X, 20_000)
    returned = time.perf_counter() - begin
    assert not future.done()
    quick = tm.submit(lambda x: x + 1, X).result(60)
    assert np.array_equal(quick, X + 1)
    expected = long(X, 20_000)
    np.testing.assert_allclose(future.result(120), expected, rtol=1e-9)
    assert returned < time.perf_counter() - begin


def divided(k, d):
    return (k + 1) // d


def test_errors_are_those_of_the_foreground(tier):
    table = np.arange(4.0)

    def taken(k):
        return table[k] * 2

    future = tm.submit(taken, np.array([1, 9]))
    with pytest.raises(IndexError) as caught:
        future.result(60)
    with pytest.raises(IndexError) as foreground:
        tm.compile(taken, np.array([1, 2])).run(np.array([1, 9]))
    assert str(caught.value) == str(foreground.value)
    assert future.exception() is caught.value
    assert "failed: " in repr(future)
    assert future.cancel() is False
    with pytest.raises(tm.ShapeError, match="could not be broadcast"):
        tm.submit(lambda x, y: x + y, X, X[:3])


def test_floating_point_errors_are_raised_as_the_caller_asks():
    tm.config.tier, before = "numpy", tm.config.tier
    try:
        with np.errstate(divide="ignore"):
            assert np.isinf(tm.submit(lambda x: 1 / x, np.zeros(2)).result(60)).all()
    finally:
        tm.config.tier = before


def test_work_that_runs_is_cancelled(tier):
    tm.submit(long, X, 2).result(60)
    future = tm.submit(long, X, 100_000_000)
    while not future.running():
        time.sleep(0.01)
    time.sleep(0.3)
    assert list(session.at_work) == []  # what a cell does meanwhile is not taken for this
    begin = time.perf_counter()
    assert future.cancel() is True
    with pytest.raises(CancelledError):
        future.result(30)
    assert time.perf_counter() - begin < 5
    assert future.cancelled()
    assert "cancelled" in repr(future)
    assert np.array_equal(tm.submit(lambda x: x * 2, X).result(60), X * 2)  # the threads go on


def coupled(x, count):
    for _ in range(count):
        x = np.sin(x) + x.mean() * 0.5
    return x


def solved(x, count):
    for _ in range(count):
        x = np.linalg.solve(np.eye(3) * 2, x[:3]) + np.exp(-x[:3]) + 1
    return x


def until_large(x):
    while x.sum() < 1e300:
        x = np.cos(x)
    return x


def until(future, *texts):
    """Wait until the state of a future, which goes on, has these texts: a second passes before iterations are told."""
    begin = time.monotonic()
    while not all(text in future.state for text in texts):
        assert not future.done()
        assert time.monotonic() - begin < 120, future.state
        time.sleep(0.05)


def rising(future):
    """Three different progresses of a future, which goes on."""
    seen: list[float] = []
    while len(seen) < 3:
        assert not future.done()
        found = future.progress
        if found and found not in seen:
            seen.append(found)
        time.sleep(0.005)
    return seen


@pytest.mark.parametrize("function", [long, coupled, solved])
def test_a_loop_tells_how_far_it_is(tier, function):
    count = 100_000_000_000 if tier == "numba" else 10_000_000
    future = tm.submit(function, X[:3], count)
    until(future, f" of {count:,} ", "by compiled code" if tier == "numba" else "by NumPy")
    if function is not solved or tier == "numpy":  # whose iterations take longer than the digits show
        seen = rising(future)
        assert seen == sorted(seen)
        assert 0 < seen[0] < seen[-1] <= 1
    assert future.cancel()
    with pytest.raises(CancelledError):
        future.result(60)
    assert future.progress == 1.0


def test_a_loop_of_a_gradient_tells_how_far_it_is(tier):
    future = tm.submit(tm.grad(lambda x: coupled(x, 5_000_000).sum()), X[:3])
    seen = rising(future)
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[-1] <= 1
    future.cancel()


def test_a_loop_without_a_count_tells_its_iteration(tier):
    future = tm.submit(until_large, X)
    until(future, "iteration")
    assert future.progress is None
    assert " of " not in future.state
    behind = [tm.submit(long, X, 10_000_000_000) for _ in range(2 * (os.cpu_count() or 1))]
    assert (behind[-1].progress, behind[-1].state) == (0.0, "waiting")
    assert all(f.cancel() for f in [future, *behind])


def test_loops_of_other_threads_are_not_told(tier):
    counts = (200_000_000_000, 100_000_000_000)
    futures = [tm.submit(coupled, X, count) for count in counts]
    for future, count in zip(futures, counts, strict=True):
        if future.state != "waiting":  # for a processor
            until(future, f" of {count:,}")
    assert session.doing().far() is None
    assert tm.compile(long, X[:3], 5)(X[:3], 5).shape == (3,)
    assert all(f.cancel() for f in futures)


def test_errors_name_the_line_that_failed(tier):
    def taken(x, k):
        y = np.sin(x)
        return y[k] * 2

    error = tm.submit(taken, X, np.array([1, 5000])).exception(60)
    assert isinstance(error, IndexError)
    assert [s.line for s in error.tensor_sites] == [taken.__code__.co_firstlineno + 2]


def test_work_that_waits_is_cancelled_before_it_begins():
    gates = [tm.submit(long, X, 100_000_000) for _ in range(32)]
    last = tm.submit(lambda x: x + 1, X)
    assert not last.done()
    assert last.cancel()
    assert last.cancelled()
    assert all(g.cancel() for g in gates)
    for gate in gates:
        with pytest.raises(CancelledError):
            gate.result(60)


def test_callbacks_and_awaiting():
    told = []
    future = tm.submit(lambda x: x.sum(), X)
    future.add_done_callback(lambda f: told.append(f.result()))

    async def both():
        return await asyncio.gather(*(tm.submit(lambda x, k=k: x.sum() + k, X) for k in range(2)))

    first, second = asyncio.run(both())
    assert second - first == pytest.approx(1.0)
    total = future.result(60)
    for _ in range(100):
        if told:
            break
        time.sleep(0.01)
    assert told == [total]


def test_what_could_change_or_be_lost_is_refused():
    def stored(x):
        x[0] = 1
        return x.sum()

    class Model:
        w = X

    with pytest.raises(tm.TensorError, match="stores"):
        tm.submit(stored, X.copy())
    with pytest.raises(TypeError, match="Model, which could change"):
        tm.submit(lambda m: m.w * 2, Model())
    with pytest.raises(TypeError, match="Generator"):
        tm.submit(lambda r: r.normal(size=3), np.random.default_rng(0))
    with pytest.raises(tm.CaptureError, match=r"tm\.submit is called in captured code"):
        tm.tensor(lambda x: tm.submit(np.sin, x).result()).graph(X)


def test_many_threads_submit():
    found = {}

    def work(k):
        found[k] = [tm.submit(lambda x: x * 3 + x.sum(), X + k + j).result(60) for j in range(10)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(6):
        for j, value in enumerate(found[k]):
            np.testing.assert_allclose(value, (X + k + j) * 3 + (X + k + j).sum())


def test_the_end_of_a_process_tells_what_was_unfinished(tmp_path):
    text = """
import numpy as np, tensormagic as tm
def endless(x):
    while x.sum() < 1e300:
        x = np.cos(x)
    return x
later = tm.submit(endless, np.ones(10))
done = tm.submit(lambda x: x + 1, np.ones(3))
print(done.result())
"""
    path = tmp_path / "script.py"
    path.write_text(text)
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "[2. 2. 2.]"
    assert ran.stderr.strip() == "tensormagic: 1 submitted computation was not finished: endless of script.py line 7"


def test_cancelling_at_any_moment_ends_it():
    tm.submit(long, X, 30).result(60)
    for k in range(200):
        future = tm.submit(long, X, 30)
        time.sleep(k * 1e-5)
        cancelled = future.cancel()
        try:
            value = future.result(10)
        except CancelledError:
            assert cancelled
        else:
            assert not cancelled
            assert value.shape == X.shape
    assert np.array_equal(tm.submit(lambda x: x - 1, X).result(60), X - 1)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor runs one thread of them")
def test_f1_f3_g4_independent_products_and_kernels_run_side_by_side(tier):
    large, small = np.ones((1500, 1500)), np.full((60, 60), 2.0)
    kernel = tm.compile(lambda x: np.exp(x).sum(), "float64[n, m]")
    slow, product = (
        tm.compile(lambda x: x @ x @ x @ x @ x, "float64[n, n]"),
        tm.compile(lambda x: x @ x, "float64[n, n]"),
    )
    for made in (slow, product, kernel):
        tm.submit(made, small).result(60)
    running = tm.submit(slow, large)
    quick = tm.submit(product, small), tm.submit(kernel, small)
    assert quick[0].result(60)[0, 0] == 240
    assert quick[1].result(60) == pytest.approx(3600 * np.exp(2))
    assert not running.done()  # a product and a kernel have run while other products do
    assert running.result(60)[0, 0] == 1500.0**4


def test_a_forked_child_is_told_and_computes_its_own():
    read, write = os.pipe()
    endless, told = [tm.submit(long, X, 100_000_000) for _ in range(8)], []
    for future in endless:
        future.add_done_callback(told.append)
    child = os.fork()
    if child == 0:
        try:
            for future in (endless[0], endless[-1]):
                os.write(write, f"{type(future.exception(5)).__name__} ".encode())
            os.write(write, f"{len(told)} {tm.submit(lambda x: x.size, X).result(30)}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        found = stream.read().split()
    assert os.waitpid(child, 0)[1] == 0
    running = [future.done() for future in endless]
    assert all(future.cancel() for future in endless)
    for future in endless:
        with pytest.raises(CancelledError):
            future.result(60)
    assert found == [b"GuardError", b"GuardError", b"0", b"1000"]
    assert not any(running)


def test_arguments_by_name():
    def scaled(x, k, shift=0.0):
        return x * k + shift

    x = np.arange(3.0)
    np.testing.assert_array_equal(tm.submit(scaled, x, shift=1.0, k=2.0).result(), x * 2 + 1)
    np.testing.assert_array_equal(tm.submit(tm.grad(lambda x, k: (x * k).sum()), k=3.0, x=x).result(), np.full(3, 3.0))
    np.testing.assert_array_equal(tm.submit(tm.compile(scaled, "float64[n]", "float64"), k=2.0, x=x).result(), x * 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        tm.submit(scaled, x, 2.0, other=2.0)
