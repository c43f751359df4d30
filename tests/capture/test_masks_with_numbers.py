"""A mask beside numbers, slices and new axes in one index: NumPy's elements, shape and errors."""

import random
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3, 5))
SLICES = slice(None), slice(1, None), slice(None, None, 2)


def drawn(seed: int) -> tuple[Any, ...]:
    draw, items, axis, has_mask = random.Random(seed), [], 0, False
    while axis < 3 and draw.random() > 0.1:
        kind = draw.choice("isni" if has_mask else "misn2")
        if kind == "m" or (kind == "2" and axis < 2):
            items.append(RNG.random(X.shape[axis : axis + 1 + (kind == "2")]) > draw.choice([0.3, 0.5, 1.1]))
            axis, has_mask = axis + items[-1].ndim, True
        elif kind == "n":
            items.append(None)
        else:
            items.append(draw.choice([0, 1, -1, 2, -3, np.int64(1), 7]) if kind == "i" else draw.choice(SLICES))
            axis += 1
    return tuple(items)


@pytest.mark.parametrize("part", range(4))
def test_masks_beside_numbers(part: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    for seed in range(40 * part, 40 * part + 40):
        index = drawn(seed)
        try:
            expected = X[index]
        except IndexError:
            with pytest.raises(IndexError):
                tm.tensor(lambda x, index=index: x[index] * 1)(X)
            continue
        found = np.asarray(tm.tensor(lambda x, index=index: x[index] * 1)(X))
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
