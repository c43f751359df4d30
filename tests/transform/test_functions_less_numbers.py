"""Functions less the number that they come to at a point keep their digits near it, whatever the function: sums, quotients, slopes."""

import mpmath
import numpy as np
import pytest

import tensormagic as tm

SIZES = tuple(10.0**-k for k in range(1, 13, 2))
SMALL = [(x, y) for x in SIZES for y in (0.3, 2.0)]
LARGE = [(x, y) for x in (3.0, 1e3, 1e6, 1e9, 1e12) for y in (0.3, 2.0)]
CASES = {  # text, inputs
    "length": ("np.hypot(1, x) - 1", SMALL),
    "length beside a side": ("3 - np.hypot(x, 3)", SMALL),
    "root of two": ("np.sqrt(2 + x) - np.sqrt(2)", SMALL),
    "cube root": ("np.cbrt(8 - x) - 2", SMALL),
    "exponential": ("np.e - np.exp(1 - x)", SMALL),
    "eighth of a turn": ("np.arctan(1 + x) - np.pi / 4", SMALL),
    "twelfth of a turn": ("np.arcsin(0.5 - x) - np.pi / 6", SMALL),
    "softplus": ("np.log(1 + np.exp(-x)) - np.log(2)", SMALL),
    "logarithm": ("np.log(10 + x) - np.log(10)", SMALL),
    "logarithm to base 2": ("np.log2(3 + x) - np.log2(3)", SMALL),
    "cosine": ("np.cos(np.pi / 3 + x) - 0.5", SMALL),
    "sine": ("np.sin(np.pi / 4 - x) - np.sqrt(0.5)", SMALL),
    "arccosine": ("np.arccos(x) - np.pi / 2", SMALL),
    "arcsine near its end": ("np.arcsin(1 - x) - np.pi / 2", SMALL),
    "arccosine near its end": ("np.arccos(x - 1) - np.pi", SMALL),
    "twice an arccosine": ("np.pi - 2 * np.arccos(x)", SMALL),
    "far arctangent": ("np.pi / 2 - np.arctan(x)", LARGE),
    "far arctangent, scaled": ("1 - 2 / np.pi * np.arctan(x)", LARGE),
    "arctangent of a reciprocal": ("np.arctan(1 / x) - np.pi / 2", SMALL),
    "far arctangent and more": ("np.arctan(x) - np.pi / 2 + 1 / x", LARGE[2:]),
    "direction": ("np.arctan2(x, y) - np.pi / 2", LARGE),
    "direction behind": ("np.pi - np.arctan2(x, -y)", SMALL),
    "direction less its tangent": ("np.arctan2(x, y) - x / y", SMALL),
    "direction less its sine": ("np.arctan2(x, 1) - x", SMALL),
    "size of a cosine": ("1 - np.abs(np.cos(x))", SMALL),
    "cosine by its sine": ("np.sqrt(1 - np.sin(x) ** 2) - 1", SMALL),
    "quotient less its limit": ("(np.exp(x) - np.cos(x)) / x - 1", SMALL),
    "cube less its limit": ("(np.sin(x) - x) / x ** 3 + 1 / 6", SMALL),
    "length less its beginning": ("np.hypot(1, x) - 1 - x ** 2 / 2", SMALL),
    "length over a square": ("(np.hypot(1, x) - 1) / x ** 2 - 0.5", SMALL),
    "length beside another side": ("np.hypot(x, y) - y - x ** 2 / (2 * y)", SMALL),
    "normalised sine": ("np.sinc(x) - 1", SMALL),
    "powers of two": ("2.0 ** x - 1 - x * np.log(2)", SMALL),
}
each = pytest.mark.parametrize("name", CASES)


class Digits:
    """Functions of mpmath by NumPy's names; of a text's own numbers they are NumPy's."""

    pi, e = np.pi, np.e

    def __getattr__(self, name):
        exactly = {
            "arctan2": mpmath.atan2,
            "hypot": lambda a, b: mpmath.sqrt(a * a + b * b),
            "abs": abs,
            "sinc": lambda v: mpmath.sinc(mpmath.pi * v),
            "log2": lambda v: mpmath.log(v) / mpmath.log(2),
        }.get(name) or getattr(mpmath, name.replace("arc", "a"))
        plainly = getattr(np, name)

        def function(*given):
            plain = all(isinstance(v, int | float) for v in given)
            return mpmath.mpf(float(plainly(*given))) if plain else exactly(*given)

        return function


