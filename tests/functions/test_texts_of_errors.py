"""Errors whose texts are computed from what only wrong data have: where no error is raised, none is met."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensormagic as tm


def first_negative(x):
    if (x < 0).any():
        raise ValueError(f"negative at {np.flatnonzero(x < 0)[0]}")
    return x.sum()


def first_unknown(x):
    bad = np.isnan(x)
    if bad.any():
        raise ValueError(f"{x[bad][0]} at {np.argmax(bad)}")
    return x * 2


def ratio(x):
    if x[1] < 0:
        raise ValueError(f"ratio {1 / (float(x[0]) - 1)}")
    return x * x[1]


def in_a_loop(x):
    total = 0.0
    for v in x:
        if v < 0:
            raise ValueError(f"{v} before {x[x > 3][0]}")
        total = total + v
    return total


GOOD, BAD = np.array([1.0, 2.0, 2.5]), np.array([4.0, -1.0, np.nan])
PROGRAMS = [first_negative, first_unknown, ratio, in_a_loop]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_an_error_that_is_not_raised_has_no_text(program):
    captured = tm.tensor(program)
    for _ in range(3):
        np.testing.assert_allclose(captured(GOOD), program(GOOD), rtol=1e-14)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_an_error_that_is_raised_has_pythons_text(program):
    captured = tm.tensor(program)
    captured(GOOD)
    for _ in range(2):
        with pytest.raises(Exception, match=r"\d") as own:
            program(BAD)
        with pytest.raises(type(own.value)) as found:
            captured(BAD)
        assert str(found.value) == str(own.value)


def test_what_python_meets_too_keeps_the_message_that_tells_more():
    captured = tm.tensor(lambda x, k: x[k])
    captured(GOOD, 1)
    with pytest.raises(IndexError, match="out of bounds") as found:
        captured(GOOD, 7)
    assert isinstance(found.value, IndexError)


def known_after_a_quotient(a, n):
    return 1 / a > 1 or n > 1


def known_to_be_false(a, n):
    return 1 / a > 1 and n > 5


def a_root_before(a, n):
    return math.sqrt(a - 0.5) > 1 or n > 1


@pytest.mark.parametrize(
    "program", [known_after_a_quotient, known_to_be_false, a_root_before], ids=lambda f: f.__name__
)
def test_an_operand_that_fails_is_an_error_whatever_the_other_one_is(program):
    captured = tm.tensor(program)
    assert captured(2.0, 4) == program(2.0, 4)
    for _ in range(2):
        assert captured(2.0, 4) == program(2.0, 4)
        with pytest.raises(Exception, match=r"\w") as own:
            program(0.0, 4)
        with pytest.raises(type(own.value)):
            captured(0.0, 4)
