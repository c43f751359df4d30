"""``np.poly1d`` of lazy coefficients, in NumPy's functions of polynomials, in plain cells and in captured code."""

from __future__ import annotations

import numpy as np
import pytest

import tensormagic as tm

X = np.array([1.0, 2.0, 3.0])
Z = np.array([2.0, 1.0])
TEXTS = [
    "np.roots(q)",
    "np.polyval(q, x)",
    "np.polyval(q, 2.0)",
    "np.polyadd(q, z)",
    "np.polysub(z, q)",
    "np.polymul(q, z)",
    "np.polymul(z, q)",
    "np.polydiv(q, z)[0]",
    "np.polydiv(q, z)[1]",
    "np.polyder(q)",
    "np.polyder(m=1, p=q)",
    "np.polyint(q, 1, k=z[0])",
    "q(q)",
    "q + z",
    "q.deriv()(x)",
    "np.poly(q)",
]


def polynomial(x):
    return np.poly1d(np.polyfit(x, x**2 - 3 * x + 1, 2))


def same(found, wanted):
    assert isinstance(found, np.poly1d) == isinstance(wanted, np.poly1d)
    if isinstance(wanted, np.poly1d):
        found, wanted = found.coeffs, wanted.coeffs
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("text", TEXTS)
def test_values_and_classes_are_numpys(text):
    wanted = eval(text, {"np": np, "q": polynomial(X), "x": X, "z": Z})
    x, z = tm.tensor(X), tm.tensor(Z)
    same(eval(text, {"np": np, "q": polynomial(x), "x": x, "z": z}), wanted)


@pytest.mark.parametrize("text", TEXTS)
def test_in_cells(text, notebook):
    wanted = eval(text, {"np": np, "q": polynomial(X), "x": X, "z": Z})
    notebook.ok("%%tensor\nx = np.array([1.0, 2.0, 3.0]) * 1.0\nz = np.array([2.0, 1.0]) * 1.0")
    notebook.ok("%%tensor\nq = np.poly1d(np.polyfit(x, x**2 - 3 * x + 1, 2))")
    notebook.ok(f"%%tensor\nfound = {text}")
    same(notebook["found"], wanted)
