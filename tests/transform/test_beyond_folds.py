"""Lengths and products of many elements that run over or under have their digits, in each tier, and others have NumPy's bits."""

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.backend.planning.plan import plan_graph
from tensormagic.transform.rewriting import rewrite

LENGTHS = {
    "sum of squares": lambda x: np.sqrt(np.sum(x**2)),
    "product with itself": lambda x: np.sqrt(np.sum(x * x)),
    "dot": lambda x: np.sqrt(x.ravel() @ x.ravel()),
    "norm": lambda x: np.linalg.norm(x),
    "half a power": lambda x: np.sum(x * x) ** 0.5,
    "of a mean": lambda x: np.sqrt(np.mean(x * x)) * np.sqrt(x.size),
    "kept": lambda x: np.linalg.norm(x, keepdims=True),
    "complex": lambda x: np.linalg.norm(0.6 * x + 0.8j * x),
    "of both axes": lambda x: np.linalg.norm(x, axis=(0, 1)) if x.ndim == 2 else np.linalg.norm(x),
    "by a logarithm": lambda x: np.exp(np.log(np.sum(x * x)) / 2),
}
ROWS = {
    "columns": lambda x: np.linalg.norm(np.linalg.norm(x, axis=0)),
    "rows": lambda x: np.linalg.norm(np.linalg.norm(x, axis=-1)),
    "their mean": lambda x: np.linalg.norm(np.sqrt(np.mean(x * x, axis=-1)) * np.sqrt(x.shape[-1])),
    "normalised": lambda x: (
        np.linalg.norm(x / np.linalg.norm(x, axis=-1, keepdims=True)) * np.linalg.norm(x) / np.sqrt(3)
    ),
}
draw = np.random.default_rng(5)
ORDINARY = draw.normal(size=(3, 70))
SCALES = {np.float64: (1e200, 1e300, 1e-160, 1e-200, 1e-300), np.float32: (1e20, 1e30, 1e-24, 1e-30)}
CASES = [(dtype, scale) for dtype, scales in SCALES.items() for scale in scales]


def length(x):
    """The length, in more digits."""
    top = np.abs(x).max()
    return float(np.sqrt(np.sum((x.astype(np.longdouble) / top) ** 2)) * top)


