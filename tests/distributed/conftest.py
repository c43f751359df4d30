"""What tests of clusters share."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of two workers in this process."""
    distributed = pytest.importorskip("distributed", reason="Dask is an optional extra of the package")
    from tests.distributed.clusters import cluster

    with cluster(2) as own, distributed.Client(own) as found:
        yield found
