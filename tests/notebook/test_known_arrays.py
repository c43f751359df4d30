"""Accurate forms of arrays that are known while code is captured: their values are computed after the forms are found, not before."""

import numpy as np
import pytest

import tensormagic as tm
from tests.notebook.conftest import Notebook

MADE = {
    "array": "np.array([1e-9, 1e-12])",
    "list": "np.asarray([1e-9, 1e-12])",
    "one": "np.array(1e-9)",
    "full": "np.full(2, 1e-9)",
    "logspace": "np.logspace(-12, -9, 3)",
    "linspace": "np.linspace(1e-12, 1e-9, 3)",
    "powers": "10.0 ** np.arange(-12, -8)",
}
TEXTS = {
    "(1 - np.cos(x)) / x**2": lambda x: 0.5 + 0 * x,
    "np.exp(x) - 1": np.expm1,
    "np.log(1 + x)": np.log1p,
    "np.sqrt(1 + x) - 1": lambda x: x / 2 - x**2 / 8,
    "1 - np.exp(-x)": lambda x: -np.expm1(-x),
    "np.sinh(x) - np.tanh(x)": lambda x: x**3 / 2,
    "w * (np.exp(x) - 1)": lambda x: 2 * np.expm1(x),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
@pytest.mark.parametrize("text", TEXTS)
def test_forms_keep_the_digits_of_what_a_cell_makes(notebook: Notebook, made: str, text: str):
    notebook.ok("import numpy as np\nw = np.array(2.0)")
    notebook.ok(f"%%tensor\nx = {made}\ny = {text}")
    x = np.asarray(eval(made, {"np": np}))
    np.testing.assert_allclose(np.asarray(notebook["y"]), TEXTS[text](x), rtol=1e-9)


@pytest.mark.parametrize("text", TEXTS)
def test_exact_forms_are_numpys(notebook: Notebook, text: str):
    notebook.ok("import numpy as np\nw = np.array(2.0)")
    notebook.ok(f"%%tensor --math exact\nx = np.array([1e-9, 1e-12])\ny = {text}")
    expected = eval(text, {"np": np, "x": np.array([1e-9, 1e-12]), "w": np.array(2.0)})
    assert np.asarray(notebook["y"]).tolist() == expected.tolist()


def test_slopes_beside_such_arrays():
    def loss(w):
        x = np.array([1e-9, 1e-12])
        return np.sum(w * (1 - np.cos(x)) / x**2)

    assert tm.grad(loss)(1.0) == pytest.approx(1.0, rel=1e-12)
    assert tm.tensor(loss)(3.0) == pytest.approx(3.0, rel=1e-12)