@pytest.mark.parametrize("name", [*LENGTHS, *ROWS])
def test_lengths_have_their_digits(name, tier):
    level = "real" if name in ROWS else "stable"
    f = tm.tensor(LENGTHS.get(name) or ROWS[name], math=level)
    for dtype, scale in CASES:
        x = (ORDINARY * scale).astype(dtype)
        with np.errstate(all="ignore"):
            found = f(x)
        np.testing.assert_allclose(np.asarray(found, float).ravel()[0], length(x), rtol=400 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", [*LENGTHS, *ROWS])
def test_where_nothing_runs_over_bits_are_those_of_the_text(name, tier):
    level = "real" if name in ROWS else "stable"
    f = LENGTHS.get(name) or ROWS[name]
    for x in (ORDINARY, ORDINARY * 1e100, ORDINARY.astype(np.float32), ORDINARY[:1], np.asfortranarray(ORDINARY)):
        without = np.asarray(tm.tensor(f, math=f"{level} without ranges")(x))
        found = np.asarray(tm.tensor(f, math=level)(x))
        if level == "real" and tier == "numba":  # sums of sums are one there, in an order of the processor's vectors
            np.testing.assert_allclose(found, without, rtol=2 * np.finfo(x.dtype).eps)
        else:
            np.testing.assert_array_equal(found, without)


SPECIAL = (np.inf, -np.inf, np.nan, 0.0, -0.0, 1e200, 1e-200, -1e-320, 1.0)


@pytest.mark.parametrize("name", [*LENGTHS, *ROWS])
def test_special_values_are_numpys_or_better(name, tier):
    f = LENGTHS.get(name) or ROWS[name]
    if name == "normalised":
        return  # of an infinite row it is nan
    captured = tm.tensor(f, math="real" if name in ROWS else "stable")
    for a in SPECIAL:
        for b in SPECIAL:
            x = np.array([[a, b, 0.0], [0.0, 0.0, 0.0]])
            with np.errstate(all="ignore"):
                found, theirs = np.asarray(captured(x)).ravel()[0], np.asarray(f(x)).ravel()[0]
            finite = np.isfinite([a, b]).all()
            if not finite or theirs not in (0.0, np.inf):
                np.testing.assert_allclose(found, theirs, rtol=1e-14 if finite and abs(theirs) > 1e-140 else 0.5)
            else:
                np.testing.assert_allclose(found, np.hypot(a, b), rtol=1e-13, atol=1e-307)


@pytest.mark.parametrize("name", [*LENGTHS, *ROWS])
def test_gradients_of_lengths(name, tier):
    level = "real" if name in ROWS else "stable"
    f = LENGTHS.get(name) or ROWS[name]
    for scale in (1.0, 1e200, 1e-200):
        x = ORDINARY * scale
        with np.errstate(all="ignore"):
            found = tm.grad(tm.tensor(lambda x: np.sum(f(x)), math=level))(x)
        if name == "normalised":
            assert np.isfinite(found).all()
        else:
            np.testing.assert_allclose(found, x / length(x), rtol=1e-12)


def test_gradients_at_zero_are_zero(tier):
    for name, f in {**LENGTHS, **ROWS}.items():
        if name in {"by a logarithm", "normalised"}:
            continue  # of these it is none
        level = "real" if name in ROWS else "stable"
        for x in (np.zeros((2, 3)), np.array([[1e-310, 0.0]])):
            found = tm.grad(tm.tensor(lambda x, f=f: np.sum(f(x)), math=level))(x)
            np.testing.assert_array_equal(found, np.zeros_like(x))


FIRST = """
import numpy as np

def whole(v):
    return np.sqrt(np.sum(v**2))

def apart(v):
    return np.sqrt(np.sum((v - v[0]) ** 2))

def half(v):
    return np.sum(v * v) ** 0.5

def dot(v):
    s = v @ v
    return np.sqrt(s)

def einsum(v):
    return np.sqrt(np.einsum("i,i->", v, v))

def along(v):
    return np.sqrt(np.sum(v**2, axis=0))

def spread(v):
    return np.std(v) / np.sqrt(2)

def product(v):
    return np.log(np.prod(v))

def looped(v):
    for k in range(2):
        v = v / np.sqrt(np.sum(v**2))
    return np.sum(v)
"""


@pytest.mark.parametrize("name", ["whole", "apart", "half", "dot", "einsum", "along", "spread", "product", "looped"])
def test_first_calls_that_python_runs_give_what_later_ones_give(name, tmp_path):
    path = tmp_path / "given.py"
    path.write_text(FIRST)
    space: dict = {"__name__": "given"}
    exec(compile(FIRST, str(path), "exec"), space)
    for scale in (1.0, 1e200, 1e-200):
        f = tm.tensor(space[name])
        with np.errstate(all="ignore"):
            found = [float(np.asarray(f(np.array([1.0, 2.0, 4.0]) * scale))) for _ in range(3)]
        assert np.isfinite(found).all()
        assert found[0] != 0
        np.testing.assert_allclose(found, found[-1], rtol=1e-15)


# products -------------------------------------------------------------------------------------------------------------

PRODUCTS = {
    "all": lambda x: np.log(np.prod(x)),
    "columns": lambda x: np.sum(np.log(np.prod(x, axis=0))),
    "to base 2": lambda x: np.log2(np.prod(x)) * np.log(2),
    "to base 10": lambda x: np.log10(np.prod(x)) * np.log(10),
    "rows": lambda x: np.sum(np.log(np.prod(x, axis=1))),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_logarithms_of_products(name, tier):
    f = tm.tensor(PRODUCTS[name], math="real" if name in {"rows", "columns"} else "stable")
    for scale in (1.0, 1e200, 1e-200):
        for sign in (1.0, -1.0):
            x = np.abs(ORDINARY[:, :4]) * scale
            x[:2, :2] *= sign  # an even number in each row and column
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(f(x), np.sum(np.log(np.abs(x))), rtol=1e-13)
                np.testing.assert_allclose(tm.grad(f)(x), 1 / x, rtol=1e-13)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1e-200, -1e-200], np.nan),
        ([1e200, -1e200], np.nan),
        ([-1e-200, -1e-200], 2 * np.log(1e-200)),
        ([1e-200, 0.0], -np.inf),
        ([-1e-200, 0.0], -np.inf),
        ([1e200, np.inf], np.inf),
        ([1e200, np.nan], np.nan),
        ([0.0, np.inf], np.nan),
        ([1e200, 1e200, 1e-200, 1e-200], 0.0),
        ([], 0.0),
    ],
)
def test_logarithms_of_special_products(values, expected, tier):
    with np.errstate(all="ignore"):
        found = tm.tensor(lambda x: np.log(np.prod(x)))(np.array(values))
    np.testing.assert_allclose(found, expected, atol=1e-13)


