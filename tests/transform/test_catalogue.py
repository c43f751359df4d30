"""The rewrites that the field knows, by number, from NumPy text: each fires, and gives what NumPy gives."""

import numpy as np
import pytest

from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.config import config
from tests.transform.catalogue import ELSEWHERE, MISSING, ROWS, fires, function, normal, values


@pytest.mark.parametrize("number", ROWS)
def test_rewrites_fire_and_give_what_numpy_gives(number, monkeypatch):
    monkeypatch.setattr(
        config, "tier", "numpy"
    )  # also of functions of ours in a text: compiled, exp has digits of its own
    row = ROWS[number]
    assert fires(row) == (number not in MISSING)
    expected = np.asarray(function(row.text)(*values()))
    found = np.asarray(evaluate_graph(normal(row.text, row.level).graph, values())[0])
    assert found.dtype == expected.dtype
    if row.level == "exact":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_the_catalogue_is_whole():
    assert {int(n.rstrip("abc")) for n in (*ROWS, *ELSEWHERE)} == set(range(1, 175))
