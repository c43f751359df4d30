"""Rules with functions that no graph can look into, on either side: Numba's, C's, those of np.vectorize and np.frompyfunc."""

import ctypes
import ctypes.util

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.functions.rules.opaque_rules import is_opaque
from tensormagic.ir.errors import CaptureError, DifferentiationError, RuleError

numba = pytest.importorskip("numba")

LIBM = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
LIBM.erf.restype, LIBM.erf.argtypes = ctypes.c_double, [ctypes.c_double]
X = np.linspace(-1.5, 1.5, 7)


@numba.vectorize(["float64(float64)"])
def soft(x):
    return np.log1p(np.exp(x))


@numba.njit
def folded(x):
    if x > 0:
        return x * x + 1
    return 1.0 + x * x


@numba.vectorize(["float64(float64, float64)"])
def apart(x, y):
    return (x - y) * (x - y)


twice = np.vectorize(lambda v: v + v)
thrice = np.frompyfunc(lambda v: v * 3.0, 1, 1)


pytestmark = pytest.mark.usefixtures("no_rules_left")


def names_in(graph):
    return [n.op.name for n in graph.nodes]


def rewritten(function, types=("float64[n]",), level="real"):
    return tm.compile(function, *types, math=level).executable.graph


def rule_of_soft(x):
    yield np.log(1 + np.exp(x)), soft(x)


def rule_of_ufunc(x):
    yield soft(x) - x, soft(-x)


def rule_of_two(x, y):
    yield apart(x, y), (x - y) ** 2


def rule_of_numbers(x):
    yield folded(x) - 1, x * x


def rule_of_c(x):
    yield LIBM.erf(-x) + x, x - LIBM.erf(x)


def rule_of_vectorize(x):
    yield twice(x) - x, x


def rule_of_frompyfunc(x):
    yield thrice(x) / 3, x