# what is left out -----------------------------------------------------------------------------------------------------


MEANS = {
    "mean of a product": lambda x: np.log(np.mean(x * x)),
    "mean of squares": lambda x: np.log(np.mean(x**2)),
    "of sizes": lambda x: np.log(np.mean(np.abs(x) ** 2)),
    "half": lambda x: 0.5 * np.log(np.mean(x**2)) + np.log(2.0),
    "to 10": lambda x: 10 * np.log10(np.mean(x**2)),
    "sum over a number": lambda x: np.log(np.sum(x**2) / 7),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", MEANS)
def test_logarithms_of_means_of_squares(name, dtype, tier):
    f = MEANS[name]
    for scale in SCALES[dtype]:
        x = (ORDINARY * scale).astype(dtype)
        bits = 53 if dtype is np.float64 else 24
        with np.errstate(all="ignore"):
            assert not np.isfinite(f(x)) or abs(f(x) - f(x.astype(np.longdouble))) < 1e-2
            true = f(x.astype(np.longdouble))
        np.testing.assert_allclose(tm.tensor(f)(x), np.float64(true), rtol=2.0 ** (4 - bits))
        slopes = tm.grad(tm.tensor(f))(x)
        times = {"half": 1.0, "to 10": 20 / np.log(10)}.get(name, 2.0)
        ordinary = ORDINARY * (x.astype(np.longdouble) / ORDINARY).mean()
        expected = times * ordinary / np.sum(ordinary**2)
        info = np.finfo(dtype)
        if info.tiny * 1e8 < np.abs(expected).min() and np.abs(expected).max() < info.max / 1e20 and times == 2:
            np.testing.assert_allclose(slopes, expected.astype(np.float64), rtol=2.0 ** (8 - bits))


def test_logarithms_of_ordinary_means_are_numpys():
    for x in (
        np.array([3.0, 4.0]),
        np.array([np.inf, 1.0]),
        np.array([np.nan, 1.0]),
        np.zeros(2),
        np.array([1.0, 1.0]),
    ):
        for f in MEANS.values():
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(tm.tensor(f)(x), f(x), rtol=1e-15)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_folds_of_a_choice_of_the_users_are_numpys(axis, tier):
    """A loop that is left out gives what the fold of nothing gives, however its result is read."""
    for op in (np.sum, np.prod):
        nothing = 0.0 if op is np.sum else 1.0

        def f(x, limit, op=op, nothing=nothing):
            size = np.sum(np.abs(x), axis=axis, keepdims=True)
            found = op(np.where(size > limit, nothing, x * 2), axis=axis)
            other = op(np.where(size < limit, np.cos(x), nothing), axis=axis)
            return found, found + other * size.sum(), np.where(found > 0, other, found)

        for limit in (-1.0, 2.0, 8.0, 1e9):
            for x in (ORDINARY[:, :5], draw.normal(size=(700, 4)), np.empty((0, 4))):
                for found, theirs in zip(tm.tensor(f)(x, limit), f(x, limit), strict=True):
                    np.testing.assert_allclose(found, theirs, rtol=1e-12)


def test_kernels_leave_a_second_look_out():
    kernels = plan_graph(rewrite(tm.trace(LENGTHS["norm"], ORDINARY)).graph).kernels
    (taken,) = [
        line for k in kernels for line in k.printed.source.splitlines() if "taken" in line and " else 0" in line
    ]
    assert " if not " in taken
    kernels = plan_graph(
        rewrite(tm.trace(lambda x: np.linalg.norm(np.tanh(x), axis=1), ORDINARY), "real").graph
    ).kernels
    source = "".join(k.printed.source for k in kernels)
    assert "if some" in source
    assert source.count("tanh(") == 3  # for narrow rows, for others, and where it is needed: nothing is stored for it


def test_an_ordinary_length_reads_elements_once():
    """By what an observer of the NumPy tier sees: as many passes as the text has."""
    x = ORDINARY.ravel()
    calls = []

    class Seen(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            calls.append(ufunc)
            plain = [np.asarray(i) for i in inputs]
            return getattr(ufunc, method)(*plain, **options)

    graph = rewrite(tm.trace(LENGTHS["sum of squares"], x)).graph
    from tensormagic.backend.numpy_tier.reference import evaluate_graph

    evaluate_graph(graph, [x.view(Seen)])
    assert calls == [np.square]
