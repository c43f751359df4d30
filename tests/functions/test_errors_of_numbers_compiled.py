"""Floating-point errors that code asks for by np.errstate are raised by compiled programs, by vjp and by submitted calls, too."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError


def quotients(x):
    with np.errstate(divide="raise"):
        y = 1 / x
    return y  # noqa: RET504


def total(x):
    with np.errstate(divide="raise"):
        y = 1 / x
    return y.sum()


def roots(x):
    with np.errstate(invalid="raise"):
        return np.sqrt(x) * 2


def growing(x):
    y = x
    for _ in range(3):
        with np.errstate(over="raise"):
            y = y * y
    return y


def branched(x):
    if x.sum() > 0:
        with np.errstate(all="raise"):
            return np.log(x)
    return x


def harmonic(x):
    s = 0.0
    for v in x:
        with np.errstate(divide="raise"):
            s = s + 1 / v
    return s


GOOD = np.array([1.0, 2.0])
BAD = {
    quotients: [1.0, 0.0],
    total: [1.0, 0.0],
    roots: [-1.0, 4.0],
    growing: [1e100, 1.0],
    branched: [0.0, 1.0],
    harmonic: [1.0, 0.0],
}


@pytest.mark.parametrize("fun", BAD, ids=lambda f: f.__name__)
@pytest.mark.parametrize("types", ["float64[2]", "float64[n]", None])
def test_compiled(fun, types):
    compiled = tm.compile(fun, GOOD if types is None else types)
    bad = np.array(BAD[fun])
    for _ in range(2):
        np.testing.assert_allclose(compiled(GOOD), fun(GOOD), rtol=1e-15)
        with pytest.raises(FloatingPointError):
            compiled(bad)


@pytest.mark.parametrize("types", ["float64[2]", "float64[n]"])
def test_around_the_call(types):
    compiled = tm.compile(lambda x: (1 / x).sum(), types)
    bad = np.array([1.0, 0.0])
    for _ in range(2):
        assert compiled(bad) == np.inf
        with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
            compiled(bad)


def test_into_an_array():
    compiled, out = tm.compile(quotients, GOOD), np.zeros(2)
    assert compiled.run(GOOD, out=out) is out
    assert out.tolist() == [1.0, 0.5]
    with pytest.raises(FloatingPointError):
        compiled.run(np.array([0.0, 1.0]), out=out)
    assert out.tolist() == [1.0, 0.5]


def test_gradients_compiled():
    compiled = tm.compile(tm.grad(total), GOOD)
    np.testing.assert_allclose(compiled(GOOD), [-1.0, -0.25])
    with pytest.raises(FloatingPointError):
        compiled(np.array([1.0, 0.0]))


def test_no_file_and_no_library(tmp_path):
    compiled = tm.compile(quotients, GOOD)
    with pytest.raises(CaptureError, match="asks for floating-point errors"):
        compiled.save(tmp_path / "f.tm")
    with pytest.raises(CaptureError, match="asks for floating-point errors"):
        compiled.export_c(tmp_path / "f")


def test_submitted():
    assert tm.submit(total, GOOD).result() == 1.5
    with pytest.raises(FloatingPointError):
        tm.submit(total, np.array([1.0, 0.0])).result()


@pytest.mark.parametrize("derive", [tm.vjp, tm.linearize])
def test_first_run_of_a_derivative(derive):
    def fun(x):
        with np.errstate(divide="raise"):
            y = 1 / x
        return y.sum()

    for _ in range(2):
        with pytest.raises(FloatingPointError):
            derive(fun, np.array([1.0, 0.0]))
    value, _ = derive(fun, GOOD)
    assert value == 1.5
