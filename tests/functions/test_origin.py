"""``Compiled.origin`` says what is true: compiled here, read from a file, or run by NumPy, and why."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.compiling import native
from tensormagic.functions.compiled.origin import NOTHING

SQUARE, VECTOR = "float64[n, n]", "float64[n]"


def newton(a):
    x = a
    for _ in range(5):
        x = 0.5 * (x + a / x)
    return x


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (lambda a: a, (VECTOR,)),
        (np.linalg.solve, (SQUARE, SQUARE)),
        (lambda a: np.linalg.eigvalsh(a), (SQUARE,)),
        (lambda a: np.sort(a), (VECTOR,)),
        (lambda a: np.fft.fft(a), ("complex128[n]",)),
        (lambda a: {"first": np.linalg.inv(a)}, (SQUARE,)),
    ],
)
def test_what_is_not_compiled_is_not_said_to_be(function, types, tmp_path):
    made = tm.compile(function, *types)
    assert not made.kernels
    assert made.origin == NOTHING
    tmp_path.chmod(0o700)
    made.save(tmp_path / "f.tm")
    assert tm.load(tmp_path / "f.tm").origin == f"f.tm, {NOTHING}"


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (lambda a: np.exp(a) + 1, (VECTOR,)),
        (newton, (VECTOR,)),
        (tm.grad(lambda a: np.sum(a**3)), (VECTOR,)),
        (lambda a: np.linalg.solve(a, a) * 2, (SQUARE,)),
        (lambda a: np.where(a > 0, a, 0).sum(), (VECTOR,)),
    ],
)
def test_what_is_compiled_says_so_as_long_as_it_runs(function, types, monkeypatch):
    made = tm.compile(function, *types)
    assert made.kernels
    assert made.origin == "compiled here"
    monkeypatch.setattr(tm.config, "tier", "numpy")
    assert made.origin == "run by NumPy"


def test_without_a_compiler_numpy_runs_it_and_that_is_said(monkeypatch):
    monkeypatch.setattr(native, "compiles", lambda: False)
    made = tm.compile(lambda a: np.exp(a) - 3.25 * a, "float64[n]")
    assert made.origin == "run by NumPy: there is no compiler"
