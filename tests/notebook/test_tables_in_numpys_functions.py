"""Functions of NumPy and SciPy see a Series or a DataFrame as an array, whose parts are not aligned by labels; methods are pandas'."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

START = """import numpy as np, pandas as pd, scipy
from scipy import integrate, stats, signal
from scipy.spatial import distance
rng = np.random.default_rng(0)
s, t = pd.Series(rng.normal(size=6), list('uvwxyz')), pd.Series(rng.normal(size=6))
df = pd.DataFrame(rng.normal(size=(6, 3)), columns=list('xyz'))
lettered = pd.DataFrame(rng.normal(size=(6, 3)), list('uvwxyz'), list('xyz'))"""
OF_SERIES = [
    "np.diff({})",
    "np.diff({}, 2)",
    "np.trapezoid({})",
    "np.trapezoid({}, np.arange(6.0) ** 2)",
    "np.gradient({})",
    "np.ediff1d({})",
    "np.split({}, 2)",
    "np.asarray({})[1:] - np.asarray({})[:-1]",
    "np.convolve({}, {})",
    "integrate.trapezoid({})",
    "integrate.simpson({})",
    "integrate.cumulative_trapezoid({})",
    "signal.detrend({})",
    "stats.zscore({})",
    "distance.euclidean({}, {})",
]
OF_TABLES = [
    "np.diff({}, axis=0)",
    "np.diff({}, axis=1)",
    "np.trapezoid({}, axis=0)",
    "np.gradient({}, axis=0)",
    "np.array_split({}, 2)",
    "np.asarray({})[1:] * np.asarray({})[:-1]",
    "distance.pdist({})",
    "distance.pdist({}, 'cityblock')",
    "distance.squareform(distance.pdist({}))",
    "distance.cdist({}, {})",
    "integrate.simpson({}, axis=0)",
]
LABELLED = [
    "np.clip({}, -0.5, 0.5)",
    "np.round({}, 1)",
    "np.cumsum({}, 0)",
    "np.squeeze({})",
    "np.exp({})",
    "np.where({} > 0, {}, 0.0)",
]
SERIES, TABLES = ("s", "t", "df['x']", "lettered['y']"), ("df", "lettered")
CASES = [text.replace("{}", name) for name in SERIES for text in OF_SERIES]
CASES += [text.replace("{}", name) for name in TABLES for text in OF_TABLES]
CASES += [text.replace("{}", name) for name in ("s", "t", "df", "lettered") for text in LABELLED]
CASES += ["np.transpose(df)", "np.argsort(s)", "np.transpose(lettered) @ lettered"]


def same(found, expected):
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, pd.DataFrame | pd.Series):
        return type(found) is type(expected) and found.index.equals(expected.index) and np.allclose(found, expected)
    return not isinstance(found, pd.DataFrame | pd.Series) and np.allclose(np.asarray(found), expected)


@pytest.mark.parametrize("text", CASES)
def test_as_plainly(notebook, text):
    notebook.ok(START)
    notebook.ok(f"expected = {text}")
    notebook.ok(f"%%tensor --show none\nfound = {text}")
    found = notebook.ok("found.as_table() if hasattr(found, 'as_table') else found").value
    assert same(found, notebook.ok("expected").value)


@pytest.mark.parametrize(
    "text",
    [
        "np.sum(np.diff(t) ** 2)",
        "integrate.trapezoid(t)",
        "distance.pdist(df).sum()",
        "np.sum(np.asarray(s)[1:] * np.asarray(s)[:-1])",
    ],
)
def test_in_functions_with_gradients(notebook, text):
    notebook.ok(START)
    notebook.ok(f"def f(c, s, t, df):\n    s, t, df = s * c, t * c, df * c\n    return {text}")
    slope = notebook.ok("import tensormagic as tm\ntm.grad(f)(1.5, s, t, df)").value
    step = 1e-6
    numeric = (notebook.ok(f"f(1.5 + {step}, s, t, df)").value - notebook.ok(f"f(1.5 - {step}, s, t, df)").value) / (
        2 * step
    )
    assert np.isclose(slope, numeric, rtol=1e-5)
