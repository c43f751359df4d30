"""Sizes that are computed of all rows, as the number of classes is, over chunks: NumPy's values, types, shapes and errors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.tracing import Typed
from tensormagic.ir.errors import CaptureError
from tensormagic.ir.type import Type
from tests.distributed.test_splitting import ROWS, N, bounds_of, by_chunks, leaves, splitted

RNG = np.random.default_rng(19)
TYPES = (Typed(Type(np.dtype(np.int64), (N,))), Typed(Type(np.dtype(float), (N,))))
LABELS = RNG.integers(0, 5, ROWS)
WEIGHTS = RNG.random(ROWS)


pytestmark = pytest.mark.usefixtures("tier")


def group_sums(k: Any, v: Any) -> Any:
    sums = np.zeros((k.max() + 1, 2))
    np.add.at(sums, k, np.stack([v, v * v], axis=1))
    return sums / np.bincount(k)[:, None]


def within(k: Any, v: Any) -> Any:
    means = np.bincount(k, weights=v) / np.bincount(k)
    return ((v - means[k]) ** 2).mean()


def entropy(k: Any, v: Any) -> Any:
    p = np.bincount(k) / len(v)
    p = p[p > 0]
    return -(p * np.log(p)).sum()


def slope(k: Any, v: Any) -> Any:
    def loss(w: Any) -> Any:
        return ((np.bincount(k, weights=v * w) / np.maximum(np.bincount(k), 1)) ** 2).sum()

    return tm.grad(loss)(2.0)


def seen(k: Any, v: Any) -> Any:
    there = np.zeros(k.max() + 1, bool)
    there[k] = True
    return there, there.sum() + v.max()


CASES: dict[str, Callable[..., Any]] = {
    "counts": lambda k, v: np.bincount(k),
    "counts of at least some": lambda k, v: (np.bincount(k, minlength=9), np.bincount(k, minlength=2)),
    "sums by class": lambda k, v: np.bincount(k, weights=v),
    "the most frequent": lambda k, v: (np.bincount(k).argmax(), (np.bincount(k) / len(k)).max()),
    "a mean of each class": group_sums,
    "around the mean of the class": within,
    "of what there is": entropy,
    "one row for each class": lambda k, v: np.eye(k.max() + 1)[k],
    "a column for each class": lambda k, v: (k[:, None] == np.arange(k.max() + 1)) * v[:, None],
    "counted by comparing": lambda k, v: (k[:, None] == np.arange(k.max() + 1)).sum(axis=0),
    "as long as a row says": lambda k, v: (np.zeros(k[0] + 1), np.arange(k[-1])),
    "as long as two say": lambda k, v: np.zeros((k.max() + 1, k.min() + 2)) + v.sum(),
    "marks": seen,
    "a gradient": slope,
}


@pytest.mark.parametrize("labels", [LABELS, LABELS * 0, LABELS * 3 + 1, LABELS % 2], ids=["five", "one", "gaps", "two"])
@pytest.mark.parametrize("name", CASES)
def test_sizes_computed_of_all_rows(name: str, labels: Any):
    function = CASES[name]
    found = splitted(function, TYPES)
    with np.errstate(invalid="ignore"):  # of a class without rows
        expected = leaves(function(labels, WEIGHTS))
    for count in (1, 2, 3, 7):
        with np.errstate(invalid="ignore"):
            results = by_chunks(found, (labels, WEIGHTS), bounds_of(count))
        for result, numpys in zip(results, expected, strict=True):
            assert np.shape(result) == np.shape(numpys)
            assert np.asarray(result).dtype == np.asarray(numpys).dtype
            np.testing.assert_allclose(result, numpys, rtol=1e-12)


@pytest.mark.parametrize("name", ["counts", "a mean of each class", "one row for each class"])
def test_sizes_below_zero(name: str):
    found = splitted(CASES[name], TYPES)
    with pytest.raises(ValueError, match=r"negative|at least 0"):
        by_chunks(found, (LABELS - 9, WEIGHTS), bounds_of(3))


def marked(k: Any, v: Any) -> Any:
    flags = np.full(9, 3.0)
    flags[k] = -0.0
    return flags


def columns(k: Any, v: Any) -> Any:
    x = np.stack([v, v + 1, v + 2], axis=1)
    x[:, [0, 2]] = 0
    x[:, [1]] = k[:, None]
    return x


@pytest.mark.parametrize("function", [marked, columns])
def test_stores_by_index_arrays(function: Callable[..., Any]):
    found = splitted(function, TYPES)
    (expected,) = leaves(function(LABELS, WEIGHTS))
    for count in (1, 3):
        (result,) = by_chunks(found, (LABELS, WEIGHTS), bounds_of(count))
        np.testing.assert_array_equal(result, expected)
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


def last(k: Any, v: Any) -> Any:
    flags = np.zeros(9)
    flags[k] = v
    return flags


def test_a_store_of_which_the_last_row_counts_is_refused():
    with pytest.raises(CaptureError, match="sets places that rows name, of which the last one counts"):
        splitted(last, TYPES)


def one_after_the_other(k: Any, v: Any) -> Any:
    sums = np.zeros(k.max() + 1)
    for j in range(len(sums)):
        sums[j] = v[k == j].sum()
    return sums


def test_such_a_size_in_a_loop_that_takes_rows_together_is_refused():
    with pytest.raises(CaptureError, match="has a size that depends on data, in a loop or branch that takes all rows"):
        splitted(one_after_the_other, TYPES)
