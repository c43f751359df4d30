"""scipy.ndimage, scipy.signal and scipy.integrate in captured code: every mode and boundary against SciPy's."""

import numpy as np
import pytest
import scipy

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.harness import check

RNG = np.random.default_rng(0)
NAMES = {
    "x": RNG.normal(size=9),
    "x8": RNG.normal(size=8),
    "x2": RNG.normal(size=2),
    "x3": RNG.normal(size=3),
    "A": RNG.normal(size=(4, 7)),
    "B": RNG.normal(size=(5, 6)),
    "w": np.array([1.0, 2, -1]),
    "w2": np.array([1.0, 3]),
    "w4": np.array([1.0, 3, 0.5, 2]),
    "i": np.arange(12).reshape(3, 4),
    "K": RNG.normal(size=(3, 2)),
    "K3": RNG.normal(size=(3, 3)),
    "t": np.sort(RNG.uniform(size=9)),
    "t8": np.sort(RNG.uniform(size=8)),
    "T": np.sort(RNG.uniform(size=(4, 7))),
    "f": RNG.normal(size=8).astype("f"),
    "z": RNG.normal(size=(4, 5)) + 1j * RNG.normal(size=(4, 5)),
    "big": RNG.normal(size=(6, 9)),
}
SAMPLES = [
    ("x", "t"), ("x8", "t8"), ("x2", "t[:2]"), ("x3", "t[:3]"), ("A", "t[:7]"), ("B", "t[:6]"), ("A", "T"), ("f", "t8"), ("i", "t[:4]"),
    ("x8[:4]", "t8[:4]"),
]  # fmt: skip
PAIRS = [
    ("A", "K"),
    ("big", "K3"),
    ("K", "A"),
    ("i", "K"),
    ("i", "i"),
    ("z", "K"),
    ("z", "z"),
    ("big", "B[:2, :2]"),
    ("A", "B"),
]
ROWS = [("x", "w"), ("w", "x"), ("x8", "w2"), ("w4", "x2"), ("i[0]", "i[1]"), ("f", "w")]
MODES = ["full", "same", "valid"]


def hold(source, close=1e-12):
    check("import scipy.signal, scipy.ndimage, scipy.integrate\n" + source, 5e-6 if "(f" in source else close, **NAMES)


# samples of functions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("y", "x"), SAMPLES)
def test_integrals_of_samples(y, x):
    for name in ("simpson", "trapezoid", "cumulative_trapezoid"):
        for options in ("", ", dx=.3", f", x={x}"):
            hold(f"scipy.integrate.{name}({y}{options})")
    hold(f"scipy.integrate.cumulative_trapezoid({y}, dx=.4, initial=0)")


@pytest.mark.parametrize(
    "source",
    [
        "simpson(A, axis=0)",
        "simpson(B, axis=0)",
        "simpson(B, x=t[:5], axis=0)",
        "cumulative_trapezoid(B, x=t[:5], axis=0, initial=0)",
        "cumulative_trapezoid(B, initial=1)",
        "simpson(B, x=T[0])",
    ],
)
def test_integrals_along_an_axis(source):
    hold(f"scipy.integrate.{source}")


def test_one_function_serves_odd_and_even_numbers_of_samples():
    function = tm.tensor(lambda y: scipy.integrate.simpson(y, dx=0.2))
    for count in (9, 8, 3, 2, 4, 5):
        y = RNG.normal(size=count)
        assert function(y) == pytest.approx(scipy.integrate.simpson(y, dx=0.2), rel=1e-13)


# filters --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mode", ["reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap", "grid-mirror", "grid-constant"]
)
@pytest.mark.parametrize("weights", ["w", "w2", "w4"])
def test_filters_along_an_axis(weights, mode):
    for operand in ("x", "A", "i", "f"):
        hold(f"scipy.ndimage.convolve1d({operand}, {weights}, mode='{mode}')")
        hold(
            f"scipy.ndimage.correlate1d({operand}, {weights}, axis=0, mode='{mode}', cval=1.5, origin={0 if weights == 'w2' else -1})"
        )
        hold(
            f"scipy.ndimage.convolve1d({operand}, {weights}, axis=0, mode='{mode}', origin={1 if weights == 'w' else 0})"
        )


