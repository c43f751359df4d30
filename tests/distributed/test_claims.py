"""What documents about older systems say of batches over workers, held to here; each test has the number of the claim in its name."""

import numpy as np
import pytest

import tensormagic as tm

distributed = pytest.importorskip("distributed", reason="Dask is an optional extra of the package")
import dask.array as da  # noqa: E402  (after the check that it is there)

from tests.distributed.clusters import cluster  # noqa: E402

pytestmark = pytest.mark.usefixtures("by_numpy")

X = np.random.default_rng(1).normal(size=(120, 3))


def loss(x, w):
    return np.mean(np.log1p(np.exp(-(x @ w))))


def test_b26_b36_b50_b51_f4_gradients_chunks_and_sums_on_any_number_of_workers():
    found = []
    for count in (1, 2):
        with cluster(count) as own, distributed.Client(own) as client:
            slope = tm.distribute(tm.grad(lambda a, b: np.sum(a * b)), client)
            threes = slope(tm.shard(np.full(8, 2.0)), tm.shard(np.full(8, 3.0)))
            assert np.asarray(threes).tolist() == [3.0] * 8
            assert tm.distribute(lambda x: x.sum(), client)(da.arange(12.0, chunks=4)) == 66.0
            rows = tm.distribute(lambda x: np.exp(x) - 1, client)(da.from_array(X, chunks=(50, 3)))
            np.testing.assert_array_equal(np.asarray(rows), tm.tensor(lambda x: np.exp(x) - 1)(X))
            found.append(
                tm.distribute(tm.value_and_grad(loss, 1), client)(da.from_array(X, chunks=(50, 3)), np.ones(3))
            )
            with pytest.raises(tm.CaptureError, match="sort") as caught:
                tm.distribute(lambda x: np.sort(x, 0)[0], client)(da.from_array(X, chunks=(50, 3)))
            assert "test_claims.py line" in str(caught.value)
    (one, first), (two, second) = found
    assert one == two
    assert np.array_equal(first, second)
    value, slopes = tm.value_and_grad(loss, 1)(X, np.ones(3))
    np.testing.assert_allclose(one, value, rtol=1e-13)
    np.testing.assert_allclose(first, slopes, rtol=1e-12)
