"""Chunks on a cluster in this process: captures and machine code that are kept, workers that are lost or slow, and what is told."""

import functools
import itertools
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session

distributed = pytest.importorskip("distributed", reason="Dask is an optional extra of the package")
import dask.array as da  # noqa: E402  (after the check that it is there)

from tensormagic.distributed import distribute, sources, tasks, watching  # noqa: E402
from tensormagic.ir.errors import GuardError  # noqa: E402
from tests.distributed.clusters import cluster, lose  # noqa: E402

pytestmark = pytest.mark.usefixtures("by_numpy")

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(4000, 3)), RNG.normal(size=4000)
P = {"w": RNG.normal(size=3), "b": 0.5}
TABLE = np.arange(4.0) ** 2


def loss(x, y, p):
    z = x @ p["w"] + p["b"]
    return np.mean(np.logaddexp(0, z) - y * z)


STEP = tm.value_and_grad(loss, argnums=2)


def bits(result: Any) -> list[bytes]:
    value, slopes = result
    return [np.asarray(v).tobytes() for v in (value, slopes["w"], slopes["b"])]


def test_the_bits_are_the_same_for_any_number_of_workers(tier: str):
    found: list[Any] = []
    for count in (1, 2, 4):
        with cluster(count) as own, distributed.Client(own) as client:
            f = tm.distribute(STEP, client)
            found.append(bits(f(tm.shard(X, rows=137), tm.shard(Y), P)))
            assert f.report is not None
            assert (f.report.chunks, len(f.report.workers)) == (30, count)
    assert found[0] == found[1] == found[2]


def test_it_is_captured_once_for_each_kind_of_arguments(client: Any, monkeypatch: pytest.MonkeyPatch):
    made: list[Any] = []
    traced = distribute.traced
    monkeypatch.setattr(distribute, "traced", lambda *of: made.append(of) or traced(*of))
    scale = [2.0]
    f = tm.distribute(lambda x, w, k=1: (x @ w * scale[0]).sum() ** k, client)
    x, w = tm.shard(X, rows=1000), P["w"]
    first = f(x, w)
    assert f(x, w * 2) == pytest.approx(2 * first)
    assert f(tm.shard(X[:3000], rows=500), w) == pytest.approx((X[:3000] @ w * 2).sum())
    assert len(made) == 1
    assert f(x, w, 2) == pytest.approx(first**2)
    scale[0] = 4.0
    assert f(x, w) == pytest.approx(2 * first)
    assert len(made) == 3


def test_machine_code_is_found_on_the_workers(client: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "tier", "numba")
    f = tm.distribute(lambda x: (np.tanh(x) * 1.25 + x).sum(), client)
    x = tm.shard(X, rows=1000)
    f(x)
    monkeypatch.setattr(session.programs, "_executables", OrderedDict())  # as another process has none
    f(x)
    assert f.report is not None
    assert f.report.found == f.report.chunks == 4


def instead(patch: pytest.MonkeyPatch, change: Callable[[Any], None]) -> None:
    """Have workers do something before each chunk that they compute."""
    before = tasks.on_worker

    @functools.wraps(before)
    def changed(job, chunk, *pieces):
        change(chunk)
        return before(job, chunk, *pieces)

    patch.setattr(tasks, "on_worker", changed)
    patch.setattr(watching, "on_worker", changed)


def test_a_worker_that_is_lost_at_any_moment_changes_nothing():
    with cluster(12) as own, distributed.Client(own) as client:
        f = tm.distribute(STEP, client)
        x, y = tm.shard(X, rows=100), tm.shard(Y)
        before = bits(f(x, y, P))
        for moment, worker in zip(RNG.integers(0, 38, 10), list(own.workers.values()), strict=False):
            calls, threads = itertools.count(), []

            def losing(_chunk, calls=calls, moment=moment, worker=worker, threads=threads):
                if next(calls) == moment:
                    threads.append(threading.Thread(target=client.sync, args=(lose, worker)))
                    threads[0].start()

            with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                instead(patch, losing)
                assert bits(f(x, y, P)) == before, moment
            threads[0].join()
            lost = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
            assert len(lost) <= 1  # none where it was lost after it had done its part
            assert all(worker.address in text for text in lost)
        assert bits(f(x, y, P)) == before
        assert len(client.nthreads()) == 2


