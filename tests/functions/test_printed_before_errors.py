"""What a function has printed, and which error it raises first, where it cannot be captured to its end; settings of NumPy's."""

from __future__ import annotations

import itertools
import random
import sys
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError


def shapes(x: Any) -> Any:
    print("shapes", x.shape)
    print("sum", x.sum())
    return x @ np.ones(7)


def named(x: Any) -> Any:
    print("start", x)
    y = x * 2
    print(f"y {y[0]:.1f}")
    return z  # type: ignore[name-defined] # noqa: F821 (what is tested)


def helper(x: Any) -> Any:
    print("mean", x.mean())
    return x.nothing


def helped(x: Any) -> Any:
    print("begin")
    return helper(x)


def looked_up(x: Any) -> Any:
    for name in ("a", "b"):
        print(name, end=" ")
        if name == "b":
            x = x[12]
    return x


def checked(x: Any) -> Any:
    if x[0] > 1:
        raise ValueError("too large")
    return x @ np.ones(7)


def checked_and_told(x: Any) -> Any:
    print("a")
    if x[0] > 1:
        raise KeyError("too large")
    print("b")
    return x.nothing


def written(x: Any) -> Any:
    sys.stdout.write("first\n")
    print("second", x.sum())
    count = sys.stdout.write("third")
    sys.stdout.write(f" {x[0]:.2f} {count}\n")
    for v in x:
        if v > 1:
            sys.stdout.write("large ")
        else:
            print("small", end=" ")
    return x * 2


def outcome(function: Any, x: Any, capsys: Any) -> tuple[str, str, str]:
    """What a call gives or raises, and what it prints."""
    try:
        told = str(function(x))
    except Exception as error:  # noqa: BLE001 (compared)
        kind = next(k for k in type(error).__mro__ if k.__module__ == "builtins")  # ours are Python's, too
        told = f"{kind.__name__}: {error}"
    return told, *capsys.readouterr()


FUNCTIONS = [shapes, named, helped, looked_up, checked, checked_and_told, written]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("level", ["stable", "exact"])
def test_each_call_prints_and_raises_what_python_does(function: Any, level: str, capsys: Any) -> None:
    captured = tm.tensor(function, math=level)
    for x in (np.ones(2), np.array([3.0, 1.0]), np.array([3.0, 1.0]), np.ones(2), np.arange(3)):
        assert outcome(captured, x, capsys) == outcome(function, x, capsys)


def test_what_was_changed_before_an_error_is_changed_once(capsys: Any) -> None:
    def f(log: list[Any], x: Any) -> Any:
        print(len(log))
        log.append(x.shape)
        print("then", len(log))
        return x.nothing

    captured, log = tm.tensor(f), list[Any]()
    for k in range(3):
        with pytest.raises(AttributeError):
            captured(log, np.ones(2))
        assert len(log) == k + 1
        assert capsys.readouterr().out == f"{k}\nthen {k + 1}\n"


def test_where_state_is_not_known_the_error_is_the_users(capsys: Any) -> None:
    numbers = itertools.count()

    def f(x: Any) -> Any:
        print(next(numbers))
        return x.nothing

    captured = tm.tensor(f)
    for k in range(3):
        with pytest.raises(AttributeError, match="nothing"):
            captured(np.ones(2))
        assert next(numbers) == 2 * k + 1
        assert capsys.readouterr().out == f"{2 * k}\n"


def failing(make: Any, steps: list[int]) -> Any:
    """A function that prints, asks for state that cannot be followed, checks data and ends in an error."""
    draw = make()

    def f(x: Any) -> Any:
        for step in steps:
            if step == 0:
                print("drawn", draw(), end="; ")
            elif step == 1:
                print("shape", x.shape, x.sum())
            elif step == 2:
                if x[0] > 1:
                    raise ValueError(f"large: {x[0]}")
            elif step == 3:
                if x.sum() > 2:
                    print("sum", x.sum())
                else:
                    x = x + 1
        return x @ np.ones(7)

    return f


STATES: list[Any] = [
    lambda: itertools.count().__next__,
    lambda: random.Random(3).random,
    lambda: iter("abcdefghijk").__next__,
]


