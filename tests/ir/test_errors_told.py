"""Classes of errors that only the package tells apart have a public class's name, wherever they are seen."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.staging.trials.needs_python import (
    BeginsWeakly,
    NeedsPython,
    UnlikeDTypesError,
    UnlikeShapesError,
)
from tensormagic.ir.errors import CaptureError, DTypeError, GuardError, ShapeError
from tensormagic.ops.effects.outside import Changed

ROOT = Path(__file__).parents[2]

PUBLIC = {
    NeedsPython: CaptureError,
    BeginsWeakly: CaptureError,
    UnlikeShapesError: ShapeError,
    UnlikeDTypesError: DTypeError,
    Changed: GuardError,
}


@pytest.mark.parametrize("kind", PUBLIC, ids=range(len(PUBLIC)))
def test_it_is_called_and_travels_as_the_public_class(kind):
    error = kind("what", "do this")
    assert repr(error) == f"{PUBLIC[kind].__name__}('what')"
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is PUBLIC[kind]
    assert str(arrived) == "what\nHint: do this"


def test_a_function_that_is_refused_raises_an_error_of_a_public_name():
    def f(x):
        total = 0.0
        for v in x:
            try:
                total += x[int(v * 10)]
            except IndexError:
                total += v
        return total

    with pytest.raises(CaptureError) as found:
        tm.grad(f)(np.array([0.3, -0.2]))
    assert f"`{type(found.value).__name__}`" in (ROOT / "docs" / "error-classes.md").read_text()
