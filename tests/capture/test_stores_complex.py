"""Complex values stored into arrays of real ones: the imaginary part is dropped with NumPy's warning; a number of Python's is an error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tests.capture.harness import check

WARNING = np.exceptions.ComplexWarning
Z = np.arange(3) * (1.5 - 2j)
STORES: dict[str, Callable[[Any, Any], Any]] = {
    "a part": lambda x, z: x.__setitem__(slice(1, None), -z[1:] / 2),
    "an element": lambda x, z: x.__setitem__(0, z[1]),
    "through a mask": lambda x, z: x.__setitem__(x < 2, z[1]),
    "at places": lambda x, z: x.__setitem__([0, 2], z[:2]),
    "all": lambda x, z: x.__setitem__(slice(None), z),
}


@pytest.mark.parametrize("dtype", [float, np.float32, int])
@pytest.mark.parametrize("name", STORES)
def test_the_imaginary_part_is_dropped_with_a_warning(name: str, dtype: Any) -> None:
    def f(x: Any, z: Any) -> Any:
        STORES[name](x, z)
        return x * 2

    one, other = np.arange(3).astype(dtype), np.arange(3).astype(dtype)
    with pytest.warns(WARNING, match="discards the imaginary part"):
        expected = f(one, Z)
    with pytest.warns(WARNING, match="discards the imaginary part") as told:
        found = tm.tensor(f)(other, Z)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(found, expected, strict=True)
    np.testing.assert_array_equal(other, one, strict=True)


def test_cells_do_the_same() -> None:
    with warnings.catch_warnings(action="ignore", category=WARNING):
        check("x[1:] = z[1:] / 2\ny = x * 2", x=np.zeros(3), z=Z)


def test_a_number_of_pythons_is_an_error() -> None:
    def f(x: Any, z: Any) -> Any:
        x[0] = z
        return x

    for captured in (f, tm.tensor(f)):
        with pytest.raises(TypeError):
            captured(np.zeros(3), 1 + 2j)


def test_gradients_go_through_the_real_part() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(3)
        y[:] = x * (2 + 1j)
        return y.sum()

    with pytest.warns(WARNING):
        np.testing.assert_allclose(tm.grad(f)(np.ones(3)), 2.0)
