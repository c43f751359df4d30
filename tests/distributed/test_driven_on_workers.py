"""Loops and branches that take all rows together, on workers of a cluster."""

import threading
import warnings

import numpy as np
import pytest

import tensormagic as tm
from tests.distributed.test_driven import (
    X,
    Y,
    boosting,
    by_gradients,
    compared,
    descent,
    rows_by_a_branch,
    until_it_is_flat,
)

distributed = pytest.importorskip("distributed", reason="Dask is an optional extra of the package")
import dask.array as da  # noqa: E402  (after the check that it is there)

from tests.distributed.clusters import cluster, lose  # noqa: E402

pytestmark = pytest.mark.usefixtures("by_numpy")


def test_on_workers_with_the_same_bits(tier: str):
    found: list[list[bytes]] = []
    for count in (1, 2):
        with cluster(count) as own, distributed.Client(own) as client:
            bits: list[bytes] = []
            for f in (until_it_is_flat, boosting, rows_by_a_branch):
                results = tm.distribute(f, client)(tm.shard(X, rows=20), tm.shard(Y))
                compared([np.asarray(r) for r in results], f(X, Y))
                lazily = tm.distribute(f, client)(da.from_array(X, chunks=(20, 3)), da.from_array(Y, chunks=20))
                bits += [np.asarray(r).tobytes() for r in (*results, *lazily)]
            found.append(bits)
    assert found[0] == found[1]


def test_gradients_in_a_loop():
    with cluster(2) as own, distributed.Client(own) as client:
        w = tm.distribute(by_gradients, client)(tm.shard(X, rows=20), tm.shard(Y))
        np.testing.assert_allclose(w, tm.tensor(by_gradients)(X, Y), rtol=1e-10)


def test_rows_that_iterations_have_left_on_a_lost_worker_are_made_again():
    with cluster(4) as own, distributed.Client(own) as client:
        f = tm.distribute(boosting, client)
        x, y = tm.shard(X, rows=8), tm.shard(Y)
        before = [np.asarray(r).tobytes() for r in f(x, y)]
        for worker in list(own.workers.values())[:2]:
            thread = threading.Timer(0.1, client.sync, args=(lose, worker))
            thread.start()
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # it tells of the worker
                assert [np.asarray(r).tobytes() for r in f(x, y)] == before
            thread.join()


def test_a_plan_counts_iterations():
    with cluster(2) as own, distributed.Client(own) as client:
        x, y = da.zeros((10**6, 3), chunks=(10**5, 3)), da.zeros(10**6, chunks=10**5)
        one = tm.distribute(lambda x, y: x.T @ (x @ np.ones(3) - y), client).plan(x, y)
        twenty = tm.distribute(descent, client).plan(x, y)
        assert sum(s.times for s in one.stages) == 1
        assert sum(s.times for s in twenty.stages) == 20
        assert 10 * one.alone < twenty.alone < 40 * one.alone
