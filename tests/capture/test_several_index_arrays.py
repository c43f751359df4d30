"""Several index arrays, ``x[i, j]``: errors name the index and its axis, and what they choose is read in one pass, on a card too."""

import re

import numpy as np
import pytest

import tensormagic as tm


@pytest.mark.parametrize("tier", ["numpy", "numba"])
@pytest.mark.parametrize(
    ("rows", "columns"),
    [([0, 1], [1, 9]), ([0, -5], [0, 0]), ([[0], [1]], [[0, -7]]), ([[0], [9]], [[]]), ([[0], [-1]], [[3, -4]])],
)
def test_several_index_arrays_say_which_axis_they_leave(rows, columns, tier):
    def read(x, i, j):
        return x[i, j] * 2

    def stored(x, i, j):
        x = x.copy()
        x[i, j] = 5
        return x

    x, i, j = np.arange(12.0).reshape(3, 4), np.array(rows), np.array(columns, int)
    for f in (read, stored):
        try:
            expected, message = f(x, i, j), None
        except IndexError as error:
            expected, message = None, str(error)
        with tm.config.using(tier=tier):
            if message:
                with pytest.raises(IndexError, match=re.escape(message)):
                    tm.tensor(f)(x, i, j)
            else:
                np.testing.assert_array_equal(tm.tensor(f)(x, i, j), expected)


def test_elements_by_several_index_arrays_take_one_pass():
    def between(image, x, y):
        i, j = [np.clip(np.floor(v).astype(int), 0, n - 2) for v, n in zip((y, x), image.shape, strict=True)]
        fx, fy = x - j, y - i
        above = image[i, j] * (1 - fx) + image[i, j + 1] * fx
        return above * (1 - fy) + (image[i + 1, j] * (1 - fx) + image[i + 1, j + 1] * fx) * fy

    image, x, y = np.random.default_rng(0).normal(size=(30, 40)), np.linspace(0, 38.9, 500), np.linspace(28.9, 0, 500)
    compiled = tm.compile(between, image, x, y)
    assert len(compiled.kernels) == 1
    memory = compiled.memory(image, x, y)
    assert int(memory.working) <= int(memory.results) + 64  # and what errors tell
    np.testing.assert_allclose(compiled(image, x, y), between(image, x, y))


@pytest.mark.parametrize("where", [(np.arange(3), np.array([2, 0, 2])), (np.array([[0], [2]]), np.array([1, 2]))])
def test_several_index_arrays_are_checked_in_one_kernel_of_a_card(where):
    text = (np.exp(tm.tensor(np.arange(9.0).reshape(3, 3)))[where] * 2).code("cuda")
    kernel = next(part for part in text.split("\n\n# floordiv") if "place" in part)
    assert kernel.count(" = 1  # ") == 2  # faults that are noted, one for each axis
    assert "* 2.0" in kernel
