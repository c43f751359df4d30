"""Rows that masks pick, single rows, and where the largest is, over chunks: NumPy's values to the bit where nothing is summed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.tracing import Typed
from tensormagic.ir.type import Type
from tests.distributed.test_splitting import ROWS, N, Y, bounds_of, by_chunks, leaves, splitted

RNG = np.random.default_rng(11)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.0])
TYPES = (Typed(Type(np.dtype(float), (N, 3))), Typed(Type(np.dtype(np.int64), (N,))))
INTS = RNG.integers(-3, 4, ROWS)


pytestmark = pytest.mark.usefixtures("tier")


def drawn(case: int) -> tuple[Any, Any]:
    """Rows with special values, and labels: several shares of nan, ties, and masks that pick none and all."""
    x = RNG.choice(SPECIAL[[5, 6, 0, 1, 2, 3, 4][: 3 + case % 5]], (ROWS, 3))
    return x, INTS if case % 3 else np.full(ROWS, case - 3)


def compared(function: Callable[..., Any], arrays: tuple[Any, ...], *, exact: bool, signs: bool = True) -> None:
    found = splitted(function, TYPES)
    try:
        with np.errstate(all="ignore"):
            numpys = leaves(function(*arrays))
    except ValueError as error:
        with pytest.raises(ValueError, match=str(error)[:25]):
            by_chunks(found, arrays, bounds_of(3))
        return
    for count in (1, 2, 3, 7):
        for result, expected in zip(by_chunks(found, arrays, bounds_of(count)), numpys, strict=True):
            assert np.asarray(result).dtype == np.asarray(expected).dtype
            assert np.shape(result) == np.shape(expected)
            if exact:
                np.testing.assert_array_equal(result, expected)
                if not np.any(np.equal(expected, 0)) or signs:
                    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))
            else:
                np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-14)


PICKED: dict[str, Callable[..., Any]] = {
    "the places of extremes": lambda x, k: (x.argmax(), np.argmin(x), x.argmax(axis=0), k.argmax(), (k > 0).argmax()),
    "rows of extremes": lambda x, k: (x[np.argmax(k)], x[x[:, 0].argmin()], k[np.argmin(k)]),
    "single rows": lambda x, k: (x[0], x[-1], x[2, 1], k[3], x[-2:], x[:3], k[1:4], (k > 0)[0], x[1:6:2]),
    "largest of some": lambda x, k: (x[k > 0].max(), x[k < 0, 1].min(), k[k != 2].max(), x[k > 0].max(axis=0)),
    "all or any of some": lambda x, k: (
        (x[k > 0] > 0).all(axis=0),
        (x[k < 0] < 0).any(),
        len(x[k > 1]),
        x[k == 9].size,
    ),
}


@pytest.mark.parametrize("case", range(8))
@pytest.mark.parametrize("name", PICKED)
def test_what_is_picked_has_numpys_bits(name: str, case: int):
    compared(PICKED[name], drawn(case), exact=True, signs=name != "largest of some")  # of 0.0 and -0.0 either is


SUMS: dict[str, Callable[..., Any]] = {
    "sums": lambda x, k: (x[k > 0].sum(axis=0), k[k > 0].sum(), x[x > 0].sum(), np.log(x[x > 0]).sum()),
    "means": lambda x, k: (x[k >= 0].mean(axis=0), x[k >= 0].std(), (x[k >= 0, 0] * x[k >= 0, 1]).mean()),
    "products": lambda x, k: (x[k > 0].T @ x[k > 0], x[k > 0].T @ k[k > 0], (x[k > 0] + 1).prod(axis=0)),
    "by class": lambda x, k: tuple(x[k == c].mean(axis=0) for c in range(-1, 2)),
    "a row and a mean": lambda x, k: ((x - x[0]).sum(axis=0), x[k > 0].sum(axis=0) / len(x), (x[k > 0] - x[0]).sum()),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_what_is_picked(name: str):
    x = RNG.normal(size=(ROWS, 3))
    k = np.resize(np.arange(-2, 3), ROWS)
    compared(SUMS[name], (x, k), exact=False)


def test_gradients_over_masks():
    slope = tm.grad(lambda y, k, w: (np.log1p(np.exp(y[k > 0] * w)) ** 2).mean(), argnums=2)
    k = np.resize(np.arange(-2, 3), ROWS)
    found = splitted(slope, ("float64[n]", "int64[n]", "float64"))
    for count in (1, 3):
        (result,) = by_chunks(found, (Y, k, 0.5), bounds_of(count))
        np.testing.assert_allclose(result, slope(Y, k, 0.5), rtol=1e-12)


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "a data-dependent number": (lambda x, k: x[k > 0], "places"),
    "sorted": (lambda x, k: np.sort(x[k > 0], axis=0)[0], "places"),
    "many rows": (lambda x, k: x[:9].sum(), "slice picks or moves rows"),
    "looked up": (lambda x, k: x[k[0]], "position has no rule"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str):
    function, message = REFUSED[name]
    with pytest.raises(tm.CaptureError, match=message) as caught:
        splitted(function, TYPES)
    assert f"test_few_rows.py line {function.__code__.co_firstlineno}: " in str(caught.value)
