"""scipy.special in captured code: every function on each dtype, with Python numbers, and at its edges."""

import numpy as np
import pytest
import scipy

import tensormagic as tm
from tests.capture.harness import check

RNG = np.random.default_rng(0)
NAMES = {
    "p": RNG.uniform(0.1, 0.9, (3, 4)),
    "q": RNG.uniform(0.1, 2, (3, 4)),
    "x": RNG.normal(size=(3, 4)),
    "i": np.arange(6).reshape(2, 3),
    "s": np.arange(5, dtype=np.int8),
    "f": RNG.uniform(0.1, 0.9, 5).astype(np.float32),
    "z": RNG.normal(size=4) + 1j * RNG.normal(size=4),
    "sc": 0.3,
    "b": np.array([0.0, 2, -1, 3]),
    "e": np.array([-1.0, 0, 2, np.nan, np.inf]),
}
ONE = (
    "expit logit exprel exp1 expi erf erfc erfcx erfinv erfcinv log_ndtr ndtri ndtr gammaln gamma psi digamma j0 j1 y0 y1 i0 i1 i0e i1e "
    "k0 k1 cbrt exp2 expm1 log1p exp10 log_expit entr factorial softplus"
)
TWO = "xlogy xlog1py rel_entr kl_div huber pseudo_huber beta betaln binom gammainc gammaincc comb jv yv iv ive kv zeta"


def hold(source):
    single = "(f" in source or "(s" in source or ", f" in source
    check("import scipy.special\n" + source, 3e-7 if single else 1e-13, **NAMES)


@pytest.mark.parametrize("name", ONE.split())
def test_functions_of_one_number(name):
    for operand in ["p", "q", "x", "i", "s", "f", "sc", "e"]:
        hold(f"scipy.special.{name}({operand})")


@pytest.mark.parametrize("name", TWO.split())
def test_functions_of_two_numbers(name):
    for operands in ("p, q", "q, x", "i, i", "f, f", "sc, p", "f, sc", "p, f", "e, e", "s, s"):
        hold(f"scipy.special.{name}({operands})")


@pytest.mark.parametrize(
    "source",
    [
        "betainc(p, q, p)",
        "betainc(2, 3, f)",
        "polygamma(1, q)",
        "polygamma(2, f)",
        "multigammaln(q + 3, 2)",
        "comb(i, 2, repetition=True)",
        "comb(5, 2, exact=True) * x",
        "erf(z)",
        "factorial(z)",
    ],
)
def test_others(source):
    hold(f"scipy.special.{source}")


@pytest.mark.parametrize("source", ["xlogy(z, z)", "gamma(z)", "jv(1, z)"])
def test_functions_of_real_numbers_alone_are_refused_in_functions(source):
    """In a cell SciPy runs them on values."""
    function = eval(f"lambda z: scipy.special.{source}", {"scipy": scipy})
    with pytest.raises(tm.DTypeError):
        tm.tensor(function).graph(np.array([1.5 + 1j, 2.0]))
    hold(f"scipy.special.{source}")


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_along_axes(name):
    options = ["", ", axis=0", ", axis=-1"]
    if name == "logsumexp":
        options += [", keepdims=True", ", return_sign=True", ", b=2.0", ", b=b[0] * 0 - 1.0, return_sign=True"]
    for operand in ["p", "x", "i", "s", "f", "e"]:
        for option in options:
            hold(f"scipy.special.{name}({operand}{option})")


@pytest.mark.parametrize(
    "source",
    [
        "logsumexp(x, b=b, axis=1)",
        "logsumexp(x, b=b, axis=1, return_sign=True, keepdims=True)",
        "logsumexp(x, axis=(0, 1))",
        "logsumexp(z)",
        "logsumexp(e, b=np.array([1.0, 1, 0, 0, 0]))",
        "logsumexp(sc)",
        "softmax(x > 0)",
    ],
)
def test_sums_of_exponentials(source):
    hold(f"scipy.special.{source}")


# derivatives at the edges ---------------------------------------------------------------------------------------------


def gradient(function, x):
    with np.errstate(all="ignore"):
        return tm.grad(lambda v: function(v).sum())(np.array(x))


def test_derivatives_where_a_formula_has_no_value():
    special = scipy.special
    assert gradient(lambda v: special.xlogy(v, v + 1), [0.0]).tolist() == [0.0]
    assert gradient(lambda v: special.kl_div(0.5, v), [0.0, -1.0]).tolist() == [0.0, 0.0]
    assert gradient(lambda v: special.pseudo_huber(1.0, v), [0.0, -3.0]) == pytest.approx(
        [0.0, -3 / np.sqrt(10)], rel=1e-15
    )
    assert gradient(lambda v: special.huber(1.0, v), [0.0, 0.5, 1.0, -3.0]).tolist() == [0.0, 0.5, 1.0, -1.0]
    assert gradient(lambda v: special.exprel(v), [0.0]).tolist() == [0.5]


def test_derivatives_far_out_keep_their_digits():
    special = scipy.special
    # phi(x) / Phi(x) -> -x - 1/x + ... for x -> -inf
    assert gradient(special.log_ndtr, [-1e6, -50.0]) == pytest.approx([1e6 + 1e-6, 50.019984], rel=1e-7)
    assert gradient(special.exprel, [-1e3]) == pytest.approx([1e-6], rel=1e-12)
    ends = gradient(special.exprel, [0.9999999, 1.0000001])
    assert ends == pytest.approx([1.0, 1.0], rel=1e-6)  # the slope at 1 is 1, from the series and from the formula
    assert tm.grad(tm.grad(lambda v: special.exprel(v)))(0.0) == pytest.approx(1 / 3, rel=1e-14)
    assert tm.grad(tm.grad(lambda v: special.pseudo_huber(1.0, v)))(0.0) == 1.0


def test_weights_of_a_sum_of_exponentials_have_gradients_at_zero():
    a = np.array([1.0, 0.0, 1.0])
    found = tm.grad(lambda w: scipy.special.logsumexp(a, b=w))(np.array([0.0, 1.0, 2.0]))
    np.testing.assert_allclose(found, np.exp(a) / (1 + 2 * np.e), rtol=1e-14)
    large = tm.grad(lambda v: scipy.special.logsumexp(v, b=np.array([0.0, 1, 2])))(np.array([1000.0, 0, 1]))
    np.testing.assert_allclose(large, [0, 1 / (1 + 2 * np.e), 2 * np.e / (1 + 2 * np.e)], rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "position"),
    [("jv", 0), ("gammainc", 0), ("gammaincc", 0), ("betainc", 0), ("betainc", 1), ("zeta", 0), ("polygamma", 0)],
)
def test_orders_have_no_derivative_and_say_so(call, position):
    operands = [2.0, 1.5, 0.4][: 3 if call == "betainc" else 2]
    with pytest.raises(tm.DifferentiationError, match=f"{call} has no derivative with respect to its first"):
        tm.grad(lambda *v: getattr(scipy.special, call)(*v), position)(*operands)
    slope = tm.grad(lambda *v: getattr(scipy.special, call)(*v), len(operands) - 1)(*operands)
    function = getattr(scipy.special, call)
    up, down = ([*operands[:-1], operands[-1] + d] for d in (1e-6, -1e-6))
    order = [int(operands[0])] if call == "polygamma" else operands[:1]
    ends = [function(*order, *v[1:]) for v in (up, down)]
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)