def number(name):
    return eval(f"lambda x, y: {CASES[name][0]}", {"np": np})


def lost(name, found, *, slope=False):
    """How many bits the values, or slopes by x, lack: at most, and on average."""
    text, points = CASES[name]
    exactly = eval(f"lambda x, y: {text}", {"np": Digits()})
    bits = []
    with mpmath.workdps(120):
        for (x, y), value in zip(points, found, strict=True):
            at, step = mpmath.mpf(x), mpmath.mpf(x) * mpmath.mpf(10) ** -50
            true = exactly(at, mpmath.mpf(y))
            if slope:
                true = (exactly(at + step, mpmath.mpf(y)) - exactly(at - step, mpmath.mpf(y))) / (2 * step)
            error = abs(mpmath.mpf(float(value)) - true) / abs(true) * 2**53
            bits.append(float(mpmath.log(1 + error, 2)))
    return max(bits), np.mean(bits)


def few(lost):
    """Five bits at most, where a series begins, and one and a half on average: the texts lose 20 on average, and all."""
    return lost[0] < 5 and lost[1] < 1.5


def columns(name):
    return tuple(np.array(c) for c in zip(*CASES[name][1], strict=True))


@pytest.fixture(autouse=True)
def at_stable(monkeypatch):
    monkeypatch.setattr(tm.config, "math", "stable")


@each
def test_values_keep_their_digits(name):
    assert few(lost(name, tm.tensor(number(name))(*columns(name))))


@each
@pytest.mark.parametrize("form", [float, np.float64, np.array])
def test_values_of_numbers_keep_them(name, form):
    f = tm.tensor(number(name))
    assert few(lost(name, [f(form(x), form(y)) for x, y in CASES[name][1]]))


@each
def test_slopes_keep_them(name):
    f = number(name)
    slopes = tm.tensor(lambda x, y: tm.grad(lambda x: np.sum(f(x, y)))(x))(*columns(name))
    assert few(lost(name, slopes, slope=True))


@pytest.mark.parametrize(
    "name", ["length", "softplus", "far arctangent", "direction behind", "quotient less its limit"]
)
def test_compiled_values_keep_them(name):
    given = columns(name)
    assert few(lost(name, tm.compile(number(name), *given)(*given)))


def test_values_within_branches_and_loops_keep_them():
    @tm.tensor
    def total(x):
        found = 0.0
        for k in range(3):
            if x[k] < 1:
                found = found + (np.arcsin(1 - x[k]) - np.pi / 2)
            if x[k] >= 1:
                found = found + (np.pi / 2 - np.arctan(x[k]))
        return found

    x = np.array([1e-12, 1e9, 3e-11])
    with mpmath.workdps(50):
        mp = mpmath.mpf
        right = mp(np.pi / 2)
        true = mpmath.asin(1 - mp(x[0])) - right + right - mpmath.atan(mp(x[1])) + mpmath.asin(1 - mp(x[2])) - right
        assert abs(float(total(x)) - true) < 4e-16 * abs(true)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values_are_those_of_the_text(dtype):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 1e-30, 5e-324, 1e30], dtype)
    pairs = np.array([(a, b) for a in x for b in x], dtype)
    for text, _ in CASES.values():
        f = eval(f"lambda x, y: {text}", {"np": np})
        with np.errstate(all="ignore"):
            plain = f(*pairs.T)
        found = tm.tensor(f)(*pairs.T.copy())
        tiny = ((pairs != 0) & (abs(pairs) < 1e-20)).any(1)  # whose cubes are 0: rules say that they have values there
        assert not (np.isnan(found) & ~np.isnan(plain)).any(), text
        assert not (np.isnan(plain) & ~np.isnan(found) & ~tiny).any(), text
        number = np.isfinite(plain) | tiny
        assert np.array_equal(plain[~number], found[~number], equal_nan=True), text
        number &= ((pairs == 0) | (abs(pairs) > 0.5)).all(1)  # near 0 the text has no digits
        size = np.maximum(abs(plain[number]), 16)
        assert (abs(plain[number] - found[number]) <= 8 * np.finfo(dtype).eps * size).all(), text


def test_exact_values_are_numpys(monkeypatch):
    monkeypatch.setattr(tm.config, "math", "exact")
    for name in CASES:
        given = columns(name)
        assert np.array_equal(np.asarray(tm.tensor(number(name))(*given)), number(name)(*given))