def test_a_cluster_is_started_where_no_client_is_given_and_closed(monkeypatch: pytest.MonkeyPatch):
    inside = functools.partial(distributed.LocalCluster, n_workers=1, processes=False)
    monkeypatch.setattr(distributed, "LocalCluster", inside)
    with tm.distribute(STEP) as f:
        assert "no cluster yet" in repr(f)
        assert bits(f(tm.shard(X, rows=1000), tm.shard(Y), P))
        assert f.dashboard_link.startswith("http://")
        assert f.dashboard_link in repr(f)
        client = f.client
        kept = client.cluster
    assert (client.status, kept.status.name) == ("closed", "closed")
    assert "no cluster yet" in repr(f)


def test_rows_that_cannot_be_read_again_are_an_error_when_they_are_lost():
    with cluster(2) as own, distributed.Client(own) as client:
        worker = own.workers[0]
        f = tm.distribute(lambda x: np.cos(x).sum(), client)
        with pytest.MonkeyPatch.context() as patch:
            instead(patch, lambda _chunk: time.sleep(0.05))
            threading.Timer(0.2, client.sync, (lose, worker)).start()
            with pytest.raises(tm.GuardError, match="a worker was lost, with rows that cannot be read again"):
                f(X[k : k + 100] for k in range(0, len(X), 100))


def test_what_takes_long_is_computed_twice(client: Any, monkeypatch: pytest.MonkeyPatch):
    f = tm.distribute(STEP, client)
    x, y = tm.shard(X, rows=500), tm.shard(Y)
    before, slow, once = bits(f(x, y, P)), threading.Event(), itertools.count()
    monkeypatch.setattr(watching, "LATE", (0.2, 0.2))
    monkeypatch.setattr(watching, "LOOK", 0.05)
    instead(monkeypatch, lambda chunk: chunk.number == 5 and next(once) == 0 and slow.wait(20))
    start = time.perf_counter()
    assert bits(f(x, y, P)) == before
    assert time.perf_counter() - start < 15
    slow.set()
    assert f.report is not None
    assert 1 <= f.report.doubled < f.report.chunks  # and those that waited behind it
    assert "computed twice, as it took long" in f.report.title


def test_what_the_scheduler_has_lost_is_computed_though_all_workers_are_said_to_be_busy(
    client: Any, monkeypatch: pytest.MonkeyPatch
):
    f = tm.distribute(STEP, client)
    x, y = tm.shard(X, rows=500), tm.shard(Y)
    before, lost, once = bits(f(x, y, P)), threading.Event(), itertools.count()
    monkeypatch.setattr(watching, "STALLED", 0.5)
    monkeypatch.setattr(watching, "LATE", (0.1, 0.1))
    monkeypatch.setattr(watching, "LOOK", 0.05)
    workers = set(client.nthreads())
    monkeypatch.setattr(client, "processing", lambda: dict.fromkeys(workers, ("lost",)))
    instead(monkeypatch, lambda chunk: chunk.number == 5 and next(once) == 0 and lost.wait(20))
    assert bits(f(x, y, P)) == before
    lost.set()
    assert f.report is not None
    assert f.report.doubled >= 1


def test_a_cluster_whose_workers_are_all_paused_is_an_error(client: Any, monkeypatch: pytest.MonkeyPatch):
    workers = list(client.cluster.workers.values())
    monkeypatch.setattr(watching, "STALLED", 0.2)
    monkeypatch.setattr(watching, "LOOK", 0.05)
    x, y = tm.shard(X, rows=500), tm.shard(Y)
    before = bits(tm.distribute(STEP, client)(x, y, P))
    for worker in workers:
        client.sync(_set_status, worker, distributed.Status.paused)
    try:
        with pytest.raises(GuardError, match=r"all 2 workers of the cluster are paused(.|\n)*memory_limit="):
            tm.distribute(STEP, client)(x, y, P)
    finally:
        for worker in workers:
            client.sync(_set_status, worker, distributed.Status.running)
    assert bits(tm.distribute(STEP, client)(x, y, P)) == before


async def _set_status(worker: Any, status: Any) -> None:
    worker.status = status


