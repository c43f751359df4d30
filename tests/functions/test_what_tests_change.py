"""Tests of `while` that change something: draws, prints, stores and lists are those of as many tests as Python asks."""

from __future__ import annotations

import contextlib
import io
import warnings
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError


def drawn(x, rng):
    n = 0
    while rng.random() > 0.3:
        n += 1
    return n, rng.random()


def drawn_last(x, rng):
    n = 0
    while x.sum() + n < 100 and rng.normal() > -0.4:
        n += 1
    return n, rng.random()


def drawn_by_name(x, rng):
    n = 0
    while not np.random.rand() < 0.2:  # noqa: NPY002 (its state is ours, too)
        n += 1
    return n, np.random.rand()  # noqa: NPY002


def stored(x, rng):
    x, n = x.copy(), 0

    def halved():
        x[:] = x * 0.5
        return x.max()

    while halved() > 0.1:
        n += 1
    return n, x


def bound(x, rng):
    n = 0

    def halved():
        nonlocal x
        x = x * 0.5
        return x.max()

    while halved() > 0.1:
        n += 1
    return n, x


def appended(x, rng):
    found = []

    def far(v):
        found.append(v.max())
        return v.max() > 0.1

    while far(x):
        x = x * 0.5
    return x, found


def printed(x, rng):
    def far(v):
        print("asked", v.max() > 1)
        return v.max() > 0.1

    while far(x):
        x = x * 0.5
    return x


def kept_in_an_item(x, rng):
    state = {"x": x, "n": 0}

    def halved():
        state["x"] = state["x"] * 0.5
        state["n"] += 1
        return state["x"].max()

    while halved() > 0.1:
        x = x + 1
    return x, state["x"], state["n"]


PROGRAMS = [drawn, drawn_last, drawn_by_name, stored, bound, appended, printed, kept_in_an_item]


def outcome(function: Any, seed: int) -> tuple[Any, str]:
    rng = np.random.default_rng(seed)
    np.random.seed(seed)  # noqa: NPY002
    text = io.StringIO()
    with contextlib.redirect_stdout(text), warnings.catch_warnings(action="ignore"):
        result = function(rng.uniform(1, 9, 3), rng)
    return result, text.getvalue()


def alike(one: Any, other: Any) -> None:
    if isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            alike(a, b)
    else:
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_what_a_test_changes_is_changed_as_often_as_in_python(program):
    captured = tm.tensor(program)
    for seed in (0, 1, 2, 0):
        found, expected = outcome(captured, seed), outcome(program, seed)
        alike(found[0], expected[0])
        assert found[1] == expected[1]


def test_a_test_that_draws_is_refused_with_a_way_out():
    with pytest.raises(CaptureError, match="the test of a `while` changes rng"):
        tm.tensor(drawn).graph(np.ones(3), np.random.default_rng(0))

    def left(x, rng):
        n = 0
        while True:
            if not rng.random() > 0.3:
                break
            n += 1
        return n, rng.random()

    assert tm.tensor(left).graph(np.ones(3), np.random.default_rng(0)) is not None
    alike(outcome(tm.tensor(left), 1)[0], outcome(drawn, 1)[0])


def test_a_test_that_only_may_raise_is_staged():
    def checked(x):
        def square(v):
            if v < 0:
                raise ValueError(f"{v} is negative")
            return v * v

        n = 0
        while square(x) > 0.5:
            x = x / 2
            n += 1
        return n, x

    assert tm.tensor(checked).graph(9.0) is not None
    assert tm.tensor(checked)(9.0) == checked(9.0)
    with pytest.raises(ValueError, match="negative"):
        tm.tensor(checked)(-1.0)
