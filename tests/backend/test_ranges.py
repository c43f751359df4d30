"""What is known of numbers before they are there, and the shorter functions that kernels then take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.planning.plan import plan_graph

X = np.array([-800.0, -3.0, -1e-300, 0.0, 2.5, 1000.0, np.inf, -np.inf, np.nan])

SHORT: list[Callable[[Any], Any]] = [
    lambda x: np.log1p(np.exp(-abs(x))),
    lambda x: np.log1p(np.exp(-(x * x))),
    lambda x: np.log1p(np.exp(np.minimum(x, 0))),
    lambda x: np.log1p(np.exp2(-np.maximum(x, 1))),
    lambda x: np.log1p(np.exp(-abs(x)))[:, None] * np.ones(2),
]
LONG: list[Callable[[Any], Any]] = [
    lambda x: np.log1p(np.exp(x)),
    lambda x: np.log1p(np.exp(-x)),
    lambda x: np.log1p(abs(x)),
    lambda x: np.log1p(np.exp(np.minimum(x, 1))),
    lambda x: np.log1p(np.exp(-np.maximum(x, -1))),
    lambda x: np.log1p(np.exp(x * abs(x))),
]


def source_of(function: Callable[[Any], Any]) -> str:
    return "".join(plan_graph(tm.tensor(function).graph(X)).sources)


@pytest.mark.parametrize("function", SHORT)
def test_the_logarithm_of_one_and_a_number_of_the_unit_interval(
    function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "log1p_unit(" in source_of(function)
    monkeypatch.setattr(tm.config, "tier", "numba")
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.asarray(tm.tensor(function)(X)), function(X), rtol=4e-16)


@pytest.mark.parametrize("function", LONG)
def test_any_other_number_has_the_whole_logarithm(function: Callable[[Any], Any]) -> None:
    assert "log1p_unit(" not in source_of(function)
