"""Running compiled plans: any layout of inputs, forms of results, errors, accuracy of sums, interrupts, threads."""

import _thread
import threading
import time

import numpy as np
import pytest

from tensormagic.backend.running import flags, runtime
from tensormagic.backend.running.buffers import Pool
from tensormagic.ops import move
from tensormagic.ops.fold import MAX, SUM, fold, mean
from tensormagic.ops.scalars import scalar
from tensormagic.ops.scalars.scalar import exp, sin
from tests.backend.graphs import check, closed, prepared, run, variable

rng = np.random.default_rng(3)


def layouts():
    base = rng.normal(size=(12, 10))
    misaligned = np.frombuffer(b"x" + base.tobytes(), np.uint8)[1:].view(float).reshape(base.shape)
    frozen = base.copy()
    frozen.flags.writeable = False
    return {
        "contiguous": base,
        "fortran": np.asfortranarray(base),
        "reversed": base[::-1, ::-1],
        "strided": np.repeat(base, 2, axis=1)[:, ::2],
        "stretched": np.broadcast_to(base[0], base.shape),
        "misaligned": misaligned,
        "read-only": frozen,
        "subclass": base.view(type("Own", (np.ndarray,), {})),
    }


@pytest.mark.parametrize("layout", layouts())
def test_inputs_of_any_layout(layout):
    value = layouts()[layout]
    handle, sizes, _ = prepared(
        scalar.add(variable("x", np.zeros((12, 10))), 1), fold(SUM, variable("x2", np.zeros((12, 10))), (0,))
    )
    found = handle.run(sizes, value, value)
    plain = np.array(value)
    np.testing.assert_array_equal(found[0], plain + 1)
    np.testing.assert_allclose(found[1], plain.sum(axis=0), rtol=1e-13)
    assert all(type(f) is np.ndarray and f.flags.c_contiguous for f in found)


@pytest.mark.parametrize("value", [2.5, np.float32(2.5), np.array(2.5), 3, True, np.int8(3)])
def test_forms_of_rank_0(value):
    x = variable("x", value)
    check(x, scalar.add(x, x), scalar.equal(x, 3))


def test_results_that_are_inputs_constants_and_one_another_are_copies():
    value = rng.normal(size=5)
    x = variable("x", value)
    handle, sizes, values = prepared(x, x, x + 1, x + 1, move.transpose(move.reshape(x, (5, 1))))
    found = handle.run(sizes, *values)
    for k, f in enumerate(found):
        assert not any(np.shares_memory(f, other) for other in (value, *found[:k]))
        f[...] = 0
    np.testing.assert_array_equal(found[1], 0)
    assert value.any()


def test_new_sizes_run_the_same_code():
    x = variable("x", rng.normal(size=(4, 5)))
    handle, _, _ = prepared(fold(MAX, exp(x), (1,)))
    for shape in [(2, 3), (1000, 17), (3, 5000)]:
        value = rng.normal(size=shape)
        sizes = handle.plan.graph.bind([shape])
        np.testing.assert_allclose(handle.run(sizes, value)[0], np.exp(value).max(axis=1), rtol=1e-14)


def test_a_maximum_of_nothing_is_numpys_error():
    x = variable("x", rng.normal(size=9))
    n = x.type.shape[0]
    part = move.slice_(x, ((0, n - 9, 1),))
    with pytest.raises(ValueError, match="zero-size array to reduction operation max"):
        run(fold(MAX, part, (0,)))
    check(fold(SUM, part, (0,)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1000, 10**6])
def test_sums_are_as_accurate_as_numpys(dtype, n):
    values = rng.random(n).astype(dtype)
    exact = float(np.sum(values.astype(np.longdouble)))
    found = float(run(fold(SUM, variable("x", values), (0,)))[0])
    assert abs(found - exact) <= max(
        abs(float(np.sum(values)) - exact), 2 * float(np.spacing(np.asarray(exact, dtype)))
    )


def test_sums_with_infinities_and_nan():
    for values in ([np.inf, 1.0], [np.inf, -np.inf], [np.nan, 1.0], [1e308, 1e308], [-0.0, -0.0]):
        check(fold(SUM, variable("x", np.array(values)), (0,)))


