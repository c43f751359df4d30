"""Estimators of scikit-learn on lazy arrays, in plain and in captured cells: they copy what they store into, as of arrays."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
ESTIMATORS = {
    "cluster": ("KMeans(2, n_init=1, random_state=0)", "fit_predict(data)"),
    "decomposition": ("PCA(2)", "fit_transform(data)"),
    "preprocessing": ("StandardScaler()", "fit_transform(data)"),
    "linear_model": ("LinearRegression()", "fit(data, data[:, 0]).predict(data)"),
    "mixture": ("GaussianMixture(2, random_state=0)", "fit(data).means_"),
    "cross_decomposition": ("PLSRegression(1)", "fit(data, data[:, 0]).coef_"),
}
MADE = "data = np.random.default_rng(3).normal(size=(30, 4)) * 2 + 1"


@pytest.mark.parametrize("magic", ["", "%%tensor -q\n"])
@pytest.mark.parametrize("module", ESTIMATORS)
def test_they_give_what_they_give_of_arrays_and_leave_these_as_they_are(notebook, module, magic):
    made, use = ESTIMATORS[module]
    notebook.ok(f"from sklearn.{module} import {made.partition('(')[0]}\n{MADE}\nexpected = {made}.{use}")
    notebook.ok(f"%%tensor -q\n{MADE}")
    notebook.ok(f"{magic}found = {made}.{use}")
    np.testing.assert_allclose(notebook["found"], notebook["expected"], rtol=1e-9, atol=1e-12)
    notebook.ok(f"lazy = np.array(data)\n{MADE}")
    np.testing.assert_array_equal(notebook["lazy"], notebook["data"])


def test_the_array_that_a_library_is_given_shares_the_memory_of_the_lazy_one(notebook):
    notebook.ok(f"%%tensor -q\n{MADE}")
    space = {"__name__": "library", "np": np}
    shared = "np.may_share_memory(a, x), np.shares_memory(x, a), np.may_share_memory(a.copy(), x)"
    exec(f"def shared(x):\n    a = np.asarray(x)\n    return {shared}", space)
    notebook["shared"] = space["shared"]
    notebook.ok("found = shared(data)\nown = np.asarray(data)\nalso = np.shares_memory(own, data)")
    assert notebook["found"] == (True, True, False)
    assert notebook["also"] is True
