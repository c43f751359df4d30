"""What functions return beside arrays and numbers: as Python hands it over, or refused by name."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from contextlib import nullcontext
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensormagic as tm


class Fit:
    def __init__(self, slope: Any) -> None:
        self.slope = slope


KEPT = Fit(1.0)


def fitted(x: Any) -> Any:
    return Fit(x * 2)


def the_same(x: Any) -> Any:
    KEPT.slope = x * 2
    return KEPT


def stored(x: Any) -> Any:
    x += 1
    return x.sum(), Fit(x)


def as_scipy_gives(x: Any) -> Any:
    return SimpleNamespace(x=x * 2, fun=(x**2).sum(), nit=3)


def grouped(x: Any) -> Any:
    groups = defaultdict(list)
    groups["all"].append(x * 2)
    return groups


def the_last(x: Any) -> Any:
    seen: Any = deque(maxlen=2)
    for k in range(4):
        seen.append(x * k)
    return seen


def scaled(x: Any) -> Any:
    return lambda y: x * y


@pytest.mark.parametrize("times", [1, 2])
def test_an_object_is_made_at_each_call(times: int) -> None:
    x = np.array([1.0, 2.0]) * times
    f = tm.tensor(fitted)
    f(np.array([5.0, 6.0]))
    found = f(x)
    assert type(found) is Fit
    assert np.asarray(found.slope).tolist() == (x * 2).tolist()


def test_objects_of_the_caller_stay_the_same() -> None:
    f = tm.tensor(the_same)
    for k in (1.0, 2.0):
        assert f(np.array([k])) is KEPT
        assert np.asarray(KEPT.slope).tolist() == [2 * k]


def test_stores_are_done_where_an_object_is_returned() -> None:
    x = np.array([1.0, 2.0])
    for k in (1, 2):
        total, found = tm.tensor(stored)(x)
        assert total == 3.0 + 2 * k
        assert x.tolist() == [1.0 + k, 2.0 + k]
        assert np.asarray(found.slope).tolist() == x.tolist()


def test_what_is_in_objects_and_collections_is_what_python_gives() -> None:
    f, x = tm.tensor(as_scipy_gives), np.array([1.0, 2.0])
    for k in (1, 2, 3):
        found = f(x * k)
        assert (float(found.fun), found.nit) == (5.0 * k**2, 3)
    groups = tm.tensor(grouped)(x)
    assert (type(groups), groups.default_factory) == (defaultdict, list)
    assert np.asarray(groups["all"]).tolist() == [[2.0, 4.0]]
    last = tm.tensor(the_last)(x)
    assert (type(last), last.maxlen) == (deque, 2)
    assert np.asarray(last).tolist() == [[2.0, 4.0], [3.0, 6.0]]
    assert np.asarray(tm.tensor(scaled)(x)(3.0)).tolist() == [3.0, 6.0]


@pytest.mark.parametrize(
    "value", [range(3), slice(0, 2), float, ..., Fraction(1, 3), np.datetime64("2020-01-01"), {1, 2}, frozenset({3})]
)
def test_what_is_no_number_stays_what_it_is(value: Any) -> None:
    f = tm.tensor(lambda x: (x * 2, value))
    for _ in range(2):
        _, found = f(np.ones(2))
        assert type(found) is type(value)
        assert found == value


def test_iterators_are_refused_by_name() -> None:
    def doubled(x: Any) -> Any:
        return (v * 2 for v in x)

    def each(x: Any) -> Any:
        yield from x

    for f in (doubled, each, lambda x: zip(x, x, strict=True), lambda x: iter([x]), lambda x: map(abs, x)):
        with pytest.raises(tm.CaptureError, match=r"returns an? (iterator|generator).* would run after the call"):
            tm.tensor(f).graph(np.ones(2))


def test_derivatives_and_batches_want_arrays() -> None:
    x = np.ones(2)
    for call in (
        lambda: tm.grad(fitted)(x),
        lambda: tm.jacobian(fitted)(x),
        lambda: tm.vmap(fitted)(np.ones((3, 2))),
        lambda: tm.compile(fitted, "float64[2]"),
    ):
        with pytest.raises(tm.CaptureError, match="fitted returns an object of class Fit, where arrays and numbers"):
            call()
    assert tm.grad(lambda x: as_scipy_gives(x).fun)(x).tolist() == [2.0, 2.0]


LOG: list[float] = []


def test_a_call_changes_containers_as_python_does() -> None:
    def noted(x: Any, out: list[float]) -> Any:
        LOG.append(1.0)
        out.append(2.0)
        if x.shape[0] > 2:
            raise ValueError("too many")
        return x

    step, own = tm.tensor(noted), list[float]()
    try:
        for size, count in ((2, 1), (2, 2), (3, 3), (3, 4)):
            with pytest.raises(ValueError, match="too many") if size == 3 else nullcontext():
                step(np.ones(size), own)
            assert (own, LOG) == ([2.0] * count, [1.0] * count)
        LOG.clear()
        step(np.ones(2), LOG)  # which the function reads by its name, too
        assert LOG == [1.0, 2.0]
    finally:
        LOG.clear()


def test_an_exception_of_the_users_keeps_what_was_done_before_it() -> None:
    def noted(x: Any) -> Any:
        LOG.append(float(x.shape[0]))
        raise ValueError("no")

    try:
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                tm.tensor(noted)(np.ones(3))
        assert LOG == [3.0, 3.0]
        assert {type(v) for v in LOG} == {float}
    finally:
        LOG.clear()


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (lambda x: int(x[0]), np.inf),
        (lambda x: round(x[0]), -np.inf),
        (lambda x: np.zeros(math.floor(x[0])), np.inf),
        (lambda x: int(x[0]), np.nan),
        (lambda x: math.fmod(x[0], 0.0), 1.0),
        (lambda x: math.pow(x[0], 0.5), -1.5),
        (lambda x: math.fmod(x[0], 1.0), np.inf),
    ],
)
def test_numbers_that_have_no_value_are_refused_in_pythons_words(function: Any, value: float) -> None:
    x = np.array([value, 1.0])
    with pytest.raises((ValueError, OverflowError)) as theirs:
        function(x)
    with pytest.raises(theirs.type) as ours:
        tm.tensor(function)(x)
    assert str(ours.value).partition("\n")[0] == str(theirs.value).partition(", got ")[0]


def test_a_text_of_a_value_by_percent_is_refused_by_name() -> None:
    for text in ("%d", "%i apples", "%x"):
        with pytest.raises(tm.CaptureError, match="it is turned into text here"):
            tm.tensor(lambda x, text=text: text % x[0]).graph(np.ones(2))


class Listed(list[Any]):
    """A list with an attribute."""


def of_items(x: Any) -> Any:
    found = Listed([x[0], x * 2])
    found.told = "twice"  # type: ignore[attr-defined]
    return found


def counted(x: Any) -> Any:
    groups: Any = defaultdict(float)
    groups["sum"] += x.sum()
    return groups


BESIDE = ["converged", range(3), float, 10**30, Fraction(1, 3), slice(1, 2), ["a", ("b", 1)]]


@pytest.mark.parametrize("beside", BESIDE, ids=map(str, BESIDE))
@pytest.mark.parametrize("made", [fitted, as_scipy_gives, grouped, the_last, scaled, of_items, counted])
def test_what_objects_hold_is_there_beside_what_is_no_number(made: Any, beside: Any) -> None:
    f = tm.tensor(lambda x: (made(x), beside, [beside]))
    for k in (1.0, 2.0, 2.0):
        x = np.array([1.0, 2.0]) * k
        found, told, again = f(x)
        assert (told, again) == (beside, [beside])
        expected = made(x)
        assert type(found) is type(expected)
        assert str(held(found)) == str(held(expected))


def held(value: Any) -> Any:
    """What an object holds; of a function, what it gives."""
    if callable(value):
        value = value(2.0)
    if isinstance(value, dict):
        return {k: held(v) for k, v in value.items()}
    if isinstance(value, list | deque):
        return [held(v) for v in value]
    return [held(v) for v in vars(value).values()] if hasattr(value, "__dict__") else np.asarray(value).tolist()
