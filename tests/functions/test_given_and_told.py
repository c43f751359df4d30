"""What functions give beside arrays, what they may not change, and where a refusal says that it happened."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


@dataclass
class Setting:
    w: Any
    name: str = "adam"
    mode: Mode = Mode.FAST


def test_texts_and_members_of_enumerations_are_given_back() -> None:
    @tm.tensor
    def step(s, told="converged"):
        return replace(s, w=s.w * 2), told, {"mode": s.mode, "raw": b"a"}

    for told in ("converged", "not yet", "converged"):
        for mode in Mode:
            new, said, more = step(Setting(np.ones(2), "sgd", mode), told)
            assert (new.name, new.mode, said, more) == ("sgd", mode, told, {"mode": mode, "raw": b"a"})
            assert np.array_equal(new.w, [2.0, 2.0])


def test_a_text_alone_is_given_back_and_follows_what_is_read() -> None:
    held = {"name": "a"}
    named = tm.tensor(lambda x: held["name"] if np.ndim(x) else "number")
    assert (named(np.ones(2)), named(1.0)) == ("a", "number")
    held["name"] = "b"
    assert named(np.ones(2)) == "b"


def test_a_text_beside_an_array_that_is_stored_into() -> None:
    @tm.tensor
    def fill(a):
        a[0] = 5.0
        return "done", a

    x = np.zeros(2)
    told, y = fill(x)
    assert (told, x[0]) == ("done", 5.0)
    assert y is x


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(new=d.pop("a")),
        lambda d: d.update(new=None),
        lambda d: d["l"].append(None),
        lambda d: d["l"].append([]),
        lambda d: d.update(n="other"),
        lambda d: d.pop("none"),
        lambda d: d.update(a=d.pop("a")),
    ],
    ids=["renamed", "none added", "none appended", "list appended", "text", "none removed", "order"],
)
def test_changes_of_form_alone_are_done_in_the_callers_containers(change) -> None:
    def f(d, x):
        change(d)
        return x * 2

    def state():
        return {"a": 1.0, "none": None, "l": [2.0], "n": "text"}

    expected, found, step = state(), state(), tm.tensor(f)
    for _ in range(2):
        change(expected)
        inner = found["l"]
        assert step(found, 3.0) == 6.0
        assert [*found.items()] == [*expected.items()]
        assert found["l"] is inner
        if "none" not in expected or "a" not in expected:
            break


def test_a_name_that_is_bound_outside_is_refused_at_its_line() -> None:
    count = 0

    def counted(x):
        nonlocal count

        count += 1
        return x * count

    line = counted.__code__.co_firstlineno + 3
    with pytest.raises(CaptureError, match=rf"binds count outside of itself.*test_given_and_told\.py line {line}\)"):
        tm.tensor(counted).graph(np.ones(2))
    assert count == 0


@pytest.mark.parametrize("text", ["x.hex()", "x.as_integer_ratio()"])
def test_methods_of_numbers_are_refused_by_name(text) -> None:
    function = eval(f"lambda x: {text}")
    for number in (2.5, np.float64(2.5)):
        with pytest.raises(CaptureError, match=rf"\.{text.removeprefix('x.')[:-2]}\(\) of a number"):
            tm.tensor(function).graph(number)
        lazy = tm.tensor(np.array([2.5]))[0] if isinstance(number, np.float64) else tm.tensor(number)
        assert function(lazy) == function(number)
    assert tm.tensor(lambda x: x * (2 if hasattr(x, "hex") else 3))(1.5) == 3.0
    with pytest.raises(AttributeError, match="no attribute 'hexx'"):
        tm.tensor(lambda x: x.hexx())(2.5)


def test_whether_a_number_is_whole_is_asked_when_the_function_runs() -> None:
    def halved(x):
        return x * 2 if x.is_integer() else x / 2, x.is_integer()

    captured = tm.tensor(halved)
    for number in (2.5, 3.0, -0.0, math.inf, math.nan, np.float64(4.5), np.float32(-3.0)):
        assert repr(captured(number)) == repr(halved(number))


def _by_text(x):
    return x * (2 if str(x.shape) == "(2,)" else 3)


def _by_key(x):
    return {f"{x.shape}": x, repr([x.shape[0]]): x, "%s" % (x.shape,): x, str(len(x)): x, f"{len(x):03d}": x}  # noqa: UP031


def _by_number(x, held={2: 5.0}):  # noqa: B006 (what is asked)
    return x * (held[len(x)] if len(x) in held else 1.0)  # noqa: SIM401


def _by_raise(x):
    if x.shape != (4,):
        raise ValueError(f"bad {x.shape}" + str(x.shape) + " %s" % (x.shape,))  # noqa: UP031
    return x


def _by_assert(x):
    assert x.shape == (4,), f"bad {x.shape}"
    return x


def _outcome(function, x):
    try:
        found = function(x)
    except (ValueError, AssertionError) as error:
        return type(error).__name__, str(error)
    return list(found) if isinstance(found, dict) else found


@pytest.mark.parametrize("function", [_by_text, _by_key, _by_number, _by_raise, _by_assert])
def test_texts_and_keys_of_sizes_are_those_of_the_numbers(function) -> None:
    captured = tm.tensor(function)
    for n in (2, 3, 2, 4):
        x = np.ones(n)
        expected, found = _outcome(function, x), _outcome(captured, x)
        assert type(found) is type(expected)
        assert np.array_equal(found, expected) if isinstance(expected, np.ndarray) else found == expected


@pytest.mark.parametrize("text", ["str([x])", "repr(x)", "str((x, 1))", "{repr(x.sum()): 1.0}"])
def test_texts_of_what_has_no_value_yet_are_refused(text) -> None:
    function = eval(f"lambda x: (x, {text})")
    with pytest.raises(CaptureError, match="it is turned into text here"):
        tm.tensor(function).graph(np.ones(2))
