"""Functions of vecmath that are right for a part of the numbers only: their accuracy there."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tensormagic.backend.vecmath import functions
from tests.backend.test_vecmath import DTYPES, EXTENDED, NAN, errors, loop_of, wider


@pytest.mark.parametrize("dtype", DTYPES if EXTENDED else DTYPES[1:])
def test_log1p_of_numbers_between_0_and_1(dtype: type) -> None:
    generator = np.random.default_rng(8)
    parts = [generator.uniform(0, 1, 100_000), 10.0 ** generator.uniform(-30, 0, 50_000)]
    x = np.concatenate([*parts, generator.uniform(0.499, 0.501, 50_000), [0.0, 0.5, 1.0, NAN]]).astype(dtype)
    out = np.empty_like(x)
    loop_of(functions.PARTIAL["log1p_unit"], dtype)(x, out)
    assert math.isnan(out[-1])
    assert errors(out[:-1], np.log1p(x[:-1].astype(wider(dtype)))).max() <= 1
