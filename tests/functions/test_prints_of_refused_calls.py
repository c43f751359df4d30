"""What a function prints at a call that Python runs: all of it, whatever an earlier call has printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.PlainRunWarning")


def stored(x: Any, y: Any) -> Any:
    x[0] = 5.0
    print("y0", y[0])
    return y[0]


def in_a_loop(x: Any, y: Any) -> Any:
    x[0] = 5.0
    for v in y:
        print("v", v)
    return y.sum()


def in_a_branch(x: Any, y: Any) -> Any:
    print("begin")
    x *= 2.0
    if y[0] > 1.5:
        print("large", y[0])
    else:
        print("small", y[0])
    return x


def formatted(x: Any, y: Any) -> Any:
    x[::-1] += 1.0
    print(f"{y.sum():.2f}", end=" ")
    print(x.shape)
    return x + y


def by_a_helper(x: Any, y: Any) -> Any:
    def show(v: Any) -> None:
        print("<", v[0], ">", sep="")

    show(y)
    x[0] = -1.0
    show(y)
    return y


def then_fails(x: Any, y: Any) -> Any:
    x[0] = 5.0
    print("y0", y[0])
    if y[0] > 2:
        raise ValueError("large")
    return y[0]


def apart() -> tuple[Any, Any]:
    return np.ones(2), np.zeros(2)


def one() -> tuple[Any, Any]:
    x = np.ones(2)
    return x, x


def part() -> tuple[Any, Any]:
    x = np.ones(3)
    return x, x[::-1]


def run(function: Callable[..., Any], args: tuple[Any, Any], capsys: pytest.CaptureFixture[str]) -> Any:
    try:
        result = np.asarray(function(*args)).tolist()
    except ValueError as error:
        result = str(error)
    return result, [v.tolist() for v in args], capsys.readouterr().out


@pytest.mark.parametrize("function", [stored, in_a_loop, in_a_branch, formatted, by_a_helper, then_fails])
def test_calls_that_python_runs_print_all(function: Callable[..., Any], capsys: pytest.CaptureFixture[str]):
    """Arrays that share memory are Python's; the calls before them are captured ones, and have printed the same beginning."""
    captured = tm.tensor(function)
    for make in (apart, apart, one, part, apart, one, one, apart):
        expected = run(function, make(), capsys)
        assert run(captured, make(), capsys) == expected
