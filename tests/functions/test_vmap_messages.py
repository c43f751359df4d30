"""Errors of rows of a batch: the message is that of the first row that fails, also where its parts have another size in each row."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm


def places(x):
    if x.sum() > 0:
        raise ValueError(f"places {np.flatnonzero(x > 0)}")
    return x


def chosen(x):
    if x.max() > 2:
        raise ValueError(f"too large: {x[x > 2]} of {len(x)}")
    return x * 2


def distinct(x):
    if x[0] > 1:
        raise KeyError(f"{np.unique(x)}")
    return x.sum()


def asserted(x):
    if not x.min() > -5:
        raise AssertionError(f"below: {x[x < 0]}, sum {x.sum()}")
    return x


def after_another(x):
    if x[0] > 100:
        raise TypeError("never")
    y = x + 1
    if y.sum() > 5:
        raise ValueError(f"{np.flatnonzero(y > 1)} and {y[y > 1]}")
    if y[0] < -3:
        raise KeyError(f"{y[y < 0]}")
    return y


def how_many(x):
    k = np.count_nonzero(x > 0)
    if k > 1:
        raise ValueError(f"{k} are positive, at {np.flatnonzero(x > 0)}")
    return k


PROGRAMS = [places, chosen, distinct, asserted, after_another, how_many]
BATCHES = [
    np.array([[-1.0, -2.0, 0.0], [3.0, 1.0, -1.0], [2.0, 2.0, 2.0]]),
    np.array([[-1.0, -2.0, -3.0], [-3.0, 1.0, -9.0]]),
    np.array([[10.0, 2.0, 3.0], [-300.0, 1.0, 0.0]]),
    np.array([[-1.0, -2.0, 0.5], [-0.5, -1.0, 0.25]]),
    np.array([[4.0, -9.0, 1.0]]),
]


def of_rows(function, rows):
    return np.array([function(row) for row in rows])


def outcome(function, *args):
    try:
        return np.asarray(function(*args)).tolist()
    except Exception as error:  # noqa: BLE001 (errors are what is compared)
        return type(error).__name__, str(error)


@pytest.mark.parametrize("batch", range(len(BATCHES)))
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_first_row_that_fails_tells(program, batch):
    rows = BATCHES[batch]
    expected = outcome(of_rows, program, rows)
    assert outcome(tm.vmap(program), rows) == expected
    assert outcome(tm.vmap(program), rows) == expected


@pytest.mark.parametrize("program", [places, chosen, after_another])
def test_compiled(program):
    made = tm.compile(tm.vmap(program), "float64[n, 3]")
    for rows in BATCHES:
        if len(rows) > 1:
            assert outcome(made, rows) == outcome(of_rows, program, rows)


def test_a_batch_of_batches():
    both = np.stack([BATCHES[3], BATCHES[0][:2]])
    found = outcome(tm.vmap(tm.vmap(places)), both)
    assert found == outcome(of_rows, places, both.reshape(4, 3))


def test_gradients_of_rows():
    found = tm.vmap(tm.grad(lambda x: np.sum(chosen(x) ** 2)))(BATCHES[3])
    np.testing.assert_allclose(found, 8 * BATCHES[3])
    with pytest.raises(ValueError, match="too large"):
        tm.vmap(tm.grad(lambda x: np.sum(chosen(x) ** 2)))(BATCHES[0])
