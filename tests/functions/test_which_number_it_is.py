"""Numbers that data choose: whether two are one object, of which class a value beside its gradient is, and numbers that may be arrays."""

import math
import operator

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
OTHER = float("1.5")  # equal to a literal, and another object


def shown(value):
    return f"{type(value).__name__} {value!r}"


# `is` ---------------------------------------------------------------------------------------------------------------


def chosen(t, a, b):
    x = a if t > 0 else b
    y = a if t > 1 else b
    return x is y, x is not y


def of_a_loop(t, a, b):
    best = a
    for w in (b, t):
        if w > t:
            best = w
    return best is a, best is b


def of_a_while(t, a, b):
    k = b
    while t > 0:
        k, t = a, t - 1
    return k is a


def of_max(t, a, b):
    m = max(a, b)
    return m is a, m is b, t is t  # noqa: PLR0124 (it is what is tested)


def by_a_function(t, a, b):
    m = min(a, b)
    return operator.is_(m, a), operator.is_not(m, b)


def of_operators(t, a, b):
    return abs(a) is a, +a is a, (a + 0.0) is a, float(b) is b


def as_a_condition(t, a, b):
    x = a if t > 0 else b
    return t * 2 if x is a else t * 3


def beside_none(t, a, b):
    k = None
    if t > 0:
        k = a
    return k is None, k is a


SAME = [chosen, of_a_loop, of_a_while, of_max, by_a_function, of_operators, as_a_condition, beside_none]


@pytest.mark.parametrize("program", SAME, ids=lambda p: p.__name__)
def test_whether_two_numbers_are_one_object(program):
    function = tm.tensor(program)
    for t in (2.0, 0.5, -1.0, 2.0):
        for a, b in ((1.5, 2.5), (1.5, OTHER), (OTHER, OTHER), (2.5, 1.5)):
            for _ in range(2):
                assert function(t, a, b) == program(t, a, b), (t, a, b)


@pytest.mark.parametrize("program", [as_a_condition, lambda t, a, b: t if max(a, b) is a else t * 2])
def test_derivatives_and_compiled_code_refuse_to_say(program):
    with pytest.raises(tm.CaptureError, match="`is` between two numbers"):
        tm.grad(program)(2.0, 1.5, 2.5)
    with pytest.raises(tm.CaptureError, match="`is` between two numbers"):
        tm.compile(program, "float", "float", "float")


def test_what_is_known_stays_captured():
    def known(x, y=None):
        a = x[0]
        b = a
        return a is b, y is None, (x[0] > 1) is True, x is x.copy()

    x = np.arange(3.0)
    assert tm.compile(known, x)(x) == known(x) == tm.tensor(known)(x)


# classes beside gradients ---------------------------------------------------------------------------------------------


def clipped(x):
    return max(0.0, (x**2).sum() - 5)


def clipped_to_an_integer(x):
    return max(0, (x**2).sum() - 5)


def largest(x):
    best = 0.0
    for v in x:
        if v > best:  # noqa: PLR1730 (the words are tested)
            best = v
    return best


def doubled(x):
    return (0.0 if x.sum() < 0 else x.sum()) * 2


def returned_early(x):
    if x.sum() < 0:
        return 0.0
    return (x**2).sum()


def of_a_while_loop(x):
    s, i = 0.0, 0
    while i < 3 and x[i] > 0:
        s = s + x[i] * x[i]
        i += 1
    return s


def converted(x):
    return float(x.sum()) if x.sum() > 0 else x.sum() * 2


VALUES = [clipped, clipped_to_an_integer, largest, doubled, returned_early, of_a_while_loop, converted]
POINTS = [np.full(3, 0.5), np.full(3, 4.0), np.full(3, -4.0), np.array([1.0, -2.0, 3.0])]


@pytest.mark.parametrize("program", VALUES, ids=lambda p: p.__name__)
def test_a_value_is_of_its_class_beside_each_derivative(program):
    both, plain = tm.value_and_grad(program), tm.grad(program)
    for _ in range(2):
        for x in POINTS:
            expected = shown(program(x))
            value, slope = both(x)
            assert shown(value) == expected
            np.testing.assert_array_equal(slope, plain(x))
            assert shown(tm.jvp(program, (x,), (x,))[0]) == expected
            assert shown(tm.vjp(program, x)[0]) == expected
            assert shown(tm.linearize(program, x)[0]) == expected


def test_and_what_stands_beside_the_value():
    def several(x):
        rest = {"k": max(0.0, x.sum()), "j": [x[0] if x[1] > 0 else 1], "z": 0.0, "t": 0.0 if x[0] < 0 else x[0]}
        return x.sum(), rest

    both, alone = tm.value_and_grad(several, has_aux=True), tm.grad(several, has_aux=True)
    for x in POINTS:
        assert shown(both(x)[0]) == shown(several(x))
        assert shown(alone(x)[1]) == shown(several(x)[1])


# numbers that may be arrays without axes --------------------------------------------------------------------------------


def changed_in_place(x, a):
    v = 0.5
    for e in x:
        if e > 0:
            v = np.array(e)
    w = v
    w += 1
    return v, w


def changed_in_the_loop(x, a):
    v = w = 0.5
    for e in x:
        if e > 0:
            v = np.array(e)
            w = v
        else:
            v = 1.0
        v += 1.0
    return v, w


def an_argument_stored_into_later(x, a):
    v, i = 0.5, 0
    while i < x[0]:
        v = a
        i += 1
    a += 1
    return v, a


