"""What is Python's own in captured code: lists that are repeated, comparisons with None, ``math``, ``type`` and ``hasattr``, divisions."""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import math
import operator
import re
import warnings
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError, DifferentiationError
from tests.capture.harness import KINDS, assert_equal, captured, check, laid_out, plain, refused

NAMES: dict[str, Any] = {
    "x": np.arange(6.0).reshape(3, 2),
    "v": np.array([1.5, 2, 3]),
    "k": np.array([2, 1, 1]),
    "u": np.array([True, False]),
    "e": np.array(3),
    "n": 3,
    "s": 1.5,
    "h": np.array([0.1, 2], np.float32),
    "b": np.array([3, 250], np.uint8),
    "z": np.array([1 + 2j, 2]),
    "math": math,
}

OPERATORS = """
[0]*n; [0]*e; [0]*k[0]; (0,)*len(x); (0,)*k[0]; 'a'*len(x); [x[0]]*len(x); [[0]*2]*len(x); 3*[x]; [0]*s; x*[1,2];
[0]*(n+1); k*[1,2,3]; e*[1,2]; k[0]*[1,2]; np.sum(k)*[1,2]; [1,2]*np.sum(k); np.sum(x)*[1,2]; [1]+[0]*(len(x)-1);
np.array([1]*len(x)); np.zeros([2]*x.ndim); x.reshape((1,)*n+x.shape); len(v)*[1]; len(v)+[1]; [1]-len(v); v[0]+[1,2];
[1,2]+k[0]; [1]==len(v); [3]==k[0]*3; x==None; None!=x; e==None; e!=None; k[0]==None; k[0]!=None; x=='ab'; x=={1:2};
{1,2}!=x; None in x; 2 in k; 2 in k[0]; 3 in e; None in v; x is None; x[:0]==None; u==None; (x!=None).all();
len(v)**-1; len(v)**-2; k[0]*True; [0]*True; [0]*u[0]; len(v)==None
""".replace("\n", " ")

MATH = """
sqrt(s); sqrt(h[0]); sqrt(b[0]); sqrt(e); sqrt(u[0]); sqrt(s-3); sqrt(v[0]-10); sqrt(k[0]); sqrt(np.nan*s); exp(s);
exp(h[0]); exp(1000*s); exp(np.inf*s); log(s); log(b[0]); log(0*s); log(-s); log(s,2); log(s,1); log(np.inf*s);
log2(b[0]); log10(h[0]); log1p(b[0]); log1p(-s); expm1(b[0]); exp2(b[0]); cbrt(b[0]); sin(h[0]); cos(np.inf*s);
tan(u[0]); asin(s); asin(s/2); acos(2*s); atan(s); atan2(k[0],h[0]); sinh(900*s); cosh(800*v[0]); tanh(900*s);
asinh(s); acosh(s); acosh(s/2); atanh(s/2); atanh(s-.5); erf(h[0]); erfc(s); lgamma(k[0]); lgamma(0*s); gamma(0*s);
gamma(200*s); gamma(-k[0]); fabs(k[0]); fabs(-s); degrees(b[0]); radians(s); pow(k[0],2); pow(s,.5); pow(-s,.5);
pow(0*s,-1); pow(1e200*s,2); fmod(k[0],2); fmod(s,0); fmod(-s,1); copysign(s,-1); hypot(s,2); hypot(v[0],v[1],v[2]);
hypot(s); hypot(h[0],1); floor(s); floor(h[0]); floor(k[0]); floor(-s); floor(np.inf*s); floor(np.nan*s); ceil(s);
ceil(h[0]); trunc(-s); isnan(s); isinf(s*np.inf); isfinite(v[0]); gcd(k[0],4); gcd(len(v),6); lcm(k[0],3); gcd(s,2);
factorial(len(v)); comb(len(v),2); isqrt(len(v)); prod(x.shape); prod([n,s]); prod([n,s],start=2); isclose(s,1.5);
isclose(v[0],1.6,rel_tol=.1); isclose(s,np.inf); isclose(np.inf*s,np.inf); isclose(s,1.6,abs_tol=.2);
isclose(s,1,rel_tol=-1); pi*s; sqrt(2); prod([2,3])
""".replace("\n", " ")