def test_an_interrupt_stops_the_cluster(client: Any, monkeypatch: pytest.MonkeyPatch):
    go, done = threading.Event(), []
    instead(monkeypatch, lambda chunk: go.wait(20) and (time.sleep(0.05), done.append(chunk)))

    def interrupted(*_of: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching.Handed, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tm.distribute(STEP, client)(tm.shard(X, rows=50), tm.shard(Y), P)
    monkeypatch.undo()
    go.set()
    deadline = time.perf_counter() + 10
    while any(client.processing().values()) and time.perf_counter() < deadline:
        time.sleep(0.02)
    assert len(done) < 10  # of 80: what ran at that moment


def test_a_call_that_fails_with_rows_leaves_the_client_as_it_is(client: Any):
    f, table = tm.distribute(lambda k: (TABLE[k], TABLE[k].sum()), client), tm.shard(np.arange(60) % 7, rows=3)
    connection = client.scheduler_comm
    for _ in range(3):
        with pytest.raises(IndexError, match="out of bounds"):
            f(table)
    rows, total = f(tm.shard(np.arange(60) % 4, rows=3))
    np.testing.assert_array_equal(rows.compute(), TABLE[np.arange(60) % 4])
    assert total == TABLE[np.arange(60) % 4].sum()
    assert client.scheduler_comm is connection


def test_what_moves_is_counted(client: Any):
    f = tm.distribute(STEP, client)
    x, y = tm.shard(X, rows=100), tm.shard(Y)
    f(x, y, P)
    first = f.report
    f(x, y, P)
    second = f.report
    assert first is not None
    assert second is not None
    assert (first.data.times, first.data.bytes) == (80, X.nbytes + Y.nbytes)
    assert second.data.bytes == 0
    assert second.parameters.bytes == 2 * (
        8 * 3 + 8 + 8
    )  # the weights, the bias and the number of rows, to each worker
    assert second.results.bytes == 3 * (8 * 3 + 8 + 8)  # of 40 chunks in 3 blocks
    assert second.parts.bytes <= 40 * (8 * 3 + 8 + 8)
    text, page = repr(second), second._repr_html_()
    assert "value_and_grad(loss): 4,000 rows in 40 chunks, 1 stage" in text
    assert "parameters, client to workers" in text
    assert page.count("<tr>") == len(text.splitlines()) - 1


def test_a_plan_says_from_how_many_workers_on_it_pays(client: Any):
    f = tm.distribute(STEP, client)
    small = f.plan(tm.shard(X, rows=100), tm.shard(Y), P)
    assert (small.rows, small.chunks, len(small.stages), small.pays) == (4000, 40, 1, None)
    x = da.zeros((10**9, 3), chunks=(2**22, 3))
    large = f.plan(x, x[:, 0], P)
    assert large.pays is not None
    assert 1 < large.pays < large.most < 64
    assert large.stages[0].parameters == large.stages[0].part == 8 * 3 + 8 + 8
    assert large.seconds(2 * large.pays) < large.alone
    assert f.report is None
    assert f"pays from {large.pays} workers on" in repr(large)
    assert large._repr_html_().count("<tr>") == len(repr(large).splitlines()) - 1
    lent = tm.distribute(lambda y: np.diff(y).max(), client).plan(tm.shard(Y, rows=500))
    assert lent.stages[0].lent == 8


def test_rows_are_lent_to_the_chunk_before(client: Any, tmp_path: Path):
    path = tmp_path / "y.npy"
    np.save(path, Y)
    f = tm.distribute(lambda y: ((y[2:] - y[:-2]) ** 2, np.abs(np.diff(y)).max()), client)
    ways = tm.shard(Y, rows=700), np.load(path, mmap_mode="r"), da.from_array(Y, chunks=(3000, 998, 1, 1))
    for way in ways:
        rows, largest = f(way)
        np.testing.assert_array_equal(rows.compute(), (Y[2:] - Y[:-2]) ** 2)
        assert largest == np.abs(np.diff(Y)).max()
        assert f.report is not None
    assert f.report.chunks == 2
    assert f.report.halos.bytes == 1 * 2 * 8 * f.report.stages


def test_files_are_read_by_the_workers(client: Any, tmp_path: Path):
    np.save(tmp_path / "x.npy", X)
    f = tm.distribute(lambda x: (x * np.arange(1.0, 4.0)).sum(axis=0), client)
    whole = np.load(tmp_path / "x.npy", mmap_mode="r")
    turned = np.memmap(tmp_path / "t", float, "w+", shape=(3, 4000), order="F")
    turned[:] = X.T
    for x in (whole, whole[100:-7], whole[::-3], turned.T, whole[:, ::-1]):
        np.testing.assert_allclose(f(x), (np.array(x) * np.arange(1.0, 4.0)).sum(axis=0), rtol=1e-12)
        assert f.report is not None
        assert f.report.data.bytes == 0
    own = np.load(tmp_path / "x.npy", mmap_mode="c")  # changes stay in this process
    own[0] = 1e6
    np.testing.assert_allclose(f(own), (np.array(own) * np.arange(1.0, 4.0)).sum(axis=0), rtol=1e-12)
    assert f.report is not None
    assert f.report.data.bytes == X.nbytes


def test_a_zarr_array_is_read_in_its_own_chunks(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    zarr = pytest.importorskip("zarr", reason="zarr is an optional package")
    kept = zarr.open_array(tmp_path / "x.zarr", mode="w", shape=X.shape, chunks=(512, 2), dtype=X.dtype)
    kept[:] = X
    kept = zarr.open_array(tmp_path / "x.zarr", mode="r")
    monkeypatch.setattr(sources, "BYTES", 1024 * X[0].nbytes)
    read: list[int] = []
    own = zarr.Array.__getitem__
    monkeypatch.setattr(zarr.Array, "__getitem__", lambda self, k: read.append(len(out := own(self, k))) or out)
    f = tm.distribute(lambda x: (np.exp(x), x.max(axis=0)), client)
    for given in (kept, tm.shard(kept), tm.shard(kept, rows=700)):
        read.clear()
        rows, largest = f(given)
        np.testing.assert_array_equal(rows.compute(), np.exp(X))
        np.testing.assert_array_equal(largest, X.max(axis=0))
        assert read
        assert max(read) <= 1024  # never the whole
        assert f.report is not None
        assert f.report.data.bytes == 0  # none of it goes through the client
        assert f.report.chunks >= 4


@pytest.mark.parametrize("chunks", [(3999, 1), (1, 0, 1, 3998), (7, 93, 1900, 2000), (4000,), (0, 4000, 0)])
def test_uneven_chunks_and_batches(client: Any, chunks: tuple[int, ...]):
    f = tm.distribute(lambda x, y: ((x * y[:, None]).sum(axis=0), np.diff(y).max(), x[:, 0] + y), client)
    expected = (X * Y[:, None]).sum(axis=0), np.diff(Y).max(), X[:, 0] + Y
    ends = np.cumsum(chunks).tolist()
    batches = [slice(end - n, end) for end, n in zip(ends, chunks, strict=True)]
    x = da.concatenate([da.from_array(X[s], chunks=(-1, 3)) for s in batches])
    for given in ((x, tm.shard(Y)), ((X[s] for s in batches), (Y[s] for s in batches))):
        total, most, rows = f(*given)
        np.testing.assert_allclose(total, expected[0], rtol=1e-11)
        assert most == expected[1]
        np.testing.assert_array_equal(rows.compute(), expected[2])


def test_rows_of_what_is_lazy_are_lazy(client: Any):
    made: list[int] = []
    x = da.map_blocks(lambda b: made.append(len(b)) or b + 1, da.from_array(X, chunks=(1000, 3)), dtype=float)
    rows, total = tm.distribute(lambda x: (x - x.mean(axis=0), x.sum()), client)(x)
    count = len(made)
    np.testing.assert_allclose(rows[:10].compute(), (X - X.mean(axis=0))[:10], rtol=1e-12, atol=1e-13)
    assert len(made) <= count + 1
    assert total == pytest.approx((X + 1).sum())


def numbered(block_info=None):
    return np.full((1000, 3), block_info[None]["chunk-location"][0], float)


def test_a_task_computes_the_rows_that_it_reads(client: Any, monkeypatch: pytest.MonkeyPatch):
    made: list[Any] = []
    read = sources.Computed.read
    monkeypatch.setattr(sources.Computed, "read", lambda self: made.append(self.key) or read(self))
    x = da.map_blocks(numbered, chunks=((1000,) * 4, (3,)), dtype=float, meta=np.empty((0, 0)))
    f = tm.distribute(lambda x: (x - x.mean()).sum(axis=0) + x.max(), client)
    np.testing.assert_allclose(f(x), np.full(3, 3.0), atol=1e-9)
    assert f.report is not None
    assert len(made) == 4 * f.report.stages
    assert len(set(made)) == 4
    kept = x.persist()
    np.testing.assert_allclose(f(kept), np.full(3, 3.0), atol=1e-9)
    both = da.from_array(X, chunks=(1000, 3)) + kept
    whole = both.compute()
    np.testing.assert_allclose(f(both), (whole - whole.mean()).sum(axis=0) + whole.max(), atol=1e-9)
    assert len(made) == 4 * f.report.stages


def test_examples_by_vmap_over_workers(client: Any):
    each = tm.vmap(tm.grad(lambda x, y, w: (x @ w - y) ** 2, argnums=2), in_axes=(0, 0, None))
    f = tm.distribute(lambda x, y, w: (each(x, y, w), (each(x, y, w) ** 2).sum(axis=0)), client)
    rows, total = f(tm.shard(X, rows=300), tm.shard(Y), P["w"])
    slopes = 2 * (X @ P["w"] - Y)[:, None] * X
    np.testing.assert_allclose(rows.compute(), slopes, rtol=1e-12)
    np.testing.assert_allclose(total, (slopes**2).sum(axis=0), rtol=1e-12)
