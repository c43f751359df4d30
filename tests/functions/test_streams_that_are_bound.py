"""Code that binds ``sys.stdout`` or ``sys.stderr`` anew: Python runs such calls, and a refusal leaves the streams as they were."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def caught(x: Any) -> Any:
    old = sys.stdout
    sys.stdout = buffer = io.StringIO()
    print("x is", x)
    sys.stdout = old
    return buffer.getvalue()


def caught_safely(x: Any) -> Any:
    old = sys.stdout
    try:
        sys.stdout = io.StringIO()
        print(f"{x.sum():.2f}")
        text = sys.stdout.getvalue()
    finally:
        sys.stdout = old
    return text, x * 2


def in_a_loop(x: Any) -> Any:
    texts = []
    for v in x:
        old, sys.stdout = sys.stdout, io.StringIO()
        print(v, end="")
        texts.append(sys.stdout.getvalue())
        sys.stdout = old
    return texts


def in_a_branch(x: Any) -> Any:
    old = sys.stdout
    if x.sum() > 1:
        sys.stdout = io.StringIO()
        print("large")
    sys.stdout = old
    return x + 1


def both(x: Any) -> Any:
    old = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = buffer = io.StringIO()
    print("out")
    print("err", file=sys.stderr)
    sys.stdout, sys.stderr = old
    return buffer.getvalue() + str(x)


def helped(x: Any) -> Any:
    return caught(x)[::-1], x.sum()


PROGRAMS = caught, caught_safely, in_a_loop, in_a_branch, both, helped


@pytest.mark.parametrize("tier", ["auto", "numpy"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore::tensormagic.PlainRunWarning")
def test_calls_are_pythons(f: Any, tier: str) -> None:
    streams = sys.stdout, sys.stderr
    made = tm.tensor(f)
    with tm.config.using(tier=tier):
        for given in (np.array([1.5, 2.0]), np.array([1.5, 2.0]), np.array([0.25])):
            np.testing.assert_equal(made(given), f(given))
            assert (sys.stdout, sys.stderr) == streams


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_refusal_leaves_the_streams(f: Any) -> None:
    streams = sys.stdout, sys.stderr
    x = np.array([1.5, 2.0])
    for refuse in (lambda: tm.compile(f, x), lambda: tm.grad(lambda v: (f(v), v.sum())[1])(x)):
        with pytest.raises(tm.TensorError):
            refuse()
        assert (sys.stdout, sys.stderr) == streams
