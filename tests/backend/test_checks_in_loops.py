"""``assert`` and ``raise`` within loops that are compiled: machine code notes the numbers that they tell, and leaves."""

from __future__ import annotations

import linecache
import traceback
from typing import Any

import numpy as np
import pytest

import tensormagic as tm

SOURCE = """
class TooLargeError(ValueError):
    pass


def roots(x, most):
    total = 0.0
    for i in range(len(x)):
        assert x[i] >= 0, "negative: {0}"
        if x[i] > most:
            raise TooLargeError("larger than {most}, 100 %", "or so")
        total += np.sqrt(x[i])
    return total


def halves(x, most):
    count = 0
    for value in x:
        left = value
        while left > 1:
            assert left <= most
            left = left / 2
            count = count + 1
    return count


def with_numbers(x, most):
    total = 0.0
    for i in range(len(x)):
        if x[i] > most:
            raise ValueError(f"larger than {most}: {x[i]}")
        total += x[i]
    return total


def many_kinds(x, most):
    small = np.float32(0.1)
    for i in range(len(x)):
        small = small + np.float32(x[i])
        flag = x[i] > 3
        k = np.uint8(i % 2) * np.uint8(100)
        if x[i] > most:
            raise KeyError(small, f"{i:03d} {k!r} {flag}")
    return small


def one_of_too_many(x, most):
    for i in range(len(x)):
        if x[i] > most:
            raise ValueError(f"{x[i]} {x[i] + 1} {i} {most}")
    return most
"""  # pytest writes asserts of its own files anew
FILE = "<checks in loops>"
linecache.cache[FILE] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), FILE)
FUNCTIONS: dict[str, Any] = {"np": np}
exec(compile(SOURCE, FILE, "exec"), FUNCTIONS)
X = np.arange(12.0)
CALLS = [(X, 100.0), (X, 5.5), (X - 7, 100.0), (X[::-1], 3.0), (X[:0], 1.0), (X - 7, -100.0), (X, 100.0)]


def outcome(function: Any, given: Any) -> tuple[Any, ...]:
    """What a call gives, or what it raises, and in which line."""
    try:
        return (function(*given),)
    except Exception as error:  # noqa: BLE001 (any)
        sites = getattr(error, "tensor_sites", None)
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
        return type(error), error.args, sites[0].line if sites else lines[-1]


@pytest.mark.parametrize("name", ["roots", "halves", "with_numbers", "many_kinds", "one_of_too_many"])
def test_checks_are_those_of_python(name: str) -> None:
    function = FUNCTIONS[name]
    captured = tm.tensor(function)
    with tm.config.using(tier="numba"):
        for _ in range(3):
            captured(*CALLS[0])
        for given in CALLS:
            assert outcome(captured, given) == outcome(function, given)


@pytest.mark.parametrize("name", ["roots", "halves", "with_numbers", "one_of_too_many"])
def test_checks_that_tell_a_few_numbers_are_part_of_the_loop(name: str) -> None:
    steps = tm.compile(FUNCTIONS[name], X, 100.0).executable.plan.library_steps
    assert any(step.op.kind == "region" for step in steps) is (name == "one_of_too_many")
