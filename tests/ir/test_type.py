"""Sizes against integers, and types as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensormagic.ir.size import is_at_least
from tensormagic.ir.type import (
    Dim,
    Type,
    apply,
    array,
    atoms,
    divide_exactly,
    evaluate,
    hint,
    lower_bound,
    product,
    python,
    size_text,
    substitute,
    symbol,
)

NAMES = "abc"
VALUES = st.fixed_dictionaries({name: st.integers(2, 9) for name in NAMES})


@st.composite
def sizes(draw, depth=3):
    """A size, and the integer function that it stands for."""
    if depth == 0 or draw(st.booleans()):
        if draw(st.booleans()):
            name = draw(st.sampled_from(NAMES))
            return symbol(name), lambda v, n=name: v[n]
        number = draw(st.integers(-3, 5))
        return number, lambda v, k=number: k
    left, f = draw(sizes(depth=depth - 1))
    right, g = draw(sizes(depth=depth - 1))
    operator = draw(st.sampled_from(["+", "-", "*", "floordiv", "mod", "min", "max"]))
    match operator:
        case "+":
            return left + right, lambda v: f(v) + g(v)
        case "-":
            return left - right, lambda v: f(v) - g(v)
        case "*":
            return left * right, lambda v: f(v) * g(v)
        case "floordiv" | "mod":
            divisor = draw(st.integers(1, 4))
            python_operator = (lambda a, b: a // b) if operator == "floordiv" else (lambda a, b: a % b)
            return apply(operator, left, divisor), lambda v: python_operator(f(v), divisor)
        case _:
            return apply(operator, left, right), lambda v: {"min": min, "max": max}[operator](f(v), g(v))


def number(size, values):
    return evaluate(size, lambda a: values[a.name])


@given(sizes(), VALUES)
def test_arithmetic_is_that_of_integers(pair, values):
    size, function = pair
    assert number(size, values) == function(values)
    bound = lower_bound(size)
    assert bound is None or bound <= function(values)


@given(sizes(), sizes(), VALUES)
def test_equal_sizes_are_equal_numbers_and_substitution_is_evaluation(left, right, values):
    (a, f), (b, g) = left, right
    if a == b:
        assert f(values) == g(values)
        assert hash(a) == hash(b)
    assert a - b == -1 * (b - a)
    assert (a + b) * 2 == b * 2 + a * 2
    fixed = substitute(a, {x: values[x.name] for x in atoms(a)})
    assert fixed == f(values)
    assert isinstance(fixed, int)


@given(sizes(), VALUES)
def test_exact_division(pair, values):
    size, _ = pair
    divisor = symbol("a") * 2
    total = size * divisor
    quotient = divide_exactly(total, divisor)
    if quotient is not None:
        assert number(quotient, values) * number(divisor, values) == number(total, values)


def test_the_normal_form():
    n, m = symbol("n"), symbol("m")
    assert str((n + m) * (n - m)) == "-1*m^2+n^2"
    assert n - n == 0
    assert isinstance((n + 1) - n, int)
    assert n * m == m * n
    assert (n * 4 + 2) // 2 == n * 2 + 1
    assert (n * 4 + 3) % 2 == 1
    assert apply("max", n + 3, n) == n + 3
    assert apply("min", n, 2) == 2
    assert divide_exactly(n * m * 6, n * 2) == m * 3
    assert divide_exactly(n + 1, n) is None
    assert product((n, 2, m)) == n * m * 2


def _shared(depth, size):
    """A size whose text doubles with each level, while it has one more part."""
    for k in range(depth):
        size = apply("min", size + k % 3, 2 * apply("floordiv", size, 3) + k)
    return size


def test_parts_that_stand_at_many_places_are_replaced_once():
    a, b = symbol("a"), symbol("b")
    deep = _shared(60, a)
    assert atoms(deep) == atoms(a)
    assert substitute(deep, {atoms(a)[0]: b}) == _shared(60, b)
    assert len(size_text(deep)) < 200
    assert size_text(apply("min", a, b)) == "min(a, b)"


def test_equal_extremes_keep_what_was_seen():
    a, b = symbol("a", 3), symbol("b", 5)
    first = apply("min", a, b)
    assert hint(first) == 3
    assert hint(apply("min", symbol("a", 7), symbol("b", 6))) == 6
    assert hint(apply("min", symbol("a"), symbol("b"))) is None
    assert apply("min", a, b) is first


def test_hints_are_no_part_of_identity():
    seen, unseen = symbol("n", 7), symbol("n")
    assert seen == unseen
    assert hint(seen * 2 + 1) == 15
    assert hint(unseen) is None
    assert hint(5) == 5


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (array(np.float32, symbol("n"), 3), "float32[n, 3]"),
        (array(np.int64), "int64"),
        (array(bool), "bool_"),
        (Type(np.dtype(bool), ()), "bool[]"),
        (Type(np.dtype(float), ()), "float64[]"),
        (python(float), "float"),
        (python(bool), "bool"),
        (python(complex), "complex"),
        (python(int), "int"),
    ],
)
def test_types_as_text(t, text):
    assert str(t) == text


def test_types_differ_by_dtype_shape_and_form():
    n: Dim = symbol("n")
    kinds = [
        array(float, n),
        array(np.float32, n),
        array(float, n, n),
        array(float),
        Type(np.dtype(float), ()),
        python(float),
    ]
    assert len(set(kinds)) == len(kinds)
    assert array(float, n).with_shape(()).form == "scalar"
    assert array(float, n, 2).size == n * 2
    assert array(complex).inexact
    assert not array(int).inexact


def test_a_quotient_of_a_quotient_is_one_and_what_stands_outermost_is_bounded_first():
    n = symbol("n", 9)
    halved = apply("floordiv", apply("floordiv", n + 1, 2) + 1, 2)
    assert halved == apply("floordiv", n + 3, 4)
    half = apply("floordiv", n, 4)  # may be 0
    assert is_at_least(half - apply("min", 1, half), 0)
    assert not is_at_least(half - 1, 0)
