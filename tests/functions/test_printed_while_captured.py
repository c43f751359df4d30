"""What a capture computes for a call of a library prints nothing: it is printed when the function runs, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

pytestmark = pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.PlainRunWarning")


class Holder:
    def __init__(self) -> None:
        self.v = np.ones(3)


def in_a_branch(x: Any, o: Any, n: int) -> Any:
    try:
        t = 1.0 / n
    except ZeroDivisionError:
        t = 0.5 * x[0]
    if x[1] > 50:
        x += t
    else:
        print("small", t)
    print(round(float(x[-1]), 6))
    return x


def in_a_loop(x: Any, o: Any, n: int) -> Any:
    try:
        t = 1.0 / n
    except ZeroDivisionError:
        t = x.sum()
    for v in x:
        if v > 1:
            print("large", v)
        x[0] += t
    print(round(float(x[0] + t), 3))
    return x * t


def in_both(x: Any, o: Any, n: int) -> Any:
    try:
        t = x[n + 1]
    except IndexError:
        t = x[0]
    if t > 1.5:
        print("one")
        x[1] = t
    else:
        print("other")
    print(round(float(t), 2), round(float(x[1]), 1))
    return t


def by_an_error(x: Any, o: Any, n: int) -> Any:
    try:
        if x[0] > n:
            raise ValueError("first")  # noqa: TRY301 (what is tested)
        print("none")
    except ValueError as error:
        print(error)
    if x[1] > 1:
        print("more", x[1])
        x[2] = 0.5
    o.v -= x[0]
    print(round(float(x[2]), 2))
    return o.v.sum()


def twice(x: Any, o: Any, n: int) -> Any:
    found = []
    for k in range(2):
        try:
            found.append(1.0 / (n - k))
        except ZeroDivisionError:
            found.append(x[k])
        if x[k] > 0.5:
            print("k", k)
            x[k] += 1.0
        print(round(float(x[k]), 1))
    return found


@pytest.mark.parametrize("function", [in_a_branch, in_a_loop, in_both, by_an_error, twice])
def test_prints_come_once(function: Callable[..., Any], capsys: pytest.CaptureFixture[str]):
    captured = tm.tensor(function)
    for n in (0, 1, 5, 0, 1):
        for x in (np.array([0.25, 1.5, 2.0]), np.array([1.75, 0.5, -1.0])):
            seen = list[Any]()
            for called in (function, captured):
                o = Holder()
                result = np.asarray(called(x.copy(), o, n)).tolist()
                seen.append((result, o.v.tolist(), capsys.readouterr().out))
            assert seen[0] == seen[1]
