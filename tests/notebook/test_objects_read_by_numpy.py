"""Objects of the user's with ``__array__`` and operators: NumPy's functions read the arrays that the cell has computed there."""

from __future__ import annotations

import numpy as np
import pytest

from tests.notebook.conftest import Notebook

MADE = """
import numpy as np

class Matrix:
    def __init__(self, a):
        self.a = np.asarray(a, float)
    def __iadd__(self, other):
        self.a = self.a + other
        return self
    def __matmul__(self, other):
        return Matrix(self.a @ other.a)
    def __array__(self, dtype=None, copy=None):
        return self.a
    def sum(self, *args, **options):
        return "its own"
m, k = Matrix([[1, 2], [3, 4]]), Matrix(np.eye(2))
"""
FORMS = [
    "np.trace(m)", "np.mean(m, axis=0)", "np.linalg.inv(m)", "np.dot(m, k)", "np.asarray(m).max()", "np.array(m)",
    "np.concatenate([m, k])", "np.stack([m, m])", "np.where(m, m, 0)", "np.exp(m)", "np.add(m, k)", "np.linalg.norm(m)",
    "np.sort(m)", "np.diag(k)", "np.trace(m @ m)", "np.ones(2) @ np.asarray(m @ k)", "np.interp(k, [0, 1], [1, 2])",
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_functions_read_what_objects_give(notebook: Notebook, form: str) -> None:
    notebook.ok(MADE)
    notebook.ok(f"%%tensor -q\nm += 1\nfound = {form}")
    notebook.ok(f"ours = np.asarray(found)\nm = Matrix([[1, 2], [3, 4]])\nm += 1\npythons = {form}")
    np.testing.assert_allclose(notebook["ours"], notebook["pythons"])


def test_a_method_of_the_class_is_asked_first(notebook: Notebook) -> None:
    notebook.ok(MADE)
    notebook.ok("%%tensor -q\nm += 1\nfound = np.sum(m)")
    assert notebook["found"] == "its own"


def test_in_a_loop_and_with_a_gradient(notebook: Notebook) -> None:
    notebook.ok(MADE + "s = 2.0")
    notebook.ok("%%tensor -q --grad s\nfor _ in range(3):\n    m += np.trace(m) * s\ntotal = np.trace(m)\ntotal")
    notebook.ok("value, slope = float(total), float(grad_s)")
    assert notebook["value"] == 5.0 * 5**3  # each time the trace is 1 + 2 s times as large
    assert notebook["slope"] == 3 * 5**2 * 2 * 5.0
