"""The sign of zero of sums at ``exact``: NumPy's begin at 0, also where they have one element."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

ROW = np.array([[-0.0, 0.0]])
SUMS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: np.sum(x, axis=0),
    "of a part": lambda x: np.concatenate([x, x])[1:].sum(0),
    "of all": lambda x: x[:, :1].sum(),
    "mean": lambda x: np.mean(x, axis=0),
    "reduce": lambda x: np.add.reduce(x),
    "cumsum": np.cumsum,
    "product": lambda x: np.prod(x, axis=0),
    "einsum": lambda x: np.einsum("ij->j", x),
    "nansum": lambda x: np.nansum(x, axis=0),
    "matmul": lambda x: np.ones((1, 1)) @ x,
}


@pytest.fixture(params=["numpy", "numba"])
def _exact(request: pytest.FixtureRequest) -> Iterator[None]:
    before = tm.config.tier, tm.config.math
    tm.config.tier, tm.config.math = request.param, "exact"
    yield
    tm.config.tier, tm.config.math = before


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.usefixtures("_exact")
def test_sums_over_one_element(name: str):
    found, expected = tm.tensor(SUMS[name])(ROW), SUMS[name](ROW)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize(
    "make", [lambda x: x, lambda x: x[0, 0], lambda x: float(x[0, 0]), lambda x: np.array(x[0, 0])]
)
def test_adding_zero_takes_the_sign_of_zero_at_stable_too(make: Callable[[Any], Any]):
    def added(x: Any) -> Any:
        return np.round(x, 2) + 0, 1 / (x + 0.0)

    with np.errstate(all="ignore"):
        found = tm.tensor(added)(np.float64(1) * make(ROW))
        expected = added(np.float64(1) * make(ROW))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))