@pytest.mark.parametrize("seed", range(24))
def test_what_was_printed_before_an_error_is_printed_where_state_is_not_known(seed: int, capsys: Any) -> None:
    rng = random.Random(seed)
    make, steps = rng.choice(STATES), rng.choices((0, 1, 3), k=rng.randint(1, 5))
    steps = [
        0,
        *steps,
        *rng.choices((1, 2, 3), k=rng.randint(0, 3)),
    ]  # what is drawn stays drawn, and is so before any check
    function, captured = failing(make, steps), tm.tensor(failing(make, steps))
    for x in (np.ones(2), np.array([3.0, 1.0]), np.ones(2), np.array([0.5, 3.0])):
        assert outcome(captured, x, capsys) == outcome(function, x, capsys), steps


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda: np.set_printoptions(precision=3), "np.set_printoptions"),
        (lambda: np.printoptions(precision=3).__enter__(), "np.printoptions"),
        (lambda: np.seterr(divide="ignore"), "np.seterr"),
        (lambda: np.seterrcall(None), "np.seterrcall"),
        (lambda: np.setbufsize(8192), "np.setbufsize"),
    ],
)
def test_settings_of_numpys_are_refused_by_name(change: Any, name: str) -> None:
    def f(x: Any) -> Any:
        change()
        return x * 2

    captured, before = tm.tensor(f), (np.get_printoptions(), np.geterr())
    for _ in range(2):
        with pytest.raises(CaptureError, match=name):
            captured.graph(np.ones(2))
    assert (np.get_printoptions(), np.geterr()) == before


@pytest.mark.parametrize("options", [{"divide": "call"}, {"all": "log"}, {"divide": "warn", "call": print}])
def test_functions_for_floating_point_errors_are_refused_by_name(options: Any) -> None:
    def f(x: Any) -> Any:
        with np.errstate(**options):
            return 1 / x

    for _ in range(2):
        with pytest.raises(CaptureError, match=r"np\.errstate\(\) in a captured function"):
            tm.tensor(f).graph(np.zeros(2))


@pytest.mark.parametrize("call", [lambda f: f(1, d=5), lambda f: f(1, a=2), lambda f: f(), lambda f: f(1, 2, 3)])
def test_wrong_arguments_are_told_in_pythons_words(call: Any) -> None:
    def f(a: Any, b: Any = 2, *, c: Any = 3) -> Any:
        return a + b + c

    with pytest.raises(TypeError) as expected:
        call(f)
    with pytest.raises(TypeError) as found:
        call(tm.tensor(f))
    assert str(found.value) == str(expected.value)


def _prints_in_finally(x):
    try:
        if x > 3:
            raise KeyError("large")
        print("small")
    finally:
        try:
            print("in", x)
        finally:
            print("out")
    return x


def _prints_in_each_iteration(x):
    for i in range(3):
        try:
            if x > i + 2:
                raise ValueError(i)
            print("fine", i)
        finally:
            print("next")
        x = x + 1.5
    return x


def _tells_how_it_ended(x):
    print("begins", x)
    try:
        if x >= 3:
            raise AssertionError("large")
        return x * 2
    finally:
        print("ends", x)


@pytest.mark.parametrize("plain", [_prints_in_finally, _prints_in_each_iteration, _tells_how_it_ended])
def test_what_finally_prints_is_printed_before_an_error(plain, capsys):
    function = tm.tensor(plain)
    for x in (1.0, 5.0, 2.5, 5.0, 1.0, 3.5):
        ended = []
        for own in (plain, function):
            try:
                gives = own(x)
            except (KeyError, ValueError, AssertionError) as error:
                gives = type(error).__name__, str(error)
            ended.append((gives, capsys.readouterr().out))
        assert ended[0] == ended[1]


class _Level:
    def __init__(self, value):
        self.value = value


def _prints_and_stores(level, x, known):
    for v in x:
        if known.get("q", 0.25) < v:
            level.value = abs(level.value) + v
        if level.value < 2:
            print("level", level.value)
    return level.value


def test_what_objects_get_is_computed_without_printing_it_twice(capsys):
    function = tm.tensor(_prints_and_stores)
    for value, x, known in (
        (0.75, [1.0, -0.5], {}), (0.75, [1.0, -0.5], {}), (-0.5, [0.5, 0.25], {"q": -1.0}), (0.1, [0.0, 0.0, 0.0], {"q": 1.0})
    ):  # fmt: skip
        told = []
        for own in (_prints_and_stores, function):
            level = _Level(value)
            gives = own(level, np.array(x), dict(known))
            told.append((float(gives), float(level.value), capsys.readouterr().out))
        assert told[0] == told[1]
