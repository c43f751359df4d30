"""Graphs as plain NumPy: the text runs without the package and gives the same values."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic import session
from tests.capture.harness import assert_equal, cell, given
from tests.capture.program_lines import ARITHMETIC, ARRAYS
from tests.capture.test_programs import FUNCTIONS, lines

SKIPPED = ("Captured", "math.")


pytestmark = pytest.mark.usefixtures("by_numpy", "exact")


def run(value: tm.Tensor) -> object:
    space: dict[str, object] = {}
    exec(value.code("numpy"), space)
    closed = session.close_over([value.node], use_values=False)
    with np.errstate(all="ignore"):
        return space["f"](*map(session.value_of, closed.leaves))


@pytest.mark.parametrize("source", lines(ARITHMETIC) + lines(FUNCTIONS))
def test_expression(source: str):
    with np.errstate(all="ignore"):
        found = cell(source, given(ARRAYS)).result
    for value in found if isinstance(found, tuple | list) else [found]:
        if isinstance(value, tm.Tensor):
            ours, numpys = run(value), value.numpy()
            assert_equal(np.asarray(ours), np.asarray(numpys), source, 1e-13)


def test_it_is_readable():
    x = tm.tensor(np.ones((4, 3)))
    text = np.sum(np.exp(x) * 2, axis=0).code("numpy")
    assert text.startswith("import numpy as np\n\n\ndef f(")
    assert "np.exp(" in text
    assert "tensormagic" not in text


def test_gradients_are_plain_numpy_too():
    w = np.ones(3)
    x = np.arange(6.0).reshape(2, 3)
    loss = cell("z = X @ w\nloss = np.mean(np.log(1 + np.exp(-z)))", {"X": x, "w": w, "np": np}).outputs["loss"]
    gradient = loss.grad(w)
    assert np.allclose(run(gradient), gradient.numpy(), rtol=1e-14)


def test_functions_of_scipy_and_bounds_of_the_pseudo_inverse():
    import scipy.special

    x = np.arange(6.0).reshape(3, 2) + 1
    for value in (
        scipy.special.jv(1, tm.tensor(x)),
        scipy.special.ndtri(tm.tensor(x / 10)),
        np.linalg.pinv(tm.tensor(x), rtol=None),
    ):
        assert np.array_equal(run(value), value.numpy())
