"""What is known while code is captured, from sizes and constants alone: where it was of use, the sizes are fixed."""

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import check


def over_three(x):
    return x * 2 if np.ones(len(x)).sum() > 3 else x * 3


def places_over_three(x):
    return x * 2 if np.arange(len(x))[-1] > 3 else x * 3


def rows(x):
    total = 0
    for r in np.zeros((2, len(x))):
        total += r.size if (r + 1).sum() > 4 else -r.size
    return x + total


@pytest.mark.parametrize("function", [over_three, places_over_three, rows])
def test_a_test_on_an_array_whose_length_is_an_argument_s(function):
    captured = tm.tensor(function)
    for n in (2, 4, 5, 9, 3):
        x = np.arange(float(n))
        assert np.array_equal(captured(x), function(x))


@pytest.mark.parametrize("first", ["z.fill(True)", "z = np.ones((1, 3)) + 0", "z[:] = 1"])
def test_a_test_on_elements_that_are_chosen_of_known_ones(first: str):
    given = np.array([[5.0, 1.0, 0.0]])
    check(f"{first}\nz[np.abs(z) < 2] = z[np.abs(z) < 2][::-1]\nv = 0\nif z.sum() > 1:\n    v = 1\nv", z=given)
    check(f"{first}\nw = z[z < 2]\nv = len(w) if w.sum() > 2 else -1\nv", z=given)


SIZES = [(6, 3), (3, 6), (4, 4), (9, 2), (2, 2), (1, 3), (3, 1)]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: np.squeeze(x[None, : len(y) - 1]),
        lambda x, y: np.min(x[len(y) :], initial=9.0),
        lambda x, y: x[len(y) - 2 :].sum() if x[len(y) :].size else x[:-1] + np.squeeze(x[: len(x) - 1]),
        lambda x, y: np.array_split(x, 2)[1] * 2,
    ],
)
@pytest.mark.parametrize("back", [1, -1])
def test_what_is_left_of_an_axis_may_be_one_or_nothing_for_other_arguments(function, back):
    captured = tm.tensor(function)
    for n, m in SIZES[::back]:
        x, y = np.arange(1.0, n + 1), np.ones(m)
        ours, numpys = captured(x, y), function(x, y)
        assert np.shape(ours) == np.shape(numpys)
        assert np.array_equal(ours, numpys)
