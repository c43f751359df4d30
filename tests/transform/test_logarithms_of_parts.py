"""Logarithms of products that are looked at through moves and checks: rules leave alone what is no product there."""

import numpy as np
import pytest
from scipy import special

import tensormagic as tm

X = np.arange(1.0, 6.0)
FUNCTIONS = {
    "squares of sizes": lambda x: np.log(np.abs(x + 2j) ** 2),
    "part of a power": lambda x: np.log((np.abs(np.fft.rfft(x)) ** 2)[1:]),
    "part of a product": lambda x: np.log((x * (x + 1))[1:]),
    "sum of a multiple": lambda x: np.log((2 * np.abs(np.sin(x))).sum()),
    "a multiple of a tail": lambda x: np.log(0.5 * special.erfc(x)),
    "a turned product": lambda x: np.log((x[:, None] * x).T),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_logarithms_of_parts_and_products(name):
    np.testing.assert_allclose(tm.tensor(FUNCTIONS[name])(X), FUNCTIONS[name](X), rtol=1e-12)


@pytest.mark.parametrize(
    "difference",
    [
        lambda x, y: np.logaddexp(x, y) - np.maximum(x, y),
        lambda x, y: np.log(np.exp(x) + np.exp(y) + np.exp(x * 0.5)) - x,
    ],
    ids=["less the maximum", "three, less one"],
)
def test_infinities_less_infinities_are_numpys(difference, monkeypatch):
    monkeypatch.setattr(tm.config, "tier", "numpy")
    x, y = np.array([np.inf, -np.inf, 3.0]), np.array([1.0, 2.0, 3.0])
    with np.errstate(all="ignore"):
        found, numpys = np.asarray(tm.tensor(difference)(tm.tensor(x), tm.tensor(y))), difference(x, y)
    np.testing.assert_allclose(found, numpys, rtol=1e-12)
