"""Containers that occur twice in a result are one container: of functions of ``tm.compile`` as of ``tm.tensor``, anew at each call."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


@dataclass
class Pair:
    left: Any
    right: Any


def rows(x: Any) -> Any:
    grid = [[0] * 3] * 2
    grid[0][0] = x
    return grid


def table(x: Any) -> Any:
    found = {"x": x, "more": [x, x * 2]}
    return found, found["more"], (found, 1), [found]


def in_a_loop(x: Any) -> Any:
    row: list[Any] = []
    several = []
    for k in range(3):
        row.append(x * k)
        several.append(row)
    return several


def in_a_branch(x: Any) -> Any:
    row = [x, -x]
    y = x * 2 if x > 0 else x
    return [row, [y], row]


def record(x: Any) -> Any:
    values = [x + 1]
    pair = Pair(values, {"again": values})
    return pair, pair.left


def nothing_inside(x: Any) -> Any:
    return [[]] * 2, x


def same_tuple(x: Any) -> Any:
    pair = (x, [x])
    return pair, pair, pair[1]


PROGRAMS = rows, table, in_a_loop, in_a_branch, record, nothing_inside, same_tuple


def form(value: Any, met: dict[int, int]) -> Any:
    """What a result is: its containers by the order in which they occur, its numbers by value."""
    if isinstance(value, list | tuple | dict | Pair):
        if id(value) in met:
            return met[id(value)]
        met[id(value)] = len(met)
        parts = vars(value) if isinstance(value, Pair) else value
        items = parts.items() if isinstance(parts, dict) else enumerate(parts)
        return type(value).__name__, [(key, form(part, met)) for key, part in items]
    return np.asarray(value).tolist()


@pytest.mark.parametrize("make", [lambda f: tm.compile(f, 1.5), tm.tensor], ids=["compile", "tensor"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_what_is_one_stays_one(f: Any, make: Any) -> None:
    made = make(f)
    with tm.config.using(tier="numpy"):
        for given in (1.5, 2.5, -1.0):
            found = made(given)
            assert form(found, {}) == form(f(given), {})
        assert found is not made(-1.0)


def test_each_call_has_its_own() -> None:
    made = tm.compile(rows, 1.5)
    first = made(1.0)
    first[0][1] = 7
    assert first == [[1.0, 7, 0], [1.0, 7, 0]]
    assert made(1.0) == [[1.0, 0, 0], [1.0, 0, 0]]
    with ThreadPoolExecutor(4) as pool:
        for value, found in enumerate(pool.map(made, map(float, range(50)))):
            assert found[0] is found[1]
            assert found[0] == [float(value), 0, 0]


def test_a_file_keeps_values_and_not_which_list_it_is(tmp_path: Any) -> None:
    made = tm.compile(rows, 1.5)
    made.save(tmp_path / "rows.tm")
    found = tm.load(tmp_path / "rows.tm", trusted=True)(2.0)
    assert found == rows(2.0)
    assert found[0] is not found[1]  # docs/limits.md says so