KINDS_OF = """
type(x) is np.ndarray; type(x)==np.ndarray; type(k[0]) is np.int64; type(s) is float; type(len(v)) is int;
type(v.sum()) is np.float64; type(x)==type(v); type([v]) is list; type((1,)) is tuple; hasattr(s,"__len__");
hasattr(x,"__len__"); hasattr(v[0],"shape"); hasattr(len(x),"shape"); hasattr(v[0],"__iter__"); hasattr(x,"nothing");
getattr(s,"ndim",7); getattr(x,"ndim",7); getattr(x,"shape"); any(v>2); all(k); any([v[0]>2]); round(k[0],1);
round(k[0],-1); round(b[0],-1); round(s,1); round(v[0],1); round(x); round(e); round(u[0]); round(len(v));
round(len(v),1); k[0].choose([1,2,3]); np.choose(e-2,[1,2,3]); np.choose(k,[1,2,3]); e.imag; x.imag; s.imag;
np.ndarray((2,)).shape; isinstance(x,np.ndarray);
x[(0,1),(1,0)]; x[range(2),(1,0)]; x[[[]]]; x[range(2)]; x[[],[]]; x[((0,1),)]; x[(0,1),:1]
""".replace("\n", " ")

DIVISIONS = """
s/(n-3); s/0; s//0.0; s%0.0; s/(s-1.5); 1j/(s-1.5); 1/(s-1.5); 1/(len(v)-3); s/n; s//1; s%1; (s-1.5)**-1;
(s-1.5)**(0-s); (s-1.5)**n; (s-3)**2; s**s; s**-s; (s-3)**3.0; v/(n-3); v[0]/0; s/v; len(v)**-1; (len(v)-3)**-1;
divmod(s,2)[0]; (s-1.5)/s; (0*s)**0; (0*s)**.5
""".replace("\n", " ")


def expressions(table: str, prefix: str = "") -> list[str]:
    """The expressions of a table."""
    return [prefix + e.strip() for e in table.split(";") if e.strip()]


@pytest.mark.parametrize("table", [OPERATORS, KINDS_OF, DIVISIONS], ids=["operators", "kinds", "divisions"])
def test_cells(table: str, tier: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "math", "exact")
    compared = expressions(table)
    for expression in compared if tier == "numpy" else compared[::7]:
        try:
            check(f"r = {expression}", **NAMES)
        except Exception as error:
            raise AssertionError(expression) from error


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_math():
    """Last digits are NumPy's."""
    for expression in expressions(MATH, "math."):
        code = f"r = {expression}"
        expected, ours = plain(code, NAMES), captured(code, NAMES)
        assert (ours.error is None) == (expected.error is None), (expression, ours, expected)
        if expected.error is None:
            assert_equal(ours.names["r"], expected.names["r"], expression, 1e-15)
        else:
            kind = next(k for k in KINDS if isinstance(expected.error, k))
            assert isinstance(ours.error, kind), (expression, ours.error, expected.error)


def test_math_of_complex_numbers_and_what_is_not_captured():
    with pytest.raises(TypeError, match="must be real number, not complex"):
        raise captured("r = math.sqrt(z[0])", NAMES).error or AssertionError
    check("r = math.fsum([s, s]), math.remainder(s, 2)", **NAMES)
    captured_alone = tm.tensor(lambda s: (math.fsum([s, s]), math.remainder(s, 2)))  # called as they are
    assert [captured_alone(v) for v in (1.5, 2.75)] == [(3.0, -0.5), (5.5, 0.75)]
    with pytest.raises(DifferentiationError, match="fsum"):
        tm.grad(lambda s: math.fsum([s, s]))(1.5)
    refused("r = (s - 3) ** 0.5", "the result is complex", **NAMES)
    refused("r = (s - 9) ** s", "the result is complex", **NAMES)


def test_lists_are_repeated_in_place():
    check("r = [1]\nq = r\nr *= len(x)\nr[0] = 5", **NAMES)
    check("r = []\nr += [0] * len(x)", **NAMES)
    check("a = k[0]\na *= [1, 2]", **NAMES)
    check("r = [0.0] * len(x)\nfor i in range(len(x)):\n    r[i] = x[i].sum()\nq = np.array(r)", **NAMES)


def roots(v):
    total = 0.0
    for i in range(len(v)):
        total += math.sqrt(v[i]) / (2.0 * i + 1)
    return total


def rounded(v):
    y = np.empty(len(v), int)
    for i in range(len(v)):
        y[i] = math.floor(v[i])
    return y


