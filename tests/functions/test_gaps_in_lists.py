"""nan in lists and tuples: one object is equal to itself, for ``in`` and ``==``; and what else NumPy makes of numbers and objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tensormagic as tm
from tensormagic.ir.errors import CaptureError

NAN = float("nan")
OTHER = float("nan")
quiet = pytest.mark.filterwarnings("ignore::tensormagic.ir.errors.PlainRunWarning")


@dataclass
class Sample:
    t: float
    v: float


def skipped(xs: Any) -> Any:
    return 0.0 if NAN in xs else sum(xs)


def counted(xs: Any, v: Any) -> Any:
    n = 0
    for x in xs:
        if x in (v, -1.0):
            n += 1
    return n


PROGRAMS: list[tuple[Callable[..., Any], list[tuple[Any, ...]]]] = [
    (lambda xs: NAN in xs, [([1.0, NAN],), ([1.0, 2.0],), ([1.0, OTHER],)]),
    (lambda v, xs: v in xs, [(NAN, [NAN]), (NAN, [OTHER, 1.0]), (2.0, [2.0, NAN])]),
    (lambda xs: xs == [1.0, NAN], [([1.0, NAN],), ([1.0, OTHER],), ([2.0, NAN],)]),
    (lambda a, b: (a,) == (b,), [(NAN, NAN), (NAN, OTHER), (1.0, 1.0)]),
    (lambda a, b: a != b, [({"a": NAN}, {"a": NAN}), ({"a": NAN}, {"a": OTHER}), ({"a": 1.0}, {"a": 1.0})]),
    (lambda xs: [v for v in xs if v not in (NAN, -1.0)], [([1.0, NAN],), ([1.0, OTHER, 2.0],)]),
    (lambda a, b: a == b, [(Sample(1.0, NAN), Sample(1.0, NAN)), (Sample(1.0, NAN), Sample(1.0, OTHER))]),
    (skipped, [([1.0, 2.0],), ([1.0, NAN],), ([1.0, OTHER],)]),
    (counted, [([1.0, NAN, -1.0], NAN), ([1.0, NAN, 2.0], 2.0)]),
    (lambda x, y: [x * 2] == [y * 2], [(NAN, NAN), (1.0, 1.0)]),
]


@quiet
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_one_nan_is_equal_to_itself(number: int):
    function, calls = PROGRAMS[number]
    captured = tm.tensor(function)
    for args in [*calls, *calls, *reversed(calls)]:
        assert repr(captured(*args)) == repr(function(*args)), args


def test_compiled_programs_refuse_what_they_cannot_tell():
    compiled = tm.compile(lambda xs: NAN in xs, [1.0, 2.0])
    assert not compiled([1.0, 3.0])
    with pytest.raises(CaptureError, match="two nan"):
        compiled([1.0, NAN])


def test_gradients_of_programs_that_ask():
    def chosen(x: Any, y: Any) -> Any:
        return x * 3 if [x, 1.0] == [y, 1.0] else x * x

    assert tm.grad(chosen)(2.0, 2.0) == 3.0
    assert tm.grad(chosen)(2.0, 1.0) == 4.0


class Pair:
    def __init__(self, a: Any) -> None:
        self.a = a

    def __len__(self) -> int:
        return 2

    def __getitem__(self, k: int) -> Any:
        return [1.0, self.a][k]

    def __rmul__(self, other: Any) -> Any:
        return "multiplied", other

    __radd__ = __rsub__ = __rtruediv__ = __rmul__


@quiet
@pytest.mark.parametrize("number", [2.0, np.float64(2.0), np.float32(2.0), np.int64(2), np.bool_(True), 3])
def test_numpys_numbers_read_objects_as_sequences(number: Any):
    for function in (lambda v, p: v * p, lambda v, p: v + p, lambda v, p: v / p):
        captured = tm.tensor(function)
        for _ in range(3):
            assert repr(captured(number, Pair(4.0))) == repr(function(number, Pair(4.0)))


@pytest.mark.parametrize(
    "function",
    [
        lambda n: np.arange(n),
        lambda n: np.arange(1, n),
        lambda n: np.arange(n, n + n, n),
        lambda n: np.arange(n, 9),
        lambda n: np.arange(n) * 0.5,
        lambda n: np.arange(n, dtype=np.int32),
    ],
)
@pytest.mark.parametrize("kind", [np.uint64, np.uint32, np.int64, np.uint8])
def test_ranges_of_unsigned_numbers(function: Callable[[Any], Any], kind: Any):
    captured = tm.tensor(function)
    for n in (kind(3), kind(4), kind(3)):
        found, expected = captured(n), function(n)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)
