"""Lazy arrays where None stands beside arrays, as matplotlib's bars ask for it."""

import matplotlib as mpl
import numpy as np
import pytest

import tensormagic as tm

mpl.use("Agg")


@pytest.mark.parametrize(
    "made", [lambda y: y, lambda y: y.sum() + y, lambda y: y[1:], lambda y: y * 1j, lambda y: y > 1]
)
def test_none_is_an_object_as_in_numpy(made):
    values = np.arange(4.0)
    lazy, plain = made(tm.tensor(values) * 2), made(values * 2)
    for args in ((lazy, None), (None, lazy, 3), (lazy.sum(), None), (lazy, np.ones((2, 1)), None)):
        found = np.broadcast_arrays(*args)
        for one, other in zip(
            found, np.broadcast_arrays(*[plain if a is lazy else np.asarray(a) for a in args]), strict=True
        ):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_bars():
    import matplotlib.pyplot as plt

    y = tm.tensor(np.arange(1, 4.0)) * 2
    figure, axes = plt.subplots()
    for bars, sizes in (
        (axes.bar(y, 3), [3, 3, 3]),
        (axes.bar(y, y, width=y / 10), [2, 4, 6]),
        (axes.barh(y, y), [1, 1, 1]),
    ):
        assert len(bars) == 3
        if len(set(sizes)) > 1:
            assert [b.get_height() for b in bars] == sizes
    plt.close(figure)