def an_argument_in_the_loop(x, a):
    v, i = 1.0, 0
    while i < x[0]:
        v = a
        a += 1
        i += 1
    return v, v * 2


def handed_on(x, a):
    v, i = a, 0
    while i < x[0]:
        v = v * 2
        i += 1
    return v


def the_larger(x, a):
    return max(a, 0.5), min(1.0, a)


def the_larger_changed(x, a):
    m = max(a, 0.5)
    m += 1
    return m, a


def the_largest_of_a_list(x, a):
    best = 0.5
    for e in [a, a * 2, np.array(0.1)]:
        best = max(best, e)
    return best


def stored_by_out(x, a):
    v, i = 0.0, 0
    while i < 3 and x[i] > 0:
        v = np.asarray(x[i])
        i += 1
    if isinstance(v, np.ndarray):
        np.multiply(v, 2, out=v)
    return v


WITHOUT_AXES = [
    changed_in_place, changed_in_the_loop, an_argument_stored_into_later, an_argument_in_the_loop, handed_on, the_larger,
    the_larger_changed, the_largest_of_a_list, stored_by_out,
]  # fmt: skip


@pytest.mark.parametrize("program", WITHOUT_AXES, ids=lambda p: p.__name__)
def test_a_number_that_may_be_an_array(program):
    function = tm.tensor(program)
    for first in (1.0, -1.0, 2.0):
        for value in (2.0, 0.2, -1.0):
            for _ in range(2):
                x, one, other = np.array([first, -1.0, 2.0]), np.array(value), np.array(value)
                expected, found = program(x.copy(), one), function(x.copy(), other)
                assert shown(found) == shown(expected)
                assert other == one
                if not isinstance(expected, tuple):
                    assert (found is other) == (expected is one)
                else:
                    assert [v is other for v in found] == [v is one for v in expected]
                    assert (found[0] is found[1]) == (expected[0] is expected[1])


def test_derivatives_of_such_numbers():
    assert tm.grad(lambda a: max(a, 0.5) ** 2)(np.array(2.0)) == 4.0
    assert tm.grad(lambda a: handed_on(np.array([3.0]), a))(np.array(2.0)) == 8.0
    with pytest.raises(tm.CaptureError, match="in place of what is a number or an array"):
        tm.grad(lambda x: changed_in_place(x, 0)[0])(np.ones(3))


# powers of complex numbers ------------------------------------------------------------------------------------------------

INF, NAN = float("inf"), float("nan")
BASES = [
    complex(INF, 0), complex(0, INF), complex(INF, NAN), complex(1e308, 1e308), 0j, 1 + 2j, complex(NAN, NAN), complex(-INF, INF),
    complex(1e200, 0), complex(1e-200, 0), complex(-0.0, 0.0), complex(NAN, 0), complex(3, -0.0),
]  # fmt: skip
EXPONENTS = [complex(INF, 0), 0j, 1 + 2j, complex(NAN, 1), 2.0, 0.0, -1.0, 1e308, 0, 3, -2, INF, -0.0, 101]
POWERS = {
    "two": lambda z: z**2,
    "minus one": lambda z: z**-1,
    "a half": lambda z: z**0.5,
    "minus two": lambda z: z**-2,
    "a complex one": lambda z: z**1j,
    "one": lambda z: z**1,
    "none": lambda z: z**0,
    "many": lambda z: z**100,
    "of two": lambda z: 2**z,
    "in a loop": lambda z: [z**k for k in range(4)],
    "in a branch": lambda z: z**3 if z != 0 else 1j,
    "a product": lambda z: z * z,
    "a quotient": lambda z: (z + 1) / (z - 1),
    "a distance": abs,
}


def outcome(function, *args):
    try:
        return function(*args)
    except ArithmeticError as error:
        return f"{type(error).__name__}: {error}"


def alike(first, second):
    if isinstance(first, list):
        return all(map(alike, first, second))
    if type(first) is not type(second) or isinstance(first, str):
        return first == second
    if isinstance(first, complex):
        return alike(first.real, second.real) and alike(first.imag, second.imag)
    both = first == second or (math.isnan(first) and math.isnan(second))
    return both or abs(first - second) <= 1e-12 * abs(first)


@pytest.mark.parametrize("name", POWERS)
def test_powers_of_pythons_complex_numbers(name):
    program = POWERS[name]
    function = tm.tensor(lambda z: program(z))
    for z in BASES:
        for _ in range(2):
            expected, found = outcome(program, z), outcome(function, z)
            assert alike(expected, found), (z, expected, found)


@pytest.mark.parametrize("kind", [int, float, complex])
def test_powers_whose_exponents_are_given(kind):
    function = tm.tensor(lambda z, w: z**w)
    for z in BASES:
        for w in [e for e in EXPONENTS if type(e) is kind]:
            expected, found = outcome(pow, z, w), outcome(function, z, w)
            assert alike(expected, found), (z, w, expected, found)


def test_compiled_powers_are_refused_where_python_decides():
    square = tm.compile(lambda z: z**2, "complex")
    assert square(1 + 2j) == (1 + 2j) ** 2
    for z in (complex(INF, 0), complex(1e308, 1e308)):
        with pytest.raises(tm.CaptureError, match="complex numbers"):
            square(z)
    assert tm.compile(lambda z: z**0, "complex")(complex(INF, 0)) == 1
