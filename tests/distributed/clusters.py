"""Clusters of Dask's for tests: workers of one thread, in this process."""

from typing import Any

import pytest

distributed = pytest.importorskip("distributed", reason="Dask is an optional extra of the package")


def cluster(count: int) -> Any:
    """A cluster of ``count`` workers, to be entered and left."""
    return distributed.LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=False,
        memory_limit=0,  # else workers pause where this process, with all tests before, has more than a share of the machine
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    )


async def lose(worker: Any) -> None:
    """Have a worker leave at once, with all that it has."""
    await worker.close(nanny=False, executor_wait=False, reason="lost by a test")
