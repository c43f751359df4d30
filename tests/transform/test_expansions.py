"""Sums that cancel where a product, an exponential, a distance or a reciprocal is small keep their digits, and lose none elsewhere."""

import numpy as np
import pytest
from scipy import special

import tensormagic as tm
from tensormagic.backend.numpy_tier.reference import evaluate_graph
from tensormagic.transform.rewriting import rewrite
from tests.transform import oracle
from tests.transform.never_worse import compared, function_of, truth

SMALL = np.array([1e-9, -3e-7, 2e-5, 0.003, 0.04])
LARGE = np.array([3.0, 19.0, 700.0, 4e5, 2e9])
mp = oracle.mp
OTHER = np.array([0.7, 1.3, 2.9, 0.4, 1.1])
PLACES = {
    "(1 - np.exp(-x * y)) / x - y": (SMALL, OTHER),
    "1 / x - 1 / (x * (1 + x) ** y)": (abs(SMALL), OTHER),
    "(x ** y - 1) / y - np.log(x)": (OTHER, SMALL),
    "(x ** (1 - y) - 1) / (1 - y) - np.log(x)": (OTHER, 1 + SMALL),
    "(x + 1) / 2 * np.log(1 + y * y / x) - y * y / 2": (LARGE, OTHER),
    "np.log(2 * np.cosh(x)) - x * np.tanh(x)": (np.array([4.0, -7.0, 20.0, -90.0, 300.0]),),
    "np.log(1 + np.exp(-x)) + x / (1 + np.exp(x))": (np.array([-4.0, -7.0, -20.0, -90.0, -300.0]),),
    "np.exp(2 * x) - np.exp(x) * (np.exp(x) - 1)": (np.array([4.0, 7.0, 20.0, 90.0, 300.0]),),
    "np.log(x) - 1 / (2 * x) - np.log(x - 1)": (LARGE,),
    "1 / np.sqrt(x + 1) + 1 / np.sqrt(x - 1) - 2 / np.sqrt(x)": (LARGE,),
    "((np.sqrt(x) + np.sqrt(y)) / 2) ** 2 - np.sqrt(x * y)": (OTHER * (1 + SMALL), OTHER),
    "np.cbrt((x ** 3 + y ** 3) / 2) - (x + y) / 2": (OTHER * (1 + SMALL), OTHER),
    "(x - y) / np.log(x / y) - np.sqrt(x * y)": (OTHER * (1 + SMALL), OTHER),
    "np.log(2) + x * np.log(x) + (1 - x) * np.log(1 - x)": (0.5 + SMALL,),
    "np.exp(1) - (1 + 1 / x) ** x": (LARGE,),
    "np.cbrt(1 + x) - 1 - x / 3": (SMALL,),
    "2 * np.arctan(np.exp(x)) - 1.5": (SMALL,),
    "np.arctan(1 + x) - np.arctan(1 - x)": (SMALL,),
    "np.sin(0.5 + x) - np.sin(0.5) * np.cos(x)": (SMALL,),
    "x * np.log(x) - x - ((x + 1) * np.log(x + 1) - (x + 1))": (LARGE,),
    "np.sqrt(1 + x) - np.cos(y * 1e-4)": (SMALL, OTHER),
    "np.cosh(x) + np.cos(y)": (SMALL, 3.141592 + 1e-4 * OTHER),
    "x / y - 1": (OTHER * (1 + SMALL), OTHER),
    "x / (x + y) - y / (x + y)": (OTHER * (1 + SMALL), OTHER),
    "x * x / (1 + x * x) - 1": (LARGE,),
    "np.log(np.exp(x) + np.exp(y) + np.exp(y - x)) - x": (OTHER, OTHER - 6),
}
SPECIAL = {  # function of the graph, points, and the same with many digits
    "erf": (
        lambda x: special.erf(x) - 1.1283791670955126 * x,
        SMALL,
        lambda x: mp.erf(x) - mp.mpf(1.1283791670955126) * x,
    ),
    "erfc": (lambda x: 1 - special.erfc(x), SMALL, mp.erf),
    "erfcx": (lambda x: np.exp(x * x) * special.erfc(x), OTHER * 5, lambda x: mp.exp(x * x) * mp.erfc(x)),
    "gammaln": (
        lambda x: special.gammaln(x) - (x - 0.5) * np.log(x) + x - 0.9189385332046727,
        LARGE,
        lambda x: mp.loggamma(x) - (x - mp.mpf(0.5)) * mp.log(x) + x - mp.mpf(0.9189385332046727),
    ),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_functions_of_scipys_have_their_series(name):
    function, given, true = SPECIAL[name]
    graph = rewrite(tm.trace(function, given), "stable").graph
    found = evaluate_graph(graph, [given])[0]
    points = zip(found, given, strict=True)
    lost = [oracle.ulps(float(v), true(mp.mpf(float(p))), np.float64) for v, p in points if name != "gammaln" or p > 8]
    assert np.mean(lost) < 8, lost


@pytest.mark.parametrize("text", PLACES)
def test_what_is_small_is_taken_out_of_the_sum(text):
    function, given = function_of(text)[0], PLACES[text]
    graph = tm.trace(function, *given)
    found = evaluate_graph(rewrite(graph, "stable").graph, list(given))[0]
    lost = [oracle.ulps(float(v), truth(graph, p), np.float64) for v, *p in zip(found, *given, strict=True)]
    assert np.mean(lost) < 8, lost


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("text", PLACES)
def test_nothing_is_lost_elsewhere(text, dtype):
    found = compared("expansions", text, np.dtype(dtype), count=900, seed=len(text), most=25)
    assert (found.worse, found.lost) == ([], [])


FAR = {
    "np.sqrt(1 + x * x)": 1e200,
    "np.sqrt(x * x - 1)": 1e200,
    "np.sqrt(x * x + y * y + 1)": 1e200 * np.hypot(1, 0.5),
    "np.log(1 + x * x)": 2 * np.log(1e200),
    "np.log(np.sqrt(3 + x * x))": np.log(1e200),
    "x / np.sqrt(1 + x * x)": 1.0,
    "x / (x * x + y * y)": 0.8e-200,
    "np.exp(1e-198 * x) / (1 + np.exp(1e-198 * x)) ** 2": np.exp(-100.0),
    "np.exp(1e-197 * x) / (1 + np.exp(1e-197 * x)) ** 2": 0.0,
}


@pytest.mark.parametrize("text", FAR)
def test_squares_may_run_over(text):
    x, y = np.array([1e200, 3.0]), np.array([0.5e200, 2.0])
    function, arity = function_of(text)
    given = [x, y][:arity]
    found = tm.tensor(function)(*given)
    np.testing.assert_allclose(found[0], FAR[text], rtol=1e-13)
    np.testing.assert_allclose(found[1], function(*(g[1] for g in given)), rtol=1e-14)


def test_squares_may_run_under():
    x = np.array([1e-200, 0.0, 1e-170, np.inf])
    with np.errstate(all="ignore"):
        found = tm.tensor(lambda x: x / (x * x + (2 * x) * (2 * x)))(x)
    np.testing.assert_array_equal(found[1:2], [np.nan])
    np.testing.assert_allclose(found[[0, 2]], 0.2 / x[[0, 2]], rtol=1e-15)


def test_differences_of_factorials():
    x = np.array([1.5, 30.0, 1e6, 1e12])
    given = tm.tensor(lambda x: function_of("special.gammaln(x + 2) - special.gammaln(x)")[0](x))(x)
    np.testing.assert_allclose(given, np.log(x) + np.log(x + 1), rtol=1e-15)


@pytest.mark.parametrize(
    "text",
    [
        "np.hypot(x, x) - np.hypot(2.0, x)", "np.hypot(x, x) - np.hypot(y, x)", "np.hypot(y, x) - np.hypot(x, x)",
        "np.sqrt(x * x + x * x) - np.sqrt(y * y + x * x)", "np.hypot(x, x) - np.hypot(x, x + 1e-3)", "np.hypot(x, -x) - np.hypot(x, y)",
    ],
)  # fmt: skip
def test_lengths_of_two_equal_sides(text):
    x, y = np.array([3.0, 5.0, -4.0, 10.0, 0.1]), np.array([2.0, 5.0001, 1.0, 9.0, 0.3])
    function = eval(f"lambda x, y: {text}", {"np": np})
    np.testing.assert_allclose(tm.compile(function, x, y)(x, y), function(x, y), rtol=1e-9)


@pytest.mark.parametrize("text", ["x / y - 1", "x / y - z / y", "(x / y - 1) * 3"])
def test_gradients_of_exact_differences_have_no_branches(text):
    function, arity = function_of(text)
    given = [np.array([1.0, 2.0, 0.0, 5.0, -3.0]), np.array([1.1, 2.0, 3.0, -0.5, 1e-3]), OTHER][:arity]
    graph = rewrite(tm.trace(lambda *a: tm.grad(lambda *b: function(*b).sum())(*a), *given), "stable").graph
    assert not any(n.op.name in {"where", "less"} for n in graph.nodes)
    factor = 3 if "3" in text else 1
    np.testing.assert_allclose(evaluate_graph(graph, given)[0], factor / given[1], rtol=1e-15)


def test_guards_of_quotients_stay():
    def f(x, y):
        return np.where(y > 0, x / np.where(y > 0, y, 1), np.where(y > 0, x, 2.0) - 1)

    x, y = np.array([1.0, 2.0, 3.0]), np.array([0.0, 4.0, -1.0])
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(tm.tensor(f)(x, y), [1.0, 0.5, 1.0])
