"""Tracebacks of errors that a captured function's own code meets: the user's lines, as in Python."""

from __future__ import annotations

import traceback
from contextlib import suppress

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.capture.errors.traces import chained


def lines_of(error: BaseException) -> list[str]:
    """The lines of a traceback that are in this file, after the test's own; one that is the library's call is let through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f.filename != __file__]
    assert len(ours) <= 1
    return [f.line or "" for f in frames if f.filename == __file__][1:]


def test_an_error_of_the_users_own():
    def helper(v):
        return {}["a"] * v

    def f(v):
        if v.ndim == 1:
            return helper(v)
        return v

    for call in (tm.tensor(f), tm.grad(lambda v: f(v).sum())):
        with pytest.raises(KeyError) as caught:
            call(np.ones(3))
        assert lines_of(caught.value)[-2:] == ["return helper(v)", 'return {}["a"] * v']


def test_an_error_of_other_code_keeps_its_frames():
    def f(v):
        return np.linalg.inv(v)

    with pytest.raises(np.linalg.LinAlgError) as caught:
        tm.tensor(f)(np.zeros((2, 2)))
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename != __file__


def test_a_deep_one_is_short():
    def deep(v, n):
        return deep(v, n - 1) + v if n else {}["a"]

    with pytest.raises(KeyError) as caught:
        tm.tensor(lambda v: deep(v, 200))(1.0)
    lines = lines_of(caught.value)
    assert set(lines[1:]) == {'return deep(v, n - 1) + v if n else {}["a"]'}
    assert 20 < len(lines) <= 40


def _from_another(x):
    if x > 0:
        try:
            {}["k"]
        except KeyError as error:
            raise ValueError("bad") from error
    return x * 2


def _beside_another(x):
    if x > 0:
        try:
            {}["k"]
        except KeyError:
            raise ValueError("bad")  # noqa: B904 (as people write it)
    return x * 2


def _alone(x):
    if x > 0:
        try:
            {}["k"]
        except KeyError:
            raise ValueError("bad") from None
    return x * 2


def _while_another_is_handled(function):
    def outer(x):
        try:
            tm.grad(lambda a: a)(np.ones(3))
        except tm.TensorError:
            function(x)

    return outer


def _met(function, x):
    with pytest.raises(Exception) as caught:  # noqa: PT011 (whatever Python raises)
        function(x)
    return [(type(e), str(e)) for e in chained(caught.value)]


@pytest.mark.filterwarnings("ignore:.*is run as ordinary Python")
@pytest.mark.parametrize("around", [lambda f: f, _while_another_is_handled])
@pytest.mark.parametrize("before", [None, -1.0])
@pytest.mark.parametrize(
    "function", [_from_another, _beside_another, _alone, lambda x: [x].sum(), lambda x: x + {}["k"]]
)
def test_no_error_of_capture_stands_behind_pythons(function, before, around):
    """``The above exception was the direct cause of``: the refusal because of which Python was called was shown as that."""
    captured = tm.tensor(function)
    if before is not None:
        with suppress(AttributeError, KeyError):
            captured(before)
    for _ in range(2):
        assert _met(around(captured), 1.0) == _met(around(function), 1.0)