def listed(v):
    y = [0.0] * len(v)
    for i in range(len(v)):
        y[i] = v[i] * 2
    return np.array(y)


def harmonic(v):
    total = 0.0
    for i in range(len(v)):
        total += 1.0 / (v[i].item() - i)
    return total


@pytest.mark.parametrize("function", [roots, rounded, listed, harmonic])
def test_in_functions(function: Any, tier: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tm.config, "math", "exact")
    ours = tm.tensor(function)
    for values in ([2.5, 3, 4], [-2.5, 4, 1, 7], [5.0, 0.25] * 20, [0.0]):
        given = np.array(values)
        try:
            expected = function(copy.copy(given))
        except (ValueError, ZeroDivisionError) as error:
            told_of = str(error).partition(", got ")[0]  # Python 3.14 adds the value
            with pytest.raises(type(error), match=re.escape(told_of)):
                ours(given)
        else:
            assert np.allclose(ours(given), expected, rtol=1e-14)


def test_derivatives_pass_what_is_checked():
    x = np.array([2.0, 3.0, 5.0])
    expected = 0.5 / np.sqrt(x) / np.array([1, 3, 5])
    assert np.allclose(tm.grad(tm.tensor(roots))(x), expected)

    def powers(a):
        return math.exp(a) * a**2.5 / a

    a, step = 1.3, 1e-6
    assert np.isclose(tm.grad(tm.tensor(powers))(a), (powers(a + step) - powers(a - step)) / (2 * step))


def test_a_list_repeated_as_often_as_data_say_is_refused_in_functions():
    with pytest.raises(CaptureError, match="repeating a list a data-dependent number of times"):
        tm.tensor(lambda k: [0] * k[0]).graph(np.array([2]))


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.5, 3.0, math.inf, -math.inf, math.nan, 1e200, -1e200, 5e-324]
OF_TWO = "x + y; x - y; x * y; x / y; x // y; x % y; x ** y; x < y; x == y; divmod(x, y)"
OF_ONE = """x**2; x**3; x**0; x**1; x**-1; x**.5; x**-2.5; 2**x; (-2)**x; (-8)**x; 0**x; 2.5**x; 1e10**x; True**x; 7 // x; 7 % x; x // 3;
x % -3; 1 / x; x / 0; divmod(7, x); -x; abs(x); (x + 0j) ** -1; (x + 0j) ** 2"""


def told(function: Any, *given: float) -> str:
    """What a function gives, or its error; that Python's result is complex, which is refused."""
    try:
        found = function(*given)
    except CaptureError:
        return "complex"
    except ArithmeticError as error:
        return f"{type(error).__name__}: {error}"
    return "complex" if isinstance(found, complex) and not isinstance(found, np.generic) else repr(found)


@pytest.mark.parametrize("expression", [e.strip() for e in f"{OF_TWO};{OF_ONE}".split(";")])
def test_operators_of_pythons_floats_are_errors_where_pythons_are(expression: str):
    names = "x, y" if "y" in expression else "x"
    plainly = eval(f"lambda {names}: {expression}")
    function = tm.tensor(eval(f"lambda {names}: {expression}"))
    with np.errstate(all="ignore"):
        for given in itertools.product(SPECIAL, repeat=2 if "y" in expression else 1):
            assert told(function, *given) == told(plainly, *given), given


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (lambda a: 2**70 + 1, None),
        (lambda a: [2**63, 2**70], None),
        (lambda a: math.factorial(25), None),
        (lambda a: int(a[2]) * 2**62, None),
        (lambda a: len(a) ** 4 * 2**60, None),
        (lambda a: int(a[2]) << 62, None),
        (lambda a: len(a) ** 50 % 1000, None),
        (lambda a: int(a[2]) ** (int(a[1]) * 30), None),
        (lambda a: 1 << int(a[2]) * 30, None),
        (lambda a: pow(int(a[2]), 50, 1000), "modulus"),
    ],
)
def test_integers_of_more_than_64_bits(function, result, tier):
    a = np.arange(1, 4)
    if result is None:
        assert tm.tensor(function)(a) == function(a)
    else:
        with pytest.raises(CaptureError, match=result):
            tm.tensor(function).graph(a)