CASES = {
    "a ufunc of Numba's": (rule_of_ufunc, lambda x: soft(2 * x) - 2 * x, "subtract"),
    "of two operands": (rule_of_two, lambda x: apart(x, 0.5 * x), "apart"),
    "one that takes numbers alone": (rule_of_numbers, lambda x: folded(x) - 1, "folded"),
    "a function of C, by its library": (rule_of_c, lambda x: LIBM.erf(-x) + x, "add"),
    "np.vectorize": (rule_of_vectorize, lambda x: np.exp(twice(x) - x), "<lambda>"),
    "np.frompyfunc": (rule_of_frompyfunc, lambda x: np.exp(thrice(x) / 3), "<lambda> (vectorized)"),
    "on the right alone": (rule_of_soft, lambda x: np.log(1 + np.exp(x)), "log"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_fires_and_keeps_the_value(name):
    own, function, gone = CASES[name]
    tm.rule(own, level="real")
    compiled = tm.compile(function, "float64[n]", math="real")
    assert gone in names_in(compiled.graph)
    assert gone not in names_in(compiled.executable.graph)
    expected = np.array([function(v) for v in X], float)
    np.testing.assert_allclose(compiled(X), expected, rtol=1e-13, atol=1e-15)


def test_rules_in_a_closure_and_with_conditions():
    inner = numba.njit(lambda v: abs(v))

    def own(x):
        if True:
            yield inner(x), x, x > 0

    (rule,) = tm.rule(own, level="real")
    assert rule.assumptions == ("x > 0",)
    assert names_in(rewritten(lambda x: np.exp(inner(x))))[-1] == "exp"


def test_what_a_rule_replaces_has_a_derivative_and_what_stays_has_none():
    def known(x):
        yield soft(x), np.logaddexp(x, 0)

    def odd(x):
        yield LIBM.erf(-x), -LIBM.erf(x)

    tm.rule(known, level="real")
    tm.rule(odd, level="real")
    with tm.config.using(math="real"):
        found = tm.grad(lambda x: np.sum(soft(x)))(X)
        np.testing.assert_allclose(found, 1 / (1 + np.exp(-X)), rtol=1e-14)
        with pytest.raises(DifferentiationError, match="State a rule that says what erf is"):
            tm.grad(lambda x: LIBM.erf(x) * x)(0.5)


@pytest.mark.parametrize("level", ["exact", "stable", "real"])
def test_a_rule_that_is_not_true_is_refused_with_the_numbers(level):
    def own(x):
        yield soft(x), soft(x + 1e-3)

    with pytest.raises(RuleError, match=r"the sides differ at x = \S+ soft\(x\) is "):
        tm.rule(own, level=level)
    assert not tm.rules.own
    with pytest.raises(CaptureError, match="needs the values of its arguments"):
        tm.compile(lambda x: soft(x), "float64[n]")


def test_at_stable_the_other_side_tells_which_is_more_accurate():
    naive = numba.njit(lambda x: np.exp(x) - 1)

    def better(x):
        yield naive(x), np.expm1(x)

    def worse(x):
        yield np.expm1(x), naive(x)

    def both(x):
        yield soft(x) - x, soft(-x)

    tm.rule(better, level="stable")
    assert names_in(rewritten(lambda x: naive(x), level="stable"))[-1] == "expm1"
    with pytest.raises(RuleError, match="is less accurate at x = "):
        tm.rule(worse, level="stable")
    with pytest.raises(RuleError, match="both use functions that are available in float64 only"):
        tm.rule(both, level="stable")


class Counter:
    count = 0


def counting(v):
    Counter.count += 1
    return v + Counter.count


NO_FUNCTIONS = {
    "another number each time": (np.vectorize(counting), "gives something else when it is called again"),
    "raises": (numba.njit(lambda x: x.nothing), "raises TypingError for numbers"),
    "an array": (np.vectorize(lambda v: np.ones(3), signature="()->(n)"), "does not give a number"),
    "a text": (np.vectorize(lambda v: "a"), "does not give a number"),
}


@pytest.mark.parametrize("name", NO_FUNCTIONS)
def test_what_is_no_function_of_numbers_is_refused(name):
    function, why = NO_FUNCTIONS[name]

    def own(x):
        yield function(x), x

    with pytest.raises(RuleError, match=why):
        tm.rule(own, level="real")


def test_other_numbers_than_float64_are_called_as_before():
    tm.rule(rule_of_numbers, level="real")
    f = tm.tensor(lambda x: folded(x) - 1)
    assert f(3) == 9
    assert type(f(3)) is type(folded(3) - 1)
    whole = tm.tensor(lambda x: soft(x))
    assert whole(np.float32(0.5)) == soft(np.float32(0.5))


def test_rules_that_are_gone_leave_calls_as_they_were():
    tm.rule(rule_of_ufunc, level="real")
    assert "soft" in names_in(tm.trace(lambda x: soft(x) * 2, "float64[n]"))
    tm.rules.remove("rule_of_ufunc")
    with pytest.raises(CaptureError, match="needs the values of its arguments"):
        tm.trace(lambda x: soft(x) * 2, "float64[n]")
    assert tm.tensor(lambda x: soft(x) * 2)(X).tolist() == (soft(X) * 2).tolist()


def test_a_compiled_function_with_one_is_not_saved(tmp_path):
    tm.rule(rule_of_ufunc, level="real")
    with pytest.raises(CaptureError, match="calls soft, of a rule of yours, which cannot be saved"):
        tm.compile(lambda x: np.exp(soft(x)), "float64[n]").save(tmp_path / "f.tm")


def test_gradients_batches_and_loops_go_through_it():
    tm.rule(rule_of_ufunc, level="real")

    def looped(x):
        for _ in range(40):
            x = 0.5 * (soft(x) - x)
        return x

    with tm.config.using(math="real"):
        expected = looped(X)
        np.testing.assert_allclose(tm.compile(looped, "float64[n]", math="real")(X), expected, rtol=1e-12)
        stacked = np.stack([X, 2 * X])
        np.testing.assert_allclose(tm.vmap(lambda x: soft(x) - x)(stacked), soft(stacked) - stacked, rtol=1e-13)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (soft, True),
        (folded, True),
        (LIBM.erf, True),
        (twice, True),
        (thrice, True),
        (np.sin, False),
        (np.float64, False),
        (len, False),
        (lambda x: x, False),
        (3, False),
    ],
)
def test_which_functions_are_opaque(function, expected):
    assert is_opaque(function) is expected
