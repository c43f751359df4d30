"""Colours of columns: entries of one colour do not meet in a row, or each entry of a symmetric matrix stands alone somewhere."""

import numpy as np
import pytest
import scipy

from tensormagic.transform.sparse.colouring import column_colours, star_colours, star_places


def random_pattern(seed, rows, columns, *, symmetric=False):
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, columns)) < rng.choice([0.03, 0.1, 0.3])
    if symmetric:
        dense |= dense.T
    return scipy.sparse.csr_array(dense)


def banded(n, half):
    return scipy.sparse.csr_array(abs(np.subtract.outer(np.arange(n), np.arange(n))) <= half)


def arrow(n, hub):
    dense = np.eye(n, dtype=bool)
    dense[hub] = dense[:, hub] = True
    return scipy.sparse.csr_array(dense)


@pytest.mark.parametrize("seed", range(12))
def test_no_row_has_two_columns_of_one_colour(seed):
    pattern = random_pattern(seed, 25, 30)
    colours = column_colours(pattern)
    for row in pattern.toarray():
        used = colours[row]
        assert len(set(used.tolist())) == len(used)
    assert set(colours.tolist()) == set(range(colours.max() + 1))


@pytest.mark.parametrize("seed", range(12))
def test_every_entry_of_a_symmetric_matrix_is_found_again(seed):
    pattern = random_pattern(seed, 30, 30, symmetric=True)
    rng = np.random.default_rng(seed)
    matrix = np.where(pattern.toarray(), rng.normal(size=(30, 30)), 0)
    matrix = matrix + matrix.T
    colours = star_colours(pattern)
    passes = matrix @ np.eye(colours.max() + 1)[colours]
    rows, columns = pattern.nonzero()
    number, at = star_places(rows, columns, colours)
    np.testing.assert_array_equal(passes[at, number], matrix[rows, columns])


@pytest.mark.parametrize(("half", "count"), [(0, 1), (1, 3), (2, 5), (4, 9)])
def test_bands_take_as_many_colours_as_they_are_wide(half, count):
    assert column_colours(banded(50, half)).max() + 1 == count
    assert star_colours(banded(50, half)).max() + 1 <= 2 * count


@pytest.mark.parametrize("hub", [0, 20, 49])
def test_an_arrow_takes_two_colours_where_it_is_symmetric(hub):
    assert column_colours(arrow(50, hub)).max() + 1 == 50
    assert star_colours(arrow(50, hub)).max() + 1 == 2


def test_dense_and_empty_matrices():
    assert column_colours(scipy.sparse.csr_array(np.ones((3, 4), bool))).tolist() == [0, 1, 2, 3]
    assert column_colours(scipy.sparse.csr_array((0, 4), dtype=bool)).tolist() == [0, 0, 0, 0]
    assert column_colours(scipy.sparse.csr_array((4, 0), dtype=bool)).tolist() == []
    assert star_colours(scipy.sparse.csr_array((3, 3), dtype=bool)).tolist() == [0, 0, 0]
