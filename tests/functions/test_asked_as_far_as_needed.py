"""``any`` and ``all`` of a generator expression ask no more than Python asks: seen by what is printed, counted, and by errors."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


def told(v: Any, above: float) -> Any:
    print("asked", v)
    return v > above


def inverse(v: Any, above: float) -> Any:
    return 1 / v > above


def plain(v: Any, above: float) -> Any:
    return v > above


def as_any(one: Any, values: tuple[Any, ...], above: float) -> Any:
    return any(one(v, above) for v in values)


def as_all(one: Any, values: tuple[Any, ...], above: float) -> Any:
    return all(one(v, above) for v in values)


def in_branch(one: Any, values: tuple[Any, ...], above: float) -> Any:
    if any(one(v, above) for v in values) and not all(one(v, above) for v in [*values]):
        print("some")
        return sum(values)
    return values[0] * 2


def nested(one: Any, values: tuple[Any, ...], above: float) -> Any:
    return all(any(one(v * w, above) for v in values[:2]) for w in values)


def outcome(function: Any, one: Any, values: tuple[Any, ...], capsys: Any) -> Any:
    try:
        result = function(one, values, 0.5)
        found: Any = (type(result), result)
    except ZeroDivisionError as error:
        found = str(error)
    return found, capsys.readouterr().out


@pytest.mark.parametrize("function", [as_any, as_all, in_branch, nested], ids=lambda f: f.__name__)
@pytest.mark.parametrize("one", [told, inverse, plain], ids=lambda f: f.__name__)
def test_no_more_is_asked_than_python_asks(function: Any, one: Any, capsys: Any) -> None:
    captured, rng = tm.tensor(function), random.Random(f"{function.__name__} {one.__name__}")
    for _ in range(6):
        values = tuple(rng.choice([-1.0, 0.25, 0.5, 2.0, 4.0, 0.0]) for _ in range(3))
        assert outcome(captured, one, values, capsys) == outcome(function, one, values, capsys), values


def test_of_longer_ones_what_prints_is_refused_by_name() -> None:
    captured = tm.tensor(lambda x: any(told(v, 2.0) for v in [x * k for k in range(40)]))
    with pytest.raises(tm.CaptureError, match=r"any\(\) of values whose computation prints"):
        captured.graph(1.0)
    assert tm.tensor(lambda x: any(plain(v, 2.0) for v in [x * k for k in range(40)]))(1.0) is True


def test_an_iterator_that_goes_on_afterwards_is_refused_by_name() -> None:
    rest = iter([1.0, 2.0, 3.0])
    with pytest.raises(tm.CaptureError, match=r"any\(\) that takes a data-dependent number of values"):
        tm.tensor(lambda x: any(v > x for v in rest))(1.5)
    pairs = tm.tensor(lambda x, y: all(v < w for v, w in zip(x, y, strict=True)))
    for x, y in itertools.permutations([(1.0, 2.0), (2.0, 3.0), (0.0, 5.0)], 2):
        assert pairs(x, y) == all(v < w for v, w in zip(x, y, strict=True))


def test_of_arrays_and_of_nothing() -> None:
    captured = tm.tensor(
        lambda x: (any(v > 1 for v in x), all(v > 1 for v in x), any(v for v in []), all(v for v in ()))
    )
    for data in ([0.0, 2.0], [2.0, 3.0], [0.0, 0.0]):
        x = np.array(data)
        assert captured(x) == (any(v > 1 for v in x), all(v > 1 for v in x), False, True)
