"""Every way to differentiate drawn functions gives what differences give: a share of what ``scripts/check_same_derivatives.py`` draws."""

import numpy as np
import pytest

import tensormagic as tm
from tests.functions import drawn_derivatives

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("by_numpy"),
]  # of NumPy, at points where it has none to give


@pytest.mark.parametrize("start", [0, 1000])
def test_every_way_gives_the_same(start):
    found = [wrong for seed in range(start, start + 6) if (wrong := drawn_derivatives.compared(seed)) is not None]
    assert [w for wrong in found for w in wrong] == []
    assert len(found) >= 4


def test_what_is_drawn_has_ties_zeros_and_nothing():
    points = [d.at for seed in range(200) if (d := drawn_derivatives.draw(seed)) is not None]
    assert {p.dtype.char for p in points} == {"d", "f", "D"}
    assert any(not p.size for p in points)
    assert any(p.size > 1 and (p == p.ravel()[0]).all() for p in points)
    assert any((p == 0).any() for p in points)


def test_functions_of_empty_matrices():
    import scipy.linalg

    for function in (scipy.linalg.expm, scipy.linalg.sqrtm):
        assert tm.grad(lambda x, function=function: function(x).sum())(np.zeros((0, 0))).shape == (0, 0)
        assert tm.jvp(function, (np.zeros((0, 0)),), (np.zeros((0, 0)),))[1].shape == (0, 0)