def test_large_results_are_new_memory_while_somebody_has_the_old():
    x = variable("x", rng.normal(size=300_000))
    handle, sizes, values = prepared(x + 1)
    first = handle.run(sizes, *values)[0]
    view = first[5:9]
    kept = view.copy()
    del first
    second = handle.run(sizes, values[0] * 0)[0]
    np.testing.assert_array_equal(view, kept)
    address = second.ctypes.data
    del second
    third = handle.run(sizes, *values)[0]
    assert third.ctypes.data == address
    np.testing.assert_array_equal(view, kept)


def test_the_pool_is_bounded(monkeypatch):
    monkeypatch.setattr("tensormagic.backend.running.buffers.MOST_BYTES", 1 << 20)
    pool = Pool()
    arrays = [pool.take((1 << 15,), np.dtype("f8")) for _ in range(8)]
    assert sum(b.nbytes for blocks in pool._blocks.values() for b in blocks) <= 1 << 20
    for k, a in enumerate(arrays):
        a[:] = k
    assert [a[-1] for a in arrays] == list(range(8))


def test_an_interrupt_stops_a_long_run():
    x = variable("x", rng.normal(size=4_000_000))
    y = x
    for _ in range(30):
        y = sin(y) + exp(-y)
    handle, sizes, values = prepared(mean(y, (0,)))
    handle.run(sizes, values[0][:1000])
    begin = time.perf_counter()
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        repeat(50, handle.run, sizes, *values)
    assert time.perf_counter() - begin < 3
    timer.join()
    np.testing.assert_allclose(
        handle.run(handle.plan.graph.bind([(1000,)]), values[0][:1000]),
        reference_of(handle, values[0][:1000]),
        rtol=1e-9,
    )


def repeat(times, call, *arguments):
    for _ in range(times):
        call(*arguments)


def reference_of(handle, value):
    from tensormagic.backend.numpy_tier.reference import compile as compile_reference

    return compile_reference(handle.plan.graph)(handle.plan.graph.bind([value.shape]), value)


def test_runs_on_many_threads_at_once():
    x = variable("x", rng.normal(size=(50, 40)))
    graph, _ = closed([fold(SUM, exp(x), (1,)), exp(x) / 3])
    handle, _, _ = prepared(fold(SUM, exp(x), (1,)), exp(x) / 3)
    inputs = [rng.normal(size=(50 + k, 40)) for k in range(8)]
    wrong = []

    def work(value):
        for _ in range(200):
            found = handle.run(graph.bind([value.shape]), value)
            if not np.allclose(found[1], np.exp(value) / 3, rtol=1e-14):
                wrong.append(value.shape)

    threads = [threading.Thread(target=work, args=(value,)) for value in inputs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_reading_of_slices_with_steps():
    x = variable("x", rng.normal(size=(20, 31)))
    part = move.slice_(x, ((18, 9, -2), (1, 10, 3)))
    check(part, part + 1, fold(SUM, part, (0,)), move.flip(part, (0, 1)), ulps=16, scale=1.0)


def test_small_calls_are_cheap():
    x, y, z = (variable(n, rng.normal(size=3)) for n in "xyz")
    handle, sizes, values = prepared(x * y + z, fold(SUM, x, (0,)))
    best = min(timed(handle, sizes, values) for _ in range(20))
    assert best < 20e-6


def timed(handle, sizes, values):
    begin = time.perf_counter()
    for _ in range(200):
        handle.run(sizes, *values)
    return (time.perf_counter() - begin) / 200


def test_a_long_run_beside_the_main_thread_leaves_its_floating_point_flags_here():
    """Each thread has its own flags: what divided by zero there was never told of."""
    handle, sizes, _ = prepared(scalar.divide(1.0, variable("x", np.zeros(3))))
    for zero in (0.0, 2.0):
        flags.clear()
        found = runtime.patiently(handle.run, sizes, (np.array([1.0, zero, 4.0]),))
        assert found[0].tolist() == [1.0, np.inf if zero == 0 else 0.5, 0.25]
        assert bool(flags.seen()) is (zero == 0)