KINDS_OF_TRUTH = """x > 0 and x < 5; x > 0 or y > 0; y > 0 and x > 0; 0 < x < 3; 0. < x; not (x > 0 and x < 5); x > 0 and x < 5 or x == 7;
~(x < 1 and x < 3); (x > 0 and x < 5) + 1; (x > 0 or x < 5) * 1.5; True and x > 0; x > 0 and True; False or x > 0; (x > 0 and y > 0) + 0"""


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
@pytest.mark.parametrize("expression", [e.strip() for e in KINDS_OF_TRUTH.split(";")])
def test_truth_values_are_of_the_kind_of_their_operands(expression: str):
    text, file = f"plainly = lambda x, y: {expression}\n", f"<truth of {expression}>"
    linecache.cache[file] = (len(text), None, [text], file)
    space: dict[str, Any] = {}
    exec(compile(text, file, "exec"), space)
    plainly, function = space["plainly"], tm.tensor(space["plainly"])
    for x, y in itertools.product((np.float64(2), np.float64(-2), np.float64(7), 2.0, -2.0), (np.float64(1), 1.0)):
        ours, expected = function(x, y), plainly(x, y)
        alike = type(x) is type(y) and "True" not in expression
        assert ours == expected
        assert not alike or type(ours) is type(expected), (x, y)
        check(f"z = {expression}", x=x, y=y)  # in a cell, where data can be asked


def test_a_truth_value_that_a_loop_makes_is_of_the_kind_of_its_parts():
    def all_above(v: Any) -> Any:
        found = True
        for x in v:
            found = found and x > 0
        return ~found, found + found, found * 1.5

    for v in (np.array([1.0, 2]), np.array([1.0, -2])):
        assert_equal(tm.tensor(all_above)(v), all_above(v), "kinds")


UNREAD = {
    "try:\n        return np.linalg.inv(x)\n    except np.linalg.LinAlgError:\n        return x": False,
    "try:\n        return np.linalg.inv(x)\n    except:\n        return x": False,
    "try:\n        y = np.linalg.inv(x)\n    finally:\n        return x": False,
    "with contextlib.suppress(np.linalg.LinAlgError):\n        return np.linalg.inv(x)\n    return x": False,
    "with np.errstate(all='ignore'):\n        return 1 / x": True,
    "try:\n        y = x + 1\n    finally:\n        x = x * 2\n    return y": True,
}


@pytest.mark.parametrize("body", UNREAD)
def test_a_function_without_source_that_may_catch_errors_is_refused(body: str):
    space: dict[str, Any] = {"np": np, "contextlib": contextlib, "tm": tm}
    with warnings.catch_warnings(action="ignore"):  # of `return` in `finally`, from Python 3.14 on
        exec(
            f"def helper(x):\n    {body}\n@tm.tensor\ndef f(x):\n    {body}\ng = tm.tensor(lambda x: helper(x))", space
        )
    for function in (space["f"], space["g"]):
        if UNREAD[body]:
            assert_equal(function(np.ones((2, 2))), space["helper"](np.ones((2, 2))), body)
        else:
            with pytest.raises(CaptureError, match="its source is not available"):
                function.graph(np.ones((2, 2)))
    given = laid_out(np.ones((2, 2)))
    ours = captured("y = helper(x)", {"x": given, "helper": space["helper"]})
    assert_equal(ours.names["y"], space["helper"](given), body)


def test_operands_that_numpy_leaves_the_operator_have_it():
    class Other:
        __array_ufunc__ = None

        def __radd__(self, _):
            return "radd"

    lazy = tm.tensor(np.array([1.0, 2.0])) * 1
    assert lazy + Other() == "radd"
    assert lazy == pytest.approx([1.0, 2.0])
    assert (1, lazy[1]) == pytest.approx((1, 2.0))
    with pytest.raises(TypeError, match="unsupported operand"):
        lazy - Other()


SEVERAL = (np.ones(3), np.ones((2, 1)), np.zeros(0), np.array([True, False]))


@pytest.mark.parametrize("convert", [int, float, complex, bool, operator.index, round])
def test_numbers_of_several_elements_are_refused_as_numpy_refuses_them(convert: Any) -> None:
    captured_too = tm.tensor(lambda x: convert(x))
    for value in SEVERAL:
        with pytest.raises((TypeError, ValueError)) as numpys:
            convert(value)
        with pytest.raises(type(numpys.value)) as ours:
            captured_too(value)
        assert str(ours.value) == str(numpys.value)
