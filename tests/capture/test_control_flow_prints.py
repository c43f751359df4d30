# ruff: noqa: UP031, UP032 (texts are made in all ways)
"""Prints, conversions, ``match`` and ``try`` in functions: when the graph runs, once, or refused by name."""

from __future__ import annotations

import contextlib
import io
import sys

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError
from tests.capture.control_flow import Cases, V, check_gradient, check_value

CASES = Cases()
case = CASES.enter


# prints ---------------------------------------------------------------------------------------------------------------


@case(V, any_regions=True)
def every_tenth_iteration(x):
    total = 0.0
    for k in range(30):
        total = total + (x**2).sum() * 0.1
        if k % 10 == 0:
            print(f"{k}: {total:.3f}")
    return total


@case(V, -V, any_regions=True)
def either_way(x):
    if x.sum() > 0:
        print("up", x.sum(), sep=": ", end="!\n")
    else:
        print("down")
    print()
    return (x * x).sum()


@case(V, while_=1)
def each_iteration_of_a_while(x):
    v = x.sum()
    while v > 0.5:
        v = v * 0.5
        print("now", v)
    return v


@case(V)
def texts_of_all_kinds(x):
    s = x[1]
    print("%.3f" % s, "%d of %s %%" % (2, x[0]), "100%", "%s" % 3)
    print("{} and {:>8.3f}".format(x[0], s), "text " + str(s) + "!", f"{s!r} {x.shape}")
    print([s, 1, (x[0],)], {"a": s}, x, None, 1.5)
    print(round(x[0], 1), float(s), x[0].item(), int(x[3]))
    return x.sum()


def helper(k, value):
    print(k, value)


@case(V, loop=1)
def in_a_helper(x):
    total = 0.0
    for k in range(3):
        total = total + x[k]
        helper(k, total)
    return total


# conversions ----------------------------------------------------------------------------------------------------------


@case(V, any_regions=True)
def converted(x):
    n = int(x[3])
    v = 1.0
    while float(abs(v)) > 0.1 and bool(v > -5):
        v = v * float(x[0]) * 0.3
    return v * n + int(-x[3]) + int(True)


@case(V, while_=1)
def a_flag(x):
    done, k = False, 0
    while not done:
        x = x * 0.5
        k += 1
        done = bool(np.abs(x).max() < 0.1)
    return x.sum() * k


@case(V)
def an_index(x):
    return x[int(np.argmax(x))] ** 2 + x[int(x[0])]


# match ----------------------------------------------------------------------------------------------------------------


@case(V, -V, any_regions=True)
def how_many_are_positive(x):
    match int((x > 0).sum()):
        case 0:
            return x.sum()
        case 1 | 2:
            return x.sum() * 2
        case n if n > 2:
            y = x * n
        case _:
            y = x
    return y.sum() * 3


@case(V, any_regions=True)
def pairs_of_patterns(x):
    k = int((x > 0).sum())
    out = 0.0
    for j in range(3):
        match (j, k):
            case (0, n) if n > 2:
                out = out + x.sum() * n
            case (1, 3 | 4):
                out = out - x[0]
                continue
            case (a, 9 as b):
                out = a * b * 1.0
            case _:
                out = out * x[1]
        out = out + 1
    return out


@case(V)
def on_words(x):
    out = 0.0
    for word in ["sum", "less", "none"]:
        match word:
            case "sum":
                out = out + x.sum()
            case "less":
                out = out - x[0]
    return out


@pytest.mark.parametrize("name", CASES)
def test_value_and_region(name):
    check_value(CASES[name])


@pytest.mark.parametrize("name", CASES.smooth)
def test_gradient(name):
    check_gradient(CASES[name])


PRINTING = ["every_tenth_iteration", "either_way", "each_iteration_of_a_while", "texts_of_all_kinds", "in_a_helper"]


@pytest.mark.parametrize("name", PRINTING)
def test_each_call_prints_what_python_prints(name, capsys):
    function = CASES[name].function
    captured, gradient = tm.tensor(function), tm.value_and_grad(function)
    for x in (V, -V, V):
        function(x)
        expected = capsys.readouterr().out
        assert expected or x is not V
        for one in (captured, gradient):
            one(x)
            assert capsys.readouterr().out == expected


def test_nothing_is_printed_where_code_is_refused(capsys):
    def refused(x):
        print("before", x[0])
        return hash(x[0])

    with pytest.raises(CaptureError):
        tm.tensor(refused).graph(V)
    assert capsys.readouterr().out == ""


def into_a_buffer(x):
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        print("rows", len(x))
    return buffer.getvalue(), x.sum()


def into_another(x):
    before, sys.stdout = sys.stdout, io.StringIO()
    print("rows", x[0])
    text, sys.stdout = sys.stdout.getvalue(), before
    return len(text)


@pytest.mark.parametrize("function", [into_a_buffer, into_another])
def test_a_print_that_the_function_redirects_is_refused(function, capsys):
    """It runs when the graph does, and the text is asked for before that."""
    before = sys.stdout
    try:
        with pytest.raises(CaptureError, match=r"redirected sys\.stdout"):
            tm.tensor(function).graph(V)
    finally:
        sys.stdout = before
    assert capsys.readouterr().out == ""


def test_a_buffer_that_the_function_prints_into_is_pythons(capsys):
    with pytest.warns(tm.PlainRunWarning):
        assert tm.tensor(into_a_buffer)(V) == into_a_buffer(V)
    assert capsys.readouterr().out == ""


def test_a_print_has_no_order_in_a_batch():
    with pytest.raises(CaptureError, match="a print in a function that is batched"):
        tm.vmap(in_a_helper)(np.stack([V, V]))


def test_numbers_that_are_no_integers():
    f = tm.tensor(lambda x: int(x) * 2)
    assert f(-2.7) == -4
    with pytest.raises(ValueError, match="cannot convert float NaN to integer"):
        f(np.nan)
    with pytest.raises(OverflowError, match="cannot convert"):
        f(np.inf)


# try ------------------------------------------------------------------------------------------------------------------


def caught_raise(x):
    try:
        if x.sum() > 0:
            raise ValueError("positive")  # noqa: TRY301 (what is tried)
        y = x * 2
    except ValueError:
        y = x * 3
    return y


def caught_check(x):
    y = x.sum()
    with contextlib.suppress(ValueError):
        if y > 0:
            raise ValueError(y)
        y = y * 3
    return y


def caught_refusal(x):
    try:
        y = hash(x[0])
    except Exception:  # noqa: BLE001 (what is tried)
        y = x[1]
    return y


def test_a_refusal_that_code_would_catch_is_one():
    with pytest.raises(CaptureError):
        tm.tensor(caught_refusal).graph(V)


@pytest.mark.parametrize("function", [caught_raise, caught_check])
def test_what_is_raised_on_data_is_caught(function):
    captured = tm.tensor(function)
    for x in (V, -V, V):
        np.testing.assert_array_equal(captured(x), function(x), strict=True)


@case(V)
def nothing_to_catch(x):
    try:
        y = x * 2
    except ValueError:
        y = x * 3
    with contextlib.suppress(ValueError), np.errstate(all="ignore"):
        y = np.log(np.abs(y))
    return y.sum()


def test_nothing_to_catch():
    check_value(CASES["nothing_to_catch"])
    check_gradient(CASES["nothing_to_catch"])