@pytest.mark.parametrize("source", ["convolve1d(z, w)", "convolve1d(x3, np.ones(9))", "convolve1d(i, w, output=float)"])
def test_filters_of_other_operands(source):
    hold(f"scipy.ndimage.{source}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_images(left, right, mode):
    for boundary in ("fill", "wrap", "symm"):
        for name in ("convolve2d", "correlate2d"):
            hold(f"scipy.signal.{name}({left}, {right}, '{mode}', '{boundary}')")
    hold(f"scipy.signal.convolve({left}, {right}, '{mode}')")
    hold(f"scipy.signal.fftconvolve({left}, {right}, '{mode}')")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("left", "right"), ROWS)
def test_rows(left, right, mode):
    hold(f"scipy.signal.convolve({left}, {right}, '{mode}')")
    hold(f"scipy.signal.fftconvolve({left}, {right}, '{mode}')")


def test_other_options():
    hold("scipy.signal.convolve2d(A, K, boundary='fill', fillvalue=2.5)")
    hold("scipy.signal.convolve2d(A, x)")
    hold("scipy.signal.convolve2d(A, K, 'some')")
    hold("scipy.ndimage.convolve1d(x, w * 1j)")  # on values, as what follows; a function has none
    hold("scipy.ndimage.gaussian_filter(x, 1.0)")
    with pytest.raises(CaptureError, match="gaussian_filter is not captured"):
        tm.tensor(lambda x: scipy.ndimage.gaussian_filter(x, 1.0)).graph(NAMES["x"])
    hold("scipy.signal.fftconvolve(A, A, axes=0)")
    with pytest.raises(CaptureError, match="axes"):
        tm.tensor(lambda A: scipy.signal.fftconvolve(A, A, axes=0)).graph(NAMES["A"])
    with pytest.raises(CaptureError, match="weights that are complex"):
        tm.tensor(lambda x, w: scipy.ndimage.convolve1d(x, w * 1j)).graph(NAMES["x"], NAMES["w"])


def test_one_function_serves_kernels_of_either_size():
    function = tm.tensor(lambda a, b: scipy.signal.convolve2d(a, b, "valid"))
    for left, right in (((4, 6), (2, 3)), ((2, 3), (4, 6)), ((5, 5), (5, 5)), ((7, 4), (3, 2))):
        a, b = RNG.normal(size=left), RNG.normal(size=right)
        np.testing.assert_allclose(function(a, b), scipy.signal.convolve2d(a, b, "valid"), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", ["valid", "same", "full"])
def test_which_of_two_rows_is_longer_may_depend_on_data(mode: str, tier: str):
    weights = np.array([1.0, 2.0, 4.0])
    convolved = tm.tensor(lambda x: np.convolve(x[x > 0], weights, mode))
    turned = tm.tensor(lambda x: np.convolve(weights, x[x > 0], mode))
    correlated = tm.tensor(lambda x: np.correlate(x[x > 0], weights, mode))
    for x in (np.array([1.0, -1, 2, 3, 5]), np.array([1.0, -1, -1]), np.array([1.0, 3, -1])):
        kept = x[x > 0]
        assert np.allclose(convolved(x), np.convolve(kept, weights, mode), rtol=1e-15)
        assert np.allclose(turned(x), np.convolve(weights, kept, mode), rtol=1e-15)
        if mode == "full" or len(kept) >= len(weights):
            assert np.allclose(correlated(x), np.correlate(kept, weights, mode), rtol=1e-15)
        else:
            assert np.allclose(correlated(x), np.correlate(kept, weights, mode), rtol=1e-15)  # by Python
            with pytest.raises(CaptureError, match="shorter than the second one"):
                tm.compile(lambda x: np.correlate(x[x > 0], weights, mode), x).run(x)
